use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    trait Square {
        fn square(self) -> f64;
    }
    impl Square for f64 {
        fn square(self) -> f64 {
            self * self
        }
    }
    u[HERE].square()
}

fn main() {}
