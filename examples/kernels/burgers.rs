//! Burgers' equation, du/dt + (u . grad) u = nu laplacian(u), with upwind differences, a moving lid and a time step from the
//! largest speed.

use polyhalo::prelude::*;

/// The velocity along one axis on the lid.
#[stencil]
pub fn lid(speed: f64) -> f64 {
    speed
}

/// The largest |u|/hx + |v|/hy + |w|/hz.
#[stencil]
pub fn fastest(v: &[Field<f64>; 3], hx: f64, hy: f64, hz: f64) -> Max<f64> {
    Max(v[0][HERE].abs() / hx + v[1][HERE].abs() / hy + v[2][HERE].abs() / hz)
}

/// One explicit Euler step of the three velocities.
#[stencil]
pub fn burgers(v: &[Field<f64>; 3], hx: f64, hy: f64, hz: f64, nu: f64, dt: f64) -> [f64; 3] {
    let rate = |a: &Field<f64>, c: f64, e: Offset, h: f64| {
        let slope = if c > 0.0 { (a[HERE] - a[-e]) / h } else { (a[e] - a[HERE]) / h };
        -c * slope + nu * (a[e] - 2.0 * a[HERE] + a[-e]) / (h * h)
    };
    let [u, v, w] = v;
    let step =
        |a: &Field<f64>| a[HERE] + dt * (rate(a, u[HERE], X, hx) + rate(a, v[HERE], Y, hy) + rate(a, w[HERE], Z, hz));
    [step(u), step(v), step(w)]
}
