//! Runs what stands in the queues of devices that were opened together: at once, on helper threads, or in an order that
//! shows a missing wait.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::chooser::Chooser;
use super::helper::Helper;
use super::processor::Processor;
use super::queues::{Moment, Queues};
use super::work::Work;
use crate::backend::{EventId, Helpers, OpenOptions, Order, QueueId, panic_message};
use crate::clock::{Span, now};
use crate::error::{Error, Result};

/// Tries, each giving way to other threads, before a thread that waits for a queue sleeps.
const YIELDS: u32 = 64;

/// Up to so many bytes to be written are copied, so that the call needn't wait for the queue.
const SMALL_WRITE_BYTES: usize = 64 << 10;

/// When operations run and by which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// When they are issued, by the thread that issues them.
    Direct,
    /// As soon as they may, by helper threads.
    Helped,
    /// When they are waited for, by the thread that waits.
    Lazy,
    /// By threads that issue or wait, in an order of chance.
    Random,
}

/// The devices that were opened together: their processors, their queues and the threads that serve these.
pub(super) struct Engine {
    shared: Arc<Shared>,
    _helpers: Vec<Helper>,
}

/// What helpers use too.
pub(super) struct Shared {
    processors: Vec<Processor>,
    /// Held by a thread that works with a device itself: one at a time.
    turns: Vec<Mutex<()>>,
    mode: Mode,
    trace: bool,
    state: Mutex<State>,
    /// Some operation is finished; only where the threads that wait run operations.
    progress: Condvar,
    /// One for each helper.
    pub(super) bells: Vec<Bell>,
}

/// How a helper is called.
#[derive(Debug, Default)]
pub(super) struct Bell {
    /// Set and cleared while the state is locked.
    pub(super) rung: AtomicBool,
    pub(super) sleep: Condvar,
}

/// What a helper does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Working,
    Polling,
    Sleeping,
}

/// What the lock protects; nothing runs while it is held.
pub(super) struct State {
    pub(super) queues: Queues<Work>,
    chooser: Chooser,
    pub(super) helpers: Vec<Doing>,
    pub(super) stop: bool,
}

type Guard<'a> = MutexGuard<'a, State>;

impl Engine {
    /// An engine for devices with these processors.
    pub(super) fn new(processors: Vec<Processor>, options: &OpenOptions) -> io::Result<Self> {
        let devices = processors.len();
        let wanted = match options.helpers {
            Helpers::Auto if devices == 1 => 0,
            Helpers::Auto | Helpers::Devices => devices,
            // A device does one thing at a time, so that more helpers than devices had nothing to do.
            Helpers::Count(count) => count.min(devices),
        };
        let (mode, helpers, seed) = match options.order {
            Order::Eager if wanted == 0 => (Mode::Direct, 0, 0),
            Order::Eager => (Mode::Helped, wanted, 0),
            Order::Lazy => (Mode::Lazy, 0, 0),
            Order::Random(seed) => (Mode::Random, 0, seed),
        };
        let names = processors.iter().map(|processor| processor.name.clone()).collect();
        let state = State {
            queues: Queues::new(names),
            chooser: Chooser::new(seed),
            helpers: vec![Doing::Working; helpers],
            stop: false,
        };
        let shared = Arc::new(Shared {
            turns: (0..devices).map(|_| Mutex::default()).collect(),
            processors,
            mode,
            trace: options.trace,
            state: Mutex::new(state),
            progress: Condvar::new(),
            bells: (0..helpers).map(|_| Bell::default()).collect(),
        });
        let helpers = (0..helpers).map(|number| Helper::start(&shared, number)).collect::<io::Result<_>>()?;
        Ok(Self { shared, _helpers: helpers })
    }

    /// Whether threads that issue operations, or wait for them, do them.
    pub(super) fn issuer_works(&self) -> bool {
        self.shared.mode != Mode::Helped
    }

    pub(super) fn processor(&self, device: usize) -> &Processor {
        &self.shared.processors[device]
    }

