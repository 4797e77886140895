use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, p: Point) -> f64 {
    let n = u.len();
    if p.i == nx - 1 { 0.0 } else { u[HERE] }
}

fn main() {}
