//! Arithmetic of floats.
//!
//! Of f32, a result that is not a number has PTX's own bits; of f64 it has the CPU's, which are NVIDIA's too where nothing
//! that is not a number went in. The functions that PTX defines approximately (`ex2`, `lg2`, `sin`, `cos`, `tanh`, `rsqrt`
//! and the approximate `rcp`, `div` and `sqrt`) are computed in f64 and rounded: not the bits of a GPU.

use super::rounding::{Rounding, fused_f32, narrowed, sum_f64};
use super::{Extra, Operation};
use crate::lanes::{Execute, execute, one, three, two, with_float};
use crate::types::{Family, Type};

/// What is done with a value beside the operation, as bits of `extra`: the lowest two hold the rounding.
const FLUSHES: u64 = 4;
const SATURATES: u64 = 8;

/// The modifiers between an opcode's name and its type.
struct Modifiers {
    rounding: Option<Rounding>,
    approximate: bool,
    /// Bits of `extra`.
    flags: u64,
}

impl Modifiers {
    /// In the order in which PTX wants them.
    fn parse(words: &[&str]) -> Option<Modifiers> {
        let mut words = words.iter().copied().peekable();
        let approximate = words.next_if(|word| matches!(*word, "approx" | "full")).is_some();
        let rounding = words.next_if(|word| Rounding::parse(word).is_some()).and_then(Rounding::parse);
        let mut flags = rounding.map_or(0, Rounding::number);
        flags |= if words.next_if_eq(&"ftz").is_some() { FLUSHES } else { 0 };
        flags |= if words.next_if_eq(&"sat").is_some() { SATURATES } else { 0 };
        if words.next().is_some() { None } else { Some(Modifiers { rounding, approximate, flags }) }
    }
}

pub(super) fn find(opcode: &[&str]) -> Option<Operation> {
    let (name, rest) = opcode.split_first()?;
    let (ty, words) = rest.split_last()?;
    let ty = Type::parse(ty)?;
    if *name == "copysign" && ty.family == Family::Float && words.is_empty() {
        return Some(Operation::same(ty, 2, with_float!(ty, T => two!(|a: T, b: T| -> T { b.copysign(a) }))?));
    }
    if *name == "testp" {
        let [test] = words else { return None };
        let result = Type { family: Family::Pred, bytes: 1 };
        return Some(Operation { result, sources: vec![ty], execute: tested(test, ty)?, extra: Extra::Value(0) });
    }
    if matches!(*name, "min" | "max") && words.last() == Some(&"NaN") {
        let modifiers = Modifiers::parse(&words[..words.len() - 1])?;
        return (modifiers.flags == 0 && modifiers.rounding.is_none() && !modifiers.approximate)
            .then(|| Some(Operation::same(ty, 2, strict_extreme(name, ty)?)))?;
    }
    let modifiers = Modifiers::parse(words)?;
    let sources = match *name {
        "add" | "sub" | "mul" | "div" | "min" | "max" => 2,
        "fma" | "mad" => 3,
        _ => 1,
    };
    let execute = match (ty.family, ty.bytes) {
        (Family::Float, 8) => of_f64(name, &modifiers)?,
        (Family::Float, 4) => of_f32(name, &modifiers)?,
        _ => return None,
    };
    Some(Operation { extra: Extra::Value(modifiers.flags), ..Operation::same(ty, sources, execute) })
}

