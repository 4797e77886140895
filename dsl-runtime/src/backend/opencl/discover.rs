//! Which platforms and devices there are, as plain data, and why others are not.

use std::sync::{Mutex, MutexGuard};

use opencl3::device::{
    CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_EXTENSIONS,
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_IL_VERSION, CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
    CL_DEVICE_MAX_PARAMETER_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_NAME,
    CL_DEVICE_PCI_BUS_INFO_KHR, CL_DEVICE_SINGLE_FP_CONFIG, CL_DEVICE_TYPE, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU,
    CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, get_device_data, get_device_ids,
};
use opencl3::error_codes::{CL_DEVICE_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::platform::platform::{CL_PLATFORM_NAME, CL_PLATFORM_VERSION, get_platform_data, get_platform_ids};

use super::call::{Called, DeviceId, Failure, PlatformId, named, text};
use super::locked;
use super::mapping::Limits;
use crate::backend::{DeviceInfo, DeviceKind};
use crate::placement::pci_address;

/// What OpenCL says about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What every back end tells.
    pub info: DeviceInfo,
    /// The version of OpenCL, in the platform's words.
    pub version: String,
    /// The version of the driver.
    pub driver: String,
    /// The largest buffer.
    pub max_alloc_bytes: u64,
    /// Whether it compiles OpenCL C.
    pub takes_source: bool,
    /// Whether it takes SPIR-V.
    pub takes_spirv: bool,
    /// Whether single-precision division and square root can be had correctly rounded.
    pub rounds_f32_division: bool,
    /// The most bytes of arguments that a kernel may have.
    pub max_argument_bytes: usize,
    /// The most work-items in a group.
    pub max_group: usize,
    /// The most work-items in a group along each axis.
    pub max_items: [usize; 3],
}

impl Facts {
    /// The driver, and what a user should know before trusting the device with a kernel.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("driver {}", self.driver)];
        if !self.info.fp64 {
            notes.push("it has no double precision: kernels on f64 can't run".to_owned());
        }
        if !self.rounds_f32_division {
            notes.push(
                "it doesn't round f32 division and square root correctly: kernels on f32 may differ in the last bit"
                    .to_owned(),
            );
        }
        if !self.takes_source {
            notes.push("it has no compiler for OpenCL C".to_owned());
        }
        notes
    }

    /// Whether its queues can't wait for events of other queues, so that the host must.
    ///
    /// PoCL's device without threads runs a command that waited in the thread whose command it waited for, which holds
    /// the lock of the event and takes it again: PoCL 3.1 was seen to wait for itself for ever.
    pub(super) fn waits_on_host(&self) -> bool {
        let starts = |name: &&str| self.info.name.starts_with(*name);
        self.info.platform.contains("Portable Computing Language") && ["basic", "cpu-minimal"].iter().any(starts)
    }

    /// What the mapping of points to work-items depends on.
    pub(super) fn limits(&self) -> Limits {
        // Newer versions of PoCL take SPIR-V too, but compile it as they compile OpenCL C.
        let is_pocl = self.info.platform.contains("Portable Computing Language");
        Limits {
            kind: self.info.kind,
            vectorises_groups: self.info.kind == DeviceKind::Gpu || (self.takes_spirv && !is_pocl),
            group: self.max_group,
            items: self.max_items,
        }
    }
}

impl DeviceId {
    /// The number of its compute units.
    pub(super) fn units(self) -> Called<u32> {
        Ok(device_number(self, CL_DEVICE_MAX_COMPUTE_UNITS)? as u32)
    }
}

/// A device that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) facts: Facts,
    pub(super) platform: PlatformId,
    pub(super) device: DeviceId,
}

/// Why there is no device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// The library that knows the platforms is missing or broken.
    NoLoader,
    /// The library is there and knows no platform.
    NoPlatform,
    /// The library can't list platforms.
    NoList(Failure),
    /// A platform has no device.
    NoDevice { platform: String },
    /// A platform can't be asked.
    Platform { platform: String, failure: Failure },
    /// A device can't be asked.
    Device { platform: String, failure: Failure },
    /// A device is there and can't be used.
    Unusable { platform: String, device: String, reason: &'static str },
}

impl Absent {
    /// One sentence for a listing.
    pub(super) fn sentence(&self) -> String {
        match self {
            Absent::NoLoader => "no OpenCL: libOpenCL.so.1 isn't installed or can't be loaded (Debian's package is \
                 ocl-icd-libopencl1)"
                .into(),
            Absent::NoPlatform => {
                "OpenCL is installed, but no platform is registered with it: install a vendor's runtime (for CPUs, \
                 Debian's package is pocl-opencl-icd), or check OCL_ICD_VENDORS if it is set"
                    .into()
            }
            Absent::NoList(failure) => format!("OpenCL can't list its platforms: {} gave {failure}", failure.call),
            Absent::NoDevice { platform } => format!("the OpenCL platform {platform} has no device"),
            Absent::Platform { platform, failure } => {
                format!("the OpenCL platform {platform} can't be used: {} gave {failure}", failure.call)
            }
            Absent::Device { platform, failure } => {
                format!("a device of the OpenCL platform {platform} can't be used: {} gave {failure}", failure.call)
            }
            Absent::Unusable { platform, device, reason } => {
                format!("{device} of the OpenCL platform {platform} can't be used: {reason}")
            }
        }
    }
}

