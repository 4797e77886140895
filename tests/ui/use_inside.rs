use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    use std::f64::consts::PI;
    static WEIGHT: f64 = 0.5;
    WEIGHT * PI * u[HERE]
}

fn main() {}
