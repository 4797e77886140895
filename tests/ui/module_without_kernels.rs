use polyhalo::prelude::*;

#[stencil]
mod helpers {
    use polyhalo::prelude::*;

    fn second(u: &Field<f64>, d: Offset) -> f64 {
        u[d] - 2.0 * u[HERE] + u[-d]
    }
}

fn main() {}
