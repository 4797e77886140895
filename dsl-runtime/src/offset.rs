//! Displacements from the point that is being updated.

use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// A displacement in cells along X, Y and Z.
///
/// Written as sums and integer multiples of [`X`], [`Y`] and [`Z`]: `u[2*X - Y]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Offset {
    /// Cells along X, the contiguous axis.
    pub x: i32,
    /// Cells along Y.
    pub y: i32,
    /// Cells along Z, the slowest axis.
    pub z: i32,
}

/// The point itself.
pub const HERE: Offset = Offset::new(0, 0, 0);
/// One cell along X.
pub const X: Offset = Offset::new(1, 0, 0);
/// One cell along Y.
pub const Y: Offset = Offset::new(0, 1, 0);
/// One cell along Z.
pub const Z: Offset = Offset::new(0, 0, 1);

impl Offset {
    /// The point itself.
    pub const HERE: Self = HERE;
    /// One cell along X.
    pub const X: Self = X;
    /// One cell along Y.
    pub const Y: Self = Y;
    /// One cell along Z.
    pub const Z: Self = Z;

    /// The displacement by `x`, `y` and `z` cells.
    pub const fn new(x: i32, y: i32, z: i32) -> Self {
        Self { x, y, z }
    }
}

impl fmt::Debug for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

impl Neg for Offset {
    type Output = Self;

    fn neg(self) -> Self {
        Self::new(-self.x, -self.y, -self.z)
    }
}

impl Add for Offset {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y, self.z + other.z)
    }
}

impl Sub for Offset {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y, self.z - other.z)
    }
}

impl Mul<i32> for Offset {
    type Output = Self;

    fn mul(self, times: i32) -> Self {
        Self::new(self.x * times, self.y * times, self.z * times)
    }
}

impl Mul<Offset> for i32 {
    type Output = Offset;

    fn mul(self, offset: Offset) -> Offset {
        offset * self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_multiples_add_up_per_axis() {
        assert_eq!(2 * X - Y + Z * 3, Offset::new(2, -1, 3));
        assert_eq!(-(X + Y - Z) + HERE, Offset::new(-1, -1, 1));
    }
}
