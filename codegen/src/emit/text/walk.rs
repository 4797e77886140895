//! The one walk over a kernel's statements and expressions that all text targets share.
//!
//! A target says through [`Dialect`] how it spells the leaves: literals, loads, types, calls. The walk does the rest, so
//! the targets can't differ in what they compute.

use super::term::{COLUMNS, Term};
use crate::emit::names::ascii_line;
use crate::ir::{
    Expr, ExprKind, Field, Function, Id, Kernel, Local, Offset, Output, Param, Place, Stmt, Type, Unary, Value,
};

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
    /// A function of arguments of type `ty`.
    fn call(&self, function: Function, ty: Type, arguments: Vec<Term>) -> Term;
    /// The conversion of a float.
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
        match kind {
            ExprKind::Literal(value) => self.dialect.literal(*value),
            ExprKind::Param(param) => self.dialect.param(*param),
            ExprKind::Local(local) => Term::whole(self.dialect.local(*local)),
            ExprKind::Load { field, offset } => self.dialect.load(*field, *offset),
            ExprKind::Unary(Unary::Neg, a) => Term::prefix("-", self.expr(*a)),
            ExprKind::Unary(Unary::Not, a) => Term::prefix("!", self.expr(*a)),
            ExprKind::Binary(op, a, b) => Term::binary(*op, self.expr(*a), self.expr(*b)),
            ExprKind::Call(function, arguments) => {
                self.dialect.call(*function, *ty, arguments.iter().map(|argument| self.expr(*argument)).collect())
            }
            ExprKind::Cast(a) => self.dialect.cast(self.kernel.exprs[*a].ty, *ty, self.expr(*a)),
        }
    }
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
