//! The intermediate form as text, in the words of the user: what is left of a function once closures are inlined and
//! loops unrolled.

use super::term::{Level, Term};
use super::walk::{Dialect, statements};
use crate::ir::{Field, Function, Id, Kernel, Local, Offset, Output, Param, Type, Value};

/// The kernel as readable text.
pub fn show(kernel: &Kernel) -> String {
    let dialect = Shown { kernel, locals: distinct(kernel) };
    let fields = kernel.fields.iter().map(|field| format!("{}: field of {}", field.name, field.ty));
    let params = kernel.params.iter().map(|param| format!("{}: {}", param.name, param.ty));
    let parameters: Vec<String> = fields.chain(params).collect();
    let results: Vec<String> = kernel.outputs.iter().map(|output| output.ty.to_string()).collect();
    let mut lines = vec![format!("kernel {}({}) -> {} {{", kernel.name, parameters.join(", "), results.join(", "))];
    lines.extend(statements(kernel, &dialect, &kernel.body, 4));
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// Local names told apart by a number.
fn distinct(kernel: &Kernel) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for local in kernel.locals.iter() {
        let mut name = local.name.clone();
        let mut number = 1;
        while taken.contains(&name) {
            number += 1;
            name = format!("{}_{number}", local.name);
        }
        taken.push(name);
    }
    taken
}

struct Shown<'k> {
    kernel: &'k Kernel,
    locals: Vec<String>,
}

impl Dialect for Shown<'_> {
    fn literal(&self, value: Value) -> Term {
        let text = match value {
            Value::F64(value) => format!("{value:?}"),
            Value::F32(value) => format!("{value:?}_f32"),
            Value::Bool(value) => value.to_string(),
        };
        Term::new(if text.starts_with('-') { Level::Prefix } else { Level::Whole }, text)
    }

    fn param(&self, param: Id<Param>) -> Term {
        Term::whole(&self.kernel.params[param].name)
    }

    fn local(&self, local: Id<Local>) -> &str {
        &self.locals[local.index()]
    }

    fn load(&self, field: Id<Field>, offset: Offset) -> Term {
        Term::whole(format!("{}[{offset}]", self.kernel.fields[field].name))
    }

    fn call(&self, function: Function, _ty: Type, arguments: Vec<Term>) -> Term {
        Term::call(function.name(), arguments)
    }

    fn cast(&self, _from: Type, to: Type, value: Term) -> Term {
        Term::enclosed("(", value.operand(Level::As), &format!(" as {to})"))
    }

    fn declaration(&self, local: Id<Local>, _constant: bool) -> String {
        let Local { ty, mutable, .. } = &self.kernel.locals[local];
        format!("{} {}: {ty}", if *mutable { "var" } else { "let" }, self.local(local))
    }

    fn store(&self, output: Id<Output>, value: Term) -> Term {
        match self.kernel.outputs.len() {
            1 => value.around("result = ", ""),
            _ => value.around(&format!("result {} = ", output.index()), ""),
        }
    }

    fn condition(&self) -> (&'static str, &'static str) {
        ("if ", " {")
    }
}
