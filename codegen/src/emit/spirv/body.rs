//! The walk over a kernel's statements, for one point.
//!
//! Locals and outputs are plain values; where the branches of an `if` leave different ones, `OpPhi` joins them. Stores
//! come last, so that every load sees the old values even when an update runs in place.

use std::collections::BTreeMap;

use rspirv::spirv::{Op, Word};

use super::module::Module;
use super::{Arguments, Source};
use crate::emit::names::Names;
use crate::ir::{Axis, Expr, ExprKind, Field, Id, Kernel, Local, Offset, Output, Place, Stmt, Type};

/// What is needed to compute one point.
pub(super) struct Body<'k, 'm> {
    pub(super) module: &'m mut Module,
    kernel: &'k Kernel,
    names: &'k Names,
    arguments: &'k Arguments,
    /// The displacement in elements of every offset that is read, except [`Offset::HERE`].
    displacements: BTreeMap<Offset, Word>,
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
    pub(super) fn new(module: &'m mut Module, source: &'k Source<'k>, arguments: &'k Arguments) -> Self {
        let Source { kernel, facts, names } = source;
        module.at(Place::default());
        module.enter(); // Left at the end of `run`: nothing is known to the next entry point.
        let offsets = facts.footprints.iter().flat_map(|footprint| footprint.reads.keys());
        let displacements = offsets
            .filter(|offset| **offset != Offset::HERE)
            .map(|offset| (*offset, displacement(module, arguments.strides, *offset)))
            .collect();
        let values = vec![None; kernel.locals.len() + kernel.outputs.len()];
        let stored = vec![Place::default(); kernel.outputs.len()];
        Body { module, kernel, names, arguments, displacements, cells: Vec::new(), at: None, values, stored }
    }

    /// Computes the point with these cells, `at` this index if the kernel asks for one.
    pub(super) fn run(&mut self, cells: &[Word], at: Option<[Word; 3]>) {
        (self.cells, self.at) = (cells.to_vec(), at);
        self.block(&self.kernel.body);
        for (id, output) in self.kernel.outputs.enumerate() {
            let value = self.values[self.output(id)].expect("verified: every output is stored");
            self.module.at(self.stored[id.index()]);
            self.module.store(output.ty, self.cells[id.index()], value);
        }
        self.module.at(Place::default());
        self.module.leave();
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
                let argument = self.arguments.scalars[param.index()];
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
        let (at, origin) = self.at.zip(self.arguments.global).expect("analysed: the kernel asks for an index");
        let int = self.module.int;
        let local = self.module.value(Op::UConvert, int, &[at[axis as usize]]);
        self.module.value(Op::IAdd, int, &[origin[axis as usize], local])
    }

    fn load(&mut self, field: Id<Field>, offset: Offset) -> Word {
        let (ty, name) = (self.kernel.fields[field].ty, self.names.field(field));
        let cell = self.cells[self.kernel.outputs.len() + field.index()];
        let cell = match self.displacements.get(&offset) {
            None => cell,
            Some(elements) => self.module.displaced(ty, cell, *elements),
        };
        let value = self.module.load(ty, cell);
        let word = word(offset);
        self.module.name(cell, format!("{name}_{word}_cell"));
        self.module.name(value, format!("{name}_{word}"));
        value
    }
}

/// `offset` as part of a name: `HERE`, `X`, `mY`, `2X_mZ`.
fn word(offset: Offset) -> String {
    offset.to_string().replace(" + ", "_").replace(" - ", "_m").replace('-', "m").replace('*', "")
}

/// The distance in elements from a point to the one at `offset`.
fn displacement(module: &mut Module, strides: [Word; 2], offset: Offset) -> Word {
    let index = module.index;
    let mut terms = Vec::new();
    for (axis, stride) in [Axis::Y, Axis::Z].into_iter().zip(strides) {
        match offset.along(axis) {
            0 => {}
            1 => terms.push(stride),
            -1 => terms.push(module.value(Op::SNegate, index, &[stride])),
            cells => {
                let cells = module.index_constant(cells.into());
                terms.push(module.value(Op::IMul, index, &[stride, cells]));
            }
        }
    }
    match offset.along(Axis::X) {
        0 => {}
        cells => terms.push(module.index_constant(cells.into())),
    }
    let sum = terms.into_iter().reduce(|sum, term| module.value(Op::IAdd, index, &[sum, term]));
    let sum = sum.expect("the offset is not HERE");
    module.name(sum, format!("at_{}", word(offset)));
    sum
}
