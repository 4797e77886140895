//! Kernels that allow multiply and add to be fused.

use polyhalo::prelude::*;

/// One Jacobi step of Poisson's equation.
#[stencil(contract)]
pub fn jacobi(u: &Field<f64>, f: &Field<f64>, h2: f64) -> f64 {
    let around = u[X] + u[-X] + u[Y] + u[-Y] + u[Z] + u[-Z];
    (around - h2 * f[HERE]) * (1.0 / 6.0)
}

/// The same in single precision.
#[stencil(contract)]
pub fn jacobi_f32(u: &Field<f32>, f: &Field<f32>, h2: f32) -> f32 {
    let around = u[X] + u[-X] + u[Y] + u[-Y] + u[Z] + u[-Z];
    (around - h2 * f[HERE]) * (1.0 / 6.0)
}
