//! The walk over a kernel's statements, for one point.
//!
//! Locals and outputs are plain values; where the branches of an `if` leave different ones, `OpPhi` joins them. Stores
//! come last, so that every load sees the old values even when an update runs in place.

use std::collections::BTreeMap;

use rspirv::spirv::{Op, Word};

use super::Source;
use super::address::{displacement, word};
use super::arguments::Inputs;
use super::module::Module;
use crate::emit::names::Names;
use crate::ir::{Axis, Expr, ExprKind, Field, Id, Kernel, Local, Offset, Output, Place, Role, Stmt, Type};

/// What is needed to compute one point.
pub(super) struct Body<'k, 'm> {
    pub(super) module: &'m mut Module,
    pub(super) kernel: &'k Kernel,
    names: &'k Names,
    pub(super) inputs: &'k Inputs,
    /// The displacement in elements of every offset that is read, except [`Offset::HERE`], for fields along these axes.
    displacements: BTreeMap<([bool; 3], Offset), Word>,
    /// The point's cell in each buffer: outputs, then fields.
    cells: Vec<Word>,
    /// The point's index in the subdomain along each axis, if the kernel asks for an index.
    at: Option<[Word; 3]>,
    /// The values of locals, then of outputs.
    values: Vec<Option<Word>>,
    /// Where each output was stored last.
    stored: Vec<Place>,
}

impl<'k, 'm> Body<'k, 'm> {
    /// Computes in the open entry block what all points share.
    pub(super) fn new(module: &'m mut Module, source: &'k Source<'k>, inputs: &'k Inputs) -> Self {
        let Source { kernel, facts, names, .. } = source;
        module.at(Place::default());
        let mut displacements = BTreeMap::new();
        for footprint in &facts.footprints {
            let axes = kernel.fields[footprint.field].axes;
            for offset in footprint.reads.keys().filter(|offset| **offset != Offset::HERE) {
                let displacement = displacement(module, inputs.strides, axes, *offset);
                displacements.insert((axes, *offset), displacement);
            }
        }
        let values = vec![None; kernel.locals.len() + kernel.outputs.len()];
        let stored = vec![Place::default(); kernel.outputs.len()];
        Body { module, kernel, names, inputs, displacements, cells: Vec::new(), at: None, values, stored }
    }

    /// Computes the point with these cells, `at` this index if the kernel asks for one. What is computed is known until
    /// the caller leaves the region.
    pub(super) fn run(&mut self, cells: &[Word], at: Option<[Word; 3]>) {
        (self.cells, self.at) = (cells.to_vec(), at);
        self.values.fill(None);
        self.block(&self.kernel.body);
    }

    /// The value that the point has for `output`; later instructions are due to its place.
    pub(super) fn result(&mut self, output: Id<Output>) -> Word {
        self.module.at(self.stored[output.index()]);
        self.values[self.output(output)].expect("verified: every output is stored")
    }

    /// Stores what isn't folded: the last thing that a point does.
    pub(super) fn store(&mut self) {
        let kernel = self.kernel;
        for (id, output) in kernel.outputs.enumerate() {
            match output.role {
                Role::Value => {
                    let value = self.result(id);
                    self.module.store(output.ty, self.cells[id.index()], value);
                }
                Role::Sum | Role::Max | Role::Min => {}
            }
        }
        self.module.at(Place::default());
    }

    fn local(&self, local: Id<Local>) -> usize {
        local.index()
    }

