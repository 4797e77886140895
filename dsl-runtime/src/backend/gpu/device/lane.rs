//! A stream that knows what is under way in it: it keeps the data of transfers alive and remembers what failed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::card::{Buffer, OpenCard, OwnEvent, OwnStream};
use super::locked;
use super::recording::{self, Recording};
use crate::backend::Staging;
use crate::backend::gpu::driver::{Called, Failure, Kind, Stream};

/// With more than so many the driver is asked what has happened; a question costs about as much as a launch.
pub(super) const ENOUGH: usize = 64;

/// A stream and what is under way in it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) card: Arc<OpenCard>,
    stream: OwnStream,
    /// Whether the times of operations are wanted.
    traces: bool,
    state: Mutex<State>,
    /// Everything up to this number has happened.
    reached: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// How many operations were enqueued so far.
    issued: u64,
    under_way: VecDeque<Held>,
    /// The first failure since the last time that somebody asked.
    failed: Option<Failure>,
    /// The moment after the last operation, if it has been marked.
    newest: Option<Arc<Mark>>,
    /// When the last operation ran that did something, rather than wait.
    work: Option<Arc<Work>>,
    /// The recording into which operations go.
    recording: Option<Arc<Recording>>,
}

/// Data that is held until the operation of that number has happened.
#[derive(Debug)]
struct Held {
    number: u64,
    /// A moment after it; without one nobody knows before the lane is finished.
    mark: Option<Arc<Mark>>,
    #[expect(dead_code, reason = "it is held for the driver, not read")]
    data: Kept,
}

/// What an operation needs until it is done, as the driver uses it whenever it likes before.
#[derive(Debug)]
#[expect(dead_code, reason = "data is held for the driver, not read")]
pub(super) enum Kept {
    /// Nothing.
    Nothing,
    /// A copy of the data of a write.
    Copy(Box<[u8]>),
    /// Staging memory.
    Staging(Arc<Staging>),
}

/// The event after the first `number` operations of a lane.
#[derive(Debug)]
struct Mark {
    number: u64,
    event: OwnEvent,
    /// The recording that it is part of, if it is: then it never happens by itself.
    recording: Option<Arc<Recording>>,
}

/// When an operation ran.
#[derive(Debug)]
pub(super) struct Work {
    start: OwnEvent,
    end: Arc<Mark>,
}

/// A moment in a lane.
#[derive(Debug)]
pub(super) struct Moment {
    lane: Arc<Lane>,
    mark: Arc<Mark>,
    /// The last operation before it.
    pub(super) work: Option<Arc<Work>>,
}

/// The lanes with work that uses something.
#[derive(Debug, Default)]
pub(super) struct Users(Mutex<Vec<Weak<Lane>>>);

impl Users {
    /// One more; whether it is new.
    pub(super) fn add(&self, lane: &Arc<Lane>) -> bool {
        let mut users = locked(&self.0);
        let is_new = users.iter().all(|user| user.as_ptr() != Arc::as_ptr(lane));
        if is_new {
            users.push(Arc::downgrade(lane));
        }
        is_new
    }

    /// Waits until their work is done. A lane that is gone was finished before.
    pub(super) fn quiesce(&self) {
        let users = std::mem::take(&mut *locked(&self.0));
        users.iter().filter_map(Weak::upgrade).for_each(|lane| lane.quiesce());
    }
}

impl Lane {
    /// A new stream of a card.
    pub(super) fn new(card: &Arc<OpenCard>, traces: bool) -> Called<Self> {
        let stream = card.stream()?;
        let card = card.clone();
        Ok(Self { card, stream, traces, state: Mutex::default(), reached: AtomicU64::new(0) })
    }

    /// The stream.
    pub(super) fn stream(&self) -> Stream {
        self.stream.stream
    }

    /// The recording into which operations go, if one is being made.
    pub(super) fn recording(&self) -> Option<Arc<Recording>> {
        locked(&self.state).recording.clone()
    }

