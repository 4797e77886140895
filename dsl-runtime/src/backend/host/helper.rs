//! Threads that do what stands in the queues of host devices.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use super::engine::{Doing, Shared};
use crate::backend::affinity::pin;

/// Tries before an idle helper sleeps: some tens of microseconds. Each gives way to other threads, of which one may be
/// about to issue an operation on the helper's CPU.
const YIELDS: u32 = 100;

/// A helper thread; it ends when the engine stops.
pub(super) struct Helper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    pub(super) fn start(shared: &Arc<Shared>, number: usize) -> io::Result<Self> {
        let inner = Arc::clone(shared);
        let thread =
            thread::Builder::new().name(format!("polyhalo-helper-{number}")).spawn(move || serve(&inner, number))?;
        Ok(Self { shared: Arc::clone(shared), thread: Some(thread) })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.shared.stop();
        // Helpers catch panics, so joining can't fail; and if it did there would be nothing left to do.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The life of a helper.
fn serve(shared: &Shared, number: usize) {
    let served = shared.served(number);
    let bell = &shared.bells[number];
    // Helpers that serve all devices start looking at different ones.
    let mut first = number;
    let mut cpu = None;
    let mut state = shared.lock();
    loop {
        let turn = served.clone().map(|device| served.start + (device + first) % served.len());
        let ready = turn.into_iter().find_map(|device| Some((device, state.queues.ready(device).next()?)));
        if let Some((device, queue)) = ready {
            let work = state.queues.take(device, queue);
            first = device + 1;
            drop(state);
            // It runs as the first thread of the device; between devices it moves.
            let own = shared.processors()[device].pool.place().cpu(0);
            if let (Some(own), true) = (own, own != cpu) {
                pin(own);
                cpu = Some(own);
            }
            let (result, span) = shared.perform(device, &work);
            drop(work);
            state = shared.lock();
            state.queues.complete(device, queue, result, span);
            let devices = state.queues.devices();
            shared.announce(state, 0..devices);
            state = shared.lock();
            continue;
        }
        if state.stop {
            return;
        }
        state.helpers[number] = Doing::Polling;
        bell.rung.store(false, Ordering::Relaxed);
        drop(state);
        let rung = || bell.rung.load(Ordering::Acquire);
        for _ in 0..YIELDS {
            if rung() {
                break;
            }
            thread::yield_now();
        }
        state = shared.lock();
        state.helpers[number] = Doing::Sleeping;
        while !rung() && !state.stop {
            state = bell.sleep.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.helpers[number] = Doing::Working;
    }
}
