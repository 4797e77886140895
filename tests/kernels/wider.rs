//! Integers, indices, tables, several results, arrays of fields, early return and the functions that are exact everywhere.

use polyhalo::prelude::*;

/// One generation of an ageing automaton: a cell lives on with 4 to 9 living neighbours and is born with 6 or 7.
#[stencil]
pub fn life(age: &Field<i32>) -> i32 {
    let mut n = 0;
    for k in -1..=1 {
        for j in -1..=1 {
            for i in -1..=1 {
                if (i, j, k) != (0, 0, 0) && age[i * X + j * Y + k * Z] > 0 {
                    n += 1;
                }
            }
        }
    }
    let alive = age[HERE] > 0;
    if alive && n > 3 && n < 10 {
        return age[HERE] + 1;
    }
    match n {
        6..=7 => {
            if alive {
                0
            } else {
                1
            }
        }
        _ => 0,
    }
}

/// Red and black points by the global index, a table by a computed index, shifts and remainders.
#[stencil]
pub fn coloured(u: &Field<f64>, kind: &Field<u8>, p: Point) -> f64 {
    const GAIN: [f64; 4] = [0.25, 0.5, 1.0, -2.0];
    let red = (p.i + p.j + p.k) % 2 == 0;
    let index = ((kind[HERE] >> 1) ^ kind[X]) & 3;
    let gain = GAIN[index as usize];
    if red { gain * (u[X] + u[-X]) } else { u[HERE] - (p.k as f64) * 1e-3 }
}

/// Extremes and roundings; two results.
#[stencil]
pub fn extremes(u: &Field<f64>, v: &[Field<f64>; 2], limit: f64) -> (f64, f64) {
    let mut least = u[HERE];
    for d in [X, -X, Y, -Y, Z, -Z] {
        least = least.min(u[d]);
    }
    let wide = v[0][HERE].max(v[1][HERE]).clamp(-limit, limit);
    let rounded = (wide * 3.0).round() + (wide * 5.0).floor() - (wide * 7.0).ceil() + wide.trunc();
    (least.copysign(wide), rounded.powi(3) + wide.signum())
}
