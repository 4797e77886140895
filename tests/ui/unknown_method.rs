use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    u[HERE].sin() + u[X].powi(2)
}

fn main() {}
