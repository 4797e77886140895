//! Plans for several devices are run on devices made of maps, in every order that their queues, threads and waits allow, and
//! must leave what the stages mean. Kernels hash what they read, so that a wrong or an old cell shows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;
use crate::boundary::Face;
use crate::exchange::Exchange;
use crate::geometry::Extent;
use crate::kernel::{FieldDesc, OutputDesc, Read, Role};
use crate::partition::partition;
use crate::plan::ScalarId;
use crate::schedule::{self, Output, Stage, Update};
use crate::testing::{AVERAGE, noise};

const FIELDS: [FieldId; 3] = [FieldId(0), FieldId(1), FieldId(2)];

const fn at(x: i32, z: i32) -> Read {
    Read { offset: [x, 0, z], line: 1 }
}

const fn field(reads: &'static [Read]) -> FieldDesc {
    FieldDesc { name: "f", ty: ScalarType::U64, axes: [true; 3], reads }
}

const AROUND: FieldDesc = field(&[at(0, -1), at(0, 0), at(0, 1)]);
const CORNERS: FieldDesc = field(&[at(-1, -1), at(1, 2), at(0, 0)]);
const BELOW: FieldDesc = field(&[at(0, -3), at(0, 0)]);
const HERE: FieldDesc = field(&[at(0, 0)]);
const ODD: FieldDesc = field(&[at(0, 0), at(1, 0), at(0, -1), at(0, 3)]);
const VALUE: OutputDesc = OutputDesc::value(ScalarType::U64);
// A sum of a wider type would have two parts.
const SUM: OutputDesc = OutputDesc { ty: ScalarType::U32, role: Role::Sum };

/// Kernels that are only their facts.
static KERNELS: [KernelDesc; 8] = [
    KernelDesc { name: "around", fields: &[AROUND], outputs: &[VALUE], ..AVERAGE },
    KernelDesc { name: "here", fields: &[HERE], outputs: &[VALUE], ..AVERAGE },
    KernelDesc { name: "corners", fields: &[CORNERS, HERE], outputs: &[VALUE], ..AVERAGE },
    KernelDesc { name: "two", fields: &[HERE, AROUND], outputs: &[VALUE, VALUE], ..AVERAGE },
    KernelDesc { name: "below", fields: &[BELOW], outputs: &[VALUE], ..AVERAGE },
    KernelDesc { name: "coloured", fields: &[ODD], outputs: &[VALUE], ..AVERAGE },
    KernelDesc { name: "fold", fields: &[AROUND], outputs: &[SUM], ..AVERAGE },
    KernelDesc { name: "both", fields: &[BELOW], outputs: &[VALUE, SUM], ..AVERAGE },
];

type Cell = [i64; 3];

/// What a kernel computes: a hash of its name, the result's number, and all that it reads.
fn value(kernel: &KernelDesc, number: usize, scalars: &[u64], read: impl Iterator<Item = u64>) -> u64 {
    let seed = kernel.name.len() as u64 + 17 * number as u64 + 1;
    let mix = |hash: u64, value: u64| (hash ^ value).wrapping_mul(0x100_0000_01b3).rotate_left(29);
    read.chain(scalars.iter().copied()).fold(seed, mix)
}

fn cells(part: &Box3, parity: Option<u8>, corner: i64) -> Vec<Cell> {
    let Box3 { lo, hi } = *part;
    let all = (lo[2]..hi[2]).flat_map(|z| (lo[1]..hi[1]).flat_map(move |y| (lo[0]..hi[0]).map(move |x| [x, y, z])));
    let of_colour = |cell: &Cell| {
        parity.is_none_or(|parity| (cell.iter().sum::<i64>() + corner).rem_euclid(2) == i64::from(parity))
    };
    all.filter(of_colour).collect()
}

fn plus(cell: Cell, by: [i64; 3]) -> Cell {
    std::array::from_fn(|axis| cell[axis] + by[axis])
}

/// The meaning of stages, on one grid.
#[derive(Clone)]
struct Grid {
    shapes: Vec<Shape>,
    fields: Vec<BTreeMap<Cell, u64>>,
    scalars: Vec<u64>,
    records: Vec<Vec<u64>>,
}

