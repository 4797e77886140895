use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, total: Sum<f64>) -> f64 {
    u[HERE] / total
}

fn main() {}
