//! What a plan will cost: its operations are followed in time, each as soon as its thread, its queue and its waits allow. The
//! numbers are rough - what kernels and copies move, over the bandwidth of a kind of device - and good enough to tell
//! strategies apart.

use std::collections::BTreeMap;

use crate::backend::{DeviceInfo, DeviceKind, QueueId};
use crate::plan::{Action, Lane, Op, Plan};
use crate::shape::Shape;

/// What a device is taken to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes that kernels move per second.
    pub memory: f64,
    /// Bytes per second between the device and host memory.
    pub host: f64,
    /// Bytes per second straight to another device.
    pub peer: f64,
    /// Seconds from issuing an operation to its start on an idle queue.
    pub latency: f64,
    /// Whether operations of different queues share the device one after the other.
    pub one_at_a_time: bool,
}

/// Seconds that a thread needs to issue an operation.
const ISSUE: f64 = 2e-6;

/// Seconds that threads need to meet.
const MEETING: f64 = 5e-6;

impl Rates {
    /// Those of a device; processors share the host's memory with `sharing` devices in all.
    pub fn of(info: &DeviceInfo, sharing: usize) -> Self {
        let sharing = sharing.max(1) as f64;
        match info.kind {
            DeviceKind::Cpu => Self {
                memory: 40e9 / sharing,
                host: 20e9 / sharing,
                peer: 20e9 / sharing,
                latency: 5e-6,
                one_at_a_time: true,
            },
            DeviceKind::Gpu => Self { memory: 1.5e12, host: 20e9, peer: 100e9, latency: 8e-6, one_at_a_time: false },
        }
    }
}

/// Seconds that a step of the plan takes when many are run.
pub fn seconds_per_step(plan: &Plan, shapes: &[Shape], rates: &[Rates]) -> f64 {
    const RUNS: usize = 4;
    let mut clock = Clock::default();
    let mut ends = Vec::new();
    for run in 0..RUNS {
        clock.run(plan, shapes, rates, run);
        ends.push(clock.latest);
    }
    // The first runs start on idle devices.
    (ends[RUNS - 1] - ends[0]) / (RUNS - 1) as f64 / plan.steps.max(1) as f64
}

#[derive(Default)]
struct Clock {
    /// When each operation of each run ends.
    ends: Vec<Vec<f64>>,
    queues: BTreeMap<(usize, QueueId), f64>,
    devices: BTreeMap<usize, f64>,
    lanes: BTreeMap<Lane, f64>,
    latest: f64,
}

impl Clock {
    fn run(&mut self, plan: &Plan, shapes: &[Shape], rates: &[Rates], run: usize) {
        self.ends.push(vec![0.0; plan.ops.len()]);
        let mut number = 0;
        while number < plan.ops.len() {
            let op = &plan.ops[number];
            if matches!(op.action, Action::Barrier) {
                let count = plan.ops[number..].iter().take_while(|op| matches!(op.action, Action::Barrier)).count();
                let all = self.latest + MEETING;
                for barrier in number..number + count {
                    self.ends[run][barrier] = all;
                    self.lanes.insert(plan.ops[barrier].lane, all);
                }
                self.latest = all;
                number += count;
                continue;
            }
            let end = self.end(plan, op, shapes, rates, run);
            self.ends[run][number] = end;
            self.latest = self.latest.max(end);
            number += 1;
        }
    }

    fn end(&mut self, plan: &Plan, op: &Op, shapes: &[Shape], rates: &[Rates], run: usize) -> f64 {
        let mut waits: f64 = op.after.iter().map(|after| self.ends[run][after.0]).fold(0.0, f64::max);
        for across in op.across.iter().filter(|across| across.runs <= run) {
            waits = waits.max(self.ends[run - across.runs][across.op.0]);
        }
        let lane = self.lanes.entry(op.lane).or_default();
        *lane += ISSUE;
        if op.action.is_on_host() {
            *lane = lane.max(waits) + ISSUE;
            return *lane;
        }
        let rates = rates[op.device];
        let mut start = (*lane + rates.latency).max(waits);
        let queue = self.queues.entry((op.device, op.queue)).or_default();
        start = start.max(*queue);
        let device = self.devices.entry(op.device).or_default();
        if rates.one_at_a_time {
            start = start.max(*device);
        }
        let end = start + seconds(plan, op, shapes, rates);
        *queue = end;
        *device = device.max(end);
        end
    }
}

