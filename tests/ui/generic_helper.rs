use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    fn at<const N: i32>(w: &Field<f64>) -> f64 {
        w[N * X]
    }
    at::<2>(u) + at(u)
}

fn main() {}
