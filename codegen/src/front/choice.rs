//! `match` on integers and bools, as a chain of `if`s.

use syn::ext::IdentExt;
use syn::{Arm, ExprMatch, Pat, RangeLimits};

use super::Front;
use super::infer::Kind;
use super::report::tidy;
use super::scope::{Binding, Val};
use crate::ir::{Binary, Place};

impl Front {
    /// `match`, as statement and as expression.
    pub(super) fn choice(&mut self, choice: &ExprMatch) -> Val {
        let name = self.name_hint.take().unwrap_or_else(|| "chosen".to_owned());
        let value = self.eval(&choice.expr);
        let place = self.reporter.place(choice);
        let matched = self.frozen(value, "matched", place);
        let matched = self.matchable(matched, &choice.expr);
        self.arms(&choice.arms, &matched, &name, place)
    }

    /// What a pattern can be held against.
    fn matchable(&mut self, value: Val, tokens: &syn::Expr) -> Val {
        match value {
            Val::Number(number) if self.types.kind_of(number) == Kind::Float => {
                let help = "compare it: `if a < b { .. } else { .. }`";
                self.poison(tokens, "`match` on a float is not part of the stencil language", help)
            }
            Val::Tuple(items) => Val::Tuple(items.into_iter().map(|item| self.matchable(item, tokens)).collect()),
            value @ (Val::Poison | Val::Number(_) | Val::Integer(_) | Val::Truth(_)) => value,
            other => {
                let message = format!("`match` on {} is not part of the stencil language", other.describe());
                self.poison(tokens, message, "`match` takes integers, bools and tuples of them")
            }
        }
    }

    fn arms(&mut self, arms: &[Arm], value: &Val, name: &str, place: Place) -> Val {
        let Some((arm, rest)) = arms.split_first() else {
            return self.poison_at(place, "no arm of this `match` fits", "end it with `_ => ..`");
        };
        let test = self.test(&arm.pat, value);
        let take = |front: &mut Front| front.arm(arm, value);
        let go_on = |front: &mut Front| front.arms(rest, value, name, place);
        match test {
            Val::Truth(true) => take(self),
            Val::Truth(false) => go_on(self),
            // rustc has checked that the arms are exhaustive, so the last one needs no condition.
            Val::Number(_) if rest.is_empty() => take(self),
            Val::Number(condition) => self.choose(Some(condition), name, place, take, go_on),
            _ if rest.is_empty() => self.choose(None, name, place, take, |_| Val::Poison),
            _ => self.choose(None, name, place, take, go_on),
        }
    }

    fn arm(&mut self, arm: &Arm, value: &Val) -> Val {
        let around = self.scope.clone();
        self.scope = around.inner();
        self.bind_matched(&arm.pat, value.clone());
        let value = self.eval(&arm.body);
        self.scope = around;
        value
    }

    /// Binds the names of a pattern that fits.
    fn bind_matched(&mut self, pattern: &Pat, value: Val) {
        match (pattern, value) {
            (Pat::Guard(guarded), value) => self.bind_matched(&guarded.pat, value),
            (Pat::Paren(inner), value) => self.bind_matched(&inner.pat, value),
            (Pat::Reference(inner), value) => self.bind_matched(&inner.pat, value),
            (Pat::Ident(name), _) if self.constant_named(name).is_some() => {}
            (Pat::Ident(name), value) => {
                let mut plain = name.clone();
                plain.subpat = None;
                self.bind(&Pat::Ident(plain), value);
            }
            (Pat::Tuple(tuple), Val::Tuple(items)) => {
                tuple.elems.iter().zip(items).for_each(|(pattern, item)| self.bind_matched(pattern, item));
            }
            (pattern, Val::Poison) => self.bind_poison(pattern),
            _ => {}
        }
    }

    /// The `const` that a name in a pattern stands for.
    fn constant_named(&self, pattern: &syn::PatIdent) -> Option<Val> {
        match self.scope.find(&pattern.ident.unraw().to_string()) {
            Some(Binding::Constant(value)) if pattern.subpat.is_none() => Some(value),
            _ => None,
        }
    }

    /// Whether a pattern fits, as a truth value.
    fn test(&mut self, pattern: &Pat, value: &Val) -> Val {
        match (pattern, value) {
            (Pat::Guard(guarded), _) => self.poison(
                &*guarded.guard,
                "a condition on an arm of `match` is not part of the stencil language",
                "write `if` in the arm, or instead of `match`",
            ),
            (Pat::Wild(_), _) => Val::Truth(true),
            (Pat::Paren(inner), _) => self.test(&inner.pat, value),
            (Pat::Reference(inner), _) => self.test(&inner.pat, value),
            (Pat::Ident(name), _) => match (self.constant_named(name), &name.subpat) {
                (Some(constant), _) => self.operate(Binary::Eq, value.clone(), constant, pattern),
                (None, Some((_, inner))) => self.test(inner, value),
                (None, None) => Val::Truth(true),
            },
            (Pat::Lit(literal), _) => {
                let constant = self.literal(&literal.lit, false);
                self.equal(value, constant, pattern)
            }
            (Pat::Path(path), _) => {
                let constant = self.eval(&syn::Expr::Path(path.clone()));
                self.equal(value, constant, pattern)
            }
            (Pat::Range(range), _) => {
                let mut fits = Val::Truth(true);
                let below = if matches!(range.limits, RangeLimits::Closed(_)) { Binary::Le } else { Binary::Lt };
                for (bound, op) in [(&range.start, Binary::Ge), (&range.end, below)] {
                    if let Some(bound) = bound {
                        let bound = self.eval(bound);
                        let inside = self.operate(op, value.clone(), bound, pattern);
                        fits = self.operate(Binary::And, fits, inside, pattern);
                    }
                }
                fits
            }
            (Pat::Or(cases), _) => cases.cases.iter().fold(Val::Truth(false), |fits, case| {
                let next = self.test(case, value);
                self.operate(Binary::Or, fits, next, pattern)
            }),
            (Pat::Tuple(tuple), Val::Tuple(items)) if tuple.elems.len() == items.len() => {
                tuple.elems.iter().zip(items).fold(Val::Truth(true), |fits, (pattern, item)| {
                    let next = self.test(pattern, item);
                    self.operate(Binary::And, fits, next, pattern)
                })
            }
            (_, Val::Poison) => Val::Poison,
            (pattern, _) => {
                let message = format!("the pattern `{}` is not part of the stencil language", tidy(pattern));
                let help = "arms are literals, `const`s, ranges `1..=3`, alternatives `1 | 2`, tuples, names and `_`";
                self.poison(pattern, message, help)
            }
        }
    }

    fn equal(&mut self, value: &Val, constant: Val, pattern: &Pat) -> Val {
        match (value, constant) {
            (Val::Number(_), Val::Truth(true)) => {
                // A bool is its own test.
                match self.operate(Binary::Eq, value.clone(), Val::Truth(true), pattern) {
                    Val::Number(_) => value.clone(),
                    other => other,
                }
            }
            (_, constant) => self.operate(Binary::Eq, value.clone(), constant, pattern),
        }
    }
}
