use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let square = u[X]^2;
    u[HERE] ** 2 + square + (u[X] - a) ** 0.5
}

fn main() {}
