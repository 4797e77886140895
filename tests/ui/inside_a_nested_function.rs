use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    fn square(x: f64) -> f64 {
        x.powi(2)
    }
    square(u[HERE])
}

fn main() {}
