//! `as`, and `f64::from(x)`.

use quote::ToTokens;
use syn::Expr;

use super::Front;
use super::infer::Kind;
use super::report::tidy;
use super::scope::{IntType, Integer, Val};
use super::signature::Annotation;
use super::suggest::type_elsewhere;
use crate::ir::{ExprKind, Type, Value};

impl Front {
    pub(super) fn cast(&mut self, cast: &syn::ExprCast) -> Val {
        let value = self.eval(&cast.expr);
        let name = tidy(&*cast.ty);
        let value = match value {
            Val::Integer(Integer { value, ty: None, .. })
                if i32::try_from(value).is_err() && !is_literal(&cast.expr) =>
            {
                let message = format!("the type of the integer {value} is not known, and an `i32` can't hold it");
                return self.poison(
                    cast,
                    message,
                    "give it a type where it is made: `let n: i64 = ..` or a suffix, `1u64`",
                );
            }
            Val::Truth(truth) if IntType::parse(&name).is_some() => Val::Integer(Integer::new(i128::from(truth), None)),
            value => value,
        };
        if let (Val::Integer(integer), Some(ty)) = (&value, IntType::parse(&name)) {
            return Val::Integer(Integer::new(ty.wrap(integer.value), Some(ty)));
        }
        match (self.annotation(&cast.ty), value) {
            (_, Val::Poison) => Val::Poison,
            (Annotation::Scalar(ty), value @ (Val::Integer(_) | Val::Number(_) | Val::Truth(_))) => {
                let is_bool = matches!(value, Val::Truth(_))
                    || matches!(value, Val::Number(number) if self.types.kind_of(number) == Kind::Bool);
                match (is_bool, ty) {
                    (true, Type::Bool) => value,
                    (false, Type::Bool) => {
                        self.poison(cast, "a number can't be cast to `bool`", "compare it: `x != 0`")
                    }
                    (true, ty) if ty.is_float() => {
                        let help = format!("write `if c {{ 1.0 }} else {{ 0.0 }}` or `{ty}::from(c)`");
                        self.poison(cast, format!("a bool can't be cast to `{ty}`"), help)
                    }
                    _ => self.converted(value, ty, cast),
                }
            }
            (Annotation::Unknown, Val::Number(_) | Val::Integer(_) | Val::Truth(_))
                if let Some(meant) = type_elsewhere(&name).filter(|_| IntType::parse(&name).is_none()) =>
            {
                let message = format!("the type `{name}` is not known inside the stencil");
                self.poison(&*cast.ty, message, format!("in Rust it is `{meant}`"))
            }
            (_, Val::Number(_)) if IntType::parse(&name).is_some() => self.poison(
                cast,
                format!("a value at run time can't be cast to `{name}`"),
                "integers of the kernel have 8, 32 or 64 bits: take `i32` or `u32`",
            ),
            (_, Val::Fold(fold)) => {
                let help = format!("cast the value: `{}(x as {name})`", fold.name());
                self.fold_refused(cast, format!("{} can't be cast to `{name}`", fold.describe()), help)
            }
            (_, value) => self.poison(
                cast,
                format!("{} can't be cast to `{name}`", value.describe()),
                "casts are between the types of numbers, `f64`, `f32`, `i32` and their like, and from bools to integers; other \
                 names of types can't be seen",
            ),
        }
    }

    /// A number as one of another type.
    pub(super) fn converted(&mut self, value: Val, ty: Type, tokens: &impl ToTokens) -> Val {
        let place = self.reporter.place(tokens);
        let wanted = self.types.known(ty);
        match value {
            Val::Integer(integer) => match IntType::of(ty) {
                Some(int) => Val::Integer(Integer::new(int.wrap(integer.value), Some(int))),
                None => {
                    // The cast rounds the integer once to the type named, as rustc does.
                    let value = match ty {
                        Type::F32 => Value::F32(integer.value as f32),
                        _ => Value::F64(integer.value as f64),
                    };
                    Val::Number(self.expr_of(ExprKind::Literal(value), wanted, place))
                }
            },
            Val::Truth(truth) => self.converted(Val::Integer(Integer::new(truth.into(), None)), ty, tokens),
            Val::Number(number) if self.types.get(self.types.exprs[number.index()]) == Some(ty) => Val::Number(number),
            Val::Number(number) => Val::Number(self.expr_of(ExprKind::Cast(number), wanted, place)),
            Val::Poison => Val::Poison,
            other => {
                let message = format!("{} can't be converted to `{ty}`", other.describe());
                self.poison(tokens, message, "numbers and bools can")
            }
        }
    }
}

/// Whether it is a literal, perhaps negated; rustc gives such an operand of a cast the type of the cast.
pub(super) fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Paren(inner) => is_literal(&inner.expr),
        Expr::Group(inner) => is_literal(&inner.expr),
        Expr::Unary(inner) => matches!(inner.op, syn::UnOp::Neg(_)) && is_literal(&inner.expr),
        _ => false,
    }
}
