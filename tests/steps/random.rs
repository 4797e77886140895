//! Random stories.

use polyhalo_codegen::random::Random;

use super::catalogue::{Role, functions, kernels};
use super::model::Model;
use super::number::{Number, Ty};
use super::story::{Act, Face, Faces, FieldSpec, Operand, Part, RangeSpec, Stage, Story, Use};

/// Cells along an axis: thin ones, primes, sizes around those of blocks, rows and vectors.
const CELLS: [usize; 16] = [1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9, 11, 13, 16, 17, 33];

/// The most cells of a grid.
const MOST_CELLS: usize = 2500;

/// How often a stage is tried before a step does without it.
const TRIES: usize = 30;

/// A story for a seed: the same for the same.
pub fn story(seed: u64) -> Story {
    let random = &mut Random::new(seed);
    let cells = loop {
        let cells = [random.pick(&CELLS), random.pick(&CELLS), random.pick(&CELLS)];
        if cells.iter().product::<usize>() <= MOST_CELLS {
            break cells;
        }
    };
    let mut story = Story { cells, fields: fields(cells, random), scalars: Vec::new(), acts: Vec::new() };
    for ty in [Ty::F64, Ty::F64, Ty::F32, Ty::F32, Ty::I32, Ty::I64] {
        story.scalars.push((ty, small(ty, random)));
    }
    let mut model = Model::new(&story);
    for field in 0..story.fields.len() {
        if story.fields[field].axes == [true; 3] && !random.once_in(4) {
            let faces = faces(story.fields[field].ty, random);
            add(&mut story, &mut model, Act::Boundary { field, faces });
        }
    }
    for _ in 0..3 + random.below(10) {
        let act = act(&model, random);
        add(&mut story, &mut model, act);
    }
    if let Some(step) = model.steps().checked_sub(1) {
        add(&mut story, &mut model, Act::Run { step, count: 2 });
    }
    story
}

fn add(story: &mut Story, model: &mut Model, act: Act) {
    model.act(&act);
    story.acts.push(act);
}

/// An amount that keeps fields bounded.
fn small(ty: Ty, random: &mut Random) -> u64 {
    let small = (random.below(256) as f64 - 128.0) / 16384.0;
    match ty {
        Ty::F64 => small.word(),
        Ty::F32 => (small as f32).word(),
        Ty::I32 | Ty::I64 => ty.random(random),
    }
}

fn fields(cells: [usize; 3], random: &mut Random) -> Vec<FieldSpec> {
    let mut fields = Vec::new();
    for (ty, count) in [(Ty::F64, 4), (Ty::F32, 3), (Ty::I32, 2)] {
        for _ in 0..count {
            let mut own = cells;
            // Half of the fields are those of a staggered grid.
            if random.once_in(2) {
                own = cells.map(|cells| (cells + random.below(3)).saturating_sub(1).max(1));
            }
            fields.push(FieldSpec { ty, axes: [true; 3], cells: own, seed: random.bits() });
        }
    }
    for bits in [1, 2, 4, 3, 5, 6] {
        let axes = std::array::from_fn(|axis| bits >> axis & 1 == 1);
        let own = std::array::from_fn(|axis| if axes[axis] { cells[axis] } else { 1 });
        fields.push(FieldSpec { ty: Ty::F64, axes, cells: own, seed: random.bits() });
    }
    // The first field decides how all lie in memory.
    let first = random.below(fields.len());
    fields.swap(0, first);
    fields
}

fn faces(ty: Ty, random: &mut Random) -> Faces {
    let fixed_too = random.once_in(2);
    std::array::from_fn(|_| {
        if random.once_in(4) {
            return [Face::Periodic; 2];
        }
        std::array::from_fn(|_| match random.below(if fixed_too { 6 } else { 4 }) {
            0 => Face::Constant(ty.random(random)),
            1 => Face::Clamp,
            2 => Face::Even,
            3 => Face::Odd,
            _ => Face::Fixed,
        })
    })
}

fn act(model: &Model, random: &mut Random) -> Act {
    let fields = model.fields.len();
    match random.below(24) {
        _ if model.steps() == 0 => make(model, random),
        0..=3 => make(model, random),
        4 => {
            let whole: Vec<usize> = (0..fields).filter(|&field| model.is_whole(field)).collect();
            let field = random.pick(&whole);
            Act::Boundary { field, faces: faces(model.fields[field].ty, random) }
        }
        5 | 6 => Act::Set { field: random.below(fields), seed: random.bits() },
        7 => {
            let scalar = random.below(model.scalars.len());
            Act::SetScalar { scalar, word: small(model.scalars[scalar].0, random) }
        }
        8 | 9 => Act::Checkpoint,
        10 | 11 if model.can_restore() => Act::Restore { elsewhere: random.once_in(2) },
        _ => Act::Run { step: random.below(model.steps()), count: random.below(4) as u64 },
    }
}

fn make(model: &Model, random: &mut Random) -> Act {
    let mut stages = Vec::new();
    // What the step has made so far.
    let mut so_far = model.clone();
    for _ in 0..1 + random.below(5) {
        for _ in 0..TRIES {
            let stage = stage(&so_far, random);
            let (Stage::Update(used) | Stage::Reduce(used)) = &stage else {
                so_far.scalars.extend(Model::made_by(&stage).into_iter().map(|ty| (ty, 0)));
                stages.push(stage);
                break;
            };
            match so_far.boxes(used, &so_far.faces()) {
                Ok(boxes) if boxes.iter().all(|part| part.count() == 0) && !random.once_in(6) => {}
                Ok(_) => {
                    so_far.scalars.extend(Model::made_by(&stage).into_iter().map(|ty| (ty, 0)));
                    stages.push(stage);
                    break;
                }
                Err(reasons) if random.once_in(40) => {
                    stages.push(stage);
                    return Act::Refuse(stages, reasons);
                }
                Err(_) => {}
            }
        }
    }
    Act::Make(stages)
}

