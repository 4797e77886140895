//! Which devices there are, and which of them a description means.
//!
//! A description is one or more terms with `+` between them:
//!
//! ```text
//! auto                    a GPU that can run the program's kernels, else the host
//! BACKEND                 the best device of a back end: reference, host, opencl, cuda, hip
//! BACKEND:COUNT           so many of its devices, or its processor split into so many: host:4
//! BACKEND:COUNTxSHARES    so many of its devices, of which each stands for so many: cuda:1x4 is one GPU with four subdomains
//! BACKEND:ORDINAL,..      those with these numbers in the listing: opencl:0,2, and opencl:2, for that one alone
//! opencl:PLATFORM         the same for a platform with that in its name: opencl:pocl
//! opencl:PLATFORM:COUNT   or opencl:PLATFORM:COUNTxSHARES
//! ```
//!
//! Devices come in the order of the terms. Those of one back end are opened together, so that they can reach each other.

use std::collections::BTreeMap;
use std::fmt;

use crate::backend::{BACKENDS, Backend, Device, DeviceInfo, DeviceKind, Listing, OpenOptions};
use crate::error::{Error, Result};
use crate::kernel::{KernelDesc, ScalarType};

/// More devices than this are taken for a mistake.
const MOST: usize = 1024;

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

/// The devices that a description means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The devices, in the order of the description. One that is to be split or shared occurs several times.
    pub devices: Vec<DeviceInfo>,
    /// The same by back ends.
    pub groups: Vec<Group>,
}

/// Devices of one back end, which are opened together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name of the back end.
    pub backend: &'static str,
    /// Which devices, in the order of the description.
    pub ordinals: Vec<u32>,
    /// The place of each in the description.
    pub places: Vec<usize>,
}

impl Selection {
    fn new(devices: Vec<DeviceInfo>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for (place, device) in devices.iter().enumerate() {
            let known = groups.iter().position(|group| group.backend == device.backend);
            let group = known.unwrap_or_else(|| {
                groups.push(Group { backend: device.backend, ordinals: Vec::new(), places: Vec::new() });
                groups.len() - 1
            });
            groups[group].ordinals.push(device.ordinal);
            groups[group].places.push(place);
        }
        Self { devices, groups }
    }

    /// Opens the devices, in the order of the description.
    pub fn open(&self, options: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
        let mut opened = Vec::new();
        for group in &self.groups {
            let devices = backend(group.backend).open(&group.ordinals, options)?;
            opened.extend(group.places.iter().copied().zip(devices));
        }
        opened.sort_by_key(|&(place, _)| place);
        Ok(opened.into_iter().map(|(_, device)| device).collect())
    }
}

fn backend(name: &str) -> &'static dyn Backend {
    *BACKENDS.iter().find(|backend| backend.name() == name).expect("a back end of the list")
}

/// A part of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term<'a> {
    text: &'a str,
    wanted: Wanted<'a>,
}

/// What a term asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted<'a> {
    /// The best device for the program.
    Auto,
    /// So many devices of a back end, perhaps of one of its platforms, each to be split into so many.
    Count { backend: &'static str, platform: Option<&'a str>, count: usize, shares: usize },
    /// The devices of a back end with these numbers.
    Ordinals { backend: &'static str, ordinals: Vec<u32> },
}

impl Wanted<'_> {
    fn devices(&self) -> usize {
        match self {
            Wanted::Auto => 1,
            Wanted::Count { count, shares, .. } => count * shares,
            Wanted::Ordinals { ordinals, .. } => ordinals.len(),
        }
    }

    fn may_be_of(&self, name: &str) -> bool {
        match self {
            Wanted::Auto => true,
            Wanted::Count { backend, .. } | Wanted::Ordinals { backend, .. } => *backend == name,
        }
    }
}

/// Takes a description apart.
fn parse(spec: &str) -> Result<Vec<Term<'_>>> {
    let terms: Vec<_> = spec.split('+').map(|text| parse_term(spec, text.trim())).collect::<Result<_>>()?;
    let count = terms.iter().map(|term| term.wanted.devices()).sum::<usize>();
    if count > MOST { Err(wrong_count(spec, &count.to_string())) } else { Ok(terms) }
}

