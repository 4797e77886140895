use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, p: Point) -> f64 {
    p.x + p[0] + u[p] + p.i
}

fn main() {}
