//! From a launch to the arguments of a kernel.

use super::call::{Called, Kernel, Memory};
use crate::backend::Launch;
use crate::geometry::Box3;
use crate::kernel::{KernelDesc, ScalarType};

/// The integers of a launch, as wide as kernels want them.
pub(super) struct Numbers {
    strides: [i64; 2],
    lo: [i32; 3],
    points: [i32; 3],
    parity: i32,
}

impl Numbers {
    /// The integers, unless one is too wide.
    pub(super) fn new(launch: &Launch<'_>) -> Option<Self> {
        // Kernels hold coordinates and ids in 32 bits, and ids go on to the end of the last group.
        const MOST: i64 = i32::MAX as i64 - 1024;
        let (Box3 { lo, hi }, size) = (launch.range, launch.range.size().map(|points| points as i64));
        let fits = (lo.iter().all(|&lo| lo >= -MOST)) && hi.iter().chain(&size).all(|&n| n <= MOST);
        let strides = [i64::try_from(launch.strides.row).ok()?, i64::try_from(launch.strides.plane).ok()?];
        let parity = launch.parity.map_or(-1, i32::from);
        fits.then(|| Self { strides, lo: lo.map(|lo| lo as i32), points: size.map(|points| points as i32), parity })
    }
}

/// Buffers, their origins, scalars, strides, box, parity, global index: the order that the emitters give the parameters.
pub(super) fn set_arguments(
    function: &Kernel,
    kernel: &KernelDesc,
    launch: &Launch<'_>,
    buffers: &[&Memory],
    numbers: &Numbers,
) -> Called<()> {
    let mut places = 0..;
    let mut next = || places.next().expect("numbers don't end");
    for buffer in buffers {
        function.set_memory(next(), buffer)?;
    }
    for cells in launch.outputs.iter().chain(launch.fields) {
        function.set_number(next(), cells.origin as u64)?;
    }
    for (param, &bits) in kernel.params.iter().zip(launch.scalars) {
        match param.ty {
            ScalarType::F64 | ScalarType::I64 | ScalarType::U64 => function.set_number(next(), bits)?,
            ScalarType::F32 | ScalarType::I32 | ScalarType::U32 => function.set_number(next(), bits as u32)?,
            // Eight bits by value are no business of all drivers.
            ScalarType::I8 => function.set_number(next(), i32::from(bits as i8))?,
            ScalarType::U8 => function.set_number(next(), u32::from(bits as u8))?,
            ScalarType::Bool => function.set_number(next(), u32::from(bits != 0))?,
        }
    }
    for stride in numbers.strides {
        function.set_number(next(), stride)?;
    }
    let global = kernel.uses_index.then_some(launch.global).into_iter().flatten();
    for number in numbers.lo.into_iter().chain(numbers.points).chain([numbers.parity]).chain(global) {
        function.set_number(next(), number)?;
    }
    Ok(())
}
