//! Which devices there are, and which of them a description such as `host` or `opencl:pocl` means.

use std::fmt;

use crate::backend::{BACKENDS, Backend, DeviceInfo, DeviceKind, Listing};
use crate::error::{Error, Result};
use crate::kernel::{KernelDesc, ScalarType};

/// All back ends with their devices and the reasons for those that are not there.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// Name and listing of each back end.
    pub backends: Vec<(&'static str, Listing)>,
}

/// Asks every back end for its devices.
pub fn inventory() -> Inventory {
    Inventory { backends: BACKENDS.iter().map(|backend| (backend.name(), backend.devices())).collect() }
}

impl fmt::Display for Inventory {
    /// One line for each device and for each reason why there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for (name, listing) in &self.backends {
            for device in &listing.devices {
                let kind = match device.kind {
                    DeviceKind::Cpu => "CPU",
                    DeviceKind::Gpu => "GPU",
                };
                let platform =
                    if device.platform.is_empty() { String::new() } else { format!(" ({})", device.platform) };
                lines.push(format!("  {name}: {kind} {}{platform}", device.name));
            }
            lines.extend(listing.absent.iter().map(|reason| format!("  {name}: absent: {reason}")));
        }
        f.write_str(&lines.join("\n"))
    }
}

/// A device description, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Spec<'a> {
    /// The best device for the program.
    Auto,
    /// A back end, perhaps only one of its platforms.
    Backend { name: &'a str, platform: Option<&'a str> },
}

/// What makes a description unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    /// It means something that doesn't exist.
    Nothing(String),
    /// It asks for several devices.
    Several { count: usize, instead: String },
}

/// Takes `auto`, `NAME`, `NAME:PLATFORM`, `NAME:COUNT` and `NAME:PLATFORM:COUNT` apart.
fn parse(text: &str) -> Result<Spec<'_>, Fault> {
    let text = text.trim();
    let names: Vec<_> = BACKENDS.iter().map(|backend| backend.name()).collect();
    if let Some((first, _)) = text.split_once('+') {
        return Err(Fault::Several { count: text.split('+').count(), instead: first.trim().into() });
    }
    let mut parts = text.split(':');
    let (name, rest) = (parts.next().unwrap_or(""), parts.collect::<Vec<_>>());
    if name.eq_ignore_ascii_case("auto") && rest.is_empty() {
        return Ok(Spec::Auto);
    }
    let Some(&name) = names.iter().find(|known| known.eq_ignore_ascii_case(name)) else {
        return Err(Fault::Nothing(format!("a description is `auto` or starts with one of {}", names.join(", "))));
    };
    let (platform, count) = match *rest.as_slice() {
        [] => (None, None),
        [part] if part.parse::<usize>().is_ok() => (None, Some(part)),
        [part] => (Some(part), None),
        [platform, count] => (Some(platform), Some(count)),
        _ => return Err(Fault::Nothing("a description has at most three parts: back end, platform, count".into())),
    };
    if platform == Some("") {
        return Err(Fault::Nothing("the part after the colon is empty: name a platform or leave out the colon".into()));
    }
    if platform.is_some() && name != "opencl" {
        return Err(Fault::Nothing(format!("only `opencl` has platforms: ask for `{name}`")));
    }
    let instead = || platform.map_or_else(|| name.to_owned(), |platform| format!("{name}:{platform}"));
    match count.map(str::parse::<usize>) {
        None | Some(Ok(1)) => Ok(Spec::Backend { name, platform }),
        Some(Ok(0)) => Err(Fault::Nothing("it asks for no device at all".into())),
        Some(Ok(count)) => Err(Fault::Several { count, instead: instead() }),
        Some(Err(_)) => Err(Fault::Nothing(format!("the count in it isn't a number: ask for `{}`", instead()))),
    }
}

