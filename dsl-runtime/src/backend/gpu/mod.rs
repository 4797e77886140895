//! GPUs of NVIDIA and AMD: one device over two vendors' drivers.
//!
//! `driver` is what the device asks of a driver, `cuda` and `hip` are the two, found by `library` and with `boxes` and
//! `image` in common. `code` decides what of a kernel is loaded and has it compiled if need be, `device` is the device, and
//! `options` what a user may say about it.

mod boxes;
mod code;
mod cuda;
mod device;
#[cfg(test)]
mod double_tests;
mod driver;
mod hip;
mod image;
mod library;
mod options;

use super::{Backend, Device, Listing, OpenOptions};
use crate::error::{Error, Result};
use driver::Driver;
pub use options::{GpuOptions, Shape, Tune};

/// The back end for NVIDIA's GPUs.
pub struct Cuda;

/// The back end for AMD's GPUs.
pub struct Hip;

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn devices(&self) -> Listing {
        device::listing("cuda", cuda::driver())
    }

    fn open(&self, ordinals: &[u32], options: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
        open("cuda", cuda::driver(), ordinals, options)
    }
}

impl Backend for Hip {
    fn name(&self) -> &'static str {
        "hip"
    }

    fn devices(&self) -> Listing {
        device::listing("hip", hip::driver())
    }

    fn open(&self, ordinals: &[u32], options: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
        open("hip", hip::driver(), ordinals, options)
    }
}

/// The file and version of the hiprtc, AMD's run-time compiler, that serves HIP devices on this machine, or what was tried
/// and why nothing serves. It is needed where a card has no embedded code object, or a kernel none because it calls functions
/// such as `exp`. The library is asked in a process of its own, for which this program starts itself once more.
pub fn hiprtc() -> Result<String, String> {
    code::hiprtc()
}

fn open(
    backend: &'static str,
    driver: Result<&'static dyn Driver, String>,
    ordinals: &[u32],
    options: &OpenOptions,
) -> Result<Vec<Box<dyn Device>>> {
    let driver = driver.map_err(|reason| {
        let asked: Vec<_> = ordinals.iter().map(u32::to_string).collect();
        let inventory = crate::devices::inventory().to_string();
        Error::NoSuchDevice { spec: format!("{backend} {}", asked.join(", ")), reason, inventory }
    })?;
    device::open(driver, ordinals, options)
}
