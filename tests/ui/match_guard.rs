use polyhalo::prelude::*;

#[stencil]
fn kernel(n: &Field<i32>, a: f64) -> f64 {
    match n[HERE] {
        m if m > 2 => a,
        0 | 1 => 0.0,
        _ => 1.0,
    }
}

fn main() {}
