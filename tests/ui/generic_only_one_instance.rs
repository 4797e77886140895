use polyhalo::prelude::*;

#[stencil(T = f64 | i32)]
fn kernel<T>(u: &Field<T>) -> T {
    u[X].sqrt() + u[1]
}

fn main() {}
