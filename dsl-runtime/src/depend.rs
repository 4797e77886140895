//! Which operations of a plan must wait for which: whatever touches the same cells, numbers or memory and isn't in order
//! already. Only what the order of queues and threads and the other waits don't imply is kept, so that none of them can be left
//! out.

use std::collections::BTreeMap;

use crate::backend::QueueId;
use crate::demand::{buffer_in, period, rotate};
use crate::geometry::Box3;
use crate::kernel::{FieldDesc, Read};
use crate::layout::{ROWS, WHOLE, along};
use crate::plan::{Across, Action, Lane, Op, OpId, Operand, Plan, ScalarId, Slot, StagingId};

/// What an operation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    /// A buffer of a device.
    Buffer(usize, Slot),
    Scalar(ScalarId),
    Record(usize),
    Staging(StagingId),
}

#[derive(Clone, Copy, Debug)]
struct Access {
    thing: Thing,
    part: Box3,
    /// Only cells whose global indices add up to an even (0) or an odd (1) number, or all.
    parity: Option<u8>,
    writes: bool,
}

/// Where a thing has no cells.
const ALL: Box3 = Box3 { lo: [0; 3], hi: [1; 3] };

/// Finds the waits of all operations of a plan, anew.
pub fn order(plan: &mut Plan) {
    for op in plan.before.iter_mut().chain(&mut plan.ops) {
        op.after.clear();
        op.across.clear();
    }
    let mut ready = Order::default();
    for number in 0..plan.before.len() {
        let after = ready.next(plan, &plan.before[number], (0, number));
        plan.before[number].after = after.into_iter().map(|(_, op)| OpId(op)).collect();
    }
    // One queue is in order anyway, from one run to the next too.
    let alone = |op: &Op| match &op.action {
        Action::Compute { .. } | Action::Record { .. } | Action::Barrier => true,
        Action::Fold { .. } | Action::Probe { .. } => false,
        _ => op.device == 0 && op.queue == QueueId::COMPUTE,
    };
    let ends_together = plan.ops.last().is_none_or(|op| matches!(op.action, Action::Barrier));
    let runs = if plan.ops.iter().all(alone) || ends_together { 1 } else { period(&plan.rotation) + 1 };
    let mut ready = Order::default();
    for run in 0..runs {
        for number in 0..plan.ops.len() {
            let found = ready.next(plan, &plan.ops[number], (run, number));
            if run + 1 == runs {
                let op = &mut plan.ops[number];
                for (before, number) in found {
                    if before == run {
                        op.after.push(OpId(number));
                    } else {
                        op.across.push(Across { runs: run - before, op: OpId(number) });
                    }
                }
            }
        }
        rotate(&mut ready.buffers, &plan.rotation);
    }
}

/// A set of operations by their numbers.
#[derive(Clone, Debug, Default)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn holds(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn insert_all(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }
}

/// What came before, as operations are added one after the other.
#[derive(Default)]
struct Order {
    /// The buffer in each slot.
    buffers: BTreeMap<Slot, Slot>,
    /// Run and number of each operation so far.
    names: Vec<(usize, usize)>,
    /// What is finished when an operation is, itself included.
    finished: Vec<Set>,
    /// The lane on which each was issued, and whether the lane did it itself.
    lanes: Vec<(Lane, bool)>,
    /// Who touched what; what a later one implies is left out.
    touched: BTreeMap<Thing, Vec<(usize, Access)>>,
    last_in_queue: BTreeMap<(usize, QueueId), usize>,
    last_of_host: BTreeMap<Lane, usize>,
    /// What each thread knows to be finished, since it has waited for what another one did itself.
    seen: BTreeMap<Lane, Set>,
    /// All before this one are finished: the threads have met.
    met: usize,
}

