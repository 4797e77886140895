//! From the stages of a step to its plan: which buffer each stage reads and writes, and what must be copied so that
//! points outside a stage's range keep their values.
//!
//! A stage writes in place when its kernel doesn't take the field that it writes; otherwise it writes into the spare
//! buffer of the field, and the two buffers change places. After a change the spare buffer holds older values
//! wherever the stage wrote. A later double-buffered stage with another range would bring these back outside of its
//! range, so they are copied over before. Steps that repeat the same range copy nothing.

use std::collections::BTreeMap;

use crate::backend::QueueId;
use crate::geometry::Box3;
use crate::kernel::KernelDesc;
use crate::plan::{Action, FieldId, Flow, Lane, Op, OpId, Plan, Slot};

/// One update of a step.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The kernel.
    pub kernel: &'static KernelDesc,
    /// The fields that it takes.
    pub fields: Vec<FieldId>,
    /// The bits of the scalars.
    pub scalars: Vec<u64>,
    /// The fields that take its results; each occurs once.
    pub outputs: Vec<FieldId>,
    /// The points that are updated.
    pub range: Box3,
}

impl Stage {
    /// Whether the result for `field` needs a second buffer.
    fn is_double_buffered(&self, field: FieldId) -> bool {
        self.fields.contains(&field)
    }
}

