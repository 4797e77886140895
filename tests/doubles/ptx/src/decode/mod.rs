//! From statements to steps: names become slots, labels become numbers of steps, and called functions are put in place.

mod instruction;
mod transfer;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kernel::{Argument, Condition, Constant, Kernel, Param, Special, Step};
use crate::lanes::{LANES, Operands, Slot};
use crate::memory::{Tables, WINDOW};
use crate::syntax::{Function, Instruction, Kind, Operand, Source};
use crate::types::{Family, Type};

pub(crate) const PRED: Type = Type { family: Family::Pred, bytes: 1 };
pub(crate) const U32: Type = Type { family: Family::Unsigned, bytes: 4 };
pub(crate) const B64: Type = Type { family: Family::Bits, bytes: 8 };

/// All kernels of a module.
pub(crate) fn kernels(source: &Source, text: &Arc<str>, tables: &Arc<Tables>) -> Result<Vec<Kernel>, String> {
    let mut kernels = Vec::new();
    for function in &source.functions {
        let mut decoder = Decoder::new(source, tables);
        let params = if function.is_kernel { decoder.parameters(function) } else { Vec::new() };
        if !function.is_kernel {
            // Nobody may call it; it must be understood all the same.
            let passed = function.results.iter().chain(&function.parameters);
            let passed: Vec<(&str, usize)> =
                passed.enumerate().map(|(number, parameter)| (parameter.name.as_str(), number)).collect();
            decoder.passed = passed.len();
            decoder.scopes.push(Scope::passing(&passed));
        }
        decoder.function(function)?;
        decoder.line = 1;
        decoder.push(Step::Exit(None));
        if function.is_kernel {
            kernels.push(Kernel {
                name: function.name.clone(),
                params,
                most_threads: function.most_threads,
                steps: decoder.steps,
                lines: decoder.lines,
                text: text.clone(),
                tables: tables.clone(),
                register_bytes: decoder.register_bytes as usize,
                constants: decoder.constants.into_values().collect(),
                arguments: decoder.arguments,
                specials: decoder.specials,
                sites: decoder.sites,
                local_bytes: decoder.local_bytes.next_multiple_of(16),
            });
        }
    }
    Ok(kernels)
}

/// What a name means.
#[derive(Clone, Copy)]
enum Meaning {
    Register(Register),
    /// The address of memory of the thread.
    Address(u64),
    /// What is passed to or from a function, by its number.
    Passed(usize),
}

/// A register.
#[derive(Clone, Copy)]
pub(crate) struct Register {
    pub(crate) slot: Slot,
    pub(crate) bytes: usize,
    pub(crate) is_predicate: bool,
}

/// Names between a pair of braces.
#[derive(Default)]
struct Scope {
    names: BTreeMap<String, Meaning>,
    /// Registers that are numbered: what stands before the number, how many there are, and the type.
    families: Vec<(String, usize, Type)>,
}

impl Scope {
    fn passing(passed: &[(&str, usize)]) -> Scope {
        let names = passed.iter().map(|(name, number)| ((*name).to_owned(), Meaning::Passed(*number)));
        Scope { names: names.collect(), families: Vec::new() }
    }
}

/// The labels of one function, where it stands.
#[derive(Default)]
struct Labels {
    places: BTreeMap<String, usize>,
    /// Steps that wait for a label, with their lines.
    open: Vec<(usize, String, usize)>,
    /// Lists of labels, and the indexed branches that wait for one.
    lists: BTreeMap<String, Vec<String>>,
    open_lists: Vec<(usize, String, usize)>,
    /// Branches to the end of the function.
    returns: Vec<usize>,
}

struct Decoder<'s> {
    source: &'s Source,
    tables: &'s Tables,
    steps: Vec<Step>,
    lines: Vec<usize>,
    /// The line that is being decoded.
    line: usize,
    register_bytes: u32,
    constants: BTreeMap<(usize, u64), Constant>,
    arguments: Vec<Argument>,
    specials: Vec<(Special, Slot)>,
    sites: usize,
    local_bytes: usize,
    scopes: Vec<Scope>,
    labels: Vec<Labels>,
    /// The parameters of the kernel, by name.
    parameters: BTreeMap<String, Param>,
    /// How many variables are passed to functions.
    passed: usize,
    /// The registers for the parts of what is passed: by variable and offset.
    parts: BTreeMap<(usize, i64), Register>,
    /// The functions that call each other.
    calls: Vec<String>,
    /// The slot of the carry flag.
    carry: Option<Slot>,
}

impl<'s> Decoder<'s> {
    fn new(source: &'s Source, tables: &'s Tables) -> Self {
        Decoder {
            source,
            tables,
            steps: Vec::new(),
            lines: Vec::new(),
            line: 0,
            register_bytes: 0,
            constants: BTreeMap::new(),
            arguments: Vec::new(),
            specials: Vec::new(),
            sites: 0,
            local_bytes: 0,
            scopes: Vec::new(),
            labels: Vec::new(),
            parameters: BTreeMap::new(),
            passed: 0,
            parts: BTreeMap::new(),
            calls: Vec::new(),
            carry: None,
        }
    }

