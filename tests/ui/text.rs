use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let name = "u";
    let message = format!("{name}");
    u[HERE]
}

fn main() {}
