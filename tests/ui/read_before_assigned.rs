use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut s = u[X];
    s + { s = a; s }
}

fn main() {}
