//! Integers that are known at compile time.

use quote::ToTokens;

use super::Front;
use super::scope::{IntType, Integer, Val};
use crate::ir::Binary;

/// What an integer of unknown type may be.
const WIDEST: IntType = IntType { bits: 64, signed: true };

impl Front {
    /// An integer result; reports overflow as rustc would panic or refuse.
    pub(super) fn integer(
        &mut self,
        value: Option<i128>,
        ty: Option<IntType>,
        tokens: &(impl ToTokens + ?Sized),
    ) -> Val {
        match value {
            Some(value) if ty.unwrap_or(WIDEST).holds(value) => Val::Integer(Integer::new(value, ty)),
            Some(_) | None => self.poison(tokens, "this integer overflows", "keep integers within their type"),
        }
    }

    /// An operation on two known integers.
    pub(super) fn integers(&mut self, op: Binary, a: Integer, b: Integer, tokens: &dyn ToTokens) -> Val {
        match self.integers_of(op, a, b, tokens) {
            Val::Integer(integer) => Val::Integer(Integer { quotient: a.quotient.or(b.quotient), ..integer }),
            other => other,
        }
    }

    fn integers_of(&mut self, op: Binary, a: Integer, b: Integer, tokens: &dyn ToTokens) -> Val {
        let ty = a.ty.or(b.ty);
        let (x, y) = (a.value, b.value);
        if y == 0 && matches!(op, Binary::Rem | Binary::Div) {
            return self.poison(tokens, "division by zero", "the divisor is known at compile time; check it");
        }
        if matches!(op, Binary::Shl | Binary::Shr) && !(0..i128::from(a.ty.unwrap_or(WIDEST).bits)).contains(&y) {
            let message = format!("a shift by {y} is outside of the integer");
            return self.poison(tokens, message, "shift by less than the number of its bits");
        }
        match op {
            Binary::Add => self.integer(x.checked_add(y), ty, tokens),
            Binary::Sub => self.integer(x.checked_sub(y), ty, tokens),
            Binary::Mul => self.integer(x.checked_mul(y), ty, tokens),
            Binary::Div => self.integer(x.checked_div(y), ty, tokens),
            Binary::Rem => self.integer(x.checked_rem(y), ty, tokens),
            Binary::BitAnd => self.integer(Some(x & y), ty, tokens),
            Binary::BitOr => self.integer(Some(x | y), ty, tokens),
            Binary::BitXor => self.integer(Some(x ^ y), ty, tokens),
            Binary::Shl => {
                let shifted = x << y;
                self.integer(Some(a.ty.map_or(shifted, |ty| ty.wrap(shifted))), a.ty, tokens)
            }
            Binary::Shr => self.integer(Some(x >> y), a.ty, tokens),
            Binary::Lt => Val::Truth(x < y),
            Binary::Le => Val::Truth(x <= y),
            Binary::Gt => Val::Truth(x > y),
            Binary::Ge => Val::Truth(x >= y),
            Binary::Eq => Val::Truth(x == y),
            Binary::Ne => Val::Truth(x != y),
            Binary::And | Binary::Or => self.poison(
                tokens,
                format!("`{}` of two integers", op.symbol()),
                "compare them first: `i != 0 && j != 0`",
            ),
        }
    }

    /// The method `name` of known integers; `None` when there is no such method.
    pub(super) fn integer_method(
        &mut self,
        name: &str,
        a: Integer,
        rest: &[Integer],
        tokens: &dyn ToTokens,
    ) -> Option<Val> {
        let x = a.value;
        let ty = rest.iter().fold(a.ty, |ty, other| ty.or(other.ty));
        let wrapped = |value: i128| ty.map_or(value, |ty| ty.wrap(value));
        let value = match (name, rest) {
            ("abs", []) => Some(x.abs()),
            ("signum", []) => Some(x.signum()),
            ("min", [b]) => Some(x.min(b.value)),
            ("max", [b]) => Some(x.max(b.value)),
            ("clamp", [low, high]) => Some(x.max(low.value).min(high.value)),
            ("rem_euclid", [b]) if b.value != 0 => x.checked_rem_euclid(b.value),
            ("div_euclid", [b]) if b.value != 0 => x.checked_div_euclid(b.value),
            ("abs_diff", [b]) => Some((x - b.value).abs()),
            ("wrapping_add", [b]) => Some(wrapped(x + b.value)),
            ("wrapping_sub", [b]) => Some(wrapped(x - b.value)),
            ("wrapping_mul", [b]) => x.checked_mul(b.value).map(wrapped),
            ("pow", [b]) => {
                let power = u32::try_from(b.value).ok().and_then(|b| x.checked_pow(b));
                return Some(self.integer(power, a.ty, tokens));
            }
            ("div_ceil", [b]) if b.value > 0 && x >= 0 => Some(x.div_euclid(b.value) + i128::from(x % b.value != 0)),
            ("saturating_add" | "saturating_sub", [b]) => {
                let (low, high) = ty.unwrap_or(IntType { bits: 32, signed: true }).range();
                Some(if name == "saturating_add" { x + b.value } else { x - b.value }.clamp(low, high))
            }
            ("is_multiple_of", [b]) if ty.is_none_or(|ty| !ty.signed) => {
                return Some(Val::Truth(if b.value == 0 { x == 0 } else { x % b.value == 0 }));
            }
            ("is_power_of_two", []) if ty.is_none_or(|ty| !ty.signed) => {
                return Some(Val::Truth(x > 0 && x & (x - 1) == 0));
            }
            _ => return None,
        };
        let unsigned = |ty: IntType| IntType { signed: false, ..ty };
        let ty = if name == "abs_diff" { ty.map(unsigned) } else { ty };
        Some(self.integer(value, ty, tokens))
    }
}
