use polyhalo::prelude::*;

#[stencil(R = 1 | 2)]
fn kernel<const R: usize>(v: &[Field<f64>; 2 * R], u: &Field<f64>) -> f64 {
    v[0][HERE] + u[HERE]
}

#[stencil(C = 'x')]
fn letters<const C: char>(u: &Field<f64>) -> f64 {
    u[HERE]
}

fn main() {}
