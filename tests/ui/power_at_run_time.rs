use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, n: i32) -> f64 {
    u[HERE].powi(n) + u[HERE].powf(2)
}

fn main() {}
