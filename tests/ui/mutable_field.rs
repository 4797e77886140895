use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &mut Field<f64>) -> f64 {
    u[HERE]
}

fn main() {}