impl Grid {
    /// The value of a cell anywhere: beyond a face of Z first, as that axis is filled last.
    fn read(&self, field: FieldId, cell: Cell) -> u64 {
        let shape = &self.shapes[field.0 as usize];
        let mut inside = cell;
        for axis in [2, 1, 0] {
            let n = shape.cells[axis] as i64;
            let (side, beyond) = match cell[axis] {
                low if low < 0 => (0, -low),
                high if high >= n => (1, high - n + 1),
                _ => continue,
            };
            let from_face = |depth: i64| if side == 0 { depth } else { n - 1 - depth };
            inside[axis] = match shape.faces[axis][side] {
                Face::Constant(bits) => return bits,
                Face::Periodic => cell[axis].rem_euclid(n),
                Face::Clamp => from_face(0),
                Face::Even => from_face(beyond - 1),
                face => panic!("{face} at {cell:?}"),
            };
        }
        self.fields[field.0 as usize][&inside]
    }

    fn stage(&mut self, stage: &Stage) {
        match stage {
            Stage::Update(update) => self.update(update),
            Stage::Swap(one, other) => self.fields.swap(one.0 as usize, other.0 as usize),
            Stage::Inject { field, points, amount } => {
                for (point, weight) in points {
                    let amount = self.operand(amount);
                    let cell = self.fields[field.0 as usize].get_mut(point).unwrap();
                    *cell = cell.wrapping_add(amount.wrapping_mul(*weight));
                }
            }
            Stage::Compute { inputs, output, .. } => {
                self.scalars[output.0 as usize] = computed(inputs.iter().map(|input| self.scalars[input.0 as usize]));
            }
            Stage::Probe { field, points, record } => {
                let values: Vec<_> = points.iter().map(|point| self.fields[field.0 as usize][point]).collect();
                self.records[*record].extend(values);
            }
            Stage::Record { scalar, record } => self.records[*record].push(self.scalars[scalar.0 as usize]),
        }
    }

    fn operand(&self, operand: &Operand) -> u64 {
        match operand {
            Operand::Bits(bits) => *bits,
            Operand::Scalar(scalar) => self.scalars[scalar.0 as usize],
        }
    }

    fn update(&mut self, update: &Update) {
        let before = self.clone();
        let scalars: Vec<_> = update.scalars.iter().map(|scalar| self.operand(scalar)).collect();
        let mut sums = vec![0_u64; update.outputs.len()];
        for cell in update.boxes.iter().flat_map(|part| cells(part, update.parity, 0)) {
            let reads = || {
                update.kernel.fields.iter().zip(&update.fields).flat_map(|(parameter, field)| {
                    parameter.reads.iter().map(|read| before.read(*field, plus(cell, read.offset.map(i64::from))))
                })
            };
            for (number, output) in update.outputs.iter().enumerate() {
                let value = value(update.kernel, number, &scalars, reads());
                match output {
                    Output::Field(field) => {
                        self.fields[field.0 as usize].insert(cell, value);
                    }
                    Output::Fold { .. } => sums[number] = sums[number].wrapping_add(value),
                }
            }
        }
        for (number, output) in update.outputs.iter().enumerate() {
            if let Output::Fold { scalar, .. } = output {
                self.scalars[scalar.0 as usize] = sums[number];
            }
        }
    }
}

fn computed(inputs: impl Iterator<Item = u64>) -> u64 {
    inputs.fold(7, |all, input| all.wrapping_mul(31).wrapping_add(input))
}

/// Devices made of maps; a cell that isn't stored isn't there.
struct Machine<'a> {
    plan: &'a Plan,
    split: &'a Split,
    /// The cells of each buffer of each device, in local coordinates.
    memory: BTreeMap<(usize, Slot), BTreeMap<Cell, u64>>,
    /// The buffer in each slot, by run.
    buffers: Vec<BTreeMap<Slot, Slot>>,
    stagings: Vec<Vec<u64>>,
    scalars: Vec<u64>,
    records: Vec<Vec<u64>>,
}

/// An operation of a run.
type Instance = (usize, usize);

/// What stands in a queue, with the numbers that were taken when it was issued.
type Waiting = VecDeque<(Instance, Vec<u64>)>;

