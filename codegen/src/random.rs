//! Random small kernels over the whole intermediate form, and values to run them on: the same for the same seed.
//!
//! For tests, behind the feature `random`. What `ALL` lists hold comes up by itself; a new kind of type, expression or
//! statement needs an arm here, and is then tested on every target.

use crate::ir::{
    Axis, Binary, BinaryKind, Exactness, Expr, ExprKind, Family, Field, Function, Id, Kernel, Local, Offset, Output,
    Param, Place, Role, Stmt, Table, Type, Unary, Value,
};
use crate::verify::{Verified, verify};

/// A source of numbers without a pattern (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Numbers that show a slip where ordinary ones don't: both zeros, one, the ends of the subnormal and the normal range.
const SPECIAL_F64: [f64; 13] =
    [0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, f64::MIN_POSITIVE, f64::EPSILON, 1e200, -1e300, f64::MAX, 0.1, -0.5];
const SPECIAL_F32: [f32; 13] =
    [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-40, f32::MIN_POSITIVE, f32::EPSILON, 1e25, -1e37, f32::MAX, 0.1, -0.5];

impl Random {
    /// The source that starts at `seed`; any will do.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to `limit` - 1; `limit` is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `items`, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Mostly ordinary numbers of both signs and several magnitudes; often small whole ones, which may be equal; sometimes
    /// one at the end of a range, rarely a float without bounds or not a number at all.
    pub fn value(&mut self, ty: Type) -> Value {
        match (ty.family(), self.below(120)) {
            (Family::Bool, kind) => Value::Bool(kind % 2 == 0),
            (Family::Float, 3) => Value::from_bits(ty, self.bits()),
            (Family::Float, kind) => match ty {
                Type::F32 => Value::F32(match kind {
                    0..=2 => self.pick(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN]),
                    4..=9 => self.pick(&SPECIAL_F32),
                    10..=39 => self.whole() as f32,
                    _ => self.ordinary() as f32,
                }),
                _ => Value::F64(match kind {
                    0..=2 => self.pick(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]),
                    4..=9 => self.pick(&SPECIAL_F64),
                    10..=39 => self.whole(),
                    _ => self.ordinary(),
                }),
            },
            (Family::Signed | Family::Unsigned, kind) => {
                let top = 8 * ty.bytes() - 1;
                let bits = match kind {
                    0..=9 => self.bits(),
                    // The ends of the signed range and their neighbours, cut to the type.
                    10..=19 => (1_u64 << top).wrapping_add(self.pick(&[0, 1, u64::MAX])),
                    20..=29 => self.bits() >> self.below(64),
                    30..=69 => self.pick(&[0, 1, 2, u64::MAX, 2_u64.wrapping_neg()]),
                    _ => (self.below(41) as u64).wrapping_sub(20),
                };
                Value::from_bits(ty, bits)
            }
        }
    }

    fn whole(&mut self) -> f64 {
        self.pick(&[-2.0, -1.0, 0.0, 1.0, 2.0])
    }

    fn ordinary(&mut self) -> f64 {
        (self.bits() as f64 / u64::MAX as f64 - 0.5) * self.pick(&[2.0, 2.0, 10.0, 1e-3, 1e5])
    }
}

/// How large a kernel may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The farthest cell that is read, along each axis.
    pub reach: u32,
    /// About as many expressions as there are.
    pub expressions: usize,
    /// Whether functions occur whose results differ from vendor to vendor ([`Exactness::Vendor`]).
    pub vendor: bool,
    /// Whether fields occur that extend along some axes only ([`Field::axes`]).
    pub axes: bool,
    /// Whether results occur that are folded over all points ([`Role::FOLDS`]).
    pub folds: bool,
}

impl Limits {
    /// The default without fields that lack an axis and without folds.
    pub fn plain() -> Self {
        Limits { axes: false, folds: false, ..Limits::default() }
    }
}

impl Default for Limits {
    /// Two cells, what compiles in a moment, and what gives the same bits everywhere.
    fn default() -> Self {
        Limits { reach: 2, expressions: 120, vendor: false, axes: true, folds: true }
    }
}

