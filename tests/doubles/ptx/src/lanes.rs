//! The registers of a group of threads, and how one operation is done for all of them.
//!
//! A register is an array with a value for each thread of the group, so that loops over it become vector instructions.
//! Constants, parameters and the numbers of threads are registers too.

/// The threads of a group: a lane each.
pub(crate) const LANES: usize = 64;

/// Where a register begins, in bytes from the first.
pub(crate) type Slot = u32;

/// What an operation works on; which of the slots it uses and how it reads `extra` is its own affair.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub(crate) d: Slot,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
    pub(crate) c: Slot,
    pub(crate) extra: u64,
}

/// An operation on registers.
///
/// # Safety
/// The slots lie in the memory of the lanes, each with room for its type.
pub(crate) type Execute = unsafe fn(&Operands, &Lanes);

/// The registers, and the lanes that count.
pub(crate) struct Lanes {
    /// The first register.
    pub(crate) base: *mut u8,
    /// A bit for each lane that takes part.
    pub(crate) mask: u64,
    /// Whether the others are free, so that anything may be written to them.
    pub(crate) is_wide: bool,
}

impl Lanes {
    /// The values of a register.
    #[inline(always)]
    pub(crate) fn at<T>(&self, slot: Slot) -> *mut T {
        self.base.wrapping_add(slot as usize).cast()
    }

