//! Folds of values that are known by their bits: rows on the reference device, and rows into planes into the result.

use std::fmt;
use std::marker::PhantomData;

use super::{Accumulator, Largest, Least, Summed, Total};
use crate::element::Primitive;
use crate::kernel::{Role, ScalarType};

/// An accumulator of values that are known by their bits.
pub trait Words: fmt::Debug {
    /// Forgets all values.
    fn restart(&mut self);

    /// Folds in the value with these low bits at index `x` along the axis that is folded.
    fn add(&mut self, x: i64, word: u64);

    /// The bits of what is stored for the row.
    fn row(&self) -> u64;
}

#[derive(Debug)]
struct Typed<A, T>(A, PhantomData<T>);

impl<T: Primitive, A: Accumulator<T, Row: Primitive> + fmt::Debug> Words for Typed<A, T> {
    fn restart(&mut self) {
        self.0 = A::new();
    }

    fn add(&mut self, x: i64, word: u64) {
        self.0.add(x as isize, T::from_word(word));
    }

    fn row(&self) -> u64 {
        self.0.row().to_word()
    }
}

fn typed<T: Primitive, A: Accumulator<T, Row: Primitive> + fmt::Debug + 'static>() -> Option<Box<dyn Words>> {
    Some(Box::new(Typed(A::new(), PhantomData::<T>)))
}

fn typed_for<T: Primitive + Summed<Sum: Accumulator<T, Row: Primitive> + fmt::Debug + 'static>>(
    role: Role,
) -> Option<Box<dyn Words>>
where
    Largest<T>: Accumulator<T, Row = T>,
    Least<T>: Accumulator<T, Row = T>,
{
    match role {
        Role::Value => None,
        Role::Sum => typed::<T, Total<T>>(),
        Role::Max => typed::<T, Largest<T>>(),
        Role::Min => typed::<T, Least<T>>(),
    }
}

/// What folds values of type `ty`; `None` for what isn't folded: values of points, and `bool`.
pub fn words(role: Role, ty: ScalarType) -> Option<Box<dyn Words>> {
    match ty {
        ScalarType::F64 => typed_for::<f64>(role),
        ScalarType::F32 => typed_for::<f32>(role),
        ScalarType::I64 => typed_for::<i64>(role),
        ScalarType::I32 => typed_for::<i32>(role),
        ScalarType::I8 => typed_for::<i8>(role),
        ScalarType::U64 => typed_for::<u64>(role),
        ScalarType::U32 => typed_for::<u32>(role),
        ScalarType::U8 => typed_for::<u8>(role),
        ScalarType::Bool => None,
    }
}

/// A sum of integers that its type can't hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sum is {total}, which {ty} can't hold")]
pub struct Overflow {
    /// The type of the result.
    pub ty: ScalarType,
    /// The sum of the rows.
    pub total: i128,
}

/// Folds what a kernel stored for its rows into planes and planes into the result.
#[derive(Debug)]
pub struct Fold {
    role: Role,
    ty: ScalarType,
    so_far: SoFar,
}

#[derive(Debug)]
enum SoFar {
    /// The sum of integers, and by how many bits the rows that come are too small.
    Total(i128, u32),
    /// What folds a plane, and what folds the planes.
    Planes(Box<dyn Words>, Box<dyn Words>),
}

impl Fold {
    /// The fold of no values into a result of type `ty`.
    ///
    /// # Panics
    /// For what isn't folded: [`Role::Value`], and `bool`.
    pub fn new(role: Role, ty: ScalarType) -> Self {
        let row_type = role.stored(ty);
        let so_far = if role == Role::Sum && row_type != ScalarType::F64 {
            SoFar::Total(0, 0)
        } else {
            let accumulator = || words(role, row_type).expect("values of points and of type bool aren't folded");
            SoFar::Planes(accumulator(), accumulator())
        };
        Self { role, ty, so_far }
    }

