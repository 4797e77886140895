use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    u[HERE].gamma() + u[X].exp_m1()
}

fn main() {}
