//! HIP source, run on the CPU by the double of AMD's driver, against the interpreter: the fixtures and random kernels.

use polyhalo_codegen::random::{Limits, kernel};
use polyhalo_tests::agreement::check_hip;
use polyhalo_tests::fixtures::fixtures;
use polyhalo_tests::number;

/// The number and the first seed of the random kernels, unless the environment has others.
const KERNELS: u64 = 20;
const SEED: u64 = 1;

#[test]
fn fixtures_have_the_interpreters_bits_on_the_double() {
    check_hip(&fixtures().into_iter().map(|fixture| fixture.kernel).collect::<Vec<_>>());
}

#[test]
fn random_kernels_have_the_interpreters_bits_on_the_double() {
    let seed = number("POLYHALO_RANDOM_SEED", SEED);
    let seeds = (0..number("POLYHALO_RANDOM_KERNELS", KERNELS)).map(|number| seed.wrapping_add(number));
    check_hip(&seeds.map(|seed| kernel(&format!("random_{seed}"), seed, Limits::default())).collect::<Vec<_>>());
}