/// The kernel of a seed.
pub fn kernel(name: &str, seed: u64, limits: Limits) -> Verified {
    let mut draft = Draft {
        random: Random::new(seed),
        kernel: Kernel { name: name.into(), file: "random.rs".into(), ..Kernel::default() },
        numbers: Vec::new(),
        vendor: limits.vendor,
        reaches: Vec::new(),
        left: limits.expressions,
        line: 10,
        readable: Vec::new(),
        unread: Vec::new(),
    };
    draft.signature(limits);
    let outputs: Vec<Id<Output>> = draft.kernel.outputs.ids().collect();
    draft.kernel.body = draft.block(2, &outputs);
    verify(draft.kernel).unwrap_or_else(|wrong| panic!("the generator made an unsound kernel of {seed}: {wrong:?}"))
}

/// Names of parameters, among them such as emitters use themselves or languages reserve.
const PARAMETERS: [&str; 16] = [
    "u", "v", "out", "restrict", "κ", "sy", "output_0", "beta", "r#type", "lo_x", "i", "args", "double", "global", "z",
    "row",
];
/// Names of locals; later ones hide earlier ones and parameters.
const LOCALS: [&str; 12] = ["s", "t", "flux", "double", "i", "c", "sqrt", "σ", "u", "out_0", "r#loop", "x"];

/// A kernel that is being made.
struct Draft {
    random: Random,
    kernel: Kernel,
    /// The types of its numbers.
    numbers: Vec<Type>,
    /// Whether functions may occur whose results differ from vendor to vendor.
    vendor: bool,
    /// For each field the nearest and the farthest cell along each axis.
    reaches: Vec<[[i32; 2]; 3]>,
    /// Expressions that may still be made.
    left: usize,
    line: u32,
    /// Locals that have a value here.
    readable: Vec<Id<Local>>,
    /// Those among them, and others, whose last value has not been read.
    unread: Vec<Id<Local>>,
}

impl Draft {
    fn signature(&mut self, limits: Limits) {
        let place = Place { line: 1, ..Place::default() };
        let reach = i32::try_from(limits.reach).expect("a few cells");
        // Some kernels know a single float, as most of a user's do; some know integers only.
        self.numbers = match self.random.below(8) {
            0 | 1 => vec![Type::F64],
            2 | 3 => vec![Type::F32],
            4 => vec![],
            _ => vec![Type::F64, Type::F32],
        };
        let integers: Vec<Type> = Type::ALL.into_iter().filter(|ty| ty.is_integer()).collect();
        let fewest = usize::from(self.numbers.is_empty());
        for _ in 0..fewest + self.random.below(4) {
            let ty = self.random.pick(&integers);
            self.numbers.push(ty);
        }
        let mut names = PARAMETERS.to_vec();
        let mut name = |random: &mut Random| names.swap_remove(random.below(names.len())).to_owned();
        for _ in 0..1 + self.random.below(4) {
            let ty = self.ty();
            let name = name(&mut self.random);
            let axes = match limits.axes && self.random.once_in(4) {
                true => self.random.pick(&Field::TYPES[1..]).1,
                false => [true; 3],
            };
            self.kernel.fields.push(Field { name, ty, axes, place });
            let sides = [[-reach, reach], [-reach, reach], [-reach, 0], [0, reach], [-1.min(reach), 0], [0, 0]];
            let within = |random: &mut Random, extends| if extends { random.pick(&sides) } else { [0, 0] };
            self.reaches.push(axes.map(|extends| within(&mut self.random, extends)));
        }
        for _ in 0..self.random.below(5) {
            let ty = self.ty();
            self.kernel.params.push(Param { name: name(&mut self.random), ty, place });
        }
        for _ in 0..1 + self.random.below(3) {
            let ty = self.ty();
            let role = match limits.folds && ty.is_number() && self.random.once_in(4) {
                true => self.random.pick(&Role::FOLDS),
                false => Role::Value,
            };
            self.kernel.outputs.push(Output { ty, role });
        }
        for _ in 0..self.random.below(3) {
            let (ty, name) = (self.ty(), self.random.pick(&LOCALS).to_owned());
            let values = (0..1 + self.random.below(9)).map(|_| self.random.value(ty)).collect();
            self.kernel.tables.push(Table { name, ty, values });
        }
    }

