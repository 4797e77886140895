//! What opcodes do to registers.
//!
//! To add an opcode: write an arm in the file of its kind, with a test beside those in `tests.rs`. Whatever no arm knows
//! is an error when the module is parsed.

mod bits;
pub(crate) mod compare;
pub(crate) mod convert;
mod floats;
mod integers;
mod rounding;

use crate::lanes::Execute;
use crate::types::{Family, Type};

/// An operation with one result and up to three sources.
pub(crate) struct Operation {
    pub(crate) result: Type,
    pub(crate) sources: Vec<Type>,
    pub(crate) execute: Execute,
    pub(crate) extra: Extra,
}

/// What an operation is told beside its registers.
#[derive(Clone, Copy)]
pub(crate) enum Extra {
    Value(u64),
    /// The carry flag: its slot.
    Carry,
}

impl Operation {
    /// One whose sources have the type of the result.
    fn same(ty: Type, sources: usize, execute: Execute) -> Operation {
        Operation { result: ty, sources: vec![ty; sources], execute, extra: Extra::Value(0) }
    }
}

/// The operation of an opcode, split at its dots.
pub(crate) fn find(opcode: &[&str]) -> Option<Operation> {
    integers::find(opcode).or_else(|| bits::find(opcode)).or_else(|| floats::find(opcode))
}

/// A type without a sign, or bits.
fn is_integer(ty: Type) -> bool {
    matches!(ty.family, Family::Signed | Family::Unsigned)
}
