//! The typed intermediate form of a kernel: what the front end builds, `verify` checks and every emitter reads.
//!
//! A kernel computes new values at one grid point. It is pure: it loads fields at constant offsets, and the only
//! effect is [`Stmt::Store`]. Closures are inlined and constant loops unrolled before this form is reached.
//! To add an operation: a variant here, then follow the compiler through `verify`, `analyse`, `interpret` and `emit`.

mod function;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

pub use function::{Exactness, Function};

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
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 8-bit signed integer.
    I8,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit unsigned integer.
    U32,
    /// 8-bit unsigned integer.
    U8,
    /// Truth values; a field stores them as a byte that is 0 or 1.
    Bool,
}

/// The families of [`Type`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IEEE floats.
    Float,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Truth values.
    Bool,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 9] =
        [Type::F64, Type::F32, Type::I64, Type::I32, Type::I8, Type::U64, Type::U32, Type::U8, Type::Bool];

    /// The name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Type::F64 => "f64",
            Type::F32 => "f32",
            Type::I64 => "i64",
            Type::I32 => "i32",
            Type::I8 => "i8",
            Type::U64 => "u64",
            Type::U32 => "u32",
            Type::U8 => "u8",
            Type::Bool => "bool",
        }
    }

    /// The type of this name in Rust. `isize` and `usize` are those of 64 bits.
    pub fn named(name: &str) -> Option<Type> {
        match name {
            "isize" => Some(Type::I64),
            "usize" => Some(Type::U64),
            name => Type::ALL.into_iter().find(|ty| ty.name() == name),
        }
    }

    /// The size of a stored value.
    pub fn bytes(self) -> usize {
        match self {
            Type::F64 | Type::I64 | Type::U64 => 8,
            Type::F32 | Type::I32 | Type::U32 => 4,
            Type::I8 | Type::U8 | Type::Bool => 1,
        }
    }

    /// What kind of type it is.
    pub fn family(self) -> Family {
        match self {
            Type::F64 | Type::F32 => Family::Float,
            Type::I64 | Type::I32 | Type::I8 => Family::Signed,
            Type::U64 | Type::U32 | Type::U8 => Family::Unsigned,
            Type::Bool => Family::Bool,
        }
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        self.family() == Family::Float
    }

    /// Whether it is an integer.
    pub fn is_integer(self) -> bool {
        matches!(self.family(), Family::Signed | Family::Unsigned)
    }

    /// Whether `+ - * /` and the order are defined.
    pub fn is_number(self) -> bool {
        self.family() != Family::Bool
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
    /// An i64.
    I64(i64),
    /// An i32.
    I32(i32),
    /// An i8.
    I8(i8),
    /// A u64.
    U64(u64),
    /// A u32.
    U32(u32),
    /// A u8.
    U8(u8),
    /// A truth value.
    Bool(bool),
}

impl Value {
    /// The type of the value.
    pub fn ty(self) -> Type {
        match self {
            Value::F64(_) => Type::F64,
            Value::F32(_) => Type::F32,
            Value::I64(_) => Type::I64,
            Value::I32(_) => Type::I32,
            Value::I8(_) => Type::I8,
            Value::U64(_) => Type::U64,
            Value::U32(_) => Type::U32,
            Value::U8(_) => Type::U8,
            Value::Bool(_) => Type::Bool,
        }
    }

    /// The bits, in the low part of a word; this is also how scalars travel to a kernel.
    pub fn bits(self) -> u64 {
        match self {
            Value::F64(v) => v.to_bits(),
            Value::F32(v) => u64::from(v.to_bits()),
            Value::I64(v) => v as u64,
            Value::I32(v) => u64::from(v as u32),
            Value::I8(v) => u64::from(v as u8),
            Value::U64(v) => v,
            Value::U32(v) => u64::from(v),
            Value::U8(v) => u64::from(v),
            Value::Bool(v) => u64::from(v),
        }
    }