impl Machine<'_> {
    fn buffer(&mut self, run: usize, device: usize, slot: Slot) -> &mut BTreeMap<Cell, u64> {
        let buffer = crate::demand::buffer_in(&self.buffers[run], slot);
        self.memory.get_mut(&(device, buffer)).expect("a buffer for every slot")
    }

    /// The scalar arguments of a launch, which are taken when it is issued.
    fn captured(&self, op: &Op) -> Vec<u64> {
        let Action::Launch { scalars, .. } = &op.action else { return Vec::new() };
        let operand = |scalar: &Operand| match scalar {
            Operand::Bits(bits) => *bits,
            Operand::Scalar(scalar) => self.scalars[scalar.0 as usize],
        };
        scalars.iter().map(operand).collect()
    }

    fn perform(&mut self, op: &Op, run: usize, captured: &[u64]) {
        let device = op.device;
        match &op.action {
            Action::Launch { kernel, outputs, fields, range, parity, shift, purpose, .. } => {
                let kernel = self.plan.kernels[*kernel];
                let is_folded = |number: usize| kernel.outputs[number].role != Role::Value;
                for (_, slot) in outputs.iter().enumerate().filter(|(number, _)| is_folded(*number)) {
                    let rows = Box3 { lo: [0, range.lo[1], range.lo[2]], hi: [1, range.hi[1], range.hi[2]] };
                    for row in cells(&rows, None, 0) {
                        *self.buffer(run, device, *slot).get_mut(&row).expect("rows are stored") = 0;
                    }
                }
                for cell in cells(range, *parity, self.split.start(device)) {
                    let mut read = Vec::new();
                    for (parameter, slot) in kernel.fields.iter().zip(fields) {
                        for offset in parameter.reads {
                            let at = plus(plus(cell, offset.offset.map(i64::from)), *shift);
                            let value = self.buffer(run, device, *slot).get(&at).copied();
                            read.push(value.unwrap_or_else(|| panic!("{at:?} of {slot:?} isn't on device {device}")));
                        }
                    }
                    for (number, slot) in outputs.iter().enumerate() {
                        let new = match purpose {
                            Purpose::Update => value(kernel, number, captured, read.iter().copied()),
                            Purpose::Boundary | Purpose::Poison => read.first().copied().unwrap_or_else(|| captured[0]),
                            Purpose::Source => read[0].wrapping_add(captured[0].wrapping_mul(captured[1])),
                        };
                        let cell = if is_folded(number) { [0, cell[1], cell[2]] } else { cell };
                        let known = self.buffer(run, device, *slot).get_mut(&cell);
                        let known = known.unwrap_or_else(|| panic!("{cell:?} of {slot:?} isn't on device {device}"));
                        *known = if is_folded(number) { known.wrapping_add(new) } else { new };
                    }
                }
            }
            Action::Copy { from, to, part } => {
                for cell in cells(part, None, 0) {
                    let value = self.buffer(run, device, *from)[&cell];
                    *self.buffer(run, device, *to).get_mut(&cell).unwrap() = value;
                }
            }
            Action::Send { slot, part, to, into } => {
                for (cell, there) in cells(part, None, 0).into_iter().zip(cells(into, None, 0)) {
                    let value = self.buffer(run, device, *slot)[&cell];
                    *self.buffer(run, *to, *slot).get_mut(&there).expect("halo cells are stored") = value;
                }
            }
            Action::Download { from, part, to } => {
                let values: Vec<_> =
                    cells(part, None, 0).iter().map(|cell| self.buffer(run, device, *from)[cell]).collect();
                assert_eq!(self.plan.stagings[to.0].bytes, values.len() * 8);
                self.stagings[to.0] = values;
            }
            Action::Upload { from, to, part } => {
                let values = self.stagings[from.0].clone();
                for (cell, value) in cells(part, None, 0).into_iter().zip(values) {
                    *self.buffer(run, device, *to).get_mut(&cell).expect("halo cells are stored") = value;
                }
            }
            Action::Fold { rows, into, .. } => {
                let mut sum = 0_u64;
                for rows in rows {
                    let mut part = rows.cells;
                    (part.lo[0], part.hi[0]) = (0, 1);
                    for cell in cells(&part, None, 0) {
                        sum = sum.wrapping_add(self.buffer(run, rows.device, rows.slot)[&cell]);
                    }
                }
                self.scalars[into.0 as usize] = sum;
            }
            Action::Compute { inputs, output, .. } => {
                self.scalars[output.0 as usize] = computed(inputs.iter().map(|input| self.scalars[input.0 as usize]));
            }
            Action::Probe { from, cells, record } => {
                for &(device, cell) in cells {
                    let value = self.buffer(run, device, *from)[&cell];
                    self.records[*record].push(value);
                }
            }
            Action::Record { from, record } => self.records[*record].push(self.scalars[from.0 as usize]),
            Action::Barrier => {}
        }
    }

    /// Does some runs in the order in which the operations stand.
    fn run_in_order(&mut self, runs: usize) {
        for run in 0..runs {
            for op in &self.plan.ops {
                let captured = self.captured(op);
                self.perform(op, run, &captured);
            }
        }
    }

    /// Does some runs in an order drawn at random: threads issue and queues work on whenever they may.
    fn run(&mut self, runs: usize, below: &mut dyn FnMut(usize) -> usize) {
        let plan = self.plan;
        let lanes: BTreeSet<Lane> = plan.ops.iter().map(|op| op.lane).collect();
        let program = |lane: Lane| {
            let own = |op: &usize| plan.ops[*op].lane == lane;
            (0..runs).flat_map(move |run| (0..plan.ops.len()).filter(own).map(move |op| (run, op))).collect()
        };
        let mut to_issue: BTreeMap<Lane, VecDeque<Instance>> =
            lanes.iter().map(|&lane| (lane, program(lane))).collect();
        let mut queues: BTreeMap<(usize, QueueId), Waiting> = BTreeMap::new();
        let (mut issued, mut finished) = (BTreeSet::new(), BTreeSet::new());
        let mut meetings: BTreeMap<Lane, usize> = BTreeMap::new();
        // Some threads and queues are slow for a while.
        let mut slow: BTreeSet<usize> = BTreeSet::new();
        let mut idle = 0;
        loop {
            let (lane_count, queue_count) = (to_issue.len(), queues.len());
            if to_issue.values().all(VecDeque::is_empty) && queues.values().all(VecDeque::is_empty) {
                return;
            }
            idle += 1;
            assert!(idle < 20_000, "nothing goes on");
            if below(40) == 0 {
                slow = (0..lane_count + queue_count).filter(|_| below(3) == 0).collect();
            }
            let who = below(lane_count + queue_count);
            if slow.contains(&who) && below(30) > 0 {
                continue;
            }
            let is_over = |(run, number): Instance, finished: &BTreeSet<Instance>, issued: &BTreeSet<Instance>| {
                let op = &plan.ops[number];
                let earlier = op.across.iter().filter(|across| across.runs <= run);
                let earlier = earlier.map(|across| (run - across.runs, across.op.0));
                op.after.iter().map(|after| (run, after.0)).chain(earlier).all(|before| {
                    // A number that is only captured is captured when the launch is issued.
                    let captured = matches!(plan.ops[before.1].action, Action::Launch { .. })
                        && matches!(op.action, Action::Compute { .. } | Action::Fold { .. })
                        && !rows_of(op).iter().any(|slot| written(&plan.ops[before.1]).contains(slot));
                    if captured { issued.contains(&before) } else { finished.contains(&before) }
                })
            };
            if who < lane_count {
                let (&lane, program) = to_issue.iter_mut().nth(who).unwrap();
                let Some(&instance) = program.front() else { continue };
                let op = &plan.ops[instance.1];
                if matches!(op.action, Action::Barrier) {
                    let own = (0..=instance.0).flat_map(|run| (0..plan.ops.len()).map(move |op| (run, op)));
                    let mut own =
                        own.take_while(|other| *other != instance).filter(|other| plan.ops[other.1].lane == lane);
                    if !own.all(|other| finished.contains(&other)) {
                        continue;
                    }
                    // The thread waits here until all others have come as far.
                    let count = *meetings.entry(lane).or_default();
                    let all_here = lanes.iter().all(|other| {
                        *other == lane
                            || meetings.get(other).copied().unwrap_or(0) > count
                            || (meetings.get(other).copied().unwrap_or(0) == count
                                && self.stands_at_barrier(&plan.ops, *other, &issued, &finished, runs))
                    });
                    if !all_here {
                        continue;
                    }
                    *meetings.get_mut(&lane).unwrap() += 1;
                    to_issue.get_mut(&lane).unwrap().pop_front();
                    issued.insert(instance);
                    finished.insert(instance);
                    idle = 0;
                    continue;
                }
                if op.action.is_on_host() {
                    if is_over(instance, &finished, &issued) {
                        program.pop_front();
                        self.perform(op, instance.0, &[]);
                        issued.insert(instance);
                        finished.insert(instance);
                        idle = 0;
                    }
                    continue;
                }
                // A thread waits for what the host does, and captures numbers.
                let host = |before: &&crate::plan::OpId| plan.ops[before.0].action.is_on_host();
                let here = op.after.iter().filter(host).all(|after| finished.contains(&(instance.0, after.0)));
                let earlier = op.across.iter().filter(|across| across.runs <= instance.0 && host(&&across.op));
                if here && earlier.clone().all(|across| finished.contains(&(instance.0 - across.runs, across.op.0))) {
                    program.pop_front();
                    let captured = self.captured(op);
                    queues.entry((op.device, op.queue)).or_default().push_back((instance, captured));
                    issued.insert(instance);
                    idle = 0;
                }
            } else {
                let queue = queues.values_mut().nth(who - lane_count).unwrap();
                let Some((instance, _)) = queue.front() else { continue };
                let instance = *instance;
                if is_over(instance, &finished, &issued) {
                    let (_, captured) = queue.pop_front().unwrap();
                    self.perform(&plan.ops[instance.1], instance.0, &captured);
                    finished.insert(instance);
                    idle = 0;
                }
            }
        }
    }

    /// Whether all that a lane has to do before its next barrier is finished.
    fn stands_at_barrier(
        &self,
        ops: &[Op],
        lane: Lane,
        issued: &BTreeSet<Instance>,
        finished: &BTreeSet<Instance>,
        runs: usize,
    ) -> bool {
        let all = (0..runs).flat_map(|run| (0..ops.len()).map(move |op| (run, op)));
        for instance in all.filter(|instance| ops[instance.1].lane == lane) {
            if !issued.contains(&instance) {
                return matches!(ops[instance.1].action, Action::Barrier);
            }
            if !finished.contains(&instance) {
                return false;
            }
        }
        true
    }
}

