use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    assert!(a > 0.0, "positive");
    if a.is_nan() { panic!("nan") }
    dbg!(u[HERE])
}

fn main() {}
