use polyhalo::prelude::*;

#[stencil]
fn kernel(u: Field<f64>) -> f64 {
    u[HERE]
}

fn main() {}
