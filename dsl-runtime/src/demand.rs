//! Which planes devices must get from each other, and after which operation: pure analysis of the plan of one device.
//!
//! The plan is followed for as many steps as its buffers need to come back to where they were. For each device and buffer
//! the halo planes with current values are known; a read of another plane asks for a transfer, which belongs to
//! the operation that wrote the plane last, or, if no operation did, to the start of the run. So every plane travels once for
//! each write, and only if a later stage reads it.

use std::collections::{BTreeMap, BTreeSet};

use crate::boundary;
use crate::partition::Split;
use crate::plan::{Action, FieldId, Op, Plan, Purpose, Slot};
use crate::runs::{Run, Runs, common, hull, is_empty};
use crate::shape::Shape;

/// Planes of a field that one device gets from another: all their cells, without ghost cells along X and Y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transfer {
    /// The slot.
    pub slot: Slot,
    /// The device that owns them.
    pub from: usize,
    /// The device that needs them.
    pub to: usize,
    /// Which, in global coordinates.
    pub planes: Run,
    /// How far from there their copies lie, along Z: not 0 beyond a face.
    pub moved: i64,
}

/// What a plan demands of each device when a grid is split.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// What is transferred before the first step.
    pub before: BTreeSet<Transfer>,
    /// What is transferred after each operation of a step.
    pub after: Vec<BTreeSet<Transfer>>,
    /// What is transferred ahead of each operation of a step.
    pub ahead: Vec<BTreeSet<Transfer>>,
    /// For each operation of [`Plan::before`] that fills planes beyond a face of Z, the planes that each device fills.
    pub fills_before: Vec<BTreeMap<usize, Runs>>,
    /// The same for the operations of a step.
    pub fills: Vec<BTreeMap<usize, Runs>>,
    /// For each device the planes of each field that it stores.
    pub stored: Vec<BTreeMap<FieldId, Run>>,
    /// For each device the planes beyond the faces of Z that are copies of another device's.
    pub wrapped: Vec<BTreeMap<FieldId, Runs>>,
}

/// The steps after which all slots have the buffers that they had.
pub(crate) fn period(rotation: &[(Slot, Slot)]) -> usize {
    /// Longer cycles than this are followed for so many steps only: each is a set of fields that are swapped around.
    const MOST: usize = 12;
    let next: BTreeMap<Slot, Slot> = rotation.iter().copied().collect();
    let mut period = 1;
    for &start in next.keys() {
        let (mut slot, mut length) = (start, 0);
        loop {
            slot = next.get(&slot).copied().unwrap_or(slot);
            length += 1;
            if slot == start || length > MOST {
                break;
            }
        }
        period = lcm(period, length).min(MOST);
    }
    period
}

fn lcm(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// The buffers that slots have after one more step.
pub(crate) fn rotate(buffers: &mut BTreeMap<Slot, Slot>, rotation: &[(Slot, Slot)]) {
    let moved: Vec<_> = rotation.iter().map(|(to, from)| (*to, buffer_in(buffers, *from))).collect();
    buffers.extend(moved);
}

/// The buffer in a slot, by the slot in which it was at first.
pub(crate) fn buffer_in(buffers: &BTreeMap<Slot, Slot>, slot: Slot) -> Slot {
    buffers.get(&slot).copied().unwrap_or(slot)
}

/// What the plan of a step demands.
pub fn demands(plan: &Plan, shapes: &[Shape], split: &Split) -> Demands {
    let mut analysis = Analysis {
        plan,
        shapes,
        split,
        buffers: BTreeMap::new(),
        known: BTreeMap::new(),
        found: Demands {
            before: BTreeSet::new(),
            after: vec![BTreeSet::new(); plan.ops.len()],
            ahead: vec![BTreeSet::new(); plan.ops.len()],
            fills_before: vec![BTreeMap::new(); plan.before.len()],
            fills: vec![BTreeMap::new(); plan.ops.len()],
            stored: owned_by_each(shapes, split),
            wrapped: vec![BTreeMap::new(); split.parts()],
        },
    };
    for number in 0..plan.before.len() {
        analysis.follow(&plan.before[number], Place::Before(number));
    }
    for _ in 0..=period(&plan.rotation) {
        for number in 0..plan.ops.len() {
            // All boxes of a stage read what was there before it, also where they are written in place.
            if number == 0 || !are_one_stage(&plan.ops[number - 1], &plan.ops[number]) {
                let first = &plan.ops[number];
                let stage = plan.ops[number..].iter().take_while(|op| are_one_stage(first, op));
                stage.for_each(|op| analysis.read(op));
            }
            analysis.follow(&plan.ops[number], Place::Step(number));
        }
        rotate(&mut analysis.buffers, &plan.rotation);
    }
    analysis.found
}

/// For each device the planes of each field that it owns; fields without an axis along Z are left out.
pub(crate) fn owned_by_each(shapes: &[Shape], split: &Split) -> Vec<BTreeMap<FieldId, Run>> {
    let along_z = || shapes.iter().enumerate().filter(|(_, shape)| shape.axes[2]);
    let owned = |device| along_z().map(move |(number, shape)| (FieldId(number as u32), split.owned(device, shape)));
    (0..split.parts()).map(|device| owned(device).collect()).collect()
}

/// How planes beyond a face of Z are filled.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    pub(crate) slot: Slot,
    pub(crate) planes: Run,
    /// How far from there the values are; `None` when they are always the same.
    pub(crate) source: Option<i64>,
    /// Whether the values are taken over as they are.
    pub(crate) copied: bool,
}

