//! PTX for a card of NVIDIA's, as new as its driver takes it.

use polyhalo_codegen::offline::{Outcome, nvrtc};

use super::{Attempts, Loaded, Means, from_where};
use crate::backend::gpu::driver::Image;
use crate::error::Result;

/// What would have worked.
const CURE: &str = "install a newer driver, or NVRTC where the program runs (`pip install nvidia-cuda-nvrtc-cu12`, then \
                    POLYHALO_NVRTC names its folder), or build the program where NVRTC is found";

/// Loads what is embedded, else what NVRTC makes for `sm_<arch>`, which is the card's.
pub(super) fn load(mut attempts: Attempts<'_>, arch: u32, means: &Means<'_>) -> Result<Loaded> {
    match attempts.kernel.code.ptx {
        Some(ptx) => {
            if let Some(loaded) = load_ptx(&mut attempts, "embedded PTX".into(), ptx)? {
                return Ok(loaded);
            }
        }
        None => attempts.failed("embedded PTX", "there is none, because NVRTC was missing when the program was built"),
    }
    match compile(&mut attempts, arch, means)? {
        Some(loaded) => Ok(loaded),
        None => Err(attempts.unsupported(CURE)),
    }
}

/// What the NVRTC of this machine makes of the source.
fn compile(attempts: &mut Attempts<'_>, arch: u32, means: &Means<'_>) -> Result<Option<Loaded>> {
    let kernel = attempts.kernel;
    if kernel.code.cuda.is_empty() {
        attempts.failed("NVRTC", "the kernel carries no CUDA C");
        return Ok(None);
    }
    let nvrtc = match nvrtc::find_in(means.environment) {
        Ok(nvrtc) => nvrtc,
        Err(reason) => {
            attempts.failed("NVRTC", &reason);
            return Ok(None);
        }
    };
    // A library that is older than the card knows an older one, whose PTX every driver of the card takes.
    let older = (arch > nvrtc::OLDEST_ARCH).then_some(nvrtc::OLDEST_ARCH);
    for arch in [Some(arch), older].into_iter().flatten() {
        let by = format!("PTX by NVRTC {}", nvrtc.version());
        match nvrtc.kept_ptx(means.cache, kernel.code.cuda, kernel.name, arch, kernel.contract) {
            Outcome::Built((ptx, provenance)) => {
                let target = nvrtc::target(&ptx).unwrap_or("an unknown target");
                let origin = format!("{by} for {target}{}", from_where(provenance));
                if let Some(loaded) = load_ptx(attempts, origin, &ptx)? {
                    return Ok(Some(loaded));
                }
            }
            Outcome::Absent(reason) => attempts.failed(&format!("{by} for sm_{arch}"), &reason),
            Outcome::Rejected(log) => {
                return Err(attempts.rejected(format!("CUDA C, by NVRTC {} for sm_{arch}", nvrtc.version()), log));
            }
        }
    }
    Ok(None)
}

/// Loads `ptx` in a version that the driver takes.
fn load_ptx(attempts: &mut Attempts<'_>, origin: String, ptx: &str) -> Result<Option<Loaded>> {
    let taken = match attempts.driver.ptx() {
        Some(newest) => nvrtc::lowered_to(ptx, newest),
        None => Ok(ptx.into()),
    };
    match taken {
        Ok(ptx) => attempts.image(origin, Image::Ptx(&ptx)),
        Err(reason) => {
            attempts.failed(&origin, &reason);
            Ok(None)
        }
    }
}
