use polyhalo::prelude::*;

#[stencil(contract = true)]
fn one(u: &Field<f64>) -> f64 {
    u[HERE]
}

#[stencil(crate = "my::polyhalo", "fast")]
fn two(u: &Field<f64>) -> f64 {
    u[HERE]
}

fn main() {}
