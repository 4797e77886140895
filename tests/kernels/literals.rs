//! Constants at the edges of their type: each must arrive with its last bit.

use polyhalo::prelude::*;

/// Double precision.
#[stencil]
#[allow(clippy::excessive_precision, reason = "the digits beyond the type's are the test")]
pub fn literals(u: &Field<f64>, ok: bool) -> f64 {
    const TABLE: [f64; 7] =
        [5e-324, 2.2250738585072011e-308, 9007199254740993.0, 1e23, f64::MAX, f64::MIN_POSITIVE, f64::EPSILON];
    let mut sum = u[HERE].abs() * -0.0;
    for constant in TABLE {
        sum = u[X] * constant - sum;
    }
    let bounded = if sum < f64::INFINITY && sum > f64::NEG_INFINITY { sum } else { u[HERE] };
    if ok { bounded + std::f64::consts::PI } else { f64::NAN }
}

/// Single precision; the last digits of the table's third would be rounded wrongly by way of a double.
#[stencil]
#[allow(clippy::excessive_precision, reason = "the digits beyond the type's are the test")]
pub fn literals_f32(u: &Field<f32>, ok: bool) -> f32 {
    const TABLE: [f32; 7] = [
        1e-45,
        1.1754942e-38,
        0.50000002980232238769531250000000001,
        16777217.0,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::EPSILON,
    ];
    let mut sum = u[HERE].abs() * -0.0;
    for constant in TABLE {
        sum = u[X] * constant - sum;
    }
    let bounded = if sum < f32::INFINITY && sum > f32::NEG_INFINITY { sum } else { u[HERE] };
    if ok { bounded + std::f32::consts::PI } else { f32::NAN }
}
