use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<i32>, a: i32) -> i32 {
    match u[HERE] {
        n if n > a => n,
        _ => a,
    }
}

fn main() {}
