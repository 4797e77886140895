//! Kernels for random steps: footprints of many shapes, several results, folds. Their weights are small, so that values
//! stay bounded over many steps, and exact in binary.

#![allow(missing_docs, reason = "each kernel is only its formula")]

use polyhalo::prelude::*;

/// A star of radius R that is lopsided along Y and Z.
#[stencil(T = f64 | f32, R = 1 | 8)]
pub fn star<T, const R: usize>(u: &Field<T>, a: T) -> T {
    let mut sum: T = 0.0;
    for r in 1..=R as i32 {
        sum += (u[r * X] - u[-r * X]) + (0.5 * u[r * Y] - u[-r * Y]) + (u[r * Z] - 0.25 * u[-r * Z]);
    }
    0.5 * u[HERE] + a * sum
}

/// All 27 points around, each with a weight of its own.
#[stencil(T = f64 | f32)]
pub fn cube<T>(u: &Field<T>) -> T {
    let mut sum: T = 0.0;
    for z in -1..=1 {
        for y in -1..=1 {
            for x in -1..=1 {
                sum += (x + 3 * y + 9 * z + 13) as T * u[x * X + y * Y + z * Z];
            }
        }
    }
    sum * 0.001953125
}

/// Reads points of the other colour only, but for `f`.
#[stencil]
pub fn other_colour(u: &Field<f64>, f: &Field<f64>) -> f64 {
    0.25 * (u[X + Y + Z] - u[-X]) + 0.25 * u[2 * X - Y] + 0.125 * u[Y - 2 * Z] + 0.125 * f[HERE]
}

/// Two results and footprints to one side.
#[stencil]
pub fn lopsided(u: &Field<f64>, v: &Field<f64>) -> (f64, f64) {
    (0.5 * u[2 * X] + 0.25 * u[-Z], 0.5 * v[HERE] - 0.25 * u[2 * X] + 0.125 * v[3 * Y])
}

/// Differences forwards and backwards, as on staggered grids.
#[stencil]
pub fn difference(u: &Field<f32>, v: &Field<f32>, w: &Field<f32>) -> f32 {
    0.5 * (u[X] - u[HERE]) + 0.25 * (v[HERE] - v[-Y]) + 0.125 * w[Z]
}

/// Fields along some axes only.
#[stencil]
pub fn broad(
    u: &Field<f64>,
    x: &FieldX<f64>,
    y: &FieldY<f64>,
    z: &FieldZ<f64>,
    xy: &FieldXY<f64>,
    xz: &FieldXZ<f64>,
    yz: &FieldYZ<f64>,
) -> f64 {
    0.25 * u[-X] + 0.125 * (x[X] + y[-Y] * z[HERE]) - 0.125 * (xy[X - Y] + xz[-Z] - yz[Z - Y])
}

/// Reads nothing.
#[stencil]
pub fn level(value: f64) -> f64 {
    0.5 * value
}

/// Reads nothing but the point.
#[stencil]
pub fn ramp(p: Point, amount: f32) -> f32 {
    amount * ((p.i - 2 * p.j + 3 * p.k) as f32 * 0.03125)
}

/// Integers that wrap, shift and leave remainders.
#[stencil]
pub fn mix(u: &Field<i32>, p: Point, add: i32) -> i32 {
    let far = u[X].wrapping_mul(31) ^ u[-X - Y - Z];
    (far ^ (u[HERE] >> 3)).wrapping_add(p.i + 7 * p.j - p.k) % 100_003 + add % 7
}

/// The footprint is the point itself.
#[stencil(T = f64 | f32)]
pub fn still<T>(u: &Field<T>, a: T) -> T {
    0.75 * u[HERE] + 0.125 * a
}

/// Folds of every kind over the point itself.
#[stencil(T = f64 | f32)]
pub fn totals<T>(u: &Field<T>) -> (Sum<T>, Max<T>, Min<T>) {
    (Sum(u[HERE]), Max(u[HERE]), Min(u[HERE] - 1.0))
}

/// Folds of integers over two points.
#[stencil]
pub fn counts(u: &Field<i32>) -> (Sum<i64>, Max<i32>, Min<i32>) {
    (Sum((u[HERE] ^ u[Y]) as i64), Max(u[-X]), Min(u[HERE]))
}

/// An update with two folds.
#[stencil]
pub fn settle(u: &Field<f32>, v: &Field<f32>, a: f32) -> (f32, Sum<f64>, Max<f32>) {
    let rest = 0.125 * (u[X] + u[-X] + u[Y] + u[-Y]) - 0.25 * v[HERE];
    (0.5 * u[HERE] + a * rest, Sum((rest * rest) as f64), Max(rest.abs()))
}

/// An update of points whose neighbours have the other colour, with a fold.
#[stencil]
pub fn relax(u: &Field<f64>, f: &Field<f64>) -> (f64, Sum<f64>) {
    let rest = 0.125 * (u[X] + u[-X] + u[Y] + u[-Y] + u[Z] + u[-Z]) - 0.25 * f[HERE];
    (0.5 * rest + 0.25 * u[HERE], Sum(rest))
}

/// Far away, to one side, off the axes.
#[stencil]
pub fn far(u: &Field<f32>) -> f32 {
    0.5 * u[-8 * X + 3 * Y] - 0.25 * u[7 * Z - X]
}

/// Arrays of fields in and out.
#[stencil]
pub fn bundle(a: &[Field<f64>; 3], s: f64) -> [f64; 3] {
    [0.5 * a[0][X] - 0.25 * a[1][HERE], 0.5 * a[1][Y] + 0.25 * a[2][-X], 0.5 * a[2][-Z] + 0.125 * s]
}

/// Types that meet, an early return, two results of different types.
#[stencil]
pub fn mixed(u: &Field<f64>, k: &Field<i32>, w: &Field<f32>) -> (f64, i32) {
    if k[HERE] % 3 == 0 {
        return (0.5 * u[HERE], k[-Z]);
    }
    let value = u[X] as f32 * w[HERE];
    (value as f64 * 0.25, (value * 100.0) as i32)
}
