use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let unused = |d: Offset| u[d] * missing;
    u[HERE]
}

fn main() {}
