use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, v: &Field<f64>) -> f64 {
    let u = 0.5 * u[HERE];
    let f = |v: f64| v[X];
    u[X] + f(v[HERE])
}

fn main() {}
