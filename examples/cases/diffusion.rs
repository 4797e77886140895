//! Horizontal diffusion with a flux limiter, as weather models have it.

use polyhalo::prelude::*;

/// One step: fluxes against the gradient are left out.
#[stencil]
pub fn limited_diffusion(a: &Field<f64>, c: &Field<f64>) -> f64 {
    // Here Z and Y are the horizontal axes of the model, and X is its vertical.
    let laplacian = |p: Offset| 4.0 * a[p] - a[p + Z] - a[p - Z] - a[p + Y] - a[p - Y];
    let flux = |p: Offset, e: Offset| {
        let d = laplacian(p + e) - laplacian(p);
        if d * (a[p + e] - a[p]) <= 0.0 { d } else { 0.0 }
    };
    a[HERE] - c[HERE] * (flux(HERE, Z) - flux(-Z, Z) + flux(HERE, Y) - flux(-Y, Y))
}
