use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, sponge: &FieldX<f64>) -> f64 {
    let weighted = |d: Offset| u[d] * sponge[d];
    weighted(X) + weighted(Y) + weighted(-Y)
}

fn main() {}
