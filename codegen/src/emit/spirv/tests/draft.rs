//! Kernels for the tests, built by hand.

use crate::ir::{
    Binary, BinaryKind, Expr, ExprKind, Field, Function, Id, Kernel, Local, Offset, Output, Param, Place, Role, Stmt,
    Type, Value,
};
use crate::verify::{Verified, verify};

/// A kernel under construction; each expression is on a line of its own unless `line` stays.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) kernel: Kernel,
    line: u32,
}

impl Draft {
    pub(super) fn new(name: &str) -> Draft {
        let kernel = Kernel { name: name.into(), file: "heat.rs".into(), ..Kernel::default() };
        Draft { kernel, line: 1 }
    }

    pub(super) fn place(&self) -> Place {
        Place { line: self.line, ..Place::default() }
    }

    pub(super) fn field(&mut self, name: &str, ty: Type) -> Id<Field> {
        let place = self.place();
        self.kernel.fields.push(Field { name: name.into(), ty, axes: [true; 3], place })
    }

    pub(super) fn param(&mut self, name: &str, ty: Type) -> Id<Expr> {
        let place = self.place();
        let param = self.kernel.params.push(Param { name: name.into(), ty, place });
        self.expr(ExprKind::Param(param), ty)
    }

    pub(super) fn local(&mut self, name: &str, ty: Type, mutable: bool) -> Id<Local> {
        self.kernel.locals.push(Local { name: name.into(), ty, mutable, note: None })
    }

    pub(super) fn output(&mut self, ty: Type) -> Id<Output> {
        self.kernel.outputs.push(Output { ty, role: Role::Value })
    }

    pub(super) fn expr(&mut self, kind: ExprKind, ty: Type) -> Id<Expr> {
        let place = self.place();
        self.kernel.exprs.push(Expr { kind, ty, place })
    }

    pub(super) fn literal(&mut self, value: Value) -> Id<Expr> {
        self.expr(ExprKind::Literal(value), value.ty())
    }

    pub(super) fn load(&mut self, field: Id<Field>, offset: [i32; 3]) -> Id<Expr> {
        let ty = self.kernel.fields[field].ty;
        self.expr(ExprKind::Load { field, offset: Offset(offset) }, ty)
    }

    pub(super) fn binary(&mut self, op: Binary, a: Id<Expr>, b: Id<Expr>) -> Id<Expr> {
        let ty = match op.kind() {
            BinaryKind::Arithmetic | BinaryKind::Bitwise | BinaryKind::Shift => self.kernel.exprs[a].ty,
            BinaryKind::Comparison | BinaryKind::Logic => Type::Bool,
        };
        self.expr(ExprKind::Binary(op, a, b), ty)
    }

    pub(super) fn call(&mut self, function: Function, arguments: &[Id<Expr>]) -> Id<Expr> {
        let ty = function.result(self.kernel.exprs[arguments[0]].ty).expect("the function takes them");
        self.expr(ExprKind::Call(function, arguments.to_vec()), ty)
    }

    pub(super) fn bind(&mut self, local: Id<Local>, value: Id<Expr>) -> Stmt {
        Stmt::Let { local, value: Some(value), place: self.place() }
    }

    pub(super) fn store(&mut self, output: Id<Output>, value: Id<Expr>) -> Stmt {
        Stmt::Store { output, value, place: self.place() }
    }

    pub(super) fn verified(self) -> Verified {
        verify(self.kernel).expect("the kernel is sound")
    }
}

/// The heat equation: u + f + beta * (the fluxes through six faces), each flux a local of its own.
pub(super) fn heat(ty: Type) -> Draft {
    let mut draft = Draft::new("heat");
    let [u, f, kappa] = ["u", "f", "kappa"].map(|name| draft.field(name, ty));
    let beta = draft.param("beta", ty);
    let out = draft.output(ty);
    let mut sum = None;
    for (name, d) in [
        ("flux_X", [1, 0, 0]),
        ("flux_mX", [-1, 0, 0]),
        ("flux_Y", [0, 1, 0]),
        ("flux_mY", [0, -1, 0]),
        ("flux_Z", [0, 0, 1]),
        ("flux_mZ", [0, 0, -1]),
    ] {
        draft.line = 4;
        let [there, here] = [d, [0; 3]].map(|offset| draft.load(kappa, offset));
        let face = draft.binary(Binary::Add, there, here);
        let [there, here] = [d, [0; 3]].map(|offset| draft.load(u, offset));
        let slope = draft.binary(Binary::Sub, there, here);
        let flux = draft.binary(Binary::Mul, face, slope);
        draft.line = 5;
        let local = draft.local(name, ty, false);
        let bind = draft.bind(local, flux);
        draft.kernel.body.push(bind);
        let flux = draft.expr(ExprKind::Local(local), ty);
        sum = Some(match sum {
            None => flux,
            Some(sum) => draft.binary(Binary::Add, sum, flux),
        });
    }
    let [u, f] = [u, f].map(|field| draft.load(field, [0; 3]));
    let old = draft.binary(Binary::Add, u, f);
    let change = draft.binary(Binary::Mul, beta, sum.expect("six fluxes"));
    let new = draft.binary(Binary::Add, old, change);
    let store = draft.store(out, new);
    draft.kernel.body.push(store);
    draft
}

/// `out = value`, with one field of each of `types` to build the value from.
pub(super) fn single(types: &[Type], value: impl FnOnce(&mut Draft, &[Id<Expr>]) -> Id<Expr>) -> Verified {
    let mut draft = Draft::new("single");
    let loads: Vec<Id<Expr>> = types
        .iter()
        .zip('a'..)
        .map(|(ty, name)| {
            let field = draft.field(&name.to_string(), *ty);
            draft.load(field, [0; 3])
        })
        .collect();
    let value = value(&mut draft, &loads);
    let out = draft.output(draft.kernel.exprs[value].ty);
    let store = draft.store(out, value);
    draft.kernel.body.push(store);
    draft.verified()
}