impl Filling {
    /// That of an operation, if it fills such planes.
    pub(crate) fn of(op: &Op, plan: &Plan, shapes: &[Shape]) -> Option<Self> {
        let Action::Launch { kernel, outputs, range, shift, purpose: Purpose::Boundary, .. } = &op.action else {
            return None;
        };
        let (slot, planes, kernel) = (outputs[0], range.planes(), plan.kernels[*kernel]);
        let inside = (0, shapes[slot.field.0 as usize].cells[2] as i64);
        let source = (!kernel.fields.is_empty()).then_some(shift[2]);
        is_empty(common(planes, inside)).then(|| Self { slot, planes, source, copied: boundary::is_copy(kernel) })
    }
}

/// The first of the operations in a row, up to number `last`, that fill ghost cells of a slot.
pub(crate) fn first_fill(ops: &[Op], last: usize, slot: Slot) -> usize {
    let fills = |op: &Op| match &op.action {
        Action::Launch { outputs, purpose: Purpose::Boundary, .. } => outputs[0] == slot,
        _ => false,
    };
    last - ops[..last].iter().rev().take_while(|op| fills(op)).count()
}

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Before(usize),
    Step(usize),
}

struct Analysis<'a> {
    plan: &'a Plan,
    shapes: &'a [Shape],
    split: &'a Split,
    /// The buffer in each slot.
    buffers: BTreeMap<Slot, Slot>,
    known: BTreeMap<Slot, Known>,
    found: Demands,
}

/// What is known of a buffer.
#[derive(Default)]
struct Known {
    /// For each device the planes that it doesn't own and has.
    has: BTreeMap<usize, Runs>,
    /// The operations that wrote planes, the latest last, and the slot in which the buffer was then.
    writers: Vec<(usize, Slot, Run)>,
    /// How the planes beyond faces are filled, and where.
    fills: Vec<(Place, Filling)>,
    /// Whether planes beyond faces were filled in two ways since the last write.
    refilled: bool,
}

/// Whether two operations are launches of one stage over different boxes.
fn are_one_stage(one: &Op, other: &Op) -> bool {
    let stage = |op: &Op| match &op.action {
        Action::Launch { kernel, fields, scalars, parity, purpose: Purpose::Update, .. } => {
            Some((*kernel, fields.clone(), scalars.clone(), *parity))
        }
        _ => None,
    };
    stage(one).is_some_and(|one| Some(one) == stage(other))
}

