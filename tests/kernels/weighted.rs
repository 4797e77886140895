//! Most of the language at once: tables, closures, a nested function, branches, a variable, the methods of floats.

use polyhalo::prelude::*;

/// A limited high-order smoother.
#[stencil]
pub fn weighted(u: &Field<f64>, w: &Field<f64>, strength: f64, limited: bool) -> f64 {
    const TAPS: [f64; 3] = [-2.5, 4.0 / 3.0, -1.0 / 12.0];
    const AXES: [Offset; 3] = [X, Y, Z];
    fn norm(a: f64, b: f64) -> f64 {
        a.mul_add(a, b * b).sqrt()
    }
    let slope = |d: Offset| 0.5 * (u[d] - u[-d]);
    let mut curvature = 0.0;
    for d in AXES {
        curvature += TAPS[0] * u[HERE];
        for (r, tap) in TAPS.iter().enumerate() {
            if r > 0 {
                let r = r as i32;
                curvature += tap * (u[r * d] + u[-r * d]);
            }
        }
    }
    let steep = norm(norm(slope(X), slope(Y)), slope(Z));
    let brake = if limited && steep > 1.0 {
        1.0 / steep
    } else if curvature.abs() < 1e-12 || w[HERE] <= 0.0 {
        0.0
    } else {
        1.0
    };
    if limited == (steep != 0.0) {
        curvature *= brake;
    }
    strength.mul_add(curvature, u[HERE])
}
