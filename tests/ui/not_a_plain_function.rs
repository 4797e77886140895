use polyhalo::prelude::*;

#[stencil]
const fn one(u: &Field<f64>) -> f64 {
    u[HERE]
}

#[stencil]
unsafe extern "C" fn two(u: &Field<f64>) -> f64 {
    u[HERE]
}

fn main() {}
