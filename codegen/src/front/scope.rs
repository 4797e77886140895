//! What names mean while a function is evaluated.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::fold::Fold;
use crate::ir::{Expr, Family, Field, Id, Local, Offset, Type};

/// A value of the evaluator. Only numbers, folded or not, survive into the kernel.
#[derive(Clone)]
pub(super) enum Val {
    /// Something that was refused already; swallows everything done to it.
    Poison,
    /// `()`.
    Unit,
    /// A number or truth value found at run time, or a literal.
    Number(Id<Expr>),
    /// An integer known now, with its type where it was named.
    Integer(Integer),
    /// A truth value known now.
    Truth(bool),
    /// A displacement.
    Offset(Offset),
    /// A field parameter.
    Field(Id<Field>),
    /// The point being updated.
    Point,
    /// A closure or nested function.
    Closure(Rc<Closure>),
    /// An array.
    Array(Vec<Val>),
    /// A tuple.
    Tuple(Vec<Val>),
    /// `Sum(x)`, `Max(x)` or `Min(x)`.
    Fold(Fold),
}

impl Val {
    /// What it is, for a message.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Val::Poison => "an invalid value",
            Val::Unit => "`()`",
            Val::Number(_) => "a number",
            Val::Integer(_) => "an integer",
            Val::Truth(_) => "a bool",
            Val::Offset(_) => "an offset",
            Val::Field(_) => "a field",
            Val::Point => "the point",
            Val::Closure(_) => "a closure",
            Val::Array(_) => "an array",
            Val::Tuple(_) => "a tuple",
            Val::Fold(fold) => fold.describe(),
        }
    }
}

impl Val {
    /// What it is, with the number of its parts.
    pub(super) fn sized(&self) -> String {
        match self {
            Val::Array(parts) => format!("an array of {}", parts.len()),
            Val::Tuple(parts) => format!("a tuple of {}", parts.len()),
            other => other.describe().to_owned(),
        }
    }
}

/// A compile-time integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integer {
    pub(super) value: i128,
    pub(super) ty: Option<IntType>,
    /// The division that it comes from, see [`Quotients`].
    pub(super) quotient: Option<usize>,
}

impl Integer {
    pub(super) fn new(value: i128, ty: Option<IntType>) -> Integer {
        Integer { value, ty, quotient: None }
    }
}

/// Divisions of integers as they would be written for floats: an integer that stands where a float is needed may be one.
#[derive(Debug, Default)]
pub(super) struct Quotients(Vec<String>);

impl Quotients {
    /// Remembers what to write instead.
    pub(super) fn remember(&mut self, help: String) -> usize {
        let known = self.0.iter().position(|known| *known == help);
        known.unwrap_or_else(|| {
            self.0.push(help);
            self.0.len() - 1
        })
    }

    /// What to write instead of a division of integers.
    pub(super) fn help(&self, integer: Integer) -> Option<String> {
        self.0.get(integer.quotient?).cloned()
    }
}

/// The type of a compile-time integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntType {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

impl IntType {
    /// The range of a type of the kernel; `None` when it is no integer.
    pub(super) fn of(ty: Type) -> Option<IntType> {
        let bits = u32::try_from(8 * ty.bytes()).expect("at most 64");
        ty.is_integer().then_some(IntType { bits, signed: ty.family() == Family::Signed })
    }

    /// The type of the kernel; there is none of 16 bits.
    pub(super) fn in_kernel(self) -> Option<Type> {
        Type::ALL.into_iter().find(|ty| IntType::of(*ty) == Some(self))
    }

    pub(super) fn parse(name: &str) -> Option<IntType> {
        let (signed, digits) = match name.split_at_checked(1)? {
            ("i", digits) => (true, digits),
            ("u", digits) => (false, digits),
            _ => return None,
        };
        let bits = match digits {
            "8" => 8,
            "16" => 16,
            "32" => 32,
            "64" | "size" => 64,
            _ => return None,
        };
        Some(IntType { bits, signed })
    }

