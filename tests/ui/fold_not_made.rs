use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> (f64, Sum<f64>) {
    (u[HERE], u[HERE] * a)
}

fn main() {}