/// Lets one thread at a time find and split devices: drivers set themselves up at the first question, and PoCL has been
/// seen to crash when several threads asked it at once.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    locked(&ONE_AT_A_TIME)
}

/// All devices of all platforms, in the platforms' order, and why others are absent.
pub(super) fn discover() -> (Vec<Found>, Vec<Absent>) {
    let _alone = alone();
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    match named("clGetPlatformIDs", get_platform_ids()) {
        Ok(platforms) if platforms.is_empty() => absent.push(Absent::NoPlatform),
        Ok(platforms) => {
            for (number, platform) in platforms.into_iter().map(PlatformId).enumerate() {
                devices_of(platform, number, &mut found, &mut absent);
            }
        }
        Err(failure) => absent.push(no_platforms(failure)),
    }
    (found, absent)
}

/// Why platforms can't be listed.
fn no_platforms(failure: Failure) -> Absent {
    match failure.code {
        DLOPEN_RUNTIME_LOAD_FAILED => Absent::NoLoader,
        CL_PLATFORM_NOT_FOUND_KHR => Absent::NoPlatform,
        _ => Absent::NoList(failure),
    }
}

fn devices_of(platform: PlatformId, number: usize, found: &mut Vec<Found>, absent: &mut Vec<Absent>) {
    let name = match platform_text(platform, CL_PLATFORM_NAME) {
        Ok(name) => name,
        Err(failure) => return absent.push(Absent::Platform { platform: format!("number {number}"), failure }),
    };
    let devices = match named("clGetDeviceIDs", get_device_ids(platform.0, CL_DEVICE_TYPE_ALL)) {
        Ok(devices) => devices,
        Err(Failure { code: CL_DEVICE_NOT_FOUND, .. }) => Vec::new(),
        Err(failure) => return absent.push(Absent::Platform { platform: name, failure }),
    };
    if devices.is_empty() {
        return absent.push(Absent::NoDevice { platform: name });
    }
    for device in devices.into_iter().map(DeviceId) {
        match facts(platform, &name, device, found.len()) {
            Ok(facts) => match unusable(device, &facts) {
                None => found.push(Found { facts, platform, device }),
                Some(reason) => {
                    absent.push(Absent::Unusable { platform: name.clone(), device: facts.info.name, reason })
                }
            },
            Err(failure) => absent.push(Absent::Device { platform: name.clone(), failure }),
        }
    }
}

/// Why a device that answers questions can't run anything.
fn unusable(device: DeviceId, facts: &Facts) -> Option<&'static str> {
    let is_available = device_number(device, CL_DEVICE_AVAILABLE).is_ok_and(|available| available != 0);
    if !is_available {
        return Some("it says that it isn't available now");
    }
    let takes_kernels = facts.takes_source || facts.takes_spirv;
    (!takes_kernels).then_some("it takes neither OpenCL C nor SPIR-V")
}

fn facts(platform: PlatformId, platform_name: &str, device: DeviceId, ordinal: usize) -> Called<Facts> {
    let version = device_text(device, CL_DEVICE_VERSION)?;
    let driver = device_text(device, CL_DRIVER_VERSION)?;
    let is_cpu = device_number(device, CL_DEVICE_TYPE)? & CL_DEVICE_TYPE_CPU != 0;
    // Devices without double precision may refuse the first question, and older ones the last.
    let fp64 = device_number(device, CL_DEVICE_DOUBLE_FP_CONFIG).unwrap_or(0) != 0;
    let intermediate_languages = device_text(device, CL_DEVICE_IL_VERSION).unwrap_or_default();
    let single = device_number(device, CL_DEVICE_SINGLE_FP_CONFIG)?;
    let info = DeviceInfo {
        backend: "opencl",
        ordinal: ordinal as u32,
        name: device_text(device, CL_DEVICE_NAME)?,
        platform: platform_name.to_owned(),
        notes: Vec::new(),
        kind: if is_cpu { DeviceKind::Cpu } else { DeviceKind::Gpu },
        pci: if is_cpu { None } else { pci(device) },
        fp64,
        units: device.units()?,
        memory_bytes: device_number(device, CL_DEVICE_GLOBAL_MEM_SIZE)?,
    };
    let mut facts = Facts {
        info,
        // The platform's version counts as well: its table of calls ends where its version ends.
        takes_spirv: [&version, &platform_text(platform, CL_PLATFORM_VERSION)?]
            .into_iter()
            .all(|version| at_least_2_1(version))
            && intermediate_languages.contains("SPIR-V"),
        takes_source: device_number(device, CL_DEVICE_COMPILER_AVAILABLE)? != 0,
        version,
        driver,
        max_alloc_bytes: device_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        rounds_f32_division: single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        max_argument_bytes: device_number(device, CL_DEVICE_MAX_PARAMETER_SIZE)? as usize,
        max_group: device_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE)? as usize,
        max_items: work_item_sizes(device)?,
    };
    facts.info.notes = facts.notes();
    Ok(facts)
}

