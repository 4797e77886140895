//! What a machine may lack: libraries, entry points, devices, memory, compilers, a driver that is new enough.

use std::fs;

use polyhalo_double_engine::without_symbols;
use serde_json::Value;

use crate::double::{Double, Vendor};
use crate::process::{example, fails, file, program, run};

fn there() -> impl Iterator<Item = Vendor> {
    [Vendor::Cuda, Vendor::Hip].into_iter().filter(|vendor| vendor.is_there())
}

/// Heat on some doubles, as JSON; it must have the reference's bits.
fn heat(double: &Double, devices: &str, more: &[&str]) -> Value {
    let steps: &[&str] = if more.contains(&"--steps") { &[] } else { &["--steps", "3"] };
    let arguments = ["--n", "13,9,11", "--devices", devices, "--verify", "--json"];
    let said = double.out(example("heat", &[&arguments, steps, more].concat()));
    let run: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(run["bits_equal"] == true, "{run}");
    run
}

/// What a program that can't run there says.
fn refused(double: &Double, devices: &str) -> String {
    let ended = double.run(example("heat", &["--n", "13,9,11", "--steps", "3", "--devices", devices, "--json"]));
    assert_eq!(ended.misuse, "");
    let err = fails(ended.output, 2);
    assert!(!err.contains("panicked"), "{err}");
    err
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_missing_library_and_one_that_is_no_driver_are_reasons_in_place_of_a_double() {
    for vendor in [Vendor::Cuda, Vendor::Hip] {
        let (name, variable) = (vendor.name(), format!("POLYHALO_{}", vendor.name().to_uppercase()));
        let with = |value: &str| {
            let mut command = example("heat", &["--n", "9", "--steps", "1", "--devices", name]);
            command.env(&variable, value);
            let err = fails(run(command), 2);
            assert!(!err.contains("panicked"), "{err}");
            err
        };
        contains(&with("off"), &[&variable, name]);
        contains(&with("/nowhere/libdriver.so"), &["/nowhere/libdriver.so", &variable]);
        let text = file("on_doubles", "no-library.so");
        fs::write(&text, "not a library").unwrap();
        contains(&with(text.to_str().unwrap()), &["no-library.so"]);
    }
}

#[test]
fn doubles_are_found_where_the_loader_finds_drivers() {
    for vendor in there() {
        let name = match vendor {
            Vendor::Cuda => "libcuda.so.1",
            Vendor::Hip => "libamdhip64.so.6",
        };
        let folder = file("on_doubles", &format!("loader-{}", vendor.name()));
        fs::create_dir_all(&folder).unwrap();
        let link = folder.join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(vendor.library(), &link).unwrap();
        let variable = format!("POLYHALO_{}", vendor.name().to_uppercase());
        let double = Double::new(vendor, 2, "lazy").with(&variable, "").with("LD_LIBRARY_PATH", folder.display());
        heat(&double, &format!("{}:2", vendor.name()), &["--exchange", "neighbour"]);
    }
}

#[test]
fn an_entry_point_that_the_double_lacks_is_done_without_or_named() {
    for vendor in there() {
        let (core, optional): (&str, &[&str]) = match vendor {
            Vendor::Cuda => (
                "cuLaunchKernel",
                &["cuStreamBeginCapture_v2", "cuGraphLaunch", "cuMemcpyPeerAsync", "cuCtxEnablePeerAccess"],
            ),
            Vendor::Hip => (
                "hipModuleLaunchKernel",
                &["hipStreamBeginCapture", "hipGraphLaunch", "hipMemcpyPeerAsync", "hipDeviceEnablePeerAccess"],
            ),
        };
        let folder = file("on_doubles", &format!("lacking-{}", vendor.name()));
        fs::create_dir_all(&folder).unwrap();
        let variable = format!("POLYHALO_{}", vendor.name().to_uppercase());
        let lacking = |symbol: &str| {
            let copy = folder.join(format!("{symbol}.so"));
            without_symbols(&vendor.library(), &[symbol], &copy).unwrap();
            Double::new(vendor, 2, "lazy").with(&variable, copy.display())
        };
        let devices = format!("{}:2", vendor.name());
        contains(&refused(&lacking(core), &devices), &[core]);
        for symbol in optional {
            heat(&lacking(symbol), &devices, &["--exchange", "peer-to-peer"]);
            heat(&lacking(symbol), vendor.name(), &["--steps", "50"]);
        }
    }
}

#[test]
fn no_device_and_too_few_are_answered_with_what_there_is_on_both_doubles() {
    for vendor in there() {
        let name = vendor.name();
        contains(&refused(&Double::new(vendor, 0, "eager"), name), &[name, "no device"]);
        let err = refused(&Double::new(vendor, 2, "eager"), &format!("{name}:3"));
        contains(&err, &["3 devices", &format!("{name}:1x2")]);
        contains(&refused(&Double::new(vendor, 2, "eager"), &format!("{name}:0,5")), &["no device number 5"]);
    }
}

#[test]
fn cards_that_do_not_reach_each_other_exchange_through_the_host_on_both_doubles() {
    for vendor in there() {
        let double = Double::new(vendor, 2, "lazy").with("POLYHALO_DOUBLE_PEERS", "none");
        let devices = format!("{}:2", vendor.name());
        for exchange in ["peer-to-peer", "neighbour", "streamed"] {
            heat(&double, &devices, &["--exchange", exchange]);
        }
    }
}

#[test]
fn too_little_memory_is_an_error_with_numbers_on_both_doubles() {
    for vendor in there() {
        let double = Double::new(vendor, 1, "eager").with("POLYHALO_DOUBLE_MEMORY", 40_000);
        contains(&refused(&double, vendor.name()), &["memory", "KiB"]);
    }
}

#[test]
fn an_old_driver_gets_ptx_that_it_takes_and_one_that_is_too_old_is_refused_on_the_double() {
    if !Vendor::Cuda.is_there() {
        return;
    }
    let driver = |version: &str| Double::new(Vendor::Cuda, 1, "eager").with("POLYHALO_DOUBLE_DRIVER", version);
    for version in ["9.0", "10.2", "11.0", "11.4", "12.0", "13.0"] {
        heat(&driver(version), "cuda", &[]);
    }
    contains(&refused(&driver("8.0"), "cuda"), &["PTX up to version 5.0", "sm_70 needs 6.0", "newer driver"]);
}

#[test]
fn a_card_that_is_older_than_all_code_is_refused_by_name_on_both_doubles() {
    if Vendor::Cuda.is_there() {
        let double = Double::new(Vendor::Cuda, 1, "eager").with("POLYHALO_DOUBLE_ARCH", "3.5");
        contains(&refused(&double, "cuda"), &["sm_35", "heat"]);
    }
    if Vendor::Hip.is_there() {
        let double = Double::new(Vendor::Hip, 1, "eager");
        for (variable, value, reason) in
            [("POLYHALO_DOUBLE_HIPRTC", "abort", "hiprtc"), ("POLYHALO_DOUBLE_HIPRTC", "fail", "hiprtc")]
        {
            let cache = file("on_doubles", &format!("cache-{value}"));
            let _ = fs::remove_dir_all(&cache);
            let double = double.clone().with(variable, value).with("POLYHALO_CACHE", cache.display());
            contains(&refused(&double, "hip"), &[reason, "heat", "gfx"]);
        }
        // The embedded code object is for a real card of that name, which the double isn't.
        heat(&double.with("POLYHALO_DOUBLE_ARCH", "gfx90a:sramecc+:xnack-"), "hip", &[]);
    }
}

#[test]
fn the_listing_shows_both_doubles() {
    for vendor in there() {
        let mut command = program("polyhalo");
        command.arg("devices");
        let said = Double::new(vendor, 2, "eager").out(command);
        contains(&said, &[&format!("\n{}\n", vendor.name()), "  0: ", "  1: ", "GPU", "driver"]);
    }
}
