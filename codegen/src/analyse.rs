//! The facts of a kernel: how far it reads, and what a point costs.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{
    Axis, BinaryKind, Exactness, Expr, ExprKind, Field, Function, Id, Kernel, Offset, Output, Place, Stmt, Unary,
};
use crate::verify::{Verified, is_operation, operands};

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
    /// Values written per point; a fold writes none.
    pub stores: usize,
    /// Floating-point operations per point: + - * / % negation, square root; a fused multiply-add counts 2, a function
    /// that vendors compute each in their own way counts 1, and so does folding a float into a sum, a largest or a
    /// least value. Both branches of an `if` count.
    pub flops: usize,
    /// Reads of fields and tables, operators, casts and functions, each where it is computed: the size of the kernel.
    pub operations: usize,
    /// The least memory traffic per point in bytes: each field read once, each value written once. A field that lacks an
    /// axis counts 0, since its cells serve many points and stay in cache, and so does a fold, of which a row leaves one
    /// value.
    pub bytes: usize,
    /// Whether some result is folded over all points.
    pub folds: bool,
    /// Whether it asks for the global index of its point.
    pub uses_index: bool,
    /// The functions used whose results may differ from vendor to vendor, in order.
    pub vendor_functions: Vec<Function>,
}

impl Analysis {
    /// Flops per byte at the least traffic; infinite for a kernel without any.
    pub fn intensity(&self) -> f64 {
        match self.bytes {
            0 => f64::INFINITY,
            bytes => self.flops as f64 / bytes as f64,
        }
    }
}

/// Analyses a kernel.
pub fn analyse(kernel: &Verified) -> Analysis {
    let mut footprints: Vec<Footprint> =
        kernel.fields.ids().map(|field| Footprint { field, reads: BTreeMap::new() }).collect();
    let (mut flops, mut operations, mut uses_index, mut vendor_functions) = (0, 0, false, BTreeSet::new());
    let mut seen = vec![false; kernel.exprs.len()];
    visit(kernel, &kernel.body, &mut seen, &mut |expr| {
        flops += cost(kernel, expr);
        operations += usize::from(is_operation(&expr.kind));
        match &expr.kind {
            ExprKind::Load { field, offset } => {
                let first = footprints[field.index()].reads.entry(*offset).or_insert(expr.place);
                *first = expr.place.min(*first);
            }
            ExprKind::Index(_) => uses_index = true,
            ExprKind::Call(function, _) if function.exactness() == Exactness::Vendor => {
                vendor_functions.insert(*function);
            }
            _ => {}
        }
    });
    let read: usize = kernel
        .fields
        .enumerate()
        .filter(|(id, field)| field.is_whole() && !footprints[id.index()].reads.is_empty())
        .map(|(_, field)| field.ty.bytes())
        .sum();
    let (folded, values): (Vec<&Output>, Vec<&Output>) =
        kernel.outputs.iter().partition(|output| output.role.is_fold());
    let written: usize = values.iter().map(|output| output.ty.bytes()).sum();
    flops += folded.iter().filter(|output| output.ty.is_float()).count();
    Analysis {
        loads: footprints.iter().map(|footprint| footprint.reads.len()).sum(),
        footprints,
        stores: values.len(),
        flops,
        operations,
        bytes: read + written,
        folds: !folded.is_empty(),
        uses_index,
        vendor_functions: vendor_functions.into_iter().collect(),
    }
}

