use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, profile: &FieldX<f64>) -> f64 {
    fn second(w: &Field<f64>) -> f64 {
        w[X] - 2.0 * w[HERE] + w[-X]
    }
    second(u) * second(profile)
}

fn main() {}
