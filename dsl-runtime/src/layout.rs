//! How a field lies in the memory of a device.
//!
//! All fields of a simulation share the strides between rows and planes, counted in cells, so that one index serves
//! every field of a kernel. Rows start on cache lines, those of the narrower types on parts of one. Fields differ in
//! their type and in the ghost cells that they keep around the cells they own; local cell (0, 0, 0) is the first owned
//! one, and ghosts have negative coordinates or lie past the end.

use crate::error::{Error, Result};
use crate::geometry::Box3;
use crate::kernel::ScalarType;

/// Rows start at multiples of this, relative to the buffer (the size of a cache line and of the widest vector).
pub const LINE_BYTES: usize = 64;

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
}

/// Where the cells of one field of one subdomain are, in a buffer of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The type of a cell.
    pub ty: ScalarType,
    /// The cells that are stored, ghosts included, in local coordinates.
    pub cells: Box3,
    /// The strides, common to all fields of the subdomain.
    pub strides: Strides,
    /// The index of local cell (0, 0, 0) in the buffer, counted in cells.
    pub origin: usize,
    /// The size of the buffer.
    pub bytes: usize,
}

impl Layout {
    /// The layout of a field that stores `cells` (local coordinates; (0, 0, 0) is the first owned cell).
    pub fn new(ty: ScalarType, cells: Box3, strides: Strides) -> Result<Self> {
        let size = cells.size();
        let too_large = || Error::GridTooLarge { extent: size };
        let line = LINE_BYTES / ty.bytes();
        let below = cells.lo.map(|lo| usize::try_from(-lo).unwrap_or(0));
        // Ghosts along X move the origin by whole lines, so that owned rows start on a line.
        let origin = (below[2].checked_mul(strides.plane))
            .and_then(|origin| origin.checked_add(below[1].checked_mul(strides.row)?))
            .and_then(|origin| origin.checked_add(below[0].div_ceil(line).checked_mul(line)?))
            .ok_or_else(too_large)?;
        let count = (size[2].checked_mul(strides.plane))
            .and_then(|count| count.checked_add(below[0].div_ceil(line) * line))
            .ok_or_else(too_large)?;
        let bytes =
            count.checked_mul(ty.bytes()).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(too_large)?;
        Ok(Self { ty, cells, strides, origin, bytes })
    }

    /// A buffer of `count` cells in a single row.
    pub fn linear(ty: ScalarType, count: usize) -> Result<Self> {
        let cells = Box3 { lo: [0; 3], hi: [count as i64, 1, 1] };
        let row =
            count.div_ceil(LINE_BYTES).checked_mul(LINE_BYTES).ok_or(Error::GridTooLarge { extent: [count, 1, 1] })?;
        Self::new(ty, cells, Strides { row, plane: row })
    }

    /// The index of a stored cell in the buffer, counted in cells.
    pub fn index(&self, cell: [i64; 3]) -> Option<usize> {
        self.cells.holds(cell).then(|| {
            let Strides { row, plane } = self.strides;
            let along = cell[0] + cell[1] * row as i64 + cell[2] * plane as i64;
            (self.origin as i64 + along) as usize
        })
    }

    /// The bytes of a box of stored cells; `None` when a cell isn't stored.
    pub fn region(&self, part: &Box3) -> Option<Region> {
        if part.is_empty() {
            return Some(Region { offset: 0, row_bytes: 0, rows: 0, planes: 0, row_pitch: 0, plane_pitch: 0 });
        }
        if !self.cells.contains(part) {
            return None;
        }
        let [cells, rows, planes] = part.size();
        let bytes = self.ty.bytes();
        Some(Region {
            offset: self.index(part.lo)? * bytes,
            row_bytes: cells * bytes,
            rows,
            planes,
            row_pitch: self.strides.row * bytes,
            plane_pitch: self.strides.plane * bytes,
        })
    }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Extent;

    fn layout(ty: ScalarType, cells: [usize; 3], ghosts: [[i64; 2]; 3]) -> Layout {
        let mut whole = Extent::new(cells).unwrap().whole();
        for (axis, [below, above]) in ghosts.into_iter().enumerate() {
            whole.lo[axis] -= below;
            whole.hi[axis] += above;
        }
        let strides = Strides::for_cells(whole.size(), 4).unwrap();
        Layout::new(ty, whole, strides).unwrap()
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
                    let layout = Layout::new(widest, cells, strides).unwrap();
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
        assert!(matches!(Layout::new(ScalarType::F64, cells, strides), Err(Error::GridTooLarge { .. })));
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