fn rows_of(op: &Op) -> Vec<Slot> {
    match &op.action {
        Action::Fold { rows, .. } => rows.iter().map(|rows| rows.slot).collect(),
        _ => Vec::new(),
    }
}

fn written(op: &Op) -> Vec<Slot> {
    match &op.action {
        Action::Launch { outputs, .. } => outputs.clone(),
        _ => Vec::new(),
    }
}

/// A case drawn at random.
struct Case {
    shapes: Vec<Shape>,
    stages: Vec<Stage>,
    plan: Plan,
    ghosts: BTreeMap<FieldId, crate::boundary::Widths>,
}

const SCALARS: usize = 3;
const RECORDS: usize = 2;

fn random_case(below: &mut impl FnMut(usize) -> usize, planes: usize) -> Case {
    let kinds = [Face::Constant(99), Face::Clamp, Face::Even];
    let pair = |below: &mut dyn FnMut(usize) -> usize| match below(5) {
        0 => [Face::Fixed; 2],
        1 | 2 => [Face::Periodic; 2],
        3 => [Face::Fixed, kinds[below(3)]],
        _ => [kinds[below(3)], kinds[below(3)]],
    };
    let same = below(2) == 0;
    let mut faces = [pair(below), [Face::Fixed; 2], pair(below)];
    let mut shapes = Vec::new();
    for (number, name) in ["u", "v", "w"].into_iter().enumerate() {
        if !same {
            faces = [pair(below), [Face::Fixed; 2], pair(below)];
        }
        // The last field is staggered now and then.
        let more = if number == 2 { below(3) } else { 1 };
        let cells = [2, 1, (planes + more - 1).max(1)];
        shapes.push(Shape { name: name.into(), ty: ScalarType::U64, axes: [true; 3], cells, faces });
    }
    for name in ["rows 0", "rows 1", "rows 2", "rows 3"] {
        let cells = [1, 1, planes + 1];
        let faces = crate::boundary::Faces::default();
        shapes.push(Shape { name: name.into(), ty: ScalarType::U64, axes: crate::layout::ROWS, cells, faces });
    }
    let mut rows = 3;
    let mut stages = Vec::new();
    for _ in 0..1 + below(4) {
        let stage = random_stage(below, &shapes, &mut rows);
        let alone = [stage];
        if schedule::ghosts(&alone, &shapes).is_ok() {
            stages.extend(alone);
        }
    }
    let ghosts = schedule::ghosts(&stages, &shapes).unwrap();
    let plan = schedule::plan(&stages, &shapes, &ghosts);
    Case { shapes, stages, plan, ghosts }
}

