//! From a launch to the arguments of a kernel.

use super::call::{Called, Kernel, Memory};
use crate::backend::{Cells, Launch};
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

/// The origins of a launch as a kernel wants them.
#[derive(Debug, PartialEq)]
pub(super) enum Origins {
    /// An argument each.
    Whole(Vec<i64>),
    /// Two in an argument; the last one is filled up with a 0.
    Paired(Vec<[i32; 2]>),
}

impl Origins {
    /// The origins of the results and fields, or which one is too far from the start of its buffer.
    pub(super) fn new(kernel: &KernelDesc, launch: &Launch<'_>) -> Result<Self, String> {
        let all = || launch.outputs.iter().chain(launch.fields).map(|&Cells { origin, .. }| origin as i64);
        if !kernel.code.paired_origins {
            return Ok(Origins::Whole(all().collect()));
        }
        let mut pairs = vec![[0; 2]; all().count().div_ceil(2)];
        for (number, origin) in all().enumerate() {
            pairs[number / 2][number % 2] = i32::try_from(origin).map_err(|_| {
                let what = match number.checked_sub(launch.outputs.len()) {
                    Some(field) => format!("field `{}`", kernel.fields[field].name),
                    None => format!("result {number}"),
                };
                format!(
                    "it takes so many fields that it gets their origins in 32 bits, and that of {what} is cell {origin} \
                     of its buffer; fewer fields or a smaller grid would work"
                )
            })?;
        }
        Ok(Origins::Paired(pairs))
    }
}

/// Buffers, their origins, scalars, strides, box, parity, global index: the order that the emitters give the parameters.
pub(super) fn set_arguments(
    function: &Kernel,
    kernel: &KernelDesc,
    launch: &Launch<'_>,
    buffers: &[&Memory],
    origins: &Origins,
    numbers: &Numbers,
) -> Called<()> {
    let mut places = 0..;
    let mut next = || places.next().expect("numbers don't end");
    for buffer in buffers {
        function.set_memory(next(), buffer)?;
    }
    match origins {
        Origins::Whole(origins) => origins.iter().try_for_each(|&origin| function.set_number(next(), origin))?,
        Origins::Paired(pairs) => pairs.iter().try_for_each(|&pair| function.set_number(next(), pair))?,
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
