//! Poisson's equation, laplacian(u) = f, by red-black successive over-relaxation.

use polyhalo::prelude::*;

/// The over-relaxed solution for one point. `rx`, `ry`, `rz` are 1/h^2 along each axis.
#[stencil]
pub fn relax(u: &Field<f64>, f: &Field<f64>, rx: f64, ry: f64, rz: f64, omega: f64) -> f64 {
    let around = (u[X] + u[-X]) * rx + (u[Y] + u[-Y]) * ry + (u[Z] + u[-Z]) * rz;
    (1.0 - omega) * u[HERE] + omega * (around - f[HERE]) / (2.0 * rx + 2.0 * ry + 2.0 * rz)
}

/// The sum of squares and the largest magnitude of the residual f - laplacian(u).
#[stencil]
pub fn residual(u: &Field<f64>, f: &Field<f64>, rx: f64, ry: f64, rz: f64) -> (Sum<f64>, Max<f64>) {
    let second = |e: Offset| u[e] - 2.0 * u[HERE] + u[-e];
    let r = f[HERE] - (second(X) * rx + second(Y) * ry + second(Z) * rz);
    (Sum(r * r), Max(r.abs()))
}
