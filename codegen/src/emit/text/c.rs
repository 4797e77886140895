//! What CUDA C, HIP and OpenCL C have in common: literals, types, indices and the list of arguments.
//!
//! The arguments of a kernel, the same for all targets: a pointer per result, a pointer per field, (OpenCL only) the
//! origin of each of these (two in an argument where there are very many, see `origins`), the scalars, `sy`, `sz`, `lo_x lo_y lo_z`, `n_x n_y n_z`, `parity`, and for a kernel that uses
//! global indices that of the origin, `g_x g_y g_z`. Field values of point (i, j, k) are at `[i + j*sy + k*sz]` from the
//! origin; fields that lack an axis leave it out (see `address`). Truth values and integers of 8 bits travel as 32 bits.
//! No pointer is `restrict`: a result may take the place of a field.
//!
//! Signed overflow is undefined in C: sums and products of integers are computed in the unsigned type of the same size
//! (of 32 bits for smaller ones) and converted once, at the end: `(int)((unsigned int)a + (unsigned int)b + 1u)`. C
//! computes with integers of 8 bits as 32-bit ones; every value that stands for one is in its range.

use std::collections::BTreeMap;

use super::address::{Axes, Stride, WHOLE, addressed, stride, suffix};
use super::fold::{Fold, row_type};
use super::forms::entries;
use super::helper::{CLAMP, Helper, needed};
use super::march::March;
use super::stores::stores_last;
use super::term::{Level, Term};
use super::walk::{Dialect, statements, used_axes, used_tables};
use crate::emit::Target;
use crate::emit::names::{Names, entry_point, rows_entry_point};
use crate::emit::origins::has_paired_origins;
use crate::ir::{
    Axis, Binary, BinaryKind, Family, Field, Function, Id, Kernel, Local, Offset, Output, Param, Table, Type, Unary,
    Value,
};
use crate::verify::Verified;

/// What differs between the C dialects inside a kernel's body.
pub(crate) struct Spelling {
    /// Which it is.
    pub(crate) target: Target,
    /// What it is called in the comment at the head.
    pub(crate) language: &'static str,
    /// The types of values.
    pub(crate) types: fn(Type) -> &'static str,
    /// What literals of 64-bit integers end in: signed, then unsigned.
    pub(crate) long: [&'static str; 2],
    /// What a function above the kernel begins with.
    pub(crate) helper: &'static str,
    /// What a table in a kernel begins with.
    pub(crate) table: &'static str,
    /// Whether the language lacks something, so that a function above the kernel stands for it.
    pub(crate) lacks: fn(Helper) -> bool,
    /// A function of arguments of a type; never one for which there is a [`Helper`].
    pub(crate) call: fn(Function, Type, Vec<Term>) -> Term,
    /// The exact remainder of floats of a type, unless the language lacks it.
    pub(crate) remainder: fn(Type, Term, Term) -> Term,
    /// A float from its bits: infinities and not-a-numbers.
    pub(crate) from_bits: fn(Value) -> String,
}

/// A kernel about to be written in a C dialect, with all its names.
pub(crate) struct Source<'k> {
    pub(crate) verified: &'k Verified,
    /// The same with all stores at the end.
    pub(crate) kernel: Kernel,
    pub(crate) names: Names,
    /// Names of the emitter's own.
    pub(crate) own: Own,
    /// The functions above the kernel.
    pub(crate) helpers: BTreeMap<Helper, String>,
    /// What folds the results of a row, by output; nothing for values.
    pub(crate) folds: Vec<Option<Fold>>,
    /// The axes whose global index is used.
    pub(crate) axes: Vec<Axis>,
    /// Whether an argument holds two origins.
    pub(crate) has_paired_origins: bool,
    /// What stays in registers where a thread marches along Z; nothing where that saves nothing, and in OpenCL C.
    pub(crate) march: Option<March>,
    /// Whether the text at hand is that of such a thread.
    pub(crate) marches: bool,
    pub(crate) spelling: &'static Spelling,
}

