use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, u: &Field<f64>, a: f64, a: f64) -> f64 {
    a * u[HERE]
}

fn main() {}
