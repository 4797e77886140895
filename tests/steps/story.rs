//! What happens to a simulation, as plain data: its fields, the steps that are recorded, and when they run.

use std::fmt;

use super::catalogue::kernels;
use super::number::Ty;

/// A simulation and all that is done to it.
#[derive(Clone, Debug)]
pub struct Story {
    /// Cells of the grid along X, Y and Z.
    pub cells: [usize; 3],
    /// The fields, by number.
    pub fields: Vec<FieldSpec>,
    /// The first scalars with their bits; steps may add others.
    pub scalars: Vec<(Ty, u64)>,
    /// What is done, in order.
    pub acts: Vec<Act>,
}

/// A field.
#[derive(Clone, Debug)]
pub struct FieldSpec {
    /// The type of its cells.
    pub ty: Ty,
    /// Along which axes it extends.
    pub axes: [bool; 3],
    /// Cells along X, Y and Z; 1 along an axis along which it doesn't extend.
    pub cells: [usize; 3],
    /// The seed of its first values.
    pub seed: u64,
}

/// What a read beyond a face gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Nothing.
    Fixed,
    /// The value with these bits.
    Constant(u64),
    /// The opposite side.
    Periodic,
    /// The nearest cell.
    Clamp,
    /// A mirror.
    Even,
    /// A mirror that changes the sign.
    Odd,
}

/// The faces of a field: axes by (low, high).
pub type Faces = [[Face; 2]; 3];

/// Something that is done.
#[derive(Clone, Debug)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// A field gets other boundaries; steps that are recorded later obey.
    Boundary {
        /// The field.
        field: usize,
        /// All its faces.
        faces: Faces,
    },
    /// A step is recorded.
    Make(Vec<Stage>),
    /// A step is recorded, but its last stage is a mistake, for which one of these variants of the error is right.
    Refuse(Vec<Stage>, Vec<&'static str>),
    /// A step runs.
    Run {
        /// The number of the step, of those that were recorded.
        step: usize,
        /// How often.
        count: u64,
    },
    /// A field gets other values.
    Set {
        /// The field.
        field: usize,
        /// Their seed.
        seed: u64,
    },
    /// A scalar gets another value.
    SetScalar {
        /// The scalar.
        scalar: usize,
        /// Its bits.
        word: u64,
    },
    /// A checkpoint is written.
    Checkpoint,
    /// The simulation goes back to the last checkpoint that fits.
    Restore {
        /// Whether another simulation, made alike, goes on from it instead.
        elsewhere: bool,
    },
}

/// A stage of a step.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Nothing but some scalars of these types, in the place of a stage that makes such.
    Stand(Vec<Ty>),
    /// `update`.
    Update(Use),
    /// `reduce`: makes a scalar for each result.
    Reduce(Use),
    /// `swap`.
    Swap(usize, usize),
    /// `assign`.
    Assign {
        /// The scalar.
        to: usize,
        /// The function, by its number in the catalogue.
        function: usize,
        /// Its arguments.
        inputs: Vec<usize>,
    },
    /// `compute`: makes a scalar.
    Compute {
        /// The function.
        function: usize,
        /// Its arguments.
        inputs: Vec<usize>,
    },
    /// `each_step`: makes a scalar.
    EachStep(Ty),
    /// `inject`.
    Inject {
        /// The field.
        field: usize,
        /// The points with their weights.
        points: Vec<([usize; 3], f64)>,
        /// The amount.
        amount: Operand,
    },
    /// `probe`: makes a record.
    Probe {
        /// The field.
        field: usize,
        /// The points.
        points: Vec<[usize; 3]>,
    },
    /// `record`: makes a record.
    Record(usize),
}

/// A number, or the value of a scalar.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    /// The number with these bits.
    Word(u64),
    /// A scalar.
    Scalar(usize),
}

/// A call of a kernel with what takes its results.
#[derive(Clone, Debug)]
pub struct Use {
    /// The kernel, by its number in the catalogue.
    pub fixture: usize,
    /// The fields that it takes.
    pub fields: Vec<usize>,
    /// The scalars that it takes.
    pub scalars: Vec<Operand>,
    /// What takes its results: fields for values, scalars for folds; empty for `reduce`.
    pub outputs: Vec<usize>,
    /// The points; all where reads are defined if there is no range.
    pub ranges: Vec<RangeSpec>,
}

/// A range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSpec {
    /// The points.
    pub part: Part,
    /// Only points whose indices add up to an even (0) or an odd (1) number.
    pub parity: Option<u8>,
}

/// The points of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `Range::all()`.
    All,
    /// `Range::interior(margin)`.
    Interior(u32),
    /// `Range::face(direction)`, or an edge or a corner.
    Face([i32; 3]),
    /// `Range::boxed(lo, hi)`.
    Boxed([i64; 3], [i64; 3]),
    /// `Range::widest()` with the cells along some axes: from, and up to.
    Spans([Option<(i64, Option<i64>)>; 3]),
    /// One box of `Range::shell(depth)`, by its number.
    Shell(u32, usize),
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cells {:?}", self.cells)?;
        for (number, FieldSpec { ty, axes, cells, .. }) in self.fields.iter().enumerate() {
            writeln!(f, "field {number}: {ty:?} {cells:?}{}", if *axes == [true; 3] { "" } else { ", low" })?;
        }
        writeln!(f, "scalars {:?}", self.scalars)?;
        for (number, act) in self.acts.iter().enumerate() {
            match act {
                Act::Nothing => {}
                Act::Make(stages) | Act::Refuse(stages, _) => {
                    writeln!(f, "{number}: make")?;
                    for stage in stages {
                        match stage {
                            Stage::Stand(types) if types.is_empty() => {}
                            Stage::Update(used) => writeln!(f, "   {}: {used:?}", kernels()[used.fixture].name)?,
                            Stage::Reduce(used) => writeln!(f, "   reduce {}: {used:?}", kernels()[used.fixture].name)?,
                            other => writeln!(f, "   {other:?}")?,
                        }
                    }
                }
                other => writeln!(f, "{number}: {other:?}")?,
            }
        }
        Ok(())
    }
}