/// Whether `OpenCL 3.0 ...` is at least 2.1, the first with clCreateProgramWithIL.
fn at_least_2_1(version: &str) -> bool {
    let number = version.strip_prefix("OpenCL ").unwrap_or_default().split(' ').next().unwrap_or_default();
    let mut parts = number.split('.').map_while(|part| part.parse::<u32>().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 1)
}

fn platform_text(platform: PlatformId, what: u32) -> Called<String> {
    named("clGetPlatformInfo", get_platform_data(platform.0, what)).map(|bytes| text(&bytes))
}

fn device_text(device: DeviceId, what: u32) -> Called<String> {
    named("clGetDeviceInfo", get_device_data(device.0, what)).map(|bytes| text(&bytes))
}

/// A number of any width.
fn device_number(device: DeviceId, what: u32) -> Called<u64> {
    named("clGetDeviceInfo", get_device_data(device.0, what)).map(|bytes| number(&bytes))
}

/// The PCI address, from a device that can tell it.
fn pci(device: DeviceId) -> Option<String> {
    let extensions = device_text(device, CL_DEVICE_EXTENSIONS).ok()?;
    let tells = extensions.split_whitespace().any(|name| name == "cl_khr_pci_bus_info");
    let bytes = tells.then(|| get_device_data(device.0, CL_DEVICE_PCI_BUS_INFO_KHR).ok()).flatten()?;
    address(&bytes)
}

/// The address in the four numbers of cl_device_pci_bus_info_khr: domain, bus, device, function.
fn address(bytes: &[u8]) -> Option<String> {
    let numbers: Vec<u64> = bytes.chunks_exact(4).map(number).collect();
    let &[domain, bus, device, function] = numbers.as_slice() else { return None };
    pci_address(&format!("{domain:x}:{bus:x}:{device:x}.{function:x}"))
}

fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let used = bytes.len().min(8);
    if cfg!(target_endian = "little") {
        wide[..used].copy_from_slice(&bytes[..used]);
    } else {
        wide[8 - used..].copy_from_slice(&bytes[..used]);
    }
    u64::from_ne_bytes(wide)
}

fn work_item_sizes(device: DeviceId) -> Called<[usize; 3]> {
    let bytes = named("clGetDeviceInfo", get_device_data(device.0, CL_DEVICE_MAX_WORK_ITEM_SIZES))?;
    let mut sizes = bytes.chunks_exact(size_of::<usize>()).map(|size| number(size) as usize);
    Ok(std::array::from_fn(|_| sizes.next().unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_since_2_1_have_the_call_for_spirv() {
        for (version, expected) in [
            ("OpenCL 1.2 (Oclgrind 21.10)", false),
            ("OpenCL 2.0", false),
            ("OpenCL 2.1 x", true),
            ("OpenCL 3.0 PoCL", true),
            ("OpenCL 10.0", true),
            ("OpenCL", false),
            ("", false),
            ("OpenCL x.y", false),
        ] {
            assert_eq!(at_least_2_1(version), expected, "{version}");
        }
    }

    #[test]
    fn numbers_of_any_width_are_read() {
        assert_eq!(number(&7_u32.to_ne_bytes()), 7);
        assert_eq!(number(&u64::MAX.to_ne_bytes()), u64::MAX);
        assert_eq!(number(&[]), 0);
    }

    #[test]
    fn pci_addresses_are_four_numbers() {
        let bytes = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
        assert_eq!(address(&bytes(&[0, 0xc1, 0, 0])).as_deref(), Some("0000:c1:00.0"));
        assert_eq!(address(&bytes(&[0x10000, 1, 31, 7])).as_deref(), Some("10000:01:1f.7"));
        for wrong in [&[0, 0x100, 0, 0][..], &[0, 1, 32, 0], &[0, 1, 0, 8], &[0, 1, 0], &[]] {
            assert_eq!(address(&bytes(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_missing_loader_and_missing_platforms_have_reasons_of_their_own() {
        let reason = |code| no_platforms(Failure { call: "clGetPlatformIDs", code });
        assert_eq!(reason(DLOPEN_RUNTIME_LOAD_FAILED), Absent::NoLoader);
        assert_eq!(reason(CL_PLATFORM_NOT_FOUND_KHR), Absent::NoPlatform);
        assert!(
            reason(-6).sentence().contains("clGetPlatformIDs gave CL_OUT_OF_HOST_MEMORY (-6)"),
            "{}",
            reason(-6).sentence()
        );
    }
}
