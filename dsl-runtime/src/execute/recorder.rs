//! Runs that repeat are recorded by a device and enqueued again and again, which costs the host next to nothing: CUDA graphs.
//!
//! A recording holds whole turns of the fields' buffers, so that the next one finds every buffer where the one before
//! found it. It starts and ends in one queue, the origin: all others wait for the origin at its start, and the origin for them
//! at its end. So recordings follow one another in the order of that queue, and what an operation needs of an earlier
//! recording is finished.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::action::Failure;
use super::lanes::{Batch, Ended};
use super::rotation::Rotation;
use super::script::{Queue, Script, Then, Wait};
use super::{Common, Issue, Program};
use crate::backend::{BufferId, Device, EventId, RecordingId};
use crate::plan::{Action, Operand, Plan, Slot};

/// A recording has at least so many operations, where it may have more runs.
const ENOUGH_OPS: u64 = 32;

/// Recordings that are kept; each is for other buffers or other scalars.
const MOST_KEPT: usize = 4;

/// What it takes to record runs of a plan.
#[derive(Debug)]
pub(super) struct Recorder {
    /// In which one thread issues everything.
    script: Script,
    /// The first is the origin.
    queues: Vec<Queue>,
    /// The runs of a recording.
    runs: u64,
    /// The slots and the scalars whose values at the start of a run go into the recording.
    slots: BTreeSet<Slot>,
    scalars: BTreeSet<usize>,
    kept: Mutex<Vec<(Key, RecordingId)>>,
    /// Whether a device has refused to record.
    refused: AtomicBool,
    /// The runs that were done by recordings.
    replayed: AtomicU64,
}

/// The buffers and scalars of a recording.
type Key = (Vec<Vec<BufferId>>, Vec<u64>);

impl Recorder {
    /// `None` if the host has work to do, or to wait, within a run.
    pub(super) fn new(plan: &Plan, rotation: &Rotation, devices: &[Box<dyn Device>]) -> Option<Self> {
        let awaits = |device: usize, other: usize| devices[device].awaits(&*devices[other]);
        if plan.ops.is_empty() || plan.ops.iter().any(|op| op.action.is_on_host()) {
            return None;
        }
        let script = Script::new(&plan.ops, Issue::InOrder, awaits);
        let blocks = |wait: &Wait| matches!(wait.then, Then::Block { .. });
        if script.lanes.iter().flatten().any(|entry| entry.waits.iter().any(blocks)) {
            return None;
        }
        let queues = script.queues.clone();
        let &(origin, _) = queues.first()?;
        if queues.iter().any(|&(device, _)| device != origin && !(awaits(device, origin) && awaits(origin, device))) {
            return None;
        }
        let turn = rotation.turn();
        let ops = plan.ops.len() as u64 * turn;
        let (slots, scalars) = (plan.ops.iter().flat_map(|op| slots(&op.action)).collect(), scalars(plan));
        Some(Self {
            script,
            queues,
            runs: turn * ENOUGH_OPS.div_ceil(ops),
            slots,
            scalars,
            kept: Mutex::default(),
            refused: AtomicBool::new(false),
            replayed: AtomicU64::new(0),
        })
    }

    /// The runs that were done by recordings so far.
    pub(super) fn replayed(&self) -> u64 {
        self.replayed.load(Ordering::Relaxed)
    }

    /// Issues runs of the program, as many as possible by recordings.
    pub(super) fn issue(&self, program: &Program, common: &Common<'_>, runs: u64) -> Result<(), Ended> {
        let mut done = 0;
        let plain =
            |done: u64, runs: u64| Batch::new(program, &program.each, &program.plan.ops, common, done, runs).issue();
        let finish = |run: u64| program.finish(common, common.step(&program.plan, run)).map_err(Ended::Failed);
        if runs >= 3 * self.runs && !self.refused.load(Ordering::Relaxed) {
            let key = self.key(common);
            let mut recording = self.kept(&key);
            if recording.is_none() {
                // The first runs may compile and measure, which can't be recorded.
                plain(0, self.runs)?;
                done = self.runs;
            }
            // Recordings are in order with what is in their origin only.
            finish(done.saturating_sub(1))?;
            if recording.is_none() {
                recording = self.record(program, common)?;
                if let Some(recording) = recording {
                    self.keep(key, recording, common);
                }
            }
            if let Some(recording) = recording {
                let (device, queue) = self.queues[0];
                while runs - done >= self.runs {
                    let replayed = common.devices[device].replay(queue, recording);
                    let failed = Failure::of(device, "replay");
                    let step = common.step(&program.plan, done);
                    replayed.map_err(|error| Ended::Failed(failed(error).in_step(common.devices, step)))?;
                    done += self.runs;
                    self.replayed.fetch_add(self.runs, Ordering::Relaxed);
                }
                finish(done - 1)?;
            }
        }
        if done < runs { plain(done, runs - done).map(|_| ()) } else { Ok(()) }
    }

