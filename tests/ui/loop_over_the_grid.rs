use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, nx: i32) -> f64 {
    let mut lap = 0.0;
    for i in 1..nx - 1 {
        lap += u[i * X] - u[HERE];
    }
    lap
}

fn main() {}
