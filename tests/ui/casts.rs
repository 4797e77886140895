use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let n = u[HERE] as i16;
    let b = u[HERE] as bool;
    let r = u[HERE] as real;
    let p = (a > 0.0) as f64;
    a + X as f64
}

fn main() {}
