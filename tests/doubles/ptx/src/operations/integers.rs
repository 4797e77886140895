//! Arithmetic of integers.

use super::{Extra, Operation, is_integer};
use crate::lanes::{Execute, Lanes, Operands, execute, one, three, two};
use crate::lanes::{with_integer, with_signed, with_unsigned};
use crate::types::{Family, Type};

pub(super) fn find(opcode: &[&str]) -> Option<Operation> {
    let (name, rest) = opcode.split_first()?;
    let (ty, modifiers) = rest.split_last()?;
    let ty = Type::parse(ty).filter(|ty| is_integer(*ty))?;
    let same = |sources, execute: Option<Execute>| Some(Operation::same(ty, sources, execute?));
    match (*name, modifiers) {
        ("add", []) => same(2, with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> T { a.wrapping_add(b) }))),
        ("sub", []) => same(2, with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> T { a.wrapping_sub(b) }))),
        ("mul", ["lo"]) => same(2, with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> T { a.wrapping_mul(b) }))),
        ("mad", ["lo"]) => same(
            3,
            with_unsigned!(ty.bytes, T => three!(|a: T, b: T, c: T| -> T { a.wrapping_mul(b).wrapping_add(c) })),
        ),
        ("mul", ["hi"]) => same(2, with_integer!(ty, T => two!(|a: T, b: T| -> T { high(a, b) }))),
        ("mad", ["hi"]) => {
            same(3, with_integer!(ty, T => three!(|a: T, b: T, c: T| -> T { high(a, b).wrapping_add(c) })))
        }
        ("mul" | "mad", ["wide"]) => wide(name, ty),
        // By zero PTX promises nothing; GPUs answer with ones, and with what was divided.
        ("div", []) => {
            same(2, with_integer!(ty, T => two!(|a: T, b: T| -> T { if b == 0 { !0 } else { a.wrapping_div(b) } })))
        }
        ("rem", []) => {
            same(2, with_integer!(ty, T => two!(|a: T, b: T| -> T { if b == 0 { a } else { a.wrapping_rem(b) } })))
        }
        ("min", []) => same(2, with_integer!(ty, T => two!(|a: T, b: T| -> T { a.min(b) }))),
        ("max", []) => same(2, with_integer!(ty, T => two!(|a: T, b: T| -> T { a.max(b) }))),
        ("sad", []) => {
            same(3, with_integer!(ty, T => three!(|a: T, b: T, c: T| -> T { c.wrapping_add(a.abs_diff(b) as T) })))
        }
        ("abs", []) if ty.family == Family::Signed => {
            same(1, with_signed!(ty.bytes, T => one!(|a: T| -> T { a.wrapping_abs() })))
        }
        ("neg", []) if ty.family == Family::Signed => {
            same(1, with_signed!(ty.bytes, T => one!(|a: T| -> T { a.wrapping_neg() })))
        }
        ("add" | "sub" | "addc" | "subc" | "mad" | "madc", _) => with_carry(name, modifiers, ty),
        _ => None,
    }
}

/// The upper half of a product.
trait High {
    fn high(self, other: Self) -> Self;
}

macro_rules! high {
    ($($T:ty as $Wide:ty;)*) => {
        $(impl High for $T {
            #[inline(always)]
            fn high(self, other: Self) -> Self {
                ((<$Wide>::from(self) * <$Wide>::from(other)) >> <$T>::BITS) as $T
            }
        })*
    };
}

high! { u16 as u32; i16 as i32; u32 as u64; i32 as i64; u64 as u128; i64 as i128; }

#[inline(always)]
fn high<T: High>(a: T, b: T) -> T {
    a.high(b)
}

/// Products of twice the size, with a sum or without.
fn wide(name: &str, ty: Type) -> Option<Operation> {
    let twice = Type { family: ty.family, bytes: 2 * ty.bytes };
    let is_sum = name == "mad";
    macro_rules! product {
        ($T:ty, $W:ty) => {
            if is_sum {
                three!(|a: $T, b: $T, c: $W| -> $W { (<$W>::from(a) * <$W>::from(b)).wrapping_add(c) })
            } else {
                two!(|a: $T, b: $T| -> $W { <$W>::from(a) * <$W>::from(b) })
            }
        };
    }
    let execute = match (ty.family, ty.bytes) {
        (Family::Signed, 2) => product!(i16, i32),
        (Family::Unsigned, 2) => product!(u16, u32),
        (Family::Signed, 4) => product!(i32, i64),
        (Family::Unsigned, 4) => product!(u32, u64),
        _ => return None,
    };
    let sources = if is_sum { vec![ty, ty, twice] } else { vec![ty, ty] };
    Some(Operation { result: twice, sources, execute, extra: Extra::Value(0) })
}

