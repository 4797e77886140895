//! What a kernel's function sees on the reference device: the point being updated, its fields and its scalars.

use std::any::type_name;
use std::ops::Index;

use super::memory::Memory;
use crate::element::{Element, Scalar};
use crate::layout::Strides;
use crate::offset::Offset;
use crate::source::Point;

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
    pub(super) global: [i32; 3],
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

    /// The point by its global indices.
    pub fn point(&self) -> Point {
        let [i, j, k] = global(self.global, self.local);
        Point { i, j, k }
    }

    /// Gives the results of the kernel from number `first` on their values at this point.
    ///
    /// # Panics
    /// When there is no such result or it has another type; the device turns this into an error.
    pub fn store(&mut self, first: usize, values: impl Results) {
        values.store(self, first);
    }

    fn store_one<T: Element>(&mut self, number: usize, value: T) {
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

/// The global indices of a cell, from those of local cell (0, 0, 0).
pub(super) fn global(origin: [i32; 3], local: [i64; 3]) -> [i32; 3] {
    // Wraps as kernels do; no cell of a grid does.
    std::array::from_fn(|axis| origin[axis].wrapping_add(local[axis] as i32))
}

/// What a kernel's function gives: a value, or a tuple or an array of such.
pub trait Results {
    /// How many values that is.
    const COUNT: usize;

    /// Stores the values from number `first` on.
    fn store(self, at: &mut PointArgs<'_>, first: usize);
}

impl<T: Element> Results for T {
    const COUNT: usize = 1;

    fn store(self, at: &mut PointArgs<'_>, first: usize) {
        at.store_one(first, self);
    }
}

impl<T: Results, const N: usize> Results for [T; N] {
    const COUNT: usize = N * T::COUNT;

    fn store(self, at: &mut PointArgs<'_>, first: usize) {
        for (number, values) in self.into_iter().enumerate() {
            values.store(at, first + number * T::COUNT);
        }
    }
}

macro_rules! tuple {
    ($($ty:ident $name:ident),+) => {
        impl<$($ty: Results),+> Results for ($($ty,)+) {
            const COUNT: usize = 0 $(+ $ty::COUNT)+;

            fn store(self, at: &mut PointArgs<'_>, mut first: usize) {
                let ($($name,)+) = self;
                $(
                    $name.store(at, first);
                    first += $ty::COUNT;
                )+
                let _ = first;
            }
        }
    };
}

tuple!(A a);
tuple!(A a, B b);
tuple!(A a, B b, C c);
tuple!(A a, B b, C c, D d);
tuple!(A a, B b, C c, D d, E e);
tuple!(A a, B b, C c, D d, E e, F f);
tuple!(A a, B b, C c, D d, E e, F f, G g);
tuple!(A a, B b, C c, D d, E e, F f, G g, H h);
tuple!(A a, B b, C c, D d, E e, F f, G g, H h, I i);
tuple!(A a, B b, C c, D d, E e, F f, G g, H h, I i, J j);
tuple!(A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k);
tuple!(A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l);
