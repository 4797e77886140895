use polyhalo::prelude::*;

#[stencil]
async fn kernel(u: &Field<f64>) -> f64 {
    u[HERE]
}

fn main() {}