/// The fields that need a second buffer for these stages.
pub fn double_buffered(stages: &[Stage]) -> Vec<FieldId> {
    let mut fields: Vec<_> = stages
        .iter()
        .flat_map(|stage| stage.outputs.iter().copied().filter(|&field| stage.is_double_buffered(field)))
        .collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// The plan of a step on one device.
pub fn plan(stages: &[Stage]) -> Plan {
    // What a step leaves different is what the next one finds, so a pass over the stages tells what the repeated step
    // may presume.
    let first = Pass::over(stages, BTreeMap::new());
    let found = first.differs.clone();
    let steady = Pass::over(stages, found.clone());
    let doubled = double_buffered(stages);
    let mut plan = steady.plan;
    plan.flows = (steady.differs.iter())
        .map(|(&field, &leaves)| {
            let presumes = doubled.contains(&field).then(|| found.get(&field).copied().unwrap_or(Box3::EMPTY));
            Flow { field, presumes, leaves }
        })
        .collect();
    for (&field, &swapped) in &steady.swapped {
        if swapped {
            plan.rotation.extend([(field.current(), field.spare()), (field.spare(), field.current())]);
        }
    }
    plan
}

/// One way through the stages.
#[derive(Default)]
struct Pass {
    plan: Plan,
    /// Fields whose values are in the slot that was spare when the step started.
    swapped: BTreeMap<FieldId, bool>,
    /// Where the two buffers of a field may differ.
    differs: BTreeMap<FieldId, Box3>,
    /// For each slot the last operation that wrote it and those that read it since.
    users: BTreeMap<Slot, (Option<OpId>, Vec<OpId>)>,
}

impl Pass {
    fn over(stages: &[Stage], differs: BTreeMap<FieldId, Box3>) -> Self {
        let mut pass = Self { differs, ..Self::default() };
        for stage in stages.iter().filter(|stage| !stage.range.is_empty()) {
            pass.stage(stage);
        }
        pass
    }

    fn stage(&mut self, stage: &Stage) {
        let (doubled, in_place): (Vec<_>, Vec<_>) =
            stage.outputs.iter().copied().partition(|&field| stage.is_double_buffered(field));
        for &field in &doubled {
            let differs = self.differs.get(&field).copied().unwrap_or(Box3::EMPTY);
            for part in differs.minus(&stage.range) {
                self.push(Action::Copy { from: self.values(field), to: self.room(field), part });
            }
        }
        let kernel = self.kernel(stage.kernel);
        let target = |&field: &FieldId| if doubled.contains(&field) { self.room(field) } else { self.values(field) };
        let action = Action::Launch {
            kernel,
            outputs: stage.outputs.iter().map(target).collect(),
            fields: stage.fields.iter().map(|&field| self.values(field)).collect(),
            scalars: stage.scalars.clone(),
            range: stage.range,
        };
        self.push(action);
        for field in doubled {
            *self.swapped.entry(field).or_default() ^= true;
            self.differs.insert(field, stage.range);
        }
        for field in in_place {
            let differs = self.differs.entry(field).or_insert(Box3::EMPTY);
            *differs = differs.hull(&stage.range);
        }
    }

    /// The slot with the field's values at this point of the step.
    fn values(&self, field: FieldId) -> Slot {
        if self.is_swapped(field) { field.spare() } else { field.current() }
    }

    /// The other slot.
    fn room(&self, field: FieldId) -> Slot {
        if self.is_swapped(field) { field.current() } else { field.spare() }
    }

    fn is_swapped(&self, field: FieldId) -> bool {
        self.swapped.get(&field).copied().unwrap_or(false)
    }

    fn kernel(&mut self, kernel: &'static KernelDesc) -> usize {
        let kernels = &mut self.plan.kernels;
        kernels.iter().position(|&other| std::ptr::eq(other, kernel)).unwrap_or_else(|| {
            kernels.push(kernel);
            kernels.len() - 1
        })
    }

    /// Adds an operation after those that it depends on.
    fn push(&mut self, action: Action) {
        let id = OpId(self.plan.ops.len());
        let mut after = Vec::new();
        for slot in action.reads() {
            let (writer, readers) = self.users.entry(*slot).or_default();
            after.extend(*writer);
            readers.push(id);
        }
        for slot in action.writes() {
            let (writer, readers) = self.users.entry(*slot).or_default();
            after.extend(*writer);
            after.append(readers);
            *writer = Some(id);
        }
        after.sort_unstable();
        after.dedup();
        after.retain(|&other| other != id);
        self.plan.ops.push(Op { action, device: 0, lane: Lane(0), queue: QueueId::COMPUTE, after });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AVERAGE, HEAT, noise};

    const U: FieldId = FieldId(0);
    const V: FieldId = FieldId(1);

    fn interval(lo: i64, hi: i64) -> Box3 {
        Box3 { lo: [lo, 0, 0], hi: [hi, 1, 1] }
    }

    /// A stage whose kernel is only a name.
    fn stage(fields: &[FieldId], output: FieldId, range: Box3) -> Stage {
        Stage { kernel: &AVERAGE, fields: fields.to_vec(), scalars: Vec::new(), outputs: vec![output], range }
    }

    #[test]
    fn a_repeated_update_is_one_launch_and_an_exchange_of_buffers() {
        let plan = plan(&[stage(&[U, V], U, interval(1, 9))]);
        assert_eq!(plan.ops.len(), 1);
        assert_eq!(plan.ops[0].action.writes(), [U.spare()]);
        assert_eq!(plan.rotation, [(U.current(), U.spare()), (U.spare(), U.current())]);
        let range = interval(1, 9);
        assert_eq!(plan.flows, [Flow { field: U, presumes: Some(range), leaves: range }]);
    }

    #[test]
    fn a_field_that_the_kernel_does_not_take_is_written_in_place() {
        let plan = plan(&[stage(&[V], U, interval(1, 9))]);
        assert_eq!(plan.ops[0].action.writes(), [U.current()]);
        assert!(plan.rotation.is_empty() && double_buffered(&[stage(&[V], U, interval(1, 9))]).is_empty());
    }

    #[test]
    fn two_updates_of_one_field_end_where_they_began() {
        let plan = plan(&[stage(&[U], U, interval(1, 9)), stage(&[U], U, interval(1, 9))]);
        assert_eq!(plan.ops.len(), 2);
        assert_eq!(plan.ops[1].action.reads(), [U.spare()]);
        assert_eq!(plan.ops[1].after, [OpId(0)]);
        assert!(plan.rotation.is_empty());
    }

    #[test]
    fn a_narrower_update_copies_what_the_wider_one_wrote_outside_of_it() {
        let plan = plan(&[stage(&[U], U, interval(1, 9)), stage(&[U], U, interval(3, 5))]);
        let copies: Vec<_> = plan.ops.iter().filter(|op| matches!(op.action, Action::Copy { .. })).collect();
        assert_eq!(copies.len(), 2);
        assert!(copies.iter().all(|op| op.action.writes() == [U.current()]));
    }

    #[test]
    fn an_empty_range_leaves_nothing_to_do() {
        let plan = plan(&[stage(&[U], U, Box3::EMPTY)]);
        assert!(plan.ops.is_empty() && plan.rotation.is_empty() && plan.flows.is_empty());
        assert_eq!((plan.points(), plan.bytes()), (0, 0));
    }

    #[test]
    fn points_and_bytes_are_those_of_the_launches() {
        let mut heat = stage(&[U, V], U, interval(1, 9));
        heat.kernel = &HEAT;
        let plan = plan(&[heat, stage(&[U], V, interval(0, 5))]);
        assert_eq!((plan.points(), plan.bytes()), (13, 8 * 32 + 5 * 8));
    }

    /// A field of a few cells with two buffers, as the plan sees it.
    type Slots = BTreeMap<Slot, Vec<u64>>;

    const CELLS: usize = 10;

    /// The kernel of this test: a hash of the stage and of the whole neighbourhood.
    fn value(stage: usize, cell: usize, fields: &[&Vec<u64>]) -> u64 {
        let sum =
            fields.iter().flat_map(|field| [field[cell], field[(cell + 1) % CELLS], field[(cell + CELLS - 1) % CELLS]]);
        sum.fold(stage as u64 + 1, |hash, value| (hash ^ value).wrapping_mul(0x100_0000_01b3).rotate_left(29))
    }

    fn cells(part: &Box3) -> std::ops::Range<usize> {
        part.lo[0] as usize..part.hi[0] as usize
    }

    /// Runs the plan; `stages` gives each launch its number.
    fn run(plan: &Plan, slots: &mut Slots) {
        for op in &plan.ops {
            match &op.action {
                Action::Copy { from, to, part } => {
                    let values = slots[from].clone();
                    slots.get_mut(to).unwrap()[cells(part)].copy_from_slice(&values[cells(part)]);
                }
                Action::Launch { outputs, fields, scalars, range, .. } => {
                    assert!(!fields.contains(&outputs[0]), "a launch reads what it writes");
                    let read: Vec<_> = fields.iter().map(|slot| slots[slot].clone()).collect();
                    let read: Vec<_> = read.iter().collect();
                    for cell in cells(range) {
                        slots.get_mut(&outputs[0]).unwrap()[cell] = value(scalars[0] as usize, cell, &read);
                    }
                }
            }
        }
        let before = slots.clone();
        for (to, from) in &plan.rotation {
            slots.insert(*to, before[from].clone());
        }
    }

    #[test]
    fn every_sequence_of_updates_means_what_it_says() {
        let mut random = noise(5);
        let mut below = |n: usize| (random() * n as f64) as usize;
        for _ in 0..2000 {
            let stages: Vec<_> = (0..1 + below(4))
                .map(|number| {
                    let (lo, hi) = (below(CELLS), below(CELLS + 1));
                    let fields: &[FieldId] = [&[U][..], &[V], &[U, V], &[V, U]][below(4)];
                    let mut stage = stage(fields, [U, V][below(2)], interval(lo as i64, hi as i64));
                    stage.scalars = vec![number as u64];
                    stage
                })
                .collect();
            let plan = plan(&stages);
            // The values as stages say them, and slots whose spare buffers differ just where the plan presumes it.
            let start =
                |field: FieldId| (0..CELLS as u64).map(|cell| cell + 100 * u64::from(field.0)).collect::<Vec<_>>();
            let mut plain = BTreeMap::from([(U, start(U)), (V, start(V))]);
            let mut slots = Slots::new();
            for field in [U, V] {
                let mut spare = start(field);
                let flow = plan.flows.iter().find(|flow| flow.field == field);
                if let Some(differs) = flow.and_then(|flow| flow.presumes) {
                    spare[cells(&differs)].fill(u64::MAX);
                }
                slots.extend([(field.current(), start(field)), (field.spare(), spare)]);
            }
            for _ in 0..3 {
                for (number, stage) in stages.iter().enumerate() {
                    let read: Vec<_> = stage.fields.iter().map(|field| plain[field].clone()).collect();
                    let read: Vec<_> = read.iter().collect();
                    for cell in cells(&stage.range) {
                        plain.get_mut(&stage.outputs[0]).unwrap()[cell] = value(number, cell, &read);
                    }
                }
                run(&plan, &mut slots);
                for field in [U, V] {
                    assert_eq!(slots[&field.current()], plain[&field], "{stages:?}");
                }
                for flow in &plan.flows {
                    let (current, spare) = (&slots[&flow.field.current()], &slots[&flow.field.spare()]);
                    let alike = |cell: usize| flow.leaves.holds([cell as i64, 0, 0]) || current[cell] == spare[cell];
                    assert!(flow.presumes.is_none() || (0..CELLS).all(alike), "{stages:?}");
                    assert!(flow.presumes.is_none_or(|presumes| presumes.contains(&flow.leaves)), "{stages:?}");
                }
            }
        }
    }

    #[test]
    fn operations_wait_for_the_writers_and_readers_before_them() {
        let stages = [stage(&[U], V, interval(0, 9)), stage(&[V], U, interval(0, 9)), stage(&[U], V, interval(0, 9))];
        let plan = plan(&stages);
        let after: Vec<_> = plan.ops.iter().map(|op| op.after.iter().map(|op| op.0).collect::<Vec<_>>()).collect();
        assert_eq!(after, [vec![], vec![0], vec![0, 1]]);
    }
}
