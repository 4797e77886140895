//! What each operation on values becomes.
//!
//! Integers have no sign in a kernel's module: the operation knows it. Where SPIR-V leaves a result open, at a division
//! by zero or a number too large for an integer, the operands are made harmless first and the result is chosen after.

use rspirv::spirv::{Op, OpenclStd100Op, Word};

use super::module::{Module, unsigned};
use crate::ir::{Binary, BinaryKind, Family, Function, Type, Unary, Value};

impl Module {
    /// An operation on one operand of type `ty`.
    pub(super) fn unary(&mut self, op: Unary, ty: Type, a: Word) -> Word {
        let id = self.ty(ty);
        match (op, ty.family()) {
            (Unary::Neg, Family::Float) => self.value(Op::FNegate, id, &[a]),
            (Unary::Neg, Family::Signed) => self.value(Op::SNegate, id, &[a]),
            (Unary::Not, Family::Signed | Family::Unsigned) => self.value(Op::Not, id, &[a]),
            (Unary::Not, Family::Bool) => {
                // Intel's graphics compiler fails on OpLogicalNot (seen in 1.0.12504).
                let truth = self.literal(Value::Bool(true));
                self.value(Op::LogicalNotEqual, id, &[a, truth])
            }
            (Unary::Neg, Family::Unsigned | Family::Bool) | (Unary::Not, Family::Float) => unreachable!("verified"),
        }
    }

    /// An operation on two operands of type `ty`.
    pub(super) fn binary(&mut self, op: Binary, ty: Type, a: Word, b: Word) -> Word {
        let result = match op.kind() {
            BinaryKind::Arithmetic | BinaryKind::Bitwise | BinaryKind::Shift => self.ty(ty),
            BinaryKind::Comparison | BinaryKind::Logic => self.ty(Type::Bool),
        };
        match (op, ty.family()) {
            (Binary::Div | Binary::Rem, Family::Signed | Family::Unsigned) => self.quotient(op, ty, a, b),
            (Binary::Shl | Binary::Shr, _) => {
                let low_bits = self.number(ty, 8 * ty.bytes() as i64 - 1);
                let count = self.value(Op::BitwiseAnd, result, &[b, low_bits]);
                self.value(instruction(op, ty.family()), result, &[a, count])
            }
            // Intel's graphics compiler fails on some OpLogicalOr (seen in 1.0.12504).
            (Binary::Or | Binary::BitOr, Family::Bool) => {
                let truth = self.literal(Value::Bool(true));
                self.value(Op::Select, result, &[a, truth, b])
            }
            // OpFRem is exact too, but some consumers round in between.
            (Binary::Rem, Family::Float) => self.call(OpenclStd100Op::fmod, result, &[a, b]),
            (op, family) => self.value(instruction(op, family), result, &[a, b]),
        }
    }

    /// `a / b` or `a % b` of integers. 1 stands in for the divisors 0 and -1, for which SPIR-V promises nothing.
    fn quotient(&mut self, op: Binary, ty: Type, a: Word, b: Word) -> Word {
        let (id, truth) = (self.ty(ty), self.ty(Type::Bool));
        let instruction = instruction(op, ty.family());
        let [zero, one] = [0, 1].map(|number| self.number(ty, number));
        let minus_one = (ty.family() == Family::Signed).then(|| self.number(ty, -1));
        if self.is_constant(b) && b != zero && Some(b) != minus_one {
            return self.value(instruction, id, &[a, b]);
        }
        let by_zero = self.value(Op::IEqual, truth, &[b, zero]);
        let by_minus_one = minus_one.map(|minus_one| self.value(Op::IEqual, truth, &[b, minus_one]));
        let special = match by_minus_one {
            None => by_zero,
            Some(by_minus_one) => self.binary(Binary::Or, Type::Bool, by_zero, by_minus_one),
        };
        let divisor = self.value(Op::Select, id, &[special, one, b]);
        let result = self.value(instruction, id, &[a, divisor]);
        if op == Binary::Rem {
            return result; // The remainder by 1 is 0, as it is to be.
        }
        let result = self.value(Op::Select, id, &[by_zero, zero, result]);
        match by_minus_one {
            None => result,
            Some(by_minus_one) => {
                let negated = self.value(Op::SNegate, id, &[a]);
                self.value(Op::Select, id, &[by_minus_one, negated, result])
            }
        }
    }

