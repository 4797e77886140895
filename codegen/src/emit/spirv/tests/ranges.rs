//! Which points a work item computes, where their cells lie, and what it folds.

use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{Capability, Op};

use super::draft::{Draft, heat, single};
use super::{FUNCTIONS, instructions, module, names, ops, validated, words};
use crate::emit::spirv::disassemble;
use crate::ir::{Axis, Binary, ExprKind, Output, Role, Stmt, Type};

/// How many instructions of a function are `op`.
fn count(module: &Module, function: usize, op: Op) -> usize {
    ops(module, function).into_iter().filter(|other| *other == op).count()
}

/// `out = value`, folded by `role`.
fn folded(ty: Type, role: Role) -> Draft {
    let mut draft = Draft::new("folded");
    let field = draft.field("a", ty);
    let value = draft.load(field, [0; 3]);
    let out = draft.output(ty);
    draft.kernel.outputs[out].role = role;
    let store = draft.store(out, value);
    draft.kernel.body.push(store);
    draft
}

const FOLDS: [Role; 3] = [Role::Sum, Role::Max, Role::Min];

fn numbers() -> impl Iterator<Item = Type> {
    Type::ALL.into_iter().filter(|ty| ty.is_number())
}

#[test]
fn a_point_of_the_other_parity_is_left_out() {
    let module = module(&heat(Type::F64).verified());
    let [point, apart, row] = FUNCTIONS;
    assert_eq!([point, apart, row].map(|function| count(&module, function, Op::BitwiseXor)), [1, 0, 1]);
    assert_eq!(count(&module, point, Op::SelectionMerge), 2, "the box and the parity");
    assert_eq!(count(&module, row, Op::Select), 2, "the first point and the step");
}

/// The multiplications and divisions by strides of a kernel that reads its field at `offset`.
fn strides(axes: [bool; 3], offset: [i32; 3]) -> [usize; 2] {
    let mut draft = Draft::new("low");
    let field = draft.field("low", Type::F64);
    draft.kernel.fields[field].axes = axes;
    let value = draft.load(field, offset);
    let out = draft.output(Type::F64);
    let store = draft.store(out, value);
    draft.kernel.body.push(store);
    let kernel = draft.verified();
    validated(&words(&kernel), &format!("{axes:?}"));
    let module = module(&kernel);
    let [point, ..] = FUNCTIONS;
    [Op::IMul, Op::UDiv].map(|op| count(&module, point, op))
}

#[test]
fn a_missing_axis_takes_no_part_in_addresses() {
    // The result takes two products, which the field shares where it can.
    assert_eq!(strides([true, true, true], [0; 3]), [2, 0]);
    assert_eq!(strides([true, true, false], [1, 2, 0]), [3, 0]);
    assert_eq!(strides([true, false, true], [-1, 0, 1]), [3, 0]);
    assert_eq!(strides([false, true, true], [0, 1, 0]), [3, 1]);
    assert_eq!(strides([false, true, true], [0, 1, -2]), [4, 1]);
    assert_eq!(strides([true, false, false], [3, 0, 0]), [2, 0]);
    assert_eq!(strides([false, true, false], [0, -3, 0]), [2, 0]);
    assert_eq!(strides([false, false, true], [0, 0, 2]), [2, 0]);
}

#[test]
fn the_same_offset_is_another_distance_in_another_shape() {
    let mut draft = Draft::new("shapes");
    let fields = [[true; 3], [true, true, false], [false, true, false], [false, true, true]].map(|axes| {
        let field = draft.field("shape", Type::F64);
        draft.kernel.fields[field].axes = axes;
        draft.load(field, [0, 2, 0])
    });
    let sum = fields.into_iter().reduce(|a, b| draft.binary(Binary::Add, a, b)).expect("there are some");
    let out = draft.output(Type::F64);
    let store = draft.store(out, sum);
    draft.kernel.body.push(store);
    let kernel = draft.verified();
    validated(&words(&kernel), "shapes");
    let text = disassemble(&words(&kernel));
    let displacement = |cell: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("%{cell} ="))).expect("the cell");
        line.split_whitespace().last().expect("a displacement").to_string()
    };
    let [whole, plane, line, wall] =
        ["shape", "shape_2", "shape_3", "shape_4"].map(|field| displacement(&format!("{field}_2Y_cell")));
    assert_eq!([whole == plane, whole == line, line == wall], [true, false, true], "{text}");
    assert_eq!(line, "%u64_2");
}

#[test]
fn every_fold_of_every_number_is_a_valid_module() {
    for ty in numbers() {
        for role in FOLDS {
            validated(&words(&folded(ty, role).verified()), &format!("{role:?} of {ty}"));
        }
    }
}

