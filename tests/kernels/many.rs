//! So many fields that not every OpenCL device takes an origin of 64 bits for each of them.

use polyhalo::prelude::*;

/// 64 fields, two scalars and the place of the point.
#[stencil]
pub fn many(u: &[Field<f32>; 64], a: f32, b: f32, p: Point) -> f32 {
    let mut sum = a;
    for n in 0..64 {
        sum += u[n][X] * b;
    }
    sum - (p.i + p.k) as f32
}
