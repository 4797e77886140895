//! The slow, obvious meaning of a kernel: the oracle against which emitters are tested.

use std::collections::BTreeSet;

use crate::ir::{Axis, Binary, Expr, ExprKind, Field, Function, Id, Kernel, Offset, Param, Stmt, Type, Unary, Value};
use crate::verify::{Verified, binary_result, operands, unary_result};

/// What a kernel sees at its point, and all that it sees: what its results are folded with, or written to, is for the
/// caller.
pub trait Point {
    /// The value of `field` at `offset` from the point; has the field's type. Along an axis that the field lacks it is the
    /// same everywhere, and the offset is 0.
    fn load(&self, field: Id<Field>, offset: Offset) -> Value;
    /// The value of a scalar; has the parameter's type.
    fn param(&self, param: Id<Param>) -> Value;
    /// The global index of the point along `axis`.
    fn index(&self, axis: Axis) -> i32;
}

/// The kernel's results at one point, in order; of a fold, what this point gives to it.
pub fn interpret(kernel: &Verified, point: &dyn Point) -> Vec<Value> {
    let mut frame = Frame {
        kernel,
        point,
        values: vec![None; kernel.exprs.len()],
        locals: vec![None; kernel.locals.len()],
        outputs: vec![None; kernel.outputs.len()],
    };
    frame.block(&kernel.body);
    frame.outputs.into_iter().map(|value| value.expect("a verified kernel stores every output")).collect()
}

/// The value of an operation on constants; `None` for what is no such operation, and when a type is wrong.
pub(crate) fn constant(kind: &ExprKind, ty: Type, values: &[Value]) -> Option<Value> {
    let alike = values.windows(2).all(|pair| pair[0].ty() == pair[1].ty());
    match (kind, values) {
        (ExprKind::Literal(value), []) => Some(*value),
        (ExprKind::Unary(op, _), [a]) if unary_result(*op, a.ty()).is_some() => Some(unary(*op, *a)),
        (ExprKind::Binary(op, ..), [a, b]) if alike && binary_result(*op, a.ty()).is_some() => {
            Some(binary(*op, *a, *b))
        }
        (ExprKind::Call(function, _), [first, ..])
            if alike && values.len() == function.arity() && function.result(first.ty()).is_some() =>
        {
            Some(call(*function, values))
        }
        (ExprKind::Cast(_), [a]) if ty.is_number() => Some(cast(*a, ty)),
        _ => None,
    }
}

struct Frame<'a> {
    kernel: &'a Kernel,
    point: &'a dyn Point,
    /// Values of expressions in the statement that runs.
    values: Vec<Option<Value>>,
    locals: Vec<Option<Value>>,
    outputs: Vec<Option<Value>>,
}

impl Frame<'_> {
    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            match stmt {
                Stmt::Let { local, value, .. } => self.locals[local.index()] = value.map(|value| self.eval(value)),
                Stmt::Assign { local, value, .. } => self.locals[local.index()] = Some(self.eval(*value)),
                Stmt::Store { output, value, .. } => self.outputs[output.index()] = Some(self.eval(*value)),
                Stmt::If { condition, then, otherwise, .. } => match self.eval(*condition) {
                    Value::Bool(true) => self.block(then),
                    Value::Bool(false) => self.block(otherwise),
                    other => unreachable!("a verified condition is a truth value, not {other:?}"),
                },
            }
        }
    }

    /// The value of an expression: all that it needs, once each, operands first (they have the lower ids).
    fn eval(&mut self, root: Id<Expr>) -> Value {
        let mut needed = BTreeSet::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if needed.insert(id) {
                open.extend(operands(&self.kernel.exprs[id].kind));
            }
        }
        for id in needed {
            self.values[id.index()] = Some(self.expr(&self.kernel.exprs[id]));
        }
        self.value(root)
    }

    fn value(&self, id: Id<Expr>) -> Value {
        self.values[id.index()].expect("operands come first")
    }

    fn expr(&self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Literal(value) => *value,
            ExprKind::Param(param) => self.point.param(*param),
            ExprKind::Local(local) => self.locals[local.index()]
                .unwrap_or_else(|| unreachable!("verified: `{}` has a value", self.kernel.locals[*local].name)),
            ExprKind::Load { field, offset } => self.point.load(*field, *offset),
            ExprKind::Unary(op, a) => unary(*op, self.value(*a)),
            ExprKind::Binary(op, a, b) => binary(*op, self.value(*a), self.value(*b)),
            ExprKind::Call(function, arguments) => {
                call(*function, &arguments.iter().map(|argument| self.value(*argument)).collect::<Vec<_>>())
            }
            ExprKind::Cast(a) => cast(self.value(*a), expr.ty),
            ExprKind::Index(axis) => Value::I32(self.point.index(*axis)),
            ExprKind::Element { table, index } => {
                let Value::U64(index) = self.value(*index) else { unreachable!("verified: an index is a u64") };
                let values = &self.kernel.tables[*table].values;
                let last = values.len() - 1;
                values[usize::try_from(index).map_or(last, |index| index.min(last))]
            }
        }
    }
}

