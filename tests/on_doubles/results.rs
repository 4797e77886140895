//! All examples and all cases, on 1, 2 and 4 devices, with all strategies, in all orders: the bits of the reference device.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::double::{Double, Vendor};
use crate::process::{EXAMPLES, example, file, out, run, strategies};

/// The case that calls such functions.
const TRANSCENDENTAL: &str = "perona_malik";

/// Shapes of kernels, of which another one is taken for each run: blocks and parts that divide nothing evenly.
const SHAPES: [&str; 5] = ["", "point:8x4x2", "march:8x4:3", "march:16x2:64", "point:32x1x1"];

/// Whether indices have 64 bits for a shape: for one of the blocks and for one of the columns.
fn wide(shape: &str) -> u8 {
    u8::from(shape == SHAPES[1] || shape == SHAPES[3])
}

/// Every number of devices with every strategy, and a shape.
fn combinations() -> Vec<(usize, String, &'static str)> {
    let mut all = vec![(1, "auto".to_owned())];
    for count in [2, 4] {
        all.extend(strategies().into_iter().map(|exchange| (count, exchange)));
    }
    all.into_iter().zip(SHAPES.iter().cycle()).map(|((count, exchange), shape)| (count, exchange, *shape)).collect()
}

fn check_examples(vendor: Vendor, order: &str) {
    if !vendor.is_there() {
        return;
    }
    for (count, exchange, shape) in combinations() {
        let double = Double::new(vendor, count, order).with("POLYHALO_SHAPE", shape).with("POLYHALO_WIDE", wide(shape));
        let devices = format!("{}:{count}", vendor.name());
        for (name, is_transcendental) in EXAMPLES {
            let arguments = ["--n", "19,11,14", "--steps", "3", "--devices", &devices, "--exchange", &exchange];
            let said = double.out(example(name, &[&arguments[..], &["--verify", "--json"]].concat()));
            let run: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
            let what = format!("{name} on {double:?} with {exchange}: {run}");
            assert_eq!(run["within_tolerance"], Value::from(true), "{what}");
            assert!(is_transcendental || run["bits_equal"] == true, "{what}");
        }
    }
}

/// The results of all cases on the reference device.
fn reference() -> &'static Path {
    static RESULTS: OnceLock<PathBuf> = OnceLock::new();
    RESULTS.get_or_init(|| {
        let folder = file("on_doubles", "reference");
        let arguments = ["all", "--devices", "reference", "--dump", folder.to_str().expect("UTF-8")];
        out(run(example("cases", &arguments)));
        folder
    })
}

fn check_cases(vendor: Vendor, order: &str) {
    if !vendor.is_there() {
        return;
    }
    let mut transcendental: Option<Vec<u8>> = None;
    for (count, exchange, shape) in combinations() {
        let double = Double::new(vendor, count, order).with("POLYHALO_SHAPE", shape).with("POLYHALO_WIDE", wide(shape));
        let double = double.with("POLYHALO_DOUBLE_MEMORY", 1 << 30);
        let devices = format!("{}:{count}", vendor.name());
        let folder = file("on_doubles", &format!("{}-{}", vendor.name(), order.replace(':', "-")));
        let _ = fs::remove_dir_all(&folder);
        let arguments =
            ["all", "--devices", &devices, "--exchange", &exchange, "--dump", folder.to_str().expect("UTF-8")];
        let said = double.out(example("cases", &arguments));
        assert_eq!(said.lines().count(), 10, "{said}");
        for case in fs::read_dir(reference()).expect("it was written") {
            let case = case.expect("it can be read").file_name();
            let mut all = Vec::new();
            for name in fs::read_dir(reference().join(&case)).expect("it was written") {
                let place = Path::new(&case).join(name.expect("it can be read").file_name());
                let bits = |folder: &Path| fs::read(folder.join(&place)).unwrap_or_else(|e| panic!("{place:?}: {e}"));
                let found = bits(&folder);
                let what = || format!("{} on {double:?} with {exchange}", place.display());
                if case != TRANSCENDENTAL {
                    assert!(found == bits(reference()), "{} has other bits than the reference", what());
                } else if place.extension().is_some_and(|extension| extension == "bin") {
                    assert_eq!(found.len(), bits(reference()).len(), "{}", what());
                    all.extend(found);
                }
            }
            if case == TRANSCENDENTAL {
                // They are a function of the vendor, not of devices, strategies and shapes.
                assert!(
                    *transcendental.get_or_insert(all.clone()) == all,
                    "{TRANSCENDENTAL} on {double:?} with {exchange}"
                );
            }
        }
    }
}

