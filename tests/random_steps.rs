//! Random steps: every device against a plain model of what steps mean.
//!
//! `POLYHALO_RANDOM_STEPS` is their number and `POLYHALO_RANDOM_SEED` the seed of the first; a failure names the seed of
//! its story and shows the part of it that fails.

use polyhalo_tests::number;
use polyhalo_tests::steps::check::{Device, check, devices, opencl};

/// The number and the first seed of the stories, unless the environment has others.
const STORIES: u64 = 60;
const SEED: u64 = 1;

/// Some of the stories, the more expensive the device the fewer.
fn check_on(devices: &[Device], share: u64) {
    let seed = number("POLYHALO_RANDOM_SEED", SEED);
    let stories = number("POLYHALO_RANDOM_STEPS", STORIES).div_ceil(share);
    (0..stories).for_each(|story| check(seed.wrapping_add(story), devices));
}

#[test]
fn the_devices_that_are_always_there_do_what_steps_mean() {
    check_on(&devices(), 1);
}

#[test]
fn pocl_does_what_steps_mean() {
    check_on(opencl("pocl", "portable").as_slice(), 5);
}

#[test]
fn intel_does_what_steps_mean() {
    check_on(opencl("intel", "intel").as_slice(), 5);
}
