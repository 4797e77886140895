use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, (a, b): (f64, f64)) -> f64 {
    u[HERE] + a + b
}

fn main() {}
