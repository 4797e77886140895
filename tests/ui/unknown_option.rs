use polyhalo::prelude::*;

#[stencil(fast, contract)]
fn kernel(u: &Field<f64>) -> f64 {
    u[HERE]
}

fn main() {}