/// The device that a description means, for a program with these kernels.
pub fn find(spec: &str, kernels: &[&KernelDesc]) -> Result<(&'static dyn Backend, DeviceInfo)> {
    // Descriptions that can't mean a device, and those of the devices that are always there, load no vendor library.
    let wanted = match parse(spec) {
        Ok(wanted) => wanted,
        Err(Fault::Several { count, instead }) => {
            return Err(Error::SeveralDevices { spec: spec.into(), count, instead });
        }
        Err(Fault::Nothing(reason)) => return Err(nothing(spec, reason, &inventory())),
    };
    let asked: Vec<_> = match wanted {
        Spec::Auto => BACKENDS.to_vec(),
        Spec::Backend { name, .. } => BACKENDS.iter().copied().filter(|backend| backend.name() == name).collect(),
    };
    let backends = asked.iter().map(|backend| (backend.name(), backend.devices())).collect();
    let device = choose(&wanted, &Inventory { backends }, needs_fp64(kernels));
    let found = device.and_then(|device| {
        let backend = *asked.iter().find(|backend| backend.name() == device.backend)?;
        Some((backend, device))
    });
    found.ok_or_else(|| {
        let reason = match wanted {
            Spec::Backend { name, platform: Some(platform) } => {
                format!("no platform of {name} with a device has `{platform}` in its name")
            }
            Spec::Backend { name, platform: None } => format!("{name} has no device here"),
            Spec::Auto => "there is no device at all".into(),
        };
        nothing(spec, reason, &inventory())
    })
}

fn nothing(spec: &str, reason: String, inventory: &Inventory) -> Error {
    Error::NoSuchDevice { spec: spec.into(), reason, inventory: format!("there is:\n{inventory}") }
}

fn needs_fp64(kernels: &[&KernelDesc]) -> bool {
    kernels.iter().flat_map(|kernel| kernel.types()).any(|ty| ty == ScalarType::F64)
}

/// The first of the best devices that fit.
fn choose(spec: &Spec<'_>, inventory: &Inventory, fp64: bool) -> Option<DeviceInfo> {
    let devices = inventory.backends.iter().flat_map(|(_, listing)| &listing.devices);
    let fits = |device: &&DeviceInfo| match spec {
        // A CPU is best driven by the host device; through OpenCL only when that is asked for.
        Spec::Auto => device.backend == "host" || (device.kind == DeviceKind::Gpu && (device.fp64 || !fp64)),
        Spec::Backend { name, platform } => {
            device.backend == *name && platform.is_none_or(|part| is_part_of(part, &device.platform))
        }
    };
    let unsuited = |device: &&DeviceInfo| (fp64 && !device.fp64, device.kind != DeviceKind::Gpu);
    devices.filter(fits).min_by_key(unsuited).cloned()
}

