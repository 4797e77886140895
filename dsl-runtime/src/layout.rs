//! How a field lies in the memory of a device.
//!
//! All fields of a simulation share the strides between rows and planes, counted in cells, so that one index serves
//! every field of a kernel. Rows start on cache lines, those of the narrower types on parts of one. Fields differ in
//! their type, in the axes along which they extend, and in the ghost cells that they keep around the cells they own;
//! local cell (0, 0, 0) is the first owned one, and ghosts have negative coordinates or lie past the end.
//!
//! A field that doesn't extend along every axis has no room for the missing ones. From the common strides `row` and
//! `plane` its cell (i, j, k) is found at
//!
//! | axes | index |
//! |---|---|
//! | X, Y, Z | `i + j * row + k * plane` |
//! | X, Y | `i + j * row` |
//! | X, Z | `i + k * row` |
//! | Y, Z | `j + k * (plane / row)` |
//! | one | its coordinate |

use crate::error::{Error, Result};
use crate::geometry::Box3;
use crate::kernel::ScalarType;

/// Rows start at multiples of this, relative to the buffer (the size of a cache line and of the widest vector).
pub const LINE_BYTES: usize = 64;

/// The axes of a field that extends along all of them.
pub const WHOLE: [bool; 3] = [true; 3];

/// The axes of what a kernel stores for each row that it folds.
pub const ROWS: [bool; 3] = [false, true, true];

/// The cells from one row to the next and from one plane to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Strides {
    /// Cells between (i, j, k) and (i, j+1, k).
    pub row: usize,
    /// Cells between (i, j, k) and (i, j, k+1); a multiple of `row`.
    pub plane: usize,
}

impl Strides {
    /// Strides for all fields of a simulation whose first one has cells of type `first`; otherwise as
    /// [`for_cells`](Self::for_cells).
    pub fn for_first(first: ScalarType, cells: [usize; 3]) -> Result<Self> {
        // Cells of one byte count as four: rows of whole lines of them would be of eight lines for an `f64`.
        Self::for_cells(cells, first.bytes().max(4))
    }

    /// Strides that hold rows of `cells[0]` and planes of `cells[1]` rows, ghosts included; rows of types of `smallest`
    /// bytes and more start on cache lines.
    ///
    /// Both are made odd, in lines and in rows: at power-of-two distances neighbouring rows and planes would fall
    /// into the same cache sets.
    pub fn for_cells(cells: [usize; 3], smallest: usize) -> Result<Self> {
        let line = LINE_BYTES / smallest;
        let odd = |n: usize| if n >= 8 { n | 1 } else { n };
        let too_large = || Error::GridTooLarge { extent: cells };
        let row = odd(cells[0].div_ceil(line)).checked_mul(line).ok_or_else(too_large)?;
        let plane = row.checked_mul(odd(cells[1])).ok_or_else(too_large)?;
        Ok(Self { row, plane })
    }

    /// Rows of a plane.
    pub fn rows(self) -> usize {
        self.plane.checked_div(self.row).unwrap_or(0)
    }

    /// Cells from one coordinate to the next along each axis of a field that extends along `axes`; 0 along the others.
    pub fn steps(self, axes: [bool; 3]) -> [usize; 3] {
        let [x, y, z] = axes;
        let along_y = if x { self.row } else { 1 };
        let along_z = match (x, y) {
            (true, true) => self.plane,
            (true, false) => self.row,
            (false, true) => self.rows(),
            (false, false) => 1,
        };
        [usize::from(x), if y { along_y } else { 0 }, if z { along_z } else { 0 }]
    }
}

/// Where the cells of one field of one subdomain are, in a buffer of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The type of a cell.
    pub ty: ScalarType,
    /// Along which axes (X, Y, Z) the field extends.
    pub axes: [bool; 3],
    /// The cells that are stored, ghosts included, in local coordinates; 0..1 along missing axes.
    pub cells: Box3,
    /// The strides, common to all fields of the subdomain.
    pub strides: Strides,
    /// The index of local cell (0, 0, 0) in the buffer, counted in cells.
    pub origin: usize,
    /// The size of the buffer.
    pub bytes: usize,
}

