//! Whether emitted code computes what the interpreter does, bit for bit: any kernels, on the CPU, on OpenCL devices, as PTX, and
//! on the double of AMD's driver.
//!
//! Each kernel runs on a few cases that follow from the kernel alone, so that a failure comes back when it runs by
//! itself. Another kind of device is a file beside `host.rs` and `opencl.rs`.

mod abi;
mod case;
mod hip;
mod host;
mod opencl;
mod ptx;

use polyhalo_codegen::Verified;

use case::{Case, cases};
pub use hip::check as check_hip;
pub use host::check as check_host;
pub use opencl::check as check_opencl;
pub use ptx::check as check_ptx;

/// Runs all kernels, which have different names, on everything that is there.
///
/// # Panics
/// When a result is not the interpreter's, or anything but the results is touched.
pub fn check(kernels: &[Verified]) {
    check_host(kernels);
    check_opencl(kernels);
}

/// The most failures that are shown.
const SHOWN: usize = 3;

/// # Panics
/// When there are any failures, and shows some of them.
fn none_failed(failures: &[String]) {
    let shown = failures.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures, of which the first are\n{shown}", failures.len());
}