/// Calls `each` once for every expression that the statements use.
fn visit(kernel: &Kernel, block: &[Stmt], seen: &mut [bool], each: &mut impl FnMut(&Expr)) {
    let mut expr = |root, seen: &mut [bool]| {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[crate::ir::Id::index(id)], true) {
                continue;
            }
            let expr = &kernel.exprs[id];
            each(expr);
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

fn cost(kernel: &Kernel, expr: &Expr) -> usize {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) | ExprKind::Load { .. } | ExprKind::Cast(_) => 0,
        ExprKind::Index(_) | ExprKind::Element { .. } => 0,
        ExprKind::Unary(Unary::Neg, _) => usize::from(expr.ty.is_float()),
        ExprKind::Unary(Unary::Not, _) => 0,
        ExprKind::Binary(op, ..) => match op.kind() {
            BinaryKind::Arithmetic => usize::from(expr.ty.is_float()),
            BinaryKind::Bitwise | BinaryKind::Shift | BinaryKind::Comparison | BinaryKind::Logic => 0,
        },
        ExprKind::Call(function, arguments) => match (function, function.exactness()) {
            _ if !kernel.exprs[arguments[0]].ty.is_float() => 0,
            (Function::Sqrt, _) => 1,
            (Function::MulAdd, _) => 2,
            (_, Exactness::Vendor) => 1,
            (_, Exactness::Exact) => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::{Options, compile};

    fn facts(source: &str) -> Analysis {
        let function = syn::parse_str(source).expect("Rust");
        let compiled = compile(&function, &Options::default()).expect("a stencil");
        analyse(&compiled.kernel)
    }

    #[test]
    fn only_operations_on_floats_are_counted() {
        let check = |body: &str, flops| {
            let source = format!("fn k(u: &Field<f64>, n: &Field<i32>) -> f64 {{ {body} }}");
            assert_eq!(facts(&source).flops, flops, "{body}");
        };
        check("u[X] + u[Y] * -u[Z]", 3);
        check("u[X] % 2.0", 1);
        check("(n[X] + 3 * -n[Y] / 2) as f64", 0);
        check("u[X].mul_add(u[Y], 1.0) + u[Z].sqrt()", 4);
        check("u[X].sin() + u[X].powf(2.0)", 3);
        check("u[X].max(u[Y]).floor().abs()", 0);
        check("if u[X] < 0.0 { u[Y] + 1.0 } else { u[Z] + 2.0 }", 2);
    }

    #[test]
    fn traffic_is_counted_by_type() {
        let facts =
            facts("fn k(u: &Field<f32>, m: &Field<u8>, v: &Field<f64>) -> (f64, bool) { (u[X] as f64, m[Y] > 3) }");
        assert_eq!((facts.bytes, facts.loads, facts.stores), (4 + 1 + 8 + 1, 2, 2));
    }

    #[test]
    fn folds_and_fields_that_lack_an_axis_cost_no_traffic() {
        let check = |signature: &str, body: &str, expected: (usize, usize, usize, usize, bool)| {
            let found = facts(&format!("fn k({signature} {{ {body} }}"));
            let found = (found.bytes, found.loads, found.stores, found.flops, found.folds);
            assert_eq!(found, expected, "{signature} {body}");
        };
        check("u: &Field<f64>, s: &FieldX<f64>) -> f64", "u[X] * s[X]", (16, 2, 1, 1, false));
        check("u: &Field<f64>, s: &FieldYZ<f32>) -> f64", "u[X] * s[Y] as f64", (16, 2, 1, 1, false));
        check("u: &Field<f64>) -> (f64, Sum<f64>)", "(u[X], Sum(u[X] * u[X]))", (16, 1, 1, 2, true));
        check("u: &Field<f32>) -> (Max<f32>, Min<f32>)", "(Max(u[X]), Min(u[X]))", (4, 1, 0, 2, true));
        check("n: &Field<i32>) -> Sum<i64>", "Sum(n[X] as i64)", (4, 1, 0, 0, true));
        let flat = facts("fn k(s: &FieldZ<f64>) -> Sum<f64> { Sum(s[Z]) }");
        assert_eq!((flat.bytes, flat.intensity()), (0, f64::INFINITY));
        assert_eq!(flat.footprints[0].halo(), [[0, 0], [0, 0], [0, 1]]);
    }

    #[test]
    fn what_differs_from_vendor_to_vendor_is_named() {
        let exact = facts("fn k(u: &Field<f64>) -> f64 { u[X].sqrt().max(1.0) }");
        assert_eq!((exact.uses_index, exact.vendor_functions), (false, vec![]));
        let found =
            facts("fn k(u: &Field<f64>, p: Point) -> f64 { (u[X].sin() + u[Y].exp() + u[Z].sin()) * p.i as f64 }");
        assert_eq!((found.uses_index, found.vendor_functions), (true, vec![Function::Exp, Function::Sin]));
    }
}
