//! `if`, and one value out of the values of two branches.

use syn::{Expr, ExprIf};

use super::Front;
use super::infer::Kind;
use super::report::tidy;
use super::scope::{Integer, Val};
use crate::Diagnostic;
use crate::ir::{Expr as IrExpr, ExprKind, Id, Place, Stmt};

/// A condition, as far as it is known.
enum Condition {
    Known(bool),
    AtRunTime(Id<IrExpr>),
    Refused,
}

impl Front {
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
        let otherwise =
            |front: &mut Front| branch.else_branch.as_ref().map_or(Val::Unit, |(_, otherwise)| front.eval(otherwise));
        let condition = match self.condition(&branch.cond) {
            Condition::Known(true) => return self.block(&branch.then_branch),
            Condition::Known(false) => return otherwise(self),
            Condition::AtRunTime(condition) => Some(condition),
            Condition::Refused => None,
        };
        let place = self.reporter.place(branch);
        self.choose(condition, &name, place, |front| front.block(&branch.then_branch), otherwise)
    }

    fn condition(&mut self, tokens: &Expr) -> Condition {
        if let Expr::Assign(assign) = tokens {
            let help = format!("write `{} == {}`", tidy(&*assign.left), tidy(&*assign.right));
            self.reporter.refuse(tokens, "`=` assigns; a condition compares by `==`", help);
            return Condition::Refused;
        }
        match self.eval(tokens) {
            Val::Truth(truth) => Condition::Known(truth),
            Val::Poison => Condition::Refused,
            Val::Number(number) if self.types.kind_of(number) == Kind::Bool => Condition::AtRunTime(number),
            other => {
                self.reporter.refuse(
                    tokens,
                    format!("the condition is {}", other.describe()),
                    "a condition is a comparison such as `a < b`",
                );
                Condition::Refused
            }
        }
    }

    /// One value out of the values of two branches; declares a local before the branches and assigns it in both.
    pub(super) fn join(
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
            (Val::Point, Val::Point) => Val::Point,
            (Val::Offset(a), Val::Offset(b)) if a == b => Val::Offset(a),
            (Val::Integer(a), Val::Integer(b)) if a.value == b.value => {
                Val::Integer(Integer { ty: a.ty.or(b.ty), ..a })
            }
            (Val::Truth(a), Val::Truth(b)) if a == b => Val::Truth(a),
            (Val::Field(a), Val::Field(b)) if a == b => Val::Field(a),
            (Val::Tuple(a), Val::Tuple(b)) if a.len() == b.len() => {
                Val::Tuple(a.into_iter().zip(b).map(|(a, b)| self.join(a, b, name, then, otherwise, place)).collect())
            }
            (Val::Array(a), Val::Array(b)) if a.len() == b.len() => {
                Val::Array(a.into_iter().zip(b).map(|(a, b)| self.join(a, b, name, then, otherwise, place)).collect())
            }
            (Val::Fold(yes), Val::Fold(no)) => self.join_folds(yes, no, name, then, otherwise, place),
            (Val::Fold(fold), other) | (other, Val::Fold(fold)) => self.fold_meets(&fold, &other),
            (Val::Offset(_), Val::Offset(_)) => {
                let message = "an offset depends on a condition that is only known at run time";
                let help = "read both and choose between the values: `if c { u[X] } else { u[-X] }`";
                self.poison_at(place, message, help)
            }
            (Val::Field(_), Val::Field(_)) => {
                let message = "which field is read depends on a condition that is only known at run time";
                let help = "read both and choose between the values: `if c { u[X] } else { v[X] }`";
                self.poison_at(place, message, help)
            }
            (
                yes @ (Val::Number(_) | Val::Truth(_) | Val::Integer(_)),
                no @ (Val::Number(_) | Val::Truth(_) | Val::Integer(_)),
            ) => {
                let Some((yes, no)) = self.number_pair(&yes, &no, place) else { return Val::Poison };
                let ty = self.types.exprs[yes.index()];
                if !self.unify(ty, self.types.exprs[no.index()], place) {
                    return Val::Poison;
                }
                let local = self.new_local(name, ty, None);
                self.emit(Stmt::Let { local, value: None, place });
                then.push(Stmt::Assign { local, value: yes, place });
                otherwise.push(Stmt::Assign { local, value: no, place });
                Val::Number(self.expr_of(ExprKind::Local(local), ty, place))
            }
            (yes, no) => {
                let message = format!("one branch gives {}, the other {}", yes.describe(), no.describe());
                let help =
                    "both branches of an `if` must give the same kind of value; an `if` with a value needs `else`";
                self.poison_at(place, message, help)
            }
        }
    }

    pub(super) fn poison_at(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) -> Val {
        self.reporter.report(Diagnostic::new(place, message).help(help));
        Val::Poison
    }
}
