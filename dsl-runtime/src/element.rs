//! The Rust types of cells and scalars.

use std::fmt;

use ndarray_npy::{ReadableElement, WritableElement};

use crate::backend::reference::Cell;
use crate::kernel::ScalarType;

mod sealed {
    pub trait Sealed {}
}

/// A type that a scalar of a kernel can have: a float, an integer or `bool`.
#[diagnostic::on_unimplemented(
    message = "fields and scalars can't hold `{Self}`",
    label = "no type of a field or scalar",
    note = "fields and scalars hold `f64`, `f32`, `i64`, `i32`, `i8`, `u64`, `u32`, `u8` or `bool`"
)]
pub trait Primitive: sealed::Sealed + Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The type as data.
    const TYPE: ScalarType;

    /// The bits of the value in the low bytes.
    fn to_word(self) -> u64;

    /// The value with these low bits; for a `bool` any bit says yes.
    fn from_word(word: u64) -> Self;
}

/// A type that the cells of a field can have: `f64`, `f32`, `i64`, `i32`, `i8`, `u64`, `u32`, `u8` or `bool`.
#[diagnostic::on_unimplemented(
    message = "fields and scalars can't hold `{Self}`",
    label = "no type of a field or scalar",
    note = "fields and scalars hold `f64`, `f32`, `i64`, `i32`, `i8`, `u64`, `u32`, `u8` or `bool`"
)]
pub trait Element: Primitive + Cell + PartialOrd + fmt::Display + Default + ReadableElement + WritableElement {
    /// The value for people, short and exact.
    fn show(self) -> String;

    /// Whether it is a number that has a place on a scale.
    fn is_finite(self) -> bool;

    /// Where the value lies on a scale from `low` (0) to `high` (1); not a number when there is no telling.
    fn between(self, low: Self, high: Self) -> f64;

    /// The value of this type nearest to a number, for a type of numbers that can be weighted: integers have only whole
    /// weights.
    fn rounded(value: f64) -> Option<Self>;

    /// The bytes of the value, as this machine stores them, appended to `bytes`.
    fn append(self, bytes: &mut Vec<u8>);

    /// The value with these bytes; `bytes` has as many as the type.
    fn from_slice(bytes: &[u8]) -> Self;
}

macro_rules! bytes {
    () => {
        fn append(self, bytes: &mut Vec<u8>) {
            bytes.extend_from_slice(&self.to_ne_bytes());
        }

        fn from_slice(bytes: &[u8]) -> Self {
            let mut value = [0; size_of::<Self>()];
            value.copy_from_slice(bytes);
            Self::from_ne_bytes(value)
        }
    };
}

macro_rules! float {
    ($ty:ident, $name:ident, $bits:ident) => {
        impl sealed::Sealed for $ty {}

        #[diagnostic::do_not_recommend]
        impl Primitive for $ty {
            const TYPE: ScalarType = ScalarType::$name;

            fn to_word(self) -> u64 {
                self.to_bits().into()
            }

            fn from_word(word: u64) -> Self {
                Self::from_bits(word as $bits)
            }
        }

        #[diagnostic::do_not_recommend]
        impl Element for $ty {
            fn show(self) -> String {
                format!("{self:e}")
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }

            fn between(self, low: Self, high: Self) -> f64 {
                // Halves, because the distance of the largest values is infinite.
                let [value, low, high] = [self, low, high].map(|value| f64::from(value) / 2.0);
                (value - low) / (high - low)
            }

            fn rounded(value: f64) -> Option<Self> {
                Some(value as Self)
            }

            bytes!();
        }
    };
}

