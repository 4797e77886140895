//! The runtime of polyhalo: plans, devices, fields, steps and their execution.
//!
//! A [`simulation::Simulation`] turns the stages of a step into a [`plan::Plan`], plain data made by pure modules
//! ([`geometry`], [`layout`], [`halo`], [`partition`], [`schedule`]). Only `execute` turns plans into calls of a
//! [`backend::Device`], and only [`backend`] touches hardware.

mod call;
mod element;
mod error;
mod exchange;
mod execute;
mod explain;
mod field;
mod files;
mod offset;
mod picture;
mod report;
mod simulation;
mod source;
mod step;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub mod backend;
pub mod bandwidth;
pub mod devices;
pub mod geometry;
pub mod halo;
pub mod kernel;
pub mod layout;
pub mod partition;
pub mod plan;
pub mod schedule;

pub use call::{Argument, Call, Targets};
pub use element::{Element, Scalar};
pub use error::{Bytes, Error, Result};
pub use exchange::Exchange;
pub use explain::{DeviceMemory, Explanation, FieldHalo, VendorFunctions};
pub use field::{Field, FieldRef};
pub use offset::{HERE, Offset, X, Y, Z};
pub use picture::Plane;
pub use report::{Progress, Report};
pub use simulation::{Builder, Simulation};
pub use source::{Planes, Point, Source};
pub use step::{Stages, Step};

/// For the code that `#[stencil]` generates.
#[doc(hidden)]
pub use inventory;
