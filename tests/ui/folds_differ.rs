use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> Max<f64> {
    if u[HERE] > a { Max(u[HERE]) } else { Min(u[HERE]) }
}

fn main() {}
