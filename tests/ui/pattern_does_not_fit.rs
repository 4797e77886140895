use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let (x, y) = [u[X], u[Y], u[Z]];
    let [p, q] = (a, a);
    x + p
}

fn main() {}
