//! Early return, made into `if`s that have all statements after them inside.
//!
//! After `if c { return a; }` the rest of the function goes into the other branch. Where that branch ends before the
//! function does, a flag says whether the function has returned, and the rest of it stands under `if !flag`.

use super::Front;
use super::scope::Val;
use crate::ir::{Expr, ExprKind, Id, Place, Stmt, Type, Value};

/// More returns than this, each inside of the branch of the last, is a loop that should be a sum.
const MAX_EXITS: usize = 64;

/// A function being inlined.
#[derive(Default)]
pub(super) struct Frame {
    /// Conditions under which it has returned; what is evaluated now stands in the other branch of each.
    exits: Vec<Exit>,
    /// What was returned, when the code being evaluated can't be reached.
    returned: Option<Val>,
    /// The type written for its result.
    result: Option<syn::Type>,
}

/// An `if` of which one branch has returned.
struct Exit {
    condition: Id<Expr>,
    /// Whether the branch that returned is the one where the condition holds.
    when: bool,
    /// The statements of that branch.
    branch: Vec<Stmt>,
    /// What it returned.
    value: Val,
    place: Place,
}

/// What has become of a piece of code.
struct Outcome {
    /// Its value when the end is reached; `None` when it never is.
    value: Option<Val>,
    /// What was returned; `None` when it never returns.
    exit: Option<Val>,
    returned: Returned,
}

/// Whether the function has returned.
#[derive(Clone, Copy)]
enum Returned {
    Never,
    Always,
    /// When this holds.
    When(Id<Expr>),
}

/// One branch of an `if`.
pub(super) struct Branch {
    stmts: Vec<Stmt>,
    outcome: Outcome,
}

impl Branch {
    /// Statements and value of a branch that never returns.
    pub(super) fn straight(self) -> Option<(Vec<Stmt>, Val)> {
        match self.outcome {
            Outcome { value: Some(value), returned: Returned::Never, .. } => Some((self.stmts, value)),
            _ => None,
        }
    }
}

impl Front {
    /// Evaluates the body of a function; `return` ends it.
    pub(super) fn framed(
        &mut self,
        result: Option<syn::Type>,
        tokens: &impl quote::ToTokens,
        body: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        self.frames.push(Frame { result: result.clone(), ..Frame::default() });
        let value = body(self);
        let frame = self.frames.last_mut().expect("pushed above");
        if frame.returned.is_none() {
            let value = self.annotated(value, result.as_ref(), tokens);
            self.frames.last_mut().expect("pushed above").returned = Some(value);
        }
        let outcome = self.close(0, Val::Unit, "result");
        self.frames.pop();
        outcome.exit.expect("every path has returned")
    }

    /// `return value`.
    pub(super) fn leave(&mut self, exit: &syn::ExprReturn) -> Val {
        let value = exit.expr.as_ref().map_or(Val::Unit, |value| self.eval(value));
        let frame = self.frames.last().expect("all code is in a function");
        if !self.has_returned() {
            let value = self.annotated(value, frame.result.clone().as_ref(), exit);
            self.frames.last_mut().expect("all code is in a function").returned = Some(value);
        }
        Val::Poison
    }

