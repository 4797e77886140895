//! HIP devices: kernels are compiled for them; running them comes later, and until then this back end lists why there
//! is none.

use super::{Backend, Device, Listing, OpenOptions, library};
use crate::error::{Error, Result};

/// The back end for AMD's GPUs.
pub struct Hip;

/// The driver's library, by the names under which systems know it.
const LIBRARIES: &[&str] =
    &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "amdhip64.dll"];

impl Backend for Hip {
    fn name(&self) -> &'static str {
        "hip"
    }

    fn devices(&self) -> Listing {
        Listing { devices: Vec::new(), absent: vec![reason()] }
    }

    fn open(&self, ordinals: &[u32], _: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
        let inventory = crate::devices::inventory().to_string();
        let asked: Vec<_> = ordinals.iter().map(u32::to_string).collect();
        Err(Error::NoSuchDevice { spec: format!("hip {}", asked.join(", ")), reason: reason(), inventory })
    }
}

/// Why there is no device.
fn reason() -> String {
    let driver = match library::find(LIBRARIES) {
        Ok(name) => format!("the driver library {name} is present"),
        Err(complaint) => format!("the driver library is absent: {complaint}"),
    };
    format!("this version compiles kernels for HIP devices but doesn't run them yet; {driver}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_device_and_the_reason_says_whether_the_driver_is_there() {
        let listing = Hip.devices();
        assert!(listing.devices.is_empty());
        assert!(listing.absent[0].contains("doesn't run them yet; the driver library"), "{:?}", listing.absent);
        assert!(matches!(Hip.open(&[0], &OpenOptions::default()), Err(Error::NoSuchDevice { .. })));
    }
}
