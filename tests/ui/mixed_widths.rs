use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let half = 0.5f32;
    half * u[HERE]
}

fn main() {}
