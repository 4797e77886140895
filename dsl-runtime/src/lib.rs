//! The runtime of polyhalo: plans, devices, fields, steps and their execution.
//!
//! A [`simulation::Simulation`] turns the stages of a step into a [`plan::Plan`], plain data made by pure modules
//! ([`geometry`], [`layout`], [`boundary`], [`halo`], [`partition`], [`schedule`]). Only `execute` turns plans into calls of a
//! [`backend::Device`], and only [`backend`] touches hardware.

mod call;
mod checkpoint;
mod colour;
mod element;
mod error;
mod exchange;
mod execute;
mod explain;
mod field;
mod files;
mod interrupt;
mod offset;
mod persist;
mod picture;
mod progress;
mod range;
mod raw;
mod record;
mod report;
mod run;
mod scalar;
mod simulation;
mod source;
mod state;
mod step;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod traffic;
mod verify;
mod vti;

pub mod backend;
pub mod bandwidth;
pub mod boundary;
pub mod clock;
pub mod demand;
pub mod depend;
pub mod devices;
pub mod distribute;
#[doc(hidden)]
pub mod facade;
pub mod geometry;
pub mod halo;
pub mod kernel;
pub mod layout;
pub mod partition;
pub mod placement;
pub mod plan;
pub mod price;
pub mod reduction;
pub mod runs;
pub mod schedule;
pub mod shape;

pub use boundary::{Boundary, FACES, Face};
pub use call::{Call, Folds, Target, Targets};
pub use colour::ColourMap;
pub use element::{Element, Primitive};
pub use error::{Bytes, CheckpointDifference, Error, LastCheckpoint, ReadsBeyond, Result};
pub use exchange::Exchange;
pub use explain::{DeviceMemory, Explanation, FieldBoundary, FieldHalo, VendorFunctions};
pub use field::{
    Axes, Field, FieldRef, FieldX, FieldXY, FieldXZ, FieldY, FieldYZ, FieldZ, IntoFaces, OnX, OnXY, OnXZ, OnY, OnYZ,
    OnZ, Whole,
};
pub use interrupt::Interrupt;
pub use offset::{HERE, Offset, X, Y, Z};
pub use persist::AnyField;
pub use picture::{Picture, Plane};
pub use progress::ProgressBar;
pub use range::{END, IntoRanges, Range};
pub use record::{Points, Record};
pub use reduction::{Max, Min, Sum};
pub use report::{Progress, Report};
pub use run::{Run, Verdict};
pub use scalar::{Argument, Erased, Inputs, IntoArgument, Scalar, ScalarRef, argument};
pub use shape::Shape;
pub use simulation::{Builder, Simulation};
pub use source::{Planes, Point, Source};
pub use step::{Stages, Step};
pub use traffic::Traffic;