    /// A function of arguments of type `ty`.
    pub(super) fn function(&mut self, function: Function, ty: Type, arguments: &[Word]) -> Word {
        let result = self.ty(function.result(ty).expect("verified: the function takes such arguments"));
        let function = match function {
            Function::Min => return self.extreme(Binary::Lt, ty, arguments[0], arguments[1]),
            Function::Max => return self.extreme(Binary::Gt, ty, arguments[0], arguments[1]),
            Function::ToBits | Function::FromBits => return self.value(Op::Bitcast, result, arguments),
            Function::CountOnes => {
                let id = self.ty(ty);
                let count = self.call(OpenclStd100Op::popcount, id, arguments);
                return self.cast(unsigned(ty), Type::U32, count);
            }
            Function::Abs if ty.is_integer() => {
                let zero = self.number(ty, 0);
                let is_negative = self.binary(Binary::Lt, ty, arguments[0], zero);
                let negated = self.unary(Unary::Neg, ty, arguments[0]);
                return self.value(Op::Select, result, &[is_negative, negated, arguments[0]]);
            }
            Function::Abs => OpenclStd100Op::fabs,
            Function::Sqrt => OpenclStd100Op::sqrt,
            Function::MulAdd => OpenclStd100Op::fma,
            Function::Floor => OpenclStd100Op::floor,
            Function::Ceil => OpenclStd100Op::ceil,
            Function::Trunc => OpenclStd100Op::trunc,
            Function::Round => OpenclStd100Op::round,
            Function::Copysign => OpenclStd100Op::copysign,
            Function::Exp => OpenclStd100Op::exp,
            Function::Ln => OpenclStd100Op::log,
            Function::Log10 => OpenclStd100Op::log10,
            Function::Log2 => OpenclStd100Op::log2,
            Function::Exp2 => OpenclStd100Op::exp2,
            Function::Powf => OpenclStd100Op::pow,
            Function::Sin => OpenclStd100Op::sin,
            Function::Cos => OpenclStd100Op::cos,
            Function::Tan => OpenclStd100Op::tan,
            Function::Asin => OpenclStd100Op::asin,
            Function::Acos => OpenclStd100Op::acos,
            Function::Atan => OpenclStd100Op::atan,
            Function::Atan2 => OpenclStd100Op::atan2,
            Function::Sinh => OpenclStd100Op::sinh,
            Function::Cosh => OpenclStd100Op::cosh,
            Function::Tanh => OpenclStd100Op::tanh,
            Function::Cbrt => OpenclStd100Op::cbrt,
            Function::Hypot => OpenclStd100Op::hypot,
        };
        self.call(function, result, arguments)
    }

    /// `b` where `a` is not a number or `b beats a`, else `a`; OpenCL's `fmin` may choose either of two zeros.
    pub(super) fn extreme(&mut self, beats: Binary, ty: Type, a: Word, b: Word) -> Word {
        let mut takes_b = self.binary(beats, ty, b, a);
        if ty.is_float() {
            let is_nan = self.binary(Binary::Ne, ty, a, a);
            takes_b = self.binary(Binary::Or, Type::Bool, is_nan, takes_b);
        }
        let id = self.ty(ty);
        self.value(Op::Select, id, &[takes_b, b, a])
    }

    /// `a as to`.
    pub(super) fn cast(&mut self, from: Type, to: Type, a: Word) -> Word {
        let id = self.ty(to);
        if self.ty(from) == id {
            return a; // Conversions are between different types only, and `i32` and `u32` are one.
        }
        match (from.family(), to.family()) {
            (Family::Bool, Family::Float | Family::Signed | Family::Unsigned) => {
                let [zero, one] = [0, 1].map(|number| self.number(to, number));
                self.value(Op::Select, id, &[a, one, zero])
            }
            (Family::Float, Family::Float) => self.value(Op::FConvert, id, &[a]),
            (Family::Float, Family::Signed | Family::Unsigned) => self.nearest(from, to, a),
            (Family::Signed, Family::Float) => self.value(Op::ConvertSToF, id, &[a]),
            (Family::Unsigned, Family::Float) => self.value(Op::ConvertUToF, id, &[a]),
            (Family::Signed, Family::Signed | Family::Unsigned) if from.bytes() < to.bytes() => {
                self.value(Op::SConvert, id, &[a])
            }
            (Family::Signed | Family::Unsigned, Family::Signed | Family::Unsigned) => {
                self.value(Op::UConvert, id, &[a])
            }
            (Family::Float | Family::Signed | Family::Unsigned | Family::Bool, Family::Bool) => {
                unreachable!("verified: only truth values become truth values")
            }
        }
    }

    /// The integer of type `to` nearest to a float, towards zero; 0 for what is no number, which the decoration
    /// SaturatedConversion leaves open.
    fn nearest(&mut self, from: Type, to: Type, a: Word) -> Word {
        let (id, float) = (self.ty(to), self.ty(from));
        let bits = 8 * to.bytes() as i32;
        let (convert, least, beyond, end) = match to.family() {
            Family::Signed => (Op::ConvertFToS, -(2f64.powi(bits - 1)), 2f64.powi(bits - 1), i64::MAX >> (64 - bits)),
            _ => (Op::ConvertFToU, 0.0, 2f64.powi(bits), -1),
        };
        // Powers of two are the same in both widths. The last integer of 64 bits is not.
        let [zero, one, least_float, beyond] = [0.0, 1.0, least, beyond].map(|number| self.float(from, number));
        let is_large = self.binary(Binary::Ge, from, a, beyond);
        let below = self.binary(Binary::Lt, from, a, beyond);
        // What lies between -1 and 1 is converted as +0.0: Intel's compiler takes a conversion to an integer and back for a
        // truncation, which leaves -0.0 of -0.5.
        let size = match to.family() {
            Family::Signed => self.call(OpenclStd100Op::fabs, float, &[a]),
            _ => a,
        };
        let is_whole = self.binary(Binary::Ge, from, size, one);
        let mut fits = self.binary(Binary::And, Type::Bool, is_whole, below);
        if to.family() == Family::Signed {
            let reaches = self.binary(Binary::Ge, from, a, least_float);
            fits = self.binary(Binary::And, Type::Bool, fits, reaches);
        }
        let harmless = self.value(Op::Select, float, &[fits, a, zero]);
        let result = self.value(convert, id, &[harmless]); // 0 for what doesn't fit.
        let end = self.number(to, end);
        let result = self.value(Op::Select, id, &[is_large, end, result]);
        match to.family() {
            Family::Signed => {
                let is_small = self.binary(Binary::Lt, from, a, least_float);
                let least = self.number(to, least as i64);
                self.value(Op::Select, id, &[is_small, least, result])
            }
            _ => result,
        }
    }

