use polyhalo::prelude::*;

#[stencil]
fn both(u: &Field<f64>, v: &Field<f64>) -> f64 {
    (u[X], v[X])
}

#[stencil]
fn three(u: &Field<f64>) -> (f64, f64) {
    (u[X], u[Y], u[Z])
}

#[stencil]
fn whole(u: &Field<f64>) -> Field<f64> {
    u
}

fn main() {}
