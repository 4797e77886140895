//! Proves a kernel well formed: ids in range, types right, locals assigned before they are read, every output stored
//! exactly once on every path. Emitters take [`Verified`] and so have nothing left to refuse.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::ir::{
    Arena, Binary, BinaryKind, Expr, ExprKind, Family, Field, Id, Kernel, Local, Offset, Output, Place, Role, Stmt,
    Type, Unary,
};

/// The largest displacement along an axis that a kernel may read.
pub const MAX_OFFSET: i32 = 64;
/// The largest number of fields that a kernel may read.
pub const MAX_FIELDS: usize = 64;

/// A kernel that [`verify`] found well formed.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified(Kernel);

impl std::ops::Deref for Verified {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

impl Verified {
    /// Sets [`Kernel::file`], which only comments show.
    pub fn name_file(&mut self, file: &str) {
        self.0.file = file.to_owned();
    }
}

/// Checks `kernel`; all that is wrong with it is reported at once.
pub fn verify(kernel: Kernel) -> Result<Verified, Vec<Diagnostic>> {
    let mut checker = Checker { kernel: &kernel, wrong: Vec::new(), visited: vec![0; kernel.exprs.len()], turn: 0 };
    checker.kernel();
    match checker.wrong {
        wrong if wrong.is_empty() => Ok(Verified(kernel)),
        wrong => Err(wrong),
    }
}

/// What is certain at a point of the program.
#[derive(Clone, Default)]
struct Known {
    /// Locals declared in an enclosing block.
    declared: BTreeSet<Id<Local>>,
    /// Locals that have a value on every path.
    assigned: BTreeSet<Id<Local>>,
    /// Outputs stored on every path.
    stored: BTreeSet<Id<Output>>,
}

struct Checker<'k> {
    kernel: &'k Kernel,
    wrong: Vec<Diagnostic>,
    /// By expression: the last turn in which [`Checker::value`] came by.
    visited: Vec<u32>,
    turn: u32,
}

