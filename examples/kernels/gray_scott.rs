//! Gray-Scott: two substances that react and diffuse, du/dt = Du laplacian(u) - u v^2 + F (1 - u) and
//! dv/dt = Dv laplacian(v) + u v^2 - (F + k) v, periodic in all directions.

use polyhalo::prelude::*;

/// One explicit Euler step of both substances.
#[stencil]
pub fn gray_scott(u: &Field<f64>, v: &Field<f64>, feed: f64, kill: f64, dt: f64) -> (f64, f64) {
    const DU: f64 = 0.2;
    const DV: f64 = 0.1;
    let laplacian = |a: &Field<f64>| (a[X] + a[-X] + a[Y] + a[-Y] + a[Z] + a[-Z] - 6.0 * a[HERE]) / 6.0;
    let reaction = u[HERE] * v[HERE] * v[HERE];
    (
        u[HERE] + dt * (DU * laplacian(u) - reaction + feed * (1.0 - u[HERE])),
        v[HERE] + dt * (DV * laplacian(v) + reaction - (feed + kill) * v[HERE]),
    )
}
