//! A stand-in for NVIDIA's driver library, for tests on machines without a GPU.
//!
//! It exports the entry points that a program of the driver interface needs; what they mean is decided by the engine that it
//! shares with the other stand-in, and kernels are run from their PTX. Handles are numbers that point to nothing. In one process
//! several copies of the library can have settings of their own: see `polyhalo_double_settings`.

#[macro_use]
mod entry;
mod codes;
mod contexts;
mod copies;
mod devices;
mod images;
mod kernels;
mod memory;
mod streams;

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use polyhalo_double_engine::{Machine, Settings, Variables, Vendor};

/// What the double is steered by.
static VARIABLES: Variables = Variables::of_process();

/// Replaces the variables of the environment by lines such as `POLYHALO_DOUBLE_DEVICES=4`. Only before the first call of
/// another entry point.
///
/// # Safety
/// The text ends in a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn polyhalo_double_settings(text: *const c_char) {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    VARIABLES.replace(text);
}

/// How the devices are, beside what the engine knows.
struct Double {
    machine: Machine,
    /// The architecture of the devices: 9.0 is (9, 0).
    capability: (u32, u32),
    /// The version of the driver.
    driver: (u32, u32),
}

/// The stand-in as the variables describe it, or what is wrong with them.
fn double() -> Result<&'static Double, &'static str> {
    static DOUBLE: OnceLock<Result<Double, String>> = OnceLock::new();
    let double = DOUBLE.get_or_init(|| {
        let made = made();
        if let Err(message) = &made {
            eprintln!("CUDA double: {message}");
        }
        made
    });
    match double {
        Ok(double) => {
            double.machine.count_until_exit();
            Ok(double)
        }
        Err(message) => Err(message),
    }
}

fn made() -> Result<Double, String> {
    let settings = Settings::from_variables(|name| VARIABLES.get(name))?;
    let text = settings.architecture.as_deref().unwrap_or("9.0");
    let parts = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let capability =
        parts.ok_or_else(|| format!("POLYHALO_DOUBLE_ARCH: `{text}`: expected a compute capability such as 9.0"))?;
    let driver = settings.driver.unwrap_or((12, 9));
    let vendor = Vendor { name: "CUDA", sticky: codes::STICKY };
    Ok(Double { machine: Machine::new(settings, vendor), capability, driver })
}
