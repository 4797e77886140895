//! Runs plans: the only code that turns operations into calls of devices.
//!
//! A [`Program`] is a plan made ready. `script` has who issues what after which waits, `lanes` the threads that do so,
//! `progress` how they wait for each other, `action` what a single operation is, `rotation` which buffer is in which slot
//! in which run, `recorder` how devices repeat runs by themselves, `trace` what was run when.

mod action;
mod caller;
mod lanes;
mod memory;
mod progress;
mod recorder;
mod rotation;
mod script;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::{Device, KernelId, QueueId, Staging};
use crate::error::{Error, Result};
use crate::plan::{Action, Op, Plan};
use crate::scalar::Function;
use action::Failure;
pub(crate) use caller::this_thread;
use lanes::{Batch, Ended};
pub(crate) use memory::{Memory, allocate};
use recorder::Recorder;
use rotation::Rotation;
use script::{Queue, Script};
use trace::Note;
pub(crate) use trace::{Trace, Tracing};

/// What a step works on.
pub(crate) struct World<'a> {
    pub(crate) devices: &'a [Box<dyn Device>],
    pub(crate) fields: &'a mut [Memory],
    /// The bits of the scalars.
    pub(crate) scalars: &'a mut [u64],
    /// What each record holds so far.
    pub(crate) records: &'a mut [Vec<u64>],
    /// How often the step was run before.
    pub(crate) number: u64,
    /// The steps of the simulation that are finished.
    pub(crate) steps: u64,
    pub(crate) trace: Option<Tracing<'a>>,
}

/// Who issues the operations of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Issue {
    /// A thread for each lane.
    Lanes,
    /// The calling thread, in the order of the plan.
    InOrder,
}

/// A plan made ready for the devices of a simulation.
pub(crate) struct Program {
    pub(crate) plan: Plan,
    /// The functions of scalars.
    functions: Vec<Function>,
    /// The id of each kernel of the plan on each device.
    kernels: Vec<Vec<KernelId>>,
    /// The global index of each device's local cell (0, 0, 0).
    origins: Vec<[i32; 3]>,
    stagings: Vec<Arc<Staging>>,
    rotation: Rotation,
    /// What is done once, before the first run.
    first: Script,
    each: Script,
    /// Where devices may record runs.
    recorder: Option<Recorder>,
}

/// How often each of these programs runs to do some steps: the first as often as it can, the next what is left, and so on.
pub(crate) fn shared_out(programs: &[Program], steps: u64) -> impl Iterator<Item = (&Program, u64)> {
    programs.iter().scan(steps, |left, program| {
        let each = program.plan.steps;
        let runs = *left / each;
        *left %= each;
        Some((program, runs))
    })
}

/// What all threads of a batch work on.
struct Common<'a> {
    devices: &'a [Box<dyn Device>],
    fields: &'a [Memory],
    scalars: Vec<AtomicU64>,
    records: Vec<Mutex<Vec<u64>>>,
    number: u64,
    steps: u64,
    trace: Option<Tracing<'a>>,
}

impl Common<'_> {
    /// The first step of a run, counted from 1 in the life of the simulation.
    fn step(&self, plan: &Plan, run: u64) -> u64 {
        self.steps + run * plan.steps + 1
    }
}

impl Program {
    /// Loads the kernels of a plan and allocates its staging memory; `origins` are the global indices of the devices'
    /// local cells (0, 0, 0).
    pub(crate) fn new(
        plan: Plan,
        functions: Vec<Function>,
        devices: &[Box<dyn Device>],
        origins: Vec<[i32; 3]>,
        issue: Issue,
    ) -> Result<Self> {
        check_reach(&plan, devices)?;
        let load = |&kernel: &&'static _| devices.iter().map(|device| device.load(kernel)).collect::<Result<Vec<_>>>();
        let kernels = plan.kernels.iter().map(load).collect::<Result<_>>()?;
        let stagings = plan.stagings.iter().map(|staging| devices[staging.device].staging(staging.bytes));
        let stagings = stagings.collect::<Result<_>>()?;
        let awaits = |device: usize, other: usize| devices[device].awaits(&*devices[other]);
        let first = Script::new(&plan.before, Issue::InOrder, awaits);
        let each = Script::new(&plan.ops, issue, awaits);
        let rotation = Rotation::new(&plan.rotation);
        Ok(Self { plan, functions, kernels, origins, stagings, rotation, first, each, recorder: None })
    }

