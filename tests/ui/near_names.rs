use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    let laplacian = u[X] + u[-X] - 2.0 * u[HERE];
    let flux = |d: Offset| u[d] - u[HERE];
    let capped = u[HERE].mim(a);
    laplacain + fluxx(X) + u[HERE].sqr() + capped
}

fn main() {}
