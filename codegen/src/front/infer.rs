//! Type variables: an un-suffixed literal takes the type it is used with, as in rustc.

use std::collections::BTreeMap;

use super::report::Reporter;
use super::scope::IntType;
use super::table::PendingTable;
use crate::diagnostic::Diagnostic;
use crate::interpret::constant;
use crate::ir::{Expr, ExprKind, Id, Kernel, Place, Table, Type, Value};
use crate::verify::operands;

/// A type that may not be known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeVar(u32);

#[derive(Clone, Copy, Debug)]
enum Slot {
    /// Some float; f64 if nothing says otherwise.
    Float,
    /// Some integer; i32 if nothing says otherwise.
    Integer,
    Known(Type),
    SameAs(TypeVar),
}

/// What is known of every type from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Float,
    Integer,
    Bool,
}

/// A literal that is made a value once its type is known.
#[derive(Clone, Debug)]
enum Literal {
    /// The digits of a float, with a sign.
    Digits(String),
    Integer(i128),
    /// Zero or false.
    Zero,
}

/// All type variables, and which expression and local has which.
#[derive(Debug, Default)]
pub(super) struct Types {
    slots: Vec<Slot>,
    /// By expression index.
    pub(super) exprs: Vec<TypeVar>,
    /// By local index.
    pub(super) locals: Vec<TypeVar>,
    /// By expression index.
    literals: BTreeMap<usize, Literal>,
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

    /// Some integer type, found by use.
    pub(super) fn integer(&mut self) -> TypeVar {
        self.push(Slot::Integer)
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

    fn slot(&self, var: TypeVar) -> Slot {
        self.slots[self.root(var).0 as usize]
    }

    /// The type as far as it is known.
    pub(super) fn get(&self, var: TypeVar) -> Option<Type> {
        match self.slot(var) {
            Slot::Known(ty) => Some(ty),
            Slot::Float | Slot::Integer => None,
            Slot::SameAs(_) => unreachable!("a root is no link"),
        }
    }

    /// The type, or the one that it will be if nothing else is said.
    pub(super) fn or_default(&self, var: TypeVar) -> Type {
        match self.slot(var) {
            Slot::Known(ty) => ty,
            Slot::Float => Type::F64,
            Slot::Integer => Type::I32,
            Slot::SameAs(_) => unreachable!("a root is no link"),
        }
    }

    /// Decides a type here, for what depends on it.
    pub(super) fn decide(&mut self, var: TypeVar) -> Type {
        let ty = self.or_default(var);
        let root = self.root(var);
        self.slots[root.0 as usize] = Slot::Known(ty);
        ty
    }

    pub(super) fn kind(&self, var: TypeVar) -> Kind {
        match self.or_default(var) {
            Type::Bool => Kind::Bool,
            ty if ty.is_float() => Kind::Float,
            _ => Kind::Integer,
        }
    }

    pub(super) fn kind_of(&self, expr: Id<Expr>) -> Kind {
        self.kind(self.exprs[expr.index()])
    }

    /// Whether two types are one already.
    pub(super) fn same(&self, a: TypeVar, b: TypeVar) -> bool {
        self.root(a) == self.root(b) || matches!((self.get(a), self.get(b)), (Some(a), Some(b)) if a == b)
    }

    /// Makes two types one; the two different types when they can't be.
    pub(super) fn unify(&mut self, a: TypeVar, b: TypeVar) -> Result<(), (Type, Type)> {
        let (a, b) = (self.root(a), self.root(b));
        if self.same(a, b) {
            return Ok(());
        }
        let differ = Err((self.or_default(a), self.or_default(b)));
        if self.kind(a) != self.kind(b) {
            return differ;
        }
        match (self.slots[a.0 as usize], self.slots[b.0 as usize]) {
            (Slot::Known(_), Slot::Known(_)) => return differ,
            (Slot::Known(_), _) => self.slots[b.0 as usize] = Slot::SameAs(a),
            (_, _) => self.slots[a.0 as usize] = Slot::SameAs(b),
        }
        Ok(())
    }

    /// Remembers the digits of the float literal `expr`.
    pub(super) fn float_literal(&mut self, expr: Id<Expr>, digits: String) {
        self.literals.insert(expr.index(), Literal::Digits(digits));
    }

    /// Remembers the value of the integer literal `expr`.
    pub(super) fn integer_literal(&mut self, expr: Id<Expr>, value: i128) {
        self.literals.insert(expr.index(), Literal::Integer(value));
    }

    /// Remembers that the literal `expr` is zero or false.
    pub(super) fn zero(&mut self, expr: Id<Expr>) {
        self.literals.insert(expr.index(), Literal::Zero);
    }

    /// The digits of a float literal without a sign.
    pub(super) fn digits(&self, expr: Id<Expr>) -> Option<&str> {
        match self.literals.get(&expr.index()) {
            Some(Literal::Digits(digits)) => Some(digits.as_str()).filter(|digits| !digits.starts_with('-')),
            Some(Literal::Integer(_) | Literal::Zero) | None => None,
        }
    }

    /// Writes the types found into the kernel, rounds each literal once, to its own type, and fills the tables.
    pub(super) fn settle(&self, kernel: &mut Kernel, tables: &[PendingTable], reporter: &mut Reporter) {
        for index in 0..kernel.exprs.len() {
            let ty = self.or_default(self.exprs[index]);
            let expr = &mut kernel.exprs[Id::new(index)];
            expr.ty = ty;
            if let Some(literal) = self.literals.get(&index) {
                expr.kind = ExprKind::Literal(literal.value(ty, expr.place, reporter));
            }
        }
        for index in 0..kernel.locals.len() {
            kernel.locals[Id::new(index)].ty = self.or_default(self.locals[index]);
        }
        for table in tables {
            let mut values = Vec::new();
            for item in &table.items {
                match folded(kernel, *item) {
                    Some(value) => values.push(value),
                    None => reporter.refuse_at(kernel.exprs[*item].place, "this element of a table has no value"),
                }
            }
            kernel.tables.push(Table { name: table.name.clone(), ty: self.or_default(table.ty), values });
        }
    }
}

/// The value of an expression of constants.
fn folded(kernel: &Kernel, id: Id<Expr>) -> Option<Value> {
    let expr = &kernel.exprs[id];
    let values: Option<Vec<Value>> = operands(&expr.kind).into_iter().map(|operand| folded(kernel, operand)).collect();
    constant(&expr.kind, expr.ty, &values?)
}

impl Literal {
    fn value(&self, ty: Type, place: Place, reporter: &mut Reporter) -> Value {
        match self {
            Literal::Zero => Value::from_bits(ty, 0),
            Literal::Integer(value) => {
                if let Some(range) = IntType::of(ty).filter(|range| !range.holds(*value)) {
                    let (low, high) = range.range();
                    let help = format!("a `{ty}` holds {low} to {high}");
                    let message = format!("{value} does not fit into `{ty}`");
                    reporter.report(Diagnostic::new(place, message).help(help));
                }
                Value::from_bits(ty, *value as u64)
            }
            Literal::Digits(digits) => {
                const CHECKED: &str = "the digits of a float literal";
                let (value, finite) = match ty {
                    Type::F32 => {
                        let value: f32 = digits.parse().expect(CHECKED);
                        (Value::F32(value), value.is_finite())
                    }
                    _ => {
                        let value: f64 = digits.parse().expect(CHECKED);
                        (Value::F64(value), value.is_finite())
                    }
                };
                if !finite {
                    reporter.refuse_at(place, format!("the literal {digits} is too large for {ty}"));
                }
                value
            }
        }
    }
}
