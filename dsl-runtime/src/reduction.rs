//! How values are folded into one: the same order, and so the same bits, on every device.
//!
//! A kernel folds the values of each row of its range into one value of the row, which it stores by (y, z). Rows are
//! then folded into planes and planes into the result ([`fold`]). Sums of floats keep [`LANES`] running sums of a row, by
//! the X index modulo their number, each with what rounding took from it (the two-sum of Knuth, *The Art of Computer
//! Programming* 2, 4.2.2), so that the error doesn't grow with the number of values. Rows and planes are added up in the same way, and
//! each sum is rounded to `f64`: the result is off by at most 2^-53 times the magnitudes of itself, of all planes and of all rows together. The largest and the least value and sums of
//! integers don't depend on the order.
//!
//! - Not-a-number among the values makes the result not-a-number, for sums, the largest and the least alike.
//! - Zeros count as +0, and a zero result is +0.
//! - Without values a sum is 0, the largest value is minus infinity (of integers the least one) and the least plus
//!   infinity (of integers the largest one).
//! - Sums of integers are exact; a result that its type can't hold is an [`Overflow`]. A row has 64 bits for its sum, which
//!   sums of narrower types never fill. A kernel gives a sum of 64-bit integers as two, of the lower 32 bits of the values and
//!   of the bits above them ([`Role::parts`]), which are put together at the end.

mod accumulate;
mod fold;
#[cfg(test)]
mod tests;

use crate::kernel::{Role, ScalarType};

pub use accumulate::{Accumulator, FloatSum, IntegerSum, LANES, Largest, Least, Summed, Total};
pub(crate) use fold::word;
pub use fold::{Fold, Overflow, Words, fold, words};

/// A result that is added up over all points: a kernel that returns `Sum(value)` gives the sum of the values. Floats are
/// added up in `f64`, accurately: the error doesn't grow with the number of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum<T>(
    /// The value at the point.
    pub T,
);

/// A result of which the largest over all points is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Max<T>(
    /// The value at the point.
    pub T,
);

/// A result of which the least over all points is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Min<T>(
    /// The value at the point.
    pub T,
);

impl Role {
    /// The type of what a kernel stores for each row, for results of type `ty`; for a value that is the type itself.
    pub fn stored(self, ty: ScalarType) -> ScalarType {
        match (self, ty) {
            (Role::Sum, ScalarType::F64 | ScalarType::F32) => ScalarType::F64,
            (Role::Sum, ScalarType::I64 | ScalarType::I32 | ScalarType::I8) => ScalarType::I64,
            (Role::Sum, ScalarType::U64 | ScalarType::U32 | ScalarType::U8 | ScalarType::Bool) => ScalarType::U64,
            (Role::Value | Role::Max | Role::Min, ty) => ty,
        }
    }

    /// How many outputs of a kernel such a result is: two for a sum of 64-bit integers, one for all others.
    pub fn parts(self, ty: ScalarType) -> usize {
        match (self, ty) {
            (Role::Sum, ScalarType::I64 | ScalarType::U64) => 2,
            _ => 1,
        }
    }
}
