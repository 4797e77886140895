use polyhalo::prelude::*;

#[stencil]
fn kernel(n: &Field<i32>, a: f64) -> f64 {
    let Some(b) = a else { return 0.0 };
    if let 0 = n[HERE] { a } else { b }
}

fn main() {}
