use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut s = u[HERE];
    while s > a {
        s = s - a;
    }
    s
}

fn main() {}
