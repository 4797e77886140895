use polyhalo::prelude::*;

#[stencil]
#[stencil(contract)]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    a * u[HERE]
}

fn main() {}
