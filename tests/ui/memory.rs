use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let mut w: Vec<f64> = Vec::new();
    w.push(a);
    let v = vec![1.0, 2.0];
    let boxed = Box::new(a);
    u[HERE]
}

fn main() {}
