//! The facts of a kernel: how far it reads, and what a point costs.

use std::collections::BTreeMap;

use crate::ir::{Axis, BinaryKind, ExprKind, Field, Function, Id, Kernel, Offset, Place, Role, Stmt, Unary};
use crate::verify::{Verified, operands};

/// How far one field is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Footprint {
    /// The field.
    pub field: Id<Field>,
    /// Every displacement that is read, with the place that asks for it first.
    pub reads: BTreeMap<Offset, Place>,
}

/// The reach along one axis and side, and what asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The number of cells, from 0.
    pub cells: u32,
    /// The read that goes farthest; `None` when there is none on this side.
    pub because: Option<(Offset, Place)>,
}

impl Footprint {
    /// How far the field is read towards lower (`sign` < 0) or higher indices along `axis`.
    pub fn reach(&self, axis: Axis, sign: i32) -> Reach {
        let side = |offset: &Offset| offset.along(axis) * sign.signum();
        let farthest = self.reads.iter().filter(|(offset, _)| side(offset) > 0);
        // The first of equals: the simplest offset in the map's order would be arbitrary, the earliest line is not.
        match farthest.max_by_key(|(offset, place)| (side(offset), std::cmp::Reverse(**place))) {
            None => Reach { cells: 0, because: None },
            Some((offset, place)) => Reach { cells: side(offset).unsigned_abs(), because: Some((*offset, *place)) },
        }
    }

    /// The reach on all sides: (X, Y, Z) by (low, high).
    pub fn halo(&self) -> [[u32; 2]; 3] {
        Axis::ALL.map(|axis| [-1, 1].map(|sign| self.reach(axis, sign).cells))
    }
}

/// What a kernel needs and costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// One per field parameter, in order; a field that is never read has no reads.
    pub footprints: Vec<Footprint>,
    /// Distinct (field, offset) pairs that are read.
    pub loads: usize,
    /// Values written per point.
    pub stores: usize,
    /// Arithmetic operations per point: + - * / negation, square root; a fused multiply-add counts 2. Both branches of an
    /// `if` count.
    pub flops: usize,
    /// The least memory traffic per point in bytes: each field read once, each result written once.
    pub bytes: usize,
}

impl Analysis {
    /// Flops per byte at the least traffic.
    pub fn intensity(&self) -> f64 {
        self.flops as f64 / self.bytes as f64
    }
}

/// Analyses a kernel.
pub fn analyse(kernel: &Verified) -> Analysis {
    let mut footprints: Vec<Footprint> =
        kernel.fields.ids().map(|field| Footprint { field, reads: BTreeMap::new() }).collect();
    let mut flops = 0;
    let mut seen = vec![false; kernel.exprs.len()];
    visit(kernel, &kernel.body, &mut seen, &mut |kind, place| {
        flops += cost(kind);
        if let ExprKind::Load { field, offset } = kind {
            let first = footprints[field.index()].reads.entry(*offset).or_insert(place);
            *first = place.min(*first);
        }
    });
    let read: usize = kernel
        .fields
        .enumerate()
        .filter(|(id, _)| !footprints[id.index()].reads.is_empty())
        .map(|(_, field)| field.ty.bytes())
        .sum();
    let written: usize = kernel
        .outputs
        .iter()
        .map(|output| match output.role {
            Role::Value => output.ty.bytes(),
        })
        .sum();
    Analysis {
        loads: footprints.iter().map(|footprint| footprint.reads.len()).sum(),
        footprints,
        stores: kernel.outputs.len(),
        flops,
        bytes: read + written,
    }
}

/// Calls `each` once for every expression that the statements use.
fn visit(kernel: &Kernel, block: &[Stmt], seen: &mut [bool], each: &mut impl FnMut(&ExprKind, Place)) {
    let mut expr = |root, seen: &mut [bool]| {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[crate::ir::Id::index(id)], true) {
                continue;
            }
            let expr = &kernel.exprs[id];
            each(&expr.kind, expr.place);
            open.extend(operands(&expr.kind));
        }
    };
    for stmt in block {
        match stmt {
            Stmt::Let { value: None, .. } => {}
            Stmt::Let { value: Some(value), .. } | Stmt::Assign { value, .. } | Stmt::Store { value, .. } => {
                expr(*value, seen);
            }
            Stmt::If { condition, .. } => expr(*condition, seen),
        }
    }
    for stmt in block {
        if let Stmt::If { then, otherwise, .. } = stmt {
            visit(kernel, then, seen, each);
            visit(kernel, otherwise, seen, each);
        }
    }
}

fn cost(kind: &ExprKind) -> usize {
    match kind {
        ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) | ExprKind::Load { .. } | ExprKind::Cast(_) => 0,
        ExprKind::Unary(Unary::Neg, _) => 1,
        ExprKind::Unary(Unary::Not, _) => 0,
        ExprKind::Binary(op, ..) => match op.kind() {
            BinaryKind::Arithmetic => 1,
            BinaryKind::Comparison | BinaryKind::Logic => 0,
        },
        ExprKind::Call(Function::Sqrt, _) => 1,
        ExprKind::Call(Function::Abs, _) => 0,
        ExprKind::Call(Function::MulAdd, _) => 2,
    }
}
