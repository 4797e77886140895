use polyhalo::prelude::*;

#[stencil]
fn kernel<T, const R: usize>(u: &Field<T>) -> T {
    u[R as i32 * X]
}

fn main() {}
