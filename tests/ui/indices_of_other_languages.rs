use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    u(i + 1, j, k) + u[i][j - 2][k] + u[(i, j, k)] + u[X][Y] + u[X + 1] + u[2X] + u[i]
}

fn main() {}
