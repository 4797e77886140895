//! 3-D stencils written once in annotated Rust, run on any vendor's GPUs and on CPUs.
//!
//! ```
//! use polyhalo::prelude::*;
//!
//! /// The mean of the six neighbours.
//! #[stencil]
//! fn smooth(u: &Field<f64>) -> f64 {
//!     (u[X] + u[-X] + u[Y] + u[-Y] + u[Z] + u[-Z]) / 6.0
//! }
//!
//! # fn main() -> Result<()> {
//! let sim = Simulation::on([16, 16, 16]).devices("host").build()?;
//! let u = sim.field_from("u", |p: Point| f64::from(p.i % 2))?;
//! let step = sim.step(|s| s.update(&u, smooth(&u)))?;
//! println!("{}", step.explain()); // halos, plan, memory; nothing has run yet
//! println!("{}", sim.run(&step, 10)?); // GPts/s, effective bandwidth and its share of a measured copy
//! # Ok(())
//! # }
//! ```
//!
//! The reference of the language and of steps is `docs/language.md` in the repository, beside a tutorial and recipes.
//!
//! The function is pure: it gives the new value of its own point, or a tuple or an array of values for as many fields,
//! from fields read at constant offsets. X is the contiguous axis, Z the slowest. Points whose footprint would leave the
//! grid keep their value, unless the field has a [`Boundary`]. Fields and scalars hold `f64`, `f32`, `i64`, `i32`, `i8`, `u64`, `u32`, `u8` or `bool`. A
//! parameter of type `Point` has the global indices of the point; the caller doesn't pass it. `&[Field<T>; N]` takes
//! several fields at once:
//!
//! ```
//! use polyhalo::prelude::*;
//!
//! /// The larger of two fields, and where it is the second; nothing in the lowest plane.
//! #[stencil]
//! fn larger(pair: &[Field<f32>; 2], p: Point) -> (f32, bool) {
//!     let second = pair[1][HERE] > pair[0][HERE];
//!     let value = if second { pair[1][HERE] } else { pair[0][HERE] };
//!     (if p.k == 0 { 0.0 } else { value }, second)
//! }
//!
//! # fn main() -> Result<()> {
//! let sim = Simulation::on([5, 4, 3]).devices("host").build()?;
//! let pair = [sim.field_from("a", |p: Point| p.i as f32)?, sim.field_from("b", |_: Point| 2.0_f32)?];
//! let (most, second) = (sim.field::<f32>("most")?, sim.field::<bool>("second")?);
//! let step = sim.step(|s| s.update((&most, &second), larger(&pair)))?;
//! sim.run(&step, 1)?;
//! assert_eq!((most.get([1, 0, 1])?, second.get([1, 0, 1])?), (2.0, true));
//! assert_eq!((most.get([4, 3, 2])?, second.get([4, 3, 2])?), (4.0, false));
//! assert_eq!(most.get([1, 0, 0])?, 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! A generic function lists what it is compiled for. Several kernels share constants and functions in an annotated
//! module; functions over fields exist inside kernels only.
//!
//! ```
//! #[polyhalo::stencil(T = f32 | f64)]
//! mod derivatives {
//!     use polyhalo::prelude::*;
//!
//!     const WEIGHTS: [[f64; 2]; 2] = [[1.0, 0.0], [4.0 / 3.0, -1.0 / 12.0]];
//!
//!     fn second<T, const R: usize>(u: &Field<T>, d: Offset) -> T {
//!         let mut sum: T = 0.0;
//!         for i in 0..R {
//!             let step = (i as i32 + 1) * d;
//!             sum += WEIGHTS[R - 1][i] as T * (u[step] - 2.0 * u[HERE] + u[-step]);
//!         }
//!         sum
//!     }
//!
//!     /// The Laplacian of order 2 or 4.
//!     #[stencil(R = 1 | 2)]
//!     pub fn laplacian<T, const R: usize>(u: &Field<T>) -> T {
//!         second::<T, R>(u, X) + second::<T, R>(u, Y) + second::<T, R>(u, Z)
//!     }
//!
//!     /// A step of a wave.
//!     #[stencil]
//!     pub fn wave<T>(u: &Field<T>, before: &Field<T>, a: T) -> T {
//!         2.0 * u[HERE] - before[HERE] + a * second::<T, 2>(u, Z)
//!     }
//! }
//!
//! # use polyhalo::prelude::*;
//! # fn main() -> Result<()> {
//! use derivatives::{laplacian, wave};
//! let sim = Simulation::on([8, 8, 8]).devices("host").build()?;
//! let u = sim.field_from("u", |p: Point| (p.i * p.i) as f32)?;
//! let (l, w) = (sim.field::<f32>("l")?, sim.field::<f32>("w")?);
//! let step = sim.step(|s| {
//!     s.update(&l, laplacian::<_, 2>(&u));
//!     s.update(&w, wave(&u, &l, 0.5));
//! })?;
//! sim.run(&step, 1)?;
//! assert_eq!(l.get([4, 4, 4])?, 2.0);
//! # Ok(())
//! # }
//! ```
//!
//! Generated kernels hold `unsafe` code, so a crate that says `#![forbid(unsafe_code)]` can't define stencils
//! (`#![deny(unsafe_code)]` is fine).

pub use polyhalo_macros::stencil;
/// For the code that `#[stencil]` generates; no part of the interface.
#[doc(hidden)]
pub use polyhalo_runtime::facade::__private;
pub use polyhalo_runtime::partition::Division;
pub use polyhalo_runtime::{
    AnyField, Argument, Axes, Boundary, Builder, Bytes, Call, CheckpointDifference, ColourMap, Element, Error,
    Exchange, Explanation, FACES, Field, FieldX, FieldXY, FieldXZ, FieldY, FieldYZ, FieldZ, Folds, HERE, Inputs,
    Interrupt, IntoArgument, IntoFaces, IntoRanges, LastCheckpoint, Max, Min, Offset, Picture, Plane, Point, Points,
    Primitive, Progress, ProgressBar, Range, Record, Report, Result, Run, Scalar, Simulation, Source, Stages, Step,
    Sum, Targets, VendorFunctions, Verdict, X, Y, Z,
};
pub use polyhalo_runtime::{backend, bandwidth, devices, geometry, kernel, plan};

/// What a program that defines and runs stencils needs.
pub mod prelude {
    pub use crate::stencil;
    pub use polyhalo_runtime::{
        Boundary, ColourMap, Exchange, FACES, Field, FieldX, FieldXY, FieldXZ, FieldY, FieldYZ, FieldZ, HERE,
        Interrupt, Max, Min, Offset, Picture, Plane, Point, Points, Progress, Range, Record, Report, Result, Scalar,
        Simulation, Step, Sum, X, Y, Z,
    };
}

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The programs of the language reference compile and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/language.md")]
struct Language;

/// Those of the recipes too.
#[cfg(doctest)]
#[doc = include_str!("../docs/recipes.md")]
struct Recipes;

/// And those of the tutorial.
#[cfg(doctest)]
#[doc = include_str!("../docs/tutorial.md")]
struct Tutorial;
