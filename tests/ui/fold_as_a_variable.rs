use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> Sum<f64> {
    let mut total = Sum(0.0);
    for d in [X, Y, Z] {
        total += u[d];
    }
    total
}

fn main() {}
