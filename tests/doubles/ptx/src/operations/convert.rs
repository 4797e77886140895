//! Conversions, and moves between registers of different sizes.

use super::floats::{flushed, saturated};
use super::rounding::{Rounding, f32_of, f64_of, narrowed};
use crate::lanes::{Execute, Lanes, Operands, execute, one, with_float, with_integer};
use crate::types::{Family, Type};

/// What `cvt` does to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conversion {
    from: Type,
    to: Type,
    rounding: Rounding,
    /// Whether a float becomes a whole number.
    is_whole: bool,
    flushes: bool,
    saturates: bool,
}

/// What a conversion does, and `extra` for it. `from` and `to` are the bytes of the registers.
pub(crate) fn find(opcode: &[&str], from: usize, to: usize) -> Option<(Execute, u64)> {
    let ["cvt", modifiers @ .., into, of] = opcode else { return None };
    let (into, of) = (Type::parse(into)?, Type::parse(of)?);
    let is_number = |ty: Type| matches!(ty.family, Family::Signed | Family::Unsigned | Family::Float);
    if !is_number(into) || !is_number(of) || from < of.bytes || to < into.bytes {
        return None;
    }
    let mut words = modifiers.iter().copied().peekable();
    let rounding = words.next_if(|word| {
        let plain = word.strip_suffix('i').unwrap_or(word);
        Rounding::parse(plain).is_some()
    });
    let is_whole = rounding.is_some_and(|word| word.ends_with('i'));
    let rounding = rounding.and_then(|word| Rounding::parse(word.trim_end_matches('i')));
    let flushes = words.next_if_eq(&"ftz").is_some();
    let saturates = words.next_if_eq(&"sat").is_some();
    let (is_float, was_float) = (into.family == Family::Float, of.family == Family::Float);
    let needs_rounding = match (was_float, is_float) {
        (false, false) => false,
        (true, false) | (false, true) => true,
        (true, true) => into.bytes < of.bytes,
    };
    // Floats of the same size may become whole; whatever else loses something must say how.
    let is_right = match (was_float, is_float) {
        (false, false) => rounding.is_none(),
        (true, false) => rounding.is_some() && is_whole,
        (false, true) => rounding.is_some() && !is_whole,
        (true, true) if into == of => rounding.is_some() == is_whole,
        (true, true) => rounding.is_some() == needs_rounding && !is_whole,
    };
    if words.next().is_some() || !is_right || (flushes && !(was_float && is_float)) {
        return None;
    }
    let conversion = Conversion {
        from: of,
        to: into,
        rounding: rounding.unwrap_or(Rounding::Nearest),
        is_whole,
        flushes,
        saturates,
    };
    let usual = if from == of.bytes && to == into.bytes { usual(&conversion) } else { None };
    let general = execute!(|lanes, o| convert_all(lanes, o));
    Some((usual.unwrap_or(general), conversion.packed(from, to)))
}

/// The conversions that vectors do well.
fn usual(conversion: &Conversion) -> Option<Execute> {
    let Conversion { from, to, rounding, is_whole, flushes, saturates } = *conversion;
    if flushes || saturates {
        return None;
    }
    let nearest = rounding == Rounding::Nearest;
    match (from.family, to.family) {
        (Family::Float, Family::Float) if is_whole => match rounding {
            Rounding::Nearest => with_float!(from, T => one!(|a: T| -> T { a.round_ties_even() })),
            Rounding::Zero => with_float!(from, T => one!(|a: T| -> T { a.trunc() })),
            Rounding::Down => with_float!(from, T => one!(|a: T| -> T { a.floor() })),
            Rounding::Up => with_float!(from, T => one!(|a: T| -> T { a.ceil() })),
        },
        (Family::Float, Family::Float) if from == to => with_float!(from, T => one!(|a: T| -> T { a })),
        (Family::Float, Family::Float) if from.bytes == 4 => Some(one!(|a: f32| -> f64 { f64::from(a) })),
        (Family::Float, Family::Float) if nearest => Some(one!(|a: f64| -> f32 { a as f32 })),
        (Family::Float, _) => None,
        (_, Family::Float) if !nearest => None,
        (_, Family::Float) if to.bytes == 4 => with_integer!(from, T => one!(|a: T| -> f32 { a as f32 })),
        (_, Family::Float) => with_integer!(from, T => one!(|a: T| -> f64 { a as f64 })),
        (..) => match to.bytes {
            2 => with_integer!(from, T => one!(|a: T| -> u16 { a as u16 })),
            4 => with_integer!(from, T => one!(|a: T| -> u32 { a as u32 })),
            8 => with_integer!(from, T => one!(|a: T| -> u64 { a as u64 })),
            _ => None,
        },
    }
}

