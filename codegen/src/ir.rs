//! The typed intermediate form of a kernel: what the front end builds, `verify` checks and every emitter reads.
//!
//! A kernel computes new values at one grid point. It is pure: it loads fields at constant offsets, and the only
//! effect is [`Stmt::Store`]. Closures are inlined and constant loops unrolled before this form is reached.
//! To add an operation: a variant here, then follow the compiler through `verify`, `analyse`, `interpret` and `emit`.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index into an [`Arena`].
pub struct Id<T> {
    index: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Id<T> {
    /// The id of the element at `index`.
    pub fn new(index: usize) -> Self {
        Id { index: u32::try_from(index).expect("an arena holds fewer than 2^32 elements"), of: PhantomData }
    }

    /// The position in the arena.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Id<T> {}
impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}
impl<T> Eq for Id<T> {}
impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.index.cmp(&other.index)
    }
}
impl<T> std::hash::Hash for Id<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}
impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index)
    }
}

/// A growing list whose elements are named by [`Id`]s.
#[derive(Clone, Debug, PartialEq)]
pub struct Arena<T> {
    items: Vec<T>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { items: Vec::new() }
    }
}

impl<T> Arena<T> {
    /// Appends `item` and returns its id.
    pub fn push(&mut self, item: T) -> Id<T> {
        self.items.push(item);
        Id::new(self.items.len() - 1)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The element, or `None` when the id comes from elsewhere.
    pub fn get(&self, id: Id<T>) -> Option<&T> {
        self.items.get(id.index())
    }

    /// All elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.items.iter()
    }

    /// All ids with their elements, in order.
    pub fn enumerate(&self) -> impl ExactSizeIterator<Item = (Id<T>, &T)> {
        self.items.iter().enumerate().map(|(index, item)| (Id::new(index), item))
    }

    /// All ids in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = Id<T>> + use<T> {
        (0..self.items.len()).map(Id::new)
    }
}

impl<T> Index<Id<T>> for Arena<T> {
    type Output = T;
    fn index(&self, id: Id<T>) -> &T {
        &self.items[id.index()]
    }
}

impl<T> IndexMut<Id<T>> for Arena<T> {
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        &mut self.items[id.index()]
    }
}

/// A position in the user's source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line, from 1; 0 when there is no source (kernels built by a program).
    pub line: u32,
    /// Column in characters, from 0.
    pub column: u32,
    /// Which token span of the front end this is, so that a diagnostic can point at the very tokens.
    pub token: u32,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// IEEE binary64.
    F64,
    /// IEEE binary32.
    F32,
    /// Truth values; not stored in fields yet.
    Bool,
}

impl Type {
    /// The name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Type::F64 => "f64",
            Type::F32 => "f32",
            Type::Bool => "bool",
        }
    }

    /// The size of a stored value.
    pub fn bytes(self) -> usize {
        match self {
            Type::F64 => 8,
            Type::F32 => 4,
            Type::Bool => 1,
        }
    }

    /// Whether arithmetic is defined.
    pub fn is_float(self) -> bool {
        match self {
            Type::F64 | Type::F32 => true,
            Type::Bool => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value of a [`Type`]. Equality of floats is equality of bits.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A binary64.
    F64(f64),
    /// A binary32.
    F32(f32),
    /// A truth value.
    Bool(bool),
}

impl Value {
    /// The type of the value.
    pub fn ty(self) -> Type {
        match self {
            Value::F64(_) => Type::F64,
            Value::F32(_) => Type::F32,
            Value::Bool(_) => Type::Bool,
        }
    }

    /// The bits, in the low part of a word; this is also how scalars travel to a kernel.
    pub fn bits(self) -> u64 {
        match self {
            Value::F64(v) => v.to_bits(),
            Value::F32(v) => u64::from(v.to_bits()),
            Value::Bool(v) => u64::from(v),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.ty() == other.ty() && self.bits() == other.bits()
    }
}

/// A grid axis; X is contiguous in memory, Z is the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// The contiguous axis.
    X,
    /// The middle axis.
    Y,
    /// The slowest axis, along which a domain is split over devices.
    Z,
}

impl Axis {
    /// All axes, in order of their position in an [`Offset`].
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

    /// Upper-case letter.
    pub fn name(self) -> &'static str {
        match self {
            Axis::X => "X",
            Axis::Y => "Y",
            Axis::Z => "Z",
        }
    }
}

/// A constant displacement from the point being updated, in cells along (X, Y, Z).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub [i32; 3]);

impl Offset {
    /// The point itself.
    pub const HERE: Offset = Offset([0; 3]);

    /// The component along `axis`.
    pub fn along(self, axis: Axis) -> i32 {
        self.0[axis as usize]
    }
}

/// As a user writes it: `HERE`, `X`, `-Y`, `2*X - Z`.
impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Offset::HERE {
            return f.write_str("HERE");
        }
        let mut first = true;
        for axis in Axis::ALL {
            let cells = self.along(axis);
            if cells == 0 {
                continue;
            }
            match (first, cells < 0) {
                (true, true) => f.write_str("-")?,
                (true, false) => {}
                (false, true) => f.write_str(" - ")?,
                (false, false) => f.write_str(" + ")?,
            }
            if cells.unsigned_abs() != 1 {
                write!(f, "{}*", cells.unsigned_abs())?;
            }
            f.write_str(axis.name())?;
            first = false;
        }
        Ok(())
    }
}

