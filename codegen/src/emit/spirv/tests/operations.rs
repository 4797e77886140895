//! Which instructions an operation becomes.

use std::collections::BTreeSet;

use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{Op, OpenclStd100Op};

use super::draft::{Draft, single};
use super::{instructions, module, of_a_point, validated, words};
use crate::ir::{Binary, BinaryKind, Expr, ExprKind, Family, Function, Id, Type, Unary, Value};

/// `op` is the one instruction that the kernel's value needs.
fn check(expected: Op, types: &[Type], value: impl FnOnce(&mut Draft, &[Id<Expr>]) -> Id<Expr>) {
    let module = module(&single(types, value));
    assert_eq!(of_a_point(&module, expected).len(), 1, "{expected:?} on {types:?}");
}

fn check_binary(op: Binary, ty: Type, expected: Op) {
    check(expected, &[ty, ty], |draft, loads| draft.binary(op, loads[0], loads[1]));
}

/// The choices between numbers; `or` is one between truth values.
fn choices(module: &Module) -> Vec<&Instruction> {
    let truth = instructions(module, Op::TypeBool)[0].result_id;
    of_a_point(module, Op::Select).into_iter().filter(|choice| choice.result_type != truth).collect()
}

#[test]
fn comparisons_with_nan_are_those_of_rust() {
    for (op, expected) in [
        (Binary::Lt, Op::FOrdLessThan),
        (Binary::Le, Op::FOrdLessThanEqual),
        (Binary::Gt, Op::FOrdGreaterThan),
        (Binary::Ge, Op::FOrdGreaterThanEqual),
        (Binary::Eq, Op::FOrdEqual),
        (Binary::Ne, Op::FUnordNotEqual),
    ] {
        check_binary(op, Type::F64, expected);
    }
}

#[test]
fn the_sign_is_in_the_operation() {
    for (op, signed, unsigned) in [
        (Binary::Lt, Op::SLessThan, Op::ULessThan),
        (Binary::Le, Op::SLessThanEqual, Op::ULessThanEqual),
        (Binary::Gt, Op::SGreaterThan, Op::UGreaterThan),
        (Binary::Ge, Op::SGreaterThanEqual, Op::UGreaterThanEqual),
        (Binary::Div, Op::SDiv, Op::UDiv),
        (Binary::Rem, Op::SRem, Op::UMod),
        (Binary::Shr, Op::ShiftRightArithmetic, Op::ShiftRightLogical),
    ] {
        // The loop compares as well.
        let loops = of_a_point(&module(&single(&[Type::I32], |_, loads| loads[0])), signed).len();
        for ty in [Type::I64, Type::I32, Type::I8] {
            let module = module(&single(&[ty, ty], |draft, loads| draft.binary(op, loads[0], loads[1])));
            let [signed, unsigned] = [signed, unsigned].map(|op| of_a_point(&module, op).len());
            assert_eq!([signed, unsigned], [loops + 1, 0], "{op:?} on {ty}");
        }
        for ty in [Type::U64, Type::U32, Type::U8] {
            check_binary(op, ty, unsigned);
        }
    }
}

#[test]
fn every_operation_on_every_type_is_valid() {
    for op in Binary::ALL {
        for ty in Type::ALL {
            let takes = match op.kind() {
                BinaryKind::Arithmetic => ty.is_number(),
                BinaryKind::Bitwise => !ty.is_float(),
                BinaryKind::Shift => ty.is_integer(),
                BinaryKind::Comparison => ty.is_number() || matches!(op, Binary::Eq | Binary::Ne),
                BinaryKind::Logic => ty == Type::Bool,
            };
            if takes {
                let kernel = single(&[ty, ty], |draft, loads| draft.binary(op, loads[0], loads[1]));
                validated(&words(&kernel), &format!("{op:?} on {ty}"));
            }
        }
    }
}

#[test]
fn every_cast_is_valid() {
    for from in Type::ALL {
        for to in Type::ALL {
            let exists = match (from.family(), to.family()) {
                (Family::Bool, Family::Float) => false,
                (_, Family::Bool) => false,
                (_, _) => true,
            };
            if exists {
                let kernel = single(&[from], |draft, loads| draft.expr(ExprKind::Cast(loads[0]), to));
                validated(&words(&kernel), &format!("{from} as {to}"));
            }
        }
    }
}

#[test]
fn every_function_of_every_type_is_valid() {
    for function in Function::ALL {
        for ty in Type::ALL.into_iter().filter(|ty| function.result(*ty).is_some()) {
            let kernel = single(&[ty], |draft, loads| draft.call(function, &vec![loads[0]; function.arity()]));
            validated(&words(&kernel), &format!("{} of {ty}", function.name()));
        }
    }
}

