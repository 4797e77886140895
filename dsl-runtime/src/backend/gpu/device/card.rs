//! An open card, and what is had from it: each thing keeps the card open and gives itself back.

use std::sync::{Arc, Mutex, Weak};

use super::lane::Users;
use super::load::Kernel;
use super::locked;
use crate::backend::Staging;
use crate::backend::gpu::driver::{Address, Called, Card, Driver, Event, Failure, Stream};
use crate::layout::Layout;

/// Events without work that are kept for the next who needs one, of each kind.
const IDLE_EVENTS: usize = 1024;

/// A card in use.
#[derive(Debug)]
pub(super) struct OpenCard {
    pub(super) driver: &'static dyn Driver,
    pub(super) facts: Card,
    /// Events that nobody waits for, without and with times.
    idle: Mutex<[Vec<Event>; 2]>,
    /// The kernels that a device has loaded: those that share the card share them.
    pub(super) kernels: Mutex<Vec<Weak<Kernel>>>,
    /// Held while shapes are measured, so that one measurement doesn't slow another.
    pub(super) tuning: Mutex<()>,
    peers: Mutex<Vec<Peer>>,
}

/// Another card, and why it can't be reached if it can't.
type Peer = (Weak<OpenCard>, Result<(), String>);

impl OpenCard {
    /// Opens a card.
    pub(super) fn new(driver: &'static dyn Driver, facts: Card) -> Called<Arc<Self>> {
        driver.open(facts.ordinal)?;
        Ok(Arc::new(Self {
            driver,
            facts,
            idle: Mutex::default(),
            kernels: Mutex::default(),
            tuning: Mutex::default(),
            peers: Mutex::default(),
        }))
    }

    /// The card's number.
    pub(super) fn number(&self) -> u32 {
        self.facts.ordinal
    }

    /// An event, with times if `timed`.
    pub(super) fn event(self: &Arc<Self>, timed: bool) -> Called<OwnEvent> {
        let idle = locked(&self.idle)[usize::from(timed)].pop();
        let event = idle.map_or_else(|| self.driver.event(self.number(), timed), Ok)?;
        Ok(OwnEvent { card: self.clone(), event, timed })
    }

    /// A stream.
    pub(super) fn stream(self: &Arc<Self>) -> Called<OwnStream> {
        Ok(OwnStream { card: self.clone(), stream: self.driver.stream(self.number())? })
    }

    /// Whether each of two cards can reach the memory of the other by itself, after it was told that it may; if not, why.
    pub(super) fn reaches(self: &Arc<Self>, other: &Arc<Self>) -> Result<(), String> {
        if self.number() == other.number() {
            return Ok(());
        }
        let mut peers = locked(&self.peers);
        peers.retain(|(peer, _)| peer.strong_count() > 0);
        if let Some((_, known)) = peers.iter().find(|(peer, _)| peer.as_ptr() == Arc::as_ptr(other)) {
            return known.clone();
        }
        let found = self.connect(other);
        peers.push((Arc::downgrade(other), found.clone()));
        found
    }

    fn connect(&self, other: &Self) -> Result<(), String> {
        let failed = |failure: Failure| format!("{} gave {failure}", failure.call);
        for (from, to) in [(self, other), (other, self)] {
            if !self.driver.reaches(from.number(), to.number()).map_err(failed)? {
                let name = |card: &Self| format!("card {} ({})", card.number(), card.facts.name);
                return Err(format!("{} can't reach the memory of {}", name(from), name(to)));
            }
        }
        self.driver.enable_peer(self.number(), other.number()).map_err(failed)?;
        self.driver.enable_peer(other.number(), self.number()).map_err(failed)
    }
}

impl Drop for OpenCard {
    fn drop(&mut self) {
        // Nobody is left to be told of failures here and below: what isn't given back goes with the process.
        for event in locked(&self.idle).iter_mut().flat_map(std::mem::take) {
            let _ = self.driver.destroy_event(self.facts.ordinal, event);
        }
        let _ = self.driver.close(self.facts.ordinal);
    }
}

/// An event of a card. When it isn't needed any more another may have it: who waits for it holds it until the driver knows.
#[derive(Debug)]
pub(super) struct OwnEvent {
    card: Arc<OpenCard>,
    event: Event,
    timed: bool,
}

impl OwnEvent {
    /// The event becomes the moment after what was enqueued on the stream so far.
    pub(super) fn record(&self, stream: Stream) -> Called<()> {
        self.card.driver.record(self.card.number(), self.event, stream)
    }

    /// Waits for the event.
    pub(super) fn finish(&self) -> Called<()> {
        self.card.driver.finish_event(self.card.number(), self.event)
    }

    /// Whether it has happened.
    pub(super) fn has_happened(&self) -> Called<bool> {
        self.card.driver.has_happened(self.card.number(), self.event)
    }

    /// Milliseconds until another one of the card.
    pub(super) fn until(&self, later: &Self) -> Called<f32> {
        self.card.driver.elapsed(self.card.number(), self.event, later.event)
    }

    /// What is enqueued on a stream of a card from now on starts after the event.
    pub(super) fn hold(&self, card: &OpenCard, stream: Stream) -> Called<()> {
        card.driver.wait(card.number(), stream, self.event)
    }
}

impl Drop for OwnEvent {
    fn drop(&mut self) {
        let idle = &mut locked(&self.card.idle)[usize::from(self.timed)];
        if idle.len() < IDLE_EVENTS {
            idle.push(self.event);
        } else {
            let _ = self.card.driver.destroy_event(self.card.number(), self.event);
        }
    }
}

/// A stream of a card.
#[derive(Debug)]
pub(super) struct OwnStream {
    card: Arc<OpenCard>,
    pub(super) stream: Stream,
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        let _ = self.card.driver.destroy_stream(self.card.number(), self.stream);
    }
}

/// Memory of a card, freed once nobody works with it.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) card: Arc<OpenCard>,
    pub(super) address: Address,
    pub(super) layout: Layout,
    pub(super) bytes: usize,
    pub(super) users: Users,
}

impl Buffer {
    /// Memory for the cells of a layout, with whatever lies in it.
    pub(super) fn new(card: &Arc<OpenCard>, layout: &Layout) -> Called<Self> {
        // Not all drivers give memory without a byte.
        let bytes = layout.bytes.max(1);
        let address = card.driver.alloc(card.number(), bytes)?;
        Ok(Self { card: card.clone(), address, layout: *layout, bytes, users: Users::default() })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.users.quiesce();
        let _ = self.card.driver.free(self.card.number(), self.address);
    }
}

/// Pinned memory of the host.
pub(super) struct Pinned {
    card: Arc<OpenCard>,
    start: *mut u8,
}

// SAFETY: the address isn't used through this type, and a driver's memory belongs to no thread.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// So many bytes.
    pub(super) fn new(card: &Arc<OpenCard>, bytes: usize) -> Called<Self> {
        let start = card.driver.alloc_host(card.number(), bytes)?;
        Ok(Self { card: card.clone(), start })
    }

    /// Zeroed memory for transfers; the calling thread touches it first. `bytes` are as many as were asked for.
    pub(super) fn staging(self, bytes: usize) -> Staging {
        let start = self.start;
        // SAFETY: the driver gave so many bytes, which are the host's to use until the owner gives them back.
        unsafe {
            start.write_bytes(0, bytes);
            Staging::owned(start, bytes, Box::new(self))
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Work that uses the memory holds a reference to it, so there is none.
        let _ = self.card.driver.free_host(self.card.number(), self.start);
    }
}