    fn output(&self, output: Id<Output>) -> usize {
        self.kernel.locals.len() + output.index()
    }

    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { local, value: None, .. } => {
                let slot = self.local(*local);
                self.values[slot] = None;
            }
            Stmt::Let { local, value: Some(value), .. } | Stmt::Assign { local, value, .. } => {
                let (slot, id) = (self.local(*local), self.value(*value));
                self.module.name(id, self.names.local(*local));
                self.values[slot] = Some(id);
            }
            Stmt::If { condition, then, otherwise, .. } => {
                let condition = self.value(*condition);
                self.branches(condition, [then, otherwise]);
            }
            Stmt::Store { output, value, place } => {
                let (slot, id) = (self.output(*output), self.value(*value));
                self.values[slot] = Some(id);
                self.stored[output.index()] = *place;
            }
        }
    }

    fn branches(&mut self, condition: Word, arms: [&[Stmt]; 2]) {
        let [yes, no, merge] = ["then", "otherwise", "merge"].map(|name| self.module.label(name));
        self.module.select(condition, yes, no, merge);
        let before = self.values.clone();
        let mut ways = Vec::new();
        for (label, arm) in [yes, no].into_iter().zip(arms) {
            self.values.clone_from(&before);
            self.module.open(label);
            self.module.enter();
            self.block(arm);
            self.module.leave();
            ways.push((self.values.clone(), self.module.block));
            self.module.branch(merge);
        }
        self.module.open(merge);
        for slot in 0..self.values.len() {
            self.values[slot] = match (ways[0].0[slot], ways[1].0[slot]) {
                (Some(yes), Some(no)) if yes != no => {
                    let ty = self.module.ty(self.slot_type(slot));
                    let id = self.module.phi(ty, &[(yes, ways[0].1), (no, ways[1].1)]);
                    self.name_slot(slot, id);
                    Some(id)
                }
                (Some(yes), Some(_)) => Some(yes),
                (None, _) | (_, None) => None, // Verified: not read after the branches.
            };
        }
    }

    fn slot_type(&self, slot: usize) -> Type {
        match slot.checked_sub(self.kernel.locals.len()) {
            None => self.kernel.locals[Id::new(slot)].ty,
            Some(output) => self.kernel.outputs[Id::new(output)].ty,
        }
    }

    fn name_slot(&mut self, slot: usize, id: Word) {
        if slot < self.kernel.locals.len() {
            self.module.name(id, self.names.local(Id::new(slot)));
        }
    }

    fn value(&mut self, id: Id<Expr>) -> Word {
        let kernel = self.kernel;
        let expr = &kernel.exprs[id];
        match &expr.kind {
            ExprKind::Literal(value) => self.module.literal(*value),
            ExprKind::Param(param) => {
                let argument = self.inputs.scalars[param.index()];
                self.module.at(expr.place);
                self.module.scalar(expr.ty, argument)
            }
            ExprKind::Local(local) => self.values[self.local(*local)].expect("verified: the local has a value"),
            ExprKind::Load { field, offset } => {
                self.module.at(expr.place);
                self.load(*field, *offset)
            }
            ExprKind::Unary(op, a) => {
                let a = self.value(*a);
                self.module.at(expr.place);
                self.module.unary(*op, expr.ty, a)
            }
            ExprKind::Binary(op, a, b) => {
                let ty = kernel.exprs[*a].ty;
                let (a, b) = (self.value(*a), self.value(*b));
                self.module.at(expr.place);
                self.module.binary(*op, ty, a, b)
            }
            ExprKind::Call(function, arguments) => {
                let ty = kernel.exprs[arguments[0]].ty;
                let arguments: Vec<Word> = arguments.iter().map(|id| self.value(*id)).collect();
                self.module.at(expr.place);
                self.module.function(*function, ty, &arguments)
            }
            ExprKind::Cast(a) => {
                let from = kernel.exprs[*a].ty;
                let a = self.value(*a);
                self.module.at(expr.place);
                self.module.cast(from, expr.ty, a)
            }
            ExprKind::Index(axis) => {
                self.module.at(expr.place);
                self.index(*axis)
            }
            ExprKind::Element { table, index } => {
                let index = self.value(*index);
                self.module.at(expr.place);
                self.module.element(*table, index)
            }
        }
    }

    /// The global index of the point along `axis`.
    fn index(&mut self, axis: Axis) -> Word {
        let (at, origin) = self.at.zip(self.inputs.global).expect("analysed: the kernel asks for an index");
        let int = self.module.int;
        let local = self.module.value(Op::UConvert, int, &[at[axis as usize]]);
        self.module.value(Op::IAdd, int, &[origin[axis as usize], local])
    }

    fn load(&mut self, field: Id<Field>, offset: Offset) -> Word {
        let (Field { ty, axes, .. }, name) = (&self.kernel.fields[field], self.names.field(field));
        let cell = self.cells[self.kernel.outputs.len() + field.index()];
        let cell = match self.displacements.get(&(*axes, offset)) {
            None => cell,
            Some(elements) => self.module.displaced(*ty, cell, *elements),
        };
        let value = self.module.load(*ty, cell);
        let word = word(offset);
        self.module.name(cell, format!("{name}_{word}_cell"));
        self.module.name(value, format!("{name}_{word}"));
        value
    }
}
