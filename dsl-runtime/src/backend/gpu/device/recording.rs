//! Work that is recorded once and enqueued often.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::card::{Buffer, OpenCard};
use super::lane::{Kept, Lane, Users};
use super::locked;
use crate::backend::gpu::driver::{Called, Failure, Graph, Kind, Stream};

thread_local! {
    /// Recordings that this thread makes, each with whether it still does.
    static MADE_HERE: RefCell<Vec<(Arc<AtomicBool>, Weak<Recording>)>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread is making a recording: then it mustn't ask a driver what has happened.
pub(super) fn is_made_here() -> bool {
    let is_making = MADE_HERE.try_with(|recordings| {
        let mut recordings = recordings.borrow_mut();
        recordings.retain(|(is_being_made, _)| is_being_made.load(Ordering::Acquire));
        !recordings.is_empty()
    });
    // The thread is ending.
    is_making.unwrap_or(false)
}

/// Gives up what this thread is recording: it is about to wait, after some failure, and drivers don't allow both.
pub(super) fn abandon_made_here() {
    let recordings = MADE_HERE.try_with(RefCell::take).unwrap_or_default();
    recordings.iter().filter_map(|(_, recording)| recording.upgrade()).for_each(|recording| recording.abandon());
}

/// A recording, in the making or ready.
#[derive(Debug)]
pub(super) struct Recording {
    card: Arc<OpenCard>,
    /// Where it began.
    stream: Stream,
    /// Whether operations still go into it.
    is_being_made: Arc<AtomicBool>,
    /// What came out.
    graph: Mutex<Option<Graph>>,
    /// Lanes that record, the first of which is where it began.
    lanes: Mutex<Vec<Weak<Lane>>>,
    /// What its operations need whenever it is enqueued.
    kept: Mutex<Vec<Kept>>,
    buffers: Mutex<Vec<Weak<Buffer>>>,
    users: Users,
    is_forgotten: AtomicBool,
}

impl Recording {
    /// What this thread enqueues on a lane from now on is recorded.
    pub(super) fn begin(lane: &Arc<Lane>) -> Called<()> {
        let (card, stream) = (lane.card.clone(), lane.stream());
        card.driver.begin_capture(card.number(), stream)?;
        let recording = Arc::new(Self {
            card,
            stream,
            is_being_made: Arc::new(AtomicBool::new(true)),
            graph: Mutex::default(),
            lanes: Mutex::default(),
            kept: Mutex::default(),
            buffers: Mutex::default(),
            users: Users::default(),
            is_forgotten: AtomicBool::new(false),
        });
        let here = (recording.is_being_made.clone(), Arc::downgrade(&recording));
        MADE_HERE.with_borrow_mut(|recordings| recordings.push(here));
        lane.join(&recording);
        Ok(())
    }

    /// A lane records too.
    pub(super) fn joined(&self, lane: &Arc<Lane>) {
        locked(&self.lanes).push(Arc::downgrade(lane));
    }

    /// Whether it began on this lane.
    pub(super) fn began_on(&self, lane: &Lane) -> bool {
        self.card.number() == lane.card.number() && self.stream == lane.stream()
    }

    /// An operation needs this.
    pub(super) fn keep(&self, data: Kept) {
        if !matches!(data, Kept::Nothing) {
            locked(&self.kept).push(data);
        }
    }

    /// An operation uses this.
    pub(super) fn uses(&self, buffer: &Arc<Buffer>) {
        let mut buffers = locked(&self.buffers);
        if buffers.iter().all(|known| known.as_ptr() != Arc::as_ptr(buffer)) {
            buffers.push(Arc::downgrade(buffer));
        }
    }

    /// Whether operations still go into it.
    pub(super) fn is_being_made(&self) -> bool {
        self.is_being_made.load(Ordering::Acquire)
    }

    /// Ends it. After a failure all lanes work as before.
    pub(super) fn end(&self) -> Called<()> {
        if !self.is_being_made.swap(false, Ordering::AcqRel) {
            return Err(unfit("it was given up after a failure"));
        }
        let lanes = std::mem::take(&mut *locked(&self.lanes));
        lanes.iter().filter_map(Weak::upgrade).for_each(|lane| lane.leave());
        let graph = self.card.driver.end_capture(self.card.number(), self.stream)?;
        *locked(&self.graph) = Some(graph);
        Ok(())
    }

    /// Ends it and keeps nothing of it.
    pub(super) fn abandon(&self) {
        if self.is_being_made() {
            // What is wrong with it was or will be said by another call.
            let _ = self.end();
            self.give_back();
        }
    }

    /// Enqueues what was recorded.
    pub(super) fn replay(&self, lane: &Arc<Lane>) -> Called<()> {
        let graph = *locked(&self.graph);
        let graph = graph.ok_or_else(|| unfit("it isn't complete"))?;
        if self.users.add(lane) {
            locked(&self.buffers).iter().filter_map(Weak::upgrade).for_each(|buffer| {
                buffer.users.add(lane);
            });
        }
        lane.enqueue([], Kept::Nothing, |stream| self.card.driver.launch_graph(lane.card.number(), stream, graph))
    }

    /// The end of its use, once the work is done.
    pub(super) fn forget(&self) {
        self.abandon();
        self.give_back();
    }

    /// Whether nobody will ask for its events any more.
    pub(super) fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::Acquire)
    }

    fn give_back(&self) {
        self.is_forgotten.store(true, Ordering::Release);
        self.users.quiesce();
        let graph = locked(&self.graph).take();
        if let Some(graph) = graph {
            let _ = self.card.driver.destroy_graph(self.card.number(), graph);
        }
        locked(&self.kept).clear();
    }
}

fn unfit(reason: &str) -> Failure {
    let message = format!("the recording can't be used: {reason}");
    Failure { call: "replay", code: 0, message, kind: Kind::Other }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.forget();
    }
}
