use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, n: usize) -> f64 {
    u[HERE]
}

fn main() {}
