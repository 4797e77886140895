use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    if u[X] > a { u[X] }
}

fn main() {}