    /// Statements, `depth` levels of `if` at most, that store exactly `outputs`.
    fn block(&mut self, depth: usize, outputs: &[Id<Output>]) -> Vec<Stmt> {
        let scope = self.readable.len();
        let mut block = Vec::new();
        let early = self.random.below(outputs.len() + 1);
        for _ in 0..1 + self.random.below(4) {
            self.stmt(depth, &mut block);
        }
        self.stores(depth, &outputs[..early], &mut block);
        self.stmt(depth, &mut block);
        self.stores(depth, &outputs[early..], &mut block);
        self.readable.truncate(scope);
        block
    }

    fn stores(&mut self, depth: usize, outputs: &[Id<Output>], block: &mut Vec<Stmt>) {
        if depth > 0 && self.left > 0 && !outputs.is_empty() && self.random.once_in(2) {
            let (condition, place) = (self.condition(), self.place());
            let (then, otherwise) = (self.block(depth - 1, outputs), self.block(depth - 1, outputs));
            block.push(Stmt::If { condition, then, otherwise, place });
            return;
        }
        for output in outputs {
            // Results are what others see, so there must be something to them.
            self.left = self.left.max(8);
            let value = self.value(self.kernel.outputs[*output].ty, 4);
            block.push(Stmt::Store { output: *output, value, place: self.place() });
        }
    }

    /// One statement that stores nothing, or none.
    fn stmt(&mut self, depth: usize, block: &mut Vec<Stmt>) {
        if self.left == 0 {
            return;
        }
        self.line += 1;
        let assignable = |local: &Id<Local>| self.kernel.locals[*local].mutable;
        let targets: Vec<Id<Local>> = self.readable.iter().copied().filter(assignable).collect();
        match self.random.below(6) {
            0 | 1 => {
                let ty = self.ty();
                let value = self.expr(ty, 4);
                let local = self.declare(ty);
                block.push(Stmt::Let { local, value: Some(value), place: self.place() });
                self.know(local);
            }
            2 if !targets.is_empty() => {
                let local = self.random.pick(&targets);
                self.assign(local, block);
            }
            3 if depth > 0 && !targets.is_empty() => {
                let local = self.random.pick(&targets);
                let (condition, place) = (self.condition(), self.place());
                let mut then = self.block(depth - 1, &[]);
                self.assign(local, &mut then);
                let otherwise = if self.random.once_in(2) { vec![] } else { self.block(depth - 1, &[]) };
                block.push(Stmt::If { condition, then, otherwise, place });
            }
            4 | 5 => {
                let ty = self.ty();
                let local = self.declare(ty);
                block.push(Stmt::Let { local, value: None, place: self.place() });
                self.first_value(local, depth, block);
                self.know(local);
            }
            _ => {}
        }
    }

    /// Gives a local that was declared without a value one on every path.
    fn first_value(&mut self, local: Id<Local>, depth: usize, block: &mut Vec<Stmt>) {
        if depth == 0 || self.random.once_in(6) {
            return self.assign(local, block);
        }
        let (condition, place) = (self.condition(), self.place());
        let [then, otherwise] = [(); 2].map(|()| {
            let mut arm = if self.random.once_in(2) { vec![] } else { self.block(depth - 1, &[]) };
            self.first_value(local, depth - 1, &mut arm);
            arm
        });
        block.push(Stmt::If { condition, then, otherwise, place });
    }

    fn assign(&mut self, local: Id<Local>, block: &mut Vec<Stmt>) {
        let ty = self.kernel.locals[local].ty;
        let value = self.value(ty, 3);
        block.push(Stmt::Assign { local, value, place: self.place() });
        self.unread.push(local);
    }

