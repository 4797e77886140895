//! Expressions.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, ExprIndex, ExprPath, Member};

use super::Front;
use super::instances::plain_path;
use super::report::tidy;
use super::scope::{Binding, Integer, Val};
use super::suggest::nearest;
use crate::diagnostic::Diagnostic;
use crate::ir::{Axis, ExprKind, Field, Id, Offset, Type};
use crate::verify::MAX_OFFSET;

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
        let place = self.reporter.place(tokens);
        let own_text = "a stencil is compiled for other devices from its own text, so it can't see names outside of it";
        let (help, note) = match name {
            "x" | "y" | "z" => (format!("offsets are written in capitals: `{}`", name.to_uppercase()), None),
            "i" | "j" | "k" => (
                format!(
                    "neighbours are read at offsets, `u[X]`, not at indices; the point's own are those of a parameter `p: Point`: `p.{name}`"
                ),
                None,
            ),
            "Sum" | "Max" | "Min" => (format!("it is called with the value that is to be folded: `{name}(x)`"), None),
            "pi" | "PI" => ("write the whole path: `std::f64::consts::PI`".to_owned(), None),
            "None" => ("a stencil always gives a value; choose one by `if`".to_owned(), None),
            "self" | "Self" => ("a stencil is a free function: pass what it needs as parameters".to_owned(), None),
            "nx" | "ny" | "nz" => (
                format!(
                    "a stencil is written for one point and runs at all of them, so it doesn't know the size of the grid; where it matters, pass it as a scalar: `{name}: i32`"
                ),
                None,
            ),
            _ if self.is_seen_by_callers(name) => (seen_by_callers(name), None),
            _ => match nearest(name, self.scope.names()) {
                Some(near) => (format!("there is `{near}`"), None),
                None => (
                    format!("pass it as a parameter, or move `const {name}: .. = ..;` into the function"),
                    Some(own_text),
                ),
            },
        };
        let message = format!("`{name}` is not known inside the stencil");
        let mut diagnostic = Diagnostic::new(place, message).help(help);
        diagnostic.note = note.map(str::to_owned);
        self.reporter.report(diagnostic);
        Val::Poison
    }

    fn index(&mut self, index: &ExprIndex) -> Val {
        if let Some((name, at)) = self.read_at_indices(index) {
            return self.indices_refused(&name, at, index);
        }
        if let Expr::Range(range) = &*index.index {
            return self.slice_refused(range, index);
        }
        match inner_index(&index.expr) {
            Some(inner) => {
                let mut values = self.eval_all([&*inner.expr, &*inner.index, &*index.index]).into_iter();
                let mut next = || values.next().expect("three operands give three values");
                let (rows, row, column) = (next(), next(), next());
                match (&rows, &row) {
                    (Val::Array(rows), Val::Number(row)) if rows.iter().all(|row| matches!(row, Val::Array(_))) => {
                        self.element_of_rows(rows, *row, column, inner, index)
                    }
                    _ => {
                        let base = self.indexed(rows, row, inner);
                        self.indexed(base, column, index)
                    }
                }
            }
            None => {
                let (base, at) = self.eval_pair(&index.expr, &index.index);
                self.indexed(base, at, index)
            }
        }
    }

    /// `base[at]` of two values.
    fn indexed(&mut self, base: Val, at: Val, index: &ExprIndex) -> Val {
        match (base, at) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (Val::Field(field), Val::Offset(offset)) => {
                if let Some(axis) = self.kernel.fields[field].leaves(offset) {
                    return self.left(field, offset, axis, &index.index);
                }
                let place = self.reporter.place(index);
                let ty = self.types.known(self.kernel.fields[field].ty);
                Val::Number(self.expr_of(ExprKind::Load { field, offset }, ty, place))
            }
            (Val::Field(field), at) => {
                let name = self.kernel.fields[field].name.clone();
                let message = format!("field `{name}` is indexed by {}, not by an offset", at.describe());
                let help = match at {
                    Val::Integer(_) if plain_path(&index.index).is_some() => {
                        let steps = tidy(&index.index);
                        format!("say along which axis: `{name}[{steps}*X]` is {steps} cells along X")
                    }
                    Val::Point => {
                        format!("the point itself is `{name}[HERE]`, its neighbours are at offsets: `{name}[X]`")
                    }
                    Val::Field(_) => {
                        format!("read it at an offset: `{name}[X]`; one field can't say where another is read")
                    }
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
            (base, at) => {
                let help = self.not_indexed(&base, &at, index);
                self.poison(&*index.expr, format!("{} can't be indexed", base.describe()), help)
            }
        }
    }

    /// The field and the indices of `u[i + 1][j][k]` and `u[(i + 1, j, k)]`, where nothing here is named `i`.
    fn read_at_indices<'e>(&self, index: &'e ExprIndex) -> Option<(String, Vec<&'e Expr>)> {
        let mut at: Vec<&Expr> = match &*index.index {
            Expr::Tuple(tuple) => tuple.elems.iter().collect(),
            Expr::Array(array) => array.elems.iter().collect(),
            single => vec![single],
        };
        let mut base = &*index.expr;
        while let Expr::Index(inner) = base {
            at.insert(0, &inner.index);
            base = &inner.expr;
        }
        let name = plain_path(base)?.unraw().to_string();
        let is_field = matches!(self.scope.find(&name), Some(Binding::Value(Val::Field(_))));
        (is_field && at.iter().all(|at| self.grid_index(at).is_some())).then_some((name, at))
    }

    /// The axis and the displacement in an index as other languages have it: `i`, `j + 1`, `k - 2`.
    fn grid_index(&self, tokens: &Expr) -> Option<(usize, i32)> {
        let axis = |expr: &Expr| {
            let name = plain_path(expr)?.to_string();
            let axis = ["i", "j", "k"].iter().position(|axis| *axis == name)?;
            self.scope.find(&name).is_none().then_some(axis)
        };
        match tokens {
            Expr::Paren(inner) => self.grid_index(&inner.expr),
            Expr::Binary(binary) => {
                let sign = match binary.op {
                    syn::BinOp::Add(_) => 1,
                    syn::BinOp::Sub(_) => -1,
                    _ => return None,
                };
                let Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(cells), .. }) = &*binary.right else { return None };
                Some((
                    axis(&binary.left)?,
                    sign * cells.base10_parse::<i32>().ok().filter(|cells| *cells <= MAX_OFFSET)?,
                ))
            }
            single => Some((axis(single)?, 0)),
        }
    }

    /// Says how a read at indices is written.
    pub(super) fn indices_refused(&mut self, field: &str, at: Vec<&Expr>, tokens: &impl ToTokens) -> Val {
        let mut offset = Offset::HERE;
        for (axis, cells) in at.iter().filter_map(|at| self.grid_index(at)) {
            offset.0[axis] += cells;
        }
        let message = format!("the field `{field}` is read at indices, not at an offset");
        let help = format!("a stencil is written for one point and names its neighbours: write `{field}[{offset}]`");
        self.poison(tokens, message, help)
    }

    /// Whether all of these are indices as other languages have them.
    pub(super) fn are_grid_indices(&self, at: &[&Expr]) -> bool {
        !at.is_empty() && at.iter().all(|at| self.grid_index(at).is_some())
    }

    /// `w[1..3]`.
    fn slice_refused(&mut self, range: &syn::ExprRange, index: &ExprIndex) -> Val {
        let written = tidy(&index.expr);
        match self.eval(&index.expr) {
            Val::Poison => Val::Poison,
            Val::Field(_) => {
                let help = format!(
                    "name each neighbour, `{written}[-X] + {written}[X]`, or loop: `for i in -1..=1 {{ s += {written}[i*X]; }}`"
                );
                self.poison(range, format!("the field `{written}` is read at one offset at a time"), help)
            }
            _ => {
                let help = format!("loop over the indices: `for i in {} {{ s += {written}[i]; }}`", tidy(range));
                self.poison(range, "slices are not part of the stencil language", help)
            }
        }
    }

    /// What to write instead of `base[at]`, where `base` is neither a field nor an array.
    fn not_indexed(&self, base: &Val, at: &Val, index: &ExprIndex) -> String {
        let name = plain_path(&index.expr).map(|name| name.unraw().to_string());
        let hidden = name.filter(|name| self.kernel.fields.iter().any(|field| field.name == *name));
        match (base, &*index.expr, hidden) {
            (_, _, Some(name)) => {
                format!("`{name}` is a variable here that hides the field of this name; give it another name")
            }
            (Val::Number(_), Expr::Index(inner), _) if matches!(at, Val::Offset(_)) => {
                let (field, first, second) = (tidy(&inner.expr), tidy(&inner.index), tidy(&index.index));
                format!("offsets are added: `{field}[{first} + {second}]`")
            }
            (Val::Tuple(_), ..) => "the parts of a tuple are `.0`, `.1`, ..".to_owned(),
            (Val::Point, ..) => "its global indices are `.i`, `.j` and `.k`".to_owned(),
            (Val::Closure(_), ..) => "it is called with parentheses: `f(X)`".to_owned(),
            _ => "fields and arrays can".to_owned(),
        }
    }

    /// A read of a field along an axis that it lacks.
    fn left(&mut self, field: Id<Field>, offset: Offset, axis: Axis, tokens: &Expr) -> Val {
        let field = &self.kernel.fields[field];
        let mut within = offset;
        for axis in Axis::ALL.into_iter().filter(|axis| !field.axes[*axis as usize]) {
            within.0[axis as usize] = 0;
        }
        let (name, axis) = (&field.name, axis.name());
        let message =
            format!("`{name}` is read along {axis}, but a `{}` does not extend along {axis}", field.type_name());
        let help = format!("it is the same everywhere along {axis}: write `{name}[{within}]`");
        self.poison(tokens, message, help)
    }

    /// Whether a name is known where the function being inlined is called.
    pub(super) fn is_seen_by_callers(&self, name: &str) -> bool {
        self.callers.iter().any(|scope| scope.find(name).is_some())
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
            (Val::Fold(fold), member) => {
                let (name, part) = (fold.name(), tidy(member));
                let help = format!("give the value a name before it is folded: `let x = ..; {name}(x)`");
                self.fold_refused(member, format!("`.{part}` of {}", fold.describe()), help)
            }
            (Val::Field(field), member) => {
                let (name, member_name) = (self.kernel.fields[field].name.clone(), tidy(member));
                let message = format!("the field `{name}` has no part `.{member_name}`");
                let help = match member_name.as_str() {
                    "X" | "Y" | "Z" | "HERE" => format!("it is read with brackets: `{name}[{member_name}]`"),
                    "x" | "y" | "z" => format!("it is read with brackets: `{name}[{}]`", member_name.to_uppercase()),
                    _ => format!("a stencil reads a field at offsets, `{name}[X]`, and nothing else"),
                };
                self.poison(member, message, help)
            }
            (base, member) => {
                let message = format!("{} has no part `.{}`", base.describe(), tidy(member));
                self.poison(member, message, "tuples have `.0`, `.1`, ..")
            }
        }
    }
}

/// `a[i]` of `a[i][j]`, where `a` is a name.
fn inner_index(base: &Expr) -> Option<&ExprIndex> {
    match base {
        Expr::Paren(inner) => inner_index(&inner.expr),
        Expr::Group(inner) => inner_index(&inner.expr),
        Expr::Index(inner) if plain_path(&inner.expr).is_some() && !matches!(&*inner.index, Expr::Range(_)) => {
            Some(inner)
        }
        _ => None,
    }
}

/// Why a name of the stencil is not known in a function inside of it.
pub(super) fn seen_by_callers(name: &str) -> String {
    format!("a nested `fn` sees only its parameters, and a closure what stands above it: pass `{name}` as a parameter")
}
