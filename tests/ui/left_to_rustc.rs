use polyhalo::prelude::*;

#[stencil]
fn one(n: &Field<i32>, a: f64) -> f64 {
    match n[HERE] {
        0 => a,
        1 => 2.0,
    }
}

#[stencil]
fn two(u: &Field<f64>) -> f64 {
    let mut s = 0.0;
    let next = |x: f64| s + x;
    s += u[X];
    next(u[HERE]) + s
}

#[stencil(T = f32 | f64)]
fn three<T>(u: &Field<T>) -> T {
    let [first, second] = &[u[X], u[Y]];
    first.max(second)
}

fn main() {}