    /// From here on the local has a value.
    fn know(&mut self, local: Id<Local>) {
        self.readable.push(local);
        self.unread.push(local);
    }

    /// A local of such a type that has a value which nobody has read: whatever is wrong with it would stay hidden.
    fn unread(&mut self, wanted: impl Fn(Type) -> bool) -> Option<Id<Expr>> {
        let here = |local: &Id<Local>| self.readable.contains(local) && wanted(self.kernel.locals[*local].ty);
        let local = self.unread.iter().copied().find(here)?;
        Some(self.read(local))
    }

    fn read(&mut self, local: Id<Local>) -> Id<Expr> {
        self.unread.retain(|unread| *unread != local);
        self.push(ExprKind::Local(local), self.kernel.locals[local].ty)
    }

    /// A value that depends on some locals that were not read before.
    fn value(&mut self, ty: Type, depth: usize) -> Id<Expr> {
        if ty == Type::Bool {
            return self.condition();
        }
        let mut value = self.expr(ty, depth);
        for _ in 0..3 {
            let Some(mut local) = self.unread(Type::is_number) else { break };
            if self.kernel.exprs[local].ty != ty {
                local = self.push(ExprKind::Cast(local), ty);
            }
            let op = self.random.pick(&[Binary::Add, Binary::Sub]);
            value = self.push(ExprKind::Binary(op, value, local), ty);
        }
        value
    }

    /// A truth value that depends on a local that was not read before.
    fn condition(&mut self) -> Id<Expr> {
        let value = self.expr(Type::Bool, 3);
        match self.unread(|ty| ty == Type::Bool) {
            None => value,
            Some(local) => {
                let op = self.random.pick(&[Binary::And, Binary::Or, Binary::Eq, Binary::Ne]);
                self.push(ExprKind::Binary(op, local, value), Type::Bool)
            }
        }
    }

    /// The type of a number.
    fn number_type(&mut self) -> Type {
        self.random.pick(&self.numbers)
    }

    /// The type of a number, or now and then bool.
    fn ty(&mut self) -> Type {
        match self.random.below(2 * self.numbers.len() + 1) {
            0 => Type::Bool,
            _ => self.number_type(),
        }
    }

    fn declare(&mut self, ty: Type) -> Id<Local> {
        let (name, mutable) = (self.random.pick(&LOCALS).to_owned(), self.random.once_in(2));
        self.kernel.locals.push(Local { name, ty, mutable, note: None })
    }

    fn place(&self) -> Place {
        Place { line: self.line, ..Place::default() }
    }

    fn push(&mut self, kind: ExprKind, ty: Type) -> Id<Expr> {
        self.left = self.left.saturating_sub(1);
        let place = self.place();
        self.kernel.exprs.push(Expr { kind, ty, place })
    }

    fn expr(&mut self, ty: Type, depth: usize) -> Id<Expr> {
        if depth == 0 || self.left == 0 || self.random.once_in(8) {
            return self.leaf(ty);
        }
        let tables: Vec<Id<Table>> = self.kernel.tables.ids().filter(|id| self.kernel.tables[*id].ty == ty).collect();
        let kind = match ty.family() {
            _ if !tables.is_empty() && self.random.once_in(4) => {
                let table = self.random.pick(&tables);
                ExprKind::Element { table, index: self.table_index(depth - 1) }
            }
            Family::Bool => self.truth(depth - 1),
            Family::Float | Family::Signed | Family::Unsigned => self.number(ty, depth - 1),
        };
        self.push(kind, ty)
    }

