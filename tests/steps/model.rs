//! What steps mean, as plainly as it can be said: a vector of values for each field, boundary values by their
//! definition, stages one after the other. It shares no code with the runtime.

use super::catalogue::{Fixture, Reads, Role, functions, kernels};
use super::number::{Number, Ty};
use super::story::{Act, Face, Faces, FieldSpec, Operand, Part, RangeSpec, Stage, Story, Use};
use polyhalo_codegen::random::Random;

/// A cell by its indices along X, Y and Z.
type Cell = [i64; 3];

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// The type of its cells.
    pub ty: Ty,
    axes: [bool; 3],
    cells: [usize; 3],
    /// The faces that the next recorded step obeys.
    faces: Faces,
    /// The bits of the values, X fastest.
    pub values: Vec<u64>,
}

/// The first values of a field.
pub fn first_values(spec: &FieldSpec, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..spec.cells.iter().product()).map(|_| spec.ty.random(&mut random)).collect()
}

impl Field {
    fn new(spec: &FieldSpec) -> Self {
        let FieldSpec { ty, axes, cells, seed } = *spec;
        Self { ty, axes, cells, faces: [[Face::Fixed; 2]; 3], values: first_values(spec, seed) }
    }

    /// The number of a cell inside.
    fn index(&self, cell: Cell) -> usize {
        let [x, y, z] = cell.map(|index| usize::try_from(index).expect("the cell is inside"));
        assert!(x < self.cells[0] && y < self.cells[1] && z < self.cells[2], "{cell:?} is outside {:?}", self.cells);
        (z * self.cells[1] + y) * self.cells[0] + x
    }

    /// The value that a read gives: beyond several faces, the boundary of the last axis speaks first.
    fn read(&self, faces: &Faces, cell: Cell) -> u64 {
        let cell: Cell = std::array::from_fn(|axis| if self.axes[axis] { cell[axis] } else { 0 });
        for axis in [2, 1, 0] {
            let cells = self.cells[axis] as i64;
            let (side, depth) = match cell[axis] {
                low if low < 0 => (0, -1 - low),
                high if high >= cells => (1, high - cells),
                _ => continue,
            };
            let inside = |depth: i64| {
                let mut inside = cell;
                inside[axis] = if side == 0 { depth } else { cells - 1 - depth };
                inside
            };
            return match faces[axis][side] {
                Face::Fixed => panic!("nothing lies beyond a fixed face"),
                Face::Constant(word) => word,
                Face::Periodic => {
                    let mut inside = cell;
                    inside[axis] = cell[axis].rem_euclid(cells);
                    self.read(faces, inside)
                }
                Face::Clamp => self.read(faces, inside(0)),
                Face::Even => self.read(faces, inside(depth)),
                Face::Odd => self.ty.negated(self.read(faces, inside(depth))),
            };
        }
        self.values[self.index(cell)]
    }
}

/// A step that was recorded.
#[derive(Clone, Debug)]
struct Made {
    stages: Vec<Stage>,
    /// The faces of all fields at that time.
    faces: Vec<Faces>,
    /// For each stage the first scalar and the first record that it made.
    made: Vec<(usize, usize)>,
}

/// A simulation.
#[derive(Clone, Debug)]
pub struct Model {
    cells: [usize; 3],
    /// The fields.
    pub fields: Vec<Field>,
    /// The types and bits of the scalars.
    pub scalars: Vec<(Ty, u64)>,
    /// What was written down, values of all points one after the other.
    pub records: Vec<Vec<u64>>,
    steps: Vec<Made>,
    counts: Vec<u64>,
    specs: Vec<FieldSpec>,
    /// The state at the last checkpoint.
    saved: Option<Box<Model>>,
}

/// Why a call is refused: the variants of the error that are right.
pub type Refused = Vec<&'static str>;

impl Model {
    /// The simulation of a story before anything is done.
    pub fn new(story: &Story) -> Self {
        Self {
            cells: story.cells,
            fields: story.fields.iter().map(Field::new).collect(),
            scalars: story.scalars.clone(),
            records: Vec::new(),
            steps: Vec::new(),
            counts: Vec::new(),
            specs: story.fields.clone(),
            saved: None,
        }
    }

