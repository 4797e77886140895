//! The compiler of polyhalo: from the tokens of an annotated Rust function to kernels for every target.
//!
//! `front` is the only part that knows syn; `emit` has one file per target; nothing here knows a device.
//! The way of a kernel: [`front`] builds an [`ir::Kernel`], [`verify()`] proves it well formed, [`analyse()`] finds
//! its footprint and costs, and each of [`emit::EMITTERS`] turns it into code.

pub mod analyse;
pub mod diagnostic;
pub mod emit;
pub mod front;
pub mod interpret;
pub mod ir;
pub mod offline;
#[cfg(any(test, feature = "random"))]
pub mod random;
pub mod verify;

pub use analyse::{Analysis, analyse};
pub use diagnostic::Diagnostic;
pub use verify::{Verified, verify};