/// A field parameter; read only.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The user's name.
    pub name: String,
    /// The type of one cell.
    pub ty: Type,
    /// Where it is declared.
    pub place: Place,
}

/// A scalar parameter, the same at every point.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The user's name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it is declared.
    pub place: Place,
}

/// A local variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// The user's name, or a name made from the call it holds the result of. Not unique: emitters tell namesakes apart.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it is assigned again after its declaration.
    pub mutable: bool,
    /// What the variable is, for a comment: the inlined call as the user wrote it, `flux(-X)`.
    pub note: Option<String>,
}

/// What becomes of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The new value of a field at this point.
    Value,
}

/// One result of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its type.
    pub ty: Type,
    /// What becomes of it.
    pub role: Role,
}

/// Operations on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-a`.
    Neg,
    /// `!a` on truth values.
    Not,
}

/// Operations on two operands of the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`.
    Div,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
    /// `a == b`.
    Eq,
    /// `a != b`.
    Ne,
    /// `a && b` (both sides are pure, so the order of evaluation cannot be seen).
    And,
    /// `a || b`.
    Or,
}

/// What kind of operands a [`Binary`] takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryKind {
    /// Numbers to a number of the same type.
    Arithmetic,
    /// Numbers (or truth values, for `==` and `!=`) to a truth value.
    Comparison,
    /// Truth values to a truth value.
    Logic,
}

impl Binary {
    /// Every operation.
    pub const ALL: [Binary; 12] = [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Lt,
        Binary::Le,
        Binary::Gt,
        Binary::Ge,
        Binary::Eq,
        Binary::Ne,
        Binary::And,
        Binary::Or,
    ];

    /// What it takes and gives.
    pub fn kind(self) -> BinaryKind {
        match self {
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => BinaryKind::Arithmetic,
            Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge | Binary::Eq | Binary::Ne => BinaryKind::Comparison,
            Binary::And | Binary::Or => BinaryKind::Logic,
        }
    }

    /// The operator; Rust, CUDA C, HIP and OpenCL C write it alike.
    pub fn symbol(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::And => "&&",
            Binary::Or => "||",
        }
    }
}

/// Functions on floats, with the meaning of Rust's methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `a.sqrt()`, correctly rounded.
    Sqrt,
    /// `a.abs()`.
    Abs,
    /// `a.mul_add(b, c)` = a * b + c, rounded once.
    MulAdd,
}

impl Function {
    /// Every function.
    pub const ALL: [Function; 3] = [Function::Sqrt, Function::Abs, Function::MulAdd];

    /// The name of the Rust method.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sqrt => "sqrt",
            Function::Abs => "abs",
            Function::MulAdd => "mul_add",
        }
    }

    /// The number of arguments, the receiver included.
    pub fn arity(self) -> usize {
        match self {
            Function::Sqrt | Function::Abs => 1,
            Function::MulAdd => 3,
        }
    }
}

/// What an expression computes.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Value),
    /// A scalar parameter.
    Param(Id<Param>),
    /// A local variable.
    Local(Id<Local>),
    /// The value of a field at a constant displacement.
    Load {
        /// The field.
        field: Id<Field>,
        /// The displacement from the point being updated.
        offset: Offset,
    },
    /// An operation on one operand.
    Unary(Unary, Id<Expr>),
    /// An operation on two operands.
    Binary(Binary, Id<Expr>, Id<Expr>),
    /// A function of Rust's floats.
    Call(Function, Vec<Id<Expr>>),
    /// `a as T`, to the type of the expression.
    Cast(Id<Expr>),
}

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// The type of the result.
    pub ty: Type,
    /// Where the user wrote it.
    pub place: Place,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Declares a local, with its first value unless every path assigns one before it is read.
    Let {
        /// The variable.
        local: Id<Local>,
        /// Its first value.
        value: Option<Id<Expr>>,
        /// Where.
        place: Place,
    },
    /// Gives a mutable local a new value.
    Assign {
        /// The variable.
        local: Id<Local>,
        /// The new value.
        value: Id<Expr>,
        /// Where.
        place: Place,
    },
    /// Runs one of two blocks.
    If {
        /// The condition, a truth value.
        condition: Id<Expr>,
        /// Statements when it holds.
        then: Vec<Stmt>,
        /// Statements when it does not.
        otherwise: Vec<Stmt>,
        /// Where.
        place: Place,
    },
    /// Gives a result its value; every path stores each output exactly once.
    Store {
        /// The result.
        output: Id<Output>,
        /// Its value.
        value: Id<Expr>,
        /// Where.
        place: Place,
    },
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// The file's name without folders, for comments; empty when there is none.
    pub file: String,
    /// Whether the user allowed multiply and add to be fused (`#[stencil(contract)]`).
    pub contract: bool,
    /// Field parameters in the user's order.
    pub fields: Arena<Field>,
    /// Scalar parameters in the user's order.
    pub params: Arena<Param>,
    /// All local variables.
    pub locals: Arena<Local>,
    /// The results in order.
    pub outputs: Arena<Output>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// All expressions.
    pub exprs: Arena<Expr>,
}
