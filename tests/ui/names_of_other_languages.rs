use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    max(u[X], u[Y]) + fabs(a) + pow(a, 2) + log(a) + fmod(a, 2.0) + sign(1.0, a) + u[X].log()
}

fn main() {}
