//! Comparisons.

use super::is_integer;
use crate::lanes::{Execute, two, with_float, with_integer, with_unsigned};
use crate::types::{Family, Type};

/// What writes whether `a` and `b` of a type are related as `relation` says.
pub(crate) fn find(relation: &str, ty: Type) -> Option<Execute> {
    match ty.family {
        Family::Float => floats(relation, ty),
        Family::Bits => bits(relation, ty),
        Family::Signed | Family::Unsigned => integers(relation, ty),
        Family::Pred => None,
    }
}

fn bits(relation: &str, ty: Type) -> Option<Execute> {
    match relation {
        "eq" => with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> u8 { u8::from(a == b) })),
        "ne" => with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> u8 { u8::from(a != b) })),
        _ => None,
    }
}

fn integers(relation: &str, ty: Type) -> Option<Execute> {
    let is_unsigned = is_integer(ty) && ty.family == Family::Unsigned;
    match relation {
        "eq" | "ne" => bits(relation, ty),
        "lt" => with_integer!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a < b) })),
        "le" => with_integer!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a <= b) })),
        "gt" => with_integer!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a > b) })),
        "ge" => with_integer!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a >= b) })),
        "lo" if is_unsigned => integers("lt", ty),
        "ls" if is_unsigned => integers("le", ty),
        "hi" if is_unsigned => integers("gt", ty),
        "hs" if is_unsigned => integers("ge", ty),
        _ => None,
    }
}

/// With a `u` behind it, a relation also holds if one of the two is not a number.
fn floats(relation: &str, ty: Type) -> Option<Execute> {
    match relation {
        "eq" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a == b) })),
        "ne" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a != b && !a.is_nan() && !b.is_nan()) })),
        "lt" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a < b) })),
        "le" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a <= b) })),
        "gt" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a > b) })),
        "ge" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a >= b) })),
        "equ" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a == b || a.is_nan() || b.is_nan()) })),
        "neu" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a != b) })),
        "ltu" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { 1 - u8::from(a >= b) })),
        "leu" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { 1 - u8::from(a > b) })),
        "gtu" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { 1 - u8::from(a <= b) })),
        "geu" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { 1 - u8::from(a < b) })),
        "num" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(!a.is_nan() && !b.is_nan()) })),
        "nan" => with_float!(ty, T => two!(|a: T, b: T| -> u8 { u8::from(a.is_nan() || b.is_nan()) })),
        _ => None,
    }
}