    /// The same program, of which devices that can may record runs.
    pub(crate) fn recorded(self, devices: &[Box<dyn Device>]) -> Self {
        Self { recorder: Recorder::new(&self.plan, &self.rotation, devices), ..self }
    }

    /// The steps that devices have done by recordings so far.
    pub(crate) fn replayed(&self) -> u64 {
        self.recorder.as_ref().map_or(0, |recorder| recorder.replayed() * self.plan.steps)
    }

    /// Runs the plan `runs` times, after what it does before, waits for the end of it all, and turns the slots of the
    /// fields. After an error, or a panic of a closure, the devices are idle and the fields are undefined.
    pub(crate) fn run(&self, world: &mut World<'_>, runs: u64) -> Result<()> {
        if runs == 0 {
            return Ok(());
        }
        let common = Common {
            devices: world.devices,
            fields: world.fields,
            scalars: world.scalars.iter().map(|&bits| AtomicU64::new(bits)).collect(),
            records: world.records.iter_mut().map(|record| Mutex::new(std::mem::take(record))).collect(),
            number: world.number,
            steps: world.steps,
            trace: world.trace,
        };
        let result = self.issue(&common, runs);
        let finished = self.finish(&common, common.step(&self.plan, runs - 1));
        let kept = match result {
            Ok(notes) => finished.and_then(|()| self.keep(&common, notes)).map_err(Ended::Failed),
            Err(ended) => Err(ended),
        };
        let Common { scalars, records, .. } = common;
        for (kept, scalar) in world.scalars.iter_mut().zip(scalars) {
            *kept = scalar.into_inner();
        }
        for (kept, record) in world.records.iter_mut().zip(records) {
            *kept = record.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
        match kept {
            Ok(()) => {}
            Err(Ended::Failed(error)) => return Err(error),
            Err(Ended::Panicked(panic)) => resume_unwind(panic),
        }
        self.rotation.apply(world.fields, runs);
        Ok(())
    }

    /// Enqueues everything.
    fn issue(&self, common: &Common<'_>, runs: u64) -> Result<[Vec<Note>; 2], Ended> {
        let mut first = Vec::new();
        if !self.plan.before.is_empty() {
            first = Batch::new(self, &self.first, &self.plan.before, common, 0, 1).issue()?;
            // The operations of a run don't wait for it: they needn't in the same queue.
            let queues = self.queues();
            if queues.len() > 1 || queues.iter().any(|(_, queue)| *queue != QueueId::COMPUTE) {
                self.finish(common, common.step(&self.plan, 0)).map_err(Ended::Failed)?;
            }
        }
        if let (Some(recorder), None) = (&self.recorder, common.trace) {
            recorder.issue(self, common, runs)?;
            return Ok([first, Vec::new()]);
        }
        let each = Batch::new(self, &self.each, &self.plan.ops, common, 0, runs).issue()?;
        Ok([first, each])
    }

    /// Waits for all queues, even if one fails; the error is that of the first one.
    fn finish(&self, common: &Common<'_>, step: u64) -> Result<()> {
        let mut result = Ok(());
        for (device, queue) in self.queues() {
            let finished = common.devices[device].finish(queue);
            let finished = finished.map_err(|error| Failure::of(device, "finish")(error).in_step(common.devices, step));
            result = result.and(finished);
        }
        result
    }

    fn queues(&self) -> BTreeSet<Queue> {
        self.first.queues.iter().chain(&self.each.queues).copied().collect()
    }

    fn keep(&self, common: &Common<'_>, [first, each]: [Vec<Note>; 2]) -> Result<()> {
        let Some(tracing) = common.trace else { return Ok(()) };
        tracing.keep(self, &self.plan.before, common, first)?;
        tracing.keep(self, &self.plan.ops, common, each)
    }
}

/// An error if the plan sends where a device can't send to.
fn check_reach(plan: &Plan, devices: &[Box<dyn Device>]) -> Result<()> {
    let check = |op: &Op| {
        let Action::Send { to, .. } = op.action else { return Ok(()) };
        let (from, to) = (&devices[op.device], &devices[to]);
        let unreachable = |reason| Error::Unreachable { from: from.summary(), to: to.summary(), reason };
        from.reaches(&**to).map_err(unreachable)
    };
    plan.before.iter().chain(&plan.ops).try_for_each(check)
}
