//! Random steps: fields, boundaries, stages, ranges and runs within the language, on every device, against a plain model of
//! what steps mean.
//!
//! A [`story`] is plain data. The [`model`] says what comes out, [`live`] does the same through the interface of the
//! library, [`mod@check`] compares the two and makes a failing story smaller, and [`device`] lists the devices. To test another kernel: write it in `kernels` and
//! describe it in `catalogue`.

pub mod catalogue;
pub mod check;
pub mod device;
pub mod kernels;
pub mod live;
pub mod model;
pub mod number;
pub mod random;
pub mod story;

pub use check::check;
pub use device::devices;
