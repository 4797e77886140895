//! Boundaries: what a read beyond a face of a field gives.
//!
//! A field with a boundary other than fixed keeps ghost cells around its own; before a stage reads them they are
//! filled. Axes are filled one after the other, X first, each over the ghost cells of those before, so that a
//! cell beyond two or three faces gets what both boundaries say: the value beyond the face of the later axis, taken from
//! cells that may themselves lie beyond the face of an earlier one.

mod kernels;

use std::fmt;

use crate::element::Primitive;
use crate::error::{Error, Result};
use crate::geometry::{AXES, Box3};
use crate::kernel::KernelDesc;
use crate::offset::{Offset, X, Y, Z};

pub(crate) use kernels::{added_as as added, constant_as as constant};
use kernels::{copied_as, negated_as};

/// The six faces of a grid, named by the directions out of it.
pub const FACES: [Offset; 6] = [Offset::new(-1, 0, 0), X, Offset::new(0, -1, 0), Y, Offset::new(0, 0, -1), Z];

/// What a read beyond a face gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Boundary<T> {
    /// Nothing: points that would read beyond the face aren't updated (the default).
    Fixed,
    /// Always this value.
    Constant(T),
    /// The value that lies as far inside the opposite face. Both faces of an axis must be periodic.
    Periodic,
    /// The value of the nearest cell of the field: no flux through the face.
    Clamp,
    /// The value of the cell that lies as far inside the face.
    Even,
    /// The value of the cell that lies as far inside the face, negated: zero on the face.
    Odd,
}

/// A boundary without the Rust type of its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Face {
    /// Nothing lies beyond.
    #[default]
    Fixed,
    /// The bits of a value.
    Constant(u64),
    /// The opposite side.
    Periodic,
    /// The nearest cell.
    Clamp,
    /// A mirror.
    Even,
    /// A mirror that changes the sign.
    Odd,
}

/// The boundaries of a field: (X, Y, Z) by (low, high).
pub type Faces = [[Face; 2]; 3];

/// The widths of ghost zones: (X, Y, Z) by (low, high), in cells.
pub type Widths = [[u32; 2]; 3];

impl<T: Primitive> From<Boundary<T>> for Face {
    fn from(boundary: Boundary<T>) -> Self {
        match boundary {
            Boundary::Fixed => Face::Fixed,
            Boundary::Constant(value) => Face::Constant(value.to_word()),
            Boundary::Periodic => Face::Periodic,
            Boundary::Clamp => Face::Clamp,
            Boundary::Even => Face::Even,
            Boundary::Odd => Face::Odd,
        }
    }
}

impl fmt::Display for Face {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Face::Fixed => "fixed",
            Face::Constant(_) => "constant",
            Face::Periodic => "periodic",
            Face::Clamp => "clamped",
            Face::Even => "an even mirror",
            Face::Odd => "an odd mirror",
        })
    }
}

/// The axis and side of a face that is named by its outward direction.
pub(crate) fn side(field: &str, outward: Offset) -> Result<(usize, usize)> {
    let steps = [outward.x, outward.y, outward.z];
    let along: Vec<_> = (0..3).filter(|&axis| steps[axis] != 0).collect();
    match along[..] {
        [axis] if steps[axis].unsigned_abs() == 1 => Ok((axis, usize::from(steps[axis] > 0))),
        _ => Err(Error::NoFace { field: field.into(), direction: steps }),
    }
}

/// What a boundary can't be, for people: an odd mirror of a type without negative values, or half a periodic axis.
pub(crate) fn check(field: &str, faces: &Faces, signed: bool) -> Result<()> {
    for (axis, sides) in faces.iter().enumerate() {
        let refuse =
            |reason: &str| Err(Error::Boundary { field: field.into(), axis: AXES[axis], reason: reason.into() });
        if (sides[0] == Face::Periodic) != (sides[1] == Face::Periodic) {
            return refuse("one face is periodic and the other is not: set both at once, as in `[X, -X]`");
        }
        if !signed && sides.contains(&Face::Odd) {
            return refuse("an odd mirror needs a type with negative values");
        }
    }
    Ok(())
}

