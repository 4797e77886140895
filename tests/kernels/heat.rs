//! The kernel of the design page: one explicit Euler step of the heat equation.

use polyhalo::prelude::*;

/// One explicit Euler step of du/dt = div(kappa grad u) + f, conservative 7-point form.
#[stencil]
pub fn heat(u: &Field<f64>, f: &Field<f64>, kappa: &Field<f64>, beta: f64) -> f64 {
    let flux = |d: Offset| (kappa[d] + kappa[HERE]) * (u[d] - u[HERE]);
    u[HERE] + f[HERE] + beta * (flux(X) + flux(-X) + flux(Y) + flux(-Y) + flux(Z) + flux(-Z))
}
