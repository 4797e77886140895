//! Comparing results with those of the reference.

use std::fmt;

/// How two results differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// The largest absolute difference; not a number when one of two values is.
    pub(crate) max_abs: f64,
    /// Whether all bits are equal.
    pub(crate) bits_equal: bool,
    /// Whether every pair fulfils the paper's criterion |a - b| <= 1e-6 + 1e-5 |b|.
    pub(crate) close: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.bits_equal { "all bits equal" } else { "not all bits equal" };
        let criterion = if self.close { "fulfilled" } else { "NOT fulfilled" };
        let max = self.max_abs;
        write!(f, "against the reference: largest difference {max:e}, {bits}, |a-b| <= 1e-6 + 1e-5|b| {criterion}")
    }
}

impl Difference {
    /// Nothing differs yet.
    pub(crate) const NONE: Difference = Difference { max_abs: 0.0, bits_equal: true, close: true };

    /// With what differs between more values and those of the reference.
    pub(crate) fn and(mut self, values: &[f64], reference: &[f64]) -> Self {
        let alike = values.len() == reference.len();
        self.bits_equal &= alike;
        self.close &= alike;
        for (a, b) in values.iter().zip(reference) {
            let apart = (a - b).abs();
            if apart.is_nan() || apart > self.max_abs {
                self.max_abs = apart;
            }
            self.bits_equal &= a.to_bits() == b.to_bits();
            self.close &= apart <= 1e-6 + 1e-5 * b.abs() || a.to_bits() == b.to_bits();
        }
        self
    }
}

/// The sum of all values, compensated (Neumaier): the error does not grow with the number of points.
pub(crate) fn sum(values: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for &value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}
