//! Boxes of cells and the extent of a grid: integers only, no memory and no devices.
//!
//! Axes are numbered 0, 1, 2 for X, Y, Z; X is contiguous in memory and Z is the slowest.

use std::fmt;

use crate::error::{Error, Result};
use crate::runs::Run;

/// Names of the axes by number.
pub const AXES: [&str; 3] = ["X", "Y", "Z"];

/// The number of cells of a grid along X, Y and Z; none of them is zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent([usize; 3]);

impl Extent {
    /// An extent, unless an axis has no cells or more than an `i32` can number, or the cells can't be counted in an
    /// `i64`.
    pub fn new(cells: [usize; 3]) -> Result<Self> {
        if let Some(axis) = cells.iter().position(|&n| n == 0) {
            return Err(Error::EmptyGrid { extent: cells, axis: AXES[axis] });
        }
        let points = cells.iter().try_fold(1_u64, |points, &n| points.checked_mul(u64::try_from(n).ok()?));
        match points {
            Some(points) if i64::try_from(points).is_ok() && cells.iter().all(|&n| i32::try_from(n).is_ok()) => {
                Ok(Self(cells))
            }
            _ => Err(Error::GridTooLarge { extent: cells }),
        }
    }

    /// Cells along X, Y and Z.
    pub fn cells(self) -> [usize; 3] {
        self.0
    }

    /// The number of points.
    pub fn points(self) -> u64 {
        self.0.iter().map(|&n| n as u64).product()
    }

    /// The box of all points.
    pub fn whole(self) -> Box3 {
        Box3 { lo: [0; 3], hi: self.0.map(|n| n as i64) }
    }

    /// The shape of an array with X last, as `ndarray` and NumPy store it: (nz, ny, nx).
    pub fn shape(self) -> (usize, usize, usize) {
        (self.0[2], self.0[1], self.0[0])
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "{x}x{y}x{z}")
    }
}

/// A half-open box of cells: `lo <= cell < hi` along every axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Box3 {
    /// The first cell along X, Y and Z.
    pub lo: [i64; 3],
    /// One past the last cell along X, Y and Z.
    pub hi: [i64; 3],
}

impl Box3 {
    /// The box without cells.
    pub const EMPTY: Self = Self { lo: [0; 3], hi: [0; 3] };

    /// Cells along each axis; zero where the box is inside out.
    pub fn size(&self) -> [usize; 3] {
        std::array::from_fn(|axis| usize::try_from(self.hi[axis] - self.lo[axis]).unwrap_or(0))
    }

    /// The number of cells.
    pub fn points(&self) -> u64 {
        self.size().iter().map(|&n| n as u64).product()
    }

    /// The number of cells whose indices add up to an even (0) or an odd (1) number, or of all.
    pub fn points_of(&self, parity: Option<u8>) -> u64 {
        let (points, corner) = (self.points(), self.lo.iter().sum::<i64>().rem_euclid(2) as u8);
        match parity {
            None => points,
            // The colour of the corner has one more where every axis has an odd number of cells.
            Some(parity) if parity == corner => points.div_ceil(2),
            Some(_) => points / 2,
        }
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        (0..3).any(|axis| self.lo[axis] >= self.hi[axis])
    }

    /// The first plane along Z and one past the last.
    pub fn planes(&self) -> Run {
        (self.lo[2], self.hi[2])
    }

    /// The box between these planes instead.
    pub fn in_planes(&self, planes: Run) -> Self {
        Self { lo: [self.lo[0], self.lo[1], planes.0], hi: [self.hi[0], self.hi[1], planes.1] }
    }

    /// Whether `cell` lies in the box.
    pub fn holds(&self, cell: [i64; 3]) -> bool {
        (0..3).all(|axis| (self.lo[axis]..self.hi[axis]).contains(&cell[axis]))
    }

    /// Whether every cell of `other` lies in the box; the empty box lies in every box.
    pub fn contains(&self, other: &Self) -> bool {
        other.is_empty() || (0..3).all(|axis| self.lo[axis] <= other.lo[axis] && other.hi[axis] <= self.hi[axis])
    }

