//! Proves a kernel well formed: ids in range, types right, locals assigned before they are read, every output stored
//! exactly once on every path. Emitters take [`Verified`] and so have nothing left to refuse.

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::ir::{
    Arena, BinaryKind, Expr, ExprKind, Function, Id, Kernel, Local, Offset, Output, Place, Role, Stmt, Type, Unary,
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
    let mut checker = Checker { kernel: &kernel, wrong: Vec::new() };
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
        for field in kernel.fields.iter() {
            if field.ty == Type::Bool {
                self.refuse(field.place, format!("field `{}` holds bool; a field holds f64 or f32", field.name));
            }
        }
        for output in kernel.outputs.iter().filter(|output| output.ty == Type::Bool) {
            let Role::Value = output.role;
            self.refuse(head, "a result is bool; a field holds f64 or f32");
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
                self.offset(expr.place, *offset);
                has_type(&kernel.fields, *field, |field| field.ty, expr.ty)
            }
            ExprKind::Unary(Unary::Neg, _) => expr.ty.is_float() && types[0] == expr.ty,
            ExprKind::Unary(Unary::Not, _) => expr.ty == Type::Bool && types[0] == Type::Bool,
            ExprKind::Binary(op, ..) => match op.kind() {
                BinaryKind::Arithmetic => expr.ty.is_float() && types.iter().all(|ty| *ty == expr.ty),
                BinaryKind::Comparison => {
                    let equality = matches!(op, crate::ir::Binary::Eq | crate::ir::Binary::Ne);
                    expr.ty == Type::Bool && types[0] == types[1] && (types[0].is_float() || equality)
                }
                BinaryKind::Logic => expr.ty == Type::Bool && types.iter().all(|ty| *ty == Type::Bool),
            },
            ExprKind::Call(function, _) => {
                let float = match function {
                    Function::Sqrt | Function::Abs | Function::MulAdd => expr.ty.is_float(),
                };
                float && types.len() == function.arity() && types.iter().all(|ty| *ty == expr.ty)
            }
            ExprKind::Cast(_) => expr.ty.is_float() && types[0].is_float(),
        };
        if !right {
            self.refuse(expr.place, format!("expression {id:?} ({:?}) of {types:?} can't be {}", expr.kind, expr.ty));
        }
    }

    fn offset(&mut self, place: Place, offset: Offset) {
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

    /// All locals that a value reads must have been assigned.
    fn value(&mut self, value: Id<Expr>, known: &Known) {
        let kernel = self.kernel;
        let expr = &kernel.exprs[value];
        if let ExprKind::Local(local) = expr.kind
            && !known.assigned.contains(&local)
        {
            self.refuse(expr.place, format!("local `{}` is read before it has a value", kernel.locals[local].name));
        }
        for operand in operands(&expr.kind) {
            self.value(operand, known);
        }
    }
}

fn has_type<T>(arena: &Arena<T>, id: Id<T>, ty: impl Fn(&T) -> Type, wanted: Type) -> bool {
    arena.get(id).is_some_and(|item| ty(item) == wanted)
}

/// The expressions that `kind` uses, in order.
pub fn operands(kind: &ExprKind) -> Vec<Id<Expr>> {
    match kind {
        ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) | ExprKind::Load { .. } => Vec::new(),
        ExprKind::Unary(_, a) | ExprKind::Cast(a) => vec![*a],
        ExprKind::Binary(_, a, b) => vec![*a, *b],
        ExprKind::Call(_, arguments) => arguments.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Binary, Field, Role, Value};

    fn expr(kernel: &mut Kernel, kind: ExprKind, ty: Type) -> Id<Expr> {
        kernel.exprs.push(Expr { kind, ty, place: Place::default() })
    }

    /// `u[HERE] + 1.0`, not stored yet, and the id of the sum.
    fn sum() -> (Kernel, Id<Expr>) {
        let mut kernel = Kernel { name: "sum".into(), ..Kernel::default() };
        let field = kernel.fields.push(Field { name: "u".into(), ty: Type::F64, place: Place::default() });
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
}