    /// The value of a type with these low bits; for a bool any bit says yes.
    pub fn from_bits(ty: Type, bits: u64) -> Value {
        match ty {
            Type::F64 => Value::F64(f64::from_bits(bits)),
            Type::F32 => Value::F32(f32::from_bits(bits as u32)),
            Type::I64 => Value::I64(bits as i64),
            Type::I32 => Value::I32(bits as i32),
            Type::I8 => Value::I8(bits as i8),
            Type::U64 => Value::U64(bits),
            Type::U32 => Value::U32(bits as u32),
            Type::U8 => Value::U8(bits as u8),
            Type::Bool => Value::Bool(bits != 0),
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
    /// Along which axes (X, Y, Z) it extends; it is the same everywhere along the others. `[true; 3]` for a whole field.
    pub axes: [bool; 3],
    /// Where it is declared.
    pub place: Place,
}

impl Field {
    /// The types of fields, and along which axes (X, Y, Z) they extend.
    pub const TYPES: [(&'static str, [bool; 3]); 7] = [
        ("Field", [true, true, true]),
        ("FieldX", [true, false, false]),
        ("FieldY", [false, true, false]),
        ("FieldZ", [false, false, true]),
        ("FieldXY", [true, true, false]),
        ("FieldXZ", [true, false, true]),
        ("FieldYZ", [false, true, true]),
    ];

    /// The names of the types of fields.
    pub fn type_names() -> [&'static str; Field::TYPES.len()] {
        Field::TYPES.map(|(name, _)| name)
    }

    /// Whether it extends along all axes.
    pub fn is_whole(&self) -> bool {
        self.axes == [true; 3]
    }

    /// Its type in Rust: `FieldXY<f64>`.
    pub fn type_name(&self) -> String {
        let found = Field::TYPES.iter().find(|(_, axes)| *axes == self.axes);
        format!("{}<{}>", found.map_or("Field", |(name, _)| name), self.ty)
    }

    /// The first axis along which `offset` leads and the field does not extend.
    pub fn leaves(&self, offset: Offset) -> Option<Axis> {
        Axis::ALL.into_iter().find(|axis| offset.along(*axis) != 0 && !self.axes[*axis as usize])
    }
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
    /// It is added up over all points; floats in f64, accurately.
    Sum,
    /// The largest over all points is kept.
    Max,
    /// The least over all points is kept.
    Min,
}

impl Role {
    /// Those that make one number of the values of all points.
    pub const FOLDS: [Role; 3] = [Role::Sum, Role::Max, Role::Min];

    /// Whether it makes one number of the values of all points.
    pub fn is_fold(self) -> bool {
        self != Role::Value
    }

    /// The type of such results in Rust, without that of the value: `Sum` of `Sum<f64>`; a value is what it is.
    pub fn type_name(self) -> Option<&'static str> {
        match self {
            Role::Value => None,
            Role::Sum => Some("Sum"),
            Role::Max => Some("Max"),
            Role::Min => Some("Min"),
        }
    }
}

/// One result of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its type.
    pub ty: Type,
    /// What becomes of it.
    pub role: Role,
}

impl Output {
    /// Whether the front end makes two results of such a one: a sum of the lower 32 bits of all values, and behind it a sum
    /// of the bits above them. Neither can outgrow the 64 bits that a row has for its sum.
    pub fn has_halves(&self) -> bool {
        self.role == Role::Sum && matches!(self.ty, Type::I64 | Type::U64)
    }
}

/// Operations on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-a` of a float or a signed integer; the least integer stays as it is.
    Neg,
    /// `!a` on truth values and on the bits of integers.
    Not,
}

/// Operations on two operands of the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`; integers wrap around, as in a release build.
    Add,
    /// `a - b`; integers wrap around.
    Sub,
    /// `a * b`; integers wrap around.
    Mul,
    /// `a / b`; of integers towards zero. By zero it is 0, and the least integer by -1 stays as it is (where rustc's code
    /// would end the program).
    Div,
    /// `a % b`; of integers with the sign of `a`, 0 where [`Binary::Div`] is special; of floats the remainder of the
    /// division rounded towards zero, exact.
    Rem,
    /// `a & b` on integers and truth values.
    BitAnd,
    /// `a | b`.
    BitOr,
    /// `a ^ b`.
    BitXor,
    /// `a << b` on integers; only the low bits of `b` count, as many as number the bits of `a`.
    Shl,
    /// `a >> b`; copies of the sign come in for signed integers, zeros for unsigned ones.
    Shr,
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
    /// Integers or truth values to one of the same type.
    Bitwise,
    /// Integers to one of the same type.
    Shift,
    /// Numbers (or truth values, for `==` and `!=`) to a truth value.
    Comparison,
    /// Truth values to a truth value.
    Logic,
}

impl Binary {
    /// Every operation.
    pub const ALL: [Binary; 18] = [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Rem,
        Binary::BitAnd,
        Binary::BitOr,
        Binary::BitXor,
        Binary::Shl,
        Binary::Shr,
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
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Rem => BinaryKind::Arithmetic,
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => BinaryKind::Bitwise,
            Binary::Shl | Binary::Shr => BinaryKind::Shift,
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
            Binary::Rem => "%",
            Binary::BitAnd => "&",
            Binary::BitOr => "|",
            Binary::BitXor => "^",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
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

/// A table of constants that is read at a computed index.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The user's name.
    pub name: String,
    /// The type of an element.
    pub ty: Type,
    /// The elements, at least one.
    pub values: Vec<Value>,
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
        /// The displacement from the point being updated; none along an axis that the field lacks.
        offset: Offset,
    },
    /// An operation on one operand.
    Unary(Unary, Id<Expr>),
    /// An operation on two operands.
    Binary(Binary, Id<Expr>, Id<Expr>),
    /// A function of Rust's floats.
    Call(Function, Vec<Id<Expr>>),
    /// `a as T`, to the type of the expression, with Rust's meaning: integers keep their low bits, floats become the nearest
    /// integer of the type towards zero and not-a-number becomes 0, bools become 0 or 1.
    Cast(Id<Expr>),
    /// The global index of the point along an axis, an i32.
    Index(Axis),
    /// An element of a table. The index is an integer of type u64; past the end the last element is read.
    Element {
        /// The table.
        table: Id<Table>,
        /// The index.
        index: Id<Expr>,
    },
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
    /// Gives a result its value at this point, to be written or folded as its [`Role`] says; every path stores each
    /// output exactly once.
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
    /// Tables of constants.
    pub tables: Arena<Table>,
    /// All local variables.
    pub locals: Arena<Local>,
    /// The results in order.
    pub outputs: Arena<Output>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// All expressions.
    pub exprs: Arena<Expr>,
}
