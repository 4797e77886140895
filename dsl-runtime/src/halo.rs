//! Halos: how far a kernel reads around the points that it updates, which line of the source asks for it, and what that
//! means for the cells of fields.

use crate::boundary::{Face, Widths};
use crate::error::{Error, Result};
use crate::geometry::{AXES, Box3};
use crate::kernel::{FieldDesc, KernelDesc};
use crate::shape::Shape;

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

/// The default range of a call: every point of `domain` at which all reads are defined. `shapes` are those of the fields
/// that the kernel is given.
pub fn widest_range(kernel: &KernelDesc, shapes: &[&Shape], domain: &Box3) -> Result<Box3> {
    let mut range = *domain;
    for (axis, name) in AXES.into_iter().enumerate() {
        // What cuts most on either side.
        let mut cuts: [Option<(&FieldDesc, &Shape)>; 2] = [None; 2];
        for (field, shape) in kernel.fields.iter().zip(shapes) {
            let along = field.reads.iter().map(|read| i64::from(read.offset[axis]));
            let (Some(least), Some(most)) = (along.clone().min(), along.max()) else { continue };
            if !shape.axes[axis] {
                continue;
            }
            let (lo, hi) = (-least, shape.cells[axis] as i64 - most);
            if shape.faces[axis][0] == Face::Fixed && lo > range.lo[axis] {
                range.lo[axis] = lo;
                cuts[0] = Some((field, shape));
            }
            if shape.faces[axis][1] == Face::Fixed && hi < range.hi[axis] {
                range.hi[axis] = hi;
                cuts[1] = Some((field, shape));
            }
        }
        if range.lo[axis] < range.hi[axis] || domain.is_empty() {
            continue;
        }
        let reaches = cuts.map(|cut| cut.map(|(field, _)| halo(field)[axis]));
        let cells = |side: usize| reaches[side].map_or(0, |halo| halo[side].cells);
        let farther = usize::from(cells(1) >= cells(0) && cuts[1].is_some());
        let Some((field, shape)) = cuts[farther].or(cuts[0]) else { continue };
        return Err(Error::GridTooSmall {
            kernel: kernel.name.into(),
            field: field.name.into(),
            axis: name,
            cells: shape.cells[axis],
            needed: cells(0) as usize + cells(1) as usize + 1,
            file: kernel.file.into(),
            line: halo(field)[axis][farther].line,
        });
    }
    Ok(range)
}

/// The ghost cells that each field must have so that a kernel can update all points of `range`.
pub fn ghosts(kernel: &KernelDesc, shapes: &[&Shape], range: &Box3) -> Result<Vec<Widths>> {
    let each = kernel.fields.iter().zip(shapes);
    each.map(|(field, shape)| ghosts_of(kernel, field, shape, &field.footprint(range))).collect()
}

