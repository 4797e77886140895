//! Single and double precision in one kernel: every cast is the user's.

use polyhalo::prelude::*;

/// Accumulates floats in double precision and scales by a weight in single precision.
#[stencil]
pub fn widths(coarse: &Field<f32>, fine: &Field<f64>, weight: f32) -> f32 {
    let mut sum = fine[HERE];
    for d in [X, -X, Y, -Y, Z, -Z] {
        sum += (coarse[d] * weight) as f64 * 0.1;
    }
    let back = sum as f32;
    (back as f64 - sum * 0.5) as f32 + 0.1 * weight
}
