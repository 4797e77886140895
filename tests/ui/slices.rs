use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let w = [1.0, 2.0, 3.0];
    let inner = &w[1..3];
    let [first, ..] = w;
    let line = u[-1..=1];
    first * a * u[HERE]
}

fn main() {}