    /// Enqueues an operation; with no helpers it is done, and its error told, when the call returns.
    pub(super) fn issue(&self, device: usize, queue: QueueId, work: Work) -> Result<()> {
        let shared = &*self.shared;
        if shared.mode == Mode::Direct {
            return shared.direct(device, queue, &work);
        }
        let mut state = shared.lock();
        let number = state.queues.queue(device, queue);
        state.queues.enqueue(device, number, work);
        if shared.mode == Mode::Random {
            state.chooser.issued((device, number));
            drop(shared.drive(state, None));
        } else {
            shared.announce(state, device..device + 1);
        }
        Ok(())
    }

    /// Whether data of so many bytes that are to be written are copied, for the operation to keep.
    pub(super) fn keeps(&self, bytes: usize) -> bool {
        match self.shared.mode {
            Mode::Direct => false,
            Mode::Helped => bytes <= SMALL_WRITE_BYTES,
            Mode::Lazy | Mode::Random => true,
        }
    }

    /// Calls `work` while no other thread uses the device that way and no queue has an operation of a thread that runs
    /// its own.
    pub(super) fn alone<R>(&self, device: usize, work: impl FnOnce(&Processor) -> R) -> R {
        let _turn = self.shared.turn(device);
        work(&self.shared.processors[device])
    }

    /// The moment after all that is in the queue now.
    pub(super) fn signal(&self, device: usize, queue: QueueId) -> Moment {
        let mut state = self.shared.lock();
        let queue = state.queues.queue(device, queue);
        state.queues.end(device, queue)
    }

    /// The moment of an event that the device gave.
    pub(super) fn moment(&self, device: usize, event: EventId) -> Option<Moment> {
        self.shared.lock().queues.moment(device, event)
    }

    /// What is enqueued on the queue from now on starts after the moment.
    pub(super) fn wait(&self, device: usize, queue: QueueId, moment: Moment) -> Result<(), String> {
        if self.shared.mode == Mode::Direct {
            let state = self.shared.reach(moment);
            return state.queues.failure(moment).map_or(Ok(()), |reason| Err(reason.to_owned()));
        }
        let mut state = self.shared.lock();
        let queue = state.queues.queue(device, queue);
        state.queues.wait(device, queue, moment);
        // The wait may be over at once, and nothing else: what follows it isn't there yet.
        self.shared.announce(state, 0..0);
        Ok(())
    }

    /// Blocks until the queue is empty, and reports what failed in it.
    pub(super) fn finish(&self, device: usize, queue: QueueId) -> Result<()> {
        let moment = self.signal(device, queue);
        self.shared.reach(moment).queues.report(moment)
    }

    /// Blocks until the moment, and reports what failed in its queue before. The reason of a failure that was reported
    /// already is the inner error.
    pub(super) fn synchronize(&self, moment: Moment) -> Result<Result<(), String>> {
        let mut state = self.shared.reach(moment);
        state.queues.report(moment)?;
        Ok(state.queues.failure(moment).map_or(Ok(()), |reason| Err(reason.to_owned())))
    }

    /// Blocks until the queues of a device are empty, whatever fails.
    pub(super) fn drain(&self, device: usize) {
        let ends = self.shared.lock().queues.ends(device);
        ends.into_iter().for_each(|end| drop(self.shared.reach(end)));
    }

    /// When the last operation up to the moment ran.
    pub(super) fn span(&self, moment: Moment) -> Option<Span> {
        self.shared.lock().queues.span(moment)
    }
}

impl Shared {
    pub(super) fn lock(&self) -> Guard<'_> {
        // Nothing panics while the state is between two valid ones.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, device: usize) -> MutexGuard<'_, ()> {
        self.turns[device].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn processors(&self) -> &[Processor] {
        &self.processors
    }

    /// The devices that a helper serves: its own if each has one.
    pub(super) fn served(&self, helper: usize) -> std::ops::Range<usize> {
        let devices = self.processors.len();
        if self.bells.len() == devices { helper..helper + 1 } else { 0..devices }
    }

