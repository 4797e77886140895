//! Small functions that stand above a kernel whose language lacks an operation with Rust's meaning: a division that is
//! guarded, a conversion that saturates. Only those that a kernel calls are written.

use std::collections::{BTreeMap, BTreeSet};

use super::walk::used;
use crate::emit::names::Names;
use crate::ir::{Binary, Expr, ExprKind, Function, Id, Kernel, Output, Role, Type, Value};

/// Such a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// `a / b` of integers.
    Divide(Type),
    /// `a % b`.
    Remainder(Type),
    /// `a.min(b)`.
    Min(Type),
    /// `a.max(b)`.
    Max(Type),
    /// `a.abs()` of integers.
    Abs(Type),
    /// `a as T` of a float, to an integer.
    Saturate {
        /// The float.
        from: Type,
        /// The integer.
        to: Type,
    },
    /// Adds a number to a running sum and keeps what rounding takes from it.
    AddUp,
    /// The sum of all running sums of a row.
    RowSum,
    /// The larger float, not-a-number if either is.
    Largest(Type),
    /// The lesser float, not-a-number if either is.
    Least(Type),
}

impl Helper {
    /// What computes expression `id` of its operands, unless the language has an operator or a function.
    pub(crate) fn of(kernel: &Kernel, id: Id<Expr>) -> Option<Helper> {
        let Expr { kind, ty, .. } = &kernel.exprs[id];
        match kind {
            ExprKind::Binary(Binary::Div, _, b) if ty.is_integer() && !divides(kernel, *b) => Some(Helper::Divide(*ty)),
            ExprKind::Binary(Binary::Rem, _, b) if !ty.is_integer() || !divides(kernel, *b) => {
                Some(Helper::Remainder(*ty))
            }
            ExprKind::Call(Function::Min, _) => Some(Helper::Min(*ty)),
            ExprKind::Call(Function::Max, _) => Some(Helper::Max(*ty)),
            ExprKind::Call(Function::Abs, _) if ty.is_integer() => Some(Helper::Abs(*ty)),
            ExprKind::Cast(a) if kernel.exprs[*a].ty.is_float() && ty.is_integer() => {
                Some(Helper::Saturate { from: kernel.exprs[*a].ty, to: *ty })
            }
            _ => None,
        }
    }

    /// What folds the results of a row.
    pub(crate) fn of_fold(output: &Output) -> Vec<Helper> {
        match output.role {
            Role::Sum if output.ty.is_float() => vec![Helper::AddUp, Helper::RowSum],
            Role::Max if output.ty.is_float() => vec![Helper::Largest(output.ty)],
            Role::Min if output.ty.is_float() => vec![Helper::Least(output.ty)],
            Role::Max => vec![Helper::Max(output.ty)],
            Role::Min => vec![Helper::Min(output.ty)],
            Role::Sum | Role::Value => vec![],
        }
    }

    /// `div_i32`, `f64_to_u8`.
    fn name(self) -> String {
        match self {
            Helper::Divide(ty) => format!("div_{ty}"),
            Helper::Remainder(ty) => format!("rem_{ty}"),
            Helper::Min(ty) => format!("min_{ty}"),
            Helper::Max(ty) => format!("max_{ty}"),
            Helper::Abs(ty) => format!("abs_{ty}"),
            Helper::Saturate { from, to } => format!("{from}_to_{to}"),
            Helper::AddUp => "add_up".into(),
            Helper::RowSum => "row_sum".into(),
            Helper::Largest(ty) => format!("largest_{ty}"),
            Helper::Least(ty) => format!("least_{ty}"),
        }
    }
}

/// Whether `divisor` is a constant by which any integer can be divided.
fn divides(kernel: &Kernel, divisor: Id<Expr>) -> bool {
    match kernel.exprs[divisor].kind {
        ExprKind::Literal(value) => !matches!(
            value,
            Value::I64(0 | -1) | Value::I32(0 | -1) | Value::I8(0 | -1) | Value::U64(0) | Value::U32(0) | Value::U8(0)
        ),
        _ => false,
    }
}

/// The helpers that `kernel` needs in a language that `lacks` them, with their names.
pub(crate) fn needed(kernel: &Kernel, names: &mut Names, lacks: impl Fn(Helper) -> bool) -> BTreeMap<Helper, String> {
    let clamp = |id: &Id<Expr>| match kernel.exprs[*id].kind {
        ExprKind::Element { index, .. } if !is_literal(kernel, index) => Some(CLAMP),
        _ => None,
    };
    let of = |id: Id<Expr>| clamp(&id).or_else(|| Helper::of(kernel, id));
    let of_folds = kernel.outputs.iter().flat_map(Helper::of_fold);
    let all = used(kernel).into_iter().filter_map(of).chain(of_folds);
    let helpers: BTreeSet<Helper> = all.filter(|helper| lacks(*helper)).collect();
    helpers.into_iter().map(|helper| (helper, names.fresh(&helper.name()))).collect()
}

/// What keeps the index of a table's element in the table.
pub(crate) const CLAMP: Helper = Helper::Min(Type::U64);

fn is_literal(kernel: &Kernel, id: Id<Expr>) -> bool {
    matches!(kernel.exprs[id].kind, ExprKind::Literal(_))
}
