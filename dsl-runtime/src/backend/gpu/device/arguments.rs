//! From a launch to the arguments of a kernel.

use std::ffi::c_void;

use crate::backend::Launch;
use crate::backend::gpu::driver::Address;
use crate::geometry::Box3;
use crate::kernel::{KernelDesc, ScalarType};
use crate::layout::{Layout, Strides};

/// Kernels hold coordinates and the numbers of threads in 32 bits, and these go on to the end of the last block.
const MOST: i64 = i32::MAX as i64 - 1024;

/// Whether all coordinates of a box have 32 bits.
pub(super) fn fits(range: &Box3) -> bool {
    range.lo.iter().all(|&lo| lo >= -MOST)
        && (0..3).all(|axis| range.hi[axis] <= MOST && range.hi[axis].saturating_sub(range.lo[axis]) <= MOST)
}

/// Whether indices of cells may have 32 bits: those of all cells of the buffers and of what the kernel can reach from them.
pub(super) fn may_be_narrow(kernel: &KernelDesc, strides: Strides, range: &Box3, layouts: &[Layout]) -> bool {
    let most = u128::from(i32::MAX.unsigned_abs());
    let steps = [1, strides.row as u128, strides.plane as u128];
    let halo = |axis: usize| {
        let sides = kernel.fields.iter().flat_map(|field| field.halo()[axis]);
        u128::from(sides.max().unwrap_or(0))
    };
    let reach: u128 = (0..3).map(|axis| halo(axis) * steps[axis]).sum();
    let cells = layouts.iter().map(|layout| (layout.bytes / layout.ty.bytes()) as u128).max().unwrap_or(0);
    // The range lies in the buffers, unless none of them extends along all axes.
    let corner = |axis: usize| u128::from(range.lo[axis].unsigned_abs().max(range.hi[axis].unsigned_abs()));
    let farthest: u128 = (0..3).map(|axis| corner(axis) * steps[axis]).sum();
    cells + 2 * reach <= most && farthest + reach <= most && steps[2] <= most
}

/// The address of local cell (0, 0, 0), which may lie before the buffer: indices lead back into it.
fn address(buffer: Address, origin: usize, ty: ScalarType) -> u64 {
    buffer.0.wrapping_add((origin as u64).wrapping_mul(ty.bytes() as u64))
}

/// The arguments of a kernel, each at the start of a word.
#[derive(Debug)]
pub(super) struct Arguments {
    words: Vec<u64>,
    /// Where those of the box begin: the first point and the number of points.
    part: usize,
}

impl Arguments {
    /// Those of a launch, for its whole range, which [`fits`]: results, fields, scalars, strides, box, parity, global index
    /// is the order that the emitters give the parameters. `buffers` are those of the results and of the fields.
    pub(super) fn new(kernel: &KernelDesc, launch: &Launch<'_>, buffers: impl IntoIterator<Item = Address>) -> Self {
        let mut words = Vec::with_capacity(launch.outputs.len() + launch.fields.len() + launch.scalars.len() + 12);
        let outputs = launch.outputs.iter().zip(kernel.outputs.iter().map(|output| output.stored()));
        let fields = launch.fields.iter().zip(kernel.fields.iter().map(|field| field.ty));
        words.extend(outputs.chain(fields).zip(buffers).map(|((cells, ty), buffer)| address(buffer, cells.origin, ty)));
        words.extend(kernel.params.iter().zip(launch.scalars).map(|(param, &bits)| scalar(param.ty, bits)));
        words.extend([launch.strides.row as u64, launch.strides.plane as u64]);
        let part = words.len();
        words.extend([0; 6]);
        words.push(word(launch.parity.map_or(-1, i32::from)));
        words.extend(launch.global.iter().filter(|_| kernel.uses_index).map(|&index| word(index)));
        let mut arguments = Self { words, part };
        arguments.set(&launch.range);
        arguments
    }

    /// The same for a part of the range.
    pub(super) fn set(&mut self, part: &Box3) {
        let numbers = part.lo.into_iter().chain(part.size().map(|points| points as i64));
        for (place, number) in self.words[self.part..].iter_mut().zip(numbers) {
            *place = word(number as i32);
        }
    }

    /// Pointers to them, in the form that drivers want.
    pub(super) fn pointers(&mut self) -> Vec<*mut c_void> {
        self.words.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect()
    }
}