fn random_stage(below: &mut impl FnMut(usize) -> usize, shapes: &[Shape], rows: &mut u32) -> Stage {
    let scalar = |below: &mut dyn FnMut(usize) -> usize| ScalarId(below(SCALARS) as u32);
    match below(12) {
        0 => {
            let (one, other) = (below(3), below(3));
            let alike = one != other && shapes[one].cells == shapes[other].cells;
            if alike { Stage::Swap(FIELDS[one], FIELDS[other]) } else { Stage::Swap(FIELDS[0], FIELDS[1]) }
        }
        1 => {
            let field = FIELDS[below(3)];
            let planes = shapes[field.0 as usize].cells[2];
            let points = (0..2).map(|_| ([below(2) as i64, 0, below(planes) as i64], 3)).collect();
            let amount = if below(2) == 0 { Operand::Bits(11) } else { Operand::Scalar(scalar(below)) };
            Stage::Inject { field, points, amount }
        }
        2 => Stage::Compute { function: 0, inputs: vec![scalar(below), scalar(below)], output: scalar(below) },
        3 => {
            let field = FIELDS[below(3)];
            let planes = shapes[field.0 as usize].cells[2];
            let points = (0..3).map(|_| [below(2) as i64, 0, below(planes) as i64]).collect();
            Stage::Probe { field, points, record: 0 }
        }
        4 => Stage::Record { scalar: scalar(below), record: 1 },
        _ => Stage::Update(random_update(below, shapes, rows)),
    }
}

