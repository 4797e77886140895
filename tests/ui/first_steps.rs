use polyhalo::prelude::*;

#[stencil]
fn between(u: &Field<f64>) -> f64 {
    u[X / 2] - u.X
}

#[stencil]
fn assigned(u: &Field<f64>) -> f64 {
    if u[HERE] = 0.0 { 1.0 } else { u[HERE].max(0) }
}

#[stencil]
fn names(u: &Field<f64>, X: f64) -> f64 {
    u[HERE] * X * f64::PI
}

#[stencil]
fn recursive(u: &Field<f64>) -> f64 {
    let f = |x: f64| if x > 1.0 { f(x / 2.0) } else { x };
    f(u[HERE]) + rand()
}

#[stencil]
fn converted(u: &Field<f64>, n: &Field<i32>) -> f64 {
    let count: f64 = n[X] + n[-X];
    count + u[HERE];
    n[HERE]
}

#[stencil]
fn folded(v: &[Field<f64>; 3]) -> ([f64; 3], Sum<f64>) {
    let v = v;
    ([v[0][HERE], v[1][HERE], v[2][HERE]], Sum(v[0][HERE]))
}

#[stencil]
fn rows(k: &Field<u8>, s: &[Field<f64>; 2], w: &[FieldX<f64>; 2]) -> f64 {
    const T: [[f64; 2]; 2] = [[1.0, 2.0], [3.0, 4.0]];
    let row = T[k[HERE] as usize];
    row[1] + s[1][0] + w[1][Y]
}

fn main() {}