    /// Does one thing.
    pub fn act(&mut self, act: &Act) {
        match act {
            Act::Nothing => {}
            Act::Refuse(stages, _) => {
                let mut trial = self.clone();
                let mistake = stages.split_last().is_some_and(|(last, others)| {
                    trial.make(others);
                    !trial.accepts(last)
                });
                assert!(mistake, "the last stage is no mistake");
            }
            Act::Boundary { field, faces } => self.fields[*field].faces = *faces,
            Act::Make(stages) => self.make(stages),
            Act::Run { step, count } => (0..*count).for_each(|_| self.step(*step)),
            Act::Set { field, seed } => self.fields[*field].values = first_values(&self.specs[*field], *seed),
            Act::SetScalar { scalar, word } => self.scalars[*scalar].1 = *word,
            Act::Checkpoint => self.saved = Some(Box::new(Self { saved: None, ..self.clone() })),
            Act::Restore { .. } => {
                let saved = self.saved.clone().expect("there is a checkpoint");
                *self = Self { saved: Some(saved.clone()), ..*saved };
            }
        }
    }

    /// Whether there is a checkpoint that still fits.
    pub fn can_restore(&self) -> bool {
        self.saved.as_ref().is_some_and(|saved| saved.steps.len() == self.steps.len())
    }

    /// Whether a field extends along all axes.
    pub fn is_whole(&self, field: usize) -> bool {
        self.fields[field].axes == [true; 3]
    }

    /// Whether a field has this type and these axes.
    pub fn is_like(&self, field: usize, ty: Ty, axes: [bool; 3]) -> bool {
        self.fields[field].ty == ty && self.fields[field].axes == axes
    }

    /// Whether two fields can be swapped.
    pub fn are_alike(&self, one: usize, other: usize) -> bool {
        self.is_like(one, self.fields[other].ty, self.fields[other].axes) && self.cells_of(one) == self.cells_of(other)
    }

    /// The cells of a field.
    pub fn cells_of(&self, field: usize) -> [usize; 3] {
        self.fields[field].cells
    }