    /// The least and the greatest value.
    pub(super) fn range(self) -> (i128, i128) {
        match self.signed {
            true => (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1),
            false => (0, (1i128 << self.bits) - 1),
        }
    }

    pub(super) fn holds(self, value: i128) -> bool {
        let (low, high) = self.range();
        (low..=high).contains(&value)
    }

    /// The value that `as` gives: the low bits.
    pub(super) fn wrap(self, value: i128) -> i128 {
        let low = value.rem_euclid(1i128 << self.bits);
        match self.signed && low >= 1i128 << (self.bits - 1) {
            true => low - (1i128 << self.bits),
            false => low,
        }
    }
}

/// A closure or nested function, inlined where it is called.
pub(super) struct Closure {
    pub(super) name: String,
    pub(super) parameters: Vec<syn::Pat>,
    pub(super) types: Vec<Option<syn::Type>>,
    pub(super) result: Option<syn::Type>,
    pub(super) body: syn::Expr,
    /// The names it sees.
    pub(super) scope: Scope,
    pub(super) called: Cell<bool>,
    /// Being inlined right now: a call from inside is recursion.
    pub(super) active: Cell<bool>,
}

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Binding {
    /// A value that never changes.
    Value(Val),
    /// A `const`; unlike other values it may stand in a pattern.
    Constant(Val),
    /// A `let mut` that changes at run time.
    Variable(Variable),
    /// A `let mut` integer, bool or offset that is followed at compile time.
    Followed {
        value: Val,
        /// How many run-time conditions there are around the declaration.
        conditions: usize,
        /// Where it is declared.
        site: Site,
    },
}

/// Line and column of a declaration; what is known of it must not depend on how often it is inlined.
pub(super) type Site = (u32, u32);

/// The locals behind a `let mut`.
#[derive(Clone)]
pub(super) enum Variable {
    Number(Id<Local>),
    Array(Vec<Variable>),
    Tuple(Vec<Variable>),
}

impl Variable {
    /// All its locals.
    pub(super) fn locals(&self) -> Vec<Id<Local>> {
        match self {
            Variable::Number(local) => vec![*local],
            Variable::Array(parts) | Variable::Tuple(parts) => parts.iter().flat_map(Variable::locals).collect(),
        }
    }
}

/// A block's names, and the blocks around it.
#[derive(Clone)]
pub(super) struct Scope(Rc<Level>);

struct Level {
    names: RefCell<BTreeMap<String, Binding>>,
    parent: Option<Scope>,
}

impl Scope {
    pub(super) fn root() -> Scope {
        Scope(Rc::new(Level { names: RefCell::default(), parent: None }))
    }

    pub(super) fn inner(&self) -> Scope {
        Scope(Rc::new(Level { names: RefCell::default(), parent: Some(self.clone()) }))
    }

    pub(super) fn bind(&self, name: impl Into<String>, binding: Binding) {
        self.0.names.borrow_mut().insert(name.into(), binding);
    }

    pub(super) fn find(&self, name: &str) -> Option<Binding> {
        let here = self.0.names.borrow().get(name).cloned();
        here.or_else(|| self.0.parent.as_ref()?.find(name))
    }

    /// Every name that is seen here.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let mut names = self.0.parent.as_ref().map_or_else(BTreeSet::new, Scope::names);
        names.extend(self.0.names.borrow().keys().cloned());
        names
    }

    /// Forgets all names, here and around.
    pub(super) fn clear(&self) {
        self.0.names.borrow_mut().clear();
        if let Some(parent) = &self.0.parent {
            parent.clear();
        }
    }

    /// Replaces the binding of a name where it was made.
    pub(super) fn rebind(&self, name: &str, binding: Binding) {
        if let Some(slot) = self.0.names.borrow_mut().get_mut(name) {
            *slot = binding;
            return;
        }
        if let Some(parent) = &self.0.parent {
            parent.rebind(name, binding);
        }
    }
}
