//! No text makes the front end panic: soups of tokens and real kernels with a few tokens changed.
//!
//! `POLYHALO_RANDOM_TEXTS` is their number and `POLYHALO_RANDOM_SEED` the seed of the first.

use polyhalo_tests::number;
use polyhalo_tests::soup::{check, kernels};

const TEXTS: u64 = 3000;
const SEED: u64 = 1;

#[test]
fn no_text_makes_the_front_end_panic() {
    let (seed, texts) = (number("POLYHALO_RANDOM_SEED", SEED), number("POLYHALO_RANDOM_TEXTS", TEXTS));
    let kernels = kernels();
    let accepted: usize = (0..texts).map(|text| check(seed.wrapping_add(text), &kernels)).sum();
    // Otherwise the emitters would be given nothing.
    assert!(accepted as u64 > texts / 20, "{accepted} kernels of {texts} texts are accepted");
}