    fn number(&mut self, ty: Type, depth: usize) -> ExprKind {
        match self.random.below(10) {
            0 => match (ty.family(), self.random.once_in(2)) {
                (Family::Float, _) | (Family::Signed, true) => ExprKind::Unary(Unary::Neg, self.expr(ty, depth)),
                _ => ExprKind::Unary(Unary::Not, self.expr(ty, depth)),
            },
            1 | 2 => self.function(ty, depth),
            3 => {
                let from = self.ty();
                ExprKind::Cast(self.expr(from, depth))
            }
            4 | 5 if ty.is_integer() => {
                let op = self.operation(|kind| matches!(kind, BinaryKind::Bitwise | BinaryKind::Shift));
                self.pair(op, ty, depth)
            }
            _ => {
                let op = self.operation(|kind| kind == BinaryKind::Arithmetic);
                self.pair(op, ty, depth)
            }
        }
    }

    /// A function that gives `ty`.
    fn function(&mut self, ty: Type, depth: usize) -> ExprKind {
        let allowed = |function: &Function| self.vendor || function.exactness() == Exactness::Exact;
        let takes = |function: Function| Type::ALL.into_iter().filter(move |from| function.result(*from) == Some(ty));
        let functions: Vec<Function> =
            Function::ALL.into_iter().filter(allowed).filter(|function| takes(*function).next().is_some()).collect();
        let function = self.random.pick(&functions);
        let from = self.random.pick(&takes(function).collect::<Vec<_>>());
        let arguments = (0..function.arity()).map(|number| self.argument(function, number, from, depth));
        ExprKind::Call(function, arguments.collect())
    }

    fn argument(&mut self, function: Function, number: usize, ty: Type, depth: usize) -> Id<Expr> {
        let argument = self.expr(ty, depth);
        match (function, number) {
            // Half of all roots would not be numbers, and hide whatever is round them.
            (Function::Sqrt | Function::Ln | Function::Log10 | Function::Log2 | Function::Powf, 0)
                if !self.random.once_in(8) =>
            {
                self.push(ExprKind::Call(Function::Abs, vec![argument]), ty)
            }
            // The sign and the payload of what is not a number are nobody's promise; the lesser of it and a number is one.
            (Function::ToBits, _) | (Function::Copysign, 1) => {
                let bound = self.number_literal(ty);
                let function = self.random.pick(&[Function::Min, Function::Max]);
                self.push(ExprKind::Call(function, vec![argument, bound]), ty)
            }
            _ => argument,
        }
    }

    /// A literal that is a number.
    fn number_literal(&mut self, ty: Type) -> Id<Expr> {
        let not_a_number = |value: &Value| match value {
            Value::F64(value) => value.is_nan(),
            Value::F32(value) => value.is_nan(),
            _ => false,
        };
        let value = loop {
            let value = self.random.value(ty);
            if !not_a_number(&value) {
                break value;
            }
        };
        self.push(ExprKind::Literal(value), ty)
    }

    /// A u64, mostly near the sizes of tables.
    fn table_index(&mut self, depth: usize) -> Id<Expr> {
        let integers: Vec<Type> = self.numbers.iter().copied().filter(|ty| ty.is_integer()).collect();
        let ty = if integers.is_empty() { self.number_type() } else { self.random.pick(&integers) };
        let mut index = self.expr(ty, depth.min(2));
        if ty != Type::U64 {
            index = self.push(ExprKind::Cast(index), Type::U64);
        }
        if self.random.once_in(5) {
            return index;
        }
        let most = self.push(ExprKind::Literal(Value::U64(7)), Type::U64);
        self.push(ExprKind::Binary(Binary::BitAnd, index, most), Type::U64)
    }

    fn truth(&mut self, depth: usize) -> ExprKind {
        if self.random.once_in(6) {
            return ExprKind::Unary(Unary::Not, self.expr(Type::Bool, depth));
        }
        let op = self.operation(|kind| !matches!(kind, BinaryKind::Arithmetic | BinaryKind::Shift));
        // What is computed is seldom equal to anything.
        let depth = if op.kind() == BinaryKind::Comparison { self.random.below(depth + 1) } else { depth };
        let ty = match op {
            Binary::And | Binary::Or | Binary::BitAnd | Binary::BitOr | Binary::BitXor => Type::Bool,
            Binary::Eq | Binary::Ne => self.ty(),
            _ => self.number_type(),
        };
        self.pair(op, ty, depth)
    }