    /// Says that the rows that come next are of part `number` of [`Role::parts`], counted on over several boxes.
    pub fn part(&mut self, number: usize) {
        if let SoFar::Total(_, shift) = &mut self.so_far {
            *shift = if number.is_multiple_of(self.role.parts(self.ty)) { 0 } else { 32 };
        }
    }

    /// Folds in rows as they lie in memory: of type [`Role::stored`], planes one after the other, each with `rows`
    /// values. `first` is the index along Y and Z of the first of them, relative to the first cell of the grid: sums of
    /// floats depend on it as those of a row depend on the index along X.
    pub fn add(&mut self, stored: &[u8], rows: usize, first: [i64; 2]) {
        let row_type = self.role.stored(self.ty);
        let bytes = row_type.bytes();
        match &mut self.so_far {
            SoFar::Total(total, shift) => {
                let signed = row_type == ScalarType::I64;
                let values = stored.chunks_exact(bytes).map(word);
                let rows = values.map(|word| if signed { i128::from(word as i64) } else { i128::from(word) });
                *total += rows.sum::<i128>() << *shift;
            }
            SoFar::Planes(plane, result) => {
                for (z, values) in stored.chunks_exact((rows * bytes).max(bytes)).enumerate() {
                    plane.restart();
                    for (y, value) in values.chunks_exact(bytes).enumerate() {
                        plane.add(first[0] + y as i64, word(value));
                    }
                    result.add(first[1] + z as i64, plane.row());
                }
            }
        }
    }

    /// The bits of the result.
    pub fn result(&self) -> Result<u64, Overflow> {
        let row = match &self.so_far {
            SoFar::Total(total, _) => return fitting(self.ty, *total),
            SoFar::Planes(_, result) => result.row(),
        };
        Ok(match (self.role, self.ty) {
            (Role::Sum, ScalarType::F32) => plain_f32(f64::from_word(row) as f32),
            (_, ScalarType::F32) => plain_f32(f32::from_word(row)),
            (_, ScalarType::F64) => plain_f64(f64::from_word(row)),
            _ => row,
        })
    }
}

/// The bits of the result of type `ty`, from all rows of one box; see [`Fold::add`].
pub fn fold(role: Role, ty: ScalarType, stored: &[u8], rows: usize, first: [i64; 2]) -> Result<u64, Overflow> {
    let mut fold = Fold::new(role, ty);
    fold.add(stored, rows, first);
    fold.result()
}

/// The value in the bytes of a buffer.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    if cfg!(target_endian = "little") {
        word[..bytes.len()].copy_from_slice(bytes);
    } else {
        word[8 - bytes.len()..].copy_from_slice(bytes);
    }
    u64::from_ne_bytes(word)
}

/// Every not-a-number is the same one.
fn plain_f64(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_word() } else { value.to_word() }
}

fn plain_f32(value: f32) -> u64 {
    if value.is_nan() { f32::NAN.to_word() } else { value.to_word() }
}

/// A sum as the bits of a value of type `ty`.
fn fitting(ty: ScalarType, total: i128) -> Result<u64, Overflow> {
    let (least, most): (i128, i128) = match ty {
        ScalarType::I64 => (i64::MIN.into(), i64::MAX.into()),
        ScalarType::I32 => (i32::MIN.into(), i32::MAX.into()),
        ScalarType::I8 => (i8::MIN.into(), i8::MAX.into()),
        ScalarType::U64 => (0, u64::MAX.into()),
        ScalarType::U32 => (0, u32::MAX.into()),
        ScalarType::U8 => (0, u8::MAX.into()),
        ScalarType::F64 | ScalarType::F32 | ScalarType::Bool => panic!("{ty} isn't added up as an integer"),
    };
    if (least..=most).contains(&total) {
        let bits = 8 * ty.bytes();
        Ok(total as u64 & (u64::MAX >> (64 - bits)))
    } else {
        Err(Overflow { ty, total })
    }
}