/// Whether `part` occurs in a platform's name; PoCL calls itself by its long name.
fn is_part_of(part: &str, platform: &str) -> bool {
    let (part, platform) = (part.to_lowercase(), platform.to_lowercase());
    platform.contains(&part) || (part == "pocl" && platform.contains("portable computing language"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AVERAGE, FOLDED, HEAT};

    fn device(backend: &'static str, ordinal: u32, platform: &str, kind: DeviceKind, fp64: bool) -> DeviceInfo {
        let (platform, name) = (platform.into(), format!("{backend}-{ordinal}"));
        DeviceInfo { backend, ordinal, name, platform, notes: Vec::new(), kind, fp64, units: 1, memory_bytes: 1 }
    }

    fn made(opencl: Vec<DeviceInfo>) -> Inventory {
        let listing = |devices| Listing { devices, absent: Vec::new() };
        let reference = device("reference", 0, "", DeviceKind::Cpu, true);
        let host = device("host", 0, "", DeviceKind::Cpu, true);
        let backends =
            vec![("reference", listing(vec![reference])), ("host", listing(vec![host])), ("opencl", listing(opencl))];
        Inventory { backends }
    }

    fn check(spec: &str, opencl: &[DeviceInfo], fp64: bool, expected: Option<&str>) {
        let found = choose(&parse(spec).unwrap(), &made(opencl.to_vec()), fp64);
        assert_eq!(found.map(|device| device.name).as_deref(), expected, "{spec}");
    }

    #[test]
    fn auto_takes_a_gpu_that_can_run_the_kernels_else_the_host() {
        let cpu = device("opencl", 0, "Portable Computing Language", DeviceKind::Cpu, true);
        let single = device("opencl", 1, "Vendor", DeviceKind::Gpu, false);
        let double = device("opencl", 2, "Vendor", DeviceKind::Gpu, true);
        check("auto", &[], true, Some("host-0"));
        check("auto", std::slice::from_ref(&cpu), true, Some("host-0"));
        check("auto", &[cpu.clone(), single.clone()], true, Some("host-0"));
        check("auto", &[cpu.clone(), single.clone()], false, Some("opencl-1"));
        check("Auto", &[cpu.clone(), single.clone(), double.clone()], true, Some("opencl-2"));
        check("opencl", &[cpu, single, double], true, Some("opencl-2"));
    }

    #[test]
    fn a_platform_is_found_by_a_part_of_its_name() {
        let devices = [
            device("opencl", 0, "Portable Computing Language 3.1", DeviceKind::Cpu, true),
            device("opencl", 1, "Intel(R) OpenCL", DeviceKind::Cpu, true),
        ];
        check("opencl", &devices, true, Some("opencl-0"));
        check("opencl:intel", &devices, true, Some("opencl-1"));
        check("OpenCL:COMPUTING", &devices, true, Some("opencl-0"));
        check("opencl:PoCL", &devices, true, Some("opencl-0"));
        check("opencl:none", &devices, true, None);
        check("opencl:intel:1", &devices, true, Some("opencl-1"));
        check("host", &devices, true, Some("host-0"));
        check("reference", &[], true, Some("reference-0"));
    }

    #[test]
    fn several_devices_are_an_error_of_their_own_that_says_what_works() {
        for (spec, count, instead) in
            [("host:4", 4, "host"), ("opencl:pocl:2", 2, "opencl:pocl"), ("host+cuda", 2, "host")]
        {
            assert_eq!(parse(spec), Err(Fault::Several { count, instead: instead.into() }));
            assert!(matches!(find(spec, &[]), Err(Error::SeveralDevices { .. })));
        }
    }

    #[test]
    fn what_does_not_exist_is_answered_with_what_does_and_why_the_rest_is_not() {
        for spec in ["", "gpu", "auto:2", "host:", "host:fast", "host:0", "opencl:a:b", "opencl:a:1:2", "cuda", "hip:1"]
        {
            match find(spec, &[]) {
                Err(error @ Error::NoSuchDevice { .. }) => {
                    let text = error.to_string();
                    for part in
                        [&format!("`{spec}`"), "  reference: CPU", "  host: CPU", "  cuda: absent: ", "  hip: absent: "]
                    {
                        assert!(text.contains(part), "{text}");
                    }
                }
                Err(other) => panic!("{spec}: {other}"),
                Ok((_, device)) => panic!("{spec} found {device}"),
            }
        }
    }

    #[test]
    fn kernels_tell_whether_double_precision_is_needed() {
        assert!(needs_fp64(&[&AVERAGE, &HEAT]));
        assert!(!needs_fp64(&[&AVERAGE]));
        // Its cells are f32, its sum isn't.
        static SINGLE: KernelDesc = KernelDesc { fields: &[], ..FOLDED };
        assert!(needs_fp64(&[&SINGLE]));
    }

    #[test]
    fn the_devices_that_need_no_library_are_always_there() {
        for spec in ["reference", "host", "host:1"] {
            let (backend, device) = find(spec, &[]).unwrap();
            assert_eq!(backend.name(), device.backend);
        }
    }
}