macro_rules! integer {
    ($ty:ident, $name:ident, $unsigned:ident) => {
        impl sealed::Sealed for $ty {}

        #[diagnostic::do_not_recommend]
        impl Primitive for $ty {
            const TYPE: ScalarType = ScalarType::$name;

            fn to_word(self) -> u64 {
                // Without copies of the sign.
                u64::from(self as $unsigned)
            }

            fn from_word(word: u64) -> Self {
                word as Self
            }
        }

        #[diagnostic::do_not_recommend]
        impl Element for $ty {
            fn show(self) -> String {
                self.to_string()
            }

            fn is_finite(self) -> bool {
                true
            }

            fn between(self, low: Self, high: Self) -> f64 {
                // Differences first: neighbouring large integers are the same float.
                let [value, low, high] = [self, low, high].map(i128::from);
                (value - low) as f64 / (high - low) as f64
            }

            fn rounded(value: f64) -> Option<Self> {
                (value as Self as f64 == value).then_some(value as Self)
            }

            bytes!();
        }
    };
}

float!(f64, F64, u64);
float!(f32, F32, u32);
integer!(i64, I64, u64);
integer!(i32, I32, u32);
integer!(i8, I8, u8);
integer!(u64, U64, u64);
integer!(u32, U32, u32);
integer!(u8, U8, u8);

impl sealed::Sealed for bool {}

#[diagnostic::do_not_recommend]
impl Primitive for bool {
    const TYPE: ScalarType = ScalarType::Bool;

    fn to_word(self) -> u64 {
        u64::from(self)
    }

    fn from_word(word: u64) -> Self {
        word != 0
    }
}

#[diagnostic::do_not_recommend]
impl Element for bool {
    fn show(self) -> String {
        self.to_string()
    }

    fn is_finite(self) -> bool {
        true
    }

    fn between(self, low: Self, high: Self) -> f64 {
        u8::from(self).between(u8::from(low), u8::from(high))
    }

    fn rounded(_: f64) -> Option<Self> {
        None
    }

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn from_slice(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Element>(values: &[T]) {
        for &value in values {
            let word = value.to_word();
            assert_eq!(T::from_word(word).to_word(), word);
            assert!(size_of::<T>() == 8 || word >> (8 * size_of::<T>()) == 0, "{value:?} fills only its own bytes");
            let mut bytes = vec![7];
            value.append(&mut bytes);
            assert_eq!((bytes.len(), size_of::<T>()), (1 + T::TYPE.bytes(), T::TYPE.bytes()));
            assert_eq!(T::from_slice(&bytes[1..]).to_word(), word);
        }
    }

    #[test]
    fn words_and_bytes_keep_every_bit() {
        check(&[0.0, -0.0, 1.5, f64::INFINITY, f64::from_bits(0x7ff8_0000_0000_1234), f64::from_bits(1 << 63 | 1)]);
        check(&[0.0, -1.0, f32::from_bits(0x7fc0_1234)]);
        check(&[0, -1, i64::MIN, i64::MAX]);
        check(&[0, -1, i32::MIN, i32::MAX]);
        check(&[0, -1, i8::MIN, i8::MAX]);
        check(&[0, 1, u64::MAX]);
        check(&[0, 1, u32::MAX]);
        check(&[0, 1, u8::MAX]);
        check(&[false, true]);
        assert_eq!((-1.0_f32).to_word(), 0xbf80_0000);
        assert_eq!(((-2_i8).to_word(), (-2_i32).to_word()), (0xfe, 0xffff_fffe));
        assert!(bool::from_word(1 << 40) && bool::from_slice(&[2]));
    }

    #[test]
    fn places_on_a_scale_are_right_for_the_largest_values_too() {
        assert_eq!(0.0.between(f64::MIN, f64::MAX), 0.5);
        assert_eq!(f64::MAX.between(f64::MIN, f64::MAX), 1.0);
        assert_eq!((i64::MAX - 1).between(i64::MAX - 2, i64::MAX), 0.5);
        assert_eq!(u64::MAX.between(0, u64::MAX), 1.0);
        assert_eq!(i64::MIN.between(i64::MIN, i64::MAX), 0.0);
        assert_eq!((-64_i8).between(i8::MIN, 0), 0.5);
        assert!(true.between(false, true) == 1.0 && true.between(true, true).is_nan());
        assert_eq!(
            (u64::MAX.show(), (-0.5_f32).show(), true.show()),
            (u64::MAX.to_string(), "-5e-1".into(), "true".into())
        );
    }
}
