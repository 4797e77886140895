use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut s = 0.0;
    for i in 0..4 {
        if i == 2 {
            break;
        }
        s += u[i * X];
    }
    s
}

fn main() {}