/// Sums that set the carry flag, use it, or both. `extra` is the slot of the flag.
fn with_carry(name: &str, modifiers: &[&str], ty: Type) -> Option<Operation> {
    let (half, sets) = match modifiers {
        [] => ("", false),
        ["cc"] => ("", true),
        [half @ ("lo" | "hi")] => (*half, false),
        [half @ ("lo" | "hi"), "cc"] => (*half, true),
        _ => return None,
    };
    let execute: Execute = match ty.bytes {
        4 => match (name, half, sets) {
            ("add", "", true) => execute!(|lanes, o| sum::<false, true, u32>(lanes, o, |a, b, _| (a, b))),
            ("addc", "", true) => execute!(|lanes, o| sum::<true, true, u32>(lanes, o, |a, b, _| (a, b))),
            ("addc", "", false) => execute!(|lanes, o| sum::<true, false, u32>(lanes, o, |a, b, _| (a, b))),
            ("sub", "", true) => execute!(|lanes, o| difference::<false, true, u32>(lanes, o)),
            ("subc", "", true) => execute!(|lanes, o| difference::<true, true, u32>(lanes, o)),
            ("subc", "", false) => execute!(|lanes, o| difference::<true, false, u32>(lanes, o)),
            ("mad", "lo", true) => {
                execute!(|lanes, o| sum::<false, true, u32>(lanes, o, |a, b, c| (a.wrapping_mul(b), c)))
            }
            ("madc", "lo", true) => {
                execute!(|lanes, o| sum::<true, true, u32>(lanes, o, |a, b, c| (a.wrapping_mul(b), c)))
            }
            ("madc", "lo", false) => {
                execute!(|lanes, o| sum::<true, false, u32>(lanes, o, |a, b, c| (a.wrapping_mul(b), c)))
            }
            ("mad", "hi", true) if ty.family == Family::Unsigned => {
                execute!(|lanes, o| sum::<false, true, u32>(lanes, o, |a, b, c| (high(a, b), c)))
            }
            ("madc", "hi", true) if ty.family == Family::Unsigned => {
                execute!(|lanes, o| sum::<true, true, u32>(lanes, o, |a, b, c| (high(a, b), c)))
            }
            ("madc", "hi", false) if ty.family == Family::Unsigned => {
                execute!(|lanes, o| sum::<true, false, u32>(lanes, o, |a, b, c| (high(a, b), c)))
            }
            _ => return None,
        },
        8 => match (name, half, sets) {
            ("add", "", true) => execute!(|lanes, o| sum::<false, true, u64>(lanes, o, |a, b, _| (a, b))),
            ("addc", "", true) => execute!(|lanes, o| sum::<true, true, u64>(lanes, o, |a, b, _| (a, b))),
            ("addc", "", false) => execute!(|lanes, o| sum::<true, false, u64>(lanes, o, |a, b, _| (a, b))),
            ("sub", "", true) => execute!(|lanes, o| difference::<false, true, u64>(lanes, o)),
            ("subc", "", true) => execute!(|lanes, o| difference::<true, true, u64>(lanes, o)),
            ("subc", "", false) => execute!(|lanes, o| difference::<true, false, u64>(lanes, o)),
            _ => return None,
        },
        _ => return None,
    };
    let sources = if name.starts_with("mad") { 3 } else { 2 };
    Some(Operation { extra: Extra::Carry, ..Operation::same(ty, sources, execute) })
}

/// Sums with their carries.
trait Carry: Copy + 'static {
    fn sum(self, other: Self, carry: bool) -> (Self, bool);
    fn difference(self, other: Self, borrow: bool) -> (Self, bool);
}

macro_rules! carry {
    ($($T:ty)*) => {
        $(impl Carry for $T {
            #[inline(always)]
            fn sum(self, other: Self, carry: bool) -> (Self, bool) {
                self.carrying_add(other, carry)
            }
            #[inline(always)]
            fn difference(self, other: Self, borrow: bool) -> (Self, bool) {
                self.borrowing_sub(other, borrow)
            }
        })*
    };
}

carry! { u32 u64 }

/// Writes the sum of the two numbers that `terms` makes of the sources.
///
/// # Safety
/// As for [`Execute`]; with `extra` the slot of a predicate. What isn't a third source is a slot all the same.
#[inline(always)]
unsafe fn sum<const USES: bool, const SETS: bool, T: Carry>(
    lanes: &Lanes,
    o: &Operands,
    terms: impl Fn(T, T, T) -> (T, T),
) {
    let flag = lanes.at::<u8>(o.extra as u32);
    let [a, b, c] = [o.a, o.b, o.c].map(|slot| lanes.at::<T>(slot));
    lanes.each(|lane| {
        // SAFETY: the slots have room for all lanes, says the caller.
        unsafe {
            let (x, y) = terms(a.add(lane).read(), b.add(lane).read(), c.add(lane).read());
            let (sum, carry) = x.sum(y, USES && flag.add(lane).read() != 0);
            lanes.at::<T>(o.d).add(lane).write(sum);
            if SETS {
                flag.add(lane).write(u8::from(carry));
            }
        }
    });
}

/// Writes the difference of the sources.
///
/// # Safety
/// As for [`sum`].
#[inline(always)]
unsafe fn difference<const USES: bool, const SETS: bool, T: Carry>(lanes: &Lanes, o: &Operands) {
    let flag = lanes.at::<u8>(o.extra as u32);
    let [a, b] = [o.a, o.b].map(|slot| lanes.at::<T>(slot));
    lanes.each(|lane| {
        // SAFETY: the slots have room for all lanes, says the caller.
        unsafe {
            let borrow = USES && flag.add(lane).read() != 0;
            let (difference, borrow) = a.add(lane).read().difference(b.add(lane).read(), borrow);
            lanes.at::<T>(o.d).add(lane).write(difference);
            if SETS {
                flag.add(lane).write(u8::from(borrow));
            }
        }
    });
}
