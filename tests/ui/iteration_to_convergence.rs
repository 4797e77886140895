use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut x = a;
    while (x * x - u[HERE]).abs() > 1e-6 {
        x = 0.5 * (x + u[HERE] / x);
    }
    x
}

fn main() {}
