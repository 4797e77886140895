use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let b = 2 * a;
    let c = u[1];
    while c > b {}
    c.sin() + outside
}

fn main() {}