impl Layout {
    /// The layout of a field that extends along `axes` and stores `cells` (local coordinates; (0, 0, 0) is the first
    /// owned cell). What `cells` says along missing axes doesn't matter.
    ///
    /// # Panics
    /// When rows or planes of `cells` are longer than the strides, so that they would overlap.
    pub fn new(ty: ScalarType, axes: [bool; 3], cells: Box3, strides: Strides) -> Result<Self> {
        let cells = along(axes, &cells);
        // With the first owned cell, to which the origin points, even where it isn't stored.
        let held = cells.hull(&Box3 { lo: [0; 3], hi: [1; 3] });
        let (size, below) = (held.size(), held.lo.map(|lo| lo.unsigned_abs() as usize));
        let too_large = || Error::GridTooLarge { extent: size };
        let steps = strides.steps(axes);
        let present = || (0..3).filter(|&axis| axes[axis]);
        for (axis, next) in present().zip(present().skip(1)) {
            let fits = size[axis].checked_mul(steps[axis]).is_some_and(|cells| cells <= steps[next]);
            assert!(fits, "{cells} doesn't fit rows of {} cells in planes of {}", strides.row, strides.plane);
        }
        let mut origin = 0_usize;
        for axis in 0..3 {
            let line = LINE_BYTES / ty.bytes();
            // Ghosts along X move the origin by whole lines, so that owned rows start on a line.
            let lead = if axis == 0 { below[0].next_multiple_of(line) } else { below[axis] };
            let cells = lead.checked_mul(steps[axis]).ok_or_else(too_large)?;
            origin = origin.checked_add(cells).ok_or_else(too_large)?;
        }
        // From the first cell to the end of the row or plane that holds the last one.
        let above = present().next_back().map_or(Some(1), |axis| {
            let last = size[axis] - below[axis];
            last.checked_mul(steps[axis])
        });
        let count = above.and_then(|above| origin.checked_add(above)).ok_or_else(too_large)?;
        let bytes =
            count.checked_mul(ty.bytes()).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(too_large)?;
        Ok(Self { ty, axes, cells, strides, origin, bytes })
    }

    /// A buffer of `count` cells in a single row.
    pub fn linear(ty: ScalarType, count: usize) -> Result<Self> {
        let cells = Box3 { lo: [0; 3], hi: [count as i64, 1, 1] };
        let row =
            count.div_ceil(LINE_BYTES).checked_mul(LINE_BYTES).ok_or(Error::GridTooLarge { extent: [count, 1, 1] })?;
        Self::new(ty, WHOLE, cells, Strides { row, plane: row })
    }

    /// The part of a box that the field tells apart: 0..1 along missing axes.
    pub fn along(&self, part: &Box3) -> Box3 {
        along(self.axes, part)
    }

    /// Whether the cells for all points of a box are stored.
    pub fn holds(&self, part: &Box3) -> bool {
        part.is_empty() || self.cells.contains(&self.along(part))
    }

    /// The origin from which a cell's index leads to the cell that is `shift` further, as a kernel gets it. It may lie
    /// before the buffer: then it wraps around, and so does adding an index to it.
    pub fn shifted_origin(&self, shift: [i64; 3]) -> usize {
        let steps = self.strides.steps(self.axes);
        (0..3).fold(self.origin, |origin, axis| origin.wrapping_add((shift[axis] as usize).wrapping_mul(steps[axis])))
    }

    /// The index in the buffer of the stored cell for a point, counted in cells.
    pub fn index(&self, point: [i64; 3]) -> Option<usize> {
        let cell = std::array::from_fn(|axis| if self.axes[axis] { point[axis] } else { 0 });
        self.cells.holds(cell).then(|| self.shifted_origin(cell))
    }