fn random_update(below: &mut impl FnMut(usize) -> usize, shapes: &[Shape], rows: &mut u32) -> Update {
    let kernel = &KERNELS[below(KERNELS.len())];
    let fields: Vec<_> = kernel.fields.iter().map(|_| FIELDS[below(3)]).collect();
    let first = below(3);
    let mut outputs = Vec::new();
    for (number, output) in kernel.outputs.iter().enumerate() {
        outputs.push(if output.role == Role::Value {
            Output::Field(FIELDS[(first + number) % 3])
        } else {
            *rows += 1;
            Output::Fold { scalar: ScalarId(below(SCALARS) as u32), rows: vec![FieldId((*rows - 1).min(6)); 1] }
        });
    }
    let planes = fields.iter().chain(outputs.iter().filter_map(|output| match output {
        Output::Field(field) => Some(field),
        Output::Fold { .. } => None,
    }));
    let most = planes.map(|field| shapes[field.0 as usize].cells[2]).min().unwrap_or(0) as i64;
    let (mut lo, mut hi) = ([0, 0, 0], [2, 1, most]);
    if below(3) == 0 {
        (lo[2], hi[2]) = (below(most as usize) as i64, most - below(most as usize / 2 + 1) as i64);
    }
    if below(4) == 0 {
        (lo[0], hi[0]) = (below(2) as i64, 1 + below(2) as i64);
    }
    let mut update = Update {
        kernel,
        fields,
        scalars: if below(3) == 0 { vec![Operand::Scalar(ScalarId(below(SCALARS) as u32))] } else { Vec::new() },
        outputs,
        boxes: vec![Box3 { lo, hi }],
        parity: [None, None, Some(0), Some(1)][below(4)],
    };
    // Where a face is fixed, only points of which all reads are defined.
    let read: Vec<_> = update.fields.iter().map(|field| &shapes[field.0 as usize]).collect();
    if let Ok(widest) = crate::halo::widest_range(kernel, &read, &update.boxes[0]) {
        update.boxes = vec![update.boxes[0].intersection(&widest)];
    }
    update
}

/// What a case comes to on one grid.
fn start(case: &Case) -> Grid {
    let field = |(number, shape): (usize, &Shape)| {
        let value = |cell: Cell| 1000 * number as u64 + cell[0] as u64 + 10 * cell[2] as u64;
        cells(&shape.whole(), None, 0).into_iter().map(|cell| (cell, value(cell))).collect()
    };
    Grid {
        shapes: case.shapes.clone(),
        fields: case.shapes.iter().enumerate().map(field).collect(),
        scalars: vec![5, 6, 7],
        records: vec![Vec::new(); RECORDS],
    }
}

/// Devices with the same values; what they don't own is worthless.
fn machine<'a>(case: &Case, made: &'a Distributed, split: &'a Split, grid: &Grid, runs: usize) -> Machine<'a> {
    let widths = crate::step::widths(&case.shapes, split, &case.ghosts, &made.stored);
    let groups = schedule::groups(&case.stages);
    let mut memory = BTreeMap::new();
    for (number, shape) in case.shapes.iter().enumerate() {
        let field = FieldId(number as u32);
        let group = |other: FieldId| groups.get(&other).copied().unwrap_or(other);
        for device in 0..split.parts() {
            let mut own = shape.whole();
            let owned = split.owned(device, shape);
            (own.lo[2], own.hi[2]) = (split.start(device), owned.1.max(split.start(device)));
            let mut stored = own;
            for (other, each) in &widths {
                if group(*other) == group(field) {
                    stored = stored.hull(&crate::shape::grown(&own, &each[device]));
                }
            }
            let down = |cell: Cell| plus(cell, [0, 0, -split.start(device)]);
            let fresh = |differs: &[Box3]| -> BTreeMap<Cell, u64> {
                let value = |cell: &Cell| {
                    let is_known = own.holds(*cell) && !differs.iter().any(|part| part.holds(*cell));
                    if is_known { grid.fields[number][cell] } else { 0xbad_0000 + device as u64 }
                };
                cells(&stored, None, 0).iter().map(|cell| (down(*cell), value(cell))).collect()
            };
            let flow = made.plan.flows.iter().find(|flow| flow.field == field);
            let differs = flow.and_then(|flow| flow.presumes.as_ref()).map_or(&[][..], |presumes| presumes.boxes());
            memory.insert((device, field.current()), fresh(&[]));
            memory.insert((device, field.spare()), fresh(differs));
        }
    }
    let mut buffers = vec![BTreeMap::new()];
    for run in 0..runs {
        let mut next = buffers[run].clone();
        crate::demand::rotate(&mut next, &made.plan.rotation);
        buffers.push(next);
    }
    Machine {
        plan: &made.plan,
        split,
        memory,
        buffers,
        stagings: vec![Vec::new(); made.plan.stagings.len()],
        scalars: grid.scalars.clone(),
        records: grid.records.clone(),
    }
}