/// The names that describe the geometry.
pub(crate) struct Own {
    /// The origins of all results, then of all fields; where they are paired, a name for each pair.
    pub(crate) origins: Vec<String>,
    pub(crate) sy: String,
    pub(crate) sz: String,
    pub(crate) lo: [String; 3],
    pub(crate) n: [String; 3],
    /// The global index of the origin.
    pub(crate) g: [String; 3],
    /// The global index of the point.
    pub(crate) xyz: [String; 3],
    /// The point within the box.
    pub(crate) ijk: [String; 3],
    /// The points to compute.
    pub(crate) parity: String,
    /// The rows of a plane, where anything depends on them.
    pub(crate) rows: String,
    /// What is indexed, by the axes along which it extends.
    pub(crate) cells: BTreeMap<Axes, Cell>,
    /// The lane of a point among the running sums, and the index of the first of as many points.
    pub(crate) lane: String,
    pub(crate) block: String,
    /// The functions that do what a thread does, by [`Walk`](super::Walk), where the kernel itself doesn't.
    pub(crate) functions: [String; 3],
    /// The type of indices of cells.
    pub(crate) index: String,
}

/// Where the point is in fields that extend along some axes.
pub(crate) struct Cell {
    /// The index of a row's first point, where there is a loop over the row.
    pub(crate) row: String,
    /// The index of the point.
    pub(crate) c: String,
}

/// What there is to know about an argument.
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) kind: ArgumentKind,
}

/// What an argument is.
pub(crate) enum ArgumentKind {
    /// New values.
    Output(Type),
    /// A field.
    Field(Type),
    /// A scalar.
    Scalar(Type),
    /// `sy`, `sz`.
    Stride,
    /// `lo_x` to `n_z`, `parity`, `g_x` to `g_z`.
    Extent,
}

impl<'k> Source<'k> {
    pub(crate) fn new(verified: &'k Verified, spelling: &'static Spelling) -> Self {
        let kernel = stores_last(verified);
        let mut names = Names::new(&kernel, spelling.target);
        // No function above the kernel may be called like it.
        for entry in entries(&kernel.name) {
            let _ = names.fresh(&entry);
        }
        let has_paired_origins = has_paired_origins(verified);
        let outputs = kernel.outputs.ids().map(|id| format!("{}_origin", names.output(id)));
        let fields = kernel.fields.ids().map(|id| format!("{}_origin", names.field(id)));
        let mut origins: Vec<String> = outputs.chain(fields).collect();
        if has_paired_origins {
            origins = (0..origins.len().div_ceil(2)).map(|pair| format!("origins_{pair}")).collect();
        }
        let mut fresh = |wish: &str| names.fresh(wish);
        let own = Own {
            origins: origins.iter().map(|wish| fresh(wish)).collect(),
            sy: fresh("sy"),
            sz: fresh("sz"),
            lo: ["lo_x", "lo_y", "lo_z"].map(&mut fresh),
            n: ["n_x", "n_y", "n_z"].map(&mut fresh),
            ijk: ["i", "j", "k"].map(&mut fresh),
            cells: addressed(&kernel)
                .into_iter()
                .rev()
                .map(|axes| {
                    let [row, c] = ["row", "c"].map(|name| fresh(&(name.to_owned() + &suffix(axes))));
                    (axes, Cell { row, c })
                })
                .collect(),
            parity: fresh("parity"),
            rows: fresh("rows"),
            lane: fresh("lane"),
            block: fresh("block"),
            g: ["g_x", "g_y", "g_z"].map(&mut fresh),
            xyz: ["x", "y", "z"].map(&mut fresh),
            functions: ["point", "column", "row"].map(|of| fresh(&format!("{}_{of}", entry_point(&kernel.name)))),
            index: if spelling.target == Target::OpenCl { (spelling.types)(Type::I64).into() } else { fresh("Index") },
        };
        let folds = kernel.outputs.iter().map(|output| Fold::new(output, &mut names)).collect();
        let helpers = needed(&kernel, &mut names, spelling.lacks);
        let march = if spelling.target == Target::OpenCl { None } else { March::new(&kernel, &mut names) };
        let axes = used_axes(&kernel);
        Source {
            verified,
            names,
            own,
            helpers,
            folds,
            axes,
            kernel,
            has_paired_origins,
            march,
            marches: false,
            spelling,
        }
    }

    /// The name of the kernel function that computes a point.
    pub(crate) fn entry(&self) -> String {
        entry_point(&self.kernel.name)
    }

