//! A story on a device: the same acts through the interface that users have.

use std::path::PathBuf;

use polyhalo::prelude::{
    Boundary, FACES, Field, FieldX, FieldXY, FieldXZ, FieldY, FieldYZ, FieldZ, Offset, Points, Range, Record, Scalar,
    Simulation, Step, X, Y, Z,
};
use polyhalo::{Argument, Axes, Builder, Call, Error, IntoArgument, Stages};
use polyhalo_codegen::offline::private::Folder;

use super::catalogue::{each_step, functions, kernels};
use super::model::first_values;
use super::number::{Number, Ty};
use super::story::{Act, Face, FieldSpec, Operand, Part, RangeSpec, Stage, Story, Use};

/// A field of any type.
enum Handle {
    F64(Field<f64>),
    F32(Field<f32>),
    I32(Field<i32>),
    X(FieldX<f64>),
    Y(FieldY<f64>),
    Z(FieldZ<f64>),
    Xy(FieldXY<f64>),
    Xz(FieldXZ<f64>),
    Yz(FieldYZ<f64>),
}

/// A type of field that a story may have.
pub trait Held: Sized + 'static {
    /// The type of its cells.
    const TY: Ty;
    /// Along which axes it extends.
    const AXES: [bool; 3];

    #[doc(hidden)]
    fn of(handle: &dyn std::any::Any) -> Option<&Self> {
        handle.downcast_ref()
    }
}

impl<T: Number, A: Axes> Held for Field<T, A> {
    const TY: Ty = T::TY;
    const AXES: [bool; 3] = A::AXES;
}

/// Does something with a field, whatever its type is.
macro_rules! with {
    ($handle:expr, $field:ident => $act:expr) => {
        match $handle {
            Handle::F64($field) => $act,
            Handle::F32($field) => $act,
            Handle::I32($field) => $act,
            Handle::X($field) => $act,
            Handle::Y($field) => $act,
            Handle::Z($field) => $act,
            Handle::Xy($field) => $act,
            Handle::Xz($field) => $act,
            Handle::Yz($field) => $act,
        }
    };
}

/// A scalar of any type.
#[derive(Clone)]
#[allow(missing_docs, reason = "the types")]
pub enum Value {
    F64(Scalar<f64>),
    F32(Scalar<f32>),
    I32(Scalar<i32>),
    I64(Scalar<i64>),
}

macro_rules! value {
    ($($of:ident $ty:ty),+) => {$(
        impl From<Scalar<$ty>> for Value {
            fn from(scalar: Scalar<$ty>) -> Self {
                Value::$of(scalar)
            }
        }
    )+};
}

value!(F64 f64, F32 f32, I32 i32, I64 i64);

/// What a step wrote down.
enum Written {
    F64(Record<f64>),
    F32(Record<f32>),
    I32(Record<i32>),
    I64(Record<i64>),
}

/// A simulation in the course of a story.
pub struct Live {
    simulation: Simulation,
    fields: Vec<Handle>,
    scalars: Vec<Value>,
    records: Vec<Written>,
    steps: Vec<Step>,
}

/// All values of a simulation as bits.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Of each field, X fastest.
    pub fields: Vec<Vec<u64>>,
    /// The scalars.
    pub scalars: Vec<u64>,
    /// The records, row after row.
    pub records: Vec<Vec<u64>>,
}

impl Live {
    /// A field.
    ///
    /// # Panics
    /// When it has another type.
    pub fn field<F: Held>(&self, number: usize) -> &F {
        with!(&self.fields[number], field => F::of(field)).expect("stories use fields of the right type")
    }

    /// A scalar.
    ///
    /// # Panics
    /// When it has another type.
    pub fn scalar<T: Number>(&self, number: usize) -> &Scalar<T> {
        let any: &dyn std::any::Any = match &self.scalars[number] {
            Value::F64(scalar) => scalar,
            Value::F32(scalar) => scalar,
            Value::I32(scalar) => scalar,
            Value::I64(scalar) => scalar,
        };
        any.downcast_ref().expect("stories use scalars of the right type")
    }

    /// An argument for a scalar parameter.
    pub fn argument<T: Number>(&self, operand: Operand) -> Argument<T> {
        match operand {
            Operand::Word(word) => T::of_word(word).into_argument(),
            Operand::Scalar(number) => self.scalar::<T>(number).into_argument(),
        }
    }

