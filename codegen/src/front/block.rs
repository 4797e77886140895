//! Blocks, `let`, patterns and `for`.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Block, Expr, ExprForLoop, Item, Pat, Stmt as SynStmt};

use super::Front;
use super::fold::fold_type;
use super::infer::TypeVar;
use super::report::{tidy, tidy_type};
use super::scope::{Binding, IntType, Integer, Val};
use super::signature::Annotation;
use super::suggest::type_elsewhere;
use crate::ir::{Expr as IrExpr, ExprKind, Field, Id, Local, Place, Stmt, Type};

/// More turns than this in one unrolled loop is a mistake, not a stencil.
pub(super) const MAX_UNROLLED: usize = 4096;

/// More turns than this of all loops together take too long to unroll.
const MAX_TURNS: usize = 200_000;

impl Front {
    /// A block as an expression. What stands after a `return` is not looked at.
    pub(super) fn block(&mut self, block: &Block) -> Val {
        let around = self.scope.clone();
        self.scope = around.inner();
        // Items are visible in the whole block, also above their definition.
        for stmt in &block.stmts {
            if let SynStmt::Item(item) = stmt {
                self.item(item);
            }
        }
        let mut value = Val::Unit;
        for stmt in &block.stmts {
            value = match stmt {
                SynStmt::Expr(expr, None) => self.eval(expr),
                SynStmt::Expr(expr, Some(_)) => {
                    self.eval(expr);
                    Val::Unit
                }
                SynStmt::Local(local) => {
                    self.local(local);
                    Val::Unit
                }
                SynStmt::Item(_) => Val::Unit,
                SynStmt::Macro(call) => self.macro_call(&call.mac),
            };
            if self.has_returned() {
                break;
            }
        }
        self.scope = around;
        value
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Fn(function) => self.nested_function(function),
            Item::Const(constant) => {
                let name = constant.ident.unraw().to_string();
                let value = self.named_value(name.clone(), &constant.expr);
                let value = self.annotated(value, Some(&constant.ty), &*constant.expr);
                self.scope.bind(name, Binding::Constant(value));
            }
            Item::Macro(call) => {
                self.macro_call(&call.mac);
            }
            other => {
                let (what, help) = match other {
                    Item::Use(_) => (
                        "`use`",
                        "write the whole path where it is needed: `std::f64::consts::PI`; other names of the program can't be \
                         seen",
                    ),
                    Item::Static(_) => ("a `static`", "write `const W: [f64; 2] = ..;`"),
                    Item::Struct(_) | Item::Enum(_) | Item::Union(_) => {
                        ("a type of your own", "use plain numbers, arrays `[a, b]` and tuples `(a, b)`")
                    }
                    Item::Trait(_) | Item::Impl(_) => {
                        ("methods of your own", "write a nested `fn` or a closure: `let square = |x: f64| x * x;`")
                    }
                    Item::Type(_) => ("another name for a type", "write the type itself"),
                    _ => ("this item", "inside a stencil there may be `const`s, nested `fn`s and closures"),
                };
                self.reporter.refuse(other, format!("{what} can't be inside a stencil"), help);
            }
        }
    }

    fn local(&mut self, local: &syn::Local) {
        let (pattern, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        let Some(init) = &local.init else {
            let help = "give it a value at once; `let a = if c { x } else { y };` chooses between two";
            self.reporter.refuse(&local.pat, "a variable without a value", help);
            return self.bind_poison(pattern);
        };
        if let Some((token, _)) = &init.diverge {
            let help = "write a plain `let`, and `if` for a choice";
            self.reporter.refuse(token, "`let .. else` is not part of the stencil language", help);
        }
        let name = match pattern {
            Pat::Ident(name) => name.ident.unraw().to_string(),
            _ => "part".to_owned(),
        };
        let value = self.named_value(name, &init.expr);
        let value = self.annotated(value, ty, &*init.expr);
        // A new level, so that closures made earlier keep the meaning of a name that is shadowed here.
        self.scope = self.scope.inner();
        self.bind(pattern, value);
    }

    /// Evaluates with a name for the local that the value may need.
    fn named_value(&mut self, name: String, expr: &Expr) -> Val {
        if let Expr::Closure(closure) = expr {
            return self.closure(name, closure);
        }
        self.name_hint = Some(name);
        let value = self.eval(expr);
        self.name_hint = None;
        value
    }

    /// Holds a value against a written type.
    pub(super) fn annotated(&mut self, value: Val, ty: Option<&syn::Type>, tokens: &impl ToTokens) -> Val {
        let Some(ty) = ty else { return value };
        match (value, ty) {
            (value, syn::Type::Paren(inner)) => self.annotated(value, Some(&inner.elem), tokens),
            (value, syn::Type::Group(inner)) => self.annotated(value, Some(&inner.elem), tokens),
            (
                value @ (Val::Array(_) | Val::Tuple(_) | Val::Integer(_) | Val::Number(_) | Val::Fold(_)),
                syn::Type::Reference(inner),
            ) => self.annotated(value, Some(&inner.elem), tokens),
            (Val::Fold(fold), ty) => self.annotated_fold(fold, ty),
            (value @ (Val::Number(_) | Val::Integer(_) | Val::Truth(_)), ty) if fold_type(ty).is_some() => {
                self.not_folded(&value, ty, tokens)
            }
            (Val::Field(field), ty) => self.annotated_field(field, ty, tokens),
            (Val::Array(items), syn::Type::Array(array)) => {
                let types = vec![&*array.elem; items.len()];
                Val::Array(self.annotated_parts(items, &types, tokens))
            }
            (Val::Array(items), syn::Type::Slice(slice)) => {
                Val::Array(items.into_iter().map(|item| self.annotated(item, Some(&slice.elem), tokens)).collect())
            }
            (Val::Tuple(items), syn::Type::Tuple(tuple)) if items.len() == tuple.elems.len() => {
                let types: Vec<&syn::Type> = tuple.elems.iter().collect();
                Val::Tuple(self.annotated_parts(items, &types, tokens))
            }
            (Val::Integer(integer), syn::Type::Path(path)) => {
                let int = path.path.get_ident().and_then(|name| IntType::parse(&name.to_string()));
                match int {
                    Some(ty) if ty.holds(integer.value) => Val::Integer(Integer { ty: Some(ty), ..integer }),
                    Some(_) => self.poison(tokens, format!("{} does not fit into `{}`", integer.value, tidy(path)), ""),
                    None => self.annotated_integer(integer, ty, tokens),
                }
            }
            (Val::Number(_) | Val::Array(_) | Val::Tuple(_) | Val::Truth(_), syn::Type::Path(path))
                if matches!(self.annotation(ty), Annotation::Unknown) =>
            {
                self.unknown_type(ty, &tidy_type(ty), path)
            }
            (Val::Number(number), ty) => {
                if let Annotation::Scalar(ty) = self.annotation(ty) {
                    let place = self.reporter.place(tokens);
                    if !self.expect_type(number, ty, tokens, place) {
                        return Val::Poison;
                    }
                }
                Val::Number(number)
            }
            (value, _) => value,
        }
    }

    /// The parts of an array or a tuple, each held against its type: what is wrong is shown at the part where that is written.
    fn annotated_parts(&mut self, items: Vec<Val>, types: &[&syn::Type], tokens: &impl ToTokens) -> Vec<Val> {
        let whole = tokens.to_token_stream();
        let fits = |item: &Val, ty: &syn::Type| match (item, super::instances::is_scalar(ty)) {
            (Val::Integer(_), true) => !tidy_type(ty).starts_with('f'),
            (Val::Number(number), true) => {
                let found = self.types.get(self.types.exprs[number.index()]);
                found.is_none_or(|found| found.name() == tidy_type(ty))
            }
            _ => true,
        };
        let written = match items.iter().zip(types).all(|(item, ty)| fits(item, ty)) {
            true => None,
            false => match syn::parse2::<Expr>(whole.clone()) {
                Ok(Expr::Array(array)) => Some(array.elems.into_iter().collect::<Vec<_>>()),
                Ok(Expr::Tuple(tuple)) => Some(tuple.elems.into_iter().collect()),
                _ => None,
            },
        };
        let written = written.filter(|written| written.len() == items.len());
        let part = |at: usize| written.as_ref().map_or_else(|| whole.clone(), |all| all[at].to_token_stream());
        let parts = items.into_iter().zip(types).enumerate();
        parts.map(|(at, (item, ty))| self.annotated(item, Some(ty), &part(at))).collect()
    }

    /// An integer known at compile time held against a type that is none of integers.
    fn annotated_integer(&mut self, integer: Integer, ty: &syn::Type, tokens: &impl ToTokens) -> Val {
        match (self.annotation(ty), ty) {
            (Annotation::Scalar(scalar), _) => {
                let (place, wanted) = (self.reporter.place(tokens), self.types.known(scalar));
                self.number(&Val::Integer(integer), Some(wanted), place).map_or(Val::Poison, Val::Number)
            }
            (_, syn::Type::Path(path)) => self.unknown_type(ty, &tidy_type(ty), path),
            _ => Val::Integer(integer),
        }
    }

    /// A type whose name means nothing here; rustc may know it, but then the devices would compute something else.
    fn unknown_type(&mut self, ty: &syn::Type, written: &str, path: &syn::TypePath) -> Val {
        let last = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let help = match last.as_str() {
            "Option" | "Result" => "a value is always there: write the type of the number itself, `f64`".to_owned(),
            "Vec" | "Box" | "String" => "memory can't be allocated in a stencil; use an array, `[f64; 3]`".to_owned(),
            "i16" | "u16" | "i128" | "u128" => {
                "integers of the kernel have 8, 32 or 64 bits: take `i32` or `u32`".to_owned()
            }
            last => match type_elsewhere(last) {
                Some(meant) => format!("in Rust it is `{meant}`"),
                None => "write the type itself, such as `f64` or `[f64; 3]`; another name for numbers, arrays and tuples of them, \
                         `type Real = f64;`, is seen only where it stands in a `#[stencil] mod`"
                    .to_owned(),
            },
        };
        self.poison(ty, format!("the type `{written}` is not known inside the stencil"), help)
    }

    /// A field held against a written type.
    fn annotated_field(&mut self, field: Id<Field>, ty: &syn::Type, tokens: &impl ToTokens) -> Val {
        let found = &self.kernel.fields[field];
        let (name, found_type, axes) = (found.name.clone(), found.type_name(), found.axes);
        match self.annotation(ty) {
            Annotation::Field(wanted) if wanted.axes != axes => {
                let message = format!("`{name}` is a `{found_type}`, here a `{}` is taken", wanted.name());
                let help = format!("write `&{found_type}`, or let a closure take what it is given: `|w| w[HERE]`");
                self.poison(tokens, message, help)
            }
            // The type of a cell is left to rustc.
            _ => Val::Field(field),
        }
    }

    /// Binds the names of a pattern.
    pub(super) fn bind(&mut self, pattern: &Pat, value: Val) {
        match (pattern, value) {
            (Pat::Wild(_), _) => {}
            (Pat::Paren(inner), value) => self.bind(&inner.pat, value),
            (Pat::Type(typed), value) => {
                let value = self.annotated(value, Some(&typed.ty), &typed.pat);
                self.bind(&typed.pat, value);
            }
            (Pat::Reference(inner), value) => self.bind(&inner.pat, value),
            (Pat::Ident(name), value) if name.by_ref.is_none() && name.subpat.is_none() => {
                self.bind_name(name, value);
            }
            (Pat::Tuple(tuple), Val::Tuple(items)) if tuple.elems.len() == items.len() => {
                for (pattern, item) in tuple.elems.iter().zip(items) {
                    self.bind(pattern, item);
                }
            }
            (Pat::Slice(slice), Val::Array(items)) if slice.elems.len() == items.len() => {
                for (pattern, item) in slice.elems.iter().zip(items) {
                    self.bind(pattern, item);
                }
            }
            (pattern, Val::Poison) => self.bind_poison(pattern),
            (pattern, value) => {
                let message = format!("the pattern `{}` does not fit {}", tidy(pattern), value.sized());
                let help = match pattern {
                    Pat::Slice(slice) if slice.elems.iter().any(|part| matches!(part, Pat::Rest(_))) => {
                        "name each part, with `_` for what is not needed: `[a, _, _]`"
                    }
                    Pat::Tuple(tuple) if tuple.elems.iter().any(|part| matches!(part, Pat::Rest(_))) => {
                        "name each part, with `_` for what is not needed: `(a, _, _)`"
                    }
                    _ => "patterns are names, tuples `(a, b)`, arrays `[a, b]`, `&x` and `_`",
                };
                self.reporter.refuse(pattern, message, help);
                self.bind_poison(pattern);
            }
        }
    }

    fn bind_name(&mut self, pattern: &syn::PatIdent, value: Val) {
        let name = pattern.ident.unraw().to_string();
        let place = self.reporter.place(&pattern.ident);
        let binding = match pattern.mutability.is_some() {
            true => self.variable(&name, value, pattern, place),
            false => Binding::Value(self.named_parts(value, &name, place)),
        };
        self.scope.bind(name, binding);
    }

    /// Binds every name of a pattern to nothing useful, so that later uses stay quiet.
    pub(super) fn bind_poison(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Ident(name) => self.scope.bind(name.ident.unraw().to_string(), Binding::Value(Val::Poison)),
            Pat::Type(typed) => self.bind_poison(&typed.pat),
            Pat::Paren(inner) => self.bind_poison(&inner.pat),
            Pat::Reference(inner) => self.bind_poison(&inner.pat),
            Pat::Guard(inner) => self.bind_poison(&inner.pat),
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|pattern| self.bind_poison(pattern)),
            Pat::Slice(slice) => slice.elems.iter().for_each(|pattern| self.bind_poison(pattern)),
            _ => {}
        }
    }

    /// A local with its first value.
    pub(super) fn declare(&mut self, name: &str, value: Id<IrExpr>, note: Option<String>, place: Place) -> Id<Local> {
        let ty = self.types.exprs[value.index()];
        let local = self.new_local(name, ty, note);
        self.emit(Stmt::Let { local, value: Some(value), place });
        local
    }

    pub(super) fn new_local(&mut self, name: &str, ty: TypeVar, note: Option<String>) -> Id<Local> {
        let local = Local { name: name.to_owned(), ty: Type::F64, mutable: false, note };
        self.types.locals.push(ty);
        self.kernel.locals.push(local)
    }

    /// The value under a name of its own, unless it is as simple as a name already.
    pub(super) fn named(&mut self, value: Id<IrExpr>, name: &str, place: Place) -> Id<IrExpr> {
        match &self.kernel.exprs[value].kind {
            ExprKind::Literal(_) | ExprKind::Param(_) => return value,
            ExprKind::Local(local) if !self.variables.contains(local) => return value,
            _ => {}
        }
        let ty = self.types.exprs[value.index()];
        let local = self.declare(name, value, None, place);
        self.expr_of(ExprKind::Local(local), ty, place)
    }

    /// The numbers of an array or tuple under names of their own.
    fn named_parts(&mut self, value: Val, name: &str, place: Place) -> Val {
        let items = |front: &mut Self, items: Vec<Val>| {
            let part = |(index, item)| front.named_parts(item, &format!("{name}_{index}"), place);
            items.into_iter().enumerate().map(part).collect()
        };
        match value {
            Val::Number(number) => Val::Number(self.named(number, name, place)),
            Val::Array(parts) => Val::Array(items(self, parts)),
            Val::Tuple(parts) => Val::Tuple(items(self, parts)),
            Val::Fold(fold) => {
                let value = self.named_parts((*fold.value).clone(), name, place);
                fold.with(value)
            }
            other => other,
        }
    }

    /// The value as it is now: what reads a `let mut` variable is kept under a name.
    pub(super) fn frozen(&mut self, value: Val, name: &str, place: Place) -> Val {
        let variables: Vec<Id<Local>> = self.variables.iter().copied().collect();
        match variables.is_empty() || !self.reads_any(&value, &variables) {
            true => value,
            false => self.named_parts(value, name, place),
        }
    }

    /// `for`, unrolled.
    pub(super) fn unroll(&mut self, repeat: &ExprForLoop) -> Val {
        if let Some(label) = &repeat.label {
            self.reporter.refuse(
                label,
                "labels are not part of the stencil language",
                "loops are unrolled and run to their end; remove the label",
            );
        }
        let Some(items) = self.sequence(&repeat.expr) else {
            // Only to report what is wrong in the body.
            let around = self.scope.clone();
            self.scope = around.inner();
            self.bind_poison(&repeat.pat);
            self.under_condition("part", |front| front.block(&repeat.body));
            self.scope = around;
            return Val::Poison;
        };
        if items.len() > MAX_UNROLLED {
            let help = format!("loops are unrolled, so at most {MAX_UNROLLED} turns are possible");
            return self.poison(&repeat.expr, format!("this loop has {} turns", items.len()), help);
        }
        let place = self.reporter.place(&repeat.expr);
        let items: Vec<Val> = items.into_iter().map(|item| self.frozen(item, "item", place)).collect();
        for item in items {
            if self.is_full() {
                return Val::Poison;
            }
            self.turns += 1;
            if self.turns > MAX_TURNS {
                let message = format!("the loops of this stencil have more than {MAX_TURNS} turns in all");
                return self.poison(&repeat.expr, message, "loops are unrolled: use fewer turns");
            }
            let around = self.scope.clone();
            self.scope = around.inner();
            self.bind(&repeat.pat, item);
            if let Pat::Ident(name) = &*repeat.pat {
                self.counters.insert(name.ident.to_string());
            }
            self.block(&repeat.body);
            self.scope = around;
            if self.has_returned() {
                break;
            }
        }
        Val::Unit
    }
}