impl Order {
    /// Adds an operation and gives those that it must wait for.
    fn next(&mut self, plan: &Plan, op: &Op, name: (usize, usize)) -> Vec<(usize, usize)> {
        let number = self.names.len();
        let on_host = op.action.is_on_host();
        let follows = if on_host { None } else { self.last_in_queue.get(&(op.device, op.queue)) };
        let mut known = Set::default();
        for &before in follows.into_iter().chain(self.last_of_host.get(&op.lane)) {
            known.insert_all(&self.finished[before]);
        }
        let accesses = accesses(plan, op, &self.buffers);
        let mut waits = Vec::new();
        for &before in self.conflicts(&accesses).iter().rev() {
            if before >= self.met && !known.holds(before) {
                waits.push(self.names[before]);
                known.insert_all(&self.finished[before]);
                if self.lanes[before].1 {
                    self.seen.entry(op.lane).or_default().insert_all(&self.finished[before]);
                }
            }
        }
        // Numbers are taken when a launch is issued: what its queue waits for later comes too late for them.
        for before in self.writers_of_scalars(&accesses) {
            let seen = self.seen.entry(op.lane).or_default();
            if before >= self.met && !seen.holds(before) && self.lanes[before].0 != op.lane {
                waits.push(self.names[before]);
                seen.insert_all(&self.finished[before]);
                known.insert_all(&self.finished[before]);
            }
        }
        for before in self.only_issued(&accesses) {
            let is_issued = before < self.met || known.holds(before) || self.lanes[before].0 == op.lane;
            if !is_issued {
                waits.push(self.names[before]);
            }
        }
        waits.sort_unstable();
        waits.dedup();
        known.insert(number);
        self.touch(number, &accesses, &known);
        self.names.push(name);
        self.finished.push(known);
        self.lanes.push((op.lane, on_host));
        if matches!(op.action, Action::Barrier) {
            self.met = number;
        } else if on_host {
            self.last_of_host.insert(op.lane, number);
        } else {
            self.last_in_queue.insert((op.device, op.queue), number);
        }
        waits
    }

