use polyhalo::prelude::*;

#[stencil(T = f32 | f16, R = 1 | 2.5 | 1, Q = 3)]
fn kernel<T, const R: usize>(u: &Field<T>) -> T {
    u[R as i32 * X]
}

fn main() {}