fn stage(model: &Model, random: &mut Random) -> Stage {
    let whole: Vec<usize> = (0..model.fields.len()).filter(|&field| model.is_whole(field)).collect();
    let scalars_of =
        |ty: Ty| -> Vec<usize> { (0..model.scalars.len()).filter(|&scalar| model.scalars[scalar].0 == ty).collect() };
    match random.below(16) {
        0 | 1 => {
            let one = random.pick(&whole);
            let alike: Vec<usize> = whole.iter().copied().filter(|&other| model.are_alike(one, other)).collect();
            Stage::Swap(one, random.pick(&alike))
        }
        2 => {
            let number = random.below(functions().len());
            let function = &functions()[number];
            let inputs = function.inputs.iter().map(|ty| random.pick(&scalars_of(*ty))).collect();
            match random.below(2) {
                0 => Stage::Compute { function: number, inputs },
                _ => Stage::Assign { to: random.pick(&scalars_of(function.output)), function: number, inputs },
            }
        }
        3 => Stage::EachStep(random.pick(&[Ty::F64, Ty::F32, Ty::I32, Ty::I64])),
        4 => {
            let field = random.pick(&whole);
            let ty = model.fields[field].ty;
            let weights: &[f64] = if ty == Ty::I32 { &[1.0, -2.0, 3.0] } else { &[1.0, 0.25, -0.75] };
            let points = points(model, field, random).into_iter().map(|point| (point, random.pick(weights))).collect();
            Stage::Inject { field, points, amount: operand(model, ty, random) }
        }
        5 => {
            let field = random.pick(&whole);
            Stage::Probe { field, points: points(model, field, random) }
        }
        6 => Stage::Record(random.below(model.scalars.len())),
        _ => {
            let fixture = random.below(kernels().len());
            let kernel = &kernels()[fixture];
            let fields_of = |ty: Ty, axes: [bool; 3]| -> Vec<usize> {
                (0..model.fields.len()).filter(|&field| model.is_like(field, ty, axes)).collect()
            };
            let reduces = kernel.reduce.is_some() && random.once_in(2);
            let outputs: Vec<usize> = (kernel.outputs.iter())
                .map(|(role, ty)| match role {
                    Role::Value => random.pick(&fields_of(*ty, [true; 3])),
                    Role::Sum | Role::Max | Role::Min => random.pick(&scalars_of(*ty)),
                })
                .collect();
            let fields = kernel.fields.iter().map(|(ty, axes)| {
                // Often a field that is written.
                let mut own = kernel
                    .outputs
                    .iter()
                    .zip(&outputs)
                    .filter(|((role, of), _)| *role == Role::Value && of == ty && *axes == [true; 3]);
                match own.next() {
                    Some((_, field)) if random.once_in(2) => *field,
                    _ => random.pick(&fields_of(*ty, *axes)),
                }
            });
            let fields = fields.collect();
            let scalars = kernel.scalars.iter().map(|ty| operand(model, *ty, random)).collect();
            let outputs = if reduces { Vec::new() } else { outputs };
            let used = Use { fixture, fields, scalars, outputs, ranges: ranges(random) };
            if reduces { Stage::Reduce(used) } else { Stage::Update(used) }
        }
    }
}

fn operand(model: &Model, ty: Ty, random: &mut Random) -> Operand {
    let scalars: Vec<usize> = (0..model.scalars.len()).filter(|&scalar| model.scalars[scalar].0 == ty).collect();
    if random.once_in(2) { Operand::Word(small(ty, random)) } else { Operand::Scalar(random.pick(&scalars)) }
}

fn points(model: &Model, field: usize, random: &mut Random) -> Vec<[usize; 3]> {
    let cells = model.cells_of(field);
    (0..1 + random.below(3)).map(|_| cells.map(|cells| random.below(cells))).collect()
}

fn ranges(random: &mut Random) -> Vec<RangeSpec> {
    let parity = if random.once_in(4) { Some(random.below(2) as u8) } else { None };
    let one = |part| vec![RangeSpec { part, parity }];
    let index = |random: &mut Random| random.below(12) as i64 - 5;
    let span = |random: &mut Random| {
        let lo = index(random);
        (lo, if random.once_in(3) { None } else { Some(index(random)) })
    };
    match random.below(16) {
        0..=4 if parity.is_none() => Vec::new(),
        0..=4 => one(Part::Spans([None; 3])),
        5 => one(Part::All),
        6 | 7 => one(Part::Interior(random.below(4) as u32)),
        8 | 9 => one(Part::Face(std::array::from_fn(|_| random.pick(&[-1, 0, 0, 1])))),
        10 => one(Part::Boxed(std::array::from_fn(|_| index(random)), std::array::from_fn(|_| index(random)))),
        11 => {
            let depth = 1 + random.below(3) as u32;
            (0..6).map(|number| RangeSpec { part: Part::Shell(depth, number), parity }).collect()
        }
        12 => {
            // Two boxes side by side, perhaps with a gap, perhaps overlapping.
            let (axis, at) = (random.below(3), random.below(4) as i64);
            let part = |span| {
                let mut spans = [None; 3];
                spans[axis] = Some(span);
                RangeSpec { part: Part::Spans(spans), parity }
            };
            vec![part((0, Some(at))), part((at + random.below(3) as i64 - (random.below(8) / 7) as i64, None))]
        }
        _ => one(Part::Spans(std::array::from_fn(|_| if random.once_in(2) { Some(span(random)) } else { None }))),
    }
}