fn parse_term<'a>(spec: &str, text: &'a str) -> Result<Term<'a>> {
    let faulty = |reason: String| Error::DeviceDescription { spec: spec.into(), reason };
    if text.is_empty() {
        let what = if spec.trim().is_empty() { "it is empty" } else { "there is nothing on one side of a `+`" };
        return Err(faulty(format!("{what}: name a device such as `host`")));
    }
    let mut parts = text.split(':').map(str::trim);
    let (name, rest) = (parts.next().unwrap_or(""), parts.collect::<Vec<_>>());
    if name.eq_ignore_ascii_case("auto") {
        let auto = Term { text, wanted: Wanted::Auto };
        return if rest.is_empty() { Ok(auto) } else { Err(faulty("`auto` is one device and has no parts".into())) };
    }
    let known = BACKENDS.iter().map(|backend| backend.name());
    let Some(backend) = known.clone().find(|known| known.eq_ignore_ascii_case(name)) else {
        return Err(Error::NoSuchBackend { spec: spec.into(), name: name.into(), known: known.collect() });
    };
    let (platform, number) = match *rest.as_slice() {
        [] => (None, None),
        [part] if part.starts_with(|first: char| first.is_ascii_digit()) => (None, Some(part)),
        [part] if part.starts_with(',') => (None, Some(part)),
        [part] => (Some(part), None),
        [platform, number] => (Some(platform), Some(number)),
        _ => return Err(faulty(format!("`{text}` has more than three parts: back end, platform, count"))),
    };
    if platform == Some("") {
        return Err(faulty(format!(
            "nothing stands between colons of `{text}`: name a platform or leave the colon out"
        )));
    }
    if platform.is_some() && backend != "opencl" {
        return Err(faulty(format!(
            "only `opencl` has platforms: ask for `{backend}`, or `{backend}:2` for two devices"
        )));
    }
    let wanted = match number {
        Some(list) if platform.is_none() && list.contains(',') => {
            // A comma at the end tells a number from a count.
            let ordinals =
                list.strip_suffix(',').unwrap_or(list).split(',').map(str::parse).collect::<Result<Vec<u32>, _>>();
            let ordinals = ordinals.map_err(|_| faulty(format!("`{list}` isn't a list of numbers of devices")))?;
            Wanted::Ordinals { backend, ordinals }
        }
        Some(number) => {
            let (count, shares) = number.split_once(['x', 'X']).unwrap_or((number, "1"));
            let [count, shares] = [count, shares].map(|digits| {
                if digits.is_empty() || digits.bytes().any(|byte| !byte.is_ascii_digit()) {
                    return Err(faulty(format!("`{number}` isn't a number of devices, such as `2` or `1x4`")));
                }
                let count = digits.parse().ok().filter(|count| (1..=MOST).contains(count));
                count.ok_or_else(|| wrong_count(spec, digits))
            });
            Wanted::Count { backend, platform, count: count?, shares: shares? }
        }
        None => Wanted::Count { backend, platform, count: 1, shares: 1 },
    };
    Ok(Term { text, wanted })
}

fn wrong_count(spec: &str, asked: &str) -> Error {
    Error::DeviceCount { spec: spec.into(), asked: asked.into(), most: MOST }
}

/// The devices that a description means, for a program with these kernels.
pub fn find(spec: &str, kernels: &[&KernelDesc]) -> Result<Selection> {
    let (terms, fp64) = (parse(spec)?, needs_fp64(kernels));
    // No vendor's library is loaded unless it may be needed.
    let asked = BACKENDS.iter().filter(|backend| terms.iter().any(|term| term.wanted.may_be_of(backend.name())));
    let backends = asked.map(|backend| (backend.name(), backend.devices())).collect();
    let selection = select(spec, &terms, &Inventory { backends }, fp64);
    // An error shows everything that there is.
    selection.or_else(|_| select(spec, &terms, &inventory(), fp64))
}

