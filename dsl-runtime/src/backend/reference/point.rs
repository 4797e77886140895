//! What a kernel's function sees on the reference device: the point being updated, its fields and its scalars.

use std::any::type_name;
use std::ops::Index;

use super::memory::Memory;
use crate::element::{Element, Primitive};
use crate::kernel::{Role, ScalarType};
use crate::offset::Offset;
use crate::reduction::{Accumulator, Largest, Least, Max, Min, Sum, Summed, Words};
use crate::source::Point;

/// A field as seen from one point. A field that doesn't extend along every axis is the same everywhere along the others.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    memory: &'a Memory,
    cells: &'a [T],
    /// The cell that belongs to the point.
    local: [i64; 3],
    index: isize,
    steps: [isize; 3],
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
            assert!(self.memory.layout.index(cell).is_some(), "the read at {offset:?} leaves the field");
        }
        let along = x as isize * self.steps[0] + y as isize * self.steps[1] + z as isize * self.steps[2];
        &self.cells[(self.index + along) as usize]
    }
}

/// A result that is folded over the points of a row.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) role: Role,
    pub(super) ty: ScalarType,
    pub(super) words: Box<dyn Words>,
}

/// The arguments of a kernel at one point.
#[derive(Debug)]
pub struct PointArgs<'a> {
    /// The memory of all results and fields, each once.
    pub(super) memories: &'a mut [Memory],
    /// Of each field the number of its memory.
    pub(super) fields: &'a [usize],
    /// Of each result the number of its memory.
    pub(super) outputs: &'a [usize],
    /// Of each result what folds it, if it is folded.
    pub(super) folded: &'a mut [Option<Folded>],
    pub(super) scalars: &'a [u64],
    pub(super) global: [i32; 3],
    pub(super) local: [i64; 3],
    /// From the point to where fields are read.
    pub(super) shift: [i64; 3],
}

impl PointArgs<'_> {
    /// Field parameter number `number`.
    ///
    /// # Panics
    /// When there is no such parameter or it has another type; the device turns this into an error.
    pub fn field<T: Element>(&self, number: usize) -> View<'_, T> {
        let memory = &self.memories[self.fields[number]];
        let cells = T::cells(memory).unwrap_or_else(|| panic!("field {number} isn't of type {}", type_name::<T>()));
        let local = std::array::from_fn(|axis| self.local[axis] + self.shift[axis]);
        let layout = &memory.layout;
        let steps = layout.strides.steps(layout.axes).map(|step| step as isize);
        View { memory, cells, local, index: layout.shifted_origin(local) as isize, steps }
    }

    /// Scalar parameter number `number`.
    ///
    /// # Panics
    /// When there is no such parameter; the device turns this into an error.
    pub fn scalar<T: Primitive>(&self, number: usize) -> T {
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
        assert!(self.folded[number].is_none(), "result {number} isn't a value");
        let memory = &mut self.memories[self.outputs[number]];
        let index = memory.layout.shifted_origin(self.local);
        let cells =
            T::cells_mut(memory).unwrap_or_else(|| panic!("result {number} isn't of type {}", type_name::<T>()));
        cells[index] = value;
    }

    fn fold_one<T: Element>(&mut self, number: usize, role: Role, value: T) {
        match &mut self.folded[number] {
            Some(folded) if folded.role == role && folded.ty == T::TYPE => {
                folded.words.add(self.local[0], value.to_word());
            }
            _ => panic!("result {number} isn't folded as a {role:?} of {}", type_name::<T>()),
        }
    }
}

/// The global indices of a cell, from those of local cell (0, 0, 0).
pub(super) fn global(origin: [i32; 3], local: [i64; 3]) -> [i32; 3] {
    // Wraps as kernels do; no cell of a grid does.
    std::array::from_fn(|axis| origin[axis].wrapping_add(local[axis] as i32))
}

/// What a kernel's function gives: a value, a value to be folded ([`Sum`], [`Max`], [`Min`]), or a tuple or an array of
/// such.
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

macro_rules! folded {
    ($name:ident: $($bound:tt)+) => {
        impl<T: Element> Results for $name<T>
        where
            $($bound)+
        {
            const COUNT: usize = 1;

            fn store(self, at: &mut PointArgs<'_>, first: usize) {
                at.fold_one(first, Role::$name, self.0);
            }
        }
    };
}

impl<T: Element + Summed> Results for Sum<T> {
    const COUNT: usize = T::PARTS;

    fn store(self, at: &mut PointArgs<'_>, first: usize) {
        let parts = self.0.parts();
        (0..T::PARTS).for_each(|number| at.fold_one(first + number, Role::Sum, parts[number]));
    }
}

folded!(Max: Largest<T>: Accumulator<T>);
folded!(Min: Least<T>: Accumulator<T>);

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
