//! Bits: logic, shifts, counts and fields.

use super::{Extra, Operation, is_integer};
use crate::lanes::{Execute, execute, one, three, two, with_integer, with_signed, with_unsigned};
use crate::types::{Family, Type};

const U32: Type = Type { family: Family::Unsigned, bytes: 4 };
const PRED: Type = Type { family: Family::Pred, bytes: 1 };

pub(super) fn find(opcode: &[&str]) -> Option<Operation> {
    let (name, rest) = opcode.split_first()?;
    let (ty, modifiers) = rest.split_last()?;
    let ty = Type::parse(ty)?;
    if ty == PRED {
        return logic(name).filter(|_| modifiers.is_empty());
    }
    let is_bits = ty.family == Family::Bits;
    let same = |sources, execute: Option<Execute>| Some(Operation::same(ty, sources, execute?));
    let with = |result, sources: &[Type], execute: Option<Execute>| {
        Some(Operation { result, sources: sources.to_vec(), execute: execute?, extra: Extra::Value(0) })
    };
    match (*name, modifiers) {
        ("and", []) if is_bits => same(2, with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> T { a & b }))),
        ("or", []) if is_bits => same(2, with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> T { a | b }))),
        ("xor", []) if is_bits => same(2, with_unsigned!(ty.bytes, T => two!(|a: T, b: T| -> T { a ^ b }))),
        ("not", []) if is_bits => same(1, with_unsigned!(ty.bytes, T => one!(|a: T| -> T { !a }))),
        ("cnot", []) if is_bits => same(1, with_unsigned!(ty.bytes, T => one!(|a: T| -> T { T::from(a == 0) }))),
        ("shl", []) if is_bits => with(
            ty,
            &[ty, U32],
            with_unsigned!(ty.bytes, T => two!(|a: T, by: u32| -> T { if by < T::BITS { a << by } else { 0 } })),
        ),
        ("shr", []) if is_bits || is_integer(ty) => {
            let execute = if ty.family == Family::Signed {
                with_signed!(ty.bytes, T => two!(|a: T, by: u32| -> T { a >> by.min(T::BITS - 1) }))
            } else {
                with_unsigned!(ty.bytes, T => two!(|a: T, by: u32| -> T { if by < T::BITS { a >> by } else { 0 } }))
            };
            with(ty, &[ty, U32], execute)
        }
        ("popc", []) if is_bits => with(
            U32,
            &[ty],
            of_32_or_64(ty, |ty| with_unsigned!(ty.bytes, T => one!(|a: T| -> u32 { a.count_ones() }))),
        ),
        ("clz", []) if is_bits => with(
            U32,
            &[ty],
            of_32_or_64(ty, |ty| with_unsigned!(ty.bytes, T => one!(|a: T| -> u32 { a.leading_zeros() }))),
        ),
        ("brev", []) if is_bits => {
            same(1, of_32_or_64(ty, |ty| with_unsigned!(ty.bytes, T => one!(|a: T| -> T { a.reverse_bits() }))))
        }
        ("bfind", []) if is_integer(ty) => {
            with(U32, &[ty], of_32_or_64(ty, |ty| with_integer!(ty, T => one!(|a: T| -> u32 { highest(a) }))))
        }
        ("bfind", ["shiftamt"]) if is_integer(ty) => with(
            U32,
            &[ty],
            of_32_or_64(ty, |ty| {
                with_integer!(ty, T => one!(|a: T| -> u32 {
                    let at = highest(a);
                    if at == !0 { at } else { T::BITS - 1 - at }
                }))
            }),
        ),
        ("bfe", []) if is_integer(ty) => with(
            ty,
            &[ty, U32, U32],
            of_32_or_64(
                ty,
                |ty| with_integer!(ty, T => three!(|a: T, from: u32, length: u32| -> T { field(a, from, length) })),
            ),
        ),
        ("bfi", []) if is_bits => {
            let execute = match ty.bytes {
                4 => execute!(|lanes, o| inserted::<u32>(lanes, o)),
                8 => execute!(|lanes, o| inserted::<u64>(lanes, o)),
                _ => return None,
            };
            with(ty, &[ty, ty, U32, U32], Some(execute))
        }
        ("prmt", []) if ty.bytes == 4 && is_bits => {
            same(3, Some(three!(|a: u32, b: u32, selection: u32| -> u32 { permuted(a, b, selection) })))
        }
        ("shf", [way, how]) if ty.bytes == 4 && is_bits => same(3, funnel(way, how)),
        // Not for floats: a value is chosen, whatever it means.
        ("selp", []) if ty.bytes > 1 => with(
            ty,
            &[ty, ty, PRED],
            with_unsigned!(ty.bytes, T => three!(|a: T, b: T, p: u8| -> T { if p != 0 { a } else { b } })),
        ),
        _ => None,
    }
}

