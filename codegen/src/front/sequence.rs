//! What a `for` runs over: ranges and arrays known at compile time.

use syn::{Expr, ExprMethodCall, RangeLimits};

use super::Front;
use super::block::MAX_UNROLLED;
use super::scope::{Integer, Val};
use crate::Diagnostic;

impl Front {
    /// The items of a loop in order; `None` (reported) when they are not known.
    pub(super) fn sequence(&mut self, expr: &Expr) -> Option<Vec<Val>> {
        match expr {
            Expr::Paren(inner) => self.sequence(&inner.expr),
            Expr::Group(inner) => self.sequence(&inner.expr),
            Expr::Reference(inner) if inner.mutability.is_none() => self.sequence(&inner.expr),
            Expr::Range(range) => self.range(range),
            Expr::MethodCall(call) => self.adapted(call),
            other => match self.eval(other) {
                Val::Array(items) => Some(items),
                Val::Poison => None,
                Val::Field(field) => {
                    let name = self.kernel.fields[field].name.clone();
                    let help = format!("loop over offsets: `for d in [X, -X, Y, -Y, Z, -Z] {{ s += {name}[d]; }}`");
                    self.reporter.refuse(other, format!("the field `{name}` can't be looped over"), help);
                    None
                }
                value => {
                    let message = format!("{} can't be looped over", value.describe());
                    self.reporter.refuse(other, message, "loops run over ranges `0..4` and arrays `[X, -X]`");
                    None
                }
            },
        }
    }

    fn range(&mut self, range: &syn::ExprRange) -> Option<Vec<Val>> {
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            self.reporter.refuse(range, "the range has no end", "loops are unrolled: give both bounds, `0..4`");
            return None;
        };
        let bounds = self.eval_all([&**start, &**end]);
        let (start, end) = match bounds.as_slice() {
            [Val::Integer(start), Val::Integer(end)] => (*start, *end),
            [Val::Poison, _] | [_, Val::Poison] => return None,
            _ => {
                let help = "loops are unrolled, so both bounds must be integers known at compile time: literals, `const`s, variables of an outer `for`";
                let note = "a stencil is written for one point and runs at all points of its range, so no loop over the grid is \
                            needed";
                let message = "the bounds of this loop are not known at compile time";
                let place = self.reporter.place(range);
                self.reporter.report(Diagnostic::new(place, message).help(help).note(note));
                return None;
            }
        };
        let last = match range.limits {
            RangeLimits::HalfOpen(_) => end.value - 1,
            RangeLimits::Closed(_) => end.value,
        };
        if last - start.value >= MAX_UNROLLED as i128 {
            let message = format!("this loop has {} turns", last - start.value + 1);
            self.reporter.refuse(
                range,
                message,
                format!("loops are unrolled, so at most {MAX_UNROLLED} turns are possible"),
            );
            return None;
        }
        let ty = start.ty.or(end.ty);
        Some((start.value..=last).map(|value| Val::Integer(Integer::new(value, ty))).collect())
    }

    /// `(0..4).rev()`, `w.iter().enumerate()`, `a.iter().zip(b)`.
    fn adapted(&mut self, call: &ExprMethodCall) -> Option<Vec<Val>> {
        let name = call.method.to_string();
        match (name.as_str(), call.args.len()) {
            ("iter" | "into_iter" | "copied" | "cloned", 0) => self.sequence(&call.receiver),
            ("rev", 0) => {
                let mut items = self.sequence(&call.receiver)?;
                items.reverse();
                Some(items)
            }
            ("enumerate", 0) => {
                let items = self.sequence(&call.receiver)?;
                let number = |index: usize| Val::Integer(Integer::new(index as i128, None));
                Some(items.into_iter().enumerate().map(|(index, item)| Val::Tuple(vec![number(index), item])).collect())
            }
            ("zip", 1) => {
                let (left, right) = (self.sequence(&call.receiver), self.sequence(&call.args[0]));
                Some(left?.into_iter().zip(right?).map(|(left, right)| Val::Tuple(vec![left, right])).collect())
            }
            ("step_by", 1) => {
                let items = self.sequence(&call.receiver);
                match self.eval(&call.args[0]) {
                    Val::Integer(step) if step.value > 0 => {
                        let step = usize::try_from(step.value).unwrap_or(usize::MAX);
                        Some(items?.into_iter().step_by(step).collect())
                    }
                    Val::Poison => None,
                    _ => {
                        self.reporter.refuse(
                            &call.args[0],
                            "the step is not a positive integer known at compile time",
                            "write a literal: `step_by(2)`",
                        );
                        None
                    }
                }
            }
            _ => {
                let help = "loops run over ranges and arrays, with `iter`, `rev`, `enumerate`, `zip` and `step_by`; the rest is said in \
                            the body of the loop";
                self.reporter.refuse(&call.method, format!("the iterator method `{name}` is not accepted"), help);
                None
            }
        }
    }
}
