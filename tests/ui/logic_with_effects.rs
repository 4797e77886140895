use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut s = 0.0;
    if u[HERE] > a && { s = 1.0; true } {
        s += 1.0;
    }
    s
}

fn main() {}