#[test]
fn negation_keeps_the_sign_of_zero() {
    check(Op::FNegate, &[Type::F64], |draft, loads| draft.expr(ExprKind::Unary(Unary::Neg, loads[0]), Type::F64));
}

#[test]
fn casts_change_what_must_change_and_only_that() {
    for (from, to, expected) in [
        (Type::F64, Type::F32, Op::FConvert),
        (Type::I64, Type::F32, Op::ConvertSToF),
        (Type::U8, Type::F64, Op::ConvertUToF),
        (Type::F32, Type::I8, Op::ConvertFToS),
        (Type::F64, Type::U64, Op::ConvertFToU),
        (Type::Bool, Type::I32, Op::Select),
    ] {
        check(expected, &[from], |draft, loads| draft.expr(ExprKind::Cast(loads[0]), to));
    }
    let conversions = |from, to| {
        let module = module(&single(&[from], |draft, loads| draft.expr(ExprKind::Cast(loads[0]), to)));
        let conversions = [Op::FConvert, Op::UConvert, Op::Bitcast].map(|op| of_a_point(&module, op).len());
        conversions.into_iter().sum::<usize>()
    };
    for (from, to) in [(Type::F64, Type::F64), (Type::I32, Type::U32), (Type::U8, Type::I8)] {
        assert_eq!(conversions(from, to), 0, "{from} as {to}");
    }
    for (from, to) in [(Type::U8, Type::I64), (Type::I64, Type::U8), (Type::U32, Type::I64)] {
        assert_eq!(conversions(from, to), 1, "{from} as {to}");
    }
}

#[test]
fn only_a_float_that_fits_is_converted() {
    for (ty, expected) in [(Type::I64, 3), (Type::I8, 3), (Type::U64, 2), (Type::U8, 2)] {
        let module = module(&single(&[Type::F32], |draft, loads| draft.expr(ExprKind::Cast(loads[0]), ty)));
        let choices = choices(&module);
        assert_eq!(choices.len(), expected, "{ty}: a harmless operand and each end of the range");
        for op in [Op::ConvertFToS, Op::ConvertFToU] {
            for conversion in of_a_point(&module, op) {
                let of = conversion.operands[0].unwrap_id_ref();
                assert!(choices.iter().any(|choice| choice.result_id == Some(of)), "{ty}");
            }
        }
    }
}

/// The divisions of a kernel and the choices round them.
fn divisions(op: Binary, ty: Type, divisor: Option<i64>) -> [usize; 2] {
    let kernel = single(&[ty, ty], |draft, loads| {
        let divisor = divisor.map(|divisor| draft.literal(Value::from_bits(ty, divisor as u64)));
        draft.binary(op, loads[0], divisor.unwrap_or(loads[1]))
    });
    let module = module(&kernel);
    let count = |ops: &[Op]| ops.iter().map(|op| of_a_point(&module, *op).len()).sum::<usize>();
    [count(&[Op::SDiv, Op::UDiv, Op::SRem, Op::UMod]), choices(&module).len()]
}

#[test]
fn divisions_are_guarded_unless_the_divisor_is_known_and_harmless() {
    for ty in [Type::I64, Type::I32, Type::I8] {
        for harmful in [None, Some(0), Some(-1)] {
            assert_eq!(divisions(Binary::Div, ty, harmful), [1, 3], "{ty} / {harmful:?}");
            assert_eq!(divisions(Binary::Rem, ty, harmful), [1, 1], "{ty} % {harmful:?}");
        }
    }
    for ty in [Type::U64, Type::U32, Type::U8] {
        for harmful in [None, Some(0)] {
            assert_eq!(divisions(Binary::Div, ty, harmful), [1, 2], "{ty} / {harmful:?}");
            assert_eq!(divisions(Binary::Rem, ty, harmful), [1, 1], "{ty} % {harmful:?}");
        }
        assert_eq!(divisions(Binary::Div, ty, Some(-1)), [1, 0], "the largest {ty} is a number as any");
    }
    for ty in Type::ALL.into_iter().filter(|ty| ty.is_integer()) {
        assert_eq!([Binary::Div, Binary::Rem].map(|op| divisions(op, ty, Some(3))), [[1, 0]; 2], "{ty}");
    }
}