    /// Where the parameters of a kernel lie.
    fn parameters(&mut self, function: &Function) -> Vec<Param> {
        let mut end = 0usize;
        let place = |parameter: &crate::syntax::Parameter| {
            let offset = end.next_multiple_of(parameter.alignment);
            end = offset + parameter.bytes;
            (parameter.name.clone(), Param { offset, bytes: parameter.bytes })
        };
        let placed: Vec<(String, Param)> = function.parameters.iter().map(place).collect();
        self.parameters = placed.iter().cloned().collect();
        placed.into_iter().map(|(_, param)| param).collect()
    }

    /// A message about the line that is being decoded.
    fn wrong(&self, what: impl AsRef<str>) -> String {
        format!("line {}: {}", self.line, what.as_ref())
    }

    fn function(&mut self, function: &Function) -> Result<(), String> {
        if self.calls.contains(&function.name) {
            return Err(self.wrong(format!("`{}` calls itself", function.name)));
        }
        self.calls.push(function.name.clone());
        self.labels.push(Labels::default());
        self.scopes.push(Scope::default());
        for statement in &function.body {
            self.line = statement.line;
            self.statement(&statement.kind)?;
        }
        self.calls.pop();
        let labels = self.labels.pop().expect("they were pushed above");
        self.join(labels)
    }

    /// Tells branches where their labels are.
    fn join(&mut self, labels: Labels) -> Result<(), String> {
        let end = self.steps.len();
        let place = |name: &String, line: usize| {
            let place = labels.places.get(name).copied();
            place.ok_or_else(|| format!("line {line}: there is no label `{name}`"))
        };
        for (step, name, line) in &labels.open {
            if let Step::Branch(target, _) = &mut self.steps[*step] {
                *target = place(name, *line)?;
            }
        }
        for (step, name, line) in &labels.open_lists {
            let list = labels.lists.get(name).ok_or_else(|| format!("line {line}: there is no list `{name}`"))?;
            let places = list.iter().map(|name| place(name, *line)).collect::<Result<_, _>>()?;
            if let Step::Indexed(_, targets) = &mut self.steps[*step] {
                *targets = places;
            }
        }
        for step in labels.returns {
            if let Step::Branch(target, _) = &mut self.steps[step] {
                *target = end;
            }
        }
        Ok(())
    }

    fn statement(&mut self, kind: &Kind) -> Result<(), String> {
        match kind {
            Kind::Open => self.scopes.push(Scope::default()),
            Kind::Close => {
                self.scopes.pop();
            }
            Kind::Label(name) => {
                let at = self.steps.len();
                if self.labels().places.insert(name.clone(), at).is_some() {
                    return Err(self.wrong(format!("there are two labels `{name}`")));
                }
            }
            Kind::Targets { name, labels } => {
                self.labels().lists.insert(name.clone(), labels.clone());
            }
            Kind::Registers { ty, name, count: Some(count) } => {
                self.scope().families.push((name.clone(), *count, *ty));
            }
            Kind::Registers { ty, name, count: None } => {
                let register = self.register(*ty);
                self.scope().names.insert(name.clone(), Meaning::Register(register));
            }
            Kind::Local { name, bytes, alignment } => {
                if *alignment > 16 {
                    return Err(self.wrong(format!("`{name}` wants to lie at multiples of {alignment}")));
                }
                let start = self.local_bytes.next_multiple_of(*alignment);
                self.local_bytes = start + bytes;
                self.scope().names.insert(name.clone(), Meaning::Address(WINDOW + start as u64));
            }
            Kind::Passed { name } => {
                let number = self.passed;
                self.passed += 1;
                self.scope().names.insert(name.clone(), Meaning::Passed(number));
            }
            Kind::Instruction(instruction) => self.instruction(instruction)?,
        }
        Ok(())
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("statements stand in a function")
    }

