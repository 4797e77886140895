use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let lap = |d: Offset| u[d] - 2 * u[HERE] + u[-d];
    lap(X) + lap(Y)
}

fn main() {}
