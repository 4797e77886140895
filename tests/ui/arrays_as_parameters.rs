use polyhalo::prelude::*;

type Real = f64;

#[stencil]
fn kernel(u: &[f64], v: &mut Vec<f64>, w: [f64; 2], r: Real, d: double, f: &Field, x: &f64, g: &mut Field<f64>) -> f64 {
    u[1]
}

fn main() {}
