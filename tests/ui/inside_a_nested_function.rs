use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    fn square(x: f64) -> f64 {
        x.gamma()
    }
    square(u[HERE])
}

fn main() {}
