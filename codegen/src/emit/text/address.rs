//! Where cells lie: a field that doesn't extend along all axes is indexed without the others.

use std::collections::BTreeSet;

use super::walk::used;
use crate::ir::{Axis, ExprKind, Kernel, Role};

/// Along which axes (X, Y, Z) something extends.
pub(crate) type Axes = [bool; 3];

/// The axes of a field that extends along all of them.
pub(crate) const WHOLE: Axes = [true; 3];
/// The axes of what has one value for each row.
pub(crate) const ROWS: Axes = [false, true, true];

/// How far apart two neighbours along an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stride {
    /// One cell.
    Cell,
    /// The cells of a row of a whole field.
    Row,
    /// The cells of a plane of a whole field.
    Plane,
    /// The rows of a plane of a whole field.
    Rows,
}

/// The stride along one of the `axes` of a field.
pub(crate) fn stride(axes: Axes, axis: Axis) -> Stride {
    let [x, y, _] = axes;
    match axis {
        Axis::X => Stride::Cell,
        Axis::Y if x => Stride::Row,
        Axis::Z if x && y => Stride::Plane,
        Axis::Z if x => Stride::Row,
        Axis::Z if y => Stride::Rows,
        Axis::Y | Axis::Z => Stride::Cell,
    }
}

/// The axes in order.
pub(crate) fn along(axes: Axes) -> impl Iterator<Item = Axis> {
    Axis::ALL.into_iter().filter(move |axis| axes[*axis as usize])
}

/// What tells names of these axes from those of whole fields: nothing for these, else `_xy`.
pub(crate) fn suffix(axes: Axes) -> String {
    if axes == WHOLE { String::new() } else { format!("_{}", letters(axes)) }
}

/// `xy`.
pub(crate) fn letters(axes: Axes) -> String {
    along(axes).map(|axis| axis.name().to_lowercase()).collect()
}

/// The axes of all that a kernel reads and writes, each once.
pub(crate) fn addressed(kernel: &Kernel) -> BTreeSet<Axes> {
    let read = used(kernel).into_iter().filter_map(|id| match kernel.exprs[id].kind {
        ExprKind::Load { field, .. } => Some(kernel.fields[field].axes),
        _ => None,
    });
    let written = kernel.outputs.iter().map(|output| match output.role {
        Role::Value => WHOLE,
        Role::Sum | Role::Max | Role::Min => ROWS,
    });
    read.chain(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_leave_missing_axes_out() {
        let check = |axes: Axes, expected: &str, strides: &[Stride]| {
            assert_eq!(suffix(axes), expected);
            assert_eq!(along(axes).map(|axis| stride(axes, axis)).collect::<Vec<_>>(), strides, "{expected}");
        };
        use Stride::{Cell, Plane, Row, Rows};
        check([true, true, true], "", &[Cell, Row, Plane]);
        check([true, true, false], "_xy", &[Cell, Row]);
        check([true, false, true], "_xz", &[Cell, Row]);
        check([false, true, true], "_yz", &[Cell, Rows]);
        check([true, false, false], "_x", &[Cell]);
        check([false, true, false], "_y", &[Cell]);
        check([false, false, true], "_z", &[Cell]);
    }
}
