//! The heat equation with variable conductivity, du/dt = div(kappa grad u) + f, in conservative 7-point form.

use polyhalo::prelude::*;

/// One explicit Euler step; the time step is folded into `f` and `beta` = dt / (2 h^2).
#[stencil]
pub fn heat(u: &Field<f64>, f: &Field<f64>, kappa: &Field<f64>, beta: f64) -> f64 {
    let flux = |d: Offset| (kappa[d] + kappa[HERE]) * (u[d] - u[HERE]);
    u[HERE] + f[HERE] + beta * (flux(X) + flux(-X) + flux(Y) + flux(-Y) + flux(Z) + flux(-Z))
}
