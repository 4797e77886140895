//! Kernels that show one thing each.

use polyhalo::prelude::*;

/// Reads along X only.
#[stencil]
pub fn along_x(u: &Field<f64>) -> f64 {
    u[X] - u[-X]
}

/// The diagonal neighbour.
#[stencil]
pub fn corner(u: &Field<f64>) -> f64 {
    u[X + Y + Z]
}

/// One more at each point, in place.
#[stencil]
pub fn more(u: &Field<i32>) -> i32 {
    u[HERE] + 1
}

/// One more at each point through a second buffer.
#[stencil]
pub fn more_apart(u: &Field<i32>) -> i32 {
    u[HERE] + 1 + (u[X] & 0)
}

/// Each takes the other's neighbour.
#[stencil]
pub fn crossed(u: &Field<i32>, v: &Field<i32>) -> (i32, i32) {
    (v[X], u[-X])
}

/// A number for each cell of all 64 fields, three scalars and the place.
#[stencil]
pub fn many(u: &[Field<f32>; 64], a: f32, b: f32, c: f32, p: Point) -> f32 {
    let mut sum = a;
    for n in 0..64 {
        sum += u[n][HERE] * ((n as f32) * b + c);
    }
    sum - (p.i + 2 * p.k) as f32
}

/// 125 reads.
#[stencil]
pub fn wide(u: &Field<f32>) -> f32 {
    let mut sum = 0.0;
    for z in -2..=2 {
        for y in -2..=2 {
            for x in -2..=2 {
                sum += (x + 5 * y + 25 * z) as f32 * u[x * X + y * Y + z * Z];
            }
        }
    }
    sum
}

/// Casts between widths and signs.
#[stencil]
pub fn narrowed(a: &Field<i64>, x: &Field<f64>) -> (i8, u8, i32, u32, u64, f32, i8, u32, i64) {
    let (a, x) = (a[HERE], x[HERE]);
    (a as i8, a as u8, a as i32, a as u32, a as u64, a as f32, x as i8, x as u32, (x as f32) as i64)
}

/// Casts that widen, and back by way of a smaller type.
#[stencil]
pub fn widened(a: &Field<i8>, b: &Field<u8>, c: &Field<u32>) -> (i64, i64, u64, i32, f64, f32, u32) {
    let (a, b, c) = (a[HERE], b[HERE], c[HERE]);
    (a as i64, b as i64, a as u64, c as i32, c as f64, c as f32, (a as u8) as u32 + ((b as i8) as u8) as u32)
}

/// Quotients, remainders and shifts of negative numbers.
#[stencil]
pub fn negatives(a: &Field<i32>, b: &Field<i32>) -> [i32; 6] {
    let (a, b) = (a[HERE], b[HERE]);
    [a / b, a % b, a.rem_euclid(b), a.div_euclid(b), a >> 3, -(-a - -b)]
}

/// Floats that are nested, negated and divided in a chain.
#[stencil]
pub fn nested(u: &Field<f64>, v: &Field<f32>) -> (f64, f64, f32, f32) {
    let (u, v) = (u[HERE], v[HERE]);
    (-(-u - -(u - 0.1)), 1.0 / (u / 3.0) / (7.0 / u) % 0.3, v * 0.1 - v / 3.0 / 7.0, -(0.3 - -v) % 0.07)
}

/// Returns early on some points, and takes both arms of an `if` on others.
#[stencil]
pub fn early(u: &Field<i32>, p: Point) -> i32 {
    if u[HERE] < 0 {
        return -1;
    }
    let mut value = u[X];
    if p.i % 2 == 0 {
        value += 100;
        if p.j == 1 {
            return value;
        }
    } else {
        value -= 100;
    }
    value * 2
}

/// The sum in the type of the cells.
#[stencil(T = i32 | i64 | u8 | f64 | f32)]
pub fn sum<T>(u: &Field<T>) -> Sum<T> {
    Sum(u[HERE])
}

/// Several folds, the first of which is in two parts on its way.
#[stencil]
pub fn both(n: &Field<u64>) -> (Sum<u64>, Max<u64>, Sum<u32>) {
    (Sum(n[HERE]), Max(n[HERE]), Sum(1))
}

/// The largest and the least value.
#[stencil(T = f64 | f32)]
pub fn extremes<T>(u: &Field<T>) -> (Max<T>, Min<T>) {
    (Max(u[HERE]), Min(u[HERE]))
}

/// The value itself.
#[stencil]
pub fn kept(u: &Field<f64>) -> f64 {
    u[HERE]
}

/// The value below along X.
#[stencil]
pub fn mirrored(u: &Field<i32>) -> i32 {
    u[-X]
}

/// One more at each point, in place, of any whole number.
#[stencil]
pub fn counted(u: &Field<i64>) -> i64 {
    u[HERE] + 1
}

/// The point itself, and beside it.
#[stencil]
pub fn own(u: &Field<i64>) -> (i64, i64) {
    (u[HERE], u[X - Y])
}

/// All cells up to R below, straight and aslant, as the digits of a number.
#[stencil(R = 1 | 2 | 3 | 4)]
pub fn below<const R: usize>(u: &Field<i64>) -> (i64, i64) {
    let mut straight = 0;
    let mut aslant = 0;
    for r in 1..=R as i32 {
        straight = straight * 4096 + u[-r * Z];
        aslant = aslant * 4096 + u[X - Y - r * Z];
    }
    (straight, aslant)
}

/// All cells up to R above.
#[stencil(R = 1 | 2 | 3 | 4)]
pub fn above<const R: usize>(u: &Field<i64>) -> (i64, i64) {
    let mut straight = 0;
    let mut aslant = 0;
    for r in 1..=R as i32 {
        straight = straight * 4096 + u[r * Z];
        aslant = aslant * 4096 + u[X - Y + r * Z];
    }
    (straight, aslant)
}

/// All cells up to R on both sides.
#[stencil(R = 1 | 2 | 3 | 4)]
pub fn around<const R: usize>(u: &Field<i64>) -> (i64, i64, i64, i64) {
    let mut down = 0;
    let mut down_aslant = 0;
    let mut up = 0;
    let mut up_aslant = 0;
    for r in 1..=R as i32 {
        down = down * 4096 + u[-r * Z];
        down_aslant = down_aslant * 4096 + u[X - Y - r * Z];
        up = up * 4096 + u[r * Z];
        up_aslant = up_aslant * 4096 + u[X - Y + r * Z];
    }
    (down, down_aslant, up, up_aslant)
}

/// Reads only what never changes, at a distance, and the point.
#[stencil]
pub fn driven(u: &Field<f64>, k: &Field<f64>) -> f64 {
    0.5 * u[HERE] + 0.25 * k[Z] - 0.125 * k[-2 * Z]
}

/// The seven points around, each with a weight of its own.
#[stencil]
pub fn seven(u: &Field<f64>) -> f64 {
    0.25 * u[HERE] + 0.125 * (u[X] - u[-X]) + 0.0625 * (u[Y] + u[-Y]) + 0.25 * u[Z] - 0.125 * u[-Z]
}
