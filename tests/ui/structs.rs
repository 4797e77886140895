use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    struct Pair {
        x: f64,
        y: f64,
    }
    let pair = Pair { x: u[X], y: u[Y] };
    let d = Offset { x: 1, y: 0, z: 0 };
    pair.x + u[d]
}

fn main() {}
