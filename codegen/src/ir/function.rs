//! The functions of the language: names, arity, types and how exact they are.

use super::{Family, Type};

/// How far two implementations of a [`Function`] may be apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// The same bits everywhere.
    Exact,
    /// Within the vendor's documented units in the last place.
    Vendor,
}

/// Functions, with the meaning of Rust's methods on the type of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// `a.sqrt()`, correctly rounded.
    Sqrt,
    /// `a.abs()` of floats and signed integers (the least integer stays as it is).
    Abs,
    /// `a.mul_add(b, c)` = a * b + c, rounded once.
    MulAdd,
    /// `a.min(b)`: of floats, `b` if `a` is not a number or `b < a`, else `a`.
    Min,
    /// `a.max(b)`: of floats, `b` if `a` is not a number or `b > a`, else `a`.
    Max,
    /// `a.floor()`.
    Floor,
    /// `a.ceil()`.
    Ceil,
    /// `a.trunc()`.
    Trunc,
    /// `a.round()`: to the nearest integer, halves away from zero.
    Round,
    /// `a.copysign(b)`.
    Copysign,
    /// `a.to_bits()`: f64 to u64, f32 to u32.
    ToBits,
    /// `f64::from_bits(a)` and `f32::from_bits(a)`.
    FromBits,
    /// `a.count_ones()`: integers to u32.
    CountOnes,
    /// `a.exp()`.
    Exp,
    /// `a.ln()`.
    Ln,
    /// `a.log10()`.
    Log10,
    /// `a.log2()`.
    Log2,
    /// `a.exp2()`.
    Exp2,
    /// `a.powf(b)`.
    Powf,
    /// `a.sin()`.
    Sin,
    /// `a.cos()`.
    Cos,
    /// `a.tan()`.
    Tan,
    /// `a.asin()`.
    Asin,
    /// `a.acos()`.
    Acos,
    /// `a.atan()`.
    Atan,
    /// `a.atan2(b)`.
    Atan2,
    /// `a.sinh()`.
    Sinh,
    /// `a.cosh()`.
    Cosh,
    /// `a.tanh()`.
    Tanh,
    /// `a.cbrt()`.
    Cbrt,
    /// `a.hypot(b)`.
    Hypot,
}

impl Function {
    /// Every function.
    pub const ALL: [Function; 31] = [
        Function::Sqrt,
        Function::Abs,
        Function::MulAdd,
        Function::Min,
        Function::Max,
        Function::Floor,
        Function::Ceil,
        Function::Trunc,
        Function::Round,
        Function::Copysign,
        Function::ToBits,
        Function::FromBits,
        Function::CountOnes,
        Function::Exp,
        Function::Ln,
        Function::Log10,
        Function::Log2,
        Function::Exp2,
        Function::Powf,
        Function::Sin,
        Function::Cos,
        Function::Tan,
        Function::Asin,
        Function::Acos,
        Function::Atan,
        Function::Atan2,
        Function::Sinh,
        Function::Cosh,
        Function::Tanh,
        Function::Cbrt,
        Function::Hypot,
    ];

    /// The name of the Rust method.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sqrt => "sqrt",
            Function::Abs => "abs",
            Function::MulAdd => "mul_add",
            Function::Min => "min",
            Function::Max => "max",
            Function::Floor => "floor",
            Function::Ceil => "ceil",
            Function::Trunc => "trunc",
            Function::Round => "round",
            Function::Copysign => "copysign",
            Function::ToBits => "to_bits",
            Function::FromBits => "from_bits",
            Function::CountOnes => "count_ones",
            Function::Exp => "exp",
            Function::Ln => "ln",
            Function::Log10 => "log10",
            Function::Log2 => "log2",
            Function::Exp2 => "exp2",
            Function::Powf => "powf",
            Function::Sin => "sin",
            Function::Cos => "cos",
            Function::Tan => "tan",
            Function::Asin => "asin",
            Function::Acos => "acos",
            Function::Atan => "atan",
            Function::Atan2 => "atan2",
            Function::Sinh => "sinh",
            Function::Cosh => "cosh",
            Function::Tanh => "tanh",
            Function::Cbrt => "cbrt",
            Function::Hypot => "hypot",
        }
    }

    /// The number of arguments, the receiver included.
    pub fn arity(self) -> usize {
        match self {
            Function::MulAdd => 3,
            Function::Min | Function::Max | Function::Copysign | Function::Powf | Function::Atan2 | Function::Hypot => {
                2
            }
            Function::Sqrt
            | Function::Abs
            | Function::Floor
            | Function::Ceil
            | Function::Trunc
            | Function::Round
            | Function::ToBits
            | Function::FromBits
            | Function::CountOnes
            | Function::Exp
            | Function::Ln
            | Function::Log10
            | Function::Log2
            | Function::Exp2
            | Function::Sin
            | Function::Cos
            | Function::Tan
            | Function::Asin
            | Function::Acos
            | Function::Atan
            | Function::Sinh
            | Function::Cosh
            | Function::Tanh
            | Function::Cbrt => 1,
        }
    }

    /// The type of the result for arguments of type `ty`; `None` when the function does not take them.
    pub fn result(self, ty: Type) -> Option<Type> {
        match (self, ty.family()) {
            (Function::Min | Function::Max, Family::Float | Family::Signed | Family::Unsigned) => Some(ty),
            (Function::Abs, Family::Float | Family::Signed) => Some(ty),
            (Function::CountOnes, Family::Signed | Family::Unsigned) => Some(Type::U32),
            (Function::ToBits, Family::Float) => Some(if ty == Type::F64 { Type::U64 } else { Type::U32 }),
            (Function::FromBits, _) => match ty {
                Type::U64 => Some(Type::F64),
                Type::U32 => Some(Type::F32),
                _ => None,
            },
            (Function::ToBits | Function::CountOnes | Function::Abs | Function::Min | Function::Max, _) => None,
            (_, Family::Float) => Some(ty),
            (_, Family::Signed | Family::Unsigned | Family::Bool) => None,
        }
    }

    /// Whether all targets give the same bits.
    pub fn exactness(self) -> Exactness {
        match self {
            Function::Sqrt
            | Function::Abs
            | Function::MulAdd
            | Function::Min
            | Function::Max
            | Function::Floor
            | Function::Ceil
            | Function::Trunc
            | Function::Round
            | Function::Copysign
            | Function::ToBits
            | Function::FromBits
            | Function::CountOnes => Exactness::Exact,
            Function::Exp
            | Function::Ln
            | Function::Log10
            | Function::Log2
            | Function::Exp2
            | Function::Powf
            | Function::Sin
            | Function::Cos
            | Function::Tan
            | Function::Asin
            | Function::Acos
            | Function::Atan
            | Function::Atan2
            | Function::Sinh
            | Function::Cosh
            | Function::Tanh
            | Function::Cbrt
            | Function::Hypot => Exactness::Vendor,
        }
    }
}