    /// The simulation of a story before anything is done.
    pub fn new(story: &Story, device: &Builder) -> Result<Self, Error> {
        let simulation = device.clone().build()?;
        let mut fields = Vec::new();
        for (number, spec) in story.fields.iter().enumerate() {
            fields.push(field(&simulation, &format!("f{number}"), spec)?);
        }
        let mut scalars = Vec::new();
        for (number, &(ty, word)) in story.scalars.iter().enumerate() {
            let name = format!("s{number}");
            scalars.push(match ty {
                Ty::F64 => simulation.scalar(&name, f64::of_word(word))?.into(),
                Ty::F32 => simulation.scalar(&name, f32::of_word(word))?.into(),
                Ty::I32 => simulation.scalar(&name, i32::of_word(word))?.into(),
                Ty::I64 => simulation.scalar(&name, i64::of_word(word))?.into(),
            });
        }
        Ok(Self { simulation, fields, scalars, records: Vec::new(), steps: Vec::new() })
    }

    /// Does one thing that is no checkpoint.
    fn act(&mut self, story: &Story, act: &Act) -> Result<(), Error> {
        match act {
            Act::Nothing | Act::Checkpoint | Act::Restore { .. } => Ok(()),
            Act::Boundary { field, faces } => {
                // Both faces of an axis become periodic at once, and stop to be at once.
                let mut axes = faces.iter().enumerate();
                axes.try_for_each(|(axis, faces)| with_whole(&self.fields[*field], axis, *faces))
            }
            Act::Make(stages) => {
                let step = self.make(stages)?;
                self.steps.push(step);
                Ok(())
            }
            Act::Refuse(stages, variants) => {
                let before = (self.scalars.len(), self.records.len());
                let made = self.make(stages);
                self.scalars.truncate(before.0);
                self.records.truncate(before.1);
                match made {
                    Ok(_) => panic!("a step is accepted that must be refused as {variants:?}"),
                    Err(error) => {
                        let variant = variant(&error);
                        assert!(variants.contains(&variant), "{error} ({variant}), but it should be {variants:?}");
                        Ok(())
                    }
                }
            }
            Act::Run { step, count } => self.simulation.run(&self.steps[*step], *count).map(|_| ()),
            Act::Set { field, seed } => set(&self.fields[*field], &story.fields[*field], *seed),
            Act::SetScalar { scalar, word } => match &self.scalars[*scalar] {
                Value::F64(scalar) => scalar.set(f64::of_word(*word)),
                Value::F32(scalar) => scalar.set(f32::of_word(*word)),
                Value::I32(scalar) => scalar.set(i32::of_word(*word)),
                Value::I64(scalar) => scalar.set(i64::of_word(*word)),
            },
        }
    }

    fn make(&mut self, stages: &[Stage]) -> Result<Step, Error> {
        let simulation = self.simulation.clone();
        simulation.step(|recorder| stages.iter().for_each(|stage| self.stage(recorder, stage)))
    }

    fn stage(&mut self, recorder: &mut Stages, stage: &Stage) {
        match stage {
            Stage::Stand(types) => {
                for ty in types {
                    self.scalars.push(match ty {
                        Ty::F64 => recorder.compute((), |()| 0.0_f64).into(),
                        Ty::F32 => recorder.compute((), |()| 0.0_f32).into(),
                        Ty::I32 => recorder.compute((), |()| 0_i32).into(),
                        Ty::I64 => recorder.compute((), |()| 0_i64).into(),
                    });
                }
            }
            Stage::Update(used) => (kernels()[used.fixture].update)(recorder, self, used),
            Stage::Reduce(used) => {
                let reduce = kernels()[used.fixture].reduce.expect("stories reduce with kernels that only fold");
                let made = reduce(recorder, self, used);
                self.scalars.extend(made);
            }
            Stage::Swap(one, other) => match (&self.fields[*one], &self.fields[*other]) {
                (Handle::F64(one), Handle::F64(other)) => recorder.swap(one, other),
                (Handle::F32(one), Handle::F32(other)) => recorder.swap(one, other),
                (Handle::I32(one), Handle::I32(other)) => recorder.swap(one, other),
                _ => unreachable!("stories swap fields of one type"),
            },
            Stage::Assign { to, function, inputs } => (functions()[*function].assign)(recorder, self, *to, inputs),
            Stage::Compute { function, inputs } => {
                let made = (functions()[*function].compute)(recorder, self, inputs);
                self.scalars.push(made);
            }
            Stage::EachStep(ty) => self.scalars.push(match ty {
                Ty::F64 => recorder.each_step(|step| f64::of_word(each_step(Ty::F64, step))).into(),
                Ty::F32 => recorder.each_step(|step| f32::of_word(each_step(Ty::F32, step))).into(),
                Ty::I32 => recorder.each_step(|step| i32::of_word(each_step(Ty::I32, step))).into(),
                Ty::I64 => recorder.each_step(|step| i64::of_word(each_step(Ty::I64, step))).into(),
            }),
            Stage::Inject { field, points, amount } => {
                let points = Points::weighted(points.iter().copied());
                match &self.fields[*field] {
                    Handle::F64(field) => recorder.inject(field, points, self.argument::<f64>(*amount)),
                    Handle::F32(field) => recorder.inject(field, points, self.argument::<f32>(*amount)),
                    Handle::I32(field) => recorder.inject(field, points, self.argument::<i32>(*amount)),
                    _ => unreachable!("stories inject into whole fields"),
                }
            }
            Stage::Probe { field, points } => self.records.push(match &self.fields[*field] {
                Handle::F64(field) => Written::F64(recorder.probe(field, points.clone())),
                Handle::F32(field) => Written::F32(recorder.probe(field, points.clone())),
                Handle::I32(field) => Written::I32(recorder.probe(field, points.clone())),
                _ => unreachable!("stories probe whole fields"),
            }),
            Stage::Record(scalar) => self.records.push(match &self.scalars[*scalar] {
                Value::F64(scalar) => Written::F64(recorder.record(scalar)),
                Value::F32(scalar) => Written::F32(recorder.record(scalar)),
                Value::I32(scalar) => Written::I32(recorder.record(scalar)),
                Value::I64(scalar) => Written::I64(recorder.record(scalar)),
            }),
        }
    }

