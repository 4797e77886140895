use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let found = if u[HERE] > a { Some(u[X]) } else { None };
    found?
}

fn main() {}