    /// The bytes of a box of stored cells; `None` when a cell isn't stored. The first axis of the field lies along the
    /// rows of the region, the second, if there is one, from row to row, and the third from plane to plane.
    pub fn region(&self, part: &Box3) -> Option<Region> {
        if part.is_empty() {
            return Some(Region { offset: 0, row_bytes: 0, rows: 0, planes: 0, row_pitch: 0, plane_pitch: 0 });
        }
        let part = self.along(part);
        if !self.cells.contains(&part) {
            return None;
        }
        let (size, steps, bytes) = (part.size(), self.strides.steps(self.axes), self.ty.bytes());
        let mut axes = (0..3).filter(|&axis| self.axes[axis]);
        let row_bytes = axes.next().map_or(1, |axis| size[axis]) * bytes;
        let (rows, row_pitch) = axes.next().map_or((1, row_bytes), |axis| (size[axis], steps[axis] * bytes));
        let (planes, plane_pitch) = axes.next().map_or((1, rows * row_pitch), |axis| (size[axis], steps[axis] * bytes));
        Some(Region { offset: self.index(part.lo)? * bytes, row_bytes, rows, planes, row_pitch, plane_pitch })
    }
}

/// `part` with 0..1 along missing axes.
pub(crate) fn along(axes: [bool; 3], part: &Box3) -> Box3 {
    let side = |side: [i64; 3], missing: i64| std::array::from_fn(|n| if axes[n] { side[n] } else { missing });
    Box3 { lo: side(part.lo, 0), hi: side(part.hi, 1) }
}

/// The bytes of a box of cells in a buffer: `planes` planes of `rows` rows of `row_bytes` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Where the first row starts.
    pub offset: usize,
    /// The length of a row.
    pub row_bytes: usize,
    /// Rows per plane.
    pub rows: usize,
    /// The number of planes.
    pub planes: usize,
    /// From the start of a row to the start of the next; at least `row_bytes`.
    pub row_pitch: usize,
    /// From the start of a plane to the start of the next; a multiple of `row_pitch`.
    pub plane_pitch: usize,
}

impl Region {
    /// A run of `bytes` bytes.
    pub fn run(offset: usize, bytes: usize) -> Self {
        Self { offset, row_bytes: bytes, rows: 1, planes: 1, row_pitch: bytes, plane_pitch: bytes }
    }

