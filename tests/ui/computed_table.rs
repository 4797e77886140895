use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, n: &Field<i32>) -> f64 {
    let w = [u[X], u[Y], u[Z]];
    w[n[HERE] as usize]
}

fn main() {}