    /// Whether the code that follows can't be reached.
    pub(super) fn has_returned(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.returned.is_some())
    }

    /// Evaluates one branch of an `if` that is decided at run time.
    pub(super) fn under_condition(&mut self, name: &str, evaluate: impl FnOnce(&mut Self) -> Val) -> Branch {
        let outer = self.frames.last().map_or(0, |frame| frame.exits.len());
        self.conditions += 1;
        self.blocks.push(Vec::new());
        let value = evaluate(self);
        let outcome = self.close(outer, value, name);
        self.conditions -= 1;
        Branch { stmts: self.blocks.pop().expect("pushed above"), outcome }
    }

    /// `if condition { .. } else { .. }` at run time; without a condition (it was refused) both are only looked through.
    pub(super) fn choose(
        &mut self,
        condition: Option<Id<Expr>>,
        name: &str,
        place: Place,
        then: impl FnOnce(&mut Self) -> Val,
        otherwise: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        let then = self.under_condition(name, then);
        let otherwise = self.under_condition(name, otherwise);
        let Some(condition) = condition else { return Val::Poison };
        match (then.outcome.returned, otherwise.outcome.returned) {
            (Returned::Always, Returned::Never) => self.go_on_in(otherwise, condition, true, then, place),
            (Returned::Never, Returned::Always) => self.go_on_in(then, condition, false, otherwise, place),
            _ => {
                let outcome = self.merge(condition, name, then, otherwise, place);
                match (outcome.returned, outcome.value) {
                    (Returned::Never, value) => value.expect("its end is reached"),
                    (Returned::Always, _) => {
                        self.frames.last_mut().expect("all code is in a function").returned = outcome.exit;
                        Val::Poison
                    }
                    (Returned::When(flag), value) => {
                        let gone = Outcome { value: None, exit: outcome.exit, returned: Returned::Always };
                        let here = Outcome { value, exit: None, returned: Returned::Never };
                        let [gone, here] = [gone, here].map(|outcome| Branch { stmts: Vec::new(), outcome });
                        self.go_on_in(here, flag, true, gone, place)
                    }
                }
            }
        }
    }

    /// Goes on in one branch of an `if` whose other one has returned.
    fn go_on_in(&mut self, here: Branch, condition: Id<Expr>, when: bool, gone: Branch, place: Place) -> Val {
        let frame = self.frames.last_mut().expect("all code is in a function");
        let value = gone.outcome.exit.expect("it has returned");
        if frame.exits.len() >= MAX_EXITS {
            let message = format!("more than {MAX_EXITS} early returns, each after the last");
            let help = "let the loop find the value in a `let mut` variable, and return once after it";
            self.reporter.report(crate::Diagnostic::new(place, message).help(help));
            return Val::Poison;
        }
        frame.exits.push(Exit { condition, when, branch: gone.stmts, value, place });
        self.blocks.push(here.stmts);
        here.outcome.value.expect("its end is reached")
    }

    /// Closes the branches in which evaluation went on, down to `outer` of them.
    fn close(&mut self, outer: usize, value: Val, name: &str) -> Outcome {
        let frame = self.frames.last_mut().expect("all code is in a function");
        let mut outcome = match frame.returned.take() {
            Some(exit) => Outcome { value: None, exit: Some(exit), returned: Returned::Always },
            None => Outcome { value: Some(value), exit: None, returned: Returned::Never },
        };
        loop {
            let frame = self.frames.last_mut().expect("all code is in a function");
            if frame.exits.len() <= outer {
                return outcome;
            }
            let Exit { condition, when, branch, value, place } =
                frame.exits.pop().expect("there are more than `outer`");
            let gone = Outcome { value: None, exit: Some(value), returned: Returned::Always };
            let gone = Branch { stmts: branch, outcome: gone };
            let here = Branch { stmts: self.blocks.pop().expect("pushed with the exit"), outcome };
            let (then, otherwise) = if when { (gone, here) } else { (here, gone) };
            outcome = self.merge(condition, name, then, otherwise, place);
        }
    }

    /// Emits the `if` of two branches; what they give is in locals afterwards.
    fn merge(
        &mut self,
        condition: Id<Expr>,
        name: &str,
        mut then: Branch,
        mut otherwise: Branch,
        place: Place,
    ) -> Outcome {
        let (yes, no) = (&mut then.stmts, &mut otherwise.stmts);
        let value = self.join_reached(then.outcome.value, otherwise.outcome.value, name, yes, no, place);
        let exit = self.join_reached(then.outcome.exit, otherwise.outcome.exit, "result", yes, no, place);
        let returned = match (then.outcome.returned, otherwise.outcome.returned) {
            (Returned::Never, Returned::Never) => Returned::Never,
            (Returned::Always, Returned::Always) => Returned::Always,
            (then, otherwise) => {
                let ty = self.types.known(Type::Bool);
                let local = self.new_local("returned", ty, None);
                self.emit(Stmt::Let { local, value: None, place });
                for (returned, stmts) in [(then, yes), (otherwise, no)] {
                    let value = match returned {
                        Returned::When(flag) => flag,
                        Returned::Always => self.expr_of(ExprKind::Literal(Value::Bool(true)), ty, place),
                        Returned::Never => self.expr_of(ExprKind::Literal(Value::Bool(false)), ty, place),
                    };
                    stmts.push(Stmt::Assign { local, value, place });
                }
                Returned::When(self.expr_of(ExprKind::Local(local), ty, place))
            }
        };
        self.emit(Stmt::If { condition, then: then.stmts, otherwise: otherwise.stmts, place });
        Outcome { value, exit, returned }
    }

    fn join_reached(
        &mut self,
        yes: Option<Val>,
        no: Option<Val>,
        name: &str,
        then: &mut Vec<Stmt>,
        otherwise: &mut Vec<Stmt>,
        place: Place,
    ) -> Option<Val> {
        match (yes, no) {
            (None, None) => None,
            (Some(yes), Some(no)) => Some(self.join(yes, no, name, then, otherwise, place)),
            (Some(yes), None) => Some(self.join_one(yes, name, then, otherwise, place)),
            (None, Some(no)) => Some(self.join_one(no, name, otherwise, then, place)),
        }
    }

    /// The value of one branch, when that of the other is never looked at (it is zero).
    fn join_one(&mut self, value: Val, name: &str, branch: &mut Vec<Stmt>, other: &mut Vec<Stmt>, place: Place) -> Val {
        let mut all = |items: Vec<Val>| {
            items.into_iter().map(|item| self.join_one(item, name, branch, other, place)).collect::<Vec<_>>()
        };
        match value {
            Val::Tuple(items) => Val::Tuple(all(items)),
            Val::Array(items) => Val::Array(all(items)),
            Val::Fold(fold) => {
                let value = self.join_one((*fold.value).clone(), name, branch, other, place);
                fold.with(value)
            }
            Val::Number(number) => {
                if matches!(self.kernel.exprs[number].kind, ExprKind::Literal(_) | ExprKind::Param(_)) {
                    return Val::Number(number);
                }
                let ty = self.types.exprs[number.index()];
                let zero = self.expr_of(ExprKind::Literal(Value::Bool(false)), ty, place);
                self.types.zero(zero);
                let local = self.new_local(name, ty, None);
                self.emit(Stmt::Let { local, value: None, place });
                branch.push(Stmt::Assign { local, value: number, place });
                other.push(Stmt::Assign { local, value: zero, place });
                Val::Number(self.expr_of(ExprKind::Local(local), ty, place))
            }
            known => known,
        }
    }
}
