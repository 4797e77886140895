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
//! The function is pure: it gives the new value of its own point, or a tuple or an array of values for as many fields,
//! from fields read at constant offsets. X is the contiguous axis, Z the slowest. Points whose footprint would leave the
//! grid keep their value. Fields and scalars hold `f64`, `f32`, `i64`, `i32`, `i8`, `u64`, `u32`, `u8` or `bool`. A
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
//! Generated kernels hold `unsafe` code, so a crate that says `#![forbid(unsafe_code)]` can't define stencils
//! (`#![deny(unsafe_code)]` is fine).

pub use polyhalo_macros::stencil;
pub use polyhalo_runtime::{
    Builder, Bytes, Call, Element, Error, Exchange, Explanation, Field, HERE, Offset, Plane, Point, Progress, Report,
    Result, Scalar, Simulation, Source, Stages, Step, Targets, VendorFunctions, X, Y, Z,
};
pub use polyhalo_runtime::{backend, bandwidth, devices, geometry, kernel, plan};

/// What a program that defines and runs stencils needs.
pub mod prelude {
    pub use crate::stencil;
    pub use polyhalo_runtime::{
        Exchange, Field, HERE, Offset, Plane, Point, Progress, Report, Result, Simulation, Step, X, Y, Z,
    };
}

/// For the code that `#[stencil]` generates; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use polyhalo_runtime::backend::host::BoxArgs;
    pub use polyhalo_runtime::backend::host::support::{prefetch, store};
    pub use polyhalo_runtime::backend::reference::{PointArgs, View};
    pub use polyhalo_runtime::inventory;
    pub use polyhalo_runtime::kernel::{
        DeviceCode, FieldDesc, HostCode, KernelDesc, ParamDesc, Read, Registered, ScalarType,
    };
    pub use polyhalo_runtime::{Argument, Call};

    /// Stands for a kernel that was refused; a program with it is never built.
    pub fn refused<T>() -> Call<T> {
        unreachable!("a program with a refused stencil is never built")
    }
}

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
