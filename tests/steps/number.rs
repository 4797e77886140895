//! The types of the random steps, and their values as bits.

use polyhalo::Element;
use polyhalo_codegen::random::Random;

/// A type of cells and scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    /// `f64`.
    F64,
    /// `f32`.
    F32,
    /// `i32`.
    I32,
    /// `i64`: of scalars only.
    I64,
}

/// A Rust type that is a [`Ty`].
pub trait Number: Element {
    /// Which one.
    const TY: Ty;

    /// The bits in the low bytes; all not-a-numbers have the same, as their payload is nobody's promise.
    fn word(self) -> u64;

    /// The value with these bits.
    fn of_word(word: u64) -> Self;
}

impl Number for f64 {
    const TY: Ty = Ty::F64;

    fn word(self) -> u64 {
        if self.is_nan() { f64::NAN.to_bits() } else { self.to_bits() }
    }

    fn of_word(word: u64) -> Self {
        f64::from_bits(word)
    }
}

impl Number for f32 {
    const TY: Ty = Ty::F32;

    fn word(self) -> u64 {
        u64::from(if self.is_nan() { f32::NAN.to_bits() } else { self.to_bits() })
    }

    fn of_word(word: u64) -> Self {
        f32::from_bits(word as u32)
    }
}

impl Number for i32 {
    const TY: Ty = Ty::I32;

    fn word(self) -> u64 {
        u64::from(self as u32)
    }

    fn of_word(word: u64) -> Self {
        word as u32 as i32
    }
}

impl Number for i64 {
    const TY: Ty = Ty::I64;

    fn word(self) -> u64 {
        self as u64
    }

    fn of_word(word: u64) -> Self {
        word as i64
    }
}

impl Ty {
    /// An ordinary value, between -2 and 2 for floats.
    pub fn random(self, random: &mut Random) -> u64 {
        let ordinary = (random.below(1 << 20) as f64 / f64::from(1 << 18)) - 2.0;
        match self {
            Ty::F64 => ordinary.word(),
            Ty::F32 => (ordinary as f32).word(),
            Ty::I32 => (random.bits() as i32 >> random.below(31)).word(),
            Ty::I64 => (random.bits() as i64 >> random.below(63)).word(),
        }
    }

    /// The value with the other sign.
    pub fn negated(self, word: u64) -> u64 {
        match self {
            Ty::F64 => (-f64::of_word(word)).word(),
            Ty::F32 => (-f32::of_word(word)).word(),
            Ty::I32 => i32::of_word(word).wrapping_neg().word(),
            Ty::I64 => i64::of_word(word).wrapping_neg().word(),
        }
    }

    /// The value for people.
    pub fn show(self, word: u64) -> String {
        match self {
            Ty::F64 => format!("{:e}", f64::of_word(word)),
            Ty::F32 => format!("{:e}", f32::of_word(word)),
            Ty::I32 => i32::of_word(word).to_string(),
            Ty::I64 => (word as i64).to_string(),
        }
    }
}