    /// The name of the kernel function that computes a row.
    pub(crate) fn rows_entry(&self) -> String {
        rows_entry_point(&self.kernel.name)
    }

    /// Pointers to the results and fields, in order.
    pub(crate) fn pointers(&self) -> Vec<Argument> {
        let outputs = self.kernel.outputs.enumerate().map(|(id, output)| Argument {
            name: self.names.output(id).to_string(),
            kind: ArgumentKind::Output(row_type(output)),
        });
        let fields = self.kernel.fields.enumerate().map(|(id, field)| Argument {
            name: self.names.field(id).to_string(),
            kind: ArgumentKind::Field(field.ty),
        });
        outputs.chain(fields).collect()
    }

    /// Everything after the pointers and origins, in order.
    pub(crate) fn numbers(&self) -> Vec<Argument> {
        let scalars = self.kernel.params.enumerate().map(|(id, param)| Argument {
            name: self.names.param(id).to_string(),
            kind: ArgumentKind::Scalar(param.ty),
        });
        let strides = [&self.own.sy, &self.own.sz].map(|name| (name, ArgumentKind::Stride));
        let extents = self.own.lo.iter().chain(&self.own.n).chain([&self.own.parity]);
        let extents = extents.map(|name| (name, ArgumentKind::Extent));
        let global = self.own.g.iter().filter(|_| !self.axes.is_empty()).map(|name| (name, ArgumentKind::Extent));
        let geometry = strides.into_iter().chain(extents).chain(global);
        scalars.chain(geometry.map(|(name, kind)| Argument { name: name.clone(), kind })).collect()
    }

    /// Whether any value is an f64.
    pub(crate) fn has_doubles(&self) -> bool {
        let kernel = &self.kernel;
        let exprs = kernel.exprs.iter().map(|expr| expr.ty);
        let places = kernel.fields.iter().map(|field| field.ty).chain(kernel.outputs.iter().map(row_type));
        let names = kernel.params.iter().map(|param| param.ty).chain(kernel.locals.iter().map(|local| local.ty));
        let tables = kernel.tables.iter().map(|table| table.ty);
        exprs.chain(places).chain(names).chain(tables).any(|ty| ty == Type::F64)
    }

    /// A number as the kernel receives it.
    pub(crate) fn number(&self, argument: &Argument) -> String {
        let ty = match argument.kind {
            ArgumentKind::Output(ty) | ArgumentKind::Field(ty) | ArgumentKind::Scalar(ty) => passed(ty),
            ArgumentKind::Stride => Type::I64,
            ArgumentKind::Extent => Type::I32,
        };
        format!("const {} {}", self.ty(ty), argument.name)
    }

    /// The type of a value in a kernel.
    pub(crate) fn ty(&self, ty: Type) -> &'static str {
        (self.spelling.types)(ty)
    }

    /// The type of a value in a field.
    pub(crate) fn stored(&self, ty: Type) -> &'static str {
        self.ty(if ty == Type::Bool { Type::U8 } else { ty })
    }

    /// The kernel's tables.
    pub(crate) fn tables(&self) -> Vec<String> {
        let table = |id: Id<Table>| {
            let Table { ty, values, .. } = &self.kernel.tables[id];
            // Bits are turned into a float at run time, which a static table can't wait for.
            let is_constant = values.iter().all(|value| !ty.is_float() || decimal(*value).is_some());
            let word = if is_constant { self.spelling.table } else { "const" };
            let before = format!("{word} {} {}[{}] = {{", self.ty(*ty), self.names.table(id), values.len());
            let values = values.iter().map(|value| self.literal(*value)).collect();
            Term::list(&before, values, "};").lines(4)
        };
        used_tables(&self.kernel).into_iter().flat_map(table).collect()
    }

    /// The value of a field at `offset` from the cell with index `from`.
    pub(crate) fn cell(&self, field: Id<Field>, from: &str, offset: Offset) -> Term {
        let Own { sy, sz, rows, .. } = &self.own;
        let axes = self.kernel.fields[field].axes;
        let strides = Axis::ALL.map(|axis| match stride(axes, axis) {
            Stride::Cell => "",
            Stride::Row => sy,
            Stride::Plane => sz,
            Stride::Rows => rows,
        });
        let cell = format!("{}[{}]", self.names.field(field), index(from, strides, offset));
        match self.kernel.fields[field].ty {
            Type::Bool => Term::new(Level::Comparison, format!("{cell} != 0")),
            Type::F64 | Type::F32 | Type::I64 | Type::I32 | Type::I8 | Type::U64 | Type::U32 | Type::U8 => {
                Term::whole(cell)
            }
        }
    }

    /// The kernel's statements for the point.
    pub(crate) fn body(&self, indent: usize) -> Vec<String> {
        let Own { g, xyz, lo, ijk, .. } = &self.own;
        let index = |axis: &Axis| {
            let at = *axis as usize;
            format!("{:indent$}const int {} = {} + {} + {};", "", xyz[at], g[at], lo[at], ijk[at])
        };
        let mut lines: Vec<String> = self.axes.iter().map(index).collect();
        lines.extend(statements(&self.kernel, self, &self.kernel.body, indent));
        lines
    }
}