#[test]
fn shift_counts_are_masked() {
    for (ty, mask) in [(Type::I64, 63), (Type::U32, 31), (Type::I8, 7)] {
        for op in [Binary::Shl, Binary::Shr] {
            let module = module(&single(&[ty, ty], |draft, loads| draft.binary(op, loads[0], loads[1])));
            let masks = of_a_point(&module, Op::BitwiseAnd);
            assert_eq!(masks.len(), 1, "{op:?} on {ty}");
            let constants = instructions(&module, Op::Constant);
            for operation in masks {
                let Operand::IdRef(id) = operation.operands[1] else { panic!("{operation:?}") };
                let constant = constants.iter().find(|constant| constant.result_id == Some(id)).expect("a constant");
                let expected =
                    if ty.bytes() == 8 { Operand::LiteralBit64(mask) } else { Operand::LiteralBit32(mask as u32) };
                assert_eq!(constant.operands, [expected], "{op:?} on {ty}");
            }
        }
    }
}

#[test]
fn functions_are_those_of_opencl() {
    let mut used = BTreeSet::new();
    for (function, expected) in [
        (Function::Sqrt, OpenclStd100Op::sqrt),
        (Function::Abs, OpenclStd100Op::fabs),
        (Function::MulAdd, OpenclStd100Op::fma),
        (Function::Floor, OpenclStd100Op::floor),
        (Function::Ceil, OpenclStd100Op::ceil),
        (Function::Trunc, OpenclStd100Op::trunc),
        (Function::Round, OpenclStd100Op::round),
        (Function::Copysign, OpenclStd100Op::copysign),
        (Function::Exp, OpenclStd100Op::exp),
        (Function::Ln, OpenclStd100Op::log),
        (Function::Log10, OpenclStd100Op::log10),
        (Function::Log2, OpenclStd100Op::log2),
        (Function::Exp2, OpenclStd100Op::exp2),
        (Function::Powf, OpenclStd100Op::pow),
        (Function::Sin, OpenclStd100Op::sin),
        (Function::Cos, OpenclStd100Op::cos),
        (Function::Tan, OpenclStd100Op::tan),
        (Function::Asin, OpenclStd100Op::asin),
        (Function::Acos, OpenclStd100Op::acos),
        (Function::Atan, OpenclStd100Op::atan),
        (Function::Atan2, OpenclStd100Op::atan2),
        (Function::Sinh, OpenclStd100Op::sinh),
        (Function::Cosh, OpenclStd100Op::cosh),
        (Function::Tanh, OpenclStd100Op::tanh),
        (Function::Cbrt, OpenclStd100Op::cbrt),
        (Function::Hypot, OpenclStd100Op::hypot),
    ] {
        used.insert(function);
        for ty in [Type::F64, Type::F32] {
            let arguments = vec![ty; function.arity()];
            let module = module(&single(&arguments, |draft, loads| draft.call(function, loads)));
            let calls = of_a_point(&module, Op::ExtInst);
            assert_eq!(calls.len(), 1, "{function:?}");
            for call in calls {
                assert_eq!(call.operands[1], Operand::LiteralExtInstInteger(expected as u32));
                assert_eq!(call.operands.len(), 2 + function.arity());
            }
        }
    }
    let own: Vec<Function> = Function::ALL.into_iter().filter(|function| !used.contains(function)).collect();
    use Function::{CountOnes, FromBits, Max, Min, ToBits};
    assert_eq!(own, [Min, Max, ToBits, FromBits, CountOnes]);
}

#[test]
fn the_lesser_of_two_is_chosen_by_comparison() {
    for function in [Function::Min, Function::Max] {
        for ty in Type::ALL.into_iter().filter(|ty| ty.is_number()) {
            let module = module(&single(&[ty, ty], |draft, loads| draft.call(function, loads)));
            assert!(instructions(&module, Op::ExtInst).is_empty(), "OpenCL leaves open which of two zeros is less");
            assert_eq!(choices(&module).len(), 1);
            let tests = if ty.is_float() { 1 } else { 0 };
            assert_eq!(of_a_point(&module, Op::FUnordNotEqual).len(), tests, "whether the first is a number");
        }
    }
}

#[test]
fn bits_are_reinterpreted_and_counted() {
    for (function, ty) in [(Function::ToBits, Type::F64), (Function::FromBits, Type::U32)] {
        check(Op::Bitcast, &[ty], |draft, loads| draft.call(function, loads));
    }
    for (ty, converted) in [(Type::I64, 1), (Type::U32, 0), (Type::I32, 0), (Type::I8, 1)] {
        let module = module(&single(&[ty], |draft, loads| draft.call(Function::CountOnes, loads)));
        assert_eq!(of_a_point(&module, Op::UConvert).len(), converted, "the number of ones in {ty} is a u32");
    }
}

#[test]
fn a_scalar_of_few_bits_comes_as_an_integer() {
    for (ty, expected) in [(Type::Bool, Op::INotEqual), (Type::U8, Op::UConvert), (Type::I8, Op::UConvert)] {
        check(expected, &[], |draft, _| draft.param("p", ty));
    }
}
