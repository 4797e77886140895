//! Machines without OpenCL, with broken libraries, with several devices, and with a simulated one.

use super::several::{check_exchange, check_rally};
use super::*;

#[test]
fn the_listing_has_each_device_and_opens_it() {
    let facts = OpenCl.facts();
    let listing = OpenCl.devices();
    assert_eq!(listing.devices, facts.iter().map(|facts| facts.info.clone()).collect::<Vec<_>>());
    on_each_platform(|found, _| {
        let info = &found.facts.info;
        assert!(
            info.notes[0].contains(&found.facts.driver)
                && info.units > 0
                && found.facts.max_alloc_bytes <= info.memory_bytes
        );
        let options = OpenOptions { opencl_form: OpenClForm::Source, ..OpenOptions::default() };
        let device = OpenCl.open_one(info.ordinal, &options).unwrap();
        assert_eq!(device.info(), info);
        assert!(device.summary().contains("OpenCL C"), "{}", device.summary());
    });
    match OpenCl.open_one(4_000_000, &OpenOptions::default()) {
        Err(Error::NoSuchDevice { spec, .. }) => assert_eq!(spec, "opencl 4000000"),
        Err(other) => panic!("{other}"),
        Ok(device) => panic!("{} was opened", device.summary()),
    }
}

#[test]
fn the_variable_names_a_form_or_is_refused() {
    for (value, expected) in [
        (None, OpenClForm::Auto),
        (Some(""), OpenClForm::Auto),
        (Some("c"), OpenClForm::Source),
        (Some("spirv"), OpenClForm::SpirV),
    ] {
        assert_eq!(form_of(value.map(AsRef::as_ref)).unwrap(), expected);
    }
    let error = form_of(Some("C99".as_ref())).unwrap_err().to_string();
    assert!(error.contains(FORM_VARIABLE) && error.contains("`C99` is neither"), "{error}");
}

/// The child of the tests below: lists what there is, in an environment that they choose.
#[test]
fn listing_never_panics() {
    let listing = OpenCl.devices();
    let mut lines: Vec<_> = listing.devices.iter().map(|info| format!("device: {info}")).collect();
    lines.extend(listing.absent.iter().map(|reason| format!("absent: {reason}")));
    assert!(!lines.is_empty(), "devices or a reason");
    println!("{}", lines.join("\n"));
}

/// What [`listing_never_panics`] prints in a process of its own.
fn listing_in(set: impl FnOnce(&mut Command)) -> String {
    run_again("machine::listing_never_panics", set)
}

