//! From the stages of a step to its plan: which buffer each stage reads and writes, when ghost cells are filled, and what
//! must be copied so that points outside a stage's range keep their values.
//!
//! A stage writes in place when it reads the field that it writes at the point itself only, or, updating the points of one
//! colour, at points of the other; otherwise it writes into the spare buffer of the field, and the two buffers change
//! places. After a change the spare buffer holds older values wherever the stage wrote. A later double-buffered stage with
//! another range would bring these back outside of its range, so they are copied over before. Steps that repeat the same
//! range copy nothing. A swap exchanges the buffers of two fields.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::QueueId;
use crate::boundary::{self, Widths};
use crate::geometry::{Box3, Patches};
use crate::halo;
use crate::kernel::KernelDesc;
use crate::plan::{Action, FieldId, Flow, Lane, Op, Operand, Plan, Purpose, Rows, ScalarId, Slot};
use crate::shape::{Shape, wider};

/// One stage of a step.
#[derive(Clone, Debug)]
pub enum Stage {
    /// A kernel updates fields or folds their values.
    Update(Update),
    /// Two fields exchange their values.
    Swap(FieldId, FieldId),
    /// The host computes a scalar from others.
    Compute {
        /// The function, by its number in the step.
        function: usize,
        /// Its arguments.
        inputs: Vec<ScalarId>,
        /// The result.
        output: ScalarId,
    },
    /// An amount is added at points.
    Inject {
        /// The field.
        field: FieldId,
        /// The points with the bits of their weights.
        points: Vec<([i64; 3], u64)>,
        /// The amount.
        amount: Operand,
    },
    /// Values at points are written down.
    Probe {
        /// The field.
        field: FieldId,
        /// The points.
        points: Vec<[i64; 3]>,
        /// The record.
        record: usize,
    },
    /// A scalar is written down.
    Record {
        /// The scalar.
        scalar: ScalarId,
        /// The record.
        record: usize,
    },
}

/// One call of a kernel.
#[derive(Clone, Debug)]
pub struct Update {
    /// The kernel.
    pub kernel: &'static KernelDesc,
    /// The fields that it takes.
    pub fields: Vec<FieldId>,
    /// The scalars.
    pub scalars: Vec<Operand>,
    /// What takes the results of its function; each occurs once.
    pub outputs: Vec<Output>,
    /// The points that are updated, as boxes that don't overlap.
    pub boxes: Vec<Box3>,
    /// Which of them: all, or those whose indices add up to an even (0) or an odd (1) number.
    pub parity: Option<u8>,
}

/// What takes a result of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The field takes the values.
    Field(FieldId),
    /// The scalar takes the fold over all points; for each box of the update, and there for each part of the result
    /// ([`Role::parts`](crate::kernel::Role::parts)), a field keeps the folds of its rows.
    Fold {
        /// The scalar.
        scalar: ScalarId,
        /// The fields along Y and Z.
        rows: Vec<FieldId>,
    },
}

impl Update {
    /// The fields that take values.
    fn written(&self) -> impl Iterator<Item = FieldId> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Field(field) => Some(*field),
            Output::Fold { .. } => None,
        })
    }

    /// Whether the result for `field` needs a second buffer: a point that is updated is read by another one.
    fn is_double_buffered(&self, field: FieldId) -> bool {
        let parameters = self.kernel.fields.iter().zip(&self.fields).filter(|&(_, &read)| read == field);
        let mut offsets = parameters.flat_map(|(parameter, _)| parameter.reads).map(|read| read.offset);
        let keeps_apart = |offset: [i32; 3]| self.parity.is_some() && offset.iter().sum::<i32>() % 2 != 0;
        offsets.any(|offset| offset != [0; 3] && !keeps_apart(offset))
    }
}

/// Fields of which every one may come to have the buffers of every other, as their swaps go on: for each field the least
/// one of its group.
pub fn groups(stages: &[Stage]) -> BTreeMap<FieldId, FieldId> {
    let mut group: BTreeMap<FieldId, FieldId> = BTreeMap::new();
    for stage in stages {
        if let Stage::Swap(one, other) = stage {
            let [a, b] = [one, other].map(|field| *group.entry(*field).or_insert(*field));
            group.values_mut().filter(|least| **least == a.max(b)).for_each(|least| *least = a.min(b));
        }
    }
    group
}

