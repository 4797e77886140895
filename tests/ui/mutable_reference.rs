use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let s = &mut u[HERE];
    a
}

fn main() {}
