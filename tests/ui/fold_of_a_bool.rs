use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> Sum<u32> {
    Sum(u[HERE] > a)
}

fn main() {}
