//! The compiler of polyhalo: from the tokens of an annotated Rust function to kernels for every target.
//!
//! `front` is the only part that knows syn; `emit` has one file per target; nothing here knows a device.
//! The way of a kernel: [`front`] builds an [`ir::Kernel`], [`verify()`] proves it well formed, [`analyse()`] finds
//! its footprint and costs, and each of [`emit::EMITTERS`] turns it into code.
//!
//! All of that is the feature `language`. Without it there is [`offline`] only: the vendors' compilers, which the runtime
//! asks too.

pub mod offline;

#[cfg(feature = "language")]
pub mod analyse;
#[cfg(feature = "language")]
pub mod diagnostic;
#[cfg(feature = "language")]
pub mod emit;
#[cfg(feature = "language")]
pub mod front;
#[cfg(feature = "language")]
pub mod interpret;
#[cfg(feature = "language")]
pub mod ir;
#[cfg(all(feature = "language", any(test, feature = "random")))]
pub mod random;
#[cfg(feature = "language")]
pub mod verify;

#[cfg(feature = "language")]
pub use analyse::{Analysis, analyse};
#[cfg(feature = "language")]
pub use diagnostic::Diagnostic;
#[cfg(feature = "language")]
pub use verify::{Verified, verify};
