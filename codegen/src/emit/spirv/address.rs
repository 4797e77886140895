//! Where the cells of a point lie.

use rspirv::spirv::{Op, Word};

use super::arguments::Arguments;
use super::module::Module;
use crate::ir::{Axis, Offset};

/// For each buffer the pointer to the cell of the point `at`.
pub(super) fn cells(module: &mut Module, arguments: &Arguments, at: [Word; 3], suffix: &str) -> Vec<Word> {
    let mut cells = Vec::new();
    for (buffer, origin) in arguments.buffers.iter().zip(&arguments.origins) {
        if !buffer.used {
            cells.push(buffer.pointer);
            continue;
        }
        let index = module.index;
        let element = element(module, arguments.inputs.strides, buffer.axes, at);
        let origin = origin.value(module);
        let position = module.value(Op::IAdd, index, &[origin, element]);
        let cell = module.displaced(buffer.ty, buffer.pointer, position);
        module.name(cell, format!("{}_{suffix}", buffer.name));
        cells.push(cell);
    }
    cells
}

/// How far from the subdomain's origin the point lies in a buffer that extends along `axes`: `i + j * sy + k * sz`, and
/// without X `j + k * (sz / sy)`.
fn element(module: &mut Module, strides: [Word; 2], axes: [bool; 3], at: [Word; 3]) -> Word {
    let index = module.index;
    let strides = along(module, strides, axes);
    let mut terms = Vec::new();
    for (at, stride) in at.into_iter().zip(strides) {
        match stride {
            Stride::None => {}
            Stride::One => terms.push(at),
            Stride::Elements(stride) => terms.push(module.value(Op::IMul, index, &[at, stride])),
        }
    }
    let sum = terms.into_iter().reduce(|sum, term| module.value(Op::IAdd, index, &[sum, term]));
    sum.expect("verified: a field extends along an axis at least")
}

/// The distance in elements from a point to the one at `offset`, in a field along `axes`.
pub(super) fn displacement(module: &mut Module, strides: [Word; 2], axes: [bool; 3], offset: Offset) -> Word {
    let index = module.index;
    let mut terms = Vec::new();
    // The constant last: compilers like it so in addresses.
    let strides = along(module, strides, axes);
    for axis in [Axis::Y, Axis::Z, Axis::X] {
        let cells = offset.along(axis);
        match (strides[axis as usize], cells) {
            (_, 0) => {}
            (Stride::None, _) => unreachable!("verified: no offsets along missing axes"),
            (Stride::One, _) => terms.push(module.index_constant(cells.into())),
            (Stride::Elements(stride), 1) => terms.push(stride),
            (Stride::Elements(stride), -1) => terms.push(module.value(Op::SNegate, index, &[stride])),
            (Stride::Elements(stride), _) => {
                let cells = module.index_constant(cells.into());
                terms.push(module.value(Op::IMul, index, &[stride, cells]));
            }
        }
    }
    let sum = terms.into_iter().reduce(|sum, term| module.value(Op::IAdd, index, &[sum, term]));
    let sum = sum.expect("the offset is not HERE");
    module.name(sum, format!("at_{}", word(offset)));
    sum
}

/// The distance in elements of neighbours along an axis.
#[derive(Clone, Copy)]
enum Stride {
    /// There are none.
    None,
    /// They lie side by side.
    One,
    /// As many as this value.
    Elements(Word),
}

/// The strides along X, Y and Z of a buffer that extends along `axes`.
fn along(module: &mut Module, [sy, sz]: [Word; 2], axes: [bool; 3]) -> [Stride; 3] {
    match axes {
        [true, y, z] => {
            let of = |extends, stride| if extends { Stride::Elements(stride) } else { Stride::None };
            // Rows follow each other where there is one for each plane only.
            [Stride::One, of(y, sy), of(z, if y { sz } else { sy })]
        }
        [false, true, true] => {
            // Both are positive, and a plane consists of whole rows.
            let rows = module.value(Op::UDiv, module.index, &[sz, sy]);
            module.name(rows, "rows_of_a_plane");
            [Stride::None, Stride::One, Stride::Elements(rows)]
        }
        [false, true, false] => [Stride::None, Stride::One, Stride::None],
        [false, false, true] => [Stride::None, Stride::None, Stride::One],
        [false, false, false] => [Stride::None; 3],
    }
}

/// `offset` as part of a name: `HERE`, `X`, `mY`, `2X_mZ`.
pub(super) fn word(offset: Offset) -> String {
    offset.to_string().replace(" + ", "_").replace(" - ", "_m").replace('-', "m").replace('*', "")
}
