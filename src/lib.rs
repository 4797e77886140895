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
//! The function is pure: it gives the new value of its own point from fields read at constant offsets. X is the
//! contiguous axis, Z the slowest. Points whose footprint would leave the grid keep their value.
//!
//! Generated kernels hold `unsafe` code, so a crate that says `#![forbid(unsafe_code)]` can't define stencils
//! (`#![deny(unsafe_code)]` is fine).

pub use polyhalo_macros::stencil;
pub use polyhalo_runtime::{
    Builder, Bytes, Call, Element, Error, Exchange, Explanation, Field, HERE, Offset, Plane, Point, Progress, Report,
    Result, Scalar, Simulation, Source, Stages, Step, Targets, X, Y, Z,
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