const FAMILIES: [Family; 3] = [Family::Signed, Family::Unsigned, Family::Float];

impl Conversion {
    /// All in one number, together with the bytes of the registers.
    fn packed(&self, from: usize, to: usize) -> u64 {
        let family = |family| FAMILIES.iter().position(|known| *known == family).unwrap_or(0);
        let flags = u64::from(self.is_whole) | u64::from(self.flushes) << 1 | u64::from(self.saturates) << 2;
        let bytes = [family(self.from.family), self.from.bytes, family(self.to.family), self.to.bytes, from, to];
        let bytes = bytes.iter().enumerate().fold(0, |all, (place, part)| all | (*part as u64) << (8 * place));
        bytes | flags << 48 | self.rounding.number() << 56
    }

    fn unpacked(packed: u64) -> (Conversion, usize, usize) {
        let byte = |place: usize| (packed >> (8 * place)) as usize & 0xff;
        let ty = |place: usize| Type { family: FAMILIES[byte(place) % 3], bytes: byte(place + 1) };
        let flag = |bit: usize| byte(6) >> bit & 1 == 1;
        let conversion = Conversion {
            from: ty(0),
            to: ty(2),
            rounding: Rounding::of_number(byte(7) as u64),
            is_whole: flag(0),
            flushes: flag(1),
            saturates: flag(2),
        };
        (conversion, byte(4), byte(5))
    }

    /// Of the value in the lowest bits; the result is extended to 64 bits according to its type.
    fn of(&self, bits: u64) -> u64 {
        match (self.from.family, self.to.family) {
            (Family::Float, Family::Float) => self.float_of_float(self.float(bits)),
            (Family::Float, _) => self.integer_of_float(self.float(bits)),
            (_, Family::Float) if self.to.bytes == 4 => {
                let value = f32_of(extended(bits, self.from), self.rounding);
                u64::from(if self.saturates { saturated(f64::from(value)) as f32 } else { value }.to_bits())
            }
            (_, Family::Float) => {
                let value = f64_of(extended(bits, self.from), self.rounding);
                if self.saturates { saturated(value) } else { value }.to_bits()
            }
            (..) => {
                let value = extended(bits, self.from);
                let value = if self.saturates { value.clamp(least(self.to), largest(self.to)) } else { value };
                extended(value as u64, self.to) as u64
            }
        }
    }

    /// The float in the lowest bits.
    fn float(&self, bits: u64) -> f64 {
        if self.from.bytes == 8 {
            return f64::from_bits(bits);
        }
        let value = f32::from_bits(bits as u32);
        f64::from(if self.flushes { flushed(value) } else { value })
    }

    fn whole(&self, value: f64) -> f64 {
        match self.rounding {
            Rounding::Nearest => value.round_ties_even(),
            Rounding::Zero => value.trunc(),
            Rounding::Down => value.floor(),
            Rounding::Up => value.ceil(),
        }
    }

    fn float_of_float(&self, value: f64) -> u64 {
        let value = if self.is_whole { self.whole(value) } else { value };
        let value = if self.saturates { saturated(value) } else { value };
        if self.to.bytes == 8 {
            return value.to_bits();
        }
        let value = narrowed(value, self.rounding);
        u64::from(if self.flushes { flushed(value) } else { value }.to_bits())
    }

    /// What is beyond the range becomes its end. What is not a number becomes 0, or the highest bit alone if one of the two
    /// types has 64 bits.
    fn integer_of_float(&self, value: f64) -> u64 {
        if value.is_nan() {
            let is_long = self.from.bytes == 8 || self.to.bytes == 8;
            return if is_long { extended(1 << (self.to.bits() - 1), self.to) as u64 } else { 0 };
        }
        // No f64 is beyond an i128 by less than the infinities are.
        (self.whole(value) as i128).clamp(least(self.to), largest(self.to)) as u64
    }
}

