use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    1 / 2 * (u[X] + u[-X]) - a * (3 / 4)
}

fn main() {}