    /// The cells common to both.
    pub fn intersection(&self, other: &Self) -> Self {
        let both = Self {
            lo: std::array::from_fn(|axis| self.lo[axis].max(other.lo[axis])),
            hi: std::array::from_fn(|axis| self.hi[axis].min(other.hi[axis])),
        };
        if both.is_empty() { Self::EMPTY } else { both }
    }

    /// The smallest box that holds both.
    pub fn hull(&self, other: &Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, true) => Self::EMPTY,
            (true, false) => *other,
            (false, true) => *self,
            (false, false) => Self {
                lo: std::array::from_fn(|axis| self.lo[axis].min(other.lo[axis])),
                hi: std::array::from_fn(|axis| self.hi[axis].max(other.hi[axis])),
            },
        }
    }

    /// The box moved by `by` cells.
    pub fn shifted(&self, by: [i64; 3]) -> Self {
        Self {
            lo: std::array::from_fn(|axis| self.lo[axis] + by[axis]),
            hi: std::array::from_fn(|axis| self.hi[axis] + by[axis]),
        }
    }

    /// The cells outside `hole`, as at most six disjoint boxes: whole planes first, then rows, then cells.
    pub fn minus(&self, hole: &Self) -> Vec<Self> {
        let hole = self.intersection(hole);
        if hole.is_empty() {
            return if self.is_empty() { Vec::new() } else { vec![*self] };
        }
        let mut rest = *self;
        let mut parts = Vec::new();
        for axis in [2, 1, 0] {
            let (mut below, mut above) = (rest, rest);
            below.hi[axis] = hole.lo[axis];
            above.lo[axis] = hole.hi[axis];
            parts.extend([below, above].into_iter().filter(|part| !part.is_empty()));
            rest.lo[axis] = hole.lo[axis];
            rest.hi[axis] = hole.hi[axis];
        }
        parts
    }
}

impl fmt::Display for Box3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = std::array::from_fn::<_, 3, _>(|axis| format!("{}..{}", self.lo[axis], self.hi[axis]));
        write!(f, "[{x}, {y}, {z}]")
    }
}

/// Cells in any arrangement, as a list of boxes that may overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patches(Vec<Box3>);

impl Patches {
    /// The boxes.
    pub fn boxes(&self) -> &[Box3] {
        &self.0
    }

    /// Adds the cells of a box.
    pub fn add(&mut self, part: &Box3) {
        if !self.contains(part) {
            self.0.retain(|other| !part.contains(other));
            self.0.push(*part);
        }
    }

    /// Adds the cells of others.
    pub fn add_all(&mut self, others: &Self) {
        others.0.iter().for_each(|part| self.add(part));
    }

    /// The cells of a box that are not among these, as disjoint boxes.
    pub fn missing_of(&self, part: &Box3) -> Vec<Box3> {
        let whole = if part.is_empty() { Vec::new() } else { vec![*part] };
        self.0.iter().fold(whole, |rest, hole| rest.iter().flat_map(|part| part.minus(hole)).collect())
    }

    /// These cells without those of others, as disjoint boxes.
    pub fn minus(&self, holes: &Self) -> Vec<Box3> {
        let mut taken = holes.clone();
        let mut rest = Vec::new();
        for part in &self.0 {
            rest.extend(taken.missing_of(part));
            taken.0.push(*part);
        }
        rest
    }

    /// Whether all cells of a box are among these.
    pub fn contains(&self, part: &Box3) -> bool {
        self.missing_of(part).is_empty()
    }

