use polyhalo::prelude::*;

#[stencil]
mod kernels {
    use polyhalo::prelude::*;

    #[cfg(debug_assertions)]
    const WEIGHT: f64 = 0.5;

    #[stencil]
    pub fn kernel(u: &Field<f64>) -> f64 {
        WEIGHT * u[HERE]
    }
}

fn main() {}
