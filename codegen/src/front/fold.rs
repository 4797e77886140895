//! `Sum(x)`, `Max(x)` and `Min(x)`: results that are folded over all points.
//!
//! A fold wraps the value of its point and goes where results go: through `let`, `if`, early return, closures, tuples and
//! arrays. Nothing can be computed with it, since the other points have not been looked at yet.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{ExprCall, GenericArgument, PathArguments};

use super::Front;
use super::infer::Kind;
use super::report::tidy_type;
use super::scope::Val;
use super::signature::Annotation;
use crate::Diagnostic;
use crate::ir::{Place, Role, Stmt};

/// The value of a point on its way into a fold.
#[derive(Clone)]
pub(super) struct Fold {
    pub(super) role: Role,
    /// A number of the kernel, or an integer known at compile time.
    pub(super) value: Box<Val>,
    /// The call that made it.
    pub(super) tokens: TokenStream,
}

impl Fold {
    /// `Sum`, `Max` or `Min`.
    pub(super) fn name(&self) -> &'static str {
        self.role.type_name().expect("a value is not a fold")
    }

    /// What it is, for a message.
    pub(super) fn describe(&self) -> &'static str {
        match self.role {
            Role::Sum => "a `Sum`",
            Role::Max => "a `Max`",
            Role::Min => "a `Min`",
            Role::Value => unreachable!("a value is not a fold"),
        }
    }

    /// The same fold of another value.
    pub(super) fn with(self, value: Val) -> Val {
        match value {
            Val::Poison => Val::Poison,
            value => Val::Fold(Fold { value: Box::new(value), ..self }),
        }
    }
}

impl Front {
    /// The fold that a callee stands for: `Sum`, `polyhalo::Max`, unless the name means something else here.
    pub(super) fn fold_named(&self, path: &syn::ExprPath) -> Option<Role> {
        let last = path.path.segments.last()?;
        let role = fold_of(&last.ident)?;
        let alone = path.path.segments.len() == 1;
        (!alone || self.scope.find(&last.ident.to_string()).is_none()).then_some(role)
    }

    /// `Sum(x)` and its like.
    pub(super) fn fold(&mut self, role: Role, path: &syn::ExprPath, call: &ExprCall) -> Val {
        let name = role.type_name().expect("a value is not a fold");
        let mut arguments = self.eval_all(call.args.iter());
        if arguments.len() != 1 {
            let message = format!("`{name}` takes one value, {} are given", arguments.len());
            let help = match role {
                Role::Max | Role::Min => format!(
                    "`{name}` is over all points; the {} of two numbers is `a.{}(b)`, and two folds are \
                     `({name}(a), {name}(b))`",
                    if role == Role::Max { "larger" } else { "smaller" },
                    name.to_lowercase()
                ),
                Role::Sum | Role::Value => format!("fold each value by itself: `({name}(a), {name}(b))`"),
            };
            return self.poison(call, message, help);
        }
        let (value, tokens) = (arguments.remove(0), &call.args[0]);
        // `Sum::<f64>(x)`.
        let cell = path.path.segments.last().and_then(|last| only_type(&last.arguments));
        let value = self.annotated(value, cell, tokens);
        match value {
            Val::Truth(_) => self.bool_folded(name, tokens),
            Val::Number(number) if self.types.kind_of(number) == Kind::Bool => self.bool_folded(name, tokens),
            Val::Fold(fold) => {
                let message = format!("`{name}` of {}", fold.describe());
                self.poison(tokens, message, format!("fold the value once: `{name}(x)`"))
            }
            Val::Number(_) | Val::Integer(_) => {
                Val::Fold(Fold { role, value: Box::new(value), tokens: call.to_token_stream() })
            }
            other => {
                let place = self.reporter.place(tokens);
                self.number(&other, None, place);
                Val::Poison
            }
        }
    }

    fn bool_folded(&mut self, name: &str, tokens: &syn::Expr) -> Val {
        self.poison(tokens, format!("`{name}` of a bool"), BOOL_FOLDED)
    }

