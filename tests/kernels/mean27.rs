//! Averages over the 27 nearest points, in both widths: nested loops, diagonal reads, an accumulator.

use polyhalo::prelude::*;

/// The average, by a division.
#[stencil]
pub fn mean27(u: &Field<f64>) -> f64 {
    let mut sum = 0.0;
    for k in -1..=1 {
        for j in -1..=1 {
            for i in -1..=1 {
                sum += u[i * X + j * Y + k * Z];
            }
        }
    }
    sum / 27.0
}

/// The average in single precision, by a weight. No double may occur in it anywhere.
#[stencil]
pub fn mean27_f32(u: &Field<f32>) -> f32 {
    const WEIGHT: f32 = 1.0 / 27.0;
    let mut sum = 0.0;
    for k in -1..=1 {
        for j in -1..=1 {
            for i in -1..=1 {
                sum += u[i * X + j * Y + k * Z];
            }
        }
    }
    sum * WEIGHT
}
