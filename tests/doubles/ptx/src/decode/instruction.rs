//! Branches, calls, operations, comparisons and moves.

use super::{B64, Decoder, Meaning, PRED, Scope, U32};
use crate::kernel::{Condition, Step};
use crate::lanes::{Operands, Slot};
use crate::operations::{Extra, compare, convert, find};
use crate::syntax::{Instruction, Operand};
use crate::types::{Family, Type};

impl Decoder<'_> {
    /// Decodes what changes the way of a thread; says whether the instruction does.
    pub(super) fn control(&mut self, instruction: &Instruction, guard: Option<Condition>) -> Result<bool, String> {
        let opcode: Vec<&str> = instruction.opcode.iter().map(String::as_str).collect();
        let at = self.steps.len();
        let line = self.line;
        match (opcode.as_slice(), instruction.operands.as_slice()) {
            (["bra"] | ["bra", "uni"], [Operand::Name(label)]) => {
                self.push(Step::Branch(0, guard));
                self.labels().open.push((at, label.clone(), line));
            }
            (["brx", "idx"] | ["brx", "idx", "uni"], [index, Operand::Name(list)]) if guard.is_none() => {
                let index = self.value(index, U32)?;
                self.push(Step::Indexed(index, Box::default()));
                self.labels().open_lists.push((at, list.clone(), line));
            }
            (["exit"], []) => self.push(Step::Exit(guard)),
            (["ret"] | ["ret", "uni"], []) => {
                if self.calls.len() == 1 {
                    self.push(Step::Exit(guard));
                } else {
                    self.push(Step::Branch(0, guard));
                    self.labels().returns.push(at);
                }
            }
            (["call"] | ["call", "uni"], operands) if guard.is_none() => self.call(operands)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts the called function in place.
    fn call(&mut self, operands: &[Operand]) -> Result<(), String> {
        let none = Vec::new();
        let (results, name, parameters) = match operands {
            [Operand::List(results), Operand::Name(name), Operand::List(parameters)] => (results, name, parameters),
            [Operand::List(results), Operand::Name(name)] => (results, name, &none),
            [Operand::Name(name), Operand::List(parameters)] => (&none, name, parameters),
            [Operand::Name(name)] => (&none, name, &none),
            _ => return Err(self.wrong("the call is not understood")),
        };
        let called = self.source.functions.iter().find(|function| function.name == *name && !function.is_kernel);
        let Some(function) = called else {
            return Err(self.wrong(format!("there is no function `{name}`")));
        };
        if (results.len(), parameters.len()) != (function.results.len(), function.parameters.len()) {
            return Err(self.wrong(format!("`{name}` takes other arguments")));
        }
        let own = function.results.iter().chain(&function.parameters);
        let mut passed = Vec::new();
        for (own, given) in own.zip(results.iter().chain(parameters)) {
            let Some(Meaning::Passed(number)) = self.meaning(given) else {
                return Err(self.wrong(format!("`{given}` can't be passed")));
            };
            passed.push((own.name.as_str(), number));
        }
        // The function sees none of the caller's names.
        let outside = std::mem::replace(&mut self.scopes, vec![Scope::passing(&passed)]);
        let line = self.line;
        self.function(function)?;
        self.scopes = outside;
        self.line = line;
        Ok(())
    }

    /// Decodes everything else.
    pub(super) fn plain(&mut self, instruction: &Instruction) -> Result<(), String> {
        let opcode: Vec<&str> = instruction.opcode.iter().map(String::as_str).collect();
        let operands = instruction.operands.as_slice();
        let is_known = match opcode[0] {
            "ld" | "st" => self.transfer(&opcode, operands)?,
            "mov" => self.mov(&opcode, operands)?,
            "cvta" => self.address(&opcode, operands)?,
            "cvt" => self.conversion(&opcode, operands)?,
            "setp" => self.comparison(&opcode, operands)?,
            _ => self.operation(&opcode, operands)?,
        };
        if is_known { Ok(()) } else { Err(self.wrong(format!("`{}` is not known", opcode.join(".")))) }
    }

    fn operation(&mut self, opcode: &[&str], operands: &[Operand]) -> Result<bool, String> {
        let Some(operation) = find(opcode) else { return Ok(false) };
        let [result, sources @ ..] = operands else { return Err(self.wrong("there are no operands")) };
        if sources.len() != operation.sources.len() {
            return Err(self.wrong(format!("there are {} sources, not {}", sources.len(), operation.sources.len())));
        }
        let mut slots: Vec<Slot> = Vec::new();
        for (source, ty) in sources.iter().zip(&operation.sources) {
            slots.push(self.value(source, *ty)?);
        }
        let d = self.result(result, operation.result)?;
        let slot = |place: usize| slots.get(place).or(slots.first()).copied().unwrap_or(d);
        let extra = match operation.extra {
            Extra::Value(_) if slots.len() > 3 => u64::from(slots[3]),
            Extra::Value(value) => value,
            Extra::Carry => u64::from(self.carry()),
        };
        self.push(Step::Operate(operation.execute, Operands { d, a: slot(0), b: slot(1), c: slot(2), extra }));
        Ok(true)
    }

    fn carry(&mut self) -> Slot {
        if let Some(slot) = self.carry {
            return slot;
        }
        let slot = self.slot(PRED.bytes);
        self.carry = Some(slot);
        slot
    }

    /// `setp.RELATION[.LOGIC].TYPE p[|q], a, b[, [!]c]`.
    fn comparison(&mut self, opcode: &[&str], operands: &[Operand]) -> Result<bool, String> {
        let (relation, logic, ty) = match opcode {
            [_, relation, ty] => (*relation, None, *ty),
            [_, relation, logic @ ("and" | "or" | "xor"), ty] => (*relation, Some(*logic), *ty),
            _ => return Ok(false),
        };
        let Some(ty) = Type::parse(ty) else { return Ok(false) };
        let Some(execute) = compare::find(relation, ty) else { return Ok(false) };
        let (holds, fails) = match operands.first() {
            Some(Operand::Pair(holds, fails)) => (holds.clone(), Some(fails.clone())),
            Some(Operand::Name(holds)) => (holds.clone(), None),
            _ => return Err(self.wrong("a comparison writes predicates")),
        };
        let sources = &operands[1..];
        if sources.len() != if logic.is_some() { 3 } else { 2 } {
            return Err(self.wrong("a comparison has two sources, with logic three"));
        }
        let (a, b) = (self.value(&sources[0], ty)?, self.value(&sources[1], ty)?);
        let third = match sources.get(2) {
            Some(Operand::Not(name)) => {
                let given = self.condition(name, true)?.predicate;
                Some(self.logic("not", [given, given])?)
            }
            Some(other) => Some(self.value(other, PRED)?),
            None => None,
        };
        let d = self.result(&Operand::Name(holds), PRED)?;
        if logic.is_none() && fails.is_none() {
            self.push(Step::Operate(execute, Operands { d, a, b, c: 0, extra: 0 }));
            return Ok(true);
        }
        let found = self.slot(PRED.bytes);
        self.push(Step::Operate(execute, Operands { d: found, a, b, c: 0, extra: 0 }));
        let mut written = Vec::new();
        let combined = |decoder: &mut Self, found: Slot| match (logic, third) {
            (Some(logic), Some(third)) => decoder.logic(logic, [found, third]),
            _ => Ok(found),
        };
        written.push((d, combined(self, found)?));
        if let Some(fails) = fails {
            let turned = self.logic("not", [found, found])?;
            let d = self.result(&Operand::Name(fails), PRED)?;
            written.push((d, combined(self, turned)?));
        }
        for (d, a) in written {
            self.copy(1, d, a)?;
        }
        Ok(true)
    }

    /// A new predicate from two others.
    fn logic(&mut self, name: &str, [a, b]: [Slot; 2]) -> Result<Slot, String> {
        let operation = find(&[name, "pred"]).ok_or_else(|| self.wrong(format!("`{name}` is not known")))?;
        let d = self.slot(PRED.bytes);
        self.push(Step::Operate(operation.execute, Operands { d, a, b, c: 0, extra: 0 }));
        Ok(d)
    }

    pub(super) fn copy(&mut self, bytes: usize, d: Slot, a: Slot) -> Result<(), String> {
        let execute = convert::copy(bytes).ok_or_else(|| self.wrong(format!("no register has {bytes} bytes")))?;
        self.push(Step::Operate(execute, Operands { d, a, b: 0, c: 0, extra: 0 }));
        Ok(())
    }

    fn mov(&mut self, opcode: &[&str], operands: &[Operand]) -> Result<bool, String> {
        let ([_, ty], [result, source]) = (opcode, operands) else { return Ok(false) };
        let Some(ty) = Type::parse(ty).filter(|ty| ty.bytes > 1 || ty.family == Family::Pred) else {
            return Ok(false);
        };
        match (result, source) {
            (Operand::Vector(parts), _) => {
                let whole = self.value(source, ty)?;
                let part_ty = self.part(ty, parts.len())?;
                for (number, part) in parts.iter().enumerate() {
                    if matches!(part, Operand::Name(name) if name == "_") {
                        continue;
                    }
                    let d = self.result(part, part_ty)?;
                    let execute = convert::part(ty.bytes, part_ty.bytes);
                    let execute = execute.ok_or_else(|| self.wrong("registers are not split like this"))?;
                    let extra = (number * part_ty.bits()) as u64;
                    self.push(Step::Operate(execute, Operands { d, a: whole, b: 0, c: 0, extra }));
                }
            }
            (_, Operand::Vector(parts)) => {
                let part_ty = self.part(ty, parts.len())?;
                let d = self.result(result, ty)?;
                for (number, part) in parts.iter().enumerate() {
                    let b = self.value(part, part_ty)?;
                    let execute = convert::joined(ty.bytes, part_ty.bytes);
                    let execute = execute.ok_or_else(|| self.wrong("registers are not joined like this"))?;
                    let extra = (number * part_ty.bits()) as u64;
                    self.push(Step::Operate(execute, Operands { d, a: d, b, c: 0, extra }));
                }
            }
            _ => {
                let a = self.value(source, ty)?;
                let d = self.result(result, ty)?;
                self.copy(ty.bytes, d, a)?;
            }
        }
        Ok(true)
    }

    /// The type of one of so many parts.
    fn part(&self, whole: Type, parts: usize) -> Result<Type, String> {
        if parts > 1 && whole.bytes.is_multiple_of(parts) && whole.bytes > parts {
            Ok(Type { family: Family::Bits, bytes: whole.bytes / parts })
        } else {
            Err(self.wrong(format!("{whole:?} has no {parts} parts")))
        }
    }

    /// `cvta` changes nothing: an address means the same everywhere.
    fn address(&mut self, opcode: &[&str], operands: &[Operand]) -> Result<bool, String> {
        let (["cvta", space, "u64"] | ["cvta", "to", space, "u64"], [result, source]) = (opcode, operands) else {
            return Ok(false);
        };
        if !matches!(*space, "global" | "local" | "const") {
            return Ok(false);
        }
        let a = self.value(source, B64)?;
        let d = self.result(result, B64)?;
        self.copy(B64.bytes, d, a)?;
        Ok(true)
    }

    /// Registers may be larger than the values that are converted.
    fn conversion(&mut self, opcode: &[&str], operands: &[Operand]) -> Result<bool, String> {
        let (Some(of), [Operand::Name(result), source]) = (opcode.last(), operands) else { return Ok(false) };
        let Some(of) = Type::parse(of) else { return Ok(false) };
        let to = self.named(result)?;
        let (a, from) = match source {
            Operand::Name(name) if crate::kernel::Special::parse(name).is_none() => {
                let register = self.named(name)?;
                if register.is_predicate {
                    return Err(self.wrong(format!("`{name}` is a predicate")));
                }
                (register.slot, register.bytes)
            }
            other => (self.value(other, of)?, of.bytes),
        };
        let Some((execute, extra)) = convert::find(opcode, from, to.bytes).filter(|_| !to.is_predicate) else {
            return Ok(false);
        };
        self.push(Step::Operate(execute, Operands { d: to.slot, a, b: 0, c: 0, extra }));
        Ok(true)
    }
}