    fn operation(&mut self, wanted: impl Fn(BinaryKind) -> bool) -> Binary {
        let all: Vec<Binary> = Binary::ALL.into_iter().filter(|op| wanted(op.kind())).collect();
        self.random.pick(&all)
    }

    fn pair(&mut self, op: Binary, ty: Type, depth: usize) -> ExprKind {
        let a = self.expr(ty, depth);
        // An expression may be used twice; a comparison with itself tells numbers from what is none.
        let twice = if op.kind() == BinaryKind::Comparison { 5 } else { 16 };
        let b = if self.random.once_in(twice) { a } else { self.expr(ty, depth) };
        ExprKind::Binary(op, a, b)
    }

    fn leaf(&mut self, ty: Type) -> Id<Expr> {
        let of_type = |local: &Id<Local>| self.kernel.locals[*local].ty == ty;
        let locals: Vec<Id<Local>> = self.readable.iter().copied().filter(of_type).collect();
        if !locals.is_empty() && self.random.once_in(3) {
            let local = self.random.pick(&locals);
            return self.read(local);
        }
        let params = self.kernel.params.enumerate().filter(|(_, param)| param.ty == ty);
        let mut kinds: Vec<ExprKind> = params.map(|(id, _)| ExprKind::Param(id)).collect();
        let fields: Vec<Id<Field>> = self.kernel.fields.ids().filter(|id| self.kernel.fields[*id].ty == ty).collect();
        for field in fields {
            let offset = self.offset(field);
            kinds.extend([offset, Offset::HERE].map(|offset| ExprKind::Load { field, offset }));
        }
        if ty == Type::I32 {
            kinds.push(ExprKind::Index(self.random.pick(&Axis::ALL)));
        }
        // Constants alone would say little about the point.
        let kind = match ty {
            _ if self.random.once_in(6) => ExprKind::Literal(self.random.value(ty)),
            _ if !kinds.is_empty() => kinds.swap_remove(self.random.below(kinds.len())),
            _ => self.borrowed(ty),
        };
        self.push(kind, ty)
    }

    fn offset(&mut self, field: Id<Field>) -> Offset {
        let reach = self.reaches[field.index()];
        Offset(reach.map(|[near, far]| near + self.random.below((far - near) as usize + 1) as i32))
    }

    /// A value of a type that no field has, from one of another type.
    fn borrowed(&mut self, ty: Type) -> ExprKind {
        let fields: Vec<Id<Field>> = self.kernel.fields.ids().collect();
        let field = self.random.pick(&fields);
        let (kind, from) = (ExprKind::Load { field, offset: self.offset(field) }, self.kernel.fields[field].ty);
        let load = self.push(kind, from);
        match ty {
            Type::Bool => {
                let (op, value) = (self.operation(|kind| kind == BinaryKind::Comparison), self.random.value(from));
                ExprKind::Binary(op, load, self.push(ExprKind::Literal(value), from))
            }
            _ => ExprKind::Cast(load),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analyse;
    use crate::interpret::{Point, interpret};
    use crate::verify::{binary_result, unary_result};
    use std::collections::BTreeMap;

    fn kernels() -> impl Iterator<Item = Verified> {
        (0..300).map(|seed| kernel("sample", seed, Limits::default()))
    }

    #[test]
    fn a_seed_names_its_kernel() {
        for seed in 0..20 {
            assert_eq!(kernel("same", seed, Limits::default()), kernel("same", seed, Limits::default()));
        }
        assert_ne!(kernel("same", 1, Limits::default()), kernel("same", 2, Limits::default()));
    }

    #[test]
    fn limits_are_kept() {
        for seed in 0..200 {
            for limits in [
                Limits { reach: 0, expressions: 30, ..Limits::plain() },
                Limits { reach: 3, expressions: 200, vendor: true, ..Limits::default() },
            ] {
                let kernel = kernel("sample", seed, limits);
                // Once the limit is met, what was begun is completed by leaves.
                assert!(kernel.exprs.len() <= limits.expressions + 150, "{} expressions", kernel.exprs.len());
                let halos = analyse(&kernel).footprints.into_iter().flat_map(|footprint| footprint.halo());
                assert!(halos.flatten().all(|cells| cells <= limits.reach), "seed {seed}");
                assert!(limits.axes || kernel.fields.iter().all(Field::is_whole), "seed {seed}");
                assert!(limits.folds || kernel.outputs.iter().all(|output| !output.role.is_fold()), "seed {seed}");
            }
        }
    }

    /// A point somewhere: every cell and scalar is a random value.
    struct Somewhere<'k>(&'k Kernel, u64);

    impl Point for Somewhere<'_> {
        fn load(&self, field: Id<Field>, offset: Offset) -> Value {
            let cell = offset.0.iter().fold(field.index() as i64, |cell, along| 8 * cell + i64::from(*along));
            Random::new(self.1.wrapping_add_signed(cell << 32)).value(self.0.fields[field].ty)
        }

        fn param(&self, param: Id<Param>) -> Value {
            Random::new(self.1 ^ param.index() as u64).value(self.0.params[param].ty)
        }

        fn index(&self, axis: Axis) -> i32 {
            (self.1 / 7) as i32 % 50 + axis as i32
        }
    }

