//! The memory of the reference device: typed vectors, so that every access is checked.

use std::collections::TryReserveError;

use crate::element::Element;
use crate::kernel::ScalarType;
use crate::layout::{Layout, Region};

/// The cells of one buffer.
#[derive(Debug)]
pub struct Memory {
    pub(super) layout: Layout,
    values: Values,
}

#[derive(Debug)]
enum Values {
    F64(Vec<f64>),
    F32(Vec<f32>),
    Bytes(Vec<u8>),
}

/// A type of cell that the memory can hold.
pub trait Cell: Sized {
    /// The cells, if they have this type.
    fn cells(memory: &Memory) -> Option<&[Self]>;

    /// The cells for writing, if they have this type.
    fn cells_mut(memory: &mut Memory) -> Option<&mut [Self]>;
}

macro_rules! cell {
    ($ty:ident, $name:ident) => {
        impl Cell for $ty {
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
        }
    };
}

cell!(f64, F64);
cell!(f32, F32);

impl Memory {
    /// Zeros, if there is room for them.
    pub(super) fn new(layout: Layout) -> Result<Self, TryReserveError> {
        let count = layout.bytes / layout.ty.bytes();
        let values = match layout.ty {
            ScalarType::F64 => Values::F64(zeros(count)?),
            ScalarType::F32 => Values::F32(zeros(count)?),
            ScalarType::Bool => Values::Bytes(zeros(count)?),
        };
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
        match &mut self.values {
            Values::F64(cells) => put(cells, region, data),
            Values::F32(cells) => put(cells, region, data),
            Values::Bytes(cells) => {
                for (start, row) in region.row_starts().zip(data.chunks_exact(region.row_bytes.max(1))) {
                    cells[start..start + row.len()].copy_from_slice(row);
                }
            }
        }
    }

    /// The rows of a region that the memory holds, without gaps.
    pub(super) fn get(&self, region: &Region) -> Vec<u8> {
        match &self.values {
            Values::F64(cells) => get(cells, region),
            Values::F32(cells) => get(cells, region),
            Values::Bytes(cells) => {
                region.row_starts().flat_map(|start| &cells[start..start + region.row_bytes]).copied().collect()
            }
        }
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
