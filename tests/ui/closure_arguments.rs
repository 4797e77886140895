use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let f = |x: f64, y: f64| x + y;
    fn g(x: f64) -> f64 {
        f(x, x)
    }
    f(a) + g(a) + g(a, a) + a(2.0)
}

fn main() {}