    /// A small whole number of any type.
    fn number(&mut self, ty: Type, number: i64) -> Word {
        match ty {
            Type::F64 | Type::F32 => self.float(ty, number as f64),
            Type::I64 | Type::I32 | Type::I8 | Type::U64 | Type::U32 | Type::U8 | Type::Bool => {
                self.literal(Value::from_bits(ty, number as u64))
            }
        }
    }

    /// A float that both widths know.
    fn float(&mut self, ty: Type, number: f64) -> Word {
        match ty {
            Type::F64 => self.literal(Value::F64(number)),
            Type::F32 => self.literal(Value::F32(number as f32)),
            Type::I64 | Type::I32 | Type::I8 | Type::U64 | Type::U32 | Type::U8 | Type::Bool => {
                unreachable!("{ty} is no float")
            }
        }
    }
}

/// The instruction for `op` on operands of such types. Comparisons with a NaN are false, except `!=`, as in Rust.
fn instruction(op: Binary, family: Family) -> Op {
    use Family::{Bool, Float, Signed, Unsigned};
    match (op, family) {
        (Binary::Add, Float) => Op::FAdd,
        (Binary::Add, Signed | Unsigned) => Op::IAdd,
        (Binary::Sub, Float) => Op::FSub,
        (Binary::Sub, Signed | Unsigned) => Op::ISub,
        (Binary::Mul, Float) => Op::FMul,
        (Binary::Mul, Signed | Unsigned) => Op::IMul,
        (Binary::Div, Float) => Op::FDiv,
        (Binary::Div, Signed) => Op::SDiv,
        (Binary::Div, Unsigned) => Op::UDiv,
        (Binary::Rem, Signed) => Op::SRem,
        (Binary::Rem, Unsigned) => Op::UMod,
        (Binary::BitAnd, Signed | Unsigned) => Op::BitwiseAnd,
        (Binary::BitOr, Signed | Unsigned) => Op::BitwiseOr,
        (Binary::BitXor, Signed | Unsigned) => Op::BitwiseXor,
        (Binary::And | Binary::BitAnd, Bool) => Op::LogicalAnd,
        (Binary::Or | Binary::BitOr, Bool) => Op::Select,
        (Binary::BitXor, Bool) => Op::LogicalNotEqual,
        (Binary::Shl, Signed | Unsigned) => Op::ShiftLeftLogical,
        (Binary::Shr, Signed) => Op::ShiftRightArithmetic,
        (Binary::Shr, Unsigned) => Op::ShiftRightLogical,
        (Binary::Lt, Float) => Op::FOrdLessThan,
        (Binary::Lt, Signed) => Op::SLessThan,
        (Binary::Lt, Unsigned) => Op::ULessThan,
        (Binary::Le, Float) => Op::FOrdLessThanEqual,
        (Binary::Le, Signed) => Op::SLessThanEqual,
        (Binary::Le, Unsigned) => Op::ULessThanEqual,
        (Binary::Gt, Float) => Op::FOrdGreaterThan,
        (Binary::Gt, Signed) => Op::SGreaterThan,
        (Binary::Gt, Unsigned) => Op::UGreaterThan,
        (Binary::Ge, Float) => Op::FOrdGreaterThanEqual,
        (Binary::Ge, Signed) => Op::SGreaterThanEqual,
        (Binary::Ge, Unsigned) => Op::UGreaterThanEqual,
        (Binary::Eq, Float) => Op::FOrdEqual,
        (Binary::Eq, Signed | Unsigned) => Op::IEqual,
        (Binary::Eq, Bool) => Op::LogicalEqual,
        (Binary::Ne, Float) => Op::FUnordNotEqual,
        (Binary::Ne, Signed | Unsigned) => Op::INotEqual,
        (Binary::Ne, Bool) => Op::LogicalNotEqual,
        (Binary::Rem | Binary::BitAnd | Binary::BitOr | Binary::BitXor | Binary::Shl | Binary::Shr, Float)
        | (Binary::And | Binary::Or, Float | Signed | Unsigned)
        | (Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Rem | Binary::Shl | Binary::Shr, Bool)
        | (Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge, Bool) => unreachable!("verified"),
    }
}
