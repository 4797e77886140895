//! The intermediate form as text, in the words of the user: what is left of a function once closures are inlined and
//! loops unrolled.

use super::helper::Helper;
use super::term::{Level, Term};
use super::walk::{Dialect, statements};
use crate::ir::{
    Axis, Binary, Field, Function, Id, Kernel, Local, Offset, Output, Param, Role, Table, Type, Unary, Value,
};

/// The kernel as readable text.
pub fn show(kernel: &Kernel) -> String {
    let dialect = Shown { kernel, locals: distinct(kernel) };
    let fields = kernel.fields.iter().map(|field| format!("{}: field of {}{}", field.name, field.ty, along(field)));
    let params = kernel.params.iter().map(|param| format!("{}: {}", param.name, param.ty));
    let parameters: Vec<String> = fields.chain(params).collect();
    let results: Vec<String> = kernel.outputs.iter().map(result).collect();
    let mut lines = vec![format!("kernel {}({}) -> {} {{", kernel.name, parameters.join(", "), results.join(", "))];
    for table in kernel.tables.iter() {
        let values = table.values.iter().map(|value| dialect.literal(*value)).collect();
        let before = format!("table {}: {} = [", table.name, table.ty);
        lines.extend(Term::list(&before, values, "];").lines(4));
    }
    lines.extend(statements(kernel, &dialect, &kernel.body, 4));
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// ` along x, y` for a field that does not extend along all axes.
fn along(field: &Field) -> String {
    let axes = Axis::ALL.into_iter().filter(|axis| field.axes[*axis as usize]);
    let axes: Vec<String> = axes.map(|axis| axis.name().to_lowercase()).collect();
    if axes.len() == Axis::ALL.len() { String::new() } else { format!(" along {}", axes.join(", ")) }
}

/// `f64`, `sum of f64`.
fn result(output: &Output) -> String {
    let Output { ty, role } = output;
    match role {
        Role::Value => ty.to_string(),
        Role::Sum => format!("sum of {ty}"),
        Role::Max => format!("largest {ty}"),
        Role::Min => format!("least {ty}"),
    }
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
            Value::I64(value) => format!("{value}_i64"),
            Value::I32(value) => format!("{value}_i32"),
            Value::I8(value) => format!("{value}_i8"),
            Value::U64(value) => format!("{value}_u64"),
            Value::U32(value) => format!("{value}_u32"),
            Value::U8(value) => format!("{value}_u8"),
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

    fn index(&self, axis: Axis) -> Term {
        Term::whole(format!("index({})", axis.name()))
    }

    fn element(&self, table: Id<Table>, index: Term) -> Term {
        Term::enclosed(&format!("{}[", self.kernel.tables[table].name), index, "]")
    }

    fn clamped(&self, index: Term, last: u64) -> Term {
        Term::call("min", vec![index, Term::whole(last.to_string())])
    }

    fn helper(&self, _helper: Helper) -> Option<&str> {
        None
    }

    fn unary(&self, op: Unary, _ty: Type, a: Term) -> Term {
        match op {
            Unary::Neg => Term::prefix("-", a),
            Unary::Not => Term::prefix("!", a),
        }
    }

    fn binary(&self, op: Binary, _ty: Type, a: Term, b: Term, _known: Option<Value>) -> Term {
        Term::binary(op, a, b)
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