/// The fields that need a second buffer for these stages.
pub fn double_buffered(stages: &[Stage]) -> Vec<FieldId> {
    let mut fields = BTreeSet::new();
    for stage in stages {
        if let Stage::Update(update) = stage {
            fields.extend(update.written().filter(|&field| update.is_double_buffered(field)));
        }
    }
    shared_by_groups(stages, fields.into_iter().map(|field| (field, ())), |(), ()| ()).into_keys().collect()
}

/// The ghost cells that fields need for these stages; fields that need none are left out.
pub fn ghosts(stages: &[Stage], shapes: &[Shape]) -> crate::error::Result<BTreeMap<FieldId, Widths>> {
    let mut needed = Vec::new();
    for stage in stages {
        let Stage::Update(update) = stage else { continue };
        let of: Vec<_> = update.fields.iter().map(|field| &shapes[field.0 as usize]).collect();
        for part in update.boxes.iter().filter(|part| !part.is_empty()) {
            let widths = halo::ghosts(update.kernel, &of, part)?;
            needed.extend(update.fields.iter().copied().zip(widths).filter(|(_, widths)| *widths != Widths::default()));
        }
    }
    Ok(shared_by_groups(stages, needed, |one, other| wider(&one, &other)))
}

/// What holds for a field holds for all that it is swapped with.
fn shared_by_groups<T: Copy>(
    stages: &[Stage],
    items: impl IntoIterator<Item = (FieldId, T)>,
    both: impl Fn(T, T) -> T,
) -> BTreeMap<FieldId, T> {
    let groups = groups(stages);
    let of = |field: FieldId| groups.get(&field).copied().unwrap_or(field);
    let mut by_group: BTreeMap<FieldId, T> = BTreeMap::new();
    let mut alone = BTreeSet::new();
    for (field, item) in items {
        alone.insert(field);
        by_group.entry(of(field)).and_modify(|known| *known = both(*known, item)).or_insert(item);
    }
    let members = alone.into_iter().chain(groups.keys().copied());
    members.filter_map(|field| Some((field, *by_group.get(&of(field))?))).collect()
}

/// The plan of a step on one device, without what its operations wait for. `ghosts` are those of [`ghosts()`].
pub fn plan(stages: &[Stage], shapes: &[Shape], ghosts: &BTreeMap<FieldId, Widths>) -> Plan {
    // What a step leaves different is what the next one finds: the presumption grows until a step leaves no more.
    let doubled = double_buffered(stages);
    let mut presumed: BTreeMap<FieldId, Patches> = BTreeMap::new();
    let pass = loop {
        let pass = Pass::over(stages, shapes, ghosts, presumed.clone());
        let grown = |(field, leaves): (&FieldId, &Patches)| {
            let known = presumed.get(field).cloned().unwrap_or_default();
            (!known.contains_all(leaves)).then(|| (*field, leaves.clone()))
        };
        let left = pass.leaves();
        let more: Vec<_> = left.iter().filter_map(grown).collect();
        if more.is_empty() {
            break pass;
        }
        more.into_iter().for_each(|(field, leaves)| presumed.entry(field).or_default().add_all(&leaves));
    };
    let leaves = pass.leaves();
    let mut fields: BTreeSet<FieldId> = leaves.keys().copied().collect();
    fields.extend(pass.owner.keys());
    let mut plan = pass.plan.clone();
    for field in fields {
        let (from, values) = (pass.pair(field), pass.values(field));
        plan.flows.push(Flow {
            field,
            from,
            presumes: doubled.contains(&field).then(|| presumed.get(&field).cloned().unwrap_or_default()),
            leaves: leaves.get(&field).cloned().unwrap_or_default(),
        });
        if values != field.current() {
            plan.rotation.push((field.current(), values));
            if doubled.contains(&field) {
                plan.rotation.push((field.spare(), pass.room(field)));
            }
        }
    }
    plan
}

