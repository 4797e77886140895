//! The memory of the reference device: typed vectors, so that every access is checked.

use std::collections::TryReserveError;

use crate::element::{Element, Primitive};
use crate::kernel::ScalarType;
use crate::layout::{Layout, Region};

/// The cells of one buffer.
#[derive(Debug)]
pub struct Memory {
    pub(super) layout: Layout,
    values: Values,
}

/// A type of cell that the memory can hold.
pub trait Cell: Sized {
    /// The cells, if they have this type.
    fn cells(memory: &Memory) -> Option<&[Self]>;

    /// The cells for writing, if they have this type.
    fn cells_mut(memory: &mut Memory) -> Option<&mut [Self]>;
}

/// Defines `Values`, a vector of any type of cell, and what depends on its variants.
macro_rules! values {
    ($($ty:ident $name:ident),+) => {
        #[derive(Debug)]
        enum Values {
            $($name(Vec<$ty>)),+
        }

        impl Values {
            fn zeros(ty: ScalarType, count: usize) -> Result<Self, TryReserveError> {
                Ok(match ty {
                    $(ScalarType::$name => Self::$name(zeros(count)?)),+
                })
            }

            fn put(&mut self, region: &Region, data: &[u8]) {
                match self {
                    $(Self::$name(cells) => put(cells, region, data)),+
                }
            }

            fn get(&self, region: &Region) -> Vec<u8> {
                match self {
                    $(Self::$name(cells) => get(cells, region)),+
                }
            }

            fn set(&mut self, index: usize, word: u64) {
                match self {
                    $(Self::$name(cells) => cells[index] = <$ty>::from_word(word)),+
                }
            }
        }

        $(impl Cell for $ty {
            fn cells(memory: &Memory) -> Option<&[Self]> {
                match &memory.values {
                    Values::$name(cells) => Some(cells),
                    _ => None,
                }
            }

            fn cells_mut(memory: &mut Memory) -> Option<&mut [Self]> {
                match &mut memory.values {
                    Values::$name(cells) => Some(cells),
                    _ => None,
                }
            }
        })+
    };
}

values!(f64 F64, f32 F32, i64 I64, i32 I32, i8 I8, u64 U64, u32 U32, u8 U8, bool Bool);

impl Memory {
    /// Zeros, if there is room for them.
    pub(super) fn new(layout: Layout) -> Result<Self, TryReserveError> {
        let values = Values::zeros(layout.ty, layout.bytes / layout.ty.bytes())?;
        Ok(Self { layout, values })
    }

    /// Whether the rows of `region` lie in the buffer and consist of whole cells.
    pub(super) fn holds(&self, region: &Region) -> bool {
        let cell = self.layout.ty.bytes();
        let whole = |bytes: usize| bytes.is_multiple_of(cell);
        let Region { offset, row_bytes, row_pitch, plane_pitch, .. } = *region;
        whole(offset) && whole(row_bytes) && whole(row_pitch) && whole(plane_pitch) && region.end() <= self.layout.bytes
    }

    /// Replaces the rows of a region that the memory holds.
    pub(super) fn put(&mut self, region: &Region, data: &[u8]) {
        self.values.put(region, data);
    }

    /// The rows of a region that the memory holds, without gaps.
    pub(super) fn get(&self, region: &Region) -> Vec<u8> {
        self.values.get(region)
    }

    /// Gives a cell the value with these bits.
    pub(super) fn set(&mut self, index: usize, word: u64) {
        self.values.set(index, word);
    }
}

fn zeros<T: Copy + Default>(count: usize) -> Result<Vec<T>, TryReserveError> {
    let mut cells = Vec::new();
    cells.try_reserve_exact(count)?;
    cells.resize(count, T::default());
    Ok(cells)
}

fn put<T: Element>(cells: &mut [T], region: &Region, data: &[u8]) {
    let bytes = size_of::<T>();
    for (start, row) in region.row_starts().zip(data.chunks_exact(region.row_bytes.max(1))) {
        let to = &mut cells[start / bytes..(start + row.len()) / bytes];
        for (cell, value) in to.iter_mut().zip(row.chunks_exact(bytes)) {
            *cell = T::from_slice(value);
        }
    }
}

fn get<T: Element>(cells: &[T], region: &Region) -> Vec<u8> {
    let bytes = size_of::<T>();
    let mut data = Vec::with_capacity(region.bytes());
    for start in region.row_starts() {
        for &cell in &cells[start / bytes..(start + region.row_bytes) / bytes] {
            cell.append(&mut data);
        }
    }
    data
}