fn of_f64(name: &str, modifiers: &Modifiers) -> Option<Execute> {
    let is_flushed = modifiers.flags == FLUSHES && modifiers.rounding.is_none();
    // Only rough first guesses are flushed.
    match (name, modifiers.approximate, is_flushed) {
        ("rcp", true, true) => return Some(one!(|a: f64| -> f64 { rough(1.0 / flushed_f64(a)) })),
        ("rsqrt", true, true) => return Some(one!(|a: f64| -> f64 { rough(1.0 / flushed_f64(a).sqrt()) })),
        ("rsqrt", true, false) if modifiers.flags == 0 => return Some(one!(|a: f64| -> f64 { 1.0 / a.sqrt() })),
        _ => {}
    }
    if modifiers.approximate || modifiers.flags & !3 != 0 {
        return None;
    }
    let nearest = matches!(modifiers.rounding, None | Some(Rounding::Nearest));
    Some(match (name, modifiers.rounding) {
        ("add", _) if nearest => two!(|a: f64, b: f64| -> f64 { a + b }),
        ("sub", _) if nearest => two!(|a: f64, b: f64| -> f64 { a - b }),
        ("add", _) => execute!(|lanes, o| {
            let rounding = Rounding::of_number(o.extra);
            lanes.two(o, |a: f64, b: f64| sum_f64(a, b, rounding))
        }),
        ("sub", _) => execute!(|lanes, o| {
            let rounding = Rounding::of_number(o.extra);
            lanes.two(o, |a: f64, b: f64| sum_f64(a, -b, rounding))
        }),
        ("mul", _) if nearest => two!(|a: f64, b: f64| -> f64 { a * b }),
        ("fma", Some(Rounding::Nearest)) => three!(|a: f64, b: f64, c: f64| -> f64 { a.mul_add(b, c) }),
        ("div", Some(Rounding::Nearest)) => two!(|a: f64, b: f64| -> f64 { a / b }),
        ("rcp", Some(Rounding::Nearest)) => one!(|a: f64| -> f64 { 1.0 / a }),
        ("sqrt", Some(Rounding::Nearest)) => one!(|a: f64| -> f64 { a.sqrt() }),
        ("abs", None) => one!(|a: f64| -> f64 { a.abs() }),
        ("neg", None) => one!(|a: f64| -> f64 { -a }),
        ("min", None) => two!(|a: f64, b: f64| -> f64 { least_f64(a, b) }),
        ("max", None) => two!(|a: f64, b: f64| -> f64 { -least_f64(-a, -b) }),
        _ => return None,
    })
}

/// A function of f32 with what its modifiers ask for before and after it; `$rounding` is what they say about rounding.
macro_rules! f32_function {
    ($modifiers:expr, $way:ident, |$($a:ident),+| $rounding:ident, $body:expr) => {
        if $modifiers.flags == 0 {
            execute!(|lanes, o| lanes.$way(o, |$($a: f32),+| {
                let $rounding = Rounding::Nearest;
                let _ = $rounding;
                canonical($body)
            }))
        } else {
            execute!(|lanes, o| {
                let flags = o.extra;
                let $rounding = Rounding::of_number(flags);
                let _ = $rounding;
                lanes.$way(o, |$($a: f32),+| {
                    $(let $a = flushed_if(flags, $a);)+
                    saturated_if(flags, flushed_if(flags, canonical($body)))
                })
            })
        }
    };
}

fn of_f32(name: &str, modifiers: &Modifiers) -> Option<Execute> {
    let saturates = modifiers.flags & SATURATES != 0;
    let nearest = matches!(modifiers.rounding, None | Some(Rounding::Nearest));
    let is_plain = modifiers.rounding.is_none() && !modifiers.approximate;
    let allows = match name {
        "add" | "sub" => !modifiers.approximate,
        "mul" => !modifiers.approximate,
        "fma" => modifiers.rounding.is_some() && !modifiers.approximate,
        "div" | "rcp" | "sqrt" => {
            (modifiers.approximate != (modifiers.rounding == Some(Rounding::Nearest))) && !saturates
        }
        "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => {
            modifiers.approximate && modifiers.rounding.is_none() && !saturates
        }
        "abs" | "neg" | "min" | "max" => is_plain && !saturates,
        _ => false,
    };
    if !allows {
        return None;
    }
    Some(match name {
        "add" if nearest => f32_function!(modifiers, two, |a, b| _r, a + b),
        "sub" if nearest => f32_function!(modifiers, two, |a, b| _r, a - b),
        "mul" if nearest => f32_function!(modifiers, two, |a, b| _r, a * b),
        "fma" if nearest => f32_function!(modifiers, three, |a, b, c| _r, a.mul_add(b, c)),
        "add" => f32_function!(modifiers, two, |a, b| rounding, fused_f32(a, 1.0, b, rounding)),
        "sub" => f32_function!(modifiers, two, |a, b| rounding, fused_f32(a, 1.0, -b, rounding)),
        "mul" => {
            f32_function!(modifiers, two, |a, b| rounding, narrowed(f64::from(a) * f64::from(b), rounding))
        }
        "fma" => f32_function!(modifiers, three, |a, b, c| rounding, fused_f32(a, b, c, rounding)),
        "div" => f32_function!(modifiers, two, |a, b| _r, a / b),
        "rcp" => f32_function!(modifiers, one, |a| _r, 1.0 / a),
        "sqrt" => f32_function!(modifiers, one, |a| _r, a.sqrt()),
        "rsqrt" => f32_function!(modifiers, one, |a| _r, (1.0 / f64::from(a).sqrt()) as f32),
        "ex2" => f32_function!(modifiers, one, |a| _r, f64::from(a).exp2() as f32),
        "lg2" => f32_function!(modifiers, one, |a| _r, f64::from(a).log2() as f32),
        "sin" => f32_function!(modifiers, one, |a| _r, f64::from(a).sin() as f32),
        "cos" => f32_function!(modifiers, one, |a| _r, f64::from(a).cos() as f32),
        "tanh" => f32_function!(modifiers, one, |a| _r, f64::from(a).tanh() as f32),
        "abs" if modifiers.flags == 0 => one!(|a: f32| -> f32 { a.abs() }),
        "neg" if modifiers.flags == 0 => one!(|a: f32| -> f32 { -a }),
        "abs" => f32_function!(modifiers, one, |a| _r, a.abs()),
        "neg" => f32_function!(modifiers, one, |a| _r, -a),
        "min" => f32_function!(modifiers, two, |a, b| _r, least_f32(a, b)),
        "max" => f32_function!(modifiers, two, |a, b| _r, -least_f32(-a, -b)),
        _ => return None,
    })
}