    /// The number of steps that were recorded.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    fn accepts(&self, stage: &Stage) -> bool {
        match stage {
            Stage::Update(used) | Stage::Reduce(used) => self.boxes(used, &self.faces()).is_ok(),
            _ => true,
        }
    }

    /// The types of the scalars that a stage makes.
    pub fn made_by(stage: &Stage) -> Vec<Ty> {
        match stage {
            Stage::Stand(types) => types.clone(),
            Stage::Reduce(used) => kernels()[used.fixture].outputs.iter().map(|(_, ty)| *ty).collect(),
            Stage::Compute { function, .. } => vec![functions()[*function].output],
            Stage::EachStep(ty) => vec![*ty],
            Stage::Update(_) | Stage::Swap(..) | Stage::Assign { .. } => Vec::new(),
            Stage::Inject { .. } | Stage::Probe { .. } | Stage::Record(_) => Vec::new(),
        }
    }

    fn make(&mut self, stages: &[Stage]) {
        let mut made = Vec::new();
        for stage in stages {
            assert!(self.accepts(stage), "a stage is refused: {stage:?}");
            made.push((self.scalars.len(), self.records.len()));
            self.scalars.extend(Self::made_by(stage).into_iter().map(|ty| (ty, 0)));
            if matches!(stage, Stage::Probe { .. } | Stage::Record(_)) {
                self.records.push(Vec::new());
            }
        }
        let faces = self.fields.iter().map(|field| field.faces).collect();
        self.steps.push(Made { stages: stages.to_vec(), faces, made });
        self.counts.push(0);
    }

    fn step(&mut self, number: usize) {
        let Made { stages, faces, made } = self.steps[number].clone();
        for (stage, (scalar, record)) in stages.iter().zip(made) {
            self.stage(stage, &faces, scalar, record, self.counts[number]);
        }
        self.counts[number] += 1;
    }

    fn stage(&mut self, stage: &Stage, faces: &[Faces], scalar: usize, record: usize, count: u64) {
        match stage {
            Stage::Stand(types) => {
                (0..types.len()).for_each(|number| self.scalars[scalar + number].1 = 0);
            }
            Stage::Update(used) => self.update(used, faces, None),
            Stage::Reduce(used) => self.update(used, faces, Some(scalar)),
            Stage::Swap(one, other) => {
                let values = [*other, *one].map(|field| self.fields[field].values.clone());
                [self.fields[*one].values, self.fields[*other].values] = values;
            }
            Stage::Assign { to, function, inputs } => self.scalars[*to].1 = self.function(*function, inputs),
            Stage::Compute { function, inputs } => self.scalars[scalar].1 = self.function(*function, inputs),
            Stage::EachStep(ty) => self.scalars[scalar].1 = super::catalogue::each_step(*ty, count),
            Stage::Inject { field, points, amount } => {
                let amount = self.operand(*amount);
                for (point, weight) in points {
                    let field = &mut self.fields[*field];
                    let index = field.index(point.map(|index| index as i64));
                    field.values[index] = added(field.ty, field.values[index], *weight, amount);
                }
            }
            Stage::Probe { field, points } => {
                let field = &self.fields[*field];
                let values = points.iter().map(|point| field.values[field.index(point.map(|index| index as i64))]);
                self.records[record].extend(values);
            }
            Stage::Record(scalar) => self.records[record].push(self.scalars[*scalar].1),
        }
    }

    fn function(&self, function: usize, inputs: &[usize]) -> u64 {
        let inputs: Vec<_> = inputs.iter().map(|input| self.scalars[*input].1).collect();
        (functions()[function].plain)(&inputs)
    }

    fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Word(word) => word,
            Operand::Scalar(scalar) => self.scalars[scalar].1,
        }
    }

    /// An update whose folds go to the scalars from `fresh` on, or to those that it names.
    fn update(&mut self, used: &Use, faces: &[Faces], fresh: Option<usize>) {
        let fixture = &kernels()[used.fixture];
        let boxes = self.boxes(used, faces).expect("only calls that aren't refused run");
        let scalars: Vec<_> = used.scalars.iter().map(|operand| self.operand(*operand)).collect();
        // For each result, the values of each box by point.
        let mut results: Vec<Vec<Vec<(Cell, u64)>>> = vec![vec![Vec::new(); boxes.len()]; fixture.outputs.len()];
        for (number, part) in boxes.iter().enumerate() {
            for point in part.points() {
                let mut read = |parameter: usize, offset: [i32; 3]| {
                    let field = used.fields[parameter];
                    let cell = std::array::from_fn(|axis| point[axis] + i64::from(offset[axis]));
                    self.fields[field].read(&faces[field], cell)
                };
                let mut reads = Reads { read: &mut read, scalars: &scalars, point };
                let values = (fixture.twin)(&mut reads);
                assert_eq!(values.len(), results.len(), "{}", fixture.name);
                for (result, value) in results.iter_mut().zip(values) {
                    result[number].push((point, value));
                }
            }
        }
        for (number, ((role, ty), boxes)) in fixture.outputs.iter().zip(results).enumerate() {
            let target = fresh.map_or_else(|| used.outputs[number], |fresh| fresh + number);
            if *role == Role::Value {
                for (point, value) in boxes.into_iter().flatten() {
                    let field = &mut self.fields[target];
                    let index = field.index(point);
                    field.values[index] = value;
                }
            } else {
                self.scalars[target].1 = fold(*role, *ty, &boxes);
            }
        }
    }

    /// The boxes of a call, or why it is refused.
    pub fn boxes(&self, used: &Use, faces: &[Faces]) -> Result<Vec<Points>, Refused> {
        let fixture = &kernels()[used.fixture];
        let mut refused = Vec::new();
        let written: Vec<usize> = (fixture.outputs.iter().zip(&used.outputs))
            .filter(|((role, _), _)| *role == Role::Value)
            .map(|(_, field)| *field)
            .collect();
        if (1..used.outputs.len()).any(|number| {
            let target = |number: usize| (fixture.outputs[number].0 == Role::Value, used.outputs[number]);
            (0..number).any(|other| target(other) == target(number))
        }) {
            refused.push("WrittenTwice");
        }
        let whole = |field: &usize| self.fields[*field].axes == [true; 3];
        let tells: Vec<usize> =
            if written.is_empty() { used.fields.iter().copied().filter(whole).collect() } else { written };
        let domain: [i64; 3] = std::array::from_fn(|axis| {
            let cells = tells.iter().map(|field| self.fields[*field].cells[axis]);
            cells.min().unwrap_or(self.cells[axis]) as i64
        });
        let reads = fixture.reads();
        // The points along an axis at which every read is defined.
        let defined = |axis: usize, index: i64| {
            reads.iter().all(|(parameter, offset)| {
                let (field, read) = (&self.fields[used.fields[*parameter]], index + i64::from(offset[axis]));
                let faces = &faces[used.fields[*parameter]][axis];
                !field.axes[axis]
                    || (read >= 0 || faces[0] != Face::Fixed)
                        && (read < field.cells[axis] as i64 || faces[1] != Face::Fixed)
            })
        };
        let widest: [Vec<i64>; 3] =
            std::array::from_fn(|axis| (0..domain[axis]).filter(|&index| defined(axis, index)).collect());
        let default = [RangeSpec { part: Part::Spans([None; 3]), parity: None }];
        let ranges = if used.ranges.is_empty() { &default[..] } else { &used.ranges };
        let asks = |range: &RangeSpec| (0..3).any(|axis| matches!(range.along(axis, domain[axis]), Along::Widest));
        if ranges.iter().any(asks) && widest.iter().any(Vec::is_empty) {
            refused.push("GridTooSmall");
        }
        let mut boxes: Vec<Points> = Vec::new();
        for range in ranges {
            let mut part = Points { axes: Default::default(), parity: range.parity };
            let along: [Along; 3] = std::array::from_fn(|axis| range.along(axis, domain[axis]));
            for axis in 0..3 {
                part.axes[axis] = match &along[axis] {
                    Along::Widest => widest[axis].clone(),
                    Along::Cells(cells) => cells.clone(),
                    Along::Outside => {
                        refused.push("RangeOutside");
                        Vec::new()
                    }
                };
            }
            if range.part == Part::Face([0; 3]) {
                refused.push("NoFace");
            }
            if boxes.iter().any(|other| other.meets(&part)) {
                refused.push("RangesOverlap");
            }
            if range.parity != ranges[0].parity {
                refused.push("RangesDiffer");
            }
            if !part.is_empty()
                && !reads.iter().all(|(parameter, offset)| {
                    let field = used.fields[*parameter];
                    self.fields[field].has(&faces[field], &part, *offset)
                })
            {
                refused.push("ReadsBeyond");
            }
            boxes.push(part);
        }
        if refused.is_empty() { Ok(boxes) } else { Err(refused) }
    }

    /// The faces that a step obeys that is recorded now.
    pub fn faces(&self) -> Vec<Faces> {
        self.fields.iter().map(|field| field.faces).collect()
    }
}

