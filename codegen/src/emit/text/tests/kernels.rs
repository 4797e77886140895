//! Kernels made by hand.

use crate::ir::{
    Binary, BinaryKind, Expr, ExprKind, Field, Function, Id, Kernel, Local, Offset, Output, Param, Place, Role, Stmt,
    Type, Value,
};
use crate::verify::{Verified, verify};

/// Builds expressions with little ceremony.
#[derive(Default)]
pub(super) struct Build(pub(super) Kernel);

impl Build {
    pub(super) fn named(name: &str) -> Self {
        Build(Kernel { name: name.into(), file: format!("{name}.rs"), ..Kernel::default() })
    }

    pub(super) fn field(&mut self, name: &str, ty: Type) -> Id<Field> {
        self.0.fields.push(Field { name: name.into(), ty, axes: [true; 3], place: at(6) })
    }

    pub(super) fn param(&mut self, name: &str, ty: Type) -> Id<Param> {
        self.0.params.push(Param { name: name.into(), ty, place: at(6) })
    }

    pub(super) fn output(&mut self, ty: Type) -> Id<Output> {
        self.0.outputs.push(Output { ty, role: Role::Value })
    }

    pub(super) fn expr(&mut self, kind: ExprKind, ty: Type) -> Id<Expr> {
        self.0.exprs.push(Expr { kind, ty, place: at(7) })
    }

    pub(super) fn load(&mut self, field: Id<Field>, offset: [i32; 3]) -> Id<Expr> {
        let ty = self.0.fields[field].ty;
        self.expr(ExprKind::Load { field, offset: Offset(offset) }, ty)
    }

    pub(super) fn literal(&mut self, value: Value) -> Id<Expr> {
        self.expr(ExprKind::Literal(value), value.ty())
    }

    pub(super) fn read(&mut self, local: Id<Local>) -> Id<Expr> {
        let ty = self.0.locals[local].ty;
        self.expr(ExprKind::Local(local), ty)
    }

    pub(super) fn binary(&mut self, op: Binary, a: Id<Expr>, b: Id<Expr>) -> Id<Expr> {
        let ty = match op.kind() {
            BinaryKind::Arithmetic | BinaryKind::Bitwise | BinaryKind::Shift => self.0.exprs[a].ty,
            BinaryKind::Comparison | BinaryKind::Logic => Type::Bool,
        };
        self.expr(ExprKind::Binary(op, a, b), ty)
    }

    pub(super) fn call(&mut self, function: Function, arguments: Vec<Id<Expr>>) -> Id<Expr> {
        let ty = function.result(self.0.exprs[arguments[0]].ty).expect("the function takes such arguments");
        self.expr(ExprKind::Call(function, arguments), ty)
    }

    pub(super) fn cast(&mut self, value: Id<Expr>, to: Type) -> Id<Expr> {
        self.expr(ExprKind::Cast(value), to)
    }

    /// One more result, stored in the order of the calls.
    pub(super) fn result(&mut self, value: Id<Expr>) {
        let output = self.output(self.0.exprs[value].ty);
        self.0.body.push(Stmt::Store { output, value, place: at(9) });
    }

    /// One more result, which is folded.
    pub(super) fn folded(&mut self, value: Id<Expr>, role: Role) {
        let output = self.0.outputs.push(Output { ty: self.0.exprs[value].ty, role });
        self.0.body.push(Stmt::Store { output, value, place: at(9) });
    }

    pub(super) fn local(&mut self, name: &str, ty: Type, mutable: bool, note: Option<&str>) -> Id<Local> {
        self.0.locals.push(Local { name: name.into(), ty, mutable, note: note.map(String::from) })
    }

    pub(super) fn verified(self) -> Verified {
        verify(self.0).expect("the test's kernel is sound")
    }
}

pub(super) fn at(line: u32) -> Place {
    Place { line, ..Place::default() }
}

/// The heat kernel of the design page.
pub(super) fn heat() -> Verified {
    let mut build = Build::named("heat");
    let [u, f, kappa] = ["u", "f", "κ"].map(|name| build.field(name, Type::F64));
    let beta = build.param("beta", Type::F64);
    let output = build.output(Type::F64);
    let sides = [
        ("X", [1, 0, 0]),
        ("-X", [-1, 0, 0]),
        ("Y", [0, 1, 0]),
        ("-Y", [0, -1, 0]),
        ("Z", [0, 0, 1]),
        ("-Z", [0, 0, -1]),
    ];
    let mut sum = None;
    for (side, offset) in sides {
        let (there, here) = (build.load(kappa, offset), build.load(kappa, [0; 3]));
        let conductivity = build.binary(Binary::Add, there, here);
        let (there, here) = (build.load(u, offset), build.load(u, [0; 3]));
        let difference = build.binary(Binary::Sub, there, here);
        let value = build.binary(Binary::Mul, conductivity, difference);
        let local = build.local("flux", Type::F64, false, Some(&format!("flux({side})")));
        build.0.body.push(Stmt::Let { local, value: Some(value), place: at(8) });
        let flux = build.read(local);
        sum = Some(sum.map_or(flux, |sum| build.binary(Binary::Add, sum, flux)));
    }
    let beta = build.expr(ExprKind::Param(beta), Type::F64);
    let change = build.binary(Binary::Mul, beta, sum.expect("there are six sides"));
    let (u, f) = (build.load(u, [0; 3]), build.load(f, [0; 3]));
    let start = build.binary(Binary::Add, u, f);
    let value = build.binary(Binary::Add, start, change);
    build.0.body.push(Stmt::Store { output, value, place: at(9) });
    build.verified()
}

/// The mean of a point and its 26 neighbours.
pub(super) fn average() -> Verified {
    let mut build = Build::named("average");
    let u = build.field("u", Type::F64);
    let output = build.output(Type::F64);
    let mut sum = None;
    for z in -1..=1 {
        for y in -1..=1 {
            for x in -1..=1 {
                let value = build.load(u, [x, y, z]);
                sum = Some(sum.map_or(value, |sum| build.binary(Binary::Add, sum, value)));
            }
        }
    }
    let count = build.literal(Value::F64(27.0));
    let value = build.binary(Binary::Div, sum.expect("there are 27 points"), count);
    build.0.body.push(Stmt::Store { output, value, place: at(9) });
    build.verified()
}