impl Checker<'_> {
    fn refuse(&mut self, place: Place, message: impl Into<String>) {
        self.wrong.push(Diagnostic::new(place, message));
    }

    fn kernel(&mut self) {
        let kernel = self.kernel;
        let head = kernel.fields.iter().next().map_or(Place::default(), |field| field.place);
        if kernel.outputs.is_empty() {
            self.refuse(head, "the kernel has no result");
        }
        if kernel.fields.len() > MAX_FIELDS {
            let message = format!("the kernel reads {} fields; at most {MAX_FIELDS} are possible", kernel.fields.len());
            self.refuse(head, message);
        }
        for field in kernel.fields.iter().filter(|field| field.axes == [false; 3]) {
            let message = format!("field `{}` extends along no axis; it should be a scalar", field.name);
            self.refuse(field.place, message);
        }
        for (id, output) in kernel.outputs.enumerate() {
            match output.role {
                Role::Value => {}
                Role::Sum | Role::Max | Role::Min if output.ty.is_number() => {}
                Role::Sum | Role::Max | Role::Min => {
                    self.refuse(head, format!("result {} is a fold of {}, which is no number", id.index(), output.ty));
                }
            }
        }
        for table in kernel.tables.iter() {
            if table.values.is_empty() {
                self.refuse(head, format!("table `{}` is empty", table.name));
            }
            if table.values.iter().any(|value| value.ty() != table.ty) {
                self.refuse(head, format!("table `{}` is {}, one of its values is not", table.name, table.ty));
            }
        }
        for (id, expr) in kernel.exprs.enumerate() {
            self.expr(id, expr);
        }
        if !self.wrong.is_empty() {
            return; // The walk below follows ids, which must be sound.
        }
        let mut known = Known::default();
        self.block(&kernel.body, &mut known);
        for output in kernel.outputs.ids() {
            if !known.stored.contains(&output) {
                self.refuse(head, format!("result {} is not stored on every path", output.index()));
            }
        }
    }

    /// Types and ids of one expression; operands come before the expressions that use them.
    fn expr(&mut self, id: Id<Expr>, expr: &Expr) {
        let kernel = self.kernel;
        let operands = operands(&expr.kind);
        if let Some(late) = operands.iter().find(|operand| operand.index() >= id.index()) {
            return self.refuse(expr.place, format!("expression {id:?} uses {late:?}, which comes after it"));
        }
        let types: Vec<Type> = operands.iter().map(|operand| kernel.exprs[*operand].ty).collect();
        let right = match &expr.kind {
            ExprKind::Literal(value) => value.ty() == expr.ty,
            ExprKind::Param(param) => has_type(&kernel.params, *param, |param| param.ty, expr.ty),
            ExprKind::Local(local) => has_type(&kernel.locals, *local, |local| local.ty, expr.ty),
            ExprKind::Load { field, offset } => {
                self.offset(expr.place, *field, *offset);
                has_type(&kernel.fields, *field, |field| field.ty, expr.ty)
            }
            ExprKind::Unary(op, _) => unary_result(*op, types[0]) == Some(expr.ty),
            ExprKind::Binary(op, ..) => types[0] == types[1] && binary_result(*op, types[0]) == Some(expr.ty),
            ExprKind::Call(function, _) => {
                types.len() == function.arity()
                    && types.iter().all(|ty| *ty == types[0])
                    && function.result(types[0]) == Some(expr.ty)
            }
            ExprKind::Cast(_) => expr.ty.is_number(),
            ExprKind::Index(_) => expr.ty == Type::I32,
            ExprKind::Element { table, .. } => {
                types[0] == Type::U64 && has_type(&kernel.tables, *table, |table| table.ty, expr.ty)
            }
        };
        if !right {
            self.refuse(expr.place, format!("expression {id:?} ({:?}) of {types:?} can't be {}", expr.kind, expr.ty));
        }
    }

    fn offset(&mut self, place: Place, field: Id<Field>, offset: Offset) {
        if let Some(field) = self.kernel.fields.get(field)
            && let Some(axis) = field.leaves(offset)
        {
            let (name, ty, axis) = (&field.name, field.type_name(), axis.name());
            self.refuse(place, format!("`{name}` is read at {offset}, but a `{ty}` does not extend along {axis}"));
        }
        if offset.0.iter().any(|cells| cells.abs() > MAX_OFFSET) {
            self.refuse(place, format!("offset {offset} is farther than {MAX_OFFSET} cells"));
        }
    }

    fn block(&mut self, block: &[Stmt], known: &mut Known) {
        for stmt in block {
            self.stmt(stmt, known);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, known: &mut Known) {
        let kernel = self.kernel;
        match stmt {
            Stmt::Let { local, value, place } => {
                if let Some(value) = value {
                    self.value(*value, known);
                    known.assigned.insert(*local);
                }
                if !known.declared.insert(*local) {
                    self.refuse(*place, format!("local {local:?} is declared twice"));
                }
                match (kernel.locals.get(*local), value) {
                    (None, _) => self.refuse(*place, format!("there is no local {local:?}")),
                    (Some(local), Some(value)) if local.ty != kernel.exprs[*value].ty => {
                        self.refuse(*place, format!("local `{}` is {}, its value is not", local.name, local.ty));
                    }
                    (Some(_), _) => {}
                }
            }
            Stmt::Assign { local, value, place } => {
                self.value(*value, known);
                if !known.declared.contains(local) {
                    return self.refuse(*place, format!("local {local:?} is assigned before its declaration"));
                }
                let target = &kernel.locals[*local];
                if known.assigned.contains(local) && !target.mutable {
                    self.refuse(*place, format!("local `{}` is assigned again and not mutable", target.name));
                }
                if target.ty != kernel.exprs[*value].ty {
                    self.refuse(*place, format!("local `{}` is {}, its value is not", target.name, target.ty));
                }
                known.assigned.insert(*local);
            }
            Stmt::If { condition, then, otherwise, place } => {
                self.value(*condition, known);
                if kernel.exprs[*condition].ty != Type::Bool {
                    self.refuse(*place, "the condition is not a truth value");
                }
                let (mut yes, mut no) = (known.clone(), known.clone());
                self.block(then, &mut yes);
                self.block(otherwise, &mut no);
                if yes.stored != no.stored {
                    self.refuse(*place, "one branch stores a result that the other does not");
                }
                known.stored = yes.stored;
                known
                    .assigned
                    .extend(yes.assigned.intersection(&no.assigned).filter(|id| known.declared.contains(*id)));
            }
            Stmt::Store { output, value, place } => {
                self.value(*value, known);
                match kernel.outputs.get(*output) {
                    None => self.refuse(*place, format!("there is no result {output:?}")),
                    Some(target) if target.ty != kernel.exprs[*value].ty => {
                        self.refuse(*place, format!("result {} is {}, its value is not", output.index(), target.ty));
                    }
                    Some(_) => {}
                }
                if !known.stored.insert(*output) {
                    self.refuse(*place, format!("result {} is stored twice", output.index()));
                }
            }
        }
    }

    /// All locals that a value reads must have been assigned. Each expression is visited once, however often it is used.
    fn value(&mut self, value: Id<Expr>, known: &Known) {
        let kernel = self.kernel;
        self.turn += 1;
        let mut open = vec![value];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut self.visited[id.index()], self.turn) == self.turn {
                continue;
            }
            let expr = &kernel.exprs[id];
            if let ExprKind::Local(local) = expr.kind
                && !known.assigned.contains(&local)
            {
                self.refuse(expr.place, format!("local `{}` is read before it has a value", kernel.locals[local].name));
            }
            open.extend(operands(&expr.kind));
        }
    }
}