impl Field {
    /// Whether a read at an offset from each point of a box is defined.
    fn has(&self, faces: &Faces, part: &Points, offset: [i32; 3]) -> bool {
        (0..3).filter(|&axis| self.axes[axis]).all(|axis| {
            part.axes[axis].iter().all(|index| {
                let (read, cells) = (index + i64::from(offset[axis]), self.cells[axis] as i64);
                let beyond = (-read).max(read - cells + 1);
                match faces[axis][usize::from(read >= 0)] {
                    _ if beyond <= 0 => true,
                    Face::Fixed => false,
                    // A mirror shows no more than there is.
                    Face::Even | Face::Odd => beyond <= cells,
                    Face::Constant(_) | Face::Periodic | Face::Clamp => true,
                }
            })
        })
    }
}

/// The points of a box: indices along each axis.
#[derive(Clone, Debug)]
pub struct Points {
    axes: [Vec<i64>; 3],
    parity: Option<u8>,
}

impl Points {
    fn is_empty(&self) -> bool {
        self.axes.iter().any(Vec::is_empty)
    }

    fn meets(&self, other: &Self) -> bool {
        (0..3).all(|axis| self.axes[axis].iter().any(|index| other.axes[axis].contains(index)))
    }

    /// Its points, X fastest.
    fn points(&self) -> impl Iterator<Item = Cell> {
        let [x, y, z] = &self.axes;
        let cells = z.iter().flat_map(move |&z| y.iter().flat_map(move |&y| x.iter().map(move |&x| [x, y, z])));
        cells.filter(|cell| self.parity.is_none_or(|parity| cell.iter().sum::<i64>() % 2 == i64::from(parity)))
    }