/// The type as which a scalar travels: OpenCL has no kernel arguments of type bool, and SPIR-V needs a capability for 8
/// bits.
fn passed(ty: Type) -> Type {
    match ty {
        Type::Bool | Type::U8 => Type::U32,
        Type::I8 => Type::I32,
        Type::F64 | Type::F32 | Type::I64 | Type::I32 | Type::U64 | Type::U32 => ty,
    }
}

/// The name that C's library has for a function of doubles, if it is one.
pub(crate) fn library(function: Function) -> Option<&'static str> {
    match function {
        Function::Sqrt => Some("sqrt"),
        Function::Abs => Some("fabs"),
        Function::MulAdd => Some("fma"),
        Function::Floor => Some("floor"),
        Function::Ceil => Some("ceil"),
        Function::Trunc => Some("trunc"),
        Function::Round => Some("round"),
        Function::Copysign => Some("copysign"),
        Function::Exp => Some("exp"),
        Function::Ln => Some("log"),
        Function::Log10 => Some("log10"),
        Function::Log2 => Some("log2"),
        Function::Exp2 => Some("exp2"),
        Function::Powf => Some("pow"),
        Function::Sin => Some("sin"),
        Function::Cos => Some("cos"),
        Function::Tan => Some("tan"),
        Function::Asin => Some("asin"),
        Function::Acos => Some("acos"),
        Function::Atan => Some("atan"),
        Function::Atan2 => Some("atan2"),
        Function::Sinh => Some("sinh"),
        Function::Cosh => Some("cosh"),
        Function::Tanh => Some("tanh"),
        Function::Cbrt => Some("cbrt"),
        Function::Hypot => Some("hypot"),
        Function::Min | Function::Max | Function::ToBits | Function::FromBits | Function::CountOnes => None,
    }
}

/// The type in which sums and products of an integer type wrap around.
fn carrier(ty: Type) -> Type {
    match ty {
        Type::I64 | Type::U64 => Type::U64,
        Type::I32 | Type::U32 | Type::I8 | Type::U8 => Type::U32,
        Type::F64 | Type::F32 | Type::Bool => unreachable!("only integers wrap around"),
    }
}

/// Integers.
impl Source<'_> {
    /// The bits of an integer in its [`carrier`]; for small types only the low ones count.
    fn carried(&self, ty: Type, value: Term) -> Term {
        match value.bits() {
            Some(bits) => bits,
            None if ty == carrier(ty) => value,
            None => Term::prefix(&format!("({})", self.ty(carrier(ty))), value),
        }
    }

    /// The integer of type `ty` from bits in its [`carrier`].
    fn landed(&self, ty: Type, bits: Term) -> Term {
        match ty == carrier(ty) {
            true => bits,
            false => Term::prefix(&format!("({})", self.ty(ty)), bits.clone()).with_bits(bits),
        }
    }

    /// The count of a shift, below the number of bits.
    fn count(&self, ty: Type, count: Term, known: Option<Value>) -> Term {
        let mask = 8 * ty.bytes() as u64 - 1;
        match known {
            Some(value) => Term::whole((value.bits() & mask).to_string()),
            None => Term::binary(Binary::BitAnd, count, Term::whole(mask.to_string())),
        }
    }
}

