use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut s = 0.0;
    let difference = |d: Offset| u[d] - 1 * u[HERE];
    for i in 0..3 {
        s += i * a + difference(i * X) + difference(Y);
    }
    s
}

fn main() {}
