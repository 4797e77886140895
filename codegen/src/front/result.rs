//! What a function returns, and how it becomes the outputs of the kernel.

use syn::{Expr, Lit, ReturnType, Signature};

use super::Front;
use super::report::tidy_type;
use super::scope::Val;
use super::signature::Annotation;
use crate::Diagnostic;
use crate::ir::{Output, Place, Role, Stmt, Type};

/// How a function gives its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value: `-> f64`.
    Single,
    /// A tuple of so many: `-> (f64, f64)`.
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
    types: Vec<Type>,
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
        let declared = self.declared(ty);
        if declared.is_none() {
            let written = tidy_type(ty);
            let help = match written.split('<').next() {
                Some("Sum" | "Max" | "Min") => "reductions are not accepted yet; return the value of the point: `f64`",
                Some(_) if matches!(&**ty, syn::Type::Tuple(tuple) if tuple.elems.len() > MAX_TUPLE) => {
                    "a tuple has at most 12 results; return an array `[f64; 16]`"
                }
                Some("usize" | "isize") => {
                    "its size depends on the machine; return `u64`, `i64` or another type of known size"
                }
                _ => {
                    "a stencil returns the new value of its point: `f64`, `f32`, an integer, `bool`, or several of them \
                     as a tuple `(f64, f64)` or an array `[f64; 3]`"
                }
            };
            self.reporter.refuse(&**ty, format!("a stencil can't return `{written}`"), help);
        }
        declared
    }

    fn declared(&mut self, ty: &syn::Type) -> Option<Declared> {
        match ty {
            syn::Type::Paren(inner) => self.declared(&inner.elem),
            syn::Type::Group(inner) => self.declared(&inner.elem),
            syn::Type::Tuple(tuple) if (1..=MAX_TUPLE).contains(&tuple.elems.len()) => {
                let types: Option<Vec<Type>> = tuple.elems.iter().map(|ty| self.stored_type(ty)).collect();
                Some(Declared { shape: Shape::Tuple(tuple.elems.len()), types: types? })
            }
            syn::Type::Array(array) => {
                let length = literal_length(&array.len).filter(|length| (1..=MAX_RESULTS).contains(length))?;
                let ty = self.stored_type(&array.elem)?;
                Some(Declared { shape: Shape::Array(length), types: vec![ty; length] })
            }
            ty => Some(Declared { shape: Shape::Single, types: vec![self.stored_type(ty)?] }),
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
        let Declared { shape, types } = declared;
        let values = match (shape, value) {
            (Shape::Single, value) => vec![value],
            (Shape::Tuple(length), Val::Tuple(items)) | (Shape::Array(length), Val::Array(items))
                if items.len() == length =>
            {
                items
            }
            (_, Val::Poison) => vec![Val::Poison; types.len()],
            (_, value) => {
                let kind = if matches!(shape, Shape::Tuple(_)) { "a tuple" } else { "an array" };
                let message =
                    format!("the function returns {}, its signature says {kind} of {}", value.describe(), types.len());
                self.reporter.report(Diagnostic::new(place, message).help("let the last expression give all results"));
                vec![Val::Poison; types.len()]
            }
        };
        for (ty, value) in types.into_iter().zip(values) {
            let output = self.kernel.outputs.push(Output { ty, role: Role::Value });
            let wanted = self.types.known(ty);
            if let Some(value) = self.number(&value, Some(wanted), place) {
                self.unify(wanted, self.types.exprs[value.index()], place);
                self.emit(Stmt::Store { output, value, place });
            }
        }
        shape
    }
}

/// The length of an array where nothing but a literal can be known.
pub(super) fn literal_length(length: &Expr) -> Option<usize> {
    match length {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(length) => length.base10_parse().ok(),
            _ => None,
        },
        Expr::Paren(inner) => literal_length(&inner.expr),
        Expr::Group(inner) => literal_length(&inner.expr),
        _ => None,
    }
}