    /// Whether all cells of others are among these.
    pub fn contains_all(&self, others: &Self) -> bool {
        others.0.iter().all(|part| self.contains(part))
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Box3> for Patches {
    fn from_iter<I: IntoIterator<Item = Box3>>(boxes: I) -> Self {
        let mut patches = Self::default();
        boxes.into_iter().for_each(|part| patches.add(&part));
        patches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cube(lo: i64, hi: i64) -> Box3 {
        Box3 { lo: [lo; 3], hi: [hi; 3] }
    }

    #[test]
    fn an_axis_without_cells_is_refused_by_name() {
        let error = Extent::new([3, 0, 2]).unwrap_err();
        assert!(matches!(error, Error::EmptyGrid { axis: "Y", .. }), "{error}");
    }

    #[test]
    fn more_points_than_can_be_counted_are_refused() {
        assert!(matches!(Extent::new([usize::MAX, 2, 1]), Err(Error::GridTooLarge { .. })));
        assert!(matches!(Extent::new([1 << 31, 1, 1]), Err(Error::GridTooLarge { .. })));
        assert!(matches!(Extent::new([1 << 30, 1 << 30, 1 << 4]), Err(Error::GridTooLarge { .. })));
        assert_eq!(Extent::new([1 << 30, 1 << 30, 4]).unwrap().points(), 1 << 62);
    }

    #[test]
    fn the_rest_of_a_box_holds_each_cell_outside_the_hole_once() {
        let whole = Box3 { lo: [-1, 0, 2], hi: [4, 3, 6] };
        let holes = [Box3::EMPTY, cube(0, 3), cube(1, 2), cube(-5, 9), cube(2, 4), cube(3, 9), cube(7, 9), whole];
        for hole in holes {
            let parts = whole.minus(&hole);
            for z in -2..8 {
                for y in -2..8 {
                    for x in -2..8 {
                        let cell = [x, y, z];
                        let expected = usize::from(whole.holds(cell) && !hole.holds(cell));
                        let found = parts.iter().filter(|part| part.holds(cell)).count();
                        assert_eq!(found, expected, "{cell:?} of {whole} without {hole}");
                    }
                }
            }
        }
    }

    #[test]
    fn patches_hold_each_cell_of_their_boxes() {
        let whole = cube(-1, 6);
        let some = [cube(0, 2), cube(1, 4), Box3 { lo: [3, 0, 0], hi: [5, 2, 1] }, cube(1, 2), Box3::EMPTY];
        let (all, first) = (some.into_iter().collect::<Patches>(), some[..2].iter().copied().collect::<Patches>());
        let (outside, rest) = (all.missing_of(&whole), all.minus(&first));
        for z in -1..6 {
            for y in -1..6 {
                for x in -1..6 {
                    let cell = [x, y, z];
                    let inside = |boxes: &[Box3]| boxes.iter().filter(|part| part.holds(cell)).count();
                    assert_eq!(inside(&outside), usize::from(inside(&some) == 0), "{cell:?}");
                    assert_eq!(inside(&rest), usize::from(inside(&some) > 0 && inside(&some[..2]) == 0), "{cell:?}");
                }
            }
        }
        assert!(all.contains_all(&first) && !first.contains_all(&all) && all.contains(&Box3::EMPTY));
    }

    #[test]
    fn hull_ignores_empty_boxes_and_intersection_is_empty_when_apart() {
        assert_eq!(cube(5, 5).hull(&cube(1, 2)), cube(1, 2));
        assert_eq!(cube(0, 1).hull(&cube(3, 4)), cube(0, 4));
        assert!(cube(0, 2).intersection(&cube(2, 4)).is_empty());
        assert!(cube(0, 1).contains(&Box3::EMPTY) && !cube(0, 1).contains(&cube(0, 2)));
    }

    #[test]
    fn points_of_a_colour_are_counted() {
        for lo in [[0, 0, 0], [1, 0, 0], [-1, 3, -2]] {
            for size in [[1, 1, 1], [2, 3, 1], [3, 3, 5], [0, 2, 2]] {
                let part = Box3 { lo, hi: std::array::from_fn(|axis| lo[axis] + size[axis]) };
                let mut counts = [0, 0];
                for z in part.lo[2]..part.hi[2] {
                    for y in part.lo[1]..part.hi[1] {
                        (part.lo[0]..part.hi[0]).for_each(|x| counts[(x + y + z).rem_euclid(2) as usize] += 1);
                    }
                }
                assert_eq!([0, 1].map(|parity| part.points_of(Some(parity))), counts, "{part}");
                assert_eq!(part.points_of(None), part.points());
            }
        }
    }

    #[test]
    fn sizes_and_points_count_cells() {
        let part = Box3 { lo: [-2, 1, 0], hi: [3, 2, 4] };
        assert_eq!((part.size(), part.points()), ([5, 1, 4], 20));
        assert_eq!(Box3 { lo: [2; 3], hi: [1; 3] }.points(), 0);
        assert_eq!(part.shifted([1, -1, 2]).to_string(), "[-1..4, 0..1, 2..6]");
    }
}