#[test]
fn a_kernel_that_folds_has_rows_only() {
    for role in FOLDS {
        let module = module(&folded(Type::F64, role).verified());
        let entry_points: Vec<&Instruction> = module.entry_points.iter().collect();
        let [entry_point] = entry_points[..] else { panic!("{entry_points:?}") };
        assert_eq!(entry_point.operands[2], Operand::LiteralString("folded_rows".into()));
        assert_eq!(module.functions.len(), 1);
        assert_eq!(count(&module, 0, Op::Store), 1, "one value of the row");
        assert_eq!(module.execution_modes.len(), 1, "contraction is off here too");
    }
}

#[test]
fn a_fold_is_stored_in_the_type_that_holds_it() {
    let stored = |ty, role| {
        let module = module(&folded(ty, role).verified());
        let pointer = module.functions[0].parameters[0].result_type.expect("a parameter has a type");
        names(&module)[&pointer].clone()
    };
    for (ty, sum, own) in [
        (Type::F64, "f64_pointer", "f64_pointer"),
        (Type::F32, "f64_pointer", "f32_pointer"),
        (Type::I32, "u64_pointer", "u32_pointer"),
        (Type::I8, "u64_pointer", "u8_pointer"),
        (Type::U32, "u64_pointer", "u32_pointer"),
    ] {
        assert_eq!(FOLDS.map(|role| stored(ty, role)), [sum, own, own], "{ty}");
    }
}

#[test]
fn a_sum_of_floats_asks_for_doubles_and_other_folds_do_not() {
    let doubles = |ty, role| {
        let double = Operand::Capability(Capability::Float64);
        module(&folded(ty, role).verified())
            .capabilities
            .iter()
            .any(|instruction| instruction.operands.contains(&double))
    };
    assert_eq!(FOLDS.map(|role| doubles(Type::F32, role)), [true, false, false]);
    assert_eq!(FOLDS.map(|role| doubles(Type::I8, role)), [false; 3]);
}

#[test]
fn integers_widen_with_their_sign() {
    for (ty, expected) in
        [(Type::I32, Op::SConvert), (Type::I8, Op::SConvert), (Type::U32, Op::UConvert), (Type::U8, Op::UConvert)]
    {
        let converts = |role| count(&module(&folded(ty, role).verified()), 0, expected);
        assert_eq!(converts(Role::Sum), converts(Role::Max) + 2, "{ty}, in both loops");
    }
}

#[test]
fn a_sum_of_floats_keeps_eight_lanes_in_registers() {
    let module = module(&folded(Type::F64, Role::Sum).verified());
    assert_eq!(count(&module, 0, Op::Phi), 3 * (1 + 16), "X and the lanes of both loops, and where they meet");
    assert_eq!(instructions(&module, Op::Variable).len(), 1, "the global id");
    assert_eq!(count(&module, 0, Op::Select), 2 * 3 * 8 + 1, "the lanes put in order, and infinite sums");
    // Per point and loop: what is added, what rounding took and the sum of that; then the eight lanes and their sum.
    let additions = count(&module, 0, Op::FAdd);
    assert_eq!(additions, 2 * 3 + 8 * 4 + 1);
}

#[test]
fn an_extreme_counts_zeros_as_positive_and_keeps_what_is_no_number() {
    for role in [Role::Max, Role::Min] {
        for ty in [Type::F64, Type::F32] {
            let module = module(&folded(ty, role).verified());
            let both_loops = [Op::FAdd, Op::FUnordNotEqual].map(|op| count(&module, 0, op));
            assert_eq!(both_loops, [2, 2], "{role:?} of {ty}");
        }
        let integers = module(&folded(Type::I32, role).verified());
        assert_eq!(count(&integers, 0, Op::FAdd), 0);
    }
}

#[test]
fn values_and_folds_mix() {
    let mut draft = heat(Type::F32);
    let sum = match draft.kernel.body.last() {
        Some(Stmt::Store { value, .. }) => *value,
        other => panic!("{other:?}"),
    };
    let index = draft.expr(ExprKind::Index(Axis::X), Type::I32);
    for (value, ty, role) in [(sum, Type::F32, Role::Sum), (sum, Type::F32, Role::Max), (index, Type::I32, Role::Min)] {
        let output = draft.kernel.outputs.push(Output { ty, role });
        let store = draft.store(output, value);
        draft.kernel.body.push(store);
    }
    let kernel = draft.verified();
    validated(&words(&kernel), "heat with folds");
    let module = module(&kernel);
    assert_eq!(count(&module, 0, Op::Store), 2 + 3, "a value in each loop, and each fold");
    let aligned = instructions(&module, Op::Store).into_iter().map(|store| store.operands.last().cloned());
    let bytes = [4, 4, 8, 4, 4].map(|bytes| Some(Operand::LiteralBit32(bytes)));
    assert_eq!(aligned.collect::<Vec<_>>(), bytes);
}

#[test]
fn a_kernel_without_fields_is_valid() {
    let kernel = single(&[], |draft, _| draft.expr(ExprKind::Index(Axis::Z), Type::I32));
    validated(&words(&kernel), "no fields");
}