/// Seconds that an operation takes once it has started.
fn seconds(plan: &Plan, op: &Op, shapes: &[Shape], rates: Rates) -> f64 {
    let cell = |slot: &crate::plan::Slot| shapes[slot.field.0 as usize].ty.bytes() as f64;
    match &op.action {
        Action::Launch { kernel, range, parity, .. } => {
            let bytes = range.points_of(*parity) as f64 * f64::from(plan.kernels[*kernel].bytes);
            bytes / rates.memory
        }
        Action::Copy { from, part, .. } => 2.0 * part.points() as f64 * cell(from) / rates.memory,
        Action::Send { slot, part, .. } => part.points() as f64 * cell(slot) / rates.peer,
        Action::Download { from, part, .. } => part.points() as f64 * cell(from) / rates.host,
        Action::Upload { to, part, .. } => part.points() as f64 * cell(to) / rates.host,
        Action::Barrier
        | Action::Fold { .. }
        | Action::Compute { .. }
        | Action::Probe { .. }
        | Action::Record { .. } => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::Faces;
    use crate::distribute::{Setting, distribute};
    use crate::exchange::Exchange;
    use crate::geometry::Extent;
    use crate::kernel::ScalarType;
    use crate::partition::{Split, partition};
    use crate::plan::FieldId;
    use crate::schedule::{self, Output, Stage, Update};
    use crate::testing::HEAT;

    const GPU: Rates = Rates { memory: 1.5e12, host: 20e9, peer: 100e9, latency: 8e-6, one_at_a_time: false };

    /// Seconds of a heat step on a cube.
    fn price(exchange: Exchange, devices: usize, n: usize, rates: Rates) -> f64 {
        let [u, f, kappa] = [0, 1, 2].map(FieldId);
        let shape =
            Shape { name: "u".into(), ty: ScalarType::F64, axes: [true; 3], cells: [n; 3], faces: Faces::default() };
        let shapes = vec![shape; 3];
        let mut inner = shapes[0].whole();
        (inner.lo, inner.hi) = ([1; 3], [n as i64 - 1; 3]);
        let stage = Stage::Update(Update {
            kernel: &HEAT,
            fields: vec![u, f, kappa],
            scalars: vec![crate::plan::Operand::Bits(0)],
            outputs: vec![Output::Field(u)],
            boxes: vec![inner],
            parity: None,
        });
        let ghosts = schedule::ghosts(std::slice::from_ref(&stage), &shapes).unwrap();
        let plan = schedule::plan(&[stage], &shapes, &ghosts);
        let split = Split::of(&partition(Extent::new([n; 3]).unwrap(), &vec![1.0; devices]).unwrap());
        let recipe = exchange.recipe().unwrap();
        let setting = Setting { shapes: &shapes, split: &split, recipe, reaches: &|_, _| true, poisons: false };
        seconds_per_step(&distribute(plan, &setting).plan, &shapes, &vec![rates; devices])
    }

    #[test]
    fn one_device_takes_the_time_of_its_memory() {
        let expected = 32.0 * 510.0_f64.powi(3) / GPU.memory;
        for exchange in Exchange::ONE_STEP {
            let found = price(exchange, 1, 512, GPU);
            assert!((found / expected - 1.0).abs() < 0.02, "{exchange}: {found} {expected}");
        }
    }

    #[test]
    fn overlap_and_direct_copies_are_cheaper_where_halos_are_dear() {
        let price = |exchange| price(exchange, 4, 512, GPU);
        let all = [Exchange::Synchronous, Exchange::Streamed, Exchange::PeerToPeer].map(price);
        assert!(all.is_sorted_by(|dear, cheap| dear > cheap), "{all:?}");
        assert!(price(Exchange::Neighbour) <= price(Exchange::PeerToPeer));
    }

    #[test]
    fn more_devices_are_faster_on_large_grids_and_slower_on_tiny_ones() {
        let price = |devices, n| price(Exchange::PeerToPeer, devices, n, GPU);
        assert!(price(4, 512) < 0.4 * price(1, 512));
        assert!(price(4, 8) > price(1, 8));
    }

    #[test]
    fn exchanging_seldom_pays_where_starting_a_copy_is_dear() {
        let slow = Rates { latency: 1e-3, ..GPU };
        assert!(price(Exchange::Deep(4), 4, 64, slow) < price(Exchange::Neighbour, 4, 64, slow));
    }
}
