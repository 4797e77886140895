use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    match a > 0.0 {
        true => u[X],
        false => u[-X],
    }
}

fn main() {}