/// Logic of predicates.
fn logic(name: &str) -> Option<Operation> {
    let two = |execute| Some(Operation::same(PRED, 2, execute));
    match name {
        "and" => two(two!(|a: u8, b: u8| -> u8 { a & b })),
        "or" => two(two!(|a: u8, b: u8| -> u8 { a | b })),
        "xor" => two(two!(|a: u8, b: u8| -> u8 { a ^ b })),
        "not" => Some(Operation::same(PRED, 1, one!(|a: u8| -> u8 { a ^ 1 }))),
        _ => None,
    }
}

/// What `make` makes of a type of four or eight bytes.
fn of_32_or_64(ty: Type, make: impl Fn(Type) -> Option<Execute>) -> Option<Execute> {
    if ty.bytes >= 4 { make(ty) } else { None }
}

/// Integers whose bits are looked at.
trait Bits: Copy {
    const BITS: u32;
    const IS_SIGNED: bool;
    fn to_u64(self) -> u64;
    fn from_u64(bits: u64) -> Self;
}

macro_rules! bits {
    ($($T:ty as $Unsigned:ty, $signed:literal;)*) => {
        $(impl Bits for $T {
            const BITS: u32 = <$T>::BITS;
            const IS_SIGNED: bool = $signed;
            fn to_u64(self) -> u64 {
                u64::from(self as $Unsigned)
            }
            fn from_u64(bits: u64) -> Self {
                bits as $T
            }
        })*
    };
}

bits! {
    u16 as u16, false; i16 as u16, true;
    u32 as u32, false; i32 as u32, true;
    u64 as u64, false; i64 as u64, true;
}

/// The place of the highest bit that is not the sign's; all ones where there is none.
fn highest<T: Bits>(a: T) -> u32 {
    let bits = a.to_u64();
    let is_negative = T::IS_SIGNED && bits >> (T::BITS - 1) & 1 == 1;
    let ones = if is_negative { !bits & (!0 >> (64 - T::BITS)) } else { bits };
    if ones == 0 { !0 } else { 63 - ones.leading_zeros() }
}

/// So many bits from a place on; of signed integers the field's highest bit is its sign.
fn field<T: Bits>(a: T, from: u32, length: u32) -> T {
    let (from, length) = (from & 0xff, length & 0xff);
    let bits = a.to_u64();
    let top = T::BITS - 1;
    let sign = if !T::IS_SIGNED || length == 0 { 0 } else { bits >> (from + length - 1).min(top) & 1 };
    let taken = length.min(T::BITS.saturating_sub(from));
    let low = if taken == 0 { 0 } else { bits >> from & (!0 >> (64 - taken)) };
    let above = if taken == 64 { 0 } else { sign.wrapping_neg() << taken };
    T::from_u64(low | above)
}

/// The lowest bits of `a` put into `b`: operands `a`, `b`, the place and, in `extra`, the slot of the length.
///
/// # Safety
/// As for [`Execute`].
unsafe fn inserted<T: Bits>(lanes: &crate::lanes::Lanes, o: &crate::lanes::Operands) {
    lanes.each(|lane| {
        // SAFETY: the slots have room for all lanes, says the caller.
        unsafe {
            let [a, b] = [o.a, o.b].map(|slot| lanes.at::<T>(slot).add(lane).read().to_u64());
            let [from, length] = [o.c, o.extra as u32].map(|slot| lanes.at::<u32>(slot).add(lane).read() & 0xff);
            let taken = length.min(T::BITS.saturating_sub(from));
            let mask = if taken == 0 { 0 } else { (!0u64 >> (64 - taken)) << from };
            let shifted = if from < 64 { a << from } else { 0 };
            lanes.at::<T>(o.d).add(lane).write(T::from_u64(b & !mask | shifted & mask));
        }
    });
}

/// Bytes of `a` and `b` chosen by four digits, of which the highest bit asks for copies of the sign.
fn permuted(a: u32, b: u32, selection: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let chosen = [0, 1, 2, 3].map(|place| {
        let digit = selection >> (4 * place) & 0xf;
        let byte = bytes[digit as usize & 7];
        if digit & 8 == 0 { byte } else { (byte.cast_signed() >> 7).cast_unsigned() }
    });
    u32::from_le_bytes(chosen)
}

/// Shifts of 64 bits, `a` the lower half and `b` the upper one.
fn funnel(way: &str, how: &str) -> Option<Execute> {
    Some(match (way, how) {
        ("l", "wrap") => three!(|a: u32, b: u32, by: u32| -> u32 { ((join(a, b) << (by & 31)) >> 32) as u32 }),
        ("r", "wrap") => three!(|a: u32, b: u32, by: u32| -> u32 { (join(a, b) >> (by & 31)) as u32 }),
        ("l", "clamp") => three!(|a: u32, b: u32, by: u32| -> u32 { ((join(a, b) << by.min(32)) >> 32) as u32 }),
        ("r", "clamp") => three!(|a: u32, b: u32, by: u32| -> u32 { (join(a, b) >> by.min(32)) as u32 }),
        _ => return None,
    })
}

#[inline(always)]
fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