    /// The number of points.
    pub fn count(&self) -> usize {
        self.points().count()
    }
}

/// What a range says of an axis.
enum Along {
    Widest,
    Cells(Vec<i64>),
    Outside,
}

impl RangeSpec {
    /// Along an axis with this number of cells.
    fn along(&self, axis: usize, cells: i64) -> Along {
        let only = |holds: &dyn Fn(i64) -> bool| Along::Cells((0..cells).filter(|&index| holds(index)).collect());
        let span = |lo: i64, hi: Option<i64>| {
            let from_end = |index: i64| if index < 0 { index + cells } else { index };
            let (first, end) = (from_end(lo), hi.map_or(cells, from_end));
            match first < end {
                true if first < 0 || end > cells => Along::Outside,
                true => Along::Cells((first..end).collect()),
                false => Along::Cells(Vec::new()),
            }
        };
        match self.part {
            Part::All => only(&|_| true),
            Part::Interior(margin) => only(&|index| index.min(cells - 1 - index) >= i64::from(margin)),
            Part::Face(direction) => match direction[axis] {
                0 => Along::Widest,
                1.. => only(&|index| index == cells - 1),
                _ => only(&|index| index == 0),
            },
            Part::Boxed(lo, hi) => span(lo[axis], Some(hi[axis])),
            Part::Spans(spans) => spans[axis].map_or(Along::Widest, |(lo, hi)| span(lo, hi)),
            Part::Shell(depth, number) => {
                let depth = i64::from(depth);
                let (low, high) = (move |index: i64| index < depth, move |index: i64| index >= cells - depth);
                // Two boxes on either side of Z, then of Y where those of Z are not, then of X.
                match (number / 2, axis) {
                    (own, axis) if own + axis == 2 && number % 2 == 0 => only(&low),
                    (own, axis) if own + axis == 2 => only(&|index| high(index) && !low(index)),
                    (own, axis) if own + axis > 2 => only(&|index| !low(index) && !high(index)),
                    _ => only(&|_| true),
                }
            }
        }
    }
}

/// A weighted amount added to a value.
fn added(ty: Ty, value: u64, weight: f64, amount: u64) -> u64 {
    match ty {
        Ty::F64 => (f64::of_word(value) + weight * f64::of_word(amount)).word(),
        Ty::F32 => (f32::of_word(value) + weight as f32 * f32::of_word(amount)).word(),
        Ty::I32 => i32::of_word(value).wrapping_add((weight as i32).wrapping_mul(i32::of_word(amount))).word(),
        Ty::I64 => unreachable!("no field has this type"),
    }
}

