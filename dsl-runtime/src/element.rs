//! The Rust types of cells and scalars.

use std::fmt;

use ndarray_npy::{ReadableElement, WritableElement};

use crate::backend::reference::Cell;
use crate::kernel::ScalarType;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
    impl Sealed for bool {}
}

/// A type that a scalar of a kernel can have: `f64`, `f32` or `bool`.
pub trait Scalar: sealed::Sealed + Copy + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The type as data.
    const TYPE: ScalarType;

    /// The bits of the value in the low bytes.
    fn to_word(self) -> u64;

    /// The value with these bits.
    fn from_word(word: u64) -> Self;
}

/// A type that the cells of a field can have: `f64` or `f32`.
pub trait Element: Scalar + Cell + PartialOrd + fmt::Display + Default + ReadableElement + WritableElement {
    /// The value for a colour scale.
    fn to_f64(self) -> f64;

    /// The bytes of the value, as this machine stores them, appended to `bytes`.
    fn append(self, bytes: &mut Vec<u8>);

    /// The value with these bytes; `bytes` has as many as the type.
    fn from_slice(bytes: &[u8]) -> Self;
}

impl Scalar for bool {
    const TYPE: ScalarType = ScalarType::Bool;

    fn to_word(self) -> u64 {
        u64::from(self)
    }

    fn from_word(word: u64) -> Self {
        word != 0
    }
}

macro_rules! float {
    ($ty:ident, $name:ident, $bits:ident) => {
        impl Scalar for $ty {
            const TYPE: ScalarType = ScalarType::$name;

            fn to_word(self) -> u64 {
                self.to_bits().into()
            }

            fn from_word(word: u64) -> Self {
                Self::from_bits(word as $bits)
            }
        }

        impl Element for $ty {
            fn to_f64(self) -> f64 {
                self.into()
            }

            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }

            fn from_slice(bytes: &[u8]) -> Self {
                let mut value = [0; size_of::<Self>()];
                value.copy_from_slice(bytes);
                Self::from_ne_bytes(value)
            }
        }
    };
}

float!(f64, F64, u64);
float!(f32, F32, u32);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Scalar>(value: T) {
        assert_eq!(T::from_word(value.to_word()).to_word(), value.to_word());
    }

    #[test]
    fn words_keep_every_bit() {
        check(-0.0_f64);
        check(f64::from_bits(0x7ff8_0000_0000_1234));
        check(f32::from_bits(0x7fc0_1234));
        check(true);
        assert_eq!((-1.0_f32).to_word(), 0xbf80_0000);
    }

    #[test]
    fn bytes_keep_every_bit() {
        let mut bytes = Vec::new();
        f64::from_bits(0x8000_0000_0000_0001).append(&mut bytes);
        assert_eq!(f64::from_slice(&bytes).to_bits(), 0x8000_0000_0000_0001);
    }
}