impl Dialect for Source<'_> {
    fn literal(&self, value: Value) -> Term {
        let [signed, unsigned] = self.spelling.long;
        let number = |text: String| match text.starts_with('-') {
            true => Term::new(Level::Prefix, text),
            false => Term::whole(text),
        };
        match value {
            Value::F64(_) | Value::F32(_) => match decimal(value) {
                Some(text) => number(text),
                None => Term::whole((self.spelling.from_bits)(value)),
            },
            // C has no negative literals, and the least integer is the negative of none.
            Value::I64(i64::MIN) => Term::whole(format!("(-{}{signed} - 1)", i64::MAX)),
            Value::I32(i32::MIN) => Term::whole(format!("(-{} - 1)", i32::MAX)),
            Value::I64(value @ 0..) => {
                Term::whole(format!("{value}{signed}")).with_bits(Term::whole(format!("{value}{unsigned}")))
            }
            Value::I32(value @ 0..) => Term::whole(value.to_string()).with_bits(Term::whole(format!("{value}u"))),
            Value::I8(value @ 0..) => Term::whole(value.to_string()).with_bits(Term::whole(format!("{value}u"))),
            Value::U8(value) => Term::whole(value.to_string()).with_bits(Term::whole(format!("{value}u"))),
            Value::I64(value) => number(format!("{value}{signed}")),
            Value::I32(value) => number(value.to_string()),
            Value::I8(value) => number(value.to_string()),
            Value::U64(value) => Term::whole(format!("{value}{unsigned}")),
            Value::U32(value) => Term::whole(format!("{value}u")),
            Value::Bool(value) => Term::whole(value.to_string()),
        }
    }

    fn param(&self, param: Id<Param>) -> Term {
        let name = self.names.param(param);
        let ty = self.kernel.params[param].ty;
        match ty {
            Type::Bool => Term::new(Level::Comparison, format!("{name} != 0")),
            Type::I8 | Type::U8 => Term::new(Level::Prefix, format!("({}){name}", self.ty(ty))),
            Type::F64 | Type::F32 | Type::I64 | Type::I32 | Type::U64 | Type::U32 => Term::whole(name),
        }
    }

    fn local(&self, local: Id<Local>) -> &str {
        self.names.local(local)
    }

    fn load(&self, field: Id<Field>, offset: Offset) -> Term {
        match self.march.as_ref().filter(|_| self.marches) {
            Some(march) => Term::whole(march.name(field, offset)),
            None => self.cell(field, &self.own.cells[&self.kernel.fields[field].axes].c, offset),
        }
    }

    fn index(&self, axis: Axis) -> Term {
        Term::whole(&self.own.xyz[axis as usize])
    }

    fn element(&self, table: Id<Table>, index: Term) -> Term {
        Term::enclosed(&format!("{}[", self.names.table(table)), index, "]")
    }

    fn clamped(&self, index: Term, last: u64) -> Term {
        Term::call(&self.helpers[&CLAMP], vec![index, self.literal(Value::U64(last))])
    }

    fn helper(&self, helper: Helper) -> Option<&str> {
        self.helpers.get(&helper).map(String::as_str)
    }

    fn unary(&self, op: Unary, ty: Type, a: Term) -> Term {
        match (op, ty.family()) {
            (Unary::Neg, Family::Signed | Family::Unsigned) => self.landed(ty, Term::prefix("-", self.carried(ty, a))),
            (Unary::Neg, Family::Float | Family::Bool) => Term::prefix("-", a),
            (Unary::Not, Family::Bool) => Term::prefix("!", a),
            // Of 8 bits the others would become ones too.
            (Unary::Not, _) if ty == Type::U8 => self.landed(ty, Term::prefix("~", self.carried(ty, a))),
            (Unary::Not, _) => Term::prefix("~", a),
        }
    }

    fn binary(&self, op: Binary, ty: Type, a: Term, b: Term, known: Option<Value>) -> Term {
        match op {
            Binary::Add | Binary::Sub | Binary::Mul if ty.is_integer() => {
                self.landed(ty, Term::binary(op, self.carried(ty, a), self.carried(ty, b)))
            }
            Binary::Shl => self.landed(ty, Term::binary(op, self.carried(ty, a), self.count(ty, b, known))),
            Binary::Shr => Term::binary(op, a, self.count(ty, b, known)),
            Binary::Rem if ty.is_float() => (self.spelling.remainder)(ty, a, b),
            _ => {
                debug_assert_ne!(op.kind(), BinaryKind::Shift);
                Term::binary(op, a, b)
            }
        }
    }

    fn call(&self, function: Function, ty: Type, arguments: Vec<Term>) -> Term {
        (self.spelling.call)(function, ty, arguments)
    }

    fn cast(&self, from: Type, to: Type, value: Term) -> Term {
        if from == to {
            return value;
        }
        // What is cut off need not be computed first.
        let shortens = from.is_integer() && to.is_integer() && to.bytes() <= from.bytes();
        let value = if shortens { value.bits().unwrap_or(value) } else { value };
        Term::prefix(&format!("({})", self.ty(to)), value)
    }

    fn declaration(&self, local: Id<Local>, constant: bool) -> String {
        let word = if constant { "const " } else { "" };
        format!("{word}{} {}", self.ty(self.kernel.locals[local].ty), self.names.local(local))
    }

    fn store(&self, output: Id<Output>, value: Term) -> Term {
        match &self.folds[output.index()] {
            Some(fold) => self.folded(fold, value),
            None => value.around(&format!("{}[{}] = ", self.names.output(output), self.own.cells[&WHOLE].c), ""),
        }
    }

    fn condition(&self) -> (&'static str, &'static str) {
        ("if (", ") {")
    }
}

