use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let d = if a > 0.0 { X } else { -X };
    u[d]
}

fn main() {}