fn needs_fp64(kernels: &[&KernelDesc]) -> bool {
    kernels.iter().flat_map(|kernel| kernel.types()).any(|ty| ty == ScalarType::F64)
}

/// The devices of an inventory that the terms mean.
fn select(spec: &str, terms: &[Term<'_>], inventory: &Inventory, fp64: bool) -> Result<Selection> {
    let mut choice = Choice { spec, inventory, fp64, taken: BTreeMap::new() };
    let mut devices = Vec::new();
    for term in terms {
        let chosen = choice.of(term)?;
        for device in &chosen {
            *choice.taken.entry((device.backend, device.ordinal)).or_default() += 1;
        }
        devices.extend(chosen);
    }
    Ok(Selection::new(devices))
}

/// A selection in the making.
struct Choice<'a> {
    spec: &'a str,
    inventory: &'a Inventory,
    fp64: bool,
    /// How often each device was taken by earlier terms.
    taken: BTreeMap<(&'static str, u32), usize>,
}

impl Choice<'_> {
    fn of(&self, term: &Term<'_>) -> Result<Vec<DeviceInfo>> {
        match &term.wanted {
            Wanted::Auto => {
                // A CPU is best driven by the host device; through OpenCL only when that is asked for.
                let fits = |device: &DeviceInfo| {
                    device.backend == "host" || (device.kind == DeviceKind::Gpu && (device.fp64 || !self.fp64))
                };
                let best = self.fitting(fits).into_iter().next();
                best.map(|device| vec![device.clone()]).ok_or_else(|| self.nothing("there is no device at all".into()))
            }
            Wanted::Ordinals { backend, ordinals } => {
                let all = self.fitting(|device| device.backend == *backend);
                let one =
                    |ordinal: &u32| all.iter().find(|device| device.ordinal == *ordinal).map(|&device| device.clone());
                ordinals.iter().map(|ordinal| one(ordinal).ok_or_else(|| self.no_ordinal(backend, *ordinal))).collect()
            }
            Wanted::Count { backend, platform, count, shares } => {
                let all = self.fitting(|device| device.backend == *backend);
                if all.is_empty() {
                    return Err(self.nothing(format!("{backend} has no device here")));
                }
                let named = |device: &&&DeviceInfo| platform.is_none_or(|part| is_part_of(part, &device.platform));
                let candidates: Vec<_> = all.iter().filter(named).copied().collect();
                match platform {
                    Some(platform) if candidates.is_empty() => Err(self.no_platform(platform, &all)),
                    Some(_) | None => {
                        let devices = self.several(term.text, &candidates, *count)?;
                        Ok(devices.into_iter().flat_map(|device| vec![device; *shares]).collect())
                    }
                }
            }
        }
    }

    /// The devices for which `fits` holds, the best for the program first, and of like ones those that are still free.
    fn fitting(&self, fits: impl Fn(&DeviceInfo) -> bool) -> Vec<&DeviceInfo> {
        let all = self.inventory.backends.iter().flat_map(|(_, listing)| &listing.devices);
        let mut fitting: Vec<_> = all.filter(|device| fits(device)).collect();
        fitting.sort_by_key(|device| {
            (self.fp64 && !device.fp64, self.taken(device), device.kind != DeviceKind::Gpu, device.ordinal)
        });
        fitting
    }

    fn taken(&self, device: &DeviceInfo) -> usize {
        self.taken.get(&(device.backend, device.ordinal)).copied().unwrap_or(0)
    }

    /// `count` devices of one platform of the candidates, or the best of them split. There is at least one.
    fn several(&self, term: &str, candidates: &[&DeviceInfo], count: usize) -> Result<Vec<DeviceInfo>> {
        let of_platform = |best: &DeviceInfo| -> Vec<&DeviceInfo> {
            candidates.iter().copied().filter(|device| device.platform == best.platform).collect()
        };
        let enough = candidates.iter().map(|best| of_platform(best)).find(|devices| devices.len() >= count);
        let chosen = match enough {
            Some(devices) => devices[..count].to_vec(),
            None => vec![candidates[0]; count],
        };
        let is_split = |device: &&&DeviceInfo| {
            self.taken(device) > 0 || chosen.iter().filter(|other| other.ordinal == device.ordinal).count() > 1
        };
        match chosen.iter().find(|device| device.kind == DeviceKind::Gpu && is_split(device)) {
            None => Ok(chosen.into_iter().cloned().collect()),
            Some(gpu) => {
                let backend = gpu.backend;
                let free = candidates.iter().filter(|device| self.taken(device) == 0);
                let there = free.clone().filter(|device| device.platform == gpu.platform).count();
                let reasons = self.inventory.backends.iter().filter(|(name, _)| *name == backend);
                let reasons: String =
                    reasons.flat_map(|(_, listing)| &listing.absent).map(|reason| format!("; {reason}")).collect();
                let reason = format!(
                    "and a GPU isn't split unless you say so: `{backend}:1x2` makes two subdomains on one, \
                     `{backend}:{ordinal},{ordinal}` on {gpu}{reasons}",
                    ordinal = gpu.ordinal
                );
                Err(Error::TooFewDevices { spec: self.spec.into(), term: term.into(), asked: count, there, reason })
            }
        }
    }

    fn nothing(&self, reason: String) -> Error {
        let inventory = format!("there is:\n{}", self.inventory);
        Error::NoSuchDevice { spec: self.spec.into(), reason, inventory }
    }

    fn no_ordinal(&self, backend: &str, ordinal: u32) -> Error {
        self.nothing(format!("{backend} has no device number {ordinal}"))
    }

    fn no_platform(&self, platform: &str, all: &[&DeviceInfo]) -> Error {
        let mut known: Vec<_> = all.iter().map(|device| device.platform.clone()).collect();
        known.sort();
        known.dedup();
        let inventory = format!("there is:\n{}", self.inventory);
        Error::NoSuchPlatform { spec: self.spec.into(), platform: platform.into(), known, inventory }
    }
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
        DeviceInfo {
            backend,
            ordinal,
            name,
            platform,
            notes: Vec::new(),
            kind,
            pci: None,
            fp64,
            units: 1,
            memory_bytes: 1,
        }
    }

    fn cpu(ordinal: u32, platform: &str) -> DeviceInfo {
        device("opencl", ordinal, platform, DeviceKind::Cpu, true)
    }

    fn gpu(ordinal: u32, platform: &str) -> DeviceInfo {
        device("opencl", ordinal, platform, DeviceKind::Gpu, true)
    }

    const POCL: &str = "Portable Computing Language";

    fn made(opencl: Vec<DeviceInfo>) -> Inventory {
        let listing = |devices| Listing { devices, absent: Vec::new() };
        let reference = device("reference", 0, "", DeviceKind::Cpu, true);
        let host = device("host", 0, "", DeviceKind::Cpu, true);
        let cuda = Listing { devices: Vec::new(), absent: vec!["no libcuda".into()] };
        let backends = vec![
            ("reference", listing(vec![reference])),
            ("host", listing(vec![host])),
            ("opencl", listing(opencl)),
            ("cuda", cuda),
        ];
        Inventory { backends }
    }

    fn names(spec: &str, opencl: &[DeviceInfo], fp64: bool) -> Result<String> {
        let selection = select(spec, &parse(spec)?, &made(opencl.to_vec()), fp64)?;
        let names: Vec<_> = selection.devices.into_iter().map(|device| device.name).collect();
        Ok(names.join(" "))
    }

    fn check(spec: &str, opencl: &[DeviceInfo], fp64: bool, expected: &str) {
        assert_eq!(names(spec, opencl, fp64).unwrap(), expected, "{spec}");
    }

    #[test]
    fn auto_takes_a_gpu_that_can_run_the_kernels_else_the_host() {
        let cpu = cpu(0, POCL);
        let single = device("opencl", 1, "Vendor", DeviceKind::Gpu, false);
        let double = gpu(2, "Vendor");
        check("auto", &[], true, "host-0");
        check("auto", std::slice::from_ref(&cpu), true, "host-0");
        check("auto", &[cpu.clone(), single.clone()], true, "host-0");
        check("auto", &[cpu.clone(), single.clone()], false, "opencl-1");
        check("Auto", &[cpu.clone(), single.clone(), double.clone()], true, "opencl-2");
        check("opencl", &[cpu, single, double], true, "opencl-2");
    }

    #[test]
    fn a_platform_is_found_by_a_part_of_its_name() {
        let devices = [cpu(0, "Portable Computing Language 3.1"), cpu(1, "Intel(R) OpenCL")];
        check("opencl", &devices, true, "opencl-0");
        check("opencl:intel", &devices, true, "opencl-1");
        check("OpenCL:COMPUTING", &devices, true, "opencl-0");
        check("opencl:PoCL", &devices, true, "opencl-0");
        check("opencl:intel:1", &devices, true, "opencl-1");
        check("host", &devices, true, "host-0");
        check("reference", &[], true, "reference-0");
        match names("opencl:none", &devices, true) {
            Err(Error::NoSuchPlatform { platform, known, inventory, .. }) => {
                assert_eq!((platform.as_str(), known.len()), ("none", 2));
                assert!(inventory.contains("opencl: CPU opencl-1 (Intel(R) OpenCL)"), "{inventory}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_count_takes_the_platforms_own_devices_if_there_are_so_many_else_splits_one() {
        let one = [cpu(0, POCL), cpu(1, "Intel")];
        check("host:3", &[], true, "host-0 host-0 host-0");
        check("host:2x2", &[], true, "host-0 host-0 host-0 host-0");
        check("reference:2", &[], true, "reference-0 reference-0");
        check("opencl:2", &one, true, "opencl-0 opencl-0");
        check("opencl:pocl:2", &one, true, "opencl-0 opencl-0");
        check("opencl:intel:3", &one, true, "opencl-1 opencl-1 opencl-1");
        let several = [cpu(0, "Intel"), cpu(1, POCL), cpu(2, POCL)];
        check("opencl:pocl:2", &several, true, "opencl-1 opencl-2");
        check("opencl:2", &several, true, "opencl-1 opencl-2");
        check("opencl:pocl:3", &several, true, "opencl-1 opencl-1 opencl-1");
        check("opencl:3", &[cpu(0, POCL), gpu(1, "V"), gpu(2, "V"), gpu(3, "V")], true, "opencl-1 opencl-2 opencl-3");
        check("opencl:0,2,2", &several, true, "opencl-0 opencl-2 opencl-2");
        check("opencl:2,", &several, true, "opencl-2");
    }

    #[test]
    fn later_terms_take_what_earlier_ones_left_and_split_when_nothing_is_left() {
        let several = [cpu(0, POCL), cpu(1, POCL)];
        check("opencl:pocl+opencl:pocl", &several, true, "opencl-0 opencl-1");
        check("opencl:pocl+opencl:pocl+opencl:pocl", &several, true, "opencl-0 opencl-1 opencl-0");
        check("opencl:pocl + opencl:pocl", &several[..1], true, "opencl-0 opencl-0");
        check("opencl+opencl", &[gpu(0, "A"), gpu(1, "B")], true, "opencl-0 opencl-1");
    }

    #[test]
    fn devices_of_a_back_end_are_opened_together_and_come_in_the_order_of_the_terms() {
        let spec = "host:1+opencl:pocl:1+host:2+reference";
        let selection = select(spec, &parse(spec).unwrap(), &made(vec![cpu(0, POCL)]), true).unwrap();
        let group = |backend, ordinals: &[u32], places: &[usize]| Group {
            backend,
            ordinals: ordinals.to_vec(),
            places: places.to_vec(),
        };
        let expected =
            [group("host", &[0, 0, 0], &[0, 2, 3]), group("opencl", &[0], &[1]), group("reference", &[0], &[4])];
        assert_eq!(selection.groups, expected);
        let opened = find("host+reference+host:2", &[]).unwrap().open(&OpenOptions::default()).unwrap();
        let backends: Vec<_> = opened.iter().map(|device| device.info().backend).collect();
        assert_eq!(backends, ["host", "reference", "host", "host"]);
    }

    #[test]
    fn a_gpu_stands_for_several_devices_only_when_that_is_said() {
        let one = [cpu(0, POCL), gpu(1, "Vendor"), gpu(2, "Vendor")];
        check("opencl:vendor:2", &one, true, "opencl-1 opencl-2");
        check("opencl:1,1", &one, true, "opencl-1 opencl-1");
        check("opencl:1x3", &one, true, "opencl-1 opencl-1 opencl-1");
        check("opencl:vendor:2x2", &one, true, "opencl-1 opencl-1 opencl-2 opencl-2");
        check("opencl:1X1+opencl:vendor", &one, true, "opencl-1 opencl-2");
        for (spec, term, asked, free) in [
            ("opencl:vendor:3", "opencl:vendor:3", 3, 2),
            ("opencl:vendor+opencl:vendor:2", "opencl:vendor:2", 2, 1),
            ("opencl:3", "opencl:3", 3, 2),
        ] {
            match names(spec, &one, true) {
                Err(Error::TooFewDevices { term: found, asked: count, there, reason, .. }) => {
                    assert_eq!((found.as_str(), count, there), (term, asked, free), "{spec}");
                    assert!(reason.contains("`opencl:1x2`"), "{reason}");
                    assert!(reason.contains("`opencl:1,1`") || reason.contains("`opencl:2,2`"), "{reason}");
                }
                other => panic!("{spec}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_description_is_an_error_that_says_why() {
        for spec in ["", " ", "host++host", "+host", "host+", "auto:2", "host:", "host:fast", "host::2", "opencl::2"] {
            assert!(matches!(find(spec, &[]), Err(Error::DeviceDescription { .. })), "`{spec}`");
        }
        for spec in
            ["opencl:a:b", "opencl:a:", "opencl:a:1:2", "host:1,,", "host:,", "host:1,99999999999", "opencl:a:1,2"]
                .into_iter()
                .chain(["host:2x", "host:x2", "host:1x2x3", "host:1x-2", "opencl:a:2x", "cuda:1 x 4"])
        {
            assert!(matches!(find(spec, &[]), Err(Error::DeviceDescription { .. })), "`{spec}`");
        }
        let counts = ["0", "1025", "99999999999999999999999999"];
        for asked in counts {
            let found = find(&format!("host:{asked}"), &[]);
            assert!(matches!(&found, Err(Error::DeviceCount { asked: count, .. }) if count == asked), "{found:?}");
        }
        assert!(matches!(find("host:1000+host:25", &[]), Err(Error::DeviceCount { asked, .. }) if asked == "1025"));
        for spec in ["opencl:pocl:0", "host:0x2", "host:2x0", "cuda:64x64"] {
            assert!(matches!(find(spec, &[]), Err(Error::DeviceCount { .. })), "{spec}");
        }
        match find("host+gpu:2", &[]) {
            Err(Error::NoSuchBackend { name, known, .. }) => {
                assert_eq!((name.as_str(), known), ("gpu", vec!["reference", "host", "opencl", "cuda", "hip"]));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(names("host+cuda:2", &[], true), Err(Error::NoSuchDevice { .. })));
        assert!(matches!(names("cuda:0,2", &[], true), Err(Error::NoSuchDevice { .. })));
        assert!(matches!(names("opencl:intel", &[], true), Err(Error::NoSuchDevice { .. })));
    }

    #[test]
    fn what_does_not_exist_is_answered_with_what_does_and_why_the_rest_is_not() {
        for spec in ["host:0,1", "host+reference:7,8"] {
            match find(spec, &[]) {
                Err(error @ Error::NoSuchDevice { .. }) => {
                    let text = error.to_string();
                    for part in [&format!("`{spec}`"), "  reference: CPU", "  host: CPU", "  cuda: ", "  hip: "] {
                        assert!(text.contains(part), "{text}");
                    }
                }
                other => panic!("{spec}: {other:?}"),
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
        for (spec, count) in [("reference", 1), ("host", 1), ("host:1", 1), ("host:4", 4)] {
            assert_eq!(find(spec, &[]).unwrap().devices.len(), count);
        }
    }
}
