//! Loads and stores, and what is passed to functions.

use super::{B64, Decoder, Meaning, Register};
use crate::kernel::{Argument, Step};
use crate::lanes::Slot;
use crate::memory::{Access, Space, load, store};
use crate::syntax::Operand;
use crate::types::{Family, Type};

/// The space that is named for arguments and what is passed.
const PARAM: &str = "param";

/// Words that say how caches are used, or that the order of accesses is kept, which it is.
const HINTS: [&str; 9] = ["nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile"];

impl Decoder<'_> {
    pub(super) fn transfer(&mut self, opcode: &[&str], operands: &[Operand]) -> Result<bool, String> {
        let [name, words @ .., ty] = opcode else { return Ok(false) };
        let Some(ty) = Type::parse(ty).filter(|ty| ty.family != Family::Pred) else { return Ok(false) };
        let (mut space, mut count) = ("", 1);
        for word in words {
            match *word {
                "global" | "local" | "const" | PARAM if space.is_empty() => space = word,
                "v2" if count == 1 => count = 2,
                "v4" if count == 1 => count = 4,
                hint if HINTS.contains(&hint) => {}
                _ => return Ok(false),
            }
        }
        let is_store = *name == "st";
        let (address, value) = match operands {
            [value, address] if !is_store => (address, value),
            [address, value] if is_store => (address, value),
            _ => return Ok(false),
        };
        let Operand::Address { base, offset } = address else { return Ok(false) };
        let values = match value {
            Operand::Vector(values) => values.as_slice(),
            single => std::slice::from_ref(single),
        };
        if values.len() != count {
            return Err(self.wrong(format!("there are {} values, not {count}", values.len())));
        }
        if space == PARAM {
            let Some(base) = base else { return Ok(false) };
            for (number, value) in values.iter().enumerate() {
                let offset = offset + (number * ty.bytes) as i64;
                if is_store { self.pass(base, offset, ty, value)? } else { self.receive(base, offset, ty, value)? }
            }
            return Ok(true);
        }
        let space = match space {
            "local" => Space::Local,
            "" => Space::Any,
            _ => Space::Global,
        };
        self.accesses(is_store, space, ty, (base.as_deref(), *offset), values)?;
        Ok(true)
    }

    /// An access for each value; the first one checks the alignment of all.
    fn accesses(
        &mut self,
        is_store: bool,
        space: Space,
        ty: Type,
        (base, offset): (Option<&str>, i64),
        values: &[Operand],
    ) -> Result<(), String> {
        let mut address = match base {
            Some(base) => self.value(&Operand::Name(base.to_owned()), B64)?,
            None => self.constant(B64.bytes, 0),
        };
        if values.len() > 1 && !is_store {
            // The address may be one of the registers that are loaded.
            let kept = self.slot(B64.bytes);
            self.copy(B64.bytes, kept, address)?;
            address = kept;
        }
        for (number, value) in values.iter().enumerate() {
            let run = if is_store {
                let (slot, bytes) = self.stored(value, ty)?;
                store(bytes, ty.bytes).map(|run| (run, slot))
            } else {
                let register = self.loaded(value, ty)?;
                load(ty.bytes, ty.family == Family::Signed, register.bytes).map(|run| (run, register.slot))
            };
            let Some((run, slot)) = run else {
                return Err(self.wrong(format!("{value:?} has not the size of {ty:?}")));
            };
            let alignment = if number == 0 { ty.bytes * values.len() } else { ty.bytes };
            let site = self.sites;
            self.sites += 1;
            self.push(Step::Access(Access {
                run,
                space,
                address,
                value: slot,
                offset: offset + (number * ty.bytes) as i64,
                alignment: alignment as u64,
                site,
                bytes: ty.bytes,
                is_store,
            }));
        }
        Ok(())
    }

    /// The register that is loaded, which may be larger than the value.
    fn loaded(&mut self, operand: &Operand, ty: Type) -> Result<Register, String> {
        let Operand::Name(name) = operand else { return Err(self.wrong(format!("{operand:?} can't be loaded"))) };
        let register = if name == "_" {
            let bytes = ty.bytes.max(2);
            Register { slot: self.slot(bytes), bytes, is_predicate: false }
        } else {
            self.named(name)?
        };
        self.no_predicate(register, name)
    }

    fn no_predicate(&self, register: Register, name: &str) -> Result<Register, String> {
        if register.is_predicate { Err(self.wrong(format!("`{name}` is a predicate"))) } else { Ok(register) }
    }

    /// The register that is stored, and its size.
    fn stored(&mut self, operand: &Operand, ty: Type) -> Result<(Slot, usize), String> {
        if let Operand::Name(name) = operand
            && let Some(Meaning::Register(register)) = self.meaning(name)
        {
            let register = self.no_predicate(register, name)?;
            return Ok((register.slot, register.bytes));
        }
        let bytes = ty.bytes.max(2);
        Ok((self.value(operand, Type { family: ty.family, bytes })?, bytes))
    }

    /// Loads an argument of the kernel, or what was passed.
    fn receive(&mut self, base: &str, offset: i64, ty: Type, value: &Operand) -> Result<(), String> {
        let register = self.loaded(value, ty)?;
        if let Some(Meaning::Passed(number)) = self.meaning(base) {
            if register.bytes != ty.bytes {
                return Err(self.wrong(format!("what is passed in `{base}` has another size")));
            }
            let part = self.passed_part(number, offset, ty)?;
            return self.copy(ty.bytes, register.slot, part);
        }
        let Some(param) = self.parameters.get(base) else {
            return Err(self.wrong(format!("there is no parameter `{base}`")));
        };
        let inside = usize::try_from(offset).ok().filter(|offset| offset + ty.bytes <= param.bytes);
        let Some(inside) = inside else {
            return Err(self.wrong(format!("`{base}` has {} bytes", param.bytes)));
        };
        if register.bytes < ty.bytes {
            return Err(self.wrong(format!("{value:?} has not the size of {ty:?}")));
        }
        let offset = param.offset + inside;
        let same = |known: &&Argument| (known.offset, known.ty, known.bytes) == (offset, ty, register.bytes);
        let slot = match self.arguments.iter().find(same) {
            Some(known) => known.slot,
            None => {
                let slot = self.slot(register.bytes);
                self.arguments.push(Argument { slot, bytes: register.bytes, offset, ty });
                slot
            }
        };
        self.copy(register.bytes, register.slot, slot)
    }

    /// Stores what is passed.
    fn pass(&mut self, base: &str, offset: i64, ty: Type, value: &Operand) -> Result<(), String> {
        let Some(Meaning::Passed(number)) = self.meaning(base) else {
            return Err(self.wrong(format!("`{base}` can't be passed")));
        };
        let a = self.value(value, ty)?;
        let part = self.passed_part(number, offset, ty)?;
        self.copy(ty.bytes, part, a)
    }

    /// The register for a part of what is passed, which everyone takes to have the same size.
    fn passed_part(&mut self, number: usize, offset: i64, ty: Type) -> Result<Slot, String> {
        if let Some(part) = self.parts.get(&(number, offset)) {
            return if part.bytes == ty.bytes {
                Ok(part.slot)
            } else {
                Err(self.wrong("a part is passed in another size"))
            };
        }
        let bytes = ty.bytes as i64;
        let touching = self
            .parts
            .range((number, i64::MIN)..=(number, i64::MAX))
            .any(|((_, start), part)| *start < offset + bytes && offset < start + part.bytes as i64);
        if touching {
            return Err(self.wrong("parts that are passed lie across each other"));
        }
        let register = self.register(ty);
        self.parts.insert((number, offset), register);
        Ok(register.slot)
    }
}