/// The fold of the values of boxes, in the documented order.
fn fold(role: Role, ty: Ty, boxes: &[Vec<(Cell, u64)>]) -> u64 {
    let words = || boxes.iter().flatten().map(|(_, word)| *word);
    match (role, ty) {
        (Role::Value, _) => unreachable!("values aren't folded"),
        (Role::Sum, Ty::F64) => sum(boxes, f64::of_word).word(),
        (Role::Sum, Ty::F32) => (sum(boxes, |word| f32::of_word(word).into()) as f32).word(),
        (Role::Sum, Ty::I32 | Ty::I64) => {
            let total: i128 =
                words().map(|word| if ty == Ty::I32 { i32::of_word(word).into() } else { word as i64 as i128 }).sum();
            total as u64
        }
        (Role::Max, Ty::F64) => largest(words().map(f64::of_word)).word(),
        (Role::Max, Ty::F32) => (largest(words().map(|word| f32::of_word(word).into())) as f32).word(),
        (Role::Max, Ty::I32) => words().map(i32::of_word).max().unwrap_or(i32::MIN).word(),
        (Role::Max, Ty::I64) => words().map(i64::of_word).max().unwrap_or(i64::MIN).word(),
        (Role::Min, Ty::F64) => (-largest(words().map(|word| -f64::of_word(word))) + 0.0).word(),
        (Role::Min, Ty::F32) => ((-largest(words().map(|word| -f64::from(f32::of_word(word)))) + 0.0) as f32).word(),
        (Role::Min, Ty::I32) => words().map(i32::of_word).min().unwrap_or(i32::MAX).word(),
        (Role::Min, Ty::I64) => words().map(i64::of_word).min().unwrap_or(i64::MAX).word(),
    }
}

/// The largest number; not a number if one isn't; zeros are positive.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.fold(f64::NEG_INFINITY, |most, value| {
        if most.is_nan() || value.is_nan() {
            f64::NAN
        } else if value > most {
            value
        } else {
            most
        }
    });
    most + 0.0
}

/// Eight running sums by the index modulo 8, each with what rounding took; then these sums in order.
#[derive(Default)]
struct Lanes([(f64, f64); 8]);

impl Lanes {
    fn add(&mut self, index: i64, value: f64) {
        let (sum, lost) = &mut self.0[index.rem_euclid(8) as usize];
        let (next, rest) = exact(*sum, value);
        *sum = next;
        *lost += rest;
    }

    fn total(&self) -> f64 {
        let (mut sum, mut lost) = (0.0, 0.0);
        for (lane, lane_lost) in self.0 {
            let (next, rest) = exact(sum, lane);
            sum = next;
            lost += rest;
            lost += lane_lost;
        }
        if lost.is_finite() { sum + lost } else { sum }
    }
}

/// A sum and its rounding error.
fn exact(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_in_sum = sum - a;
    (sum, (a - (sum - b_in_sum)) + (b - b_in_sum))
}

/// Rows by X, planes by Y, the whole by Z; the boxes one after the other.
fn sum(boxes: &[Vec<(Cell, u64)>], value: impl Fn(u64) -> f64) -> f64 {
    let mut whole = Lanes::default();
    for values in boxes {
        let planes: std::collections::BTreeSet<i64> = values.iter().map(|(cell, _)| cell[2]).collect();
        for &z in &planes {
            let in_plane: Vec<_> = values.iter().filter(|(cell, _)| cell[2] == z).collect();
            let rows: std::collections::BTreeSet<i64> = in_plane.iter().map(|(cell, _)| cell[1]).collect();
            let mut plane = Lanes::default();
            for &y in &rows {
                let mut row = Lanes::default();
                in_plane
                    .iter()
                    .filter(|(cell, _)| cell[1] == y)
                    .for_each(|(cell, word)| row.add(cell[0], value(*word)));
                plane.add(y, row.total());
            }
            whole.add(z, plane.total());
        }
    }
    whole.total()
}

impl Fixture {
    /// What the kernel reads: parameters and offsets.
    pub fn reads(&self) -> Vec<(usize, [i32; 3])> {
        let mut found = Vec::new();
        let mut read = |parameter: usize, offset: [i32; 3]| {
            found.push((parameter, offset));
            0
        };
        let scalars = vec![0; self.scalars.len()];
        (self.twin)(&mut Reads { read: &mut read, scalars: &scalars, point: [0; 3] });
        found
    }
}