/// What a test of `tests`, named by its file and itself, prints in a process of its own.
pub(super) fn run_again(test: &str, set: impl FnOnce(&mut Command)) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    let module = module_path!().split_once("::").unwrap().1;
    let name = format!("{}::{test}", module.rsplit_once("::").unwrap().0);
    command.args(["--exact", &name, "--nocapture"]);
    set(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    text
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("polyhalo-opencl-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_machine_without_platforms_is_explained() {
    if listing_in(|_| ()).contains("no OpenCL:") {
        return skip("there is no OpenCL loader, so platforms can't be hidden from it");
    }
    let empty = Folder::new("empty");
    let text = listing_in(|command| {
        command.env("OCL_ICD_VENDORS", &empty.0).env_remove("OPENCL_DYLIB_PATH");
    });
    assert!(text.contains("no platform is registered") && !text.contains("device:"), "{text}");
    // A registered library that isn't there is no platform either.
    fs::write(empty.0.join("nowhere.icd"), "/nowhere/libnothing.so\n").unwrap();
    let text = listing_in(|command| {
        command.env("OCL_ICD_VENDORS", &empty.0).env_remove("OPENCL_DYLIB_PATH");
    });
    assert!(text.contains("no platform is registered"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_broken_loader_is_a_reason() {
    let folder = Folder::new("broken");
    fs::write(folder.0.join("libOpenCL.so.1"), "not a library").unwrap();
    let text = listing_in(|command| {
        command.env("LD_LIBRARY_PATH", &folder.0).env_remove("OPENCL_DYLIB_PATH");
    });
    assert!(text.contains("absent: no OpenCL: libOpenCL.so.1 isn't installed or can't be loaded"), "{text}");
}

#[test]
fn one_platform_with_several_devices_lists_and_runs_them_all() {
    if platform("pocl", "Portable Computing Language").is_none() {
        return;
    }
    let text = run_again("machine::every_device_of_the_first_platform_computes", |command| {
        command.env("POCL_DEVICES", "pthread basic pthread");
    });
    assert_eq!(text.matches("computed on").count(), 3, "{text}");
}

/// The child of the test above.
#[test]
fn every_device_of_the_first_platform_computes() {
    let (all, _) = discover();
    let pocl: Vec<_> = all.iter().filter(|found| found.facts.info.platform.contains("Portable")).collect();
    let devices: Vec<_> = pocl.iter().map(|found| open(found, &all, OpenClForm::Auto, None)).collect();
    for device in &devices {
        assert!(device.shares_context(&devices[0]));
        assert_eq!(device.awaits(&devices[0]), !device.info().name.starts_with("basic"));
        let kernel = device.load(&HEAT).unwrap();
        check_heat(device, kernel, [17, 5, 3], false);
        check_exchange(device, &devices[0]);
        println!("computed on {}", device.summary());
    }
}

#[test]
fn oclgrind_finds_nothing() {
    let icd = env::var_os("POLYHALO_OCLGRIND_ICD").map(PathBuf::from);
    let icd = icd.unwrap_or_else(|| "/usr/lib/oclgrind/liboclgrind-rt-icd.so".into());
    let Some(icd) = available("oclgrind", icd.exists().then_some(icd), "liboclgrind-rt-icd.so isn't installed") else {
        return;
    };
    let folder = Folder::new("oclgrind");
    let log = folder.0.join("log");
    let text = run_again("machine::heat_is_clean_on_a_simulated_device", |command| {
        let checks = ["OCLGRIND_CHECK_API", "OCLGRIND_DATA_RACES"].map(|name| (name, "1"));
        command.env("OCL_ICD_VENDORS", icd).env_remove("OPENCL_DYLIB_PATH").env("OCLGRIND_LOG", &log).envs(checks);
    });
    assert!(text.contains("computed on opencl (Oclgrind Simulator"), "{text}");
    assert!(text.contains("exchanged on"), "{text}");
    let found = fs::read_to_string(&log).unwrap_or_default();
    assert!(found.trim().is_empty(), "{found}");
}

/// The child of the test above; elsewhere it has nothing to do.
#[test]
fn heat_is_clean_on_a_simulated_device() {
    let (all, _) = discover();
    for found in all.iter().filter(|found| found.facts.info.platform == "Oclgrind") {
        for entry in [Entry::Points, Entry::Rows] {
            let device = open(found, &all, OpenClForm::Auto, Some(entry));
            let kernel = device.load(&HEAT).unwrap();
            for n in [[1, 1, 1], [5, 4, 3], [17, 3, 2], [2, 33, 5]] {
                check_heat(&device, kernel, n, true);
            }
            let event = device.signal(QueueId::COMPUTE).unwrap();
            device.wait(QueueId(1), event).unwrap();
            device.finish(QueueId(1)).unwrap();
            println!("computed on {}", device.summary());
        }
        // A simulator isn't split.
        let devices = open_parts(found, &all, 2, false);
        assert!(devices[1].summary().contains("as it can't be split"), "{}", devices[1].summary());
        check_rally(&devices[0], &devices[1], 3, 5, None);
        let staging = devices[0].staging(2 * 5 * 8 + 8).unwrap();
        check_rally(&devices[0], &devices[1], 3, 5, Some(&staging));
        println!("exchanged on {}", devices[1].summary());
    }
}