fn unary(op: Unary, a: Value) -> Value {
    match (op, a) {
        (Unary::Neg, Value::F64(a)) => Value::F64(-a),
        (Unary::Neg, Value::F32(a)) => Value::F32(-a),
        (Unary::Neg, Value::I64(a)) => Value::I64(a.wrapping_neg()),
        (Unary::Neg, Value::I32(a)) => Value::I32(a.wrapping_neg()),
        (Unary::Neg, Value::I8(a)) => Value::I8(a.wrapping_neg()),
        (Unary::Not, Value::I64(a)) => Value::I64(!a),
        (Unary::Not, Value::I32(a)) => Value::I32(!a),
        (Unary::Not, Value::I8(a)) => Value::I8(!a),
        (Unary::Not, Value::U64(a)) => Value::U64(!a),
        (Unary::Not, Value::U32(a)) => Value::U32(!a),
        (Unary::Not, Value::U8(a)) => Value::U8(!a),
        (Unary::Not, Value::Bool(a)) => Value::Bool(!a),
        (Unary::Neg, Value::U64(_) | Value::U32(_) | Value::U8(_) | Value::Bool(_))
        | (Unary::Not, Value::F64(_) | Value::F32(_)) => unreachable!("verified: {op:?} of {a:?}"),
    }
}

fn binary(op: Binary, a: Value, b: Value) -> Value {
    macro_rules! float {
        ($variant:ident, $a:expr, $b:expr) => {
            match op {
                Binary::Add => Value::$variant($a + $b),
                Binary::Sub => Value::$variant($a - $b),
                Binary::Mul => Value::$variant($a * $b),
                Binary::Div => Value::$variant($a / $b),
                Binary::Rem => Value::$variant($a % $b),
                _ => Value::Bool(compare(op, &$a, &$b)),
            }
        };
    }
    macro_rules! integer {
        ($variant:ident, $a:expr, $b:expr) => {
            match op {
                Binary::Add => Value::$variant($a.wrapping_add($b)),
                Binary::Sub => Value::$variant($a.wrapping_sub($b)),
                Binary::Mul => Value::$variant($a.wrapping_mul($b)),
                Binary::Div => Value::$variant(if $b == 0 { 0 } else { $a.wrapping_div($b) }),
                Binary::Rem => Value::$variant(if $b == 0 { 0 } else { $a.wrapping_rem($b) }),
                Binary::BitAnd => Value::$variant($a & $b),
                Binary::BitOr => Value::$variant($a | $b),
                Binary::BitXor => Value::$variant($a ^ $b),
                // The cast keeps the low bits, and of those only as many count as number the bits of `a`.
                Binary::Shl => Value::$variant($a.wrapping_shl($b as u32)),
                Binary::Shr => Value::$variant($a.wrapping_shr($b as u32)),
                _ => Value::Bool(compare(op, &$a, &$b)),
            }
        };
    }
    match (a, b) {
        (Value::F64(a), Value::F64(b)) => float!(F64, a, b),
        (Value::F32(a), Value::F32(b)) => float!(F32, a, b),
        (Value::I64(a), Value::I64(b)) => integer!(I64, a, b),
        (Value::I32(a), Value::I32(b)) => integer!(I32, a, b),
        (Value::I8(a), Value::I8(b)) => integer!(I8, a, b),
        (Value::U64(a), Value::U64(b)) => integer!(U64, a, b),
        (Value::U32(a), Value::U32(b)) => integer!(U32, a, b),
        (Value::U8(a), Value::U8(b)) => integer!(U8, a, b),
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(match op {
            Binary::And | Binary::BitAnd => a & b,
            Binary::Or | Binary::BitOr => a | b,
            Binary::BitXor => a ^ b,
            _ => compare(op, &a, &b),
        }),
        _ => unreachable!("verified: both operands have one type"),
    }
}