    /// The operations that must be finished before one that touches these things, in their order.
    fn conflicts(&self, accesses: &[Access]) -> Vec<usize> {
        let mut found = Vec::new();
        for access in accesses {
            let touched = self.touched.get(&access.thing).into_iter().flatten();
            found.extend(touched.filter(|(before, other)| self.is_conflict(*before, other, access)).map(|(op, _)| *op));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn is_conflict(&self, before: usize, other: &Access, access: &Access) -> bool {
        let apart = other.parity.is_some() && access.parity.is_some() && other.parity != access.parity;
        let meets = (other.writes || access.writes) && !other.part.intersection(&access.part).is_empty();
        meets && !apart && !self.is_captured(before, other)
    }

    /// Whether the access is that of a launch to a scalar: the number is taken when the launch is issued.
    fn is_captured(&self, before: usize, other: &Access) -> bool {
        matches!(other.thing, Thing::Scalar(_)) && !other.writes && !self.lanes[before].1
    }

    /// Who wrote the scalars that are read.
    fn writers_of_scalars(&self, accesses: &[Access]) -> Vec<usize> {
        let read = accesses.iter().filter(|access| !access.writes && matches!(access.thing, Thing::Scalar(_)));
        let touched = read.flat_map(|access| self.touched.get(&access.thing).into_iter().flatten());
        touched.filter(|(_, other)| other.writes).map(|(before, _)| *before).collect()
    }

    /// The launches that must have been issued before scalars are written.
    fn only_issued(&self, accesses: &[Access]) -> Vec<usize> {
        let written = accesses.iter().filter(|access| access.writes && matches!(access.thing, Thing::Scalar(_)));
        let touched = written.flat_map(|access| self.touched.get(&access.thing).into_iter().flatten());
        touched.filter(|(before, other)| self.is_captured(*before, other)).map(|(before, _)| *before).collect()
    }

    fn touch(&mut self, number: usize, accesses: &[Access], finished: &Set) {
        for access in accesses {
            let met = self.met;
            let touched = self.touched.entry(access.thing).or_default();
            // What must wait for them must wait for this one, too.
            touched.retain(|(before, other)| {
                let covers = access.parity.is_none() || access.parity == other.parity;
                let hidden = access.writes && covers && access.part.contains(&other.part);
                let is_over = *before < met || finished.holds(*before) || matches!(other.thing, Thing::Scalar(_));
                !(hidden && is_over)
            });
            touched.push((number, *access));
        }
    }
}

/// The cells that a kernel reads of a field while it updates a range, all or only those at offsets that add up to an even or
/// an odd number.
fn reads(parameter: &FieldDesc, odd: Option<u8>, range: &Box3) -> Box3 {
    let of_kind = |read: &&Read| {
        let sum: i64 = read.offset.into_iter().map(i64::from).sum();
        odd.is_none_or(|odd| sum.rem_euclid(2) == i64::from(odd))
    };
    let cells = parameter.reads.iter().filter(of_kind).map(|read| range.shifted(read.offset.map(i64::from)));
    cells.fold(Box3::EMPTY, |all, cells| all.hull(&cells))
}

/// What an operation touches, in the coordinates of its devices.
fn accesses(plan: &Plan, op: &Op, buffers: &BTreeMap<Slot, Slot>) -> Vec<Access> {
    let buffer = |device: usize, slot: Slot| Thing::Buffer(device, buffer_in(buffers, slot));
    let cells = |device, slot, part, writes| Access { thing: buffer(device, slot), part, parity: None, writes };
    let whole = |thing, writes| Access { thing, part: ALL, parity: None, writes };
    match &op.action {
        Action::Launch { kernel, outputs, fields, scalars, range, parity, shift, .. } => {
            let kernel = plan.kernels[*kernel];
            let mut all = Vec::new();
            for (parameter, slot) in kernel.fields.iter().zip(fields) {
                // Points of one colour read those of their own and those of the other one apart.
                let colours =
                    if parity.is_some() && parameter.axes == WHOLE { &[Some(0), Some(1)][..] } else { &[None] };
                for &odd in colours {
                    let read = reads(parameter, odd, range);
                    if !read.is_empty() {
                        let part = along(parameter.axes, &read.shifted(*shift));
                        let parity = odd.zip(*parity).map(|(odd, parity)| (odd + parity) % 2);
                        all.push(Access { parity, ..cells(op.device, *slot, part, false) });
                    }
                }
            }
            for (output, slot) in kernel.outputs.iter().zip(outputs) {
                let parity = parity.filter(|_| output.axes() == WHOLE);
                all.push(Access { parity, ..cells(op.device, *slot, along(output.axes(), range), true) });
            }
            all.extend(scalars.iter().filter_map(|scalar| match scalar {
                Operand::Scalar(scalar) => Some(whole(Thing::Scalar(*scalar), false)),
                Operand::Bits(_) => None,
            }));
            all
        }
        Action::Send { slot, part, to, into } => {
            vec![cells(op.device, *slot, *part, false), cells(*to, *slot, *into, true)]
        }
        Action::Download { from, part, to } => {
            vec![cells(op.device, *from, *part, false), whole(Thing::Staging(*to), true)]
        }
        Action::Upload { from, to, part } => {
            vec![whole(Thing::Staging(*from), false), cells(op.device, *to, *part, true)]
        }
        Action::Copy { from, to, part } => {
            vec![cells(op.device, *from, *part, false), cells(op.device, *to, *part, true)]
        }
        Action::Barrier => Vec::new(),
        Action::Fold { rows, into, .. } => {
            let rows = rows.iter().map(|rows| cells(rows.device, rows.slot, along(ROWS, &rows.cells), false));
            rows.chain([whole(Thing::Scalar(*into), true)]).collect()
        }
        Action::Compute { inputs, output, .. } => {
            let inputs = inputs.iter().map(|input| whole(Thing::Scalar(*input), false));
            inputs.chain([whole(Thing::Scalar(*output), true)]).collect()
        }
        Action::Probe { from, cells: points, record } => {
            let points = points
                .iter()
                .map(|&(device, cell)| cells(device, *from, Box3 { lo: cell, hi: cell.map(|index| index + 1) }, false));
            points.chain([whole(Thing::Record(*record), true)]).collect()
        }
        Action::Record { from, record } => {
            vec![whole(Thing::Scalar(*from), false), whole(Thing::Record(*record), true)]
        }
    }
}
