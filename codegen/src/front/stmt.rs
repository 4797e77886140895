//! Blocks, `let`, assignment, `if` and `for`.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Block, Expr, ExprForLoop, ExprIf, Item, Pat, Stmt as SynStmt};

use super::Front;
use super::report::tidy;
use super::scope::{Binding, IntType, Integer, Val};
use super::signature::Annotation;
use crate::ir::{ExprKind, Id, Local, Place, Stmt, Type};

/// More turns than this of all loops together take too long to unroll.
const MAX_TURNS: usize = 200_000;

/// More turns than this in one unrolled loop is a mistake, not a stencil.
pub(super) const MAX_UNROLLED: usize = 4096;

impl Front {
    /// The body of the function: a block that may end in `return value;`.
    pub(super) fn body(&mut self, block: &Block) -> Val {
        self.block_with(block, true)
    }

    /// A block as an expression.
    pub(super) fn block(&mut self, block: &Block) -> Val {
        self.block_with(block, false)
    }

    fn block_with(&mut self, block: &Block, outermost: bool) -> Val {
        let around = self.scope.clone();
        self.scope = around.inner();
        // Items are visible in the whole block, also above their definition.
        for stmt in &block.stmts {
            if let SynStmt::Item(item) = stmt {
                self.item(item);
            }
        }
        let mut value = Val::Unit;
        for (index, stmt) in block.stmts.iter().enumerate() {
            let last = index + 1 == block.stmts.len();
            value = match stmt {
                SynStmt::Expr(Expr::Return(exit), _) if last && outermost => match &exit.expr {
                    Some(value) => self.eval(value),
                    None => Val::Unit,
                },
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
        }
        self.scope = around;
        value
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Fn(function) => self.nested_function(function),
            Item::Const(constant) => {
                let value = self.named_value(constant.ident.unraw().to_string(), &constant.expr);
                let value = self.annotated(value, Some(&constant.ty), &*constant.expr);
                self.scope.bind(constant.ident.unraw().to_string(), Binding::Value(value));
            }
            Item::Macro(call) => {
                self.macro_call(&call.mac);
            }
            other => self.reporter.refuse(
                other,
                "this item can't be inside a stencil",
                "inside a stencil there may be `const`s, nested `fn`s and closures",
            ),
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
            (Val::Array(items), syn::Type::Array(array)) => {
                Val::Array(items.into_iter().map(|item| self.annotated(item, Some(&array.elem), tokens)).collect())
            }
            (Val::Tuple(items), syn::Type::Tuple(tuple)) if items.len() == tuple.elems.len() => Val::Tuple(
                items.into_iter().zip(&tuple.elems).map(|(item, ty)| self.annotated(item, Some(ty), tokens)).collect(),
            ),
            (Val::Integer(integer), syn::Type::Path(path)) => {
                let int = path.path.get_ident().and_then(|name| IntType::parse(&name.to_string()));
                match int {
                    Some(ty) if ty.holds(integer.value) => Val::Integer(Integer { value: integer.value, ty: Some(ty) }),
                    Some(_) => self.poison(tokens, format!("{} does not fit into `{}`", integer.value, tidy(path)), ""),
                    // rustc knows the type; if it is a float it will say so.
                    None => Val::Integer(integer),
                }
            }
            (Val::Number(number), ty) => {
                if let Annotation::Scalar(ty) = self.annotation(ty) {
                    let place = self.reporter.place(tokens);
                    self.expect_type(number, ty, place);
                }
                Val::Number(number)
            }
            (value, _) => value,
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
                let message = format!("the pattern `{}` does not fit {}", tidy(pattern), value.describe());
                let help = "patterns are names, tuples `(a, b)`, arrays `[a, b]`, `&x` and `_`";
                self.reporter.refuse(pattern, message, help);
                self.bind_poison(pattern);
            }
        }
    }

    fn bind_name(&mut self, pattern: &syn::PatIdent, value: Val) {
        let name = pattern.ident.unraw().to_string();
        let place = self.reporter.place(&pattern.ident);
        let binding = match (pattern.mutability.is_some(), value) {
            (false, Val::Number(number)) => {
                let number = self.named(number, &name, place);
                Binding::Value(Val::Number(number))
            }
            (true, Val::Number(number)) => {
                let local = self.declare(&name, number, None, place);
                self.variables.insert(local);
                Binding::Variable(local)
            }
            (true, Val::Integer(value)) => Binding::Counter { value, depth: self.blocks.len() },
            (true, Val::Poison) => Binding::Value(Val::Poison),
            (true, value) => {
                let help = "only numbers can be `let mut`; give the changed value a new name";
                self.reporter.refuse(pattern, format!("`{name}` is {} and can't be `mut`", value.describe()), help);
                Binding::Value(Val::Poison)
            }
            (false, value) => Binding::Value(self.named_parts(value, &name, place)),
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
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|pattern| self.bind_poison(pattern)),
            Pat::Slice(slice) => slice.elems.iter().for_each(|pattern| self.bind_poison(pattern)),
            _ => {}
        }
    }

    /// A local with its first value.
    pub(super) fn declare(
        &mut self,
        name: &str,
        value: Id<crate::ir::Expr>,
        note: Option<String>,
        place: Place,
    ) -> Id<Local> {
        let ty = self.types.exprs[value.index()];
        let local = self.new_local(name, ty, note);
        self.emit(Stmt::Let { local, value: Some(value), place });
        local
    }

    pub(super) fn new_local(&mut self, name: &str, ty: super::infer::TypeVar, note: Option<String>) -> Id<Local> {
        let local = Local { name: name.to_owned(), ty: Type::F64, mutable: false, note };
        self.types.locals.push(ty);
        self.kernel.locals.push(local)
    }

    /// The value under a name of its own, unless it is as simple as a name already.
    pub(super) fn named(&mut self, value: Id<crate::ir::Expr>, name: &str, place: Place) -> Id<crate::ir::Expr> {
        match &self.kernel.exprs[value].kind {
            ExprKind::Literal(_) | ExprKind::Param(_) => return value,
            ExprKind::Local(local) if !self.is_variable(*local) => return value,
            _ => {}
        }
        let ty = self.types.exprs[value.index()];
        let local = self.declare(name, value, None, place);
        self.expr_of(ExprKind::Local(local), ty, place)
    }

    /// The numbers of an array or tuple under names of their own.
    fn named_parts(&mut self, value: Val, name: &str, place: Place) -> Val {
        match value {
            Val::Number(number) => Val::Number(self.named(number, name, place)),
            Val::Array(items) => Val::Array(self.named_items(items, name, place)),
            Val::Tuple(items) => Val::Tuple(self.named_items(items, name, place)),
            other => other,
        }
    }

    fn named_items(&mut self, items: Vec<Val>, name: &str, place: Place) -> Vec<Val> {
        let part = |(index, item)| self.named_parts(item, &format!("{name}_{index}"), place);
        items.into_iter().enumerate().map(part).collect()
    }

    /// Whether a local stands for a `let mut`: reading it later may give another value.
    fn is_variable(&self, local: Id<Local>) -> bool {
        self.variables.contains(&local)
    }

    /// `target = value` and `target op= value`.
    pub(super) fn assign(&mut self, target: &Expr, value: Val, whole: &Expr) -> Val {
        let Expr::Path(path) = target else {
            let help = match target {
                Expr::Index(_) => {
                    "a stencil can't write into a field or array: the new value is what the function returns"
                }
                _ => "only a variable declared by `let mut` can be assigned",
            };
            return self.poison(target, format!("`{}` can't be assigned", tidy(target)), help);
        };
        let Some(name) = path.path.get_ident().map(|name| name.unraw().to_string()) else {
            return self.poison(
                target,
                format!("`{}` can't be assigned", tidy(target)),
                "only a variable declared by `let mut` can be assigned",
            );
        };
        match (self.scope.find(&name), value) {
            (None, _) => self.unknown_name(path, &name),
            (_, Val::Poison) | (Some(Binding::Value(Val::Poison)), _) => Val::Poison,
            (Some(Binding::Value(_)), _) => {
                self.poison(target, format!("`{name}` is not mutable"), format!("declare it by `let mut {name} = ..`"))
            }
            (Some(Binding::Variable(local)), value) => {
                let place = self.reporter.place(whole);
                let Some(value) = self.number(&value, None, place) else { return Val::Poison };
                self.unify(self.types.locals[local.index()], self.types.exprs[value.index()], place);
                self.kernel.locals[local].mutable = true;
                self.assigned.push(local);
                self.emit(Stmt::Assign { local, value, place });
                Val::Unit
            }
            (Some(Binding::Counter { value: old, depth }), Val::Integer(new)) => {
                if depth != self.blocks.len() {
                    let help = "integers are followed at compile time; use a float, or assign outside the `if`";
                    return self.poison(
                        whole,
                        format!("the integer `{name}` changes under a condition that is only known at run time"),
                        help,
                    );
                }
                let value = Integer { value: new.value, ty: old.ty.or(new.ty) };
                self.scope.rebind(&name, Binding::Counter { value, depth });
                Val::Unit
            }
            (Some(Binding::Counter { .. }), value) => self.poison(
                whole,
                format!("`{name}` is an integer, the new value is {}", value.describe()),
                "start it with a float: `0.0`",
            ),
        }
    }

    /// `if`, as statement and as expression.
    pub(super) fn branch(&mut self, branch: &ExprIf) -> Val {
        if let Expr::Let(pattern) = &*branch.cond {
            return self.poison(
                pattern,
                "`if let` is not part of the stencil language",
                "compare numbers: `if a < b { .. }`",
            );
        }
        let name = self.name_hint.take().unwrap_or_else(|| "chosen".to_owned());
        let condition = match self.eval(&branch.cond) {
            Val::Truth(true) => return self.block(&branch.then_branch),
            Val::Truth(false) => {
                return branch.else_branch.as_ref().map_or(Val::Unit, |(_, otherwise)| self.eval(otherwise));
            }
            Val::Poison => None,
            Val::Number(number) if self.types.get(self.types.exprs[number.index()]) == Some(Type::Bool) => Some(number),
            other => {
                self.reporter.refuse(
                    &branch.cond,
                    format!("the condition is {}", other.describe()),
                    "a condition is a comparison such as `a < b`",
                );
                None
            }
        };
        let place = self.reporter.place(branch);
        self.blocks.push(Vec::new());
        let yes = self.block(&branch.then_branch);
        let then = self.blocks.pop().expect("pushed above");
        self.blocks.push(Vec::new());
        let no = branch.else_branch.as_ref().map_or(Val::Unit, |(_, otherwise)| self.eval(otherwise));
        let otherwise = self.blocks.pop().expect("pushed above");
        let Some(condition) = condition else { return Val::Poison };
        let (mut then, mut otherwise) = (then, otherwise);
        let value = self.join(yes, no, &name, &mut then, &mut otherwise, place);
        self.emit(Stmt::If { condition, then, otherwise, place });
        value
    }

    /// One value out of the values of two branches; declares a local before the branches and assigns it in both.
    fn join(
        &mut self,
        yes: Val,
        no: Val,
        name: &str,
        then: &mut Vec<Stmt>,
        otherwise: &mut Vec<Stmt>,
        place: Place,
    ) -> Val {
        match (yes, no) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (Val::Unit, Val::Unit) => Val::Unit,
            (Val::Offset(a), Val::Offset(b)) if a == b => Val::Offset(a),
            (Val::Integer(a), Val::Integer(b)) if a.value == b.value => Val::Integer(a),
            (Val::Truth(a), Val::Truth(b)) if a == b => Val::Truth(a),
            (Val::Field(a), Val::Field(b)) if a == b => Val::Field(a),
            (Val::Tuple(a), Val::Tuple(b)) if a.len() == b.len() => {
                Val::Tuple(a.into_iter().zip(b).map(|(a, b)| self.join(a, b, name, then, otherwise, place)).collect())
            }
            (Val::Array(a), Val::Array(b)) if a.len() == b.len() => {
                Val::Array(a.into_iter().zip(b).map(|(a, b)| self.join(a, b, name, then, otherwise, place)).collect())
            }
            (Val::Offset(_), Val::Offset(_)) => {
                let message = "an offset depends on a condition that is only known at run time";
                self.report_join(
                    place,
                    message,
                    "read both and choose between the values: `if c { u[X] } else { u[-X] }`",
                )
            }
            (Val::Integer(_), Val::Integer(_)) => {
                let message = "an integer depends on a condition that is only known at run time";
                self.report_join(
                    place,
                    message,
                    "integers are compile-time values here; use floats: `if c { 1.0 } else { 2.0 }`",
                )
            }
            (yes @ (Val::Number(_) | Val::Truth(_)), no @ (Val::Number(_) | Val::Truth(_))) => {
                let (Some(yes), Some(no)) = (self.number(&yes, None, place), self.number(&no, None, place)) else {
                    return Val::Poison;
                };
                let ty = self.types.exprs[yes.index()];
                self.unify(ty, self.types.exprs[no.index()], place);
                let local = self.new_local(name, ty, None);
                self.emit(Stmt::Let { local, value: None, place });
                then.push(Stmt::Assign { local, value: yes, place });
                otherwise.push(Stmt::Assign { local, value: no, place });
                let value = self.expr_of(ExprKind::Local(local), ty, place);
                Val::Number(value)
            }
            (yes, no) => {
                let message = format!("one branch gives {}, the other {}", yes.describe(), no.describe());
                self.report_join(
                    place,
                    &message,
                    "both branches of an `if` must give the same kind of value; an `if` with a value needs `else`",
                )
            }
        }
    }

    fn report_join(&mut self, place: Place, message: &str, help: &str) -> Val {
        self.reporter.report(crate::Diagnostic::new(place, message).help(help));
        Val::Poison
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
            self.blocks.push(Vec::new());
            let around = self.scope.clone();
            self.scope = around.inner();
            self.bind_poison(&repeat.pat);
            self.block(&repeat.body);
            self.scope = around;
            self.blocks.pop();
            return Val::Poison;
        };
        if items.len() > MAX_UNROLLED {
            let help = format!("loops are unrolled, so at most {MAX_UNROLLED} turns are possible");
            return self.poison(&repeat.expr, format!("this loop has {} turns", items.len()), help);
        }
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
            self.block(&repeat.body);
            self.scope = around;
        }
        Val::Unit
    }
}