/// The integer in the lowest bits.
fn extended(bits: u64, ty: Type) -> i128 {
    let unused = 64 - ty.bits();
    if ty.family == Family::Signed {
        i128::from((bits << unused).cast_signed() >> unused)
    } else {
        i128::from(bits << unused >> unused)
    }
}

fn least(ty: Type) -> i128 {
    if ty.family == Family::Signed { -(1 << (ty.bits() - 1)) } else { 0 }
}

fn largest(ty: Type) -> i128 {
    if ty.family == Family::Signed { (1 << (ty.bits() - 1)) - 1 } else { (1 << ty.bits()) - 1 }
}

/// Converts as `extra` says.
///
/// # Safety
/// As for [`Execute`].
unsafe fn convert_all(lanes: &Lanes, o: &Operands) {
    let (conversion, from, to) = Conversion::unpacked(o.extra);
    // SAFETY: the slots have room for all lanes, says the caller.
    lanes.each(|lane| unsafe { write(lanes, o.d, to, lane, conversion.of(read(lanes, o.a, from, lane))) });
}

/// The bits of one lane of a register of so many bytes.
///
/// # Safety
/// The slot has room for values of so many bytes.
#[inline(always)]
unsafe fn read(lanes: &Lanes, slot: u32, bytes: usize, lane: usize) -> u64 {
    // SAFETY: the caller says that there is room.
    unsafe {
        match bytes {
            1 => u64::from(lanes.at::<u8>(slot).add(lane).read()),
            2 => u64::from(lanes.at::<u16>(slot).add(lane).read()),
            4 => u64::from(lanes.at::<u32>(slot).add(lane).read()),
            _ => lanes.at::<u64>(slot).add(lane).read(),
        }
    }
}

/// Writes the lowest bits to one lane of a register of so many bytes.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
unsafe fn write(lanes: &Lanes, slot: u32, bytes: usize, lane: usize, bits: u64) {
    // SAFETY: the caller says that there is room.
    unsafe {
        match bytes {
            1 => lanes.at::<u8>(slot).add(lane).write(bits as u8),
            2 => lanes.at::<u16>(slot).add(lane).write(bits as u16),
            4 => lanes.at::<u32>(slot).add(lane).write(bits as u32),
            _ => lanes.at::<u64>(slot).add(lane).write(bits),
        }
    }
}

/// What copies a register of so many bytes.
pub(crate) fn copy(bytes: usize) -> Option<Execute> {
    Some(match bytes {
        1 => one!(|a: u8| -> u8 { a }),
        2 => one!(|a: u16| -> u16 { a }),
        4 => one!(|a: u32| -> u32 { a }),
        8 => one!(|a: u64| -> u64 { a }),
        _ => return None,
    })
}

/// What takes a part of a register; `extra` is the number of bits below it.
pub(crate) fn part(whole: usize, part: usize) -> Option<Execute> {
    Some(match (whole, part) {
        (8, 4) => execute!(|lanes, o| {
            let below = o.extra;
            lanes.one(o, |a: u64| (a >> below) as u32)
        }),
        (8, 2) => execute!(|lanes, o| {
            let below = o.extra;
            lanes.one(o, |a: u64| (a >> below) as u16)
        }),
        (4, 2) => execute!(|lanes, o| {
            let below = o.extra;
            lanes.one(o, |a: u32| (a >> below) as u16)
        }),
        _ => return None,
    })
}

/// What puts a part into a register that holds the parts below it; `extra` is the number of bits below.
pub(crate) fn joined(whole: usize, part: usize) -> Option<Execute> {
    Some(match (whole, part) {
        (8, 4) => execute!(|lanes, o| {
            let below = o.extra;
            lanes.two(o, |a: u64, b: u32| (if below == 0 { 0 } else { a }) | u64::from(b) << below)
        }),
        (8, 2) => execute!(|lanes, o| {
            let below = o.extra;
            lanes.two(o, |a: u64, b: u16| (if below == 0 { 0 } else { a }) | u64::from(b) << below)
        }),
        (4, 2) => execute!(|lanes, o| {
            let below = o.extra;
            lanes.two(o, |a: u32, b: u16| (if below == 0 { 0 } else { a }) | u32::from(b) << below)
        }),
        _ => return None,
    })
}
