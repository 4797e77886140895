//! Random steps: every device, and several together, against a plain model of what steps mean.
//!
//! `POLYHALO_RANDOM_STEPS` is their number and `POLYHALO_RANDOM_SEED` the seed of the first; a failure names the seed of
//! its story and shows the part of it that fails.

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