/// The ghost cells of one field.
fn ghosts_of(kernel: &KernelDesc, field: &FieldDesc, shape: &Shape, footprint: &Box3) -> Result<Widths> {
    let mut widths = Widths::default();
    if footprint.is_empty() {
        return Ok(widths);
    }
    for (axis, name) in AXES.into_iter().enumerate() {
        if !shape.axes[axis] {
            continue;
        }
        let cells = shape.cells[axis];
        let beyond = [-footprint.lo[axis], footprint.hi[axis] - cells as i64];
        for side in 0..2 {
            let width = u32::try_from(beyond[side].max(0)).unwrap_or(u32::MAX);
            if width == 0 {
                continue;
            }
            let face = shape.faces[axis][side];
            let most = match face {
                Face::Fixed => 0,
                // A mirror shows no more than there is.
                Face::Even | Face::Odd => cells,
                Face::Constant(_) | Face::Periodic | Face::Clamp => usize::MAX,
            };
            if width as usize > most {
                let boxed = |text: &str| Box::new(text.to_owned());
                return Err(Error::ReadsBeyond {
                    kernel: boxed(kernel.name),
                    parameter: boxed(field.name),
                    field: boxed(&shape.name),
                    boundary: Box::new(face.to_string()),
                    axis: name,
                    side: ["low", "high"][side],
                    cells,
                    needed: width as usize,
                    file: boxed(kernel.file),
                    line: halo(field)[axis][side].line,
                });
            }
            widths[axis][side] = width;
        }
    }
    Ok(widths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Read, ScalarType};
    use crate::testing::{AVERAGE, HEAT, LOPSIDED};

    fn shape(cells: [usize; 3], face: Face) -> Shape {
        Shape { name: "f".into(), ty: ScalarType::F64, axes: [true; 3], cells, faces: [[face; 2]; 3] }
    }

    fn range(kernel: &KernelDesc, cells: [usize; 3]) -> Result<Box3> {
        let shape = shape(cells, Face::Fixed);
        widest_range(kernel, &vec![&shape; kernel.fields.len()], &shape.whole())
    }

    #[test]
    fn the_first_line_that_reaches_farthest_is_named() {
        let reads = &[
            Read { offset: [-1, 0, 0], line: 9 },
            Read { offset: [-2, 0, 3], line: 8 },
            Read { offset: [-2, 0, 0], line: 7 },
            Read { offset: [0, 0, 0], line: 1 },
        ];
        let found = halo(&FieldDesc { name: "u", ty: ScalarType::F64, axes: [true; 3], reads });
        let none = Reach::default();
        assert_eq!(found, [[Reach { cells: 2, line: 7 }, none], [none; 2], [none, Reach { cells: 3, line: 8 }]]);
    }

    #[test]
    fn the_widest_range_keeps_every_read_inside() {
        for kernel in [&HEAT, &AVERAGE, &LOPSIDED] {
            for cells in [[3, 3, 3], [5, 4, 7], [3, 9, 4]] {
                let Ok(range) = range(kernel, cells) else { continue };
                let whole = shape(cells, Face::Fixed).whole();
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

    #[test]
    fn fields_of_other_extents_cut_where_they_end() {
        let (short, long) = (shape([4, 5, 5], Face::Fixed), shape([6, 5, 5], Face::Fixed));
        let shapes = [&long, &short, &long];
        assert_eq!(
            widest_range(&HEAT, &shapes, &long.whole()).unwrap(),
            Box3 { lo: [1; 3], hi: [4, 4, 4] },
            "the second field is read at the point only"
        );
    }

    #[test]
    fn ghosts_are_as_wide_as_reads_go_beyond_the_field() {
        let periodic = shape([5, 3, 1], Face::Periodic);
        let shapes = vec![&periodic; 3];
        let whole = widest_range(&HEAT, &shapes, &periodic.whole()).unwrap();
        assert_eq!(whole, periodic.whole());
        let found = ghosts(&HEAT, &shapes, &whole).unwrap();
        assert_eq!(found, [[[1; 2]; 3], [[0; 2]; 3], [[1; 2]; 3]]);
        let inner = Box3 { lo: [1, 1, 0], hi: [4, 2, 1] };
        assert_eq!(ghosts(&HEAT, &shapes, &inner).unwrap()[0], [[0; 2], [0; 2], [1; 2]]);
    }

    #[test]
    fn reads_beyond_a_fixed_face_or_a_short_mirror_are_refused_by_name() {
        let mut fixed = shape([5, 3, 4], Face::Clamp);
        fixed.faces[1][1] = Face::Fixed;
        let error = ghosts(&HEAT, &[&fixed; 3], &fixed.whole()).unwrap_err();
        assert!(matches!(error, Error::ReadsBeyond { axis: "Y", side: "high", needed: 1, line: 13, .. }), "{error}");
        let mirror = shape([1, 1, 1], Face::Even);
        let lopsided = ghosts(&LOPSIDED, &[&mirror; 2], &mirror.whole()).unwrap_err();
        assert!(matches!(lopsided, Error::ReadsBeyond { axis: "X", cells: 1, needed: 2, .. }), "{lopsided}");
    }
}
