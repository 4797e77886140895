//! Roundings other than to the nearest, from the exact error of the rounded result.

/// Where values between two floats go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
}

impl Rounding {
    /// `rn`, `rz`, `rm`, `rp`.
    pub(crate) fn parse(name: &str) -> Option<Rounding> {
        match name {
            "rn" => Some(Rounding::Nearest),
            "rz" => Some(Rounding::Zero),
            "rm" => Some(Rounding::Down),
            "rp" => Some(Rounding::Up),
            _ => None,
        }
    }

    pub(crate) fn number(self) -> u64 {
        self as u64
    }

    pub(crate) fn of_number(number: u64) -> Rounding {
        [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up][number as usize & 3]
    }

    /// The float for `nearest` + `error`, where `nearest` is the rounded value and `error` has the sign of what was lost.
    fn of_f32(self, nearest: f32, error: f64) -> f32 {
        match self.step(nearest < 0.0, error) {
            0 => nearest,
            1 => nearest.next_up(),
            _ => nearest.next_down(),
        }
    }

    fn of_f64(self, nearest: f64, error: f64) -> f64 {
        match self.step(nearest < 0.0, error) {
            0 => nearest,
            1 => nearest.next_up(),
            _ => nearest.next_down(),
        }
    }

    /// Whether to go up or down from the nearest value.
    fn step(self, is_negative: bool, error: f64) -> i32 {
        let towards_zero = if is_negative { 1 } else { -1 };
        let step = match self {
            Rounding::Nearest => 0,
            Rounding::Zero => towards_zero,
            Rounding::Down => -1,
            Rounding::Up => 1,
        };
        let is_beyond = (step < 0 && error < 0.0) || (step > 0 && error > 0.0);
        if is_beyond { step } else { 0 }
    }
}

/// The exact error of a rounded sum.
fn error_of_sum(a: f64, b: f64, sum: f64) -> f64 {
    let other = sum - a;
    (a - (sum - other)) + (b - other)
}

/// A sum of f64.
pub(crate) fn sum_f64(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = a + b;
    if rounding == Rounding::Nearest || !a.is_finite() || !b.is_finite() {
        return sum;
    }
    if sum.is_infinite() {
        return rounding.of_f64(sum, -sum);
    }
    if sum == 0.0 {
        return exact_zero(a.is_sign_negative(), b.is_sign_negative(), rounding) as f64;
    }
    // What is near the largest float is halved first, lest a part of it overflow.
    let scale = if sum.abs() > f64::MAX / 4.0 { 0.5 } else { 1.0 };
    rounding.of_f64(sum, error_of_sum(a * scale, b * scale, sum * scale))
}

/// A sum that is exactly zero, of parts with these signs.
fn exact_zero(a: bool, b: bool, rounding: Rounding) -> f32 {
    let is_negative = if a == b { a } else { rounding == Rounding::Down };
    if is_negative { -0.0 } else { 0.0 }
}

/// `a * b + c` of f32, rounded once. The product of two f32 is exact as an f64.
pub(crate) fn fused_f32(a: f32, b: f32, c: f32, rounding: Rounding) -> f32 {
    if rounding == Rounding::Nearest || !a.is_finite() || !b.is_finite() || !c.is_finite() {
        return a.mul_add(b, c);
    }
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let lost = error_of_sum(product, c, sum);
    if sum == 0.0 && lost == 0.0 {
        return exact_zero(product.is_sign_negative(), c.is_sign_negative(), rounding);
    }
    let nearest = sum as f32;
    let difference = sum - f64::from(nearest);
    rounding.of_f32(nearest, if difference == 0.0 { lost } else { difference })
}

/// An f32 for an f64.
pub(crate) fn narrowed(value: f64, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    if value.is_finite() { rounding.of_f32(nearest, value - f64::from(nearest)) } else { nearest }
}

/// An f32 for an integer.
pub(crate) fn f32_of(value: i128, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    rounding.of_f32(nearest, (value - nearest as i128) as f64)
}

/// An f64 for an integer.
pub(crate) fn f64_of(value: i128, rounding: Rounding) -> f64 {
    let nearest = value as f64;
    rounding.of_f64(nearest, (value - nearest as i128) as f64)
}