/// One way through the stages.
struct Pass<'a> {
    shapes: &'a [Shape],
    ghosts: &'a BTreeMap<FieldId, Widths>,
    plan: Plan,
    /// For fields that were swapped, the field that had their buffers when the step started.
    owner: BTreeMap<FieldId, FieldId>,
    /// The pairs of buffers, by the field that had them when the step started, whose values are in the slot that was
    /// spare then.
    flipped: BTreeSet<FieldId>,
    /// Where the two buffers of a pair may differ.
    differs: BTreeMap<FieldId, Patches>,
    /// The slots whose ghost cells are filled.
    filled: BTreeSet<Slot>,
    /// The fields that no stage changes.
    steady: BTreeSet<FieldId>,
}

impl<'a> Pass<'a> {
    fn over(
        stages: &[Stage],
        shapes: &'a [Shape],
        ghosts: &'a BTreeMap<FieldId, Widths>,
        differs: BTreeMap<FieldId, Patches>,
    ) -> Self {
        let changed = changed(stages);
        let steady = ghosts.keys().copied().filter(|field| !changed.contains(field)).collect();
        let mut pass = Self {
            shapes,
            ghosts,
            plan: Plan::default(),
            owner: BTreeMap::new(),
            flipped: BTreeSet::new(),
            differs,
            filled: BTreeSet::new(),
            steady,
        };
        stages.iter().for_each(|stage| pass.stage(stage));
        pass
    }

    fn stage(&mut self, stage: &Stage) {
        match stage {
            Stage::Update(update) => self.update(update),
            Stage::Swap(one, other) => self.swap(*one, *other),
            Stage::Compute { function, inputs, output } => {
                self.push(Action::Compute { function: *function, inputs: inputs.clone(), output: *output, ahead: 0 });
            }
            Stage::Inject { field, points, amount } => {
                let slot = self.values(*field);
                let kernel = self.kernel(boundary::added(self.shapes[field.0 as usize].ty));
                for &(point, weight) in points {
                    let range = Box3 { lo: point, hi: point.map(|index| index + 1) };
                    self.push(Action::Launch {
                        kernel,
                        outputs: vec![slot],
                        fields: vec![slot],
                        scalars: vec![*amount, Operand::Bits(weight)],
                        range,
                        parity: None,
                        shift: [0; 3],
                        purpose: Purpose::Source,
                    });
                    self.differs.entry(self.pair(*field)).or_default().add(&range);
                }
                self.filled.remove(&slot);
            }
            Stage::Probe { field, points, record } => {
                let cells = points.iter().map(|&point| (0, point)).collect();
                self.push(Action::Probe { from: self.values(*field), cells, record: *record });
            }
            Stage::Record { scalar, record } => self.push(Action::Record { from: *scalar, record: *record }),
        }
    }

    fn update(&mut self, update: &Update) {
        let boxes: Vec<_> = update.boxes.iter().copied().enumerate().filter(|(_, part)| !part.is_empty()).collect();
        if !boxes.is_empty() {
            update.fields.iter().for_each(|&field| self.fill(field));
            self.launch(update, &boxes);
        }
        for (target, (_, output)) in update.outputs.iter().zip(update.kernel.results()) {
            let Output::Fold { scalar, rows } = target else { continue };
            let parts = output.role.parts(output.ty);
            self.push(Action::Fold {
                role: output.role,
                ty: output.ty,
                rows: (boxes.iter())
                    .flat_map(|&(number, part)| {
                        let own = rows[number * parts..(number + 1) * parts].iter().enumerate();
                        own.map(move |(number, row)| Rows { device: 0, slot: row.current(), cells: part, number })
                    })
                    .collect(),
                into: *scalar,
            });
        }
    }

