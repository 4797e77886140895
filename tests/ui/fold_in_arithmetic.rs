use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> Sum<f64> {
    Sum(u[HERE] * u[HERE]).sqrt() + 1.0
}

fn main() {}
