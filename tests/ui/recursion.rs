use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    fn f(x: f64) -> f64 {
        f(x)
    }
    f(u[HERE])
}

fn main() {}