    /// Tells the helpers that there is no more to do.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stop = true;
        self.bells.iter().for_each(|bell| bell.rung.store(true, Ordering::Release));
        drop(state);
        self.bells.iter().for_each(|bell| bell.sleep.notify_all());
    }

    /// Does an operation, and tells when.
    pub(super) fn perform(&self, device: usize, work: &Work) -> (Result<()>, Option<Span>) {
        let processor = &self.processors[device];
        let start = self.trace.then(now);
        let result = catch_unwind(AssertUnwindSafe(|| work.run(processor))).unwrap_or_else(|panic| {
            let (device, place) = (processor.name.clone(), "an operation".into());
            Err(Error::Panicked { device, place, message: panic_message(panic.as_ref()) })
        });
        (result, start.map(|start| Span { start, end: now() }))
    }

    /// Does an operation on the calling thread.
    fn direct(&self, device: usize, queue: QueueId, work: &Work) -> Result<()> {
        let _turn = self.turn(device);
        let mut state = self.lock();
        let queue = state.queues.queue(device, queue);
        state.queues.start(device, queue);
        drop(state);
        let (result, span) = self.perform(device, work);
        let mut state = self.lock();
        state.queues.complete(device, queue, result, span);
        let end = state.queues.end(device, queue);
        let result = state.queues.report(end);
        self.announce(state, 0..0);
        result
    }

    /// Blocks until a moment.
    fn reach(&self, moment: Moment) -> Guard<'_> {
        let mut state = self.lock();
        if state.queues.is_reached(moment) {
            return state;
        }
        if matches!(self.mode, Mode::Lazy | Mode::Random) {
            return self.drive(state, Some(moment));
        }
        let meeting = state.queues.meeting(moment, false);
        drop(state);
        for _ in 0..YIELDS {
            if meeting.finished.load(Ordering::Acquire) >= moment.number {
                break;
            }
            thread::yield_now();
        }
        state = self.lock();
        while !state.queues.is_reached(moment) {
            let meeting = state.queues.meeting(moment, true);
            state = meeting.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Runs operations until the moment is reached, or as many as chance wills if nobody waits for one.
    fn drive<'a>(&'a self, mut state: Guard<'a>, moment: Option<Moment>) -> Guard<'a> {
        let needs = moment.map(|moment| state.queues.needs(moment)).unwrap_or_default();
        loop {
            let reached = match moment {
                Some(moment) => state.queues.is_reached(moment),
                None => state.chooser.rests(),
            };
            if reached {
                return state;
            }
            match (self.pick(&mut state, &needs), moment) {
                (Some((device, queue)), _) => {
                    let work = state.queues.take(device, queue);
                    drop(state);
                    let (result, span) = self.perform(device, &work);
                    drop(work);
                    state = self.lock();
                    state.queues.complete(device, queue, result, span);
                    self.announce(state, 0..0);
                    self.progress.notify_all();
                    state = self.lock();
                }
                // Another thread is running what is needed.
                (None, Some(_)) => state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner),
                (None, None) => return state,
            }
        }
    }

    /// An operation that may run now.
    fn pick(&self, state: &mut State, needs: &BTreeMap<(usize, usize), u64>) -> Option<(usize, usize)> {
        let queues = &state.queues;
        let ready = (0..queues.devices()).flat_map(|device| queues.ready(device).map(move |queue| (device, queue)));
        let is_needed = |&(device, queue): &(usize, usize)| {
            needs.get(&(device, queue)).is_some_and(|&last| queues.first(device, queue) <= last)
        };
        if self.mode == Mode::Lazy {
            return ready.filter(is_needed).min();
        }
        let ready: Vec<_> = ready.map(|queue| (queue, is_needed(&queue))).collect();
        state.chooser.choose(&ready)
    }

    /// Gives the lock back and wakes all whom it concerns: threads that wait for what has happened, and helpers for
    /// what may run now on these devices.
    pub(super) fn announce(&self, mut state: Guard<'_>, devices: std::ops::Range<usize>) {
        let mut asleep = Vec::new();
        for device in devices {
            if state.queues.ready(device).next().is_none() {
                continue;
            }
            let is_free = |helper: &usize| {
                state.helpers[*helper] != Doing::Working && !self.bells[*helper].rung.load(Ordering::Relaxed)
            };
            let helpers = 0..self.bells.len();
            let helper = helpers.filter(|&helper| self.served(helper).contains(&device)).find(is_free);
            let Some(helper) = helper else { continue };
            self.bells[helper].rung.store(true, Ordering::Release);
            if state.helpers[helper] == Doing::Sleeping {
                asleep.push(helper);
            }
        }
        let awaited = state.queues.awaited();
        drop(state);
        asleep.into_iter().for_each(|helper| self.bells[helper].sleep.notify_one());
        awaited.into_iter().for_each(|meeting| meeting.bell.notify_all());
    }
}