    /// Calls `f` with each lane that counts.
    #[inline(always)]
    pub(crate) fn each(&self, mut f: impl FnMut(usize)) {
        if self.is_wide {
            for lane in 0..LANES {
                f(lane);
            }
        } else {
            let mut rest = self.mask;
            while rest != 0 {
                f(rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// Writes a function of one register to another.
    ///
    /// # Safety
    /// As for [`Execute`].
    #[inline(always)]
    pub(crate) unsafe fn one<A: Copy, R>(&self, o: &Operands, f: impl Fn(A) -> R) {
        let (a, d) = (self.at::<A>(o.a), self.at::<R>(o.d));
        // SAFETY: the slots have room for all lanes, says the caller.
        self.each(|lane| unsafe { d.add(lane).write(f(a.add(lane).read())) });
    }

    /// Writes a function of two registers to another.
    ///
    /// # Safety
    /// As for [`Execute`].
    #[inline(always)]
    pub(crate) unsafe fn two<A: Copy, B: Copy, R>(&self, o: &Operands, f: impl Fn(A, B) -> R) {
        let (a, b, d) = (self.at::<A>(o.a), self.at::<B>(o.b), self.at::<R>(o.d));
        // SAFETY: the slots have room for all lanes, says the caller.
        self.each(|lane| unsafe { d.add(lane).write(f(a.add(lane).read(), b.add(lane).read())) });
    }

    /// Writes a function of three registers to another.
    ///
    /// # Safety
    /// As for [`Execute`].
    #[inline(always)]
    pub(crate) unsafe fn three<A: Copy, B: Copy, C: Copy, R>(&self, o: &Operands, f: impl Fn(A, B, C) -> R) {
        let (a, b, c, d) = (self.at::<A>(o.a), self.at::<B>(o.b), self.at::<C>(o.c), self.at::<R>(o.d));
        // SAFETY: the slots have room for all lanes, says the caller.
        self.each(|lane| unsafe { d.add(lane).write(f(a.add(lane).read(), b.add(lane).read(), c.add(lane).read())) });
    }

    /// The lanes in which a predicate holds.
    ///
    /// # Safety
    /// The slot is that of a predicate.
    pub(crate) unsafe fn holds(&self, predicate: Slot) -> u64 {
        let bytes = self.at::<u64>(predicate);
        let mut mask = 0;
        for eight in 0..LANES / 8 {
            // SAFETY: a predicate has a byte, 0 or 1, for each lane, and slots are aligned.
            let eight_bytes = unsafe { bytes.add(eight).read() };
            // The bytes' lowest bits are gathered in the highest byte.
            let bits = u64::from_le(eight_bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            mask |= bits << (8 * eight);
        }
        mask
    }

    /// Writes the same value to all lanes.
    ///
    /// # Safety
    /// The slot has room for values of so many bytes.
    pub(crate) unsafe fn fill(&self, slot: Slot, bytes: usize, value: u64) {
        // SAFETY: the caller says that there is room.
        unsafe {
            match bytes {
                1 => (0..LANES).for_each(|lane| self.at::<u8>(slot).add(lane).write(value as u8)),
                2 => (0..LANES).for_each(|lane| self.at::<u16>(slot).add(lane).write(value as u16)),
                4 => (0..LANES).for_each(|lane| self.at::<u32>(slot).add(lane).write(value as u32)),
                _ => (0..LANES).for_each(|lane| self.at::<u64>(slot).add(lane).write(value)),
            }
        }
    }
}

/// Whether the CPU has the vectors for which operations are compiled beside the plain ones.
pub(crate) fn has_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// An [`Execute`] for an expression in `lanes` and `operands`, compiled for plain CPUs and for those with vectors.
macro_rules! execute {
    (|$lanes:ident, $operands:ident| $body:expr) => {{
        unsafe fn plain($operands: &$crate::lanes::Operands, $lanes: &$crate::lanes::Lanes) {
            // SAFETY: the caller promises what `Execute` asks for.
            unsafe { $body }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn vectors($operands: &$crate::lanes::Operands, $lanes: &$crate::lanes::Lanes) {
            // SAFETY: the caller promises what `Execute` asks for.
            unsafe { $body }
        }
        #[cfg(not(target_arch = "x86_64"))]
        use plain as vectors;
        let chosen: $crate::lanes::Execute = if $crate::lanes::has_vectors() { vectors } else { plain };
        chosen
    }};
}

/// A function of one value, with types: `one!(|a: u32| -> u32 { !a })`.
macro_rules! one {
    (|$a:ident: $A:ty| -> $R:ty { $($body:tt)* }) => {
        $crate::lanes::execute!(|lanes, operands| lanes.one(operands, |$a: $A| -> $R { $($body)* }))
    };
}

/// A function of two values.
macro_rules! two {
    (|$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty { $($body:tt)* }) => {
        $crate::lanes::execute!(|lanes, operands| lanes.two(operands, |$a: $A, $b: $B| -> $R { $($body)* }))
    };
}

/// A function of three values.
macro_rules! three {
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $R:ty { $($body:tt)* }) => {
        $crate::lanes::execute!(|lanes, operands| lanes.three(operands, |$a: $A, $b: $B, $c: $C| -> $R { $($body)* }))
    };
}

/// An expression in which `T` is the unsigned integer of so many bytes, or nothing if there is no such register.
macro_rules! with_unsigned {
    ($bytes:expr, $T:ident => $body:expr) => {
        match $bytes {
            2 => {
                type $T = u16;
                Some($body)
            }
            4 => {
                type $T = u32;
                Some($body)
            }
            8 => {
                type $T = u64;
                Some($body)
            }
            _ => None,
        }
    };
}

/// An expression in which `T` is the signed integer of so many bytes.
macro_rules! with_signed {
    ($bytes:expr, $T:ident => $body:expr) => {
        match $bytes {
            2 => {
                type $T = i16;
                Some($body)
            }
            4 => {
                type $T = i32;
                Some($body)
            }
            8 => {
                type $T = i64;
                Some($body)
            }
            _ => None,
        }
    };
}

/// An expression in which `T` is the integer of a type.
macro_rules! with_integer {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty.family {
            $crate::types::Family::Signed => $crate::lanes::with_signed!($ty.bytes, $T => $body),
            $crate::types::Family::Unsigned => $crate::lanes::with_unsigned!($ty.bytes, $T => $body),
            _ => None,
        }
    };
}

/// An expression in which `T` is the float of a type.
macro_rules! with_float {
    ($ty:expr, $T:ident => $body:expr) => {
        match ($ty.family, $ty.bytes) {
            ($crate::types::Family::Float, 4) => {
                type $T = f32;
                Some($body)
            }
            ($crate::types::Family::Float, 8) => {
                type $T = f64;
                Some($body)
            }
            _ => None,
        }
    };
}

pub(crate) use {execute, one, three, two, with_float, with_integer, with_signed, with_unsigned};
