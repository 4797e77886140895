//! What a kernel's function sees on the reference device: the point being updated, its fields and its scalars.

use std::any::type_name;
use std::ops::Index;

use super::memory::Memory;
use crate::element::{Element, Scalar};
use crate::layout::Strides;
use crate::offset::Offset;

/// A field as seen from one point.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    memory: &'a Memory,
    cells: &'a [T],
    local: [i64; 3],
    index: isize,
    strides: Strides,
}

impl<T> Index<Offset> for View<'_, T> {
    type Output = T;

    /// The cell at a displacement.
    ///
    /// # Panics
    /// When the cell isn't stored, which means that the footprint in the descriptor is too small; the device turns
    /// this into an error.
    fn index(&self, offset: Offset) -> &T {
        let Offset { x, y, z } = offset;
        if cfg!(debug_assertions) {
            let cell = [self.local[0] + i64::from(x), self.local[1] + i64::from(y), self.local[2] + i64::from(z)];
            assert!(self.memory.layout.cells.holds(cell), "the read at {offset:?} leaves the field");
        }
        let along = x as isize + y as isize * self.strides.row as isize + z as isize * self.strides.plane as isize;
        &self.cells[(self.index + along) as usize]
    }
}

/// The arguments of a kernel at one point.
#[derive(Debug)]
pub struct PointArgs<'a> {
    pub(super) fields: &'a [(&'a Memory, usize)],
    pub(super) outputs: &'a mut [(Memory, usize)],
    pub(super) scalars: &'a [u64],
    pub(super) strides: Strides,
    pub(super) local: [i64; 3],
}

impl PointArgs<'_> {
    /// Field parameter number `number`.
    ///
    /// # Panics
    /// When there is no such parameter or it has another type; the device turns this into an error.
    pub fn field<T: Element>(&self, number: usize) -> View<'_, T> {
        let (memory, origin) = self.fields[number];
        let cells = T::cells(memory).unwrap_or_else(|| panic!("field {number} isn't of type {}", type_name::<T>()));
        View { memory, cells, local: self.local, index: origin as isize + self.along(), strides: self.strides }
    }

    /// Scalar parameter number `number`.
    ///
    /// # Panics
    /// When there is no such parameter; the device turns this into an error.
    pub fn scalar<T: Scalar>(&self, number: usize) -> T {
        T::from_word(self.scalars[number])
    }

    /// Gives result number `number` of the kernel its value at this point.
    ///
    /// # Panics
    /// When there is no such result or it has another type; the device turns this into an error.
    pub fn store<T: Element>(&mut self, number: usize, value: T) {
        let along = self.along();
        let (memory, origin) = &mut self.outputs[number];
        let index = *origin as isize + along;
        let cells =
            T::cells_mut(memory).unwrap_or_else(|| panic!("result {number} isn't of type {}", type_name::<T>()));
        cells[index as usize] = value;
    }

    /// From local cell (0, 0, 0) to the point, in cells.
    fn along(&self) -> isize {
        let [x, y, z] = self.local.map(|cell| cell as isize);
        x + y * self.strides.row as isize + z * self.strides.plane as isize
    }
}
