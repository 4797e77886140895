//! Values without a pattern that are the same in every run.

use polyhalo::prelude::*;

/// A number from 0 to 1, mixed from a seed and the indices of a point.
pub(crate) fn noise(seed: u64, point: Point) -> f64 {
    let mut word = seed;
    for index in [point.i, point.j, point.k] {
        word = (word ^ index as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
    }
    (word >> 11) as f64 / (1_u64 << 53) as f64
}
