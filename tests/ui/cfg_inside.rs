use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    #[cfg(debug_assertions)]
    let a = 1.0;
    a * u[HERE]
}

fn main() {}
