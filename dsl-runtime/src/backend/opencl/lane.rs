//! A queue that knows what is under way in it: it keeps the data of writes alive and remembers what failed.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::call::{Called, Event, Failure, Queue};
use super::locked;

/// A queue and what is under way in it.
pub(super) struct Lane {
    pub(super) queue: Queue,
    state: Mutex<LaneState>,
}

#[derive(Default)]
struct LaneState {
    under_way: VecDeque<Command>,
    failed: Option<Failure>,
}

/// An enqueued command.
struct Command {
    call: &'static str,
    event: Event,
    /// The data of a write, which OpenCL reads whenever it likes before the event.
    staged: Option<Box<[u8]>>,
}

impl Command {
    /// Leaks the data of a command that went wrong: whether the driver still reads it is unknown.
    fn abandon(self) {
        std::mem::forget(self.staged);
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
}

impl Lane {
    /// Nothing is under way in a new queue.
    pub(super) fn new(queue: Queue) -> Self {
        Self { queue, state: Mutex::default() }
    }

    /// Starts what was just enqueued and remembers it, with the data that it still needs.
    pub(super) fn track(&self, call: &'static str, event: Event, staged: Option<Box<[u8]>>) -> Called<()> {
        {
            let mut state = locked(&self.state);
            state.under_way.push_back(Command { call, event, staged });
            state.sweep();
        }
        // Without this a driver may keep commands back until the host blocks, and nothing would overlap.
        self.queue.flush()
    }

    /// Waits for everything; the first failure since the last time, if there was one.
    pub(super) fn finish(&self) -> Called<()> {
        let finished = self.queue.finish();
        let mut state = locked(&self.state);
        state.sweep();
        state.failed.take().map_or(finished, Err)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.queue.finish().is_err() {
            locked(&self.state).under_way.drain(..).for_each(Command::abandon);
        }
    }
}