impl Analysis<'_> {
    /// What a launch of an update reads.
    fn read(&mut self, op: &Op) {
        let Action::Launch { kernel, fields, range, purpose: Purpose::Update, .. } = &op.action else { return };
        let kernel = self.plan.kernels[*kernel];
        for device in 0..self.split.parts() {
            let own = self.split.part(device, range);
            if own.is_empty() {
                continue;
            }
            for (parameter, slot) in kernel.fields.iter().zip(fields) {
                let read = parameter.footprint(&own);
                if parameter.axes[2] {
                    self.demand(device, *slot, read.planes());
                }
            }
        }
    }

    /// What an operation fills or writes.
    fn follow(&mut self, op: &Op, place: Place) {
        match &op.action {
            Action::Launch { outputs, range, purpose: Purpose::Update, .. } => {
                outputs.iter().for_each(|slot| self.write(*slot, range.planes(), place));
            }
            Action::Launch { purpose: Purpose::Boundary, .. } => {
                let Some(filling) = Filling::of(op, self.plan, self.shapes) else { return };
                let Filling { slot, planes, .. } = filling;
                let known = self.known(slot);
                // A swap may have put the buffer behind other faces: what was there is replaced.
                known.has.values_mut().for_each(|has| has.remove(planes));
                known.refilled |=
                    known.fills.iter().any(|(at, other)| *at != place && !is_empty(common(other.planes, planes)));
                known.fills.retain(|(_, other)| other.planes != planes);
                known.fills.push((place, filling));
            }
            Action::Launch { outputs, range, purpose: Purpose::Source | Purpose::Poison, .. } => {
                outputs.iter().for_each(|slot| self.write(*slot, range.planes(), place));
            }
            Action::Copy { to, part, .. } => self.write(*to, part.planes(), place),
            Action::Send { .. }
            | Action::Download { .. }
            | Action::Upload { .. }
            | Action::Barrier
            | Action::Fold { .. }
            | Action::Compute { .. }
            | Action::Probe { .. }
            | Action::Record { .. } => {}
        }
    }

    fn known(&mut self, slot: Slot) -> &mut Known {
        self.known.entry(buffer_in(&self.buffers, slot)).or_default()
    }

    fn write(&mut self, slot: Slot, planes: Run, place: Place) {
        let nz = self.shapes[slot.field.0 as usize].cells[2] as i64;
        let known = self.known(slot);
        for has in known.has.values_mut() {
            has.remove(planes);
            has.remove((i64::MIN, 0));
            has.remove((nz, i64::MAX));
        }
        known.fills.clear();
        known.refilled = false;
        if let Place::Step(op) = place {
            // What one operation writes is known by its last time.
            known.writers.retain(|writer| writer.0 != op || writer.2 != planes);
            known.writers.push((op, slot, planes));
        }
    }

    /// A device reads planes of a slot.
    fn demand(&mut self, device: usize, slot: Slot, planes: Run) {
        let shape = &self.shapes[slot.field.0 as usize];
        let (nz, owned) = (shape.cells[2] as i64, self.split.owned(device, shape));
        let stored = self.found.stored[device].entry(slot.field).or_insert(owned);
        *stored = hull(*stored, planes);
        let mut has = self.known(slot).has.get(&device).cloned().unwrap_or_default();
        has.add(owned);
        let missing = has.missing_of(planes);
        if missing.is_empty() {
            return;
        }
        // Before anything else, so that planes that mirror each other ask once.
        let known = self.known(slot).has.entry(device).or_default();
        missing.iter().for_each(|&run| known.add(run));
        for run in missing {
            self.transfer(device, slot, common(run, (0, nz)), 0);
            let beyond = [common(run, (i64::MIN, 0)), common(run, (nz, i64::MAX))];
            beyond.into_iter().filter(|&run| !is_empty(run)).for_each(|run| self.demand_beyond(device, slot, run));
        }
    }

    /// A device reads planes beyond a face: copies of another device's, or filled by itself.
    fn demand_beyond(&mut self, device: usize, slot: Slot, run: Run) {
        let owned = self.split.owned(device, &self.shapes[slot.field.0 as usize]);
        for (at, filling) in self.known(slot).fills.clone() {
            let planes = common(run, filling.planes);
            if is_empty(planes) {
                continue;
            }
            let own = match filling.source {
                Some(shift) if filling.copied => {
                    let source = (planes.0 + shift, planes.1 + shift);
                    let own = common(source, owned);
                    for part in Runs::from(own).missing_of(source) {
                        self.wrap(device, slot, part, -shift, at);
                        let wrapped = self.found.wrapped[device].entry(slot.field).or_default();
                        wrapped.add((part.0 - shift, part.1 - shift));
                    }
                    (own.0 - shift, own.1 - shift)
                }
                Some(shift) => {
                    self.demand(device, slot, (planes.0 + shift, planes.1 + shift));
                    planes
                }
                None => planes,
            };
            if !is_empty(own) {
                let fills = match at {
                    Place::Before(op) => &mut self.found.fills_before[op],
                    Place::Step(op) => &mut self.found.fills[op],
                };
                fills.entry(device).or_default().add(own);
            }
        }
    }

    /// Planes beyond a face that are copies of another device's: as all transfers, unless they were filled otherwise since;
    /// then ahead of the operations that fill the ghost cells of the slot anew.
    fn wrap(&mut self, to: usize, slot: Slot, planes: Run, moved: i64, filled: Place) {
        match filled {
            Place::Step(op) if self.known(slot).refilled => {
                let first = first_fill(&self.plan.ops, op, slot);
                let shape = &self.shapes[slot.field.0 as usize];
                for from in (0..self.split.parts()).filter(|&from| from != to) {
                    let planes = common(planes, self.split.owned(from, shape));
                    if !is_empty(planes) {
                        self.found.ahead[first].insert(Transfer { slot, from, to, planes, moved });
                    }
                }
            }
            Place::Step(_) | Place::Before(_) => self.transfer(to, slot, planes, moved),
        }
    }

    /// Planes that other devices own come to `to`, after their last writers.
    fn transfer(&mut self, to: usize, slot: Slot, planes: Run, moved: i64) {
        let shape = &self.shapes[slot.field.0 as usize];
        for from in (0..self.split.parts()).filter(|&from| from != to) {
            let mut rest = Runs::from(common(planes, self.split.owned(from, shape)));
            let buffer = buffer_in(&self.buffers, slot);
            let writers = self.known.get(&buffer).map_or(&[][..], |known| &known.writers);
            for &(op, slot, written) in writers.iter().rev() {
                for planes in rest.common(written).collect::<Vec<_>>() {
                    self.found.after[op].insert(Transfer { slot, from, to, planes, moved });
                }
                rest.remove(written);
            }
            let initial = rest.runs().iter().map(|&planes| Transfer { slot: buffer, from, to, planes, moved });
            self.found.before.extend(initial);
        }
    }
}