/// What a plan leaves that the stages don't mean, after some runs in a random order.
fn wrong(
    case: &Case,
    made: &Distributed,
    split: &Split,
    runs: usize,
    below: Option<&mut dyn FnMut(usize) -> usize>,
) -> Option<String> {
    let mut grid = start(case);
    let mut machine = machine(case, made, split, &grid, runs);
    for op in &made.plan.before {
        let captured = machine.captured(op);
        machine.perform(op, 0, &captured);
    }
    match below {
        Some(below) => machine.run(runs, below),
        None => machine.run_in_order(runs),
    }
    for _ in 0..runs as u64 * made.plan.steps {
        case.stages.iter().for_each(|stage| grid.stage(stage));
    }
    if (&machine.scalars, &machine.records) != (&grid.scalars, &grid.records) {
        return Some(format!("{:?}, not {:?}", (machine.scalars, machine.records), (grid.scalars, grid.records)));
    }
    for field in FIELDS {
        let shape = &case.shapes[field.0 as usize];
        for device in 0..split.parts() {
            let own = shape.whole().in_planes(split.owned(device, shape));
            for cell in cells(&own, None, 0) {
                let local = plus(cell, [0, 0, -split.start(device)]);
                let found = machine.buffer(runs, device, field.current())[&local];
                let expected = grid.fields[field.0 as usize][&cell];
                if found != expected {
                    return Some(format!("{field:?} at {cell:?} of device {device}: {found:x}, not {expected:x}"));
                }
            }
        }
    }
    None
}

fn split(planes: usize, parts: usize) -> Split {
    let extent = Extent::new([2, 1, planes]).unwrap();
    Split::of(&partition(extent, &vec![1.0; parts]).unwrap())
}

fn made(
    case: &Case,
    split: &Split,
    exchange: Exchange,
    reaches: &dyn Fn(usize, usize) -> bool,
    poisons: bool,
) -> Distributed {
    let recipe = exchange.recipe().unwrap();
    let setting = Setting { shapes: &case.shapes, split, recipe, reaches, poisons };
    distribute(case.plan.clone(), &setting)
}

const STRATEGIES: [Exchange; 7] = [
    Exchange::Synchronous,
    Exchange::Streamed,
    Exchange::Threaded,
    Exchange::PeerToPeer,
    Exchange::Neighbour,
    Exchange::Deep(2),
    Exchange::Deep(3),
];

#[test]
fn every_strategy_on_any_number_of_devices_means_what_the_stages_say_in_any_order() {
    let mut random = noise(17);
    let mut below = |n: usize| (random() * n as f64) as usize;
    for round in 0..1500 {
        let planes = 1 + below(12);
        let case = random_case(&mut below, planes);
        for exchange in STRATEGIES {
            let parts = 1 + below(planes.min(5));
            let split = split(planes, parts);
            // Some devices can't reach each other.
            let mask = below(8);
            let reaches = |from: usize, to: usize| mask == 0 || !(from + to).is_multiple_of(mask);
            let made = made(&case, &split, exchange, &reaches, below(2) == 0);
            for order in [None, Some(&mut below as &mut dyn FnMut(usize) -> usize)] {
                let name = if order.is_some() { "any order" } else { "in order" };
                let wrong = wrong(&case, &made, &split, 4, order);
                assert_eq!(
                    wrong,
                    None,
                    "round {round} {name}: {exchange} on {parts} devices, {planes} planes\n{:#?}\n{}",
                    case.stages,
                    made.plan.named(&["u", "v", "w"].map(String::from), &[])
                );
            }
        }
    }
}

