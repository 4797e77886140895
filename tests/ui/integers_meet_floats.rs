use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64, p: Point) -> f64 {
    let n = p.i % 2;
    a * n + u[HERE] * p.j + (n + 1) / 2.0
}

fn main() {}
