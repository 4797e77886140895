use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let w = [0.25, 0.5];
    w[2] * u[HERE]
}

fn main() {}
