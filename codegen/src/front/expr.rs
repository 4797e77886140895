//! Expressions.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, ExprIndex, ExprPath, Member};

use super::Front;
use super::report::tidy;
use super::scope::{Binding, Integer, Val};
use crate::diagnostic::Diagnostic;
use crate::ir::{Axis, ExprKind, Offset, Type};

impl Front {
    /// Evaluates an expression; what is refused becomes [`Val::Poison`].
    pub(super) fn eval(&mut self, expr: &Expr) -> Val {
        // A name is for the value of the whole expression, not for its parts.
        if !matches!(expr, Expr::Paren(_) | Expr::Group(_) | Expr::Call(_) | Expr::If(_) | Expr::Match(_)) {
            self.name_hint = None;
        }
        match expr {
            Expr::Paren(inner) => self.eval(&inner.expr),
            Expr::Group(inner) => self.eval(&inner.expr),
            Expr::Reference(inner) if inner.mutability.is_none() => self.eval(&inner.expr),
            Expr::Lit(literal) => self.literal(&literal.lit, false),
            Expr::Path(path) => self.path(path),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary, expr),
            Expr::Index(index) => self.index(index),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method(call),
            Expr::Closure(closure) => self.closure("closure".to_owned(), closure),
            Expr::Block(block) if block.label.is_none() => self.block(&block.block),
            Expr::If(branch) => self.branch(branch),
            Expr::Match(choice) => self.choice(choice),
            Expr::Return(exit) => self.leave(exit),
            Expr::ForLoop(repeat) => self.unroll(repeat),
            Expr::Assign(assign) => {
                let value = self.eval(&assign.right);
                self.assign(&assign.left, value, expr)
            }
            Expr::Array(array) => Val::Array(self.eval_all(array.elems.iter())),
            Expr::Tuple(tuple) if tuple.elems.is_empty() => Val::Unit,
            Expr::Tuple(tuple) => Val::Tuple(self.eval_all(tuple.elems.iter())),
            Expr::Repeat(repeat) => self.repeat(repeat),
            Expr::Field(field) => self.part(field),
            other => self.refused(other),
        }
    }

    fn path(&mut self, path: &ExprPath) -> Val {
        let Some(name) = path.path.get_ident().map(|name| name.unraw().to_string()) else {
            return self.constant_path(path);
        };
        match self.scope.find(&name) {
            Some(Binding::Value(value) | Binding::Constant(value) | Binding::Followed { value, .. }) => value,
            Some(Binding::Variable(variable)) => {
                let place = self.reporter.place(path);
                self.read(&variable, place)
            }
            None => match name.as_str() {
                "HERE" => Val::Offset(Offset::HERE),
                "X" => Val::Offset(Offset([1, 0, 0])),
                "Y" => Val::Offset(Offset([0, 1, 0])),
                "Z" => Val::Offset(Offset([0, 0, 1])),
                _ => self.unknown_name(path, &name),
            },
        }
    }

    pub(super) fn unknown_name(&mut self, tokens: &impl ToTokens, name: &str) -> Val {
        let help = match name {
            "x" | "y" | "z" => format!("offsets are written in capitals: `{}`", name.to_uppercase()),
            "PI" => "write the whole path: `std::f64::consts::PI`".to_owned(),
            _ => format!("pass it as a parameter, or move `const {name}: .. = ..;` into the function"),
        };
        let diagnostic =
            Diagnostic::new(self.reporter.place(tokens), format!("`{name}` is not known inside the stencil"))
                .help(help)
                .note("a stencil is compiled for other devices from its own text, so it can't see names outside of it");
        self.reporter.report(diagnostic);
        Val::Poison
    }

    fn index(&mut self, index: &ExprIndex) -> Val {
        match self.eval_pair(&index.expr, &index.index) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (Val::Field(field), Val::Offset(offset)) => {
                let place = self.reporter.place(index);
                let ty = self.types.known(self.kernel.fields[field].ty);
                Val::Number(self.expr_of(ExprKind::Load { field, offset }, ty, place))
            }
            (Val::Field(field), at) => {
                let name = self.kernel.fields[field].name.clone();
                let message = format!("field `{name}` is indexed by {}, not by an offset", at.describe());
                let help = match at {
                    Val::Tuple(_) | Val::Array(_) => format!("write the displacement as a sum: `{name}[X - Y]`"),
                    Val::Integer(Integer { value: 0, .. }) => format!("the point itself is `{name}[HERE]`"),
                    Val::Integer(integer) => {
                        let cells = i32::try_from(integer.value).unwrap_or(i32::MAX);
                        format!("along X that is `{name}[{}]`", Offset([cells, 0, 0]))
                    }
                    _ => format!(
                        "write `{name}[HERE]`, `{name}[X]`, `{name}[2*X - Y]`: offsets are known at compile time"
                    ),
                };
                self.poison(&*index.index, message, help)
            }
            (Val::Array(items), Val::Integer(at)) => {
                match usize::try_from(at.value).ok().and_then(|at| items.get(at)) {
                    Some(item) => item.clone(),
                    None => self.outside(&index.index, at.value, items.len()),
                }
            }
            (Val::Array(items), Val::Number(at)) => self.element(&items, at, index),
            (Val::Array(_), at) => {
                let message = format!("the array is indexed by {}, not by an integer", at.describe());
                self.poison(
                    &*index.index,
                    message,
                    "use literals, `const`s and `for` variables, cast as needed: `w[i as usize]`",
                )
            }
            (base, _) => {
                self.poison(&*index.expr, format!("{} can't be indexed", base.describe()), "fields and arrays can")
            }
        }
    }

    /// An index known at compile time that names no element.
    pub(super) fn outside(&mut self, tokens: &Expr, at: i128, length: usize) -> Val {
        let message = format!("index {at} is outside this array of {length} elements");
        self.poison(tokens, message, format!("indices are 0 to {}", length.saturating_sub(1)))
    }

    fn repeat(&mut self, repeat: &syn::ExprRepeat) -> Val {
        match self.eval_pair(&repeat.expr, &repeat.len) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (item, Val::Integer(Integer { value: length @ 0..=4096, .. })) => Val::Array(vec![item; length as usize]),
            (_, other) => {
                let message = format!("the length of the array is {}", other.describe());
                self.poison(&*repeat.len, message, "lengths are integers from 0 to 4096, known at compile time")
            }
        }
    }

    fn part(&mut self, field: &syn::ExprField) -> Val {
        match (self.eval(&field.base), &field.member) {
            (Val::Poison, _) => Val::Poison,
            (Val::Point, Member::Named(name)) if matches!(name.to_string().as_str(), "i" | "j" | "k") => {
                let axis = match name.to_string().as_str() {
                    "i" => Axis::X,
                    "j" => Axis::Y,
                    _ => Axis::Z,
                };
                let (place, ty) = (self.reporter.place(field), self.types.known(Type::I32));
                Val::Number(self.expr_of(ExprKind::Index(axis), ty, place))
            }
            (Val::Point, member) => {
                let message = format!("a point has no part `.{}`", tidy(member));
                self.poison(member, message, "its global indices are `.i`, `.j` and `.k`")
            }
            (Val::Tuple(items), Member::Unnamed(at)) if (at.index as usize) < items.len() => {
                items[at.index as usize].clone()
            }
            (base, member) => {
                let message = format!("{} has no part `.{}`", base.describe(), tidy(member));
                self.poison(member, message, "tuples have `.0`, `.1`, ..")
            }
        }
    }
}
