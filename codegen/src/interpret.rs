//! The slow, obvious meaning of a kernel: the oracle against which emitters are tested.

use crate::ir::{
    Arena, Binary, Expr, ExprKind, Field, Function, Id, Kernel, Local, Offset, Param, Stmt, Type, Unary, Value,
};
use crate::verify::Verified;

/// What a kernel sees at its point.
pub trait Point {
    /// The value of `field` at `offset` from the point; has the field's type.
    fn load(&self, field: Id<Field>, offset: Offset) -> Value;
    /// The value of a scalar; has the parameter's type.
    fn param(&self, param: Id<Param>) -> Value;
}

/// The kernel's results at one point, in order.
pub fn interpret(kernel: &Verified, point: &dyn Point) -> Vec<Value> {
    let mut frame =
        Frame { kernel, point, locals: vec![None; kernel.locals.len()], outputs: vec![None; kernel.outputs.len()] };
    frame.block(&kernel.body);
    frame.outputs.into_iter().map(|value| value.expect("a verified kernel stores every output")).collect()
}

struct Frame<'a> {
    kernel: &'a Kernel,
    point: &'a dyn Point,
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
                    Value::F64(_) | Value::F32(_) => unreachable!("a verified condition is a truth value"),
                },
            }
        }
    }

    fn local(&self, locals: &Arena<Local>, id: Id<Local>) -> Value {
        self.locals[id.index()].unwrap_or_else(|| unreachable!("verified: `{}` has a value", locals[id].name))
    }

    fn eval(&self, id: Id<Expr>) -> Value {
        let expr = &self.kernel.exprs[id];
        match &expr.kind {
            ExprKind::Literal(value) => *value,
            ExprKind::Param(param) => self.point.param(*param),
            ExprKind::Local(local) => self.local(&self.kernel.locals, *local),
            ExprKind::Load { field, offset } => self.point.load(*field, *offset),
            ExprKind::Unary(op, a) => unary(*op, self.eval(*a)),
            ExprKind::Binary(op, a, b) => binary(*op, self.eval(*a), self.eval(*b)),
            ExprKind::Call(function, arguments) => {
                call(*function, &arguments.iter().map(|argument| self.eval(*argument)).collect::<Vec<_>>())
            }
            ExprKind::Cast(a) => cast(self.eval(*a), expr.ty),
        }
    }
}

fn unary(op: Unary, a: Value) -> Value {
    match (op, a) {
        (Unary::Neg, Value::F64(a)) => Value::F64(-a),
        (Unary::Neg, Value::F32(a)) => Value::F32(-a),
        (Unary::Not, Value::Bool(a)) => Value::Bool(!a),
        (Unary::Neg, Value::Bool(_)) | (Unary::Not, Value::F64(_) | Value::F32(_)) => unreachable!("verified"),
    }
}

fn binary(op: Binary, a: Value, b: Value) -> Value {
    /// One arm per operation, for either width.
    macro_rules! float {
        ($variant:ident, $a:expr, $b:expr) => {
            match op {
                Binary::Add => Value::$variant($a + $b),
                Binary::Sub => Value::$variant($a - $b),
                Binary::Mul => Value::$variant($a * $b),
                Binary::Div => Value::$variant($a / $b),
                Binary::Lt => Value::Bool($a < $b),
                Binary::Le => Value::Bool($a <= $b),
                Binary::Gt => Value::Bool($a > $b),
                Binary::Ge => Value::Bool($a >= $b),
                Binary::Eq => Value::Bool($a == $b),
                Binary::Ne => Value::Bool($a != $b),
                Binary::And | Binary::Or => unreachable!("verified"),
            }
        };
    }
    match (a, b) {
        (Value::F64(a), Value::F64(b)) => float!(F64, a, b),
        (Value::F32(a), Value::F32(b)) => float!(F32, a, b),
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(match op {
            Binary::And => a && b,
            Binary::Or => a || b,
            Binary::Eq => a == b,
            Binary::Ne => a != b,
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => unreachable!("verified"),
            Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => unreachable!("verified"),
        }),
        _ => unreachable!("verified: both operands have one type"),
    }
}

fn call(function: Function, arguments: &[Value]) -> Value {
    match (function, arguments) {
        (Function::Sqrt, [Value::F64(a)]) => Value::F64(a.sqrt()),
        (Function::Sqrt, [Value::F32(a)]) => Value::F32(a.sqrt()),
        (Function::Abs, [Value::F64(a)]) => Value::F64(a.abs()),
        (Function::Abs, [Value::F32(a)]) => Value::F32(a.abs()),
        (Function::MulAdd, [Value::F64(a), Value::F64(b), Value::F64(c)]) => Value::F64(a.mul_add(*b, *c)),
        (Function::MulAdd, [Value::F32(a), Value::F32(b), Value::F32(c)]) => Value::F32(a.mul_add(*b, *c)),
        _ => unreachable!("verified: {function:?} of {arguments:?}"),
    }
}

fn cast(a: Value, to: Type) -> Value {
    match (a, to) {
        (Value::F64(a), Type::F64) => Value::F64(a),
        (Value::F64(a), Type::F32) => Value::F32(a as f32),
        (Value::F32(a), Type::F64) => Value::F64(f64::from(a)),
        (Value::F32(a), Type::F32) => Value::F32(a),
        (_, Type::Bool) | (Value::Bool(_), _) => unreachable!("verified: casts are between floats"),
    }
}
