use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    loop {
        let b = a;
    }
    'all: for d in [X, Y] {
        continue;
    }
    a
}

fn main() {}