/// One launch that fills ghost cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The ghost cells.
    pub(crate) part: Box3,
    /// How far from a ghost cell the value lies that it gets.
    pub(crate) shift: [i64; 3],
    /// How it gets it.
    pub(crate) how: How,
}

/// How a ghost cell gets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// As it is.
    Copied,
    /// Negated.
    Negated,
    /// It is always this.
    Constant(u64),
}

/// How the ghost cells of a field with the cells 0.. `extent` are filled, in order; every launch reads only cells that
/// lie outside of what it writes.
pub(crate) fn fills(extent: [usize; 3], faces: &Faces, widths: &Widths) -> Vec<Fill> {
    let mut fills = Vec::new();
    let mut filled = Box3 { lo: [0; 3], hi: extent.map(|cells| cells as i64) };
    for axis in 0..3 {
        let cells = extent[axis] as i64;
        for side in 0..2 {
            let width = i64::from(widths[axis][side]);
            // The planes from the `from`-th ghost plane to before the `to`-th, counted outwards from 0.
            let planes = |from: i64, to: i64| {
                let mut part = filled;
                (part.lo[axis], part.hi[axis]) = if side == 0 { (-to, -from) } else { (cells + from, cells + to) };
                part
            };
            let inward = if side == 0 { 1 } else { -1 };
            let mut fill = |from, to, distance: i64, how| {
                let mut shift = [0; 3];
                shift[axis] = inward * distance;
                fills.push(Fill { part: planes(from, to), shift, how });
            };
            if width == 0 {
                continue;
            }
            // A mirror shows no more than there is; a field that is swapped may have room for more.
            let mirrored = 0..width.min(cells);
            match faces[axis][side] {
                Face::Fixed => {}
                Face::Constant(bits) => fill(0, width, 0, How::Constant(bits)),
                Face::Periodic => {
                    let periods = (0..width).step_by(extent[axis].max(1));
                    periods.for_each(|from| fill(from, width.min(from + cells), from + cells, How::Copied));
                }
                Face::Clamp => (0..width).for_each(|plane| fill(plane, plane + 1, plane + 1, How::Copied)),
                Face::Even => mirrored.for_each(|plane| fill(plane, plane + 1, 2 * plane + 1, How::Copied)),
                Face::Odd => mirrored.for_each(|plane| fill(plane, plane + 1, 2 * plane + 1, How::Negated)),
            }
        }
        filled.lo[axis] -= i64::from(widths[axis][0]);
        filled.hi[axis] += i64::from(widths[axis][1]);
    }
    fills
}

/// Whether a kernel of a fill takes a value over as it is.
pub(crate) fn is_copy(kernel: &KernelDesc) -> bool {
    kernel.outputs.first().is_some_and(|output| std::ptr::eq(kernel, copied_as(output.ty)))
}

