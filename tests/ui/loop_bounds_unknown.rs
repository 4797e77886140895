use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut s = 0.0;
    for i in 0..(a as i32) {
        s += u[i * X];
    }
    s
}

fn main() {}
