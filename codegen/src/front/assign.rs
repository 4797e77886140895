//! `let mut` and assignment.

use syn::ext::IdentExt;
use syn::{Expr, Member};

use super::Front;
use super::report::tidy;
use super::scope::{Binding, Integer, Site, Val, Variable};
use crate::Diagnostic;
use crate::ir::{Expr as IrExpr, ExprKind, Id, Local, Place, Stmt};

impl Front {
    /// What a `let mut` name stands for.
    pub(super) fn variable(&mut self, name: &str, value: Val, pattern: &syn::PatIdent, place: Place) -> Binding {
        let site: Site = (place.line, place.column);
        let followed = match value {
            Val::Integer(_) | Val::Truth(_) => !self.at_run_time.contains(&site),
            Val::Offset(_) => true,
            _ => false,
        };
        if followed {
            return Binding::Followed { value, conditions: self.conditions, site };
        }
        match value {
            Val::Poison => Binding::Value(Val::Poison),
            value => match self.locals_for(name, &value, place) {
                Some(variable) => Binding::Variable(variable),
                None => {
                    let help = match &value {
                        Val::Fold(fold) => format!("change the number, and fold it at last: `{}(x)`", fold.name()),
                        _ => {
                            "numbers, bools, and arrays and tuples of them can be `let mut`; give the changed value a \
                              new name"
                                .to_owned()
                        }
                    };
                    self.reporter.refuse(pattern, format!("`{name}` is {} and can't be `mut`", value.describe()), help);
                    Binding::Value(Val::Poison)
                }
            },
        }
    }

    /// Locals that start with a value; `None` when some part of it is no number.
    fn locals_for(&mut self, name: &str, value: &Val, place: Place) -> Option<Variable> {
        let parts = |front: &mut Self, items: &[Val]| {
            let part = |(at, item)| front.locals_for(&format!("{name}_{at}"), item, place);
            items.iter().enumerate().map(part).collect::<Option<Vec<_>>>()
        };
        match value {
            Val::Number(_) | Val::Integer(_) | Val::Truth(_) => {
                let number = self.number(value, None, place)?;
                let local = self.declare(name, number, None, place);
                self.variables.insert(local);
                Some(Variable::Number(local))
            }
            Val::Array(items) => Some(Variable::Array(parts(self, items)?)),
            Val::Tuple(items) => Some(Variable::Tuple(parts(self, items)?)),
            Val::Poison | Val::Unit | Val::Offset(_) | Val::Field(_) | Val::Point | Val::Closure(_) => None,
            Val::Fold(_) => None,
        }
    }

    /// The value of a variable where it is read.
    pub(super) fn read(&mut self, variable: &Variable, place: Place) -> Val {
        match variable {
            Variable::Number(local) => {
                let ty = self.types.locals[local.index()];
                Val::Number(self.expr_of(ExprKind::Local(*local), ty, place))
            }
            Variable::Array(parts) => Val::Array(parts.iter().map(|part| self.read(part, place)).collect()),
            Variable::Tuple(parts) => Val::Tuple(parts.iter().map(|part| self.read(part, place)).collect()),
        }
    }

    /// `target = value` and `target op= value`.
    pub(super) fn assign(&mut self, target: &Expr, value: Val, whole: &Expr) -> Val {
        if self.has_returned() {
            return Val::Poison; // The value has left the function, so nothing is assigned.
        }
        let Some((path, name)) = root(target) else {
            let help = "only a variable declared by `let mut` can be assigned, or an element of it";
            return self.poison(target, format!("`{}` can't be assigned", tidy(target)), help);
        };
        let part = !matches!(target, Expr::Path(_) | Expr::Paren(_) | Expr::Group(_) | Expr::Unary(_));
        match (self.scope.find(&name), value) {
            (None, _) => self.unknown_name(path, &name),
            (Some(Binding::Value(Val::Poison) | Binding::Constant(Val::Poison)), _) => Val::Poison,
            (Some(Binding::Value(Val::Field(_))), _) if part => {
                let help = "a stencil can't write into a field: the new value is what the function returns";
                self.poison(target, format!("`{}` can't be assigned", tidy(target)), help)
            }
            (Some(Binding::Value(value)), _) => {
                let is_parameter = matches!(value, Val::Number(number) if self.is_parameter(number, &name));
                let help = match is_parameter {
                    true => format!(
                        "a parameter is the same at every point; start a variable with it: `let mut {name} = {name};`"
                    ),
                    false => format!("declare it with `mut`: `let mut {name} = ..`"),
                };
                // What follows is about the value that it would have had.
                self.scope.rebind(&name, Binding::Value(Val::Poison));
                self.poison(path, format!("`{name}` is not mutable"), help)
            }
            (Some(Binding::Constant(_)), _) => self.poison(
                target,
                format!("`{name}` is a `const`"),
                format!("start a variable with it: `let mut x = {name};`"),
            ),
            (Some(Binding::Followed { .. }), Val::Poison) => {
                self.scope.rebind(&name, Binding::Value(Val::Poison));
                Val::Poison
            }
            (Some(Binding::Variable(_)), Val::Poison) => Val::Poison,
            (Some(Binding::Variable(variable)), value) => {
                let place = self.reporter.place(whole);
                let Some(variable) = self.part_of(variable, target) else { return Val::Poison };
                let locals = variable.locals();
                // In `w = [w[1], w[0]]` all parts are read before any is written.
                let value = match variable {
                    Variable::Array(_) | Variable::Tuple(_) if self.reads_any(&value, &locals) => {
                        self.frozen(value, "part", place)
                    }
                    _ => value,
                };
                self.store(&variable, &value, place);
                Val::Unit
            }
            (Some(Binding::Followed { value: old, .. }), _) if part => {
                let message = format!("`{name}` is {}, which has no parts", old.describe());
                self.poison(target, message, "arrays are indexed: `let mut w = [0.0; 3]; w[0] = 1.0;`")
            }
            (Some(Binding::Followed { value: old, conditions, site }), new) => {
                self.follow(name, old, new, conditions, site, target)
            }
        }
    }

