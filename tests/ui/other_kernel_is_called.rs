use polyhalo::prelude::*;

#[stencil]
fn laplacian(u: &Field<f64>) -> f64 {
    u[X] + u[-X] - 2.0 * u[HERE]
}

#[stencil]
fn heat(u: &Field<f64>, dt: f64) -> f64 {
    u[HERE] + dt * laplacian(u)
}

fn main() {}