/// The bits of every f32 result that is not a number.
#[inline(always)]
fn canonical(a: f32) -> f32 {
    if a.is_nan() { f32::from_bits(0x7fff_ffff) } else { a }
}

/// A subnormal number becomes a zero with its sign.
#[inline(always)]
pub(super) fn flushed(a: f32) -> f32 {
    if a.is_subnormal() { 0f32.copysign(a) } else { a }
}

#[inline(always)]
fn flushed_if(flags: u64, a: f32) -> f32 {
    if flags & FLUSHES != 0 { flushed(a) } else { a }
}

#[inline(always)]
fn saturated_if(flags: u64, a: f32) -> f32 {
    if flags & SATURATES != 0 { saturated(f64::from(a)) as f32 } else { a }
}

/// Between 0 and 1, and 0 for what is not a number.
#[inline(always)]
pub(super) fn saturated(a: f64) -> f64 {
    if a > 0.0 { a.min(1.0) } else { 0.0 }
}

#[inline(always)]
fn flushed_f64(a: f64) -> f64 {
    if a.is_subnormal() { 0f64.copysign(a) } else { a }
}

/// The upper half of a float, to the nearest, as the rough functions of f64 leave it.
#[inline(always)]
fn rough(a: f64) -> f64 {
    if !a.is_finite() {
        return a;
    }
    flushed_f64(f64::from_bits((a.to_bits() + 0x8000_0000) & !0xffff_ffff))
}

/// The smaller one, or the one that is a number; -0 is below 0.
#[inline(always)]
fn least_f64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        // A quiet one with the canonical bits, if both are none.
        return if b.is_nan() { f64::from_bits(0x7fff_ffff_ffff_ffff) } else { b };
    }
    let is_first = a < b || (a == b && a.is_sign_negative()) || b.is_nan();
    if is_first { a } else { b }
}

#[inline(always)]
fn least_f32(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        return b;
    }
    let is_first = a < b || (a == b && a.is_sign_negative()) || b.is_nan();
    if is_first { a } else { b }
}

/// The smaller or larger one, and not a number if one is none.
fn strict_extreme(name: &str, ty: Type) -> Option<Execute> {
    Some(match (name, ty.family, ty.bytes) {
        ("min", Family::Float, 4) => {
            two!(|a: f32, b: f32| -> f32 {
                canonical(if a.is_nan() {
                    a
                } else if b.is_nan() {
                    b
                } else {
                    least_f32(a, b)
                })
            })
        }
        ("max", Family::Float, 4) => {
            two!(|a: f32, b: f32| -> f32 {
                canonical(if a.is_nan() {
                    a
                } else if b.is_nan() {
                    b
                } else {
                    -least_f32(-a, -b)
                })
            })
        }
        _ => return None,
    })
}

/// Whether a float is of some kind.
fn tested(test: &str, ty: Type) -> Option<Execute> {
    match test {
        "finite" => with_float!(ty, T => one!(|a: T| -> u8 { u8::from(a.is_finite()) })),
        "infinite" => with_float!(ty, T => one!(|a: T| -> u8 { u8::from(a.is_infinite()) })),
        "number" => with_float!(ty, T => one!(|a: T| -> u8 { u8::from(!a.is_nan()) })),
        "notanumber" => with_float!(ty, T => one!(|a: T| -> u8 { u8::from(a.is_nan()) })),
        "normal" => with_float!(ty, T => one!(|a: T| -> u8 { u8::from(a.is_normal()) })),
        "subnormal" => with_float!(ty, T => one!(|a: T| -> u8 { u8::from(a.is_subnormal()) })),
        _ => None,
    }
}