    fn launch(&mut self, update: &Update, boxes: &[(usize, Box3)]) {
        let (doubled, in_place): (Vec<_>, Vec<_>) =
            update.written().partition(|&field| update.is_double_buffered(field));
        let written: Patches = boxes.iter().map(|(_, part)| *part).collect();
        for &field in &doubled {
            let mut old = self.differs.get(&self.pair(field)).cloned().unwrap_or_default();
            // A stage that leaves out the points of a colour has no range that it writes everywhere.
            let parts = if update.parity.is_some() {
                old.add_all(&written);
                old.minus(&Patches::default())
            } else {
                old.minus(&written)
            };
            for part in parts {
                self.push(Action::Copy { from: self.values(field), to: self.room(field), part });
            }
        }
        let kernel = self.kernel(update.kernel);
        let points: u64 = boxes.iter().map(|(_, range)| range.points_of(update.parity)).sum();
        self.plan.points += points;
        self.plan.bytes += points * u64::from(update.kernel.bytes);
        for &(number, range) in boxes {
            let target = |output: &Output| match output {
                Output::Field(field) if doubled.contains(field) => vec![self.room(*field)],
                Output::Field(field) => vec![self.values(*field)],
                Output::Fold { rows, .. } => {
                    let parts = rows.len() / update.boxes.len();
                    rows[number * parts..(number + 1) * parts].iter().map(|row| row.current()).collect()
                }
            };
            self.push(Action::Launch {
                kernel,
                outputs: update.outputs.iter().flat_map(target).collect(),
                fields: update.fields.iter().map(|&field| self.values(field)).collect(),
                scalars: update.scalars.clone(),
                range,
                parity: update.parity,
                shift: [0; 3],
                purpose: Purpose::Update,
            });
        }
        for field in doubled {
            let pair = self.pair(field);
            if !self.flipped.remove(&pair) {
                self.flipped.insert(pair);
            }
            self.differs.insert(pair, written.clone());
            self.filled.remove(&self.values(field));
        }
        for field in in_place {
            self.differs.entry(self.pair(field)).or_default().add_all(&written);
            self.filled.remove(&self.values(field));
        }
    }

    fn swap(&mut self, one: FieldId, other: FieldId) {
        let (a, b) = (self.pair(one), self.pair(other));
        self.owner.insert(one, b);
        self.owner.insert(other, a);
        if self.shapes[one.0 as usize].faces != self.shapes[other.0 as usize].faces {
            let slots = [self.values(one), self.values(other)];
            slots.iter().for_each(|slot| {
                self.filled.remove(slot);
            });
        }
    }

    /// Fills the ghost cells of a field unless they are.
    fn fill(&mut self, field: FieldId) {
        let Some(widths) = self.ghosts.get(&field) else { return };
        let slot = self.values(field);
        if !self.filled.insert(slot) {
            return;
        }
        let shape = &self.shapes[field.0 as usize];
        for fill in boundary::fills(shape.cells, &shape.faces, widths) {
            let (kernel, scalars) = boundary::kernel(fill.how, shape.ty);
            let action = Action::Launch {
                kernel: self.kernel(kernel),
                outputs: vec![slot],
                fields: vec![slot; kernel.fields.len()],
                scalars: scalars.into_iter().map(Operand::Bits).collect(),
                range: fill.part,
                parity: None,
                shift: fill.shift,
                purpose: Purpose::Boundary,
            };
            if self.steady.contains(&field) {
                self.plan.before.push(op(action));
            } else {
                self.push(action);
            }
        }
    }

    /// The pair of buffers that a field has at this point of the step, by the field that had it at the start.
    fn pair(&self, field: FieldId) -> FieldId {
        self.owner.get(&field).copied().unwrap_or(field)
    }

    /// The slot with the field's values at this point of the step.
    fn values(&self, field: FieldId) -> Slot {
        let pair = self.pair(field);
        if self.flipped.contains(&pair) { pair.spare() } else { pair.current() }
    }

    /// The other slot.
    fn room(&self, field: FieldId) -> Slot {
        let pair = self.pair(field);
        if self.flipped.contains(&pair) { pair.current() } else { pair.spare() }
    }

    /// Where the buffers of each field differ, by the field that has them at this point of the step.
    fn leaves(&self) -> BTreeMap<FieldId, Patches> {
        let mut fields: BTreeSet<FieldId> = self.differs.keys().copied().collect();
        fields.extend(self.owner.keys());
        fields.into_iter().filter_map(|field| Some((field, self.differs.get(&self.pair(field))?.clone()))).collect()
    }

    fn kernel(&mut self, kernel: &'static KernelDesc) -> usize {
        let kernels = &mut self.plan.kernels;
        kernels.iter().position(|&other| std::ptr::eq(other, kernel)).unwrap_or_else(|| {
            kernels.push(kernel);
            kernels.len() - 1
        })
    }

