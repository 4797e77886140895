//! The one walk over a kernel's statements and expressions that all text targets share.
//!
//! A target says through [`Dialect`] how it spells the leaves: literals, loads, types, calls. The walk does the rest, so
//! the targets can't differ in what they compute.

use super::helper::Helper;
use super::term::{COLUMNS, Term};
use crate::emit::names::ascii_line;
use crate::ir::{
    Axis, Binary, Expr, ExprKind, Field, Function, Id, Kernel, Local, Offset, Output, Param, Place, Stmt, Table, Type,
    Unary, Value,
};
use crate::verify::operands;

/// How a language spells what the walk meets.
pub(crate) trait Dialect {
    /// A constant, to the last bit.
    fn literal(&self, value: Value) -> Term;
    /// A scalar parameter.
    fn param(&self, param: Id<Param>) -> Term;
    /// The name of a local variable.
    fn local(&self, local: Id<Local>) -> &str;
    /// The value of a field at `offset` from the point.
    fn load(&self, field: Id<Field>, offset: Offset) -> Term;
    /// The global index of the point.
    fn index(&self, axis: Axis) -> Term;
    /// An element of a table; the index is a number, or was [`clamped`](Dialect::clamped).
    fn element(&self, table: Id<Table>, index: Term) -> Term;
    /// A computed index, or `last` if that is less.
    fn clamped(&self, index: Term, last: u64) -> Term;
    /// The name of the function that stands for an operation, where the language lacks it.
    fn helper(&self, helper: Helper) -> Option<&str>;
    /// An operation on a value of type `ty`.
    fn unary(&self, op: Unary, ty: Type, a: Term) -> Term;
    /// An operation on values of type `ty`; the second is the constant `known`, if it is one.
    fn binary(&self, op: Binary, ty: Type, a: Term, b: Term, known: Option<Value>) -> Term;
    /// A function of arguments of type `ty`.
    fn call(&self, function: Function, ty: Type, arguments: Vec<Term>) -> Term;
    /// The conversion of a value.
    fn cast(&self, from: Type, to: Type, value: Term) -> Term;
    /// The declaration of a local, up to the `=` or `;`: `const double s`, `let mut s: f64`. It is `constant` when this
    /// declaration gives it the only value it ever has.
    fn declaration(&self, local: Id<Local>, constant: bool) -> String;
    /// The new value of `output` at the point, up to the `;`: `value` with `out[c] = ` before it.
    fn store(&self, output: Id<Output>, value: Term) -> Term;
    /// What stands before and after the condition of an `if`: `if (` and `) {`.
    fn condition(&self) -> (&'static str, &'static str);
}

/// Statements as lines, indented by `indent` columns.
pub(crate) fn statements(kernel: &Kernel, dialect: &dyn Dialect, block: &[Stmt], indent: usize) -> Vec<String> {
    let mut walk = Walk { kernel, dialect, indent, lines: Vec::new() };
    walk.block(block);
    walk.lines
}

/// Text that can stand in a `//` comment of any language.
pub(crate) fn comment(text: &str) -> String {
    // A backslash at the end would take the next line into the comment.
    ascii_line(text).trim_end_matches(['\\', ' ']).to_string()
}

struct Walk<'a> {
    kernel: &'a Kernel,
    dialect: &'a dyn Dialect,
    indent: usize,
    lines: Vec<String>,
}