    fn labels(&mut self) -> &mut Labels {
        self.labels.last_mut().expect("statements stand in a function")
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step);
        self.lines.push(self.line);
    }

    /// Room for a value of so many bytes in each lane.
    fn slot(&mut self, bytes: usize) -> Slot {
        let slot = self.register_bytes;
        self.register_bytes += (bytes * LANES) as u32;
        slot
    }

    fn register(&mut self, ty: Type) -> Register {
        Register { slot: self.slot(ty.bytes), bytes: ty.bytes, is_predicate: ty.family == Family::Pred }
    }

    /// A register that holds a number.
    fn constant(&mut self, bytes: usize, bits: u64) -> Slot {
        let bits = bits & (!0 >> (64 - 8 * bytes));
        if let Some(constant) = self.constants.get(&(bytes, bits)) {
            return constant.slot;
        }
        let slot = self.slot(bytes);
        self.constants.insert((bytes, bits), Constant { slot, bytes, bits });
        slot
    }

    /// What a name means here; numbered registers come to be when they are first named.
    fn meaning(&mut self, name: &str) -> Option<Meaning> {
        let mut found = None;
        for (depth, scope) in self.scopes.iter().enumerate().rev() {
            if let Some(meaning) = scope.names.get(name) {
                return Some(*meaning);
            }
            let numbered = scope.families.iter().find(|(start, count, _)| {
                let number = name.strip_prefix(start.as_str()).and_then(|number| number.parse::<usize>().ok());
                number.is_some_and(|number| number < *count)
            });
            if let Some((.., ty)) = numbered {
                found = Some((depth, *ty));
                break;
            }
        }
        let (depth, ty) = found?;
        let meaning = Meaning::Register(self.register(ty));
        self.scopes[depth].names.insert(name.to_owned(), meaning);
        Some(meaning)
    }

    fn special(&mut self, special: Special) -> Register {
        let known = self.specials.iter().find(|(known, _)| *known == special).map(|(_, slot)| *slot);
        let slot = known.unwrap_or_else(|| {
            let slot = self.slot(U32.bytes);
            self.specials.push((special, slot));
            slot
        });
        Register { slot, bytes: U32.bytes, is_predicate: false }
    }

    /// The register of that name.
    fn named(&mut self, name: &str) -> Result<Register, String> {
        match self.meaning(name) {
            Some(Meaning::Register(register)) => Ok(register),
            Some(Meaning::Address(_) | Meaning::Passed(_)) => Err(self.wrong(format!("`{name}` is no register"))),
            None => Err(self.wrong(format!("`{name}` is not known"))),
        }
    }

    fn fits(&self, register: Register, ty: Type) -> bool {
        register.bytes == ty.bytes && register.is_predicate == (ty.family == Family::Pred)
    }

    /// Where a result of a type goes; `_` is nowhere.
    fn result(&mut self, operand: &Operand, ty: Type) -> Result<Slot, String> {
        let Operand::Name(name) = operand else {
            return Err(self.wrong(format!("{operand:?} can't be written")));
        };
        if name == "_" {
            return Ok(self.slot(ty.bytes));
        }
        let register = self.named(name)?;
        if self.fits(register, ty) {
            Ok(register.slot)
        } else {
            Err(self.wrong(format!("`{name}` has not the size of {ty:?}")))
        }
    }

    /// The register or number for a source of a type.
    fn value(&mut self, operand: &Operand, ty: Type) -> Result<Slot, String> {
        let is_float = ty.family == Family::Float;
        match operand {
            Operand::Integer(bits) if ty.family == Family::Pred => Ok(self.constant(1, u64::from(*bits != 0))),
            Operand::Integer(bits) if !is_float => Ok(self.constant(ty.bytes, *bits)),
            Operand::F32(bits) if ty.bytes == 4 => Ok(self.constant(4, u64::from(*bits))),
            Operand::F64(bits) if ty.bytes == 8 => Ok(self.constant(8, *bits)),
            Operand::Name(name) => {
                let register = match Special::parse(name) {
                    Some(special) => self.special(special),
                    None if self.meaning(name).is_none() || matches!(self.meaning(name), Some(Meaning::Address(_))) => {
                        let address = self.address_of(name)?;
                        let slot = self.constant(8, address);
                        Register { slot, bytes: 8, is_predicate: false }
                    }
                    None => self.named(name)?,
                };
                if self.fits(register, ty) {
                    Ok(register.slot)
                } else {
                    Err(self.wrong(format!("`{name}` has not the size of {ty:?}")))
                }
            }
            _ => Err(self.wrong(format!("{operand:?} is no value of {ty:?}"))),
        }
    }

    /// The address of a variable of the thread or a table.
    fn address_of(&mut self, name: &str) -> Result<u64, String> {
        match self.meaning(name) {
            Some(Meaning::Address(address)) => Ok(address),
            Some(Meaning::Register(_) | Meaning::Passed(_)) => Err(self.wrong(format!("`{name}` has no address"))),
            None => self.tables.address(name).ok_or_else(|| self.wrong(format!("`{name}` is not known"))),
        }
    }

    fn condition(&mut self, name: &str, is_turned: bool) -> Result<Condition, String> {
        let register = self.named(name)?;
        if register.is_predicate {
            Ok(Condition { predicate: register.slot, is_turned })
        } else {
            Err(self.wrong(format!("`{name}` is no predicate")))
        }
    }

    /// Decodes an instruction, with its guard.
    fn instruction(&mut self, instruction: &Instruction) -> Result<(), String> {
        let guard = match &instruction.guard {
            Some((name, is_turned)) => Some(self.condition(name, *is_turned)?),
            None => None,
        };
        if self.control(instruction, guard)? {
            return Ok(());
        }
        let Some(guard) = guard else { return self.plain(instruction) };
        // The instruction may change its own guard before its last step.
        let kept = Condition { predicate: self.slot(PRED.bytes), ..guard };
        let operands = Operands { d: kept.predicate, a: guard.predicate, b: 0, c: 0, extra: 0 };
        let copy = crate::operations::convert::copy(PRED.bytes).expect("predicates are copied");
        self.push(Step::Operate(copy, operands));
        let first = self.steps.len();
        self.plain(instruction)?;
        let steps = self.steps.split_off(first);
        self.lines.truncate(first);
        for step in steps {
            self.push(Step::Guard(kept));
            self.push(step);
        }
        Ok(())
    }
}
