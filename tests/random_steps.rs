//! Random steps: every device, and several together, against a plain model of what steps mean.
//!
//! `POLYHALO_RANDOM_STEPS` is their number and `POLYHALO_RANDOM_SEED` the seed of the first; a failure names the seed of
//! its story and shows the part of it that fails.

use std::fs;
use std::process::Command;

use polyhalo_codegen::offline::{nvrtc, require};
use polyhalo_tests::number;
use polyhalo_tests::steps::check::{check, check_drawn};
use polyhalo_tests::steps::device::{devices, opencl, opencl_terms};

/// The number and the first seed of the stories, unless the environment has others.
const STORIES: u64 = 60;
const SEED: u64 = 1;

/// Some of the stories, the more expensive the device the fewer.
fn each_seed(share: u64, check: impl Fn(u64)) {
    let seed = number("POLYHALO_RANDOM_SEED", SEED);
    let stories = number("POLYHALO_RANDOM_STEPS", STORIES).div_ceil(share);
    (0..stories).for_each(|story| check(seed.wrapping_add(story)));
}

#[test]
fn the_devices_that_are_always_there_do_what_steps_mean() {
    each_seed(1, |seed| check(seed, &devices()));
}

#[test]
fn pocl_does_what_steps_mean() {
    each_seed(5, |seed| check(seed, opencl("pocl", "portable").as_slice()));
}

#[test]
fn intel_does_what_steps_mean() {
    each_seed(5, |seed| check(seed, opencl("intel", "intel").as_slice()));
}

#[test]
fn several_devices_do_what_steps_mean() {
    // Most grids have few planes, and then few devices.
    (0..4).for_each(|turn| each_seed(1, |seed| check_drawn(seed.wrapping_add(turn * 1_000_003), &[])));
}

#[test]
fn several_opencl_devices_do_what_steps_mean() {
    let terms = opencl_terms();
    if !terms.is_empty() {
        each_seed(4, |seed| check_drawn(seed.wrapping_add(1_000_000_007), &terms));
    }
}

/// Names the devices to a test that was started again on stand-ins.
const CHILD: &str = "POLYHALO_TEST_ON_DOUBLES";

/// A process has one stand-in with one order, so each gets a process of its own.
#[test]
fn doubles_of_gpus_do_what_steps_mean() {
    if let Ok(term) = std::env::var(CHILD) {
        return each_seed(2, |seed| check_drawn(seed.wrapping_add(2_000_000_011), std::slice::from_ref(&term)));
    }
    let compiler = || Command::new("g++").arg("--version").output().map_err(|error| format!("g++: {error}"));
    let cuda = require::available("nvrtc", nvrtc::find()).map(|_| "cuda");
    let hip = require::available("g++", compiler()).map(|_| "hip");
    let test = std::env::current_exe().expect("a test has a path");
    for vendor in [cuda, hip].into_iter().flatten() {
        for order in ["eager", "lazy", "random:5"] {
            let log = std::env::temp_dir().join(format!("polyhalo-steps-{}-{vendor}-{order}", std::process::id()));
            let mut command = Command::new(&test);
            command.args(["--exact", "doubles_of_gpus_do_what_steps_mean", "--nocapture"]).env(CHILD, vendor);
            command.env(
                format!("POLYHALO_{}", vendor.to_uppercase()),
                test.with_file_name(format!("libpolyhalo_double_{vendor}.so")),
            );
            command.env("POLYHALO_DOUBLE_DEVICES", "3").env("POLYHALO_DOUBLE_ORDER", order);
            let output = command.env("POLYHALO_DOUBLE_LOG", &log).output().expect("the test starts again");
            let misuse = fs::read_to_string(&log).unwrap_or_default();
            let _ = fs::remove_file(&log);
            let said =
                [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
            assert!(output.status.success() && misuse.is_empty(), "{vendor}, {order}: {misuse}\n{said}");
            assert!(said.contains("1 passed"), "{said}");
        }
    }
}
