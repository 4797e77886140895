//! Halos: how far a kernel reads around the points that it updates, and which line of the source asks for it.

use crate::error::{Error, Result};
use crate::geometry::{AXES, Box3, Extent};
use crate::kernel::{FieldDesc, KernelDesc};

/// How far a field is read on one side of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Cells beyond the updated points.
    pub cells: u32,
    /// The first line of the source that reads this far; 0 when nothing is read there.
    pub line: u32,
}

/// The halo of a field: (X, Y, Z) by (low side, high side).
pub type Halo = [[Reach; 2]; 3];

/// The halo that one parameter of a kernel asks for.
pub fn halo(field: &FieldDesc) -> Halo {
    let mut halo = Halo::default();
    for read in field.reads {
        for (sides, cells) in halo.iter_mut().zip(read.offset) {
            let side = &mut sides[usize::from(cells > 0)];
            let cells = cells.unsigned_abs();
            let farther = cells > side.cells;
            let earlier = cells > 0 && cells == side.cells && read.line < side.line;
            if farther || earlier {
                *side = Reach { cells, line: read.line };
            }
        }
    }
    halo
}

/// The default range of a call: every point of the grid whose footprint lies in the grid.
pub fn widest_range(kernel: &KernelDesc, extent: Extent) -> Result<Box3> {
    let mut range = extent.whole();
    for (axis, name) in AXES.into_iter().enumerate() {
        // The parameter that reaches farthest on each side.
        let farthest = |side: usize| {
            let reaches = kernel.fields.iter().map(|field| (halo(field)[axis][side], field));
            reaches.fold(None, |best: Option<(Reach, &FieldDesc)>, next| match best {
                Some(best) if best.0.cells >= next.0.cells => Some(best),
                _ => Some(next),
            })
        };
        let (Some(low), Some(high)) = (farthest(0), farthest(1)) else { continue };
        let needed = low.0.cells as usize + high.0.cells as usize + 1;
        let cells = extent.cells()[axis];
        if cells < needed {
            let (reach, field) = if low.0.cells > high.0.cells { low } else { high };
            return Err(Error::GridTooSmall {
                kernel: kernel.name.into(),
                field: field.name.into(),
                axis: name,
                cells,
                needed,
                file: kernel.file.into(),
                line: reach.line,
            });
        }
        range.lo[axis] += i64::from(low.0.cells);
        range.hi[axis] -= i64::from(high.0.cells);
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Read;
    use crate::testing::{AVERAGE, HEAT, LOPSIDED};

    fn range(kernel: &KernelDesc, cells: [usize; 3]) -> Result<Box3> {
        widest_range(kernel, Extent::new(cells).unwrap())
    }

    #[test]
    fn the_first_line_that_reaches_farthest_is_named() {
        let reads = &[
            Read { offset: [-1, 0, 0], line: 9 },
            Read { offset: [-2, 0, 3], line: 8 },
            Read { offset: [-2, 0, 0], line: 7 },
            Read { offset: [0, 0, 0], line: 1 },
        ];
        let found = halo(&FieldDesc { name: "u", ty: crate::kernel::ScalarType::F64, reads });
        let none = Reach::default();
        assert_eq!(found, [[Reach { cells: 2, line: 7 }, none], [none; 2], [none, Reach { cells: 3, line: 8 }]]);
    }

    #[test]
    fn the_widest_range_keeps_every_read_inside() {
        for kernel in [&HEAT, &AVERAGE, &LOPSIDED] {
            for cells in [[3, 3, 3], [5, 4, 7], [3, 9, 4]] {
                let Ok(range) = range(kernel, cells) else { continue };
                let whole = Extent::new(cells).unwrap().whole();
                for z in 0..cells[2] as i64 {
                    for y in 0..cells[1] as i64 {
                        for x in 0..cells[0] as i64 {
                            let reads = kernel.fields.iter().flat_map(|field| field.reads);
                            let inside = reads.map(|read| read.offset.map(i64::from));
                            let defined =
                                inside.map(|[dx, dy, dz]| [x + dx, y + dy, z + dz]).all(|cell| whole.holds(cell));
                            assert_eq!(range.holds([x, y, z]), defined, "{kernel:?} {cells:?} {x} {y} {z}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_axis_without_offsets_may_have_one_cell() {
        assert_eq!(range(&LOPSIDED, [4, 1, 3]).unwrap(), Box3 { lo: [0, 0, 1], hi: [2, 1, 3] });
    }

    #[test]
    fn a_grid_smaller_than_the_footprint_names_axis_cells_and_line() {
        match range(&LOPSIDED, [2, 1, 3]).unwrap_err() {
            Error::GridTooSmall { field, axis, cells, needed, line, .. } => {
                assert_eq!((field.as_str(), axis, cells, needed, line), ("a", "X", 2, 3, 41));
            }
            other => panic!("{other}"),
        }
        assert!(matches!(range(&HEAT, [3, 3, 2]), Err(Error::GridTooSmall { axis: "Z", cells: 2, needed: 3, .. })));
    }
}