    /// All values.
    fn snapshot(&self) -> Result<Snapshot, Error> {
        let fields = self.fields.iter().map(|handle| with!(handle, field => words(field)));
        let scalars = self.scalars.iter().map(|scalar| match scalar {
            Value::F64(scalar) => scalar.get().map(Number::word),
            Value::F32(scalar) => scalar.get().map(Number::word),
            Value::I32(scalar) => scalar.get().map(Number::word),
            Value::I64(scalar) => scalar.get().map(Number::word),
        });
        let records = self.records.iter().map(|record| match record {
            Written::F64(record) => record.read().map(|values| values.iter().map(|value| value.word()).collect()),
            Written::F32(record) => record.read().map(|values| values.iter().map(|value| value.word()).collect()),
            Written::I32(record) => record.read().map(|values| values.iter().map(|value| value.word()).collect()),
            Written::I64(record) => record.read().map(|values| values.iter().map(|value| value.word()).collect()),
        });
        Ok(Snapshot {
            fields: fields.collect::<Result<_, _>>()?,
            scalars: scalars.collect::<Result<_, _>>()?,
            records: records.collect::<Result<_, _>>()?,
        })
    }
}

/// The name of a variant that stories expect.
fn variant(error: &Error) -> &'static str {
    match error {
        Error::GridTooSmall { .. } => "GridTooSmall",
        Error::NoFace { .. } => "NoFace",
        Error::RangeOutside { .. } => "RangeOutside",
        Error::RangesDiffer { .. } => "RangesDiffer",
        Error::RangesOverlap { .. } => "RangesOverlap",
        Error::ReadsBeyond { .. } => "ReadsBeyond",
        Error::WrittenTwice { .. } => "WrittenTwice",
        _ => "another one",
    }
}

/// A field filled with its first values.
fn field(simulation: &Simulation, name: &str, spec: &FieldSpec) -> Result<Handle, Error> {
    let handle = match (spec.ty, spec.axes) {
        (Ty::F64, [true, true, true]) => Handle::F64(simulation.staggered(name, spec.cells, |_: _| 0.0)?),
        (Ty::F32, [true, true, true]) => Handle::F32(simulation.staggered(name, spec.cells, |_: _| 0.0)?),
        (Ty::I32, [true, true, true]) => Handle::I32(simulation.staggered(name, spec.cells, |_: _| 0)?),
        (Ty::F64, [true, false, false]) => Handle::X(simulation.field_x(name, |_: _| 0.0)?),
        (Ty::F64, [false, true, false]) => Handle::Y(simulation.field_y(name, |_: _| 0.0)?),
        (Ty::F64, [false, false, true]) => Handle::Z(simulation.field_z(name, |_: _| 0.0)?),
        (Ty::F64, [true, true, false]) => Handle::Xy(simulation.field_xy(name, |_: _| 0.0)?),
        (Ty::F64, [true, false, true]) => Handle::Xz(simulation.field_xz(name, |_: _| 0.0)?),
        (Ty::F64, [false, true, true]) => Handle::Yz(simulation.field_yz(name, |_: _| 0.0)?),
        other => unreachable!("stories have no fields like {other:?}"),
    };
    set(&handle, spec, spec.seed)?;
    Ok(handle)
}

fn set(handle: &Handle, spec: &FieldSpec, seed: u64) -> Result<(), Error> {
    fn fill<T: Number, A: Axes>(field: &Field<T, A>, words: &[u64]) -> Result<(), Error> {
        let [nx, ny, _] = field.cells();
        field.set(|p: polyhalo::Point| {
            let [i, j, k] = [p.i, p.j, p.k].map(|index| index as usize);
            T::of_word(words[(k * ny + j) * nx + i])
        })
    }
    let words = first_values(spec, seed);
    with!(handle, field => fill(field, &words))
}