fn compare<T: PartialOrd>(op: Binary, a: &T, b: &T) -> bool {
    match op {
        Binary::Lt => a < b,
        Binary::Le => a <= b,
        Binary::Gt => a > b,
        Binary::Ge => a >= b,
        Binary::Eq => a == b,
        Binary::Ne => a != b,
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Rem => unreachable!("verified: arithmetic"),
        Binary::BitAnd | Binary::BitOr | Binary::BitXor | Binary::Shl | Binary::Shr => unreachable!("verified: bits"),
        Binary::And | Binary::Or => unreachable!("verified: logic is on truth values"),
    }
}

fn call(function: Function, arguments: &[Value]) -> Value {
    macro_rules! float {
        ($variant:ident, $bits:ident, $arguments:expr) => {
            match (function, $arguments.as_slice()) {
                (Function::Sqrt, [a]) => Value::$variant(a.sqrt()),
                (Function::Abs, [a]) => Value::$variant(a.abs()),
                (Function::MulAdd, [a, b, c]) => Value::$variant(a.mul_add(*b, *c)),
                (Function::Min, [a, b]) => Value::$variant(if a.is_nan() || b < a { *b } else { *a }),
                (Function::Max, [a, b]) => Value::$variant(if a.is_nan() || b > a { *b } else { *a }),
                (Function::Floor, [a]) => Value::$variant(a.floor()),
                (Function::Ceil, [a]) => Value::$variant(a.ceil()),
                (Function::Trunc, [a]) => Value::$variant(a.trunc()),
                (Function::Round, [a]) => Value::$variant(a.round()),
                (Function::Copysign, [a, b]) => Value::$variant(a.copysign(*b)),
                (Function::ToBits, [a]) => Value::$bits(a.to_bits()),
                (Function::Exp, [a]) => Value::$variant(a.exp()),
                (Function::Ln, [a]) => Value::$variant(a.ln()),
                (Function::Log10, [a]) => Value::$variant(a.log10()),
                (Function::Log2, [a]) => Value::$variant(a.log2()),
                (Function::Exp2, [a]) => Value::$variant(a.exp2()),
                (Function::Powf, [a, b]) => Value::$variant(a.powf(*b)),
                (Function::Sin, [a]) => Value::$variant(a.sin()),
                (Function::Cos, [a]) => Value::$variant(a.cos()),
                (Function::Tan, [a]) => Value::$variant(a.tan()),
                (Function::Asin, [a]) => Value::$variant(a.asin()),
                (Function::Acos, [a]) => Value::$variant(a.acos()),
                (Function::Atan, [a]) => Value::$variant(a.atan()),
                (Function::Atan2, [a, b]) => Value::$variant(a.atan2(*b)),
                (Function::Sinh, [a]) => Value::$variant(a.sinh()),
                (Function::Cosh, [a]) => Value::$variant(a.cosh()),
                (Function::Tanh, [a]) => Value::$variant(a.tanh()),
                (Function::Cbrt, [a]) => Value::$variant(a.cbrt()),
                (Function::Hypot, [a, b]) => Value::$variant(a.hypot(*b)),
                _ => unreachable!("verified: {function:?} of {arguments:?}"),
            }
        };
    }
    macro_rules! integer {
        ($variant:ident, $a:expr, $abs:expr) => {
            match (function, arguments) {
                (Function::Abs, [_]) => $abs,
                (Function::CountOnes, [_]) => Value::U32($a.count_ones()),
                (Function::Min, [_, Value::$variant(b)]) => Value::$variant($a.min(*b)),
                (Function::Max, [_, Value::$variant(b)]) => Value::$variant($a.max(*b)),
                (Function::FromBits, [Value::U64(a)]) => Value::F64(f64::from_bits(*a)),
                (Function::FromBits, [Value::U32(a)]) => Value::F32(f32::from_bits(*a)),
                _ => unreachable!("verified: {function:?} of {arguments:?}"),
            }
        };
    }
    match arguments[0] {
        Value::F64(_) => {
            float!(F64, U64, numbers(arguments, |value| if let Value::F64(a) = value { Some(a) } else { None }))
        }
        Value::F32(_) => {
            float!(F32, U32, numbers(arguments, |value| if let Value::F32(a) = value { Some(a) } else { None }))
        }
        Value::I64(a) => integer!(I64, a, Value::I64(a.wrapping_abs())),
        Value::I32(a) => integer!(I32, a, Value::I32(a.wrapping_abs())),
        Value::I8(a) => integer!(I8, a, Value::I8(a.wrapping_abs())),
        Value::U64(a) => integer!(U64, a, unreachable!("verified: abs of a signed integer")),
        Value::U32(a) => integer!(U32, a, unreachable!("verified: abs of a signed integer")),
        Value::U8(a) => integer!(U8, a, unreachable!("verified: abs of a signed integer")),
        Value::Bool(_) => unreachable!("verified: {function:?} of {arguments:?}"),
    }
}