/// The type of `op` on a value of type `ty`, if it is defined.
pub(crate) fn unary_result(op: Unary, ty: Type) -> Option<Type> {
    match (op, ty.family()) {
        (Unary::Neg, Family::Float | Family::Signed) => Some(ty),
        (Unary::Not, Family::Bool | Family::Signed | Family::Unsigned) => Some(ty),
        (Unary::Neg, Family::Bool | Family::Unsigned) | (Unary::Not, Family::Float) => None,
    }
}

/// The type of `op` on two values of type `ty`, if it is defined.
pub(crate) fn binary_result(op: Binary, ty: Type) -> Option<Type> {
    let equality = matches!(op, Binary::Eq | Binary::Ne);
    match op.kind() {
        BinaryKind::Arithmetic => ty.is_number().then_some(ty),
        BinaryKind::Bitwise => (!ty.is_float()).then_some(ty),
        BinaryKind::Shift => ty.is_integer().then_some(ty),
        BinaryKind::Comparison => (ty.is_number() || equality).then_some(Type::Bool),
        BinaryKind::Logic => (ty == Type::Bool).then_some(Type::Bool),
    }
}

fn has_type<T>(arena: &Arena<T>, id: Id<T>, ty: impl Fn(&T) -> Type, wanted: Type) -> bool {
    arena.get(id).is_some_and(|item| ty(item) == wanted)
}

/// Whether `kind` computes or reads anything; names and literals are there already.
pub(crate) fn is_operation(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) => false,
        ExprKind::Load { .. } | ExprKind::Index(_) | ExprKind::Element { .. } => true,
        ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::Cast(_) | ExprKind::Call(..) => true,
    }
}

