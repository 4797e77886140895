use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    const WEIGHT: Real = 0.5;
    let x: Option<f64> = u[X];
    let square = |x: double| x * x;
    fn half(x: f64) -> i16 {
        x / 2.0
    }
    WEIGHT * square(u[Y]) + half(a)
}

fn main() {}
