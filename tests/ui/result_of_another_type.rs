use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>) -> String {
    u[HERE]
}

fn main() {}