/// `c - sy + 2*sz`: the point's own index plus a constant number of each stride.
pub(crate) fn index(c: &str, strides: [&str; 3], offset: Offset) -> String {
    let mut text = c.to_string();
    for (axis, stride) in Axis::ALL.into_iter().zip(strides) {
        let sign = match offset.along(axis) {
            0 => continue,
            ..0 => '-',
            1.. => '+',
        };
        let amount = match (offset.along(axis).unsigned_abs(), stride) {
            (cells, "") => cells.to_string(),
            (1, stride) => stride.to_string(),
            (cells, stride) => format!("{cells}*{stride}"),
        };
        text.push_str(&format!(" {sign} {amount}"));
    }
    text
}

/// The shortest decimal that is read back as the float `value`, or `None` for what has no decimal.
pub(crate) fn decimal(value: Value) -> Option<String> {
    match value {
        Value::F64(value) => value.is_finite().then(|| format!("{value:?}")),
        Value::F32(value) => value.is_finite().then(|| {
            let text = format!("{value:?}");
            // A compiler may read a double first and round that to a float: two roundings, which must end at the value.
            let twice = text.parse::<f64>().expect("Rust prints what it parses") as f32;
            if twice.to_bits() == value.to_bits() { format!("{text}f") } else { format!("{:?}f", f64::from(value)) }
        }),
        _ => unreachable!("only floats have a decimal point"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_name_their_strides() {
        let check = |offset, expected| assert_eq!(index("c", ["", "sy", "sz"], Offset(offset)), expected);
        check([0, 0, 0], "c");
        check([1, 0, 0], "c + 1");
        check([-3, 0, 0], "c - 3");
        check([0, -1, 0], "c - sy");
        check([0, -1, 2], "c - sy + 2*sz");
        check([1, 1, -1], "c + 1 + sy - sz");
    }

    #[test]
    fn decimals_are_short_and_typed() {
        let check = |value, expected: &str| assert_eq!(decimal(value).as_deref(), Some(expected));
        check(Value::F64(0.1), "0.1");
        check(Value::F64(1.0), "1.0");
        check(Value::F64(-0.0), "-0.0");
        check(Value::F64(5e-324), "5e-324");
        check(Value::F64(f64::MAX), "1.7976931348623157e308");
        check(Value::F32(0.1), "0.1f");
        check(Value::F32(1e-45), "1e-45f");
        assert_eq!(decimal(Value::F64(f64::INFINITY)), None);
        assert_eq!(decimal(Value::F32(f32::NAN)), None);
    }

    #[test]
    fn floats_survive_being_read_as_doubles() {
        let mut bits = 1_u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(bits);
            let Some(text) = decimal(Value::F32(value)) else { continue };
            let number = text.strip_suffix('f').expect("floats end in f");
            assert_eq!(number.parse::<f32>().map(f32::to_bits), Ok(bits), "{text}");
            assert_eq!(number.parse::<f64>().map(|wide| (wide as f32).to_bits()), Ok(bits), "{text}");
        }
    }
}
