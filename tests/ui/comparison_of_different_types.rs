use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, n: &Field<i32>, f: &Field<f32>) -> f64 {
    if n[HERE] > 0.5 || u[HERE] == 0 || f[HERE] < u[HERE] { 1.0 } else { 0.0 }
}

fn main() {}
