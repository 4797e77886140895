//! What planning knows of a field: its cells and its boundaries, no memory and no devices.

use crate::boundary::{Faces, Widths};
use crate::geometry::Box3;
use crate::kernel::ScalarType;

/// The shape of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The name that the user gave it.
    pub name: String,
    /// The type of a cell.
    pub ty: ScalarType,
    /// Along which axes (X, Y, Z) it extends; there is one cell along the others.
    pub axes: [bool; 3],
    /// Cells along X, Y and Z.
    pub cells: [usize; 3],
    /// What lies beyond its faces.
    pub faces: Faces,
}

impl Shape {
    /// The box of all cells, without ghosts.
    pub fn whole(&self) -> Box3 {
        Box3 { lo: [0; 3], hi: self.cells.map(|cells| cells as i64) }
    }

    /// The cells and the ghost cells around them.
    pub fn with_ghosts(&self, widths: &Widths) -> Box3 {
        grown(&self.whole(), widths)
    }
}

/// A box and the cells around it.
pub fn grown(part: &Box3, widths: &Widths) -> Box3 {
    Box3 {
        lo: std::array::from_fn(|axis| part.lo[axis] - i64::from(widths[axis][0])),
        hi: std::array::from_fn(|axis| part.hi[axis] + i64::from(widths[axis][1])),
    }
}

/// The larger of two widths on every side, device by device.
pub fn wider_each(one: &[Widths], other: &[Widths]) -> Vec<Widths> {
    one.iter().zip(other).map(|(one, other)| wider(one, other)).collect()
}

/// The larger of two widths on every side.
pub fn wider(one: &Widths, other: &Widths) -> Widths {
    std::array::from_fn(|axis| std::array::from_fn(|side| one[axis][side].max(other[axis][side])))
}
