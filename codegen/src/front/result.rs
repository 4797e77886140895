//! What a function returns, and how it becomes the outputs of the kernel.

use syn::{Lit, ReturnType, Signature};

use super::Front;
use super::fold::{BOOL_FOLDED, fold_type};
use super::report::tidy_type;
use super::scope::Val;
use super::signature::Annotation;
use super::suggest::type_elsewhere;
use crate::Diagnostic;
use crate::ir::{Binary, Expr, ExprKind, Id, Output, Place, Role, Stmt, Type, Value};

/// How a function gives its results, in the order of the kernel's outputs; whether one is a value or a fold, its
/// [`Output::role`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One result: `-> f64` or `-> Sum<f64>`.
    Single,
    /// A tuple of so many: `-> (f64, Sum<f64>)`.
    Tuple(usize),
    /// An array of so many: `-> [f64; 3]`.
    Array(usize),
}

/// The most results of one function, as an array.
pub(super) const MAX_RESULTS: usize = 64;

/// The most results in a tuple: so many targets can a step take as one.
const MAX_TUPLE: usize = 12;

/// The declared result.
pub(super) struct Declared {
    shape: Shape,
    outputs: Vec<Output>,
}

impl Front {
    /// The result that a signature declares; `None` (reported) when a stencil can't have it.
    pub(super) fn result(&mut self, signature: &Signature) -> Option<Declared> {
        let ReturnType::Type(_, ty) = &signature.output else {
            self.reporter.refuse(
                &signature.ident,
                format!("stencil `{}` returns nothing", signature.ident),
                "a stencil returns the new value of its point: add `-> f64`",
            );
            return None;
        };
        match self.declared(ty) {
            Ok(declared) => Some(declared),
            Err(wrong) => {
                let message = format!("a stencil can't return `{}`", tidy_type(ty));
                let is_part = !std::ptr::eq(wrong, &**ty);
                let help = match wrong {
                    syn::Type::Array(_) | syn::Type::Tuple(_) if is_part => {
                        "results are flat: an array stands alone, `[f64; 3]`, with no value and no fold beside it; name each \
                         value, `(f64, f64, f64, Sum<f64>)`, or fold in a stage of its own that reads the fields"
                            .to_owned()
                    }
                    wrong => result_help(wrong),
                };
                self.reporter.refuse(wrong, message, help);
                None
            }
        }
    }