    /// The bytes in all rows together; the largest number if they can't be counted.
    pub fn bytes(&self) -> usize {
        self.row_bytes.saturating_mul(self.rows).saturating_mul(self.planes)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// One past the last byte that a row of the region covers; the largest number if it can't be addressed.
    pub fn end(&self) -> usize {
        if self.is_empty() {
            return self.offset;
        }
        let planes = (self.planes - 1).saturating_mul(self.plane_pitch);
        let rows = (self.rows - 1).saturating_mul(self.row_pitch);
        self.offset.saturating_add(planes).saturating_add(rows).saturating_add(self.row_bytes)
    }

    /// The same box with pitches that make sense even along axes with a single row or plane, where they mean nothing, and all
    /// numbers 0 if it is empty; `None` if rows or planes overlap or it leaves a buffer of so many bytes.
    pub(crate) fn within(&self, buffer_bytes: usize) -> Option<Self> {
        let Self { offset, row_bytes, rows, planes, .. } = *self;
        if row_bytes == 0 || rows == 0 || planes == 0 {
            return Some(Self { offset: 0, row_bytes: 0, rows: 0, planes: 0, row_pitch: 0, plane_pitch: 0 });
        }
        let row_pitch = if rows > 1 { self.row_pitch } else { row_bytes };
        let plane_pitch = if planes > 1 { self.plane_pitch } else { row_pitch.checked_mul(rows)? };
        let row_pitch = if rows == 1 && planes > 1 { plane_pitch } else { row_pitch };
        let last_row = (planes - 1).checked_mul(plane_pitch)?.checked_add((rows - 1).checked_mul(row_pitch)?)?;
        let end = offset.checked_add(last_row)?.checked_add(row_bytes)?;
        let is_apart = row_pitch >= row_bytes
            && plane_pitch >= row_pitch.checked_mul(rows)?
            && plane_pitch.is_multiple_of(row_pitch);
        (is_apart && end <= buffer_bytes).then_some(Self { row_pitch, plane_pitch, ..*self })
    }

    /// The start of each row, planes one after the other.
    pub fn row_starts(self) -> impl Iterator<Item = usize> {
        (0..self.planes).flat_map(move |plane| {
            (0..self.rows).map(move |row| self.offset + plane * self.plane_pitch + row * self.row_pitch)
        })
    }

    /// Whether `other` has rows of the same shape.
    pub fn same_shape(&self, other: &Self) -> bool {
        (self.row_bytes, self.rows, self.planes) == (other.row_bytes, other.rows, other.planes)
    }

    /// Whether a row of it and one of `other`, in the same buffer, may have a byte in common; with the same pitches the
    /// answer is exact.
    pub fn meets(&self, other: &Self) -> bool {
        if self.end() <= other.offset || other.end() <= self.offset || self.is_empty() || other.is_empty() {
            return false;
        }
        let [row, plane] = [self.row_pitch, self.plane_pitch].map(|pitch| pitch as i128);
        if [row, plane] != [other.row_pitch as i128, other.plane_pitch as i128] || row == 0 {
            return true;
        }
        // Whether rows that lie `planes` planes and any number of rows apart have bytes in common.
        let meet_in = |planes: i128| {
            let apart = other.offset as i128 - self.offset as i128 + planes * plane;
            let (lowest, highest) = (1 - self.rows as i128, other.rows as i128 - 1);
            [0, 1].into_iter().any(|above| {
                let rows = (-apart.div_euclid(row) - above).clamp(lowest, highest);
                let apart = apart + rows * row;
                -(other.row_bytes as i128) < apart && apart < self.row_bytes as i128
            })
        };
        (1 - self.planes as i128..other.planes as i128).any(meet_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Extent;
    use crate::testing::noise;

    fn layout(ty: ScalarType, cells: [usize; 3], ghosts: [[i64; 2]; 3]) -> Layout {
        let mut whole = Extent::new(cells).unwrap().whole();
        for (axis, [below, above]) in ghosts.into_iter().enumerate() {
            whole.lo[axis] -= below;
            whole.hi[axis] += above;
        }
        let strides = Strides::for_cells(whole.size(), 4).unwrap();
        Layout::new(ty, WHOLE, whole, strides).unwrap()
    }

    #[test]
    fn every_cell_has_a_place_of_its_own_inside_the_buffer() {
        for ty in ScalarType::ALL {
            for cells in [[1, 1, 1], [1, 7, 2], [13, 1, 3], [16, 8, 4], [17, 9, 1], [64, 2, 2]] {
                for ghosts in [[[0; 2]; 3], [[0, 0], [0, 0], [1, 2]], [[3, 1], [0, 2], [4, 0]]] {
                    let layout = layout(ty, cells, ghosts);
                    let mut seen = std::collections::BTreeSet::new();
                    let stored = layout.cells;
                    for z in stored.lo[2]..stored.hi[2] {
                        for y in stored.lo[1]..stored.hi[1] {
                            for x in stored.lo[0]..stored.hi[0] {
                                let index = layout.index([x, y, z]).unwrap();
                                assert!((index + 1) * ty.bytes() <= layout.bytes, "{layout:?} {x} {y} {z}");
                                assert!(seen.insert(index), "{layout:?} {x} {y} {z}");
                            }
                        }
                    }
                    assert_eq!(layout.index(stored.hi), None);
                }
            }
        }
    }

    #[test]
    fn owned_rows_start_on_lines() {
        for ty in [ScalarType::F64, ScalarType::F32] {
            let layout = layout(ty, [5, 3, 4], [[3, 2], [1, 1], [2, 1]]);
            for (y, z) in [(0, 0), (1, 0), (2, 3)] {
                assert_eq!(layout.index([0, y, z]).unwrap() * ty.bytes() % LINE_BYTES, 0);
            }
        }
    }

    #[test]
    fn rows_of_the_widest_types_start_on_lines_whichever_field_comes_first() {
        for first in ScalarType::ALL {
            for nx in [1, 10, 100, 257] {
                let strides = Strides::for_first(first, [nx, 4, 3]).unwrap();
                for widest in ScalarType::ALL.into_iter().filter(|ty| ty.bytes() == 8) {
                    let cells = Box3 { lo: [0, -2, -1], hi: [nx as i64, 2, 2] };
                    let layout = Layout::new(widest, WHOLE, cells, strides).unwrap();
                    for row in [[0, 0, 0], [0, 1, 0], [0, -2, 1]] {
                        assert_eq!(layout.index(row).unwrap() * 8 % LINE_BYTES, 0, "{first} {nx}");
                    }
                }
                assert!(strides.row < nx + 32, "{first} {nx}: {strides:?}");
            }
        }
    }

    #[test]
    fn power_of_two_grids_get_strides_that_spread_over_cache_sets() {
        let strides = Strides::for_cells([256, 256, 256], 8).unwrap();
        assert_eq!(strides, Strides { row: 33 * 8, plane: 33 * 8 * 257 });
    }

    #[test]
    fn sizes_past_the_address_space_are_refused() {
        assert!(matches!(Strides::for_cells([usize::MAX, 1, 1], 8), Err(Error::GridTooLarge { .. })));
        let cells = Box3 { lo: [0; 3], hi: [1 << 30, 1 << 30, 4] };
        let strides = Strides::for_cells(cells.size(), 8).unwrap();
        assert!(matches!(Layout::new(ScalarType::F64, WHOLE, cells, strides), Err(Error::GridTooLarge { .. })));
    }

    /// Every choice of axes but none.
    fn choices() -> impl Iterator<Item = [bool; 3]> {
        (1..8).map(|bits| [0, 1, 2].map(|axis| bits >> axis & 1 == 1))
    }

    #[test]
    fn a_field_without_an_axis_has_one_cell_along_it() {
        let strides = Strides { row: 16, plane: 16 * 9 };
        let whole = Box3 { lo: [-2, -1, -3], hi: [7, 6, 4] };
        for ty in ScalarType::ALL {
            for axes in choices() {
                let layout = Layout::new(ty, axes, whole, strides).unwrap();
                let mut places = std::collections::BTreeSet::new();
                for point in points(&whole) {
                    let index = layout.index(point).unwrap();
                    assert!((index + 1) * ty.bytes() <= layout.bytes);
                    let [x, y, z] = [0, 1, 2].map(|axis| if axes[axis] { point[axis] } else { 0 });
                    let (sy, sz) = (16, 144);
                    let expected = match axes {
                        [true, true, true] => x + y * sy + z * sz,
                        [true, true, false] => x + y * sy,
                        [true, false, true] => x + z * sy,
                        [false, true, true] => y + z * (sz / sy),
                        _ => x + y + z,
                    };
                    assert_eq!(index as i64 - layout.origin as i64, expected, "{axes:?} {point:?}");
                    places.insert(index);
                }
                assert_eq!(places.len() as u64, layout.cells.points(), "{axes:?}");
                let on_a_line = (layout.origin * ty.bytes()).is_multiple_of(LINE_BYTES);
                assert!(on_a_line || !axes[0] || ty.bytes() < 4, "{layout:?}");
                assert_eq!(layout.index([0, 6, 0]).is_none(), axes[1]);
                assert!(layout.holds(&whole) && layout.holds(&Box3::EMPTY));
                assert_eq!(layout.holds(&whole.shifted([0, 0, 1])), !axes[2]);
            }
        }
    }

    #[test]
    fn a_region_of_any_field_has_the_cells_of_its_box_in_order() {
        let strides = Strides { row: 16, plane: 16 * 9 };
        let whole = Box3 { lo: [-2, -1, -3], hi: [7, 6, 4] };
        let part = Box3 { lo: [-1, 0, -3], hi: [5, 6, 2] };
        for axes in choices() {
            let layout = Layout::new(ScalarType::F32, axes, whole, strides).unwrap();
            let region = layout.region(&part).unwrap();
            let bytes = region.row_starts().flat_map(|start| (start..start + region.row_bytes).step_by(4));
            let expected = points(&layout.along(&part)).map(|cell| layout.index(cell).unwrap() * 4);
            assert!(bytes.eq(expected), "{axes:?} {region:?}");
            assert!(region.end() <= layout.bytes && region.plane_pitch.is_multiple_of(region.row_pitch));
            assert!(region.row_pitch >= region.row_bytes && region.plane_pitch >= region.rows * region.row_pitch);
            assert_eq!(layout.region(&part.shifted([0, 3, 0])).is_none(), axes[1]);
        }
    }

    #[test]
    fn a_shift_moves_the_origin_along_the_axes_of_the_field_even_out_of_the_buffer() {
        let strides = Strides { row: 16, plane: 16 * 9 };
        let cells = Box3 { lo: [0; 3], hi: [9, 8, 5] };
        for axes in choices() {
            let layout = Layout::new(ScalarType::I8, axes, cells, strides).unwrap();
            for shift in [[0, 0, 0], [3, 1, 2], [-4, 0, -1], [0, -20, 0]] {
                let point = [4, 5, 1];
                let read = [0, 1, 2].map(|axis| point[axis] + shift[axis]);
                let moved = layout.shifted_origin(shift);
                let along = layout.shifted_origin(point).wrapping_sub(layout.origin);
                let expected = layout.shifted_origin(read);
                assert_eq!(moved.wrapping_add(along), expected, "{axes:?} {shift:?}");
                if layout.index(read).is_some() {
                    assert_eq!(layout.index(read), Some(expected));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "doesn't fit rows of 8 cells")]
    fn rows_longer_than_the_strides_would_overlap() {
        let cells = Box3 { lo: [-1, 0, 0], hi: [8, 1, 1] };
        let _ = Layout::new(ScalarType::F64, WHOLE, cells, Strides { row: 8, plane: 8 });
    }

    #[test]
    fn boxes_meet_where_their_rows_have_a_byte_in_common() {
        let layout = layout(ScalarType::F32, [13, 7, 5], [[1, 2], [0, 1], [1, 0]]);
        let mut random = noise(5);
        let mut below = |n: i64| (random() * n as f64) as i64;
        let (mut apart, mut together) = (0, 0);
        for _ in 0..3000 {
            let mut part = || {
                let Box3 { lo, hi } = layout.cells;
                let size = [0, 1, 2].map(|axis| 1 + below((hi[axis] - lo[axis]).min(6)));
                let lo = [0, 1, 2].map(|axis| lo[axis] + below(hi[axis] - lo[axis] + 1 - size[axis]));
                Box3 { lo, hi: [0, 1, 2].map(|axis| lo[axis] + size[axis]) }
            };
            let (a, b) = (part(), part());
            let [first, second] = [&a, &b].map(|part| layout.region(part).unwrap());
            let meet = !a.intersection(&b).is_empty();
            assert_eq!((first.meets(&second), second.meets(&first)), (meet, meet), "{a} {b}");
            *if meet { &mut together } else { &mut apart } += 1;
        }
        assert!(apart > 100 && together > 100, "{apart} {together}");
        let run = Region::run(0, 8);
        assert!(run.meets(&Region::run(7, 1)) && !run.meets(&Region::run(8, 1)) && !run.meets(&Region::run(3, 0)));
    }

    fn points(part: &Box3) -> impl Iterator<Item = [i64; 3]> + use<> {
        let Box3 { lo, hi } = *part;
        (lo[2]..hi[2]).flat_map(move |z| (lo[1]..hi[1]).flat_map(move |y| (lo[0]..hi[0]).map(move |x| [x, y, z])))
    }

    #[test]
    fn a_region_covers_the_rows_of_its_box() {
        let layout = layout(ScalarType::F32, [5, 3, 4], [[0; 2], [0; 2], [1, 1]]);
        let part = Box3 { lo: [1, 1, -1], hi: [4, 3, 2] };
        let region = layout.region(&part).unwrap();
        assert_eq!((region.row_bytes, region.rows, region.planes), (12, 2, 3));
        let starts: Vec<_> = region.row_starts().collect();
        let expected: Vec<_> =
            (-1..2).flat_map(|z| (1..3).map(move |y| [1, y, z])).map(|cell| layout.index(cell).unwrap() * 4).collect();
        assert_eq!(starts, expected);
        assert_eq!(region.end(), layout.index([3, 2, 1]).unwrap() * 4 + 4);
        assert_eq!(layout.region(&Box3 { lo: [0; 3], hi: [6, 1, 1] }), None);
        assert!(layout.region(&Box3::EMPTY).unwrap().is_empty());
    }
}