#[test]
fn every_example_verifies_itself_on_the_cuda_double_eagerly() {
    check_examples(Vendor::Cuda, "eager");
}

#[test]
fn every_example_verifies_itself_on_the_cuda_double_lazily() {
    check_examples(Vendor::Cuda, "lazy");
}

#[test]
fn every_example_verifies_itself_on_the_cuda_double_at_random() {
    check_examples(Vendor::Cuda, "random:7");
}

#[test]
fn every_example_verifies_itself_on_the_hip_double_eagerly() {
    check_examples(Vendor::Hip, "eager");
}

#[test]
fn every_example_verifies_itself_on_the_hip_double_lazily() {
    check_examples(Vendor::Hip, "lazy");
}

#[test]
fn every_example_verifies_itself_on_the_hip_double_at_random() {
    check_examples(Vendor::Hip, "random:8");
}

#[test]
fn every_case_has_the_references_bits_on_the_cuda_double_eagerly() {
    check_cases(Vendor::Cuda, "eager");
}

#[test]
fn every_case_has_the_references_bits_on_the_cuda_double_lazily() {
    check_cases(Vendor::Cuda, "lazy");
}

#[test]
fn every_case_has_the_references_bits_on_the_cuda_double_at_random() {
    check_cases(Vendor::Cuda, "random:9");
}

#[test]
fn every_case_has_the_references_bits_on_the_hip_double_eagerly() {
    check_cases(Vendor::Hip, "eager");
}

#[test]
fn every_case_has_the_references_bits_on_the_hip_double_lazily() {
    check_cases(Vendor::Hip, "lazy");
}

#[test]
fn every_case_has_the_references_bits_on_the_hip_double_at_random() {
    check_cases(Vendor::Hip, "random:10");
}

/// Steps that are recorded, and shares of one card, have the bits of others; so have mixed devices.
#[test]
fn recorded_steps_shares_and_mixed_devices_have_the_references_bits_on_both_doubles() {
    for vendor in [Vendor::Cuda, Vendor::Hip].into_iter().filter(|vendor| vendor.is_there()) {
        let name = vendor.name();
        let sets = ["1", "2", "1x4", "2x2", "0,0,1"].map(|part| format!("{name}:{part}"));
        let mixed = [format!("host:1+{name}:2"), format!("{name}:1+host:1+{name}:1x2")];
        for order in ["eager", "lazy", "random:11"] {
            for devices in sets.iter().chain(&mixed) {
                for (exchange, steps) in [("peer-to-peer", "12"), ("neighbour", "130")] {
                    let double = Double::new(vendor, 2, order);
                    let arguments = ["--n", "13,9,11", "--steps", steps, "--devices", devices, "--exchange", exchange];
                    let said = double.out(example("heat", &[&arguments[..], &["--verify", "--json"]].concat()));
                    let run: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
                    assert!(run["bits_equal"] == true, "{devices} with {exchange} on {double:?}: {run}");
                    // Where the host meets all devices in each step, or devices wait for the host, nothing is recorded.
                    let is_recorded = exchange == "neighbour" && !devices.contains("host");
                    let recorded = run["recorded_steps"].as_u64();
                    assert_eq!(recorded.is_some_and(|steps| steps > 0), is_recorded, "{devices} on {double:?}: {run}");
                }
            }
        }
    }
}
