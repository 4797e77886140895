use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> Max<f64> {
    Max(u[X], u[-X])
}

fn main() {}
