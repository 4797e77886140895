//! Random kernels: native code and OpenCL devices against the interpreter.
//!
//! `POLYHALO_RANDOM_KERNELS` is their number and `POLYHALO_RANDOM_SEED` the seed of the first; a failure names the seed of
//! its kernel.

use polyhalo_codegen::Verified;
use polyhalo_codegen::random::{Limits, kernel};
use polyhalo_tests::agreement::{check_host, check_opencl};
use polyhalo_tests::number;

/// The number and the first seed of the kernels, unless the environment has others.
const KERNELS: u64 = 20;
const SEED: u64 = 1;

fn kernels() -> Vec<Verified> {
    let seed = number("POLYHALO_RANDOM_SEED", SEED);
    let seeds = (0..number("POLYHALO_RANDOM_KERNELS", KERNELS)).map(|number| seed.wrapping_add(number));
    seeds.map(|seed| kernel(&format!("random_{seed}"), seed, Limits::default())).collect()
}

#[test]
fn native_code_has_the_interpreters_bits() {
    check_host(&kernels());
}

#[test]
fn opencl_devices_have_the_interpreters_bits() {
    check_opencl(&kernels());
}
