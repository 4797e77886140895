//! Random small kernels over the whole intermediate form, and values to run them on: the same for the same seed.
//!
//! For tests, behind the feature `random`. What `ALL` lists hold comes up by itself; a new kind of type, expression or
//! statement needs an arm here, and is then tested on every target.

use crate::ir::{
    Binary, BinaryKind, Expr, ExprKind, Field, Function, Id, Kernel, Local, Offset, Output, Param, Place, Role, Stmt,
    Type, Unary, Value,
};
use crate::verify::{Verified, verify};

/// A source of numbers without a pattern (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Numbers that show a slip where ordinary ones don't: both zeros, one, the ends of the subnormal and the normal range.
const SPECIAL_F64: [f64; 12] =
    [0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, f64::MIN_POSITIVE, f64::EPSILON, 1e200, -1e300, f64::MAX, 0.1];
const SPECIAL_F32: [f32; 12] =
    [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-40, f32::MIN_POSITIVE, f32::EPSILON, 1e25, -1e37, f32::MAX, 0.1];

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
    /// one at the end of a range, rarely one without bounds or none at all.
    pub fn value(&mut self, ty: Type) -> Value {
        match (ty, self.below(120)) {
            (Type::Bool, kind) => Value::Bool(kind % 2 == 0),
            (Type::F64, 0..=2) => Value::F64(self.pick(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN])),
            (Type::F32, 0..=2) => Value::F32(self.pick(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN])),
            (Type::F64, 3) => Value::F64(f64::from_bits(self.bits())),
            (Type::F32, 3) => Value::F32(f32::from_bits(self.bits() as u32)),
            (Type::F64, 4..=9) => Value::F64(self.pick(&SPECIAL_F64)),
            (Type::F32, 4..=9) => Value::F32(self.pick(&SPECIAL_F32)),
            (Type::F64, 10..=39) => Value::F64(self.whole()),
            (Type::F32, 10..=39) => Value::F32(self.whole() as f32),
            (Type::F64, _) => Value::F64(self.ordinary()),
            (Type::F32, _) => Value::F32(self.ordinary() as f32),
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
}

impl Default for Limits {
    /// Two cells, and what compiles in a moment.
    fn default() -> Self {
        Limits { reach: 2, expressions: 120 }
    }
}

