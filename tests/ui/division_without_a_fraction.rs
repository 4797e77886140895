use polyhalo::prelude::*;

#[stencil]
fn half(u: &Field<f64>) -> f64 {
    const C: f64 = 5 / 9;
    let third: f64 = 1 / 3;
    let f = |w: f64| w * u[X];
    C * third * f(1 / 2) + (u[HERE] - 32.0) * (5 / 9)
}

#[stencil]
fn chosen(u: &Field<f32>) -> f32 {
    let n = 3;
    if u[HERE] > 0.0 { n / 2 } else { u[HERE] }
}

fn main() {}