/// The kernel and the scalars of a fill.
pub(crate) fn kernel(how: How, ty: crate::kernel::ScalarType) -> (&'static KernelDesc, Vec<u64>) {
    match how {
        How::Copied => (copied_as(ty), Vec::new()),
        How::Negated => (negated_as(ty), Vec::new()),
        How::Constant(bits) => (constant(ty), vec![bits]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The value of a cell anywhere, by the definition of the boundaries: the last axis first.
    fn value(extent: [usize; 3], faces: &Faces, cell: [i64; 3]) -> i64 {
        let (mut inside, mut sign) = (cell, 1);
        for axis in [2, 1, 0] {
            let n = extent[axis] as i64;
            let (side, beyond) = match cell[axis] {
                low if low < 0 => (0, -low),
                high if high >= n => (1, high - n + 1),
                _ => continue,
            };
            let from_face = |depth: i64| if side == 0 { depth } else { n - 1 - depth };
            inside[axis] = match faces[axis][side] {
                Face::Fixed => unreachable!("there is no ghost cell"),
                Face::Constant(bits) => return sign * bits as i64,
                Face::Periodic => cell[axis].rem_euclid(n),
                Face::Clamp => from_face(0),
                Face::Even => from_face(beyond - 1),
                Face::Odd => {
                    sign = -sign;
                    from_face(beyond - 1)
                }
            };
        }
        sign * (1 + inside[0] + 100 * inside[1] + 10_000 * inside[2])
    }

    #[test]
    fn ghost_cells_hold_what_the_boundaries_say_at_edges_and_corners_too() {
        let kinds = [Face::Constant(7), Face::Clamp, Face::Even, Face::Odd];
        let mut sides = vec![[Face::Fixed, Face::Fixed], [Face::Periodic, Face::Periodic]];
        sides.extend(kinds.into_iter().flat_map(|low| kinds.map(|high| [low, high])));
        let mut number = 0_usize;
        for x in &sides {
            for y in &sides {
                for z in &sides {
                    number += 1;
                    let faces = [*x, *y, *z];
                    let extent = [[5, 3, 4], [1, 2, 3], [4, 1, 2]][number % 3];
                    let widths: Widths = std::array::from_fn(|axis| {
                        std::array::from_fn(|side| match faces[axis][side] {
                            Face::Fixed => 0,
                            Face::Even | Face::Odd => (number as u32 / 3 % 4).min(extent[axis] as u32),
                            _ => number as u32 / (axis as u32 + 2) % 4,
                        })
                    });
                    check(extent, &faces, &widths);
                }
            }
        }
    }

    fn check(extent: [usize; 3], faces: &Faces, widths: &Widths) {
        let mut cells = BTreeMap::new();
        let whole = Box3 { lo: [0; 3], hi: extent.map(|n| n as i64) };
        each(&whole, |cell| {
            cells.insert(cell, value(extent, faces, cell));
        });
        for Fill { part, shift, how } in fills(extent, faces, widths) {
            assert!(part.intersection(&part.shifted(shift)).is_empty() || matches!(how, How::Constant(_)));
            each(&part, |cell| {
                let from = std::array::from_fn(|axis| cell[axis] + shift[axis]);
                let new = match how {
                    How::Copied => cells[&from],
                    How::Negated => -cells[&from],
                    How::Constant(bits) => bits as i64,
                };
                assert!(cells.insert(cell, new).is_none(), "{cell:?} is filled twice");
            });
        }
        let stored = crate::shape::grown(&whole, widths);
        assert_eq!(cells.len() as u64, stored.points());
        for (cell, found) in cells {
            assert_eq!(found, value(extent, faces, cell), "{extent:?} {faces:?} {widths:?} {cell:?}");
        }
    }

    fn each(part: &Box3, mut act: impl FnMut([i64; 3])) {
        for z in part.lo[2]..part.hi[2] {
            for y in part.lo[1]..part.hi[1] {
                for x in part.lo[0]..part.hi[0] {
                    act([x, y, z]);
                }
            }
        }
    }

    #[test]
    fn faces_are_named_by_one_step_outwards() {
        for (number, face) in FACES.into_iter().enumerate() {
            assert_eq!(side("u", face).unwrap(), (number / 2, number % 2));
        }
        for wrong in [Offset::HERE, X + Y, 2 * X] {
            assert!(matches!(side("u", wrong), Err(Error::NoFace { .. })));
        }
    }

    #[test]
    fn half_a_periodic_axis_and_mirrors_without_sign_are_refused() {
        let one = [[Face::Periodic, Face::Fixed], [Face::Fixed; 2], [Face::Fixed; 2]];
        assert!(matches!(check_faces(&one, true), Err(Error::Boundary { axis: "X", .. })));
        let odd = [[Face::Fixed; 2], [Face::Fixed, Face::Odd], [Face::Fixed; 2]];
        assert!(matches!(check_faces(&odd, false), Err(Error::Boundary { axis: "Y", .. })));
        assert!(check_faces(&odd, true).is_ok());
    }

    fn check_faces(faces: &Faces, signed: bool) -> Result<()> {
        super::check("u", faces, signed)
    }
}
