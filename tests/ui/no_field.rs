use polyhalo::prelude::*;

#[stencil]
fn kernel(a: f64) -> f64 {
    a
}

fn main() {}