/// The expressions that `kind` uses, in order.
pub fn operands(kind: &ExprKind) -> Vec<Id<Expr>> {
    match kind {
        ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) => Vec::new(),
        ExprKind::Load { .. } | ExprKind::Index(_) => Vec::new(),
        ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Element { index: a, .. } => vec![*a],
        ExprKind::Binary(_, a, b) => vec![*a, *b],
        ExprKind::Call(_, arguments) => arguments.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Axis, Function, Table, Value};

    fn expr(kernel: &mut Kernel, kind: ExprKind, ty: Type) -> Id<Expr> {
        kernel.exprs.push(Expr { kind, ty, place: Place::default() })
    }

    /// `u[HERE] + 1.0`, not stored yet, and the id of the sum.
    fn sum() -> (Kernel, Id<Expr>) {
        let mut kernel = Kernel { name: "sum".into(), ..Kernel::default() };
        let field =
            kernel.fields.push(Field { name: "u".into(), ty: Type::F64, axes: [true; 3], place: Place::default() });
        kernel.outputs.push(Output { ty: Type::F64, role: Role::Value });
        let load = expr(&mut kernel, ExprKind::Load { field, offset: Offset::HERE }, Type::F64);
        let one = expr(&mut kernel, ExprKind::Literal(Value::F64(1.0)), Type::F64);
        let sum = expr(&mut kernel, ExprKind::Binary(Binary::Add, load, one), Type::F64);
        (kernel, sum)
    }

    fn store(value: Id<Expr>) -> Stmt {
        Stmt::Store { output: Id::new(0), value, place: Place::default() }
    }

    fn check(kernel: Kernel, expected: &str) {
        let wrong = verify(kernel).expect_err("this kernel is wrong");
        assert!(wrong.iter().any(|wrong| wrong.message.contains(expected)), "{wrong:?} lacks {expected:?}");
    }

    #[test]
    fn a_sound_kernel_passes() {
        let (mut kernel, sum) = sum();
        kernel.body.push(store(sum));
        assert!(verify(kernel).is_ok());
    }

    #[test]
    fn each_output_is_stored_exactly_once() {
        let (kernel, _) = sum();
        check(kernel, "not stored on every path");
        let (mut kernel, sum) = sum();
        kernel.body.extend([store(sum), store(sum)]);
        check(kernel, "stored twice");
    }

    #[test]
    fn both_branches_store_alike() {
        let (mut kernel, value) = sum();
        let condition = expr(&mut kernel, ExprKind::Literal(Value::Bool(true)), Type::Bool);
        let place = Place::default();
        kernel.body.push(Stmt::If { condition, then: vec![store(value)], otherwise: vec![], place });
        check(kernel, "one branch stores");
    }

    #[test]
    fn a_local_has_a_value_before_it_is_read() {
        let (mut kernel, _) = sum();
        let local = kernel.locals.push(Local { name: "s".into(), ty: Type::F64, mutable: true, note: None });
        let read = expr(&mut kernel, ExprKind::Local(local), Type::F64);
        kernel.body.push(Stmt::Let { local, value: None, place: Place::default() });
        kernel.body.push(store(read));
        check(kernel, "`s` is read before it has a value");
    }

    #[test]
    fn types_must_agree() {
        let (mut kernel, value) = sum();
        let narrow = expr(&mut kernel, ExprKind::Literal(Value::F32(1.0)), Type::F32);
        let mixed = expr(&mut kernel, ExprKind::Binary(Binary::Add, value, narrow), Type::F64);
        kernel.body.push(store(mixed));
        check(kernel, "can't be f64");
    }

    #[test]
    fn offsets_have_a_limit() {
        let (mut kernel, value) = sum();
        let offset = Offset([0, 0, MAX_OFFSET + 1]);
        expr(&mut kernel, ExprKind::Load { field: Id::new(0), offset }, Type::F64);
        kernel.body.push(store(value));
        check(kernel, "farther than 64 cells");
    }

    /// `kind` of operands of these types is sound exactly for the types in `results`.
    fn check_types(operands: &[Type], kind: impl Fn(&[Id<Expr>]) -> ExprKind, results: &[Type]) {
        for ty in Type::ALL {
            let (mut kernel, value) = sum();
            kernel.tables.push(Table { name: "w".into(), ty: Type::F32, values: vec![Value::F32(1.0)] });
            kernel.body.push(store(value));
            let literals = operands.iter().map(|ty| (ExprKind::Literal(Value::from_bits(*ty, 1)), *ty));
            let ids: Vec<_> = literals.map(|(kind, ty)| expr(&mut kernel, kind, ty)).collect();
            let kind = kind(&ids);
            expr(&mut kernel, kind.clone(), ty);
            assert_eq!(verify(kernel).is_ok(), results.contains(&ty), "{kind:?} of {operands:?} as {ty}");
        }
    }

    #[test]
    fn each_operation_takes_and_gives_its_types() {
        use Type::{Bool, F32, F64, I8, I32, I64, U8, U32, U64};
        let binary = |op| move |of: &[Id<Expr>]| ExprKind::Binary(op, of[0], of[1]);
        let unary = |op| move |of: &[Id<Expr>]| ExprKind::Unary(op, of[0]);
        let call = |function| move |of: &[Id<Expr>]| ExprKind::Call(function, of.to_vec());
        for ty in Type::ALL {
            let when = |holds: bool, result: Type| if holds { vec![result] } else { vec![] };
            check_types(&[ty; 2], binary(Binary::Rem), &when(ty.is_number(), ty));
            check_types(&[ty; 2], binary(Binary::BitXor), &when(!ty.is_float(), ty));
            check_types(&[ty; 2], binary(Binary::Shl), &when(ty.is_integer(), ty));
            check_types(&[ty; 2], binary(Binary::Lt), &when(ty.is_number(), Bool));
            check_types(&[ty; 2], binary(Binary::Ne), &[Bool]);
            check_types(&[ty; 2], binary(Binary::And), &when(ty == Bool, Bool));
            check_types(&[ty], unary(Unary::Neg), &when(ty.is_float() || ty.family() == Family::Signed, ty));
            check_types(&[ty], unary(Unary::Not), &when(!ty.is_float(), ty));
            check_types(&[ty], call(Function::CountOnes), &when(ty.is_integer(), U32));
            check_types(&[ty], |of| ExprKind::Cast(of[0]), &[F64, F32, I64, I32, I8, U64, U32, U8]);
            let index = |of: &[Id<Expr>]| ExprKind::Element { table: Id::new(0), index: of[0] };
            check_types(&[ty], index, &when(ty == U64, F32));
        }
        check_types(&[U32, I32], binary(Binary::Shl), &[]);
        check_types(&[F64, F32], call(Function::Max), &[]);
        check_types(&[F64], call(Function::Max), &[]);
        check_types(&[U64], call(Function::FromBits), &[F64]);
        check_types(&[F32], call(Function::ToBits), &[U32]);
        check_types(&[], |_| ExprKind::Index(Axis::Y), &[I32]);
        check_types(&[U64], |of| ExprKind::Element { table: Id::new(1), index: of[0] }, &[]);
    }

    #[test]
    fn tables_hold_values_of_their_type() {
        for (values, expected) in [(vec![], "`w` is empty"), (vec![Value::I32(1)], "one of its values is not")] {
            let (mut kernel, value) = sum();
            kernel.tables.push(Table { name: "w".into(), ty: Type::F64, values });
            kernel.body.push(store(value));
            check(kernel, expected);
        }
    }

    #[test]
    fn fields_are_read_along_their_own_axes_only() {
        for (name, axes) in Field::TYPES {
            for axis in Axis::ALL {
                let (mut kernel, value) = sum();
                kernel.body.push(store(value));
                kernel.fields[Id::new(0)].axes = axes;
                assert!(verify(kernel.clone()).is_ok(), "HERE is within every {name}");
                let mut offset = Offset::HERE;
                offset.0[axis as usize] = -2;
                expr(&mut kernel, ExprKind::Load { field: Id::new(0), offset }, Type::F64);
                let (inside, axis) = (axes[axis as usize], axis.name());
                let expected = format!("`u` is read at -2*{axis}, but a `{name}<f64>` does not extend along {axis}");
                match inside {
                    true => assert!(verify(kernel).is_ok(), "{name} extends along {axis}"),
                    false => check(kernel, &expected),
                }
            }
        }
        let (mut kernel, value) = sum();
        kernel.body.push(store(value));
        kernel.fields[Id::new(0)].axes = [false; 3];
        check(kernel, "`u` extends along no axis");
    }

    #[test]
    fn numbers_are_folded_and_truth_values_are_not() {
        for role in Role::FOLDS {
            for ty in Type::ALL {
                let (mut kernel, _) = sum();
                kernel.outputs[Id::new(0)] = Output { ty, role };
                let value = expr(&mut kernel, ExprKind::Literal(Value::from_bits(ty, 1)), ty);
                kernel.body.push(store(value));
                match ty.is_number() {
                    true => assert!(verify(kernel).is_ok(), "{role:?} of {ty}"),
                    false => check(kernel, "result 0 is a fold of bool, which is no number"),
                }
            }
        }
    }

    #[test]
    fn shared_expressions_are_visited_once() {
        let (mut kernel, mut value) = sum();
        for _ in 0..200 {
            value = expr(&mut kernel, ExprKind::Binary(Binary::Add, value, value), Type::F64);
        }
        kernel.body.push(store(value));
        assert!(verify(kernel).is_ok(), "walking every path would take 2^200 steps");
    }
}