    fn push(&mut self, action: Action) {
        self.plan.ops.push(op(action));
    }
}

/// An operation of the only device; what it waits for is found later.
fn op(action: Action) -> Op {
    Op { action, device: 0, lane: Lane(0), queue: QueueId::COMPUTE, after: Vec::new(), across: Vec::new() }
}

/// The fields that a stage writes or moves.
fn changed(stages: &[Stage]) -> BTreeSet<FieldId> {
    let mut changed = BTreeSet::new();
    for stage in stages {
        match stage {
            Stage::Update(update) => changed.extend(update.written()),
            Stage::Swap(one, other) => changed.extend([*one, *other]),
            Stage::Inject { field, .. } => {
                changed.insert(*field);
            }
            Stage::Compute { .. } | Stage::Probe { .. } | Stage::Record { .. } => {}
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::Face;
    use crate::kernel::{FieldDesc, OutputDesc, Read, ScalarType};
    use crate::testing::{AVERAGE, noise};

    const U: FieldId = FieldId(0);
    const V: FieldId = FieldId(1);
    const W: FieldId = FieldId(2);

    const CELLS: usize = 10;

    const fn at(offset: i32) -> Read {
        Read { offset: [offset, 0, 0], line: 1 }
    }

    const fn field(reads: &'static [Read]) -> FieldDesc {
        FieldDesc { name: "f", ty: ScalarType::U64, axes: [true; 3], reads }
    }

    const AROUND: FieldDesc = field(&[at(-1), at(0), at(1)]);
    const HERE: FieldDesc = field(&[at(0)]);
    const BOTH: [OutputDesc; 2] = [OutputDesc::value(ScalarType::U64); 2];

    /// Kernels that are only their facts: one or two fields, of which the first or both are read around the point.
    static KERNELS: [KernelDesc; 4] = [
        KernelDesc { name: "around", fields: &[AROUND], outputs: &[BOTH[0]], ..AVERAGE },
        KernelDesc { name: "here", fields: &[HERE], outputs: &[BOTH[0]], ..AVERAGE },
        KernelDesc { name: "mixed", fields: &[AROUND, HERE], outputs: &[BOTH[0]], ..AVERAGE },
        KernelDesc { name: "two", fields: &[HERE, AROUND], outputs: &BOTH, ..AVERAGE },
    ];

    fn interval(lo: i64, hi: i64) -> Box3 {
        Box3 { lo: [lo, 0, 0], hi: [hi, 1, 1] }
    }

    fn shapes(face: Face) -> Vec<Shape> {
        let shape = |name: &str| Shape {
            name: name.into(),
            ty: ScalarType::U64,
            axes: [true; 3],
            cells: [CELLS, 1, 1],
            faces: [[face; 2], [Face::Fixed; 2], [Face::Fixed; 2]],
        };
        ["u", "v", "w"].map(shape).to_vec()
    }

    fn update(kernel: usize, fields: &[FieldId], outputs: &[FieldId], range: Box3) -> Update {
        Update {
            kernel: &KERNELS[kernel],
            fields: fields.to_vec(),
            scalars: Vec::new(),
            outputs: outputs.iter().map(|&field| Output::Field(field)).collect(),
            boxes: vec![range],
            parity: None,
        }
    }

    fn planned(stages: &[Stage], face: Face) -> Plan {
        let shapes = shapes(face);
        plan(stages, &shapes, &ghosts(stages, &shapes).unwrap())
    }

    /// The plan of updates of which none reads beyond a face.
    fn inner(updates: &[Update]) -> Plan {
        planned(&updates.iter().cloned().map(Stage::Update).collect::<Vec<_>>(), Face::Fixed)
    }

    fn copies(plan: &Plan) -> usize {
        plan.ops.iter().filter(|op| matches!(op.action, Action::Copy { .. })).count()
    }

    fn written(op: &Op) -> Vec<Slot> {
        match &op.action {
            Action::Launch { outputs, .. } => outputs.clone(),
            Action::Copy { to, .. } => vec![*to],
            other => panic!("{other:?} writes no field"),
        }
    }

    #[test]
    fn a_repeated_update_is_one_launch_and_an_exchange_of_buffers() {
        let plan = inner(&[update(2, &[U, V], &[U], interval(1, 9))]);
        assert_eq!(plan.ops.len(), 1);
        assert_eq!(written(&plan.ops[0]), [U.spare()]);
        assert_eq!(plan.rotation, [(U.current(), U.spare()), (U.spare(), U.current())]);
        let range: Patches = [interval(1, 9)].into_iter().collect();
        assert_eq!(plan.flows, [Flow { field: U, from: U, presumes: Some(range.clone()), leaves: range }]);
    }

    #[test]
    fn a_field_that_is_read_at_the_point_only_or_not_at_all_is_written_in_place() {
        for updates in [[update(0, &[V], &[U], interval(1, 9))], [update(2, &[V, U], &[U], interval(1, 9))]] {
            let plan = inner(&updates);
            assert_eq!(written(&plan.ops[0]), [U.current()]);
            assert!(plan.rotation.is_empty());
            assert!(double_buffered(&updates.map(Stage::Update)).is_empty());
        }
    }

    #[test]
    fn points_of_one_colour_are_written_in_place_unless_they_read_their_own_colour() {
        let coloured = |kernel: &'static KernelDesc| {
            let stage = Update { kernel, parity: Some(1), ..update(0, &[U], &[U], interval(1, 9)) };
            double_buffered(&[Stage::Update(stage)])
        };
        static FAR: KernelDesc = KernelDesc { fields: &[field(&[at(0), at(2)])], ..AVERAGE };
        assert!(coloured(&KERNELS[0]).is_empty());
        assert_eq!(coloured(&FAR), [U]);
    }

    #[test]
    fn two_updates_of_one_field_end_where_they_began() {
        let plan = inner(&[update(0, &[U], &[U], interval(1, 9)), update(0, &[U], &[U], interval(1, 9))]);
        assert_eq!(plan.ops.len(), 2);
        assert!(matches!(&plan.ops[1].action, Action::Launch { fields, .. } if *fields == [U.spare()]));
        assert!(plan.rotation.is_empty());
    }

    #[test]
    fn a_narrower_update_copies_what_the_wider_one_wrote_outside_of_it() {
        let plan = inner(&[update(0, &[U], &[U], interval(1, 9)), update(0, &[U], &[U], interval(3, 5))]);
        assert_eq!(copies(&plan), 2);
    }

    #[test]
    fn time_levels_are_swapped_without_a_copy() {
        let step = [Stage::Update(update(2, &[U, V], &[V], interval(1, 9))), Stage::Swap(U, V)];
        let plan = planned(&step, Face::Fixed);
        assert_eq!((plan.ops.len(), copies(&plan)), (1, 0));
        assert_eq!(plan.rotation, [(U.current(), V.current()), (V.current(), U.current())]);
    }

    #[test]
    fn ghost_cells_are_filled_once_for_each_write_and_once_for_all_of_a_field_that_stays() {
        let reads = |field| update(2, &[field, W], &[W], interval(0, 10));
        let step = [reads(U), reads(V), reads(U), update(1, &[U], &[U], interval(0, 10)), reads(U)].map(Stage::Update);
        let plan = planned(&step, Face::Clamp);
        let filled = |ops: &[Op], slot: Slot| {
            let fills = |op: &&Op| matches!(op.action, Action::Launch { purpose: Purpose::Boundary, .. });
            ops.iter().filter(fills).filter(|op| written(op) == [slot]).count()
        };
        assert_eq!((filled(&plan.ops, U.current()), filled(&plan.ops, V.current())), (4, 0));
        assert_eq!((filled(&plan.before, U.current()), filled(&plan.before, V.current())), (0, 2));
    }

    #[test]
    fn an_empty_range_leaves_nothing_to_do() {
        let plan = inner(&[update(0, &[U], &[U], Box3::EMPTY)]);
        assert!(plan.ops.is_empty() && plan.rotation.is_empty());
        assert_eq!((plan.points, plan.bytes), (0, 0));
    }

    #[test]
    fn points_and_bytes_are_those_of_the_updates() {
        static WIDE: KernelDesc = KernelDesc { bytes: 32, ..KERNELS[0] };
        let coloured = Update { kernel: &WIDE, parity: Some(0), ..update(0, &[V], &[U], interval(1, 8)) };
        let plan = inner(&[coloured, update(1, &[U], &[V], interval(0, 5))]);
        assert_eq!((plan.points, plan.bytes), (3 + 5, 3 * 32 + 5 * 8));
    }

    /// The cells of a field with a ghost cell on either side.
    type Cells = Vec<u64>;

    /// What the kernels of this test compute: a hash of their name and of all that they read.
    fn value(kernel: &KernelDesc, number: usize, cell: usize, fields: &[&Cells]) -> u64 {
        let reads = kernel.fields.iter().zip(fields);
        let read = reads.flat_map(|(field, cells)| {
            field.reads.iter().map(move |read| cells[(cell as i32 + 1 + read.offset[0]) as usize])
        });
        let seed = kernel.name.len() as u64 + 17 * number as u64 + 1;
        read.fold(seed, |hash, value| (hash ^ value).wrapping_mul(0x100_0000_01b3).rotate_left(29))
    }

    fn cells(part: &Box3, parity: Option<u8>) -> impl Iterator<Item = usize> + use<> {
        let coloured = move |cell: &i64| parity.is_none_or(|parity| cell % 2 == i64::from(parity));
        (part.lo[0]..part.hi[0]).filter(coloured).map(|cell| cell as usize)
    }

    /// Does what a plan says to buffers; ghost cells hold nonsense unless the plan fills them.
    fn run(plan: &Plan, ops: &[Op], buffers: &mut BTreeMap<Slot, Cells>) {
        for op in ops {
            match &op.action {
                Action::Copy { from, to, part } => {
                    let values = buffers[from].clone();
                    cells(part, None).for_each(|cell| buffers.get_mut(to).unwrap()[cell + 1] = values[cell + 1]);
                }
                Action::Launch { outputs, fields, range, shift, purpose: Purpose::Boundary, .. } => {
                    for cell in range.lo[0]..range.hi[0] {
                        let value = buffers[&fields[0]][(cell + 1 + shift[0]) as usize];
                        buffers.get_mut(&outputs[0]).unwrap()[(cell + 1) as usize] = value;
                    }
                }
                Action::Launch { kernel, outputs, fields, range, parity, purpose: Purpose::Update, .. } => {
                    // Points are updated one after the other, so that a wrong use in place is seen.
                    for cell in cells(range, *parity) {
                        let read: Vec<_> = fields.iter().map(|slot| &buffers[slot]).collect();
                        let values: Vec<_> = (0..outputs.len())
                            .map(|number| value(plan.kernels[*kernel], number, cell, &read))
                            .collect();
                        for (slot, value) in outputs.iter().zip(values) {
                            buffers.get_mut(slot).unwrap()[cell + 1] = value;
                        }
                    }
                }
                Action::Launch { fields, range, scalars, .. } => {
                    let Operand::Bits(amount) = scalars[0] else { unreachable!("this test injects numbers") };
                    let cell = &mut buffers.get_mut(&fields[0]).unwrap()[(range.lo[0] + 1) as usize];
                    *cell = cell.wrapping_add(amount);
                }
                other => unreachable!("this test has no {other:?}"),
            }
        }
    }

    /// The meaning of a stage, on fields with a periodic boundary.
    fn plain(stage: &Stage, fields: &mut BTreeMap<FieldId, Cells>) {
        match stage {
            Stage::Update(update) => {
                for cells in fields.values_mut() {
                    (cells[0], cells[CELLS + 1]) = (cells[CELLS], cells[1]);
                }
                let before = fields.clone();
                let read: Vec<_> = update.fields.iter().map(|field| &before[field]).collect();
                for part in &update.boxes {
                    for cell in cells(part, update.parity) {
                        for (number, field) in update.written().enumerate() {
                            fields.get_mut(&field).unwrap()[cell + 1] = value(update.kernel, number, cell, &read);
                        }
                    }
                }
            }
            Stage::Swap(one, other) => {
                let (a, b) = (fields[one].clone(), fields[other].clone());
                fields.extend([(*one, b), (*other, a)]);
            }
            Stage::Inject { field, points, amount } => {
                let Operand::Bits(amount) = amount else { unreachable!("this test injects numbers") };
                for (point, _) in points {
                    let cell = &mut fields.get_mut(field).unwrap()[(point[0] + 1) as usize];
                    *cell = cell.wrapping_add(*amount);
                }
            }
            other => unreachable!("this test has no {other:?}"),
        }
    }

    fn random_stage(below: &mut impl FnMut(usize) -> usize) -> Stage {
        let any = |below: &mut dyn FnMut(usize) -> usize| [U, V, W][below(3)];
        match below(8) {
            0 => {
                let (one, other) = (any(below), any(below));
                if one == other { Stage::Swap(U, V) } else { Stage::Swap(one, other) }
            }
            1 => {
                let point = ([below(CELLS) as i64, 0, 0], 1);
                Stage::Inject { field: any(below), points: vec![point], amount: Operand::Bits(below(100) as u64) }
            }
            _ => {
                let kernel = below(KERNELS.len());
                let fields: Vec<_> = KERNELS[kernel].fields.iter().map(|_| any(below)).collect();
                let (lo, hi) = (below(CELLS) as i64, below(CELLS + 1) as i64);
                let first = below(3);
                let outputs: Vec<_> =
                    (0..KERNELS[kernel].outputs.len()).map(|number| [U, V, W][(first + number) % 3]).collect();
                let mut update = update(kernel, &fields, &outputs, interval(lo, hi));
                if below(4) == 0 {
                    update.boxes.push(interval(hi.max(lo) + 1, CELLS as i64));
                }
                update.parity = [None, None, Some(0), Some(1)][below(4)];
                Stage::Update(update)
            }
        }
    }

    #[test]
    fn every_sequence_of_stages_means_what_it_says() {
        let mut random = noise(5);
        let mut below = |n: usize| (random() * n as f64) as usize;
        let shapes = shapes(Face::Periodic);
        for round in 0..4000 {
            let stages: Vec<_> = (0..1 + below(5)).map(|_| random_stage(&mut below)).collect();
            let ghosts = ghosts(&stages, &shapes).unwrap();
            let plan = plan(&stages, &shapes, &ghosts);
            let start = |field: FieldId| {
                let mut cells: Cells = (0..CELLS as u64 + 2).map(|cell| cell + 100 * u64::from(field.0)).collect();
                (cells[0], cells[CELLS + 1]) = (u64::MAX, u64::MAX);
                cells
            };
            let mut fields: BTreeMap<_, _> = [U, V, W].map(|field| (field, start(field))).into();
            let mut buffers = BTreeMap::new();
            for field in [U, V, W] {
                let mut spare = start(field);
                let flow = plan.flows.iter().find(|flow| flow.field == field);
                for part in flow.and_then(|flow| flow.presumes.as_ref()).map_or(&[][..], Patches::boxes) {
                    cells(part, None).for_each(|cell| spare[cell + 1] = u64::MAX);
                }
                buffers.extend([(field.current(), start(field)), (field.spare(), spare)]);
            }
            run(&plan, &plan.before, &mut buffers);
            for _ in 0..3 {
                stages.iter().for_each(|stage| plain(stage, &mut fields));
                run(&plan, &plan.ops, &mut buffers);
                let before = buffers.clone();
                for (to, from) in &plan.rotation {
                    buffers.insert(*to, before[from].clone());
                }
                for field in [U, V, W] {
                    let (found, expected) = (&buffers[&field.current()], &fields[&field]);
                    assert_eq!(found[1..=CELLS], expected[1..=CELLS], "{round} {field:?} {stages:#?}");
                }
                for flow in &plan.flows {
                    let Some(presumes) = &flow.presumes else { continue };
                    assert!(presumes.contains_all(&flow.leaves), "{round} {stages:#?}");
                    let (current, spare) = (&buffers[&flow.field.current()], &buffers[&flow.field.spare()]);
                    let alike = |cell: usize| {
                        let cell_box = interval(cell as i64, cell as i64 + 1);
                        flow.leaves.contains(&cell_box) || current[cell + 1] == spare[cell + 1]
                    };
                    assert!((0..CELLS).all(alike), "{round} {stages:#?}");
                }
            }
        }
    }
}
