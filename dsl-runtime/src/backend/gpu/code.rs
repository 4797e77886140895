//! Which code of a kernel a card gets, and where it comes from.
//!
//! What is embedded in the program comes first; where there is none that the driver takes, the vendor's run-time compiler of
//! this machine makes it of the source, for the very card, and the result is kept on disk. `cuda` and `hip` say what is tried
//! in which order; `hiprtc` has HIP's compiler work in a process of its own, as it may crash.

mod cuda;
mod hip;
mod hiprtc;
#[cfg(test)]
mod tests;

use polyhalo_codegen::offline::Cache;
use polyhalo_codegen::offline::cache::Provenance;
use polyhalo_codegen::offline::programs::{Environment, process_environment};

use super::driver::{Architecture, Card, Driver, Image, Kind, Module};
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
    let cache = Cache::open(None);
    load_with(driver, card, kernel, &Means { cache: &cache, environment: &process_environment })
}

/// The file and version of the hiprtc with which [`load`] compiles, or why there is none.
pub(super) fn hiprtc() -> Result<String, String> {
    hiprtc::find(&process_environment).map(|hiprtc| hiprtc.place())
}

/// What this machine has for making code.
struct Means<'a> {
    cache: &'a Cache,
    environment: Environment<'a>,
}

fn load_with(driver: &dyn Driver, card: &Card, kernel: &'static KernelDesc, means: &Means<'_>) -> Result<Loaded> {
    let attempts = Attempts { driver, card, kernel, failed: Vec::new() };
    match &card.architecture {
        Architecture::Sm(major, minor) => cuda::load(attempts, major * 10 + minor, means),
        Architecture::Gfx(name) => hip::load(attempts, name, means),
    }
}

/// What was tried for a kernel on a card.
struct Attempts<'a> {
    driver: &'a dyn Driver,
    card: &'a Card,
    kernel: &'static KernelDesc,
    /// What didn't serve, and why.
    failed: Vec<String>,
}

impl Attempts<'_> {
    /// Has the driver load `image`; nothing if it doesn't take it.
    fn image(&mut self, origin: String, image: Image<'_>) -> Result<Option<Loaded>> {
        match self.driver.load(self.card.ordinal, image) {
            Ok(module) => Ok(Some(Loaded { module, origin })),
            Err(failure) => match failure.kind {
                // A driver that can't compile PTX by itself may take other code.
                Kind::InvalidImage | Kind::Unsupported => {
                    self.failed(&origin, &failure.message);
                    Ok(None)
                }
                Kind::OutOfMemory | Kind::Lost | Kind::Other => Err(Error::Driver {
                    backend: self.driver.backend(),
                    device: self.device(),
                    call: failure.call.into(),
                    message: format!("{} (`{}`, {origin})", failure.message, self.kernel.name),
                }),
            },
        }
    }

    /// Notes that `what` didn't serve.
    fn failed(&mut self, what: &str, reason: &str) {
        self.failed.push(format!("{what}: {}", reason.trim_end()));
    }

    /// Nothing served; `cure` would.
    fn unsupported(self, cure: &str) -> Error {
        let reason = format!("no code of it can be loaded ({}); {cure}", self.failed.join("; "));
        Error::Unsupported { device: self.device(), kernel: self.kernel.name.into(), reason }
    }

    /// A compiler found a mistake in the source.
    fn rejected(&self, form: String, log: String) -> Error {
        Error::Build { device: self.device(), kernel: self.kernel.name.into(), form, log }
    }

    fn device(&self) -> String {
        format!("{} {}: {}", self.driver.backend(), self.card.ordinal, self.card.name)
    }
}

/// What is added to an origin that may be the cache.
fn from_where(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Cache => " (from the cache)",
        Provenance::Compiler => "",
    }
}