    /// From now on operations go into a recording.
    pub(super) fn join(self: &Arc<Self>, recording: &Arc<Recording>) {
        let mut state = locked(&self.state);
        if state.recording.is_none() {
            state.recording = Some(recording.clone());
            state.newest = None;
            recording.joined(self);
        }
    }

    /// The recording has ended.
    pub(super) fn leave(&self) {
        let mut state = locked(&self.state);
        state.recording = None;
        state.newest = None;
    }

    /// Enqueues an operation that uses `buffers` and, until it is done, `data`.
    pub(super) fn enqueue<'a>(
        self: &Arc<Self>,
        buffers: impl IntoIterator<Item = &'a Arc<Buffer>>,
        data: Kept,
        operation: impl FnOnce(Stream) -> Called<()>,
    ) -> Called<()> {
        let recording = self.recording();
        for buffer in buffers {
            buffer.users.add(self);
            if let Some(recording) = &recording {
                recording.uses(buffer);
            }
        }
        match recording {
            Some(recording) => {
                operation(self.stream()).inspect_err(|_| recording.abandon())?;
                recording.keep(data);
                locked(&self.state).newest = None;
                Ok(())
            }
            None => self.enqueue_now(data, operation),
        }
    }

    fn enqueue_now(&self, data: Kept, operation: impl FnOnce(Stream) -> Called<()>) -> Called<()> {
        let start = if self.traces {
            let event = self.card.event(true)?;
            event.record(self.stream())?;
            Some(event)
        } else {
            None
        };
        operation(self.stream())?;
        let mut state = locked(&self.state);
        state.issued += 1;
        state.newest = None;
        let is_kept = !matches!(data, Kept::Nothing);
        // It is under way whatever becomes of the mark.
        if is_kept {
            let number = state.issued;
            state.under_way.push_back(Held { number, mark: None, data });
        }
        if is_kept || start.is_some() {
            let mark = self.mark(&mut state)?;
            if let Some(held) = state.under_way.back_mut().filter(|_| is_kept) {
                held.mark = Some(mark.clone());
            }
            if let Some(start) = start {
                state.work = Some(Arc::new(Work { start, end: mark }));
            }
        }
        self.sweep(&mut state);
        Ok(())
    }

    /// The moment after all that was enqueued so far.
    fn mark(&self, state: &mut State) -> Called<Arc<Mark>> {
        if let Some(newest) = &state.newest {
            return Ok(newest.clone());
        }
        let recording = state.recording.clone();
        let event = self.card.event(self.traces && recording.is_none())?;
        event.record(self.stream())?;
        let mark = Arc::new(Mark { number: state.issued, event, recording });
        state.newest = Some(mark.clone());
        Ok(mark)
    }

    /// The same for others to wait for.
    pub(super) fn moment(self: &Arc<Self>) -> Called<Moment> {
        let mut state = locked(&self.state);
        let mark = self.mark(&mut state);
        let (work, recording) = (state.work.clone(), state.recording.clone());
        if mark.is_ok() {
            self.sweep(&mut state);
        }
        drop(state);
        if let (Err(_), Some(recording)) = (&mark, &recording) {
            recording.abandon();
        }
        let work = work.filter(|_| recording.is_none());
        Ok(Moment { lane: self.clone(), mark: mark?, work })
    }

    /// What is enqueued from now on starts after a moment, of any lane of the driver.
    pub(super) fn wait_for(self: &Arc<Self>, moment: &Moment) -> Called<()> {
        // The stream runs in order.
        if Arc::ptr_eq(self, &moment.lane) {
            return Ok(());
        }
        let waits = moment.mark.event.hold(&self.card, self.stream());
        if waits.is_err() {
            self.recording().iter().chain(&moment.mark.recording).for_each(|recording| recording.abandon());
        }
        waits?;
        if let Some(recording) = &moment.mark.recording {
            self.join(recording);
        }
        let mut state = locked(&self.state);
        state.issued += 1;
        state.newest = None;
        Ok(())
    }

    /// Waits for everything; the first failure since the last time, if there was one.
    pub(super) fn finish(&self) -> Called<()> {
        let issued = locked(&self.state).issued;
        let finished = self.card.driver.finish_stream(self.card.number(), self.stream());
        if finished.is_ok() {
            self.reach(issued);
        }
        self.failure().map_or(finished, Err)
    }

    /// Waits for everything, so that what it used can be given back; failures are kept for those who ask for them.
    pub(super) fn quiesce(&self) {
        if let Some(recording) = self.recording() {
            recording.abandon();
        }
        recording::abandon_made_here();
        let issued = locked(&self.state).issued;
        // A failure may be one of the call alone.
        for _ in 0..2 {
            match self.card.driver.finish_stream(self.card.number(), self.stream()) {
                Ok(()) => return self.reach(issued),
                Err(failure) => {
                    locked(&self.state).failed.get_or_insert(failure);
                }
            }
        }
    }

    /// The first failure since the last time it was asked for.
    pub(super) fn failure(&self) -> Option<Failure> {
        let mut state = locked(&self.state);
        self.sweep(&mut state);
        state.failed.take()
    }

    /// The first operations have happened.
    fn reach(&self, number: u64) {
        self.reached.fetch_max(number, Ordering::Release);
        let mut state = locked(&self.state);
        self.sweep(&mut state);
    }

    /// Whether a moment of this lane has happened.
    fn has_reached(&self, mark: &Mark) -> Called<bool> {
        if mark.recording.is_some() {
            return Ok(false);
        }
        if self.reached.load(Ordering::Acquire) >= mark.number {
            return Ok(true);
        }
        // Who records mustn't ask.
        if recording::is_made_here() {
            return Ok(false);
        }
        let happened = mark.event.has_happened()?;
        if happened {
            self.reached.fetch_max(mark.number, Ordering::Release);
        }
        Ok(happened)
    }

    /// Forgets what has happened.
    fn sweep(&self, state: &mut State) {
        while let Some(held) = state.under_way.front() {
            let is_done = match &held.mark {
                _ if self.reached.load(Ordering::Acquire) >= held.number => Ok(true),
                Some(mark) if state.under_way.len() > ENOUGH => self.has_reached(mark),
                Some(_) | None => Ok(false),
            };
            match is_done {
                Ok(true) => drop(state.under_way.pop_front()),
                Ok(false) => return,
                Err(failure) => {
                    state.failed.get_or_insert(failure);
                    return;
                }
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.quiesce();
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Nothing works on a card that is lost. Otherwise the driver may still use the data.
        let is_lost = state.failed.as_ref().is_some_and(|failure| failure.kind == Kind::Lost);
        if !is_lost {
            state.under_way.drain(..).for_each(std::mem::forget);
        }
    }
}

impl Moment {
    /// Waits for the moment; the first failure in its lane since the last time, if there was one.
    pub(super) fn reach(&self) -> Called<()> {
        let reached = self.mark.event.finish();
        if reached.is_ok() {
            self.lane.reach(self.mark.number);
        }
        self.lane.failure().map_or(reached, Err)
    }

    /// Whether it has happened, as far as the driver tells; the lane keeps a failure.
    pub(super) fn has_happened(&self) -> bool {
        self.lane.has_reached(&self.mark).unwrap_or_else(|failure| {
            locked(&self.lane.state).failed.get_or_insert(failure);
            false
        })
    }

    /// Whether it is known to have happened, without asking the driver.
    pub(super) fn is_past(&self) -> bool {
        self.mark.recording.is_none() && self.lane.reached.load(Ordering::Acquire) >= self.mark.number
    }

    /// The recording that it is part of.
    pub(super) fn recording(&self) -> Option<&Arc<Recording>> {
        self.mark.recording.as_ref()
    }
}

impl Work {
    /// Milliseconds from an event to the start of the operation, and from there to its end.
    pub(super) fn since(&self, event: &OwnEvent) -> Called<[f32; 2]> {
        Ok([event.until(&self.start)?, self.start.until(&self.end.event)?])
    }
}
