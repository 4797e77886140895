//! A footprint that lies on one side only, three cells deep, and a field that is not read at the point itself.

use polyhalo::prelude::*;

/// Third-order advection towards higher indices along all axes.
#[stencil]
pub fn upwind(u: &Field<f64>, speed: &Field<f64>, courant: f64) -> f64 {
    let drift = |d: Offset| 11.0 * u[HERE] - 18.0 * u[-d] + 9.0 * u[-2 * d] - 2.0 * u[-3 * d];
    u[HERE] - courant * speed[2 * X - Y] * (drift(X) + drift(Y) + drift(Z))
}