/// A number of 32 bits in the first bytes of a word.
fn word(number: i32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&number.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// A scalar as a kernel takes it: those of 8 bits and truth values have 32.
fn scalar(ty: ScalarType, bits: u64) -> u64 {
    match ty {
        ScalarType::F64 | ScalarType::I64 | ScalarType::U64 => bits,
        ScalarType::F32 | ScalarType::I32 | ScalarType::U32 => word(bits as i32),
        ScalarType::I8 => word(i32::from(bits as i8)),
        ScalarType::U8 => word(i32::from(bits as u8)),
        ScalarType::Bool => word(i32::from(bits != 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BufferId, Cells, KernelId};
    use crate::layout::WHOLE;
    use crate::testing::HEAT;

    fn cube(cells: i64) -> Box3 {
        Box3 { lo: [0; 3], hi: [cells; 3] }
    }

    #[test]
    fn coordinates_have_31_bits_and_room_for_a_block() {
        let along = |lo, hi| Box3 { lo: [0, lo, 0], hi: [1, hi, 1] };
        for (range, expected) in [
            (cube(5), true),
            (along(-MOST, 0), true),
            (along(-MOST - 1, 0), false),
            (along(MOST - 5, MOST), true),
            (along(MOST - 5, MOST + 1), false),
            (along(-MOST, MOST), false),
            (along(i64::MIN, i64::MAX), false),
        ] {
            assert_eq!(fits(&range), expected, "{range}");
        }
    }

    #[test]
    fn indices_are_narrow_while_all_that_is_reached_has_31_bits() {
        let check = |cells: [usize; 3], expected: bool| {
            let strides = Strides::for_cells(cells, 8).unwrap();
            let range = Box3 { lo: [0; 3], hi: cells.map(|cells| cells as i64) };
            let layout = Layout::new(ScalarType::F64, WHOLE, range, strides).unwrap();
            assert_eq!(may_be_narrow(&HEAT, strides, &range, &[layout; 4]), expected, "{cells:?}");
        };
        check([8, 8, 8], true);
        check([1000, 1000, 2000], true);
        check([1000, 1000, 2200], false);
        // The buffer's cells have 31 bits, and a cell beyond the last one hasn't.
        let row = 1 << 15;
        let strides = Strides { row, plane: row * row };
        let range = Box3 { lo: [0; 3], hi: [row as i64, row as i64, 1] };
        let layout = Layout::new(ScalarType::F64, WHOLE, range, strides).unwrap();
        assert!(layout.bytes / 8 < i32::MAX as usize);
        assert!(!may_be_narrow(&HEAT, strides, &range, &[layout]));
    }

    #[test]
    fn addresses_before_the_buffer_wrap_and_lead_back() {
        let layout = Layout::new(ScalarType::F32, WHOLE, cube(4), Strides { row: 16, plane: 80 }).unwrap();
        let origin = layout.shifted_origin([0, 0, -4]);
        assert!(origin > usize::MAX / 2);
        let first = address(Address(0x1000), origin, ScalarType::F32);
        assert_eq!(first, 0x1000 - 4 * 80 * 4);
        assert_eq!(first.wrapping_add(4 * 4 * 80), 0x1000);
        assert_eq!(address(Address(64), usize::MAX, ScalarType::F64), 56);
    }

    #[test]
    fn scalars_of_8_bits_travel_as_32() {
        let low = |word: u64| i32::from_ne_bytes(*word.to_ne_bytes().first_chunk().unwrap());
        for (ty, bits, expected) in [
            (ScalarType::I8, 0xfe, -2),
            (ScalarType::I8, 0xffff_ff7f, 127),
            (ScalarType::U8, 0xfe, 254),
            (ScalarType::U8, 0x1ff, 255),
            (ScalarType::Bool, 0, 0),
            (ScalarType::Bool, 0x100, 1),
            (ScalarType::I32, 0xffff_ffff, -1),
            (ScalarType::F32, u64::from(1.5_f32.to_bits()), 1.5_f32.to_bits() as i32),
        ] {
            assert_eq!(low(scalar(ty, bits)), expected, "{ty} {bits:x}");
        }
        assert_eq!(scalar(ScalarType::F64, 1.5_f64.to_bits()), 1.5_f64.to_bits());
    }

    #[test]
    fn arguments_stand_in_the_order_of_the_parameters() {
        let strides = Strides { row: 16, plane: 80 };
        let check = |kernel: &KernelDesc, buffers: usize, parity: Option<u8>, tail: &[i32]| {
            let cells: Vec<_> = (1..).take(buffers).map(|origin| Cells { buffer: BufferId(1), origin }).collect();
            let (outputs, fields) = cells.split_at(kernel.outputs.len());
            let scalars: Vec<_> = (100..).take(kernel.params.len()).collect();
            let launch = Launch {
                kernel: KernelId(0),
                outputs,
                fields,
                shift: [0; 3],
                scalars: &scalars,
                strides,
                global: [7, 8, 9],
                range: Box3 { lo: [-1, 2, 3], hi: [4, 6, 9] },
                parity,
            };
            let addresses = (1..).take(buffers).map(|number| Address(0x1000 * number));
            let mut arguments = Arguments::new(kernel, &launch, addresses);
            let numbers = |arguments: &Arguments| {
                let words = &arguments.words[arguments.part..];
                words.iter().map(|word| *word as u32 as i32).collect::<Vec<_>>()
            };
            assert_eq!(arguments.words[0], 0x1000 + kernel.outputs[0].stored().bytes() as u64);
            assert_eq!(arguments.words[arguments.part - 2..arguments.part], [16, 80]);
            assert_eq!(arguments.part, buffers + kernel.params.len() + 2);
            assert_eq!(numbers(&arguments), [&[-1, 2, 3, 5, 4, 6], tail].concat());
            arguments.set(&Box3 { lo: [0, 2, 3], hi: [4, 3, 9] });
            assert_eq!(numbers(&arguments), [&[0, 2, 3, 4, 1, 6], tail].concat());
            assert_eq!(arguments.pointers().len(), arguments.words.len());
        };
        check(&HEAT, 4, None, &[-1]);
        check(&HEAT, 4, Some(1), &[1]);
        static PLACED: KernelDesc = KernelDesc { uses_index: true, ..HEAT };
        check(&PLACED, 4, Some(0), &[0, 7, 8, 9]);
    }
}
