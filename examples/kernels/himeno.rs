//! Himeno's benchmark: point-Jacobi iterations of a pressure equation in curvilinear coordinates, 19 points.

use polyhalo::prelude::*;

/// One iteration: the new pressure, and the square of the residual (`gosa` is its sum).
#[stencil]
pub fn himeno(
    p: &Field<f32>,
    a: &[Field<f32>; 4],
    b: &[Field<f32>; 3],
    c: &[Field<f32>; 3],
    bnd: &Field<f32>,
    wrk: &Field<f32>,
    omega: f32,
) -> (f32, Sum<f64>) {
    let cross = |d: Offset, e: Offset| p[d + e] - p[d - e] - p[-d + e] + p[-d - e];
    // The first axis of the benchmark is the slowest one, Z.
    let s0 = a[0][HERE] * p[Z]
        + a[1][HERE] * p[Y]
        + a[2][HERE] * p[X]
        + b[0][HERE] * cross(Z, Y)
        + b[1][HERE] * cross(Y, X)
        + b[2][HERE] * cross(Z, X)
        + c[0][HERE] * p[-Z]
        + c[1][HERE] * p[-Y]
        + c[2][HERE] * p[-X]
        + wrk[HERE];
    let ss = (s0 * a[3][HERE] - p[HERE]) * bnd[HERE];
    (p[HERE] + omega * ss, Sum((ss * ss) as f64))
}