/// The kernel of a seed.
pub fn kernel(name: &str, seed: u64, limits: Limits) -> Verified {
    let mut draft = Draft {
        random: Random::new(seed),
        kernel: Kernel { name: name.into(), file: "random.rs".into(), ..Kernel::default() },
        floats: Vec::new(),
        reaches: Vec::new(),
        left: limits.expressions,
        line: 10,
        readable: Vec::new(),
        unread: Vec::new(),
    };
    draft.signature(limits.reach);
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
    floats: Vec<Type>,
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
    fn signature(&mut self, reach: u32) {
        let place = Place { line: 1, ..Place::default() };
        let reach = i32::try_from(reach).expect("a few cells");
        // Some kernels know a single width, as most of a user's do.
        self.floats = match self.random.below(4) {
            0 => vec![Type::F64],
            1 => vec![Type::F32],
            _ => vec![Type::F64, Type::F32],
        };
        let mut names = PARAMETERS.to_vec();
        let mut name = |random: &mut Random| names.swap_remove(random.below(names.len())).to_owned();
        for _ in 0..1 + self.random.below(4) {
            let ty = self.float();
            self.kernel.fields.push(Field { name: name(&mut self.random), ty, place });
            let sides = [[-reach, reach], [-reach, reach], [-reach, 0], [0, reach], [-1.min(reach), 0], [0, 0]];
            self.reaches.push([(); 3].map(|()| self.random.pick(&sides)));
        }
        for _ in 0..self.random.below(5) {
            let ty = self.ty();
            self.kernel.params.push(Param { name: name(&mut self.random), ty, place });
        }
        for _ in 0..1 + self.random.below(3) {
            let ty = self.float();
            self.kernel.outputs.push(Output { ty, role: Role::Value });
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
        let value = if ty.is_float() { self.value(ty, 3) } else { self.condition() };
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

    /// A number that depends on some locals that were not read before.
    fn value(&mut self, ty: Type, depth: usize) -> Id<Expr> {
        let mut value = self.expr(ty, depth);
        for _ in 0..3 {
            let Some(mut local) = self.unread(Type::is_float) else { break };
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

    fn float(&mut self) -> Type {
        self.random.pick(&self.floats)
    }

    fn ty(&mut self) -> Type {
        match self.random.below(self.floats.len() + 1) {
            0 => Type::Bool,
            _ => self.float(),
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
        let kind = match ty {
            Type::Bool => self.truth(depth - 1),
            Type::F64 | Type::F32 => self.number(ty, depth - 1),
        };
        self.push(kind, ty)
    }

    fn number(&mut self, ty: Type, depth: usize) -> ExprKind {
        match self.random.below(10) {
            0 => ExprKind::Unary(Unary::Neg, self.expr(ty, depth)),
            1 | 2 => {
                let function = self.random.pick(&Function::ALL);
                ExprKind::Call(function, (0..function.arity()).map(|_| self.argument(function, ty, depth)).collect())
            }
            3 => {
                let from = self.float();
                ExprKind::Cast(self.expr(from, depth))
            }
            _ => {
                let op = self.operation(|kind| kind == BinaryKind::Arithmetic);
                self.pair(op, ty, depth)
            }
        }
    }

    fn argument(&mut self, function: Function, ty: Type, depth: usize) -> Id<Expr> {
        let argument = self.expr(ty, depth);
        match function {
            // Half of all roots would not be numbers, and hide whatever is round them.
            Function::Sqrt if !self.random.once_in(8) => self.push(ExprKind::Call(Function::Abs, vec![argument]), ty),
            Function::Sqrt | Function::Abs | Function::MulAdd => argument,
        }
    }

    fn truth(&mut self, depth: usize) -> ExprKind {
        if self.random.once_in(6) {
            return ExprKind::Unary(Unary::Not, self.expr(Type::Bool, depth));
        }
        let op = self.operation(|kind| kind != BinaryKind::Arithmetic);
        // What is computed is seldom equal to anything.
        let depth = if op.kind() == BinaryKind::Comparison { self.random.below(depth + 1) } else { depth };
        let ty = match op {
            Binary::And | Binary::Or => Type::Bool,
            Binary::Eq | Binary::Ne => self.ty(),
            _ => self.float(),
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
            let reach = self.reaches[field.index()];
            let offset = Offset(reach.map(|[near, far]| near + self.random.below((far - near) as usize + 1) as i32));
            kinds.extend([offset, Offset::HERE].map(|offset| ExprKind::Load { field, offset }));
        }
        // Constants alone would say little about the point.
        let kind = match ty {
            _ if self.random.once_in(6) => ExprKind::Literal(self.random.value(ty)),
            _ if !kinds.is_empty() => kinds.swap_remove(self.random.below(kinds.len())),
            Type::Bool => {
                let (op, ty) = (self.operation(|kind| kind == BinaryKind::Comparison), self.float());
                ExprKind::Binary(op, self.leaf(ty), self.leaf(ty))
            }
            Type::F64 => ExprKind::Cast(self.leaf(Type::F32)),
            Type::F32 => ExprKind::Cast(self.leaf(Type::F64)),
        };
        self.push(kind, ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analyse;
    use crate::interpret::{Point, interpret};

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
            for limits in [Limits { reach: 0, expressions: 30 }, Limits { reach: 3, expressions: 200 }] {
                let kernel = kernel("sample", seed, limits);
                // Once the limit is met, what was begun is completed by leaves.
                assert!(kernel.exprs.len() <= limits.expressions + 150, "{} expressions", kernel.exprs.len());
                let halos = analyse(&kernel).footprints.into_iter().flat_map(|footprint| footprint.halo());
                assert!(halos.flatten().all(|cells| cells <= limits.reach), "seed {seed}");
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
    }

    /// How many of a few kernels give other results when each `right` is a `wrong`.
    fn told_apart(right: Binary, wrong: Binary) -> usize {
        let differs = |kernel: &Verified| {
            let mut broken = Kernel::clone(kernel);
            for id in broken.exprs.ids() {
                if let ExprKind::Binary(op, a, b) = broken.exprs[id].kind
                    && op == right
                    && (wrong.kind() == op.kind() && broken.exprs[a].ty != Type::Bool || op.kind() == BinaryKind::Logic)
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
        kernels().take(20).filter(differs).count()
    }

    #[test]
    fn a_few_kernels_tell_operations_apart() {
        use Binary::{Add, And, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Sub};
        let pairs = [(Add, Sub), (Sub, Add), (Mul, Add), (Div, Mul), (And, Or), (Or, And)].into_iter();
        let pairs = pairs.chain([(Lt, Le), (Le, Lt), (Gt, Ge), (Ge, Gt), (Eq, Ge), (Ne, Gt)]);
        let counts: Vec<_> = pairs.map(|(right, wrong)| (right, wrong, told_apart(right, wrong))).collect();
        assert!(counts.iter().all(|(.., count)| *count > 1), "{counts:?}");
    }

    #[test]
    fn everything_comes_up() {
        let mut ops = [0; Binary::ALL.len()];
        let mut functions = [0; Function::ALL.len()];
        let (mut casts, mut deferred, mut lopsided, mut subnormal, mut unbounded, mut minus_zero) = (0, 0, 0, 0, 0, 0);
        for kernel in kernels() {
            for expr in kernel.exprs.iter() {
                match &expr.kind {
                    ExprKind::Binary(op, ..) => ops[Binary::ALL.iter().position(|one| one == op).expect("all")] += 1,
                    ExprKind::Call(function, _) => {
                        functions[Function::ALL.iter().position(|one| one == function).expect("all")] += 1;
                    }
                    ExprKind::Cast(a) => casts += usize::from(kernel.exprs[*a].ty != expr.ty),
                    ExprKind::Literal(Value::F64(value)) => {
                        subnormal += usize::from(value.is_subnormal());
                        unbounded += usize::from(!value.is_finite());
                        minus_zero += usize::from(value.to_bits() == (-0.0_f64).to_bits());
                    }
                    ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) | ExprKind::Load { .. } => {}
                    ExprKind::Unary(..) => {}
                }
            }
            deferred += kernel.body.iter().filter(|stmt| matches!(stmt, Stmt::Let { value: None, .. })).count();
            let halos = analyse(&kernel).footprints.into_iter().flat_map(|footprint| footprint.halo());
            lopsided += halos.filter(|[low, high]| low != high).count();
        }
        for count in ops.iter().chain(&functions).chain(&[casts, deferred, lopsided]) {
            assert!(*count > 50, "{ops:?} {functions:?} {casts} {deferred} {lopsided}");
        }
        assert!(
            [subnormal, unbounded, minus_zero].iter().all(|count| *count > 5),
            "{subnormal} {unbounded} {minus_zero}"
        );
    }
}