    /// The type of a result; the part of it that can't be one where there is such a part.
    fn declared<'t>(&mut self, ty: &'t syn::Type) -> Result<Declared, &'t syn::Type> {
        match ty {
            syn::Type::Paren(inner) => self.declared(&inner.elem),
            syn::Type::Group(inner) => self.declared(&inner.elem),
            syn::Type::Tuple(tuple) if (1..=MAX_TUPLE).contains(&tuple.elems.len()) => {
                let outputs: Result<Vec<Output>, _> = tuple.elems.iter().map(|ty| self.output(ty)).collect();
                Ok(Declared { shape: Shape::Tuple(tuple.elems.len()), outputs: outputs? })
            }
            syn::Type::Array(array) => {
                let length =
                    literal_length(&array.len).filter(|length| (1..=MAX_RESULTS).contains(length)).ok_or(ty)?;
                let output = self.output(&array.elem)?;
                Ok(Declared { shape: Shape::Array(length), outputs: vec![output; length] })
            }
            ty => Ok(Declared { shape: Shape::Single, outputs: vec![self.output(ty)?] }),
        }
    }

    /// One result: a value or a fold of values.
    fn output<'t>(&mut self, ty: &'t syn::Type) -> Result<Output, &'t syn::Type> {
        match fold_type(ty) {
            None => Ok(Output { ty: self.stored_type(ty).ok_or(ty)?, role: Role::Value }),
            Some((role, cell)) => match self.stored_type(cell) {
                Some(number) if number.is_number() => Ok(Output { ty: number, role }),
                Some(_) | None => Err(ty),
            },
        }
    }

    /// A type that a field can hold.
    fn stored_type(&mut self, ty: &syn::Type) -> Option<Type> {
        match self.annotation(ty) {
            Annotation::Scalar(scalar) if scalar.name() == tidy_type(ty) => Some(scalar),
            _ => None,
        }
    }

    /// Declares the outputs and gives each its value.
    pub(super) fn store_results(&mut self, declared: Declared, value: Val, place: Place) -> Shape {
        let Declared { shape, outputs } = declared;
        let mut values = match (shape, value) {
            (Shape::Single, value) => vec![value],
            (Shape::Tuple(length), Val::Tuple(items)) | (Shape::Array(length), Val::Array(items))
                if items.len() == length =>
            {
                items
            }
            (_, Val::Poison) => vec![Val::Poison; outputs.len()],
            (_, value) => {
                let kind = if matches!(shape, Shape::Tuple(_)) { "a tuple" } else { "an array" };
                let count = outputs.len();
                let message = format!("the function returns {}, its signature says {kind} of {count}", value.sized());
                self.reporter.report(Diagnostic::new(place, message).help("let the last expression give all results"));
                vec![Val::Poison; count]
            }
        };
        if let (Shape::Single, [value @ (Val::Tuple(_) | Val::Array(_))]) = (shape, values.as_slice()) {
            let ty = outputs[0].ty;
            let (of, written) = match value {
                Val::Tuple(parts) => (value.sized(), format!("({})", vec![ty.name(); parts.len()].join(", "))),
                Val::Array(parts) => (value.sized(), format!("[{ty}; {}]", parts.len())),
                _ => unreachable!("one of both"),
            };
            let message = format!("the function returns {of}, its signature says one `{ty}`");
            let help = format!("to update several fields at once, declare `-> {written}`");
            self.reporter.report(Diagnostic::new(place, message).help(help));
            values = vec![Val::Poison];
        }
        for (output, value) in outputs.into_iter().zip(values) {
            let Output { ty, role } = output;
            let output = self.kernel.outputs.push(Output { ty, role });
            let wanted = self.types.known(ty);
            // A number where a fold is declared, and the other way round, was refused against the written type.
            let value = match value {
                Val::Fold(fold) if fold.role == role => *fold.value,
                value => value,
            };
            if let Some(value) = self.number(&value, Some(wanted), place) {
                self.unify(wanted, self.types.exprs[value.index()], place);
                if self.kernel.outputs[output].has_halves() {
                    self.store_halves(output, value, place);
                } else {
                    self.emit(Stmt::Store { output, value, place });
                }
            }
        }
        shape
    }

    /// Stores the lower 32 bits of a value, and all above them as a result of its own ([`Output::has_halves`]).
    fn store_halves(&mut self, lower: Id<Output>, value: Id<Expr>, place: Place) {
        let ty = self.kernel.outputs[lower].ty;
        let upper = self.kernel.outputs.push(self.kernel.outputs[lower].clone());
        let value = self.named(value, "summand", place);
        let wanted = self.types.known(ty);
        for (output, op, bits) in [(lower, Binary::BitAnd, u64::from(u32::MAX)), (upper, Binary::Shr, 32)] {
            let bits = self.expr_of(ExprKind::Literal(Value::from_bits(ty, bits)), wanted, place);
            let half = self.expr_of(ExprKind::Binary(op, value, bits), wanted, place);
            self.emit(Stmt::Store { output, value: half, place });
        }
    }
}

/// What to return instead of this.
fn result_help(ty: &syn::Type) -> String {
    let written = tidy_type(ty);
    let help = match (written.split('<').next().unwrap_or_default(), fold_type(ty)) {
        (name, _) if let Some(meant) = type_elsewhere(name) => return format!("in Rust it is `{meant}`"),
        ("Field" | "&Field" | "Array3" | "Vec", _) => {
            "a stencil is written for one point and returns the new value of that point: `-> f64`; the step says which field \
             takes it"
        }
        (_, Some((_, cell))) => match tidy_type(cell).as_str() {
            "bool" => BOOL_FOLDED,
            "usize" | "isize" => "its size depends on the machine; fold `u64`, `i64` or another type of known size",
            _ => {
                "a fold is of numbers, `Sum<f64>`; several are a tuple `(Sum<f64>, Max<f64>)` or an array `[Sum<f64>; 3]`"
            }
        },
        ("Sum" | "Max" | "Min", None) => "say what is folded: `Sum<f64>`",
        ("usize" | "isize", _) => "its size depends on the machine; return `u64`, `i64` or another type of known size",
        _ if matches!(ty, syn::Type::Tuple(tuple) if tuple.elems.len() > MAX_TUPLE) => {
            "a tuple has at most 12 results; return an array `[f64; 16]`"
        }
        _ => {
            "a stencil returns the new value of its point: `f64`, `f32`, an integer, `bool`, or what it gives to a fold over \
             all points: `Sum<f64>`, `Max<f64>`, `Min<f64>`; or several of them as a tuple `(f64, Sum<f64>)` or an array \
             `[f64; 3]`"
        }
    };
    help.to_owned()
}

/// The length of an array where nothing but a literal can be known.
pub(super) fn literal_length(length: &syn::Expr) -> Option<usize> {
    match length {
        syn::Expr::Lit(literal) => match &literal.lit {
            Lit::Int(length) => length.base10_parse().ok(),
            _ => None,
        },
        syn::Expr::Paren(inner) => literal_length(&inner.expr),
        syn::Expr::Group(inner) => literal_length(&inner.expr),
        _ => None,
    }
}