impl Walk<'_> {
    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { local, value, place } => {
                let variable = &self.kernel.locals[*local];
                let declaration = self.dialect.declaration(*local, value.is_some() && !variable.mutable);
                let term = match value {
                    Some(value) => self.expr(*value).around(&format!("{declaration} = "), ";"),
                    None => Term::whole(format!("{declaration};")),
                };
                self.write(&term, *place, variable.note.as_deref());
            }
            Stmt::Assign { local, value, place } => {
                let term = self.expr(*value).around(&format!("{} = ", self.dialect.local(*local)), ";");
                self.write(&term, *place, None);
            }
            Stmt::Store { output, value, place } => {
                let term = self.dialect.store(*output, self.expr(*value)).around("", ";");
                self.write(&term, *place, None);
            }
            Stmt::If { condition, then, otherwise, place } => self.branch("", *condition, then, otherwise, *place),
        }
    }

    /// `before` is what the line with the `if` begins with: nothing, or `} else `.
    fn branch(&mut self, before: &str, condition: Id<Expr>, then: &[Stmt], otherwise: &[Stmt], place: Place) {
        let (open, close) = self.dialect.condition();
        let term = self.expr(condition).around(&format!("{before}{open}"), close);
        self.write(&term, place, None);
        self.inner(then);
        match otherwise {
            [] => self.line("}"),
            [Stmt::If { condition, then, otherwise, place }] => {
                self.branch("} else ", *condition, then, otherwise, *place);
            }
            _ => {
                self.line("} else {");
                self.inner(otherwise);
                self.line("}");
            }
        }
    }

    fn inner(&mut self, block: &[Stmt]) {
        self.indent += 4;
        self.block(block);
        self.indent -= 4;
    }

    fn line(&mut self, text: &str) {
        self.lines.push(format!("{:indent$}{text}", "", indent = self.indent));
    }

    /// A statement with a comment that says where it comes from: at the end of its line, or before it when it is long.
    fn write(&mut self, term: &Term, place: Place, note: Option<&str>) {
        let mut lines = term.lines(self.indent);
        if let Some(comment) = self.source(place, note) {
            let beside = format!("{} // {comment}", lines[0]);
            if lines.len() == 1 && beside.chars().count() <= COLUMNS {
                lines[0] = beside;
            } else if lines[0].trim_start().starts_with('}') {
                // Nothing can stand between `}` and `else`; the comment opens the block.
                lines.push(format!("{:indent$}    // {comment}", "", indent = self.indent));
            } else {
                self.line(&format!("// {comment}"));
            }
        }
        self.lines.append(&mut lines);
    }

    /// `heat.rs:8: flux(-X)`, as much of it as is known.
    fn source(&self, place: Place, note: Option<&str>) -> Option<String> {
        let line = match (place.line, self.kernel.file.as_str()) {
            (0, _) => None,
            (line, "") => Some(format!("line {line}")),
            (line, file) => Some(format!("{file}:{line}")),
        };
        match (line, note) {
            (None, None) => None,
            (Some(line), None) => Some(comment(&line)),
            (None, Some(note)) => Some(comment(note)),
            (Some(line), Some(note)) => Some(comment(&format!("{line}: {note}"))),
        }
    }

    fn expr(&self, id: Id<Expr>) -> Term {
        let Expr { kind, ty, .. } = &self.kernel.exprs[id];
        if let Some(name) = Helper::of(self.kernel, id).and_then(|helper| self.dialect.helper(helper)) {
            return Term::call(name, self.all(&operands(kind)));
        }
        let type_of = |id: &Id<Expr>| self.kernel.exprs[*id].ty;
        match kind {
            ExprKind::Literal(value) => self.dialect.literal(*value),
            ExprKind::Param(param) => self.dialect.param(*param),
            ExprKind::Local(local) => Term::whole(self.dialect.local(*local)),
            ExprKind::Load { field, offset } => self.dialect.load(*field, *offset),
            ExprKind::Unary(op, a) => self.dialect.unary(*op, *ty, self.expr(*a)),
            ExprKind::Binary(op, a, b) => {
                self.dialect.binary(*op, type_of(a), self.expr(*a), self.expr(*b), self.known(*b))
            }
            ExprKind::Call(function, arguments) => {
                self.dialect.call(*function, type_of(&arguments[0]), self.all(arguments))
            }
            ExprKind::Cast(a) => self.dialect.cast(type_of(a), *ty, self.expr(*a)),
            ExprKind::Index(axis) => self.dialect.index(*axis),
            ExprKind::Element { table, index } => self.element(*table, *index),
        }
    }

    fn all(&self, ids: &[Id<Expr>]) -> Vec<Term> {
        ids.iter().map(|id| self.expr(*id)).collect()
    }

    /// The value of a constant.
    fn known(&self, id: Id<Expr>) -> Option<Value> {
        match self.kernel.exprs[id].kind {
            ExprKind::Literal(value) => Some(value),
            _ => None,
        }
    }

    fn element(&self, table: Id<Table>, index: Id<Expr>) -> Term {
        let last = self.kernel.tables[table].values.len() as u64 - 1;
        let index = match self.known(index) {
            Some(Value::U64(index)) => Term::whole(index.min(last).to_string()),
            _ => self.dialect.clamped(self.expr(index), last),
        };
        self.dialect.element(table, index)
    }
}

/// The expressions that some statement uses, in order.
pub(crate) fn used(kernel: &Kernel) -> Vec<Id<Expr>> {
    let mut open = Vec::new();
    roots(&kernel.body, &mut open);
    let mut seen = vec![false; kernel.exprs.len()];
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut seen[id.index()], true) {
            open.extend(operands(&kernel.exprs[id].kind));
        }
    }
    kernel.exprs.ids().filter(|id| seen[id.index()]).collect()
}

fn roots(block: &[Stmt], into: &mut Vec<Id<Expr>>) {
    for stmt in block {
        match stmt {
            Stmt::Let { value, .. } => into.extend(value),
            Stmt::Assign { value, .. } | Stmt::Store { value, .. } => into.push(*value),
            Stmt::If { condition, then, otherwise, .. } => {
                into.push(*condition);
                roots(then, into);
                roots(otherwise, into);
            }
        }
    }
}

/// The axes whose global index is used.
pub(crate) fn used_axes(kernel: &Kernel) -> Vec<Axis> {
    let exprs = used(kernel);
    let is_used = |axis: &Axis| exprs.iter().any(|id| kernel.exprs[*id].kind == ExprKind::Index(*axis));
    Axis::ALL.into_iter().filter(is_used).collect()
}

/// The tables of which elements are used.
pub(crate) fn used_tables(kernel: &Kernel) -> Vec<Id<Table>> {
    let exprs = used(kernel);
    let reads =
        |id: &Id<Expr>, wanted| matches!(kernel.exprs[*id].kind, ExprKind::Element { table, .. } if table == wanted);
    kernel.tables.ids().filter(|table| exprs.iter().any(|id| reads(id, *table))).collect()
}

#[cfg(test)]
mod tests {
    use super::comment;

    #[test]
    fn comments_stay_on_their_line() {
        assert_eq!(comment("flux(\n    -X,\t2)"), "flux( -X, 2)");
        assert_eq!(comment("a \\ \\"), "a");
        assert_eq!(comment("κ[HERE] * Δt"), "kappa[HERE] * Delta_t");
    }
}