    /// A recording, unless a device can't or won't: runs are then issued one by one. All queues are finished.
    fn record(&self, program: &Program, common: &Common<'_>) -> Result<Option<RecordingId>, Ended> {
        let (origin, queue) = self.queues[0];
        let device = &common.devices[origin];
        let begun = device.record(queue).unwrap_or(false);
        let issued = begun.then(|| self.issue_recorded(program, common));
        let recorded = begun.then(|| device.recorded(queue));
        match (issued, recorded) {
            (Some(Err(panicked @ Ended::Panicked(_))), _) => Err(panicked),
            (Some(Ok(())), Some(Ok(recording))) => Ok(Some(recording)),
            // What is wrong with the device, if anything is, shows again without a recording.
            _ => {
                self.refused.store(true, Ordering::Relaxed);
                Ok(None)
            }
        }
    }

    fn issue_recorded(&self, program: &Program, common: &Common<'_>) -> Result<(), Ended> {
        let devices = common.devices;
        let signal = |(device, queue): Queue| Ok((device, devices[device].signal(queue)?));
        let wait = |(device, queue): Queue, (other, event): (usize, EventId)| {
            if device == other {
                devices[device].wait(queue, event)
            } else {
                devices[device].wait_for_peer(queue, &*devices[other], event)
            }
        };
        let (origin, others) = (self.queues[0], &self.queues[1..]);
        let start = signal(origin).map_err(Ended::Failed)?;
        others.iter().try_for_each(|&other| wait(other, start)).map_err(Ended::Failed)?;
        Batch::new(program, &self.script, &program.plan.ops, common, 0, self.runs).issue()?;
        others.iter().try_for_each(|&other| wait(origin, signal(other)?)).map_err(Ended::Failed)
    }

    fn key(&self, common: &Common<'_>) -> Key {
        let buffers = |slot: &Slot| common.fields[slot.field.0 as usize].buffers(slot.role).to_vec();
        let scalars = self.scalars.iter().map(|&scalar| common.scalars[scalar].load(Ordering::Relaxed));
        (self.slots.iter().map(buffers).collect(), scalars.collect())
    }

    fn kept(&self, key: &Key) -> Option<RecordingId> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|&(_, recording)| recording)
    }

    fn keep(&self, key: Key, recording: RecordingId, common: &Common<'_>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MOST_KEPT {
            let (_, oldest) = kept.remove(0);
            common.devices[self.queues[0].0].forget(oldest);
        }
        kept.push((key, recording));
    }
}

/// The slots that an action uses.
fn slots(action: &Action) -> Vec<Slot> {
    match action {
        Action::Launch { outputs, fields, .. } => outputs.iter().chain(fields).copied().collect(),
        Action::Copy { from, to, .. } => vec![*from, *to],
        Action::Send { slot, .. } => vec![*slot],
        Action::Download { from, .. } => vec![*from],
        Action::Upload { to, .. } => vec![*to],
        Action::Barrier
        | Action::Fold { .. }
        | Action::Compute { .. }
        | Action::Probe { .. }
        | Action::Record { .. } => Vec::new(),
    }
}

/// The scalars that launches are given.
fn scalars(plan: &Plan) -> BTreeSet<usize> {
    let operands = plan.ops.iter().flat_map(|op| match &op.action {
        Action::Launch { scalars, .. } => scalars.as_slice(),
        _ => &[],
    });
    let scalar = |operand: &Operand| match operand {
        Operand::Scalar(scalar) => Some(scalar.0 as usize),
        Operand::Bits(_) => None,
    };
    operands.filter_map(scalar).collect()
}
