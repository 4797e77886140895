//! Shared by the targets of this package.

pub mod agreement;
pub mod fixtures;