fn words<T: Number, A: Axes>(field: &Field<T, A>) -> Result<Vec<u64>, Error> {
    Ok(field.read()?.iter().map(|value| value.word()).collect())
}

/// Sets the faces of an axis.
fn with_whole(handle: &Handle, axis: usize, sides: [Face; 2]) -> Result<(), Error> {
    fn set<T: Number>(field: &Field<T>, axis: usize, sides: [Face; 2]) -> Result<(), Error> {
        let faces = [FACES[2 * axis], FACES[2 * axis + 1]];
        let boundary = |face| match face {
            Face::Fixed => Boundary::Fixed,
            Face::Constant(word) => Boundary::Constant(T::of_word(word)),
            Face::Periodic => Boundary::Periodic,
            Face::Clamp => Boundary::Clamp,
            Face::Even => Boundary::Even,
            Face::Odd => Boundary::Odd,
        };
        field.boundary(faces, boundary(if sides[0] == Face::Periodic { sides[0] } else { Face::Fixed }))?;
        if sides[0] == Face::Periodic {
            return Ok(());
        }
        field.boundary(faces[0], boundary(sides[0]))?;
        field.boundary(faces[1], boundary(sides[1]))
    }
    match handle {
        Handle::F64(field) => set(field, axis, sides),
        Handle::F32(field) => set(field, axis, sides),
        Handle::I32(field) => set(field, axis, sides),
        _ => unreachable!("only whole fields have boundaries"),
    }
}

impl Use {
    /// A call over the ranges of this use.
    pub fn narrowed<T>(&self, call: Call<T>) -> Call<T> {
        match &self.ranges[..] {
            [] => call,
            [one] => call.over(one.range()),
            several => call.over(several.iter().map(RangeSpec::range).collect::<Vec<_>>()),
        }
    }
}

impl RangeSpec {
    fn range(&self) -> Range {
        let direction = |[x, y, z]: [i32; 3]| -> Offset { x * X + y * Y + z * Z };
        let range = match self.part {
            Part::All => Range::all(),
            Part::Interior(margin) => Range::interior(margin),
            Part::Face(outward) => Range::face(direction(outward)),
            Part::Boxed(lo, hi) => Range::boxed(lo, hi),
            Part::Spans([x, y, z]) => {
                let mut range = Range::widest();
                if let Some((lo, hi)) = x {
                    range = match hi {
                        Some(hi) => range.x(lo..hi),
                        None => range.x(lo..),
                    };
                }
                if let Some((lo, hi)) = y {
                    range = match hi {
                        Some(hi) => range.y(lo..hi),
                        None => range.y(lo..),
                    };
                }
                if let Some((lo, hi)) = z {
                    range = match hi {
                        Some(hi) => range.z(lo..hi),
                        None => range.z(lo..),
                    };
                }
                range
            }
            Part::Shell(depth, number) => Range::shell(depth)[number],
        };
        match self.parity {
            None => range,
            Some(0) => range.red(),
            Some(_) => range.black(),
        }
    }
}

/// What devices make of a story: all values after each run and each restart. A restart elsewhere is one on the other devices.
pub fn play(story: &Story, devices: &[Builder; 2]) -> Result<Vec<Snapshot>, String> {
    let told = |number: usize| move |error: Error| format!("act {number}: {error}");
    let folder = Folder::new().map_err(|error| error.to_string())?;
    let path: PathBuf = folder.path().join("checkpoint");
    let mut devices = devices.iter().cycle();
    let mut next = || devices.next().expect("there are two");
    let mut live = Live::new(story, next()).map_err(told(0))?;
    let mut snapshots = Vec::new();
    for (number, act) in story.acts.iter().enumerate() {
        let told = told(number);
        match act {
            Act::Checkpoint => live.simulation.checkpoint(&path).map_err(told)?,
            Act::Restore { elsewhere } => {
                if *elsewhere {
                    live = Live::new(story, next()).map_err(told)?;
                    for act in &story.acts[..number] {
                        if matches!(act, Act::Make(_) | Act::Refuse(..) | Act::Boundary { .. }) {
                            live.act(story, act).map_err(told)?;
                        }
                    }
                }
                live.simulation.restore(&path).map_err(told)?;
            }
            _ => live.act(story, act).map_err(told)?,
        }
        if matches!(act, Act::Run { .. } | Act::Restore { .. }) {
            snapshots.push(live.snapshot().map_err(told)?);
        }
    }
    Ok(snapshots)
}