    /// How many of a few kernels give other results when each `right` on such types is a `wrong`.
    fn told_apart(right: Binary, wrong: Binary, on: fn(Type) -> bool) -> usize {
        let differs = |kernel: &Verified| {
            let mut broken = Kernel::clone(kernel);
            for id in broken.exprs.ids() {
                if let ExprKind::Binary(op, a, b) = broken.exprs[id].kind
                    && op == right
                    && on(broken.exprs[a].ty)
                {
                    broken.exprs[id].kind = ExprKind::Binary(wrong, a, b);
                }
            }
            let broken = verify(broken).expect("the types are the same");
            let results = |kernel: &Verified, point| {
                let results = interpret(kernel, &Somewhere(kernel, point)).into_iter().map(Value::bits);
                results.collect::<Vec<_>>()
            };
            (0..300).map(|point| point * 1000).any(|point| results(kernel, point) != results(&broken, point))
        };
        kernels().take(40).filter(differs).count()
    }

    #[test]
    fn a_few_kernels_tell_operations_apart() {
        use Binary::{Add, And, BitAnd, BitOr, BitXor, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Rem, Shl, Shr, Sub};
        let pairs = [(Add, Sub), (Sub, Add), (Mul, Add), (Div, Mul), (Rem, Div)].into_iter();
        let pairs = pairs.chain([(Lt, Le), (Le, Lt), (Gt, Ge), (Ge, Gt), (Eq, Ge), (Ne, Gt)]);
        let bits = [(BitAnd, BitOr), (BitOr, BitXor), (BitXor, BitOr), (Shl, Shr), (Shr, Shl), (Div, Rem), (Lt, Ge)];
        let cases = pairs.map(|(right, wrong)| (right, wrong, Type::is_number as fn(Type) -> bool));
        let cases = cases.chain(bits.map(|(right, wrong)| (right, wrong, Type::is_integer as fn(Type) -> bool)));
        let logic: fn(Type) -> bool = |ty| ty == Type::Bool;
        let cases = cases.chain([(And, Or, logic), (Or, And, logic), (BitXor, BitOr, logic), (BitAnd, BitOr, logic)]);
        let counts: Vec<_> = cases.map(|(right, wrong, on)| (right, wrong, told_apart(right, wrong, on))).collect();
        assert!(counts.iter().all(|(.., count)| *count > 1), "{counts:?}");
    }