fn numbers<T>(values: &[Value], number: impl Fn(Value) -> Option<T>) -> Vec<T> {
    values.iter().map(|value| number(*value).expect("verified: all arguments have one type")).collect()
}

/// Rust's `as`.
fn cast(a: Value, to: Type) -> Value {
    macro_rules! number {
        ($a:expr) => {
            match to {
                Type::F64 => Value::F64($a as f64),
                Type::F32 => Value::F32($a as f32),
                Type::I64 => Value::I64($a as i64),
                Type::I32 => Value::I32($a as i32),
                Type::I8 => Value::I8($a as i8),
                Type::U64 => Value::U64($a as u64),
                Type::U32 => Value::U32($a as u32),
                Type::U8 => Value::U8($a as u8),
                Type::Bool => unreachable!("verified: nothing is cast to bool"),
            }
        };
    }
    match a {
        Value::F64(a) => number!(a),
        Value::F32(a) => number!(a),
        Value::I64(a) => number!(a),
        Value::I32(a) => number!(a),
        Value::I8(a) => number!(a),
        Value::U64(a) => number!(a),
        Value::U32(a) => number!(a),
        Value::U8(a) => number!(a),
        Value::Bool(a) => number!(u8::from(a)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(op: Binary, a: Value, b: Value, expected: Value) {
        assert_eq!(binary(op, a, b), expected, "{a:?} {} {b:?}", op.symbol());
    }

    #[test]
    fn integers_wrap_and_never_stop_the_program() {
        use Value::{I8, I32, I64, U8, U32};
        check(Binary::Add, I8(127), I8(1), I8(-128));
        check(Binary::Mul, I32(i32::MAX), I32(2), I32(-2));
        check(Binary::Sub, U32(0), U32(1), U32(u32::MAX));
        check(Binary::Div, I64(i64::MIN), I64(-1), I64(i64::MIN));
        check(Binary::Rem, I64(i64::MIN), I64(-1), I64(0));
        check(Binary::Div, I32(7), I32(0), I32(0));
        check(Binary::Rem, U8(7), U8(0), U8(0));
        check(Binary::Div, I32(-7), I32(2), I32(-3));
        check(Binary::Rem, I32(-7), I32(2), I32(-1));
        check(Binary::Shl, U8(1), U8(9), U8(2));
        check(Binary::Shr, I8(-128), I8(-1), I8(-1));
        check(Binary::Shr, U8(128), U8(7), U8(1));
    }

    #[test]
    fn least_and_greatest_are_defined_for_what_is_no_number_and_for_both_zeros() {
        let min = |a, b| call(Function::Min, &[Value::F64(a), Value::F64(b)]);
        let max = |a, b| call(Function::Max, &[Value::F64(a), Value::F64(b)]);
        assert_eq!(min(f64::NAN, 1.0), Value::F64(1.0));
        assert_eq!(min(1.0, f64::NAN), Value::F64(1.0));
        assert_eq!(max(1.0, f64::NAN), Value::F64(1.0));
        assert_eq!((min(0.0, -0.0), max(-0.0, 0.0)), (Value::F64(0.0), Value::F64(-0.0)), "the first of equals");
    }

    #[test]
    fn casts_are_rusts() {
        let check = |a, to, expected| assert_eq!(cast(a, to), expected);
        check(Value::F64(f64::NAN), Type::I32, Value::I32(0));
        check(Value::F64(-1.5), Type::U8, Value::U8(0));
        check(Value::F64(1e300), Type::I64, Value::I64(i64::MAX));
        check(Value::F32(-129.0), Type::I8, Value::I8(-128));
        check(Value::I32(-1), Type::U64, Value::U64(u64::MAX));
        check(Value::I64(0x1_0000_00FF), Type::I8, Value::I8(-1));
        check(Value::U64(u64::MAX), Type::F32, Value::F32(u64::MAX as f32));
        check(Value::I32(16_777_217), Type::F32, Value::F32(16_777_216.0));
        check(Value::Bool(true), Type::F64, Value::F64(1.0));
    }
}