    /// Whether a number is the scalar parameter of this name.
    fn is_parameter(&self, number: Id<IrExpr>, name: &str) -> bool {
        matches!(self.kernel.exprs[number].kind, ExprKind::Param(param) if self.kernel.params[param].name == name)
    }

    /// A new value for what is followed at compile time, if it still can be.
    fn follow(&mut self, name: String, old: Val, new: Val, conditions: usize, site: Site, target: &Expr) -> Val {
        let value = match (&old, &new) {
            _ if self.conditions > conditions => None,
            (Val::Integer(old), Val::Integer(new)) => Some(Val::Integer(Integer { ty: old.ty.or(new.ty), ..*new })),
            (Val::Truth(_), Val::Truth(_)) | (Val::Offset(_), Val::Offset(_)) => Some(new),
            _ => None,
        };
        match (value, old) {
            (Some(value), _) => self.scope.rebind(&name, Binding::Followed { value, conditions, site }),
            (None, Val::Offset(_)) => {
                let message = format!("the offset `{name}` changes under a condition that is only known at run time");
                let help = "offsets must be known at compile time: read both and choose between the values";
                self.reporter.refuse(target, message, help);
                self.scope.rebind(&name, Binding::Value(Val::Poison));
            }
            (None, _) => {
                // The function is evaluated again, with a variable; what is wrong with this will be seen then.
                self.at_run_time.insert(site);
                self.scope.rebind(&name, Binding::Value(Val::Poison));
            }
        }
        Val::Unit
    }

    /// The part of a variable that `w[1]` or `t.0` names.
    fn part_of(&mut self, variable: Variable, target: &Expr) -> Option<Variable> {
        match target {
            Expr::Path(_) => Some(variable),
            Expr::Paren(inner) => self.part_of(variable, &inner.expr),
            Expr::Group(inner) => self.part_of(variable, &inner.expr),
            Expr::Unary(inner) => self.part_of(variable, &inner.expr),
            Expr::Index(index) => {
                let Variable::Array(parts) = self.part_of(variable, &index.expr)? else {
                    self.reporter.refuse(&*index.expr, "what is indexed here is no array", "arrays are `[a, b, c]`");
                    return None;
                };
                match self.eval(&index.index) {
                    Val::Integer(at) => {
                        let part = usize::try_from(at.value).ok().and_then(|at| parts.get(at).cloned());
                        if part.is_none() {
                            self.outside(&index.index, at.value, parts.len());
                        }
                        part
                    }
                    Val::Poison => None,
                    at => {
                        let message = format!(
                            "an array is written at {}, not at an integer known at compile time",
                            at.describe()
                        );
                        let help = "write every element under a condition: `for n in 0..3 { if i == n { w[n as usize] = a; } }`";
                        self.reporter.refuse(&*index.index, message, help);
                        None
                    }
                }
            }
            Expr::Field(field) => match (self.part_of(variable, &field.base)?, &field.member) {
                (Variable::Tuple(parts), Member::Unnamed(at)) if (at.index as usize) < parts.len() => {
                    Some(parts[at.index as usize].clone())
                }
                (_, member) => {
                    self.reporter.refuse(
                        member,
                        format!("there is no part `.{}`", tidy(member)),
                        "tuples have `.0`, `.1`, ..",
                    );
                    None
                }
            },
            _ => unreachable!("`root` has gone the same way"),
        }
    }

    fn store(&mut self, variable: &Variable, value: &Val, place: Place) {
        match (variable, value) {
            (Variable::Number(local), value) => self.store_number(*local, value, place),
            (Variable::Array(parts), Val::Array(items)) | (Variable::Tuple(parts), Val::Tuple(items))
                if parts.len() == items.len() =>
            {
                parts.iter().zip(items).for_each(|(part, item)| self.store(part, item, place));
            }
            (_, Val::Poison) => {}
            (_, value) => {
                let message = format!("{} does not fit the variable it is assigned to", value.describe());
                self.reporter.report(Diagnostic::new(place, message).help("assign as many parts as the variable has"));
            }
        }
    }

    fn store_number(&mut self, local: Id<Local>, value: &Val, place: Place) {
        let ty = self.types.locals[local.index()];
        let Some(value) = self.number(value, Some(ty), place) else { return };
        self.unify(ty, self.types.exprs[value.index()], place);
        self.kernel.locals[local].mutable = true;
        self.assigned.push(local);
        self.emit(Stmt::Assign { local, value, place });
    }
}

/// The name that `w[1]`, `t.0` and `*x` are about.
fn root(target: &Expr) -> Option<(&syn::ExprPath, String)> {
    match target {
        Expr::Path(path) => Some((path, path.path.get_ident()?.unraw().to_string())),
        Expr::Paren(inner) => root(&inner.expr),
        Expr::Group(inner) => root(&inner.expr),
        Expr::Index(index) => root(&index.expr),
        Expr::Field(field) => root(&field.base),
        Expr::Unary(inner) if matches!(inner.op, syn::UnOp::Deref(_)) => root(&inner.expr),
        _ => None,
    }
}
