//! The types of PTX.

/// What the bits of a value mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// A truth value.
    Pred,
    /// Only bits.
    Bits,
    Unsigned,
    Signed,
    Float,
}

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) family: Family,
    /// The bytes of a value; a truth value takes one.
    pub(crate) bytes: usize,
}

impl Type {
    /// The type of that name: `u32`.
    pub(crate) fn parse(name: &str) -> Option<Type> {
        let of = |family, bytes| Some(Type { family, bytes });
        match name {
            "pred" => of(Family::Pred, 1),
            "b8" => of(Family::Bits, 1),
            "b16" => of(Family::Bits, 2),
            "b32" => of(Family::Bits, 4),
            "b64" => of(Family::Bits, 8),
            "u8" => of(Family::Unsigned, 1),
            "u16" => of(Family::Unsigned, 2),
            "u32" => of(Family::Unsigned, 4),
            "u64" => of(Family::Unsigned, 8),
            "s8" => of(Family::Signed, 1),
            "s16" => of(Family::Signed, 2),
            "s32" => of(Family::Signed, 4),
            "s64" => of(Family::Signed, 8),
            "f32" => of(Family::Float, 4),
            "f64" => of(Family::Float, 8),
            _ => None,
        }
    }

    /// The bits that count.
    pub(crate) fn bits(self) -> usize {
        if self.family == Family::Pred { 1 } else { 8 * self.bytes }
    }
}