    /// How often each construct occurs in many kernels.
    fn counts(vendor: bool) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        let mut count = |what: String| *counts.entry(what).or_insert(0) += 1;
        for kernel in (0..600).map(|seed| kernel("sample", seed, Limits { vendor, ..Limits::default() })) {
            kernel.fields.iter().for_each(|field| count(format!("field of {}", field.ty)));
            kernel.fields.iter().for_each(|field| count(field.type_name().replace(field.ty.name(), "_")));
            kernel.params.iter().for_each(|param| count(format!("param of {}", param.ty)));
            kernel.outputs.iter().for_each(|output| count(format!("output of {}", output.ty)));
            kernel.outputs.iter().for_each(|output| count(format!("{:?} of {}", output.role, output.ty)));
            for expr in kernel.exprs.iter() {
                let of = |id: &Id<Expr>| kernel.exprs[*id].ty;
                match &expr.kind {
                    ExprKind::Unary(op, _) => count(format!("{op:?} of {}", expr.ty)),
                    ExprKind::Binary(op, a, _) => count(format!("{op:?} of {}", of(a))),
                    ExprKind::Call(function, arguments) => count(format!("{function:?} of {}", of(&arguments[0]))),
                    ExprKind::Cast(a) => count(format!("{} as {}", of(a), expr.ty)),
                    ExprKind::Literal(Value::F64(value)) if value.is_subnormal() => count("subnormal".into()),
                    ExprKind::Literal(Value::F64(value)) if !value.is_finite() => count("unbounded".into()),
                    ExprKind::Literal(Value::F64(value)) if value.to_bits() == 1 << 63 => count("-0.0".into()),
                    ExprKind::Index(axis) => count(format!("index along {}", axis.name())),
                    ExprKind::Element { table, .. } => count(format!("element of {}", kernel.tables[*table].ty)),
                    ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) | ExprKind::Load { .. } => {}
                }
            }
            let deferred = kernel.body.iter().filter(|stmt| matches!(stmt, Stmt::Let { value: None, .. }));
            deferred.for_each(|_| count("deferred value".into()));
            let halos = analyse(&kernel).footprints.into_iter().flat_map(|footprint| footprint.halo());
            halos.filter(|[low, high]| low != high).for_each(|_| count("lopsided halo".into()));
        }
        counts
    }

    #[test]
    fn everything_comes_up() {
        let counts = counts(true);
        let check = |what: String, least: usize| {
            let count = counts.get(&what).copied().unwrap_or(0);
            assert!(count >= least, "{what} comes up {count} times");
        };
        for ty in Type::ALL {
            let name = ty.name();
            for kind in ["field", "param", "output", "element"] {
                check(format!("{kind} of {name}"), 5);
            }
            for op in Binary::ALL.into_iter().filter(|op| binary_result(*op, ty).is_some()) {
                check(format!("{op:?} of {name}"), 5);
            }
            for op in [Unary::Neg, Unary::Not].into_iter().filter(|op| unary_result(*op, ty).is_some()) {
                check(format!("{op:?} of {name}"), 5);
            }
            for function in Function::ALL.into_iter().filter(|function| function.result(ty).is_some()) {
                check(format!("{function:?} of {name}"), 2);
            }
            for role in Role::FOLDS.into_iter().filter(|_| ty.is_number()) {
                check(format!("{role:?} of {name}"), 2);
            }
            for to in Type::ALL.into_iter().filter(|to| to.is_number()) {
                check(format!("{name} as {to}"), 2);
            }
        }
        Field::TYPES.into_iter().for_each(|(name, _)| check(format!("{name}<_>"), 20));
        Axis::ALL.into_iter().for_each(|axis| check(format!("index along {}", axis.name()), 50));
        ["subnormal", "unbounded", "-0.0"].into_iter().for_each(|what| check(what.into(), 5));
        ["deferred value", "lopsided halo"].into_iter().for_each(|what| check(what.into(), 50));
    }

    #[test]
    fn without_being_asked_for_nothing_differs_from_vendor_to_vendor() {
        let all: Vec<_> = kernels().map(|kernel| analyse(&kernel)).collect();
        assert!(all.iter().all(|facts| facts.vendor_functions.is_empty()));
        assert!(all.iter().any(|facts| facts.uses_index) && !all.iter().all(|facts| facts.uses_index));
    }
}
