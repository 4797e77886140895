//! Type variables: an un-suffixed float literal takes the type it is used with, as in rustc.

use std::collections::BTreeMap;

use super::report::Reporter;
use crate::ir::{ExprKind, Id, Kernel, Place, Type, Value};

/// A type that may not be known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeVar(u32);

#[derive(Clone, Copy, Debug)]
enum Slot {
    /// Some float; f64 if nothing says otherwise.
    Float,
    Known(Type),
    SameAs(TypeVar),
}

/// All type variables, and which expression and local has which.
#[derive(Debug, Default)]
pub(super) struct Types {
    slots: Vec<Slot>,
    /// By expression index.
    pub(super) exprs: Vec<TypeVar>,
    /// By local index.
    pub(super) locals: Vec<TypeVar>,
    /// The digits of literals, rounded once their type is known.
    literals: BTreeMap<usize, String>,
}

impl Types {
    /// A type that is known.
    pub(super) fn known(&mut self, ty: Type) -> TypeVar {
        self.push(Slot::Known(ty))
    }

    /// Some float type, found by use.
    pub(super) fn float(&mut self) -> TypeVar {
        self.push(Slot::Float)
    }

    fn push(&mut self, slot: Slot) -> TypeVar {
        self.slots.push(slot);
        TypeVar(u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 types"))
    }

    fn root(&self, mut var: TypeVar) -> TypeVar {
        while let Slot::SameAs(next) = self.slots[var.0 as usize] {
            var = next;
        }
        var
    }

    /// The type as far as it is known.
    pub(super) fn get(&self, var: TypeVar) -> Option<Type> {
        match self.slots[self.root(var).0 as usize] {
            Slot::Known(ty) => Some(ty),
            Slot::Float => None,
            Slot::SameAs(_) => unreachable!("a root is no link"),
        }
    }

    /// Makes two types one; the two different types when they can't be.
    pub(super) fn unify(&mut self, a: TypeVar, b: TypeVar) -> Result<(), (Type, Type)> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Ok(());
        }
        match (self.slots[a.0 as usize], self.slots[b.0 as usize]) {
            (Slot::Known(a), Slot::Known(b)) if a == b => Ok(()),
            (Slot::Known(a), Slot::Known(b)) => Err((a, b)),
            (Slot::Known(ty), Slot::Float) | (Slot::Float, Slot::Known(ty)) if !ty.is_float() => {
                let known_first = matches!(self.slots[a.0 as usize], Slot::Known(_));
                Err(if known_first { (ty, Type::F64) } else { (Type::F64, ty) })
            }
            (Slot::Float, _) => {
                self.slots[a.0 as usize] = Slot::SameAs(b);
                Ok(())
            }
            (Slot::Known(_), Slot::Float) => {
                self.slots[b.0 as usize] = Slot::SameAs(a);
                Ok(())
            }
            (Slot::SameAs(_), _) | (_, Slot::SameAs(_)) => unreachable!("a root is no link"),
        }
    }

    /// Remembers the digits of the literal `expr`.
    pub(super) fn literal(&mut self, expr: usize, digits: String) {
        self.literals.insert(expr, digits);
    }

    /// The digits of a literal without a sign.
    pub(super) fn digits(&self, expr: usize) -> Option<&str> {
        self.literals.get(&expr).map(String::as_str).filter(|digits| !digits.starts_with('-'))
    }

    /// Writes the types found into the kernel and rounds each literal once, to its own type.
    pub(super) fn settle(&self, kernel: &mut Kernel, reporter: &mut Reporter) {
        for index in 0..kernel.exprs.len() {
            let ty = self.get(self.exprs[index]).unwrap_or(Type::F64);
            let expr = &mut kernel.exprs[Id::new(index)];
            expr.ty = ty;
            if let Some(digits) = self.literals.get(&index) {
                expr.kind = ExprKind::Literal(rounded(digits, ty, expr.place, reporter));
            }
        }
        for index in 0..kernel.locals.len() {
            kernel.locals[Id::new(index)].ty = self.get(self.locals[index]).unwrap_or(Type::F64);
        }
    }
}

fn rounded(digits: &str, ty: Type, place: Place, reporter: &mut Reporter) -> Value {
    let value = match ty {
        Type::F64 => Value::F64(digits.parse().expect("the digits of a float literal")),
        Type::F32 => Value::F32(digits.parse().expect("the digits of a float literal")),
        Type::Bool => unreachable!("a float literal never has type bool"),
    };
    let infinite = match value {
        Value::F64(value) => value.is_infinite(),
        Value::F32(value) => value.is_infinite(),
        Value::Bool(_) => false,
    };
    if infinite {
        reporter.refuse_at(place, format!("the literal {digits} is too large for {ty}"));
    }
    value
}
