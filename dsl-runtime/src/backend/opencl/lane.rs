//! A queue that knows what is under way in it: it keeps the data of transfers alive and remembers what failed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::call::{Called, Event, Failure, Queue};
use super::locked;
use crate::backend::Staging;

/// A queue and what is under way in it.
pub(super) struct Lane {
    pub(super) queue: Queue,
    state: Mutex<LaneState>,
}

#[derive(Default)]
struct LaneState {
    under_way: VecDeque<Command>,
    failed: Option<Failure>,
    /// How many commands were enqueued so far.
    issued: u64,
    /// The event of the last one.
    newest: Option<Arc<Event>>,
    /// The event of the last one that did something, rather than wait.
    work: Option<Arc<Event>>,
}

/// An enqueued command.
struct Command {
    call: &'static str,
    event: Arc<Event>,
    data: Kept,
}

/// What a command needs until its event, as OpenCL uses it whenever it likes before.
#[expect(dead_code, reason = "data is held for the driver, not read")]
pub(super) enum Kept {
    /// Nothing.
    Nothing,
    /// A copy of the data of a write.
    Copy(Box<[u8]>),
    /// Staging memory.
    Staging(Arc<Staging>),
}

/// A moment in a lane.
pub(super) struct Moment {
    lane: Arc<Lane>,
    /// How many commands were enqueued before.
    issued: u64,
    /// The event of the last of them: the queue runs in order, so all have happened when it has.
    pub(super) event: Arc<Event>,
    /// The event of the last of them that did something.
    pub(super) work: Option<Arc<Event>>,
}

impl Command {
    /// Leaks the data of a command that went wrong: whether the driver still uses it is unknown.
    fn abandon(self) {
        std::mem::forget(self.data);
    }
}

impl LaneState {
    /// Forgets the commands that have ended and keeps the first failure.
    fn sweep(&mut self) {
        while let Some(command) = self.under_way.pop_front() {
            match command.event.finished(command.call) {
                Ok(true) => {}
                Ok(false) => return self.under_way.push_front(command),
                Err(failure) => {
                    self.failed.get_or_insert(failure);
                    command.abandon();
                }
            }
        }
    }

    fn add(&mut self, call: &'static str, event: Event, data: Kept) -> Arc<Event> {
        let event = Arc::new(event);
        self.issued += 1;
        self.newest = Some(event.clone());
        self.under_way.push_back(Command { call, event: event.clone(), data });
        self.sweep();
        event
    }
}

impl Lane {
    /// Nothing is under way in a new queue.
    pub(super) fn new(queue: Queue) -> Self {
        Self { queue, state: Mutex::default() }
    }

    /// Starts what was just enqueued and remembers it, with the data that it still needs.
    pub(super) fn track(&self, call: &'static str, event: Event, data: Kept) -> Called<()> {
        {
            let mut state = locked(&self.state);
            state.work = Some(state.add(call, event, data));
        }
        // Without this a driver may keep commands back until the host blocks, and nothing would overlap; and what
        // other queues wait for must have been flushed (OpenCL 1.2, section 5.13).
        self.queue.flush()
    }

    /// What is enqueued from now on starts after `event`, of any queue of the context.
    pub(super) fn wait_for(&self, event: &Event) -> Called<()> {
        let barrier = self.queue.wait_for(event)?;
        locked(&self.state).add("clEnqueueBarrierWithWaitList", barrier, Kept::Nothing);
        self.queue.flush()
    }

    /// The moment after all that was enqueued so far.
    pub(super) fn moment(self: &Arc<Self>) -> Called<Moment> {
        let mut state = locked(&self.state);
        let event = match state.newest.clone() {
            Some(event) => event,
            None => {
                let marker = self.queue.marker()?;
                self.queue.flush()?;
                state.add("clEnqueueMarkerWithWaitList", marker, Kept::Nothing)
            }
        };
        Ok(Moment { lane: self.clone(), issued: state.issued, event, work: state.work.clone() })
    }

    /// Waits for everything; the first failure since the last time, if there was one.
    pub(super) fn finish(&self) -> Called<()> {
        let finished = self.queue.finish();
        self.failure().map_or(finished, Err)
    }

    /// The first failure among the commands that have ended since the last time it was asked for.
    pub(super) fn failure(&self) -> Option<Failure> {
        let mut state = locked(&self.state);
        state.sweep();
        state.failed.take()
    }
}

impl Moment {
    /// Waits for the moment; the first failure in its queue since the last time, if there was one.
    pub(super) fn reach(&self) -> Called<()> {
        // Some CPU runtimes let a thread in clFinish help with the work, and one that waits for an event only watch.
        let is_last = locked(&self.lane.state).issued == self.issued;
        let reached = if is_last { self.lane.queue.finish() } else { self.event.wait() };
        self.lane.failure().map_or(reached, Err)
    }

    /// Whether it has happened, well or not. When it has, what the commands before it wrote is there for all.
    pub(super) fn has_happened(&self) -> bool {
        match self.event.finished("") {
            Ok(false) => false,
            // To ask for the state of an event is no point of synchronisation (OpenCL 1.2, section 5.9), but to wait is.
            Ok(true) => {
                let _ = self.event.wait();
                true
            }
            // The lane finds the failure too and keeps it.
            Err(_) => true,
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.queue.finish().is_err() {
            locked(&self.state).under_way.drain(..).for_each(Command::abandon);
        }
    }
}