    /// A fold held against a written type.
    pub(super) fn annotated_fold(&mut self, fold: Fold, ty: &syn::Type) -> Val {
        let name = fold.name();
        match fold_type(ty) {
            Some((role, cell)) if role == fold.role => {
                let value = self.annotated((*fold.value).clone(), Some(cell), &fold.tokens);
                fold.with(value)
            }
            Some((role, _)) => {
                let wanted = role.type_name().expect("a value is not a fold");
                let message = format!("{} stands where the type says `{}`", fold.describe(), tidy_type(ty));
                let help = format!("write `{wanted}(..)`, or change the type to `{name}<..>`");
                self.poison(&fold.tokens, message, help)
            }
            None => match self.annotation(ty) {
                Annotation::Scalar(scalar) => {
                    let message = format!("{} stands where the type says `{scalar}`", fold.describe());
                    let help =
                        format!("return the value without `{name}(..)`, or change the type to `{name}<{scalar}>`");
                    self.poison(&fold.tokens, message, help)
                }
                // Left to rustc, as what is written may be `_`.
                _ => Val::Fold(fold),
            },
        }
    }

    /// What is no fold, where the type says that it is one.
    pub(super) fn not_folded(&mut self, value: &Val, ty: &syn::Type, tokens: &impl ToTokens) -> Val {
        let name = fold_type(ty).and_then(|(role, _)| role.type_name()).unwrap_or("Sum");
        let message = format!("{} stands where the type says `{}`", value.describe(), tidy_type(ty));
        self.poison(tokens, message, format!("write `{name}(..)` around the value that is to be folded"))
    }

    /// Something was done to a fold that needs a number.
    pub(super) fn fold_refused(&mut self, tokens: &(impl ToTokens + ?Sized), message: String, help: String) -> Val {
        let place = self.reporter.place(tokens);
        self.reporter.report(Diagnostic::new(place, message).help(help).note(FOLDED_LATER));
        Val::Poison
    }

    /// One fold out of those of two branches.
    pub(super) fn join_folds(
        &mut self,
        yes: Fold,
        no: Fold,
        name: &str,
        then: &mut Vec<Stmt>,
        otherwise: &mut Vec<Stmt>,
        place: Place,
    ) -> Val {
        if yes.role != no.role {
            let message = format!("this branch gives {}, the other {}", no.describe(), yes.describe());
            let help = format!(
                "both branches must fold alike: return a tuple of both, `-> ({}<f64>, {}<f64>)`, or fold in one way",
                yes.name(),
                no.name()
            );
            return self.poison(&no.tokens, message, help);
        }
        let value = self.join((*yes.value).clone(), *no.value, name, then, otherwise, place);
        yes.with(value)
    }

    /// A fold in one branch and something else in the other.
    pub(super) fn fold_meets(&mut self, fold: &Fold, other: &Val) -> Val {
        let name = fold.name();
        let message = format!("one branch gives {}, the other {}", fold.describe(), other.describe());
        let help = format!("both branches must fold alike: `if c {{ {name}(a) }} else {{ {name}(b) }}`");
        self.poison(&fold.tokens, message, help)
    }
}

/// What to do with bools instead, for messages.
pub(super) const BOOL_FOLDED: &str =
    "numbers are folded: count with `Sum(c as u32)` and a result of `Sum<u32>`, or ask for any with `Max(c as u8)`";

/// Why nothing can be computed with a fold, for messages.
const FOLDED_LATER: &str =
    "the fold over all points is known only after the kernel: compute with it in the step, as a scalar";

/// The role that a name stands for.
fn fold_of(name: &syn::Ident) -> Option<Role> {
    Role::FOLDS.into_iter().find(|role| role.type_name().is_some_and(|fold| name == fold))
}

/// `T` of `<T>`.
fn only_type(arguments: &PathArguments) -> Option<&syn::Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

/// The fold and the type of its values, `Sum<f64>`; `None` for other types.
pub(super) fn fold_type(ty: &syn::Type) -> Option<(Role, &syn::Type)> {
    match ty {
        syn::Type::Paren(inner) => fold_type(&inner.elem),
        syn::Type::Group(inner) => fold_type(&inner.elem),
        syn::Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last()?;
            Some((fold_of(&last.ident)?, only_type(&last.arguments)?))
        }
        _ => None,
    }
}