/// A step of which every value counts, on fields with these faces along Z.
fn lively(number: usize, faces: [Face; 2], planes: usize) -> Case {
    let [u, v, w] = FIELDS;
    let shape = |name: &str, axes, x| Shape {
        name: name.into(),
        ty: ScalarType::U64,
        axes,
        cells: [x, 1, planes],
        faces: [[Face::Clamp; 2], [Face::Fixed; 2], faces],
    };
    let mut shapes: Vec<_> = ["u", "v", "w"].into_iter().map(|name| shape(name, [true; 3], 2)).collect();
    shapes.push(Shape { faces: Default::default(), ..shape("rows", crate::layout::ROWS, 1) });
    let update = |kernel: usize, fields: &[FieldId], outputs: Vec<Output>, scalars: Vec<Operand>, parity| {
        let kernel = &KERNELS[kernel];
        let read: Vec<_> = fields.iter().map(|field| &shapes[field.0 as usize]).collect();
        let part = crate::halo::widest_range(kernel, &read, &shapes[0].whole()).unwrap();
        Stage::Update(Update { kernel, fields: fields.to_vec(), scalars, outputs, boxes: vec![part], parity })
    };
    let plain = |kernel, fields: &[FieldId], to| update(kernel, fields, vec![Output::Field(to)], Vec::new(), None);
    let fold = || Output::Fold { scalar: ScalarId(0), rows: vec![FieldId(3)] };
    let scaled =
        |fields: &[FieldId], to| update(0, fields, vec![Output::Field(to)], vec![Operand::Scalar(ScalarId(1))], None);
    let compute = Stage::Compute { function: 0, inputs: vec![ScalarId(0), ScalarId(1)], output: ScalarId(1) };
    let stages = match number {
        0 => vec![plain(0, &[u], u)],
        1 => vec![plain(2, &[u, v], u), plain(0, &[u], v)],
        2 => vec![plain(4, &[u], v), update(6, &[v], vec![fold()], vec![], None), compute, scaled(&[v], u)],
        3 => vec![plain(2, &[u, v], w), Stage::Swap(u, w), Stage::Swap(v, w), plain(0, &[v], v)],
        4 => vec![
            Stage::Inject { field: u, points: vec![([1, 0, planes as i64 / 2], 3)], amount: Operand::Bits(5) },
            plain(0, &[u], u),
            Stage::Probe { field: u, points: vec![[0, 0, 2], [1, 0, planes as i64 - 2]], record: 0 },
        ],
        _ => vec![update(7, &[u], vec![Output::Field(u), fold()], vec![], None), compute, scaled(&[u], u)],
    };
    let ghosts = schedule::ghosts(&stages, &shapes).unwrap();
    let plan = schedule::plan(&stages, &shapes, &ghosts);
    Case { shapes, stages, plan, ghosts }
}

/// Plans with one wait less, each in many orders. Nearly all leave something wrong in one of them; the few others wait for
/// what is written with the value that it has, or at a corner that no kernel reads.
#[test]
fn a_plan_without_any_one_of_its_waits_goes_wrong() {
    let mut random = noise(23);
    let mut below = |n: usize| (random() * n as f64) as usize;
    let (mut caught, mut all) = (0, 0);
    for number in 0..6 {
        for faces in [[Face::Fixed; 2], [Face::Periodic; 2], [Face::Clamp, Face::Even]] {
            let case = lively(number, faces, 7 + number);
            let split = split(7 + number, 2 + number % 2);
            for exchange in STRATEGIES {
                let whole = made(&case, &split, exchange, &|from, to| from + to != 3, false);
                assert_eq!(wrong(&case, &whole, &split, 4, Some(&mut below)), None, "{exchange}");
                for less in without_one_wait(&whole) {
                    all += 1;
                    let shows = (0..100).any(|_| wrong(&case, &less, &split, 4, Some(&mut below)).is_some());
                    caught += usize::from(shows);
                }
            }
        }
    }
    assert!(all > 300 && caught * 100 >= all * 90, "{caught} of {all} missing waits showed");
}

/// A plan without its first wait, without its second, and so on.
fn without_one_wait(whole: &Distributed) -> Vec<Distributed> {
    let mut all = Vec::new();
    for (number, op) in whole.plan.ops.iter().enumerate() {
        for wait in 0..op.after.len() + op.across.len() {
            let mut less = whole.clone();
            let op = &mut less.plan.ops[number];
            if wait < op.after.len() {
                op.after.remove(wait);
            } else {
                op.across.remove(wait - op.after.len());
            }
            all.push(less);
        }
    }
    all
}
