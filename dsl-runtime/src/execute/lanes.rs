//! The threads that issue the operations of a batch of runs.

use std::any::Any;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use super::action::{Failure, Scratch};
use super::caller;
use super::progress::Progress;
use super::script::{Entry, Meeting, Script, Then, Wait};
use super::trace::Note;
use super::{Common, Program};
use crate::backend::{EventId, Pinned, QueueId};
use crate::clock;
use crate::error::Error;
use crate::placement::Home;
use crate::plan::{Action, Op};

/// How many runs a thread may be ahead of the slowest one, besides those that operations look back.
const MOST_RUNS_AHEAD: u64 = 64;

/// Why a batch has ended before its time.
pub(super) enum Ended {
    Failed(Error),
    /// A closure of the user panicked.
    Panicked(Box<dyn Any + Send>),
}

/// Why a thread has left.
enum Left {
    Failed(Failure),
    /// Another one has failed.
    Told,
}

impl From<Failure> for Left {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Some runs of a script.
pub(super) struct Batch<'a> {
    program: &'a Program,
    script: &'a Script,
    ops: &'a [Op],
    common: &'a Common<'a>,
    /// The runs of the program that are issued before.
    done: u64,
    runs: u64,
    progress: Vec<Progress>,
    /// For each run that may still be looked at, the events of its operations.
    events: Vec<AtomicU64>,
    /// The number of these runs.
    kept_runs: u64,
    /// Whether each thread has a CPU to wait on.
    has_cpus: bool,
    stop: AtomicBool,
    ended: Mutex<Option<Ended>>,
    notes: Mutex<Vec<Note>>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        program: &'a Program,
        script: &'a Script,
        ops: &'a [Op],
        common: &'a Common<'a>,
        done: u64,
        runs: u64,
    ) -> Self {
        let lanes = script.lanes.len();
        let ahead = if lanes > 1 { MOST_RUNS_AHEAD } else { 1 };
        let kept_runs = (script.reach + ahead).min(runs).max(1);
        let events = script.events * kept_runs as usize;
        Self {
            program,
            script,
            ops,
            common,
            done,
            runs,
            progress: (0..lanes).map(|_| Progress::default()).collect(),
            events: (0..events).map(|_| AtomicU64::new(0)).collect(),
            kept_runs,
            has_cpus: lanes > 1 && available_parallelism().map_or(1, NonZeroUsize::get) >= lanes,
            stop: AtomicBool::new(false),
            ended: Mutex::default(),
            notes: Mutex::default(),
        }
    }

    /// Issues all operations; when it returns, nobody issues any more. Gives what is to be traced.
    pub(super) fn issue(self) -> Result<Vec<Note>, Ended> {
        let caller = caller::this_thread();
        thread::scope(|scope| {
            for lane in 1..self.script.lanes.len() {
                let batch = &self;
                let work = move || {
                    caller::work_for(caller);
                    batch.lane(lane);
                };
                let started = thread::Builder::new().name(format!("polyhalo lane {lane}")).spawn_scoped(scope, work);
                if let Err(source) = started {
                    self.end(Ended::Failed(Error::System { call: "starting a thread".into(), source }));
                    return;
                }
            }
            self.lane(0);
        });
        match self.ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(ended) => Err(ended),
            None => Ok(self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Makes all threads leave; the first reason counts.
    fn end(&self, reason: Ended) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.stop.store(true, Ordering::Release);
        self.progress.iter().for_each(Progress::wake);
    }

    /// The CPUs on which a thread stays: those near the devices for which it issues. One that issues for several stays near
    /// any of them, so that none is preferred.
    fn cpus(&self, lane: usize) -> Vec<usize> {
        let ops = self.script.lanes[lane].iter().map(|entry| &self.ops[entry.op]);
        let devices: BTreeSet<usize> = ops.filter(|op| !op.action.is_on_host()).map(|op| op.device).collect();
        Home::shared(devices.into_iter().map(|device| self.common.devices[device].home()))
    }

    /// Issues the operations of one thread.
    fn lane(&self, lane: usize) {
        // Not before the other threads are started, which would inherit it.
        let _near = Pinned::among(&self.cpus(lane));
        let mut run = 0;
        let mut notes = Vec::new();
        let left = catch_unwind(AssertUnwindSafe(|| {
            while run < self.runs {
                self.run(lane, run, &mut notes)?;
                run += 1;
            }
            Ok(())
        }));
        match left {
            Ok(Ok(())) => self.notes.lock().unwrap_or_else(PoisonError::into_inner).append(&mut notes),
            Ok(Err(Left::Told)) => {}
            Ok(Err(Left::Failed(failure))) => {
                let step = self.common.step(&self.program.plan, self.done + run);
                self.end(Ended::Failed(failure.in_step(self.common.devices, step)));
            }
            Err(panic) => self.end(Ended::Panicked(panic)),
        }
    }

    fn run(&self, lane: usize, run: u64, notes: &mut Vec<Note>) -> Result<(), Left> {
        let entries = &self.script.lanes[lane];
        let alone = self.script.lanes.len() == 1;
        let issued = run * entries.len() as u64;
        if run >= self.kept_runs && !alone {
            // Its events take the place of those of an earlier run, at which nobody must look any more.
            let finished = run - self.kept_runs + self.script.reach + 1;
            for (other, entries) in self.script.lanes.iter().enumerate().filter(|(other, _)| *other != lane) {
                self.wait_for_lane(other, finished * entries.len() as u64)?;
            }
        }
        let mut scratch = Scratch::default();
        for (place, entry) in entries.iter().enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Left::Told);
            }
            self.entry(entry, run, &mut scratch, notes, || self.progress[lane].publish(issued + place as u64 + 1))?;
        }
        if !alone {
            self.progress[lane].publish(issued + entries.len() as u64);
        }
        Ok(())
    }

    /// Issues an operation; `publish` tells the other threads so.
    fn entry(
        &self,
        entry: &Entry,
        run: u64,
        scratch: &mut Scratch,
        notes: &mut Vec<Note>,
        publish: impl Fn(),
    ) -> Result<(), Left> {
        let op = &self.ops[entry.op];
        let start = self.common.trace.map(|_| clock::now());
        for wait in entry.waits.iter().filter(|wait| wait.runs <= run) {
            self.wait(wait, op.queue, op.device, run - wait.runs)?;
        }
        let is_barrier = matches!(op.action, Action::Barrier);
        if is_barrier {
            self.meet(&entry.meeting, run, &publish)?;
        }
        self.program.perform(op, self.common, self.done + run, scratch)?;
        let is_traced = start.is_some() && !op.action.is_on_host();
        let event = if entry.event.is_some() || is_traced {
            let device = &self.common.devices[op.device];
            Some(device.signal(op.queue).map_err(Failure::of(op.device, "signal"))?)
        } else {
            None
        };
        if let (Some(row), Some(event)) = (entry.event, event) {
            self.kept(row, run).store(event.0, Ordering::Relaxed);
        }
        if entry.is_awaited && !is_barrier {
            publish();
        }
        if let Some(start) = start {
            let event = event.filter(|_| is_traced);
            notes.push(Note { run, op: entry.op, issue: clock::Span { start, end: clock::now() }, event });
        }
        Ok(())
    }

    /// Where the event of an operation is kept. It is written before the operation counts as issued.
    fn kept(&self, event: usize, run: u64) -> &AtomicU64 {
        &self.events[event * self.kept_runs as usize + (run % self.kept_runs) as usize]
    }

    fn wait(&self, wait: &Wait, queue: QueueId, device: usize, run: u64) -> Result<(), Left> {
        if let Some(moment) = wait.issued {
            let each_run = self.script.lanes[moment.lane].len() as u64;
            self.wait_for_lane(moment.lane, run * each_run + moment.place as u64 + 1)?;
        }
        let event = |event| EventId(self.kept(event, run).load(Ordering::Relaxed));
        let devices = self.common.devices;
        match wait.then {
            Then::Nothing => {}
            Then::Queue { event: number } => {
                devices[device].wait(queue, event(number)).map_err(Failure::of(device, "wait"))?;
            }
            Then::Peer { device: other, event: number } => {
                let waits = devices[device].wait_for_peer(queue, &*devices[other], event(number));
                waits.map_err(Failure::of(device, "wait_for_peer"))?;
            }
            Then::Block { device: other, event: number } => {
                devices[other].synchronize(event(number)).map_err(Failure::of(other, "synchronize"))?;
            }
        }
        Ok(())
    }

    fn wait_for_lane(&self, lane: usize, count: u64) -> Result<(), Left> {
        let reached = self.progress[lane].wait(count, &self.stop, self.has_cpus);
        if reached { Ok(()) } else { Err(Left::Told) }
    }

    /// Finishes what the thread has issued, and waits for the others.
    fn meet(&self, meeting: &Meeting, run: u64, arrive: &impl Fn()) -> Result<(), Left> {
        for &(device, queue) in &meeting.queues {
            self.common.devices[device].finish(queue).map_err(Failure::of(device, "finish"))?;
        }
        if meeting.others.is_empty() {
            return Ok(());
        }
        arrive();
        for other in &meeting.others {
            let each_run = self.script.lanes[other.lane].len() as u64;
            self.wait_for_lane(other.lane, run * each_run + other.place as u64 + 1)?;
        }
        Ok(())
    }
}
