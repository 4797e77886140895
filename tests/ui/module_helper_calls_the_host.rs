use polyhalo::prelude::*;

fn host(x: f64) -> f64 {
    x
}

#[stencil]
mod kernels {
    use polyhalo::prelude::*;

    fn limited(x: f64) -> f64 {
        super::host(x).min(LIMIT)
    }

    #[stencil]
    pub fn kernel(u: &Field<f64>) -> f64 {
        limited(u[HERE])
    }
}

fn main() {}
