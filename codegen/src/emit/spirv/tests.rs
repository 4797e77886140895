//! What the emitted modules are made of; that they compute the right bits is tested where there is a device.

mod draft;
mod operations;
mod ranges;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use rspirv::dr::{Function, Instruction, Module, Operand};
use rspirv::spirv::{BuiltIn, Capability, Decoration, ExecutionMode, FunctionParameterAttribute, Op, Word};

use super::{SpirV, disassemble};
use crate::emit::{Code, Emitter};
use crate::ir::{Axis, Binary, ExprKind, Field, Stmt, Table, Type, Unary, Value};
use crate::random::{self, Limits};
use crate::verify::Verified;
use draft::{Draft, heat, single};

fn words(kernel: &Verified) -> Vec<u32> {
    match SpirV.emit(kernel) {
        Code::Words(words) => words,
        Code::Text(text) => panic!("SPIR-V is binary, not {text}"),
    }
}

fn module(kernel: &Verified) -> Module {
    rspirv::dr::load_words(words(kernel)).expect("the module parses")
}

fn instructions(module: &Module, op: Op) -> Vec<&Instruction> {
    module.all_inst_iter().filter(|instruction| instruction.class.opcode == op).collect()
}

/// The functions of a module that folds nothing: one for points, one for rows that are apart, one for rows.
const FUNCTIONS: [usize; 3] = [0, 1, 2];

/// The instructions `op` in the code for a point, with those of a loop round it and without those of guards.
fn of_a_point(module: &Module, op: Op) -> Vec<&Instruction> {
    let [_, apart, _] = FUNCTIONS;
    let all = module.functions[apart].all_inst_iter();
    all.filter(|instruction| instruction.class.opcode == op).collect()
}

/// The operation codes of function `index`, in order.
fn ops(module: &Module, index: usize) -> Vec<Op> {
    module.functions[index].all_inst_iter().map(|instruction| instruction.class.opcode).collect()
}

/// The functions that are entry points.
fn entry_points(module: &Module) -> Vec<&Function> {
    let entry_points = module.entry_points.iter().map(|entry_point| entry_point.operands[1].unwrap_id_ref());
    let function =
        |id| module.functions.iter().find(|function| function.def.as_ref().and_then(|def| def.result_id) == Some(id));
    entry_points.map(|id| function(id).expect("an entry point is a function")).collect()
}

fn names(module: &Module) -> BTreeMap<Word, String> {
    let name = |instruction: &Instruction| match &instruction.operands[..] {
        [Operand::IdRef(id), Operand::LiteralString(name)] => (*id, name.clone()),
        other => panic!("OpName of {other:?}"),
    };
    module.debug_names.iter().map(name).collect()
}

/// Has `spirv-val` judge the module; false when the tool is missing and may be.
fn validated(words: &[u32], what: &str) -> bool {
    let tool = std::env::var_os("POLYHALO_SPIRV_VAL").unwrap_or_else(|| "spirv-val".into());
    let mut command = Command::new(&tool);
    command.args(["--target-env", "opencl1.2", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(reason) => {
            let required = std::env::var("POLYHALO_REQUIRE").unwrap_or_default();
            let required = required.split([',', ' ']).any(|tool| tool == "spirv-val");
            assert!(!required, "POLYHALO_REQUIRE asks for spirv-val, and {tool:?} gives: {reason}");
            eprintln!("SKIPPED validation of SPIR-V: {tool:?} gives: {reason} (install spirv-tools)");
            return false;
        }
    };
    let bytes = Code::Words(words.to_vec()).bytes();
    let mut input = child.stdin.take().expect("its input is piped");
    input.write_all(&bytes).expect("spirv-val reads its input");
    drop(input);
    let output = child.wait_with_output().expect("spirv-val ends");
    let report = [output.stdout, output.stderr].concat();
    let report = String::from_utf8_lossy(&report);
    assert!(output.status.success(), "{what}: {report}\n{}", disassemble(words));
    true
}

fn random(seed: u64) -> Verified {
    random::kernel(&format!("random_{seed}"), seed, Limits::default())
}

#[test]
fn random_kernels_are_valid_modules() {
    for seed in 0..150 {
        let kernel = random(seed);
        let words = words(&kernel);
        rspirv::dr::load_words(&words).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        if !validated(&words, &format!("seed {seed}")) {
            return;
        }
    }
}

#[test]
fn random_kernels_use_every_operation() {
    let mut seen: BTreeMap<Op, usize> = BTreeMap::new();
    for seed in 0..150 {
        for instruction in module(&random(seed)).all_inst_iter() {
            *seen.entry(instruction.class.opcode).or_default() += 1;
        }
    }
    let arithmetic = [Op::FAdd, Op::FSub, Op::FMul, Op::FDiv, Op::FNegate, Op::IAdd, Op::ISub, Op::IMul, Op::SNegate];
    let divisions = [Op::SDiv, Op::UDiv, Op::SRem, Op::UMod];
    let bits = [Op::BitwiseAnd, Op::BitwiseOr, Op::BitwiseXor, Op::Not, Op::Bitcast];
    let shifts = [Op::ShiftLeftLogical, Op::ShiftRightArithmetic, Op::ShiftRightLogical];
    let to_floats = [Op::FConvert, Op::ConvertSToF, Op::ConvertUToF];
    let to_integers = [Op::ConvertFToS, Op::ConvertFToU, Op::SConvert, Op::UConvert];
    let floats_compared = [Op::FOrdLessThan, Op::FOrdLessThanEqual, Op::FOrdGreaterThan, Op::FOrdGreaterThanEqual];
    let signed_compared = [Op::SLessThan, Op::SLessThanEqual, Op::SGreaterThan, Op::SGreaterThanEqual];
    let unsigned_compared = [Op::ULessThan, Op::ULessThanEqual, Op::UGreaterThan, Op::UGreaterThanEqual];
    let equal = [Op::FOrdEqual, Op::FUnordNotEqual, Op::IEqual, Op::INotEqual];
    let logic = [Op::LogicalAnd, Op::LogicalEqual, Op::LogicalNotEqual];
    let others = [Op::ExtInst, Op::Phi, Op::Select, Op::AccessChain];
    let numbers = [&arithmetic[..], &divisions, &bits, &shifts, &to_floats, &to_integers];
    let truths = [&floats_compared[..], &signed_compared, &unsigned_compared, &equal, &logic, &others];
    for op in numbers.into_iter().chain(truths).flatten() {
        assert!(seen.get(op).is_some_and(|times| *times >= 5), "{op:?} is hardly ever tested");
    }
    for op in [Op::ConstantNull, Op::LogicalNot, Op::LogicalOr, Op::InBoundsAccessChain] {
        assert!(!seen.contains_key(&op), "some consumer fails on {op:?}");
    }
}

#[test]
fn heat_is_valid_in_both_widths() {
    for ty in [Type::F64, Type::F32] {
        validated(&words(&heat(ty).verified()), ty.name());
    }
}

#[test]
fn a_kernel_gives_the_same_words_each_time() {
    for seed in 0..20 {
        assert_eq!(words(&random(seed)), words(&random(seed)));
    }
}

#[test]
fn heat_asks_for_no_more_than_it_needs() {
    let module = module(&heat(Type::F64).verified());
    assert_eq!(module.header.as_ref().map(|header| header.version()), Some((1, 0)));
    let capabilities: Vec<&Operand> =
        module.capabilities.iter().flat_map(|instruction| &instruction.operands).collect();
    let expected = [Capability::Addresses, Capability::Kernel, Capability::Int64, Capability::Float64];
    assert_eq!(capabilities, expected.map(Operand::Capability).iter().collect::<Vec<_>>());
}

#[test]
fn a_single_precision_kernel_knows_no_doubles() {
    let module = module(&heat(Type::F32).verified());
    let double = Operand::Capability(Capability::Float64);
    assert!(!module.capabilities.iter().any(|instruction| instruction.operands.contains(&double)));
    let widths = instructions(&module, Op::TypeFloat);
    assert_eq!(widths.len(), 1);
    assert_eq!(widths[0].operands[0], Operand::LiteralBit32(32));
}

#[test]
fn arguments_come_in_the_documented_order() {
    let mut draft = heat(Type::F64);
    for (name, ty) in [("fixed", Type::Bool), ("small", Type::I8), ("count", Type::U64)] {
        draft.param(name, ty);
    }
    let module = module(&draft.verified());
    let names = names(&module);
    let expected = "out u f kappa out_origin u_origin f_origin kappa_origin beta fixed small count sy sz \
                    lo_x lo_y lo_z n_x n_y n_z parity";
    for function in entry_points(&module) {
        let parameters: Vec<&str> = function
            .parameters
            .iter()
            .map(|parameter| names[&parameter.result_id.expect("a parameter has an id")].as_str())
            .collect();
        assert_eq!(parameters.join(" "), expected);
        let types: Vec<&str> = function
            .parameters
            .iter()
            .map(|parameter| names[&parameter.result_type.expect("a parameter has a type")].as_str())
            .collect();
        let expected = [&["f64_pointer"; 4][..], &["u64"; 4], &["f64", "u32", "u32"], &["u64"; 3], &["u32"; 7]];
        assert_eq!(types, expected.concat());
    }
}

#[test]
fn very_many_origins_come_in_pairs_with_their_signs() {
    let mut draft = heat(Type::F64);
    for number in 0..60 {
        let spare = draft.kernel.fields[draft.kernel.fields.ids().next().expect("heat reads a field")].clone();
        draft.kernel.fields.push(Field { name: format!("spare_{number}"), ..spare });
    }
    let kernel = draft.verified();
    let module = module(&kernel);
    let names = names(&module);
    for function in entry_points(&module) {
        let name = |word: Option<Word>| names[&word.expect("a parameter has an id and a type")].as_str();
        let pairs = function.parameters.iter().filter(|parameter| name(parameter.result_type) == "u32x2");
        let pairs: Vec<Word> = pairs.map(|pair| pair.result_id.expect("it has an id")).collect();
        let expected: Vec<String> = (0..32).map(|number| format!("origins_{number}")).collect();
        assert_eq!(pairs.iter().map(|pair| names[pair].as_str()).collect::<Vec<_>>(), expected);
        let all = || function.blocks.iter().flat_map(|block| &block.instructions);
        let of_pairs = all().filter(|it| {
            it.class.opcode == Op::CompositeExtract
                && matches!(it.operands[0], Operand::IdRef(of) if pairs.contains(&of))
        });
        let parts: Vec<Option<Word>> = of_pairs.map(|part| part.result_id).collect();
        assert!(parts.len() >= 4, "{} origins are used", parts.len());
        for part in parts.into_iter().flatten() {
            let uses: Vec<Op> =
                all().filter(|it| it.operands.contains(&Operand::IdRef(part))).map(|it| it.class.opcode).collect();
            assert_eq!(uses, [Op::SConvert]);
        }
    }
    validated(&words(&kernel), "pairs of origins");
}

#[test]
fn the_global_index_comes_last_and_only_if_it_is_asked_for() {
    let mut draft = heat(Type::F64);
    let out = draft.output(Type::I32);
    let index = draft.expr(ExprKind::Index(Axis::Y), Type::I32);
    let store = draft.store(out, index);
    draft.kernel.body.push(store);
    let kernel = draft.verified();
    let module = module(&kernel);
    let names = names(&module);
    for function in entry_points(&module) {
        let parameters = function.parameters.iter().map(|parameter| parameter.result_id.expect("it has an id"));
        let parameters: Vec<&str> = parameters.map(|id| names[&id].as_str()).collect();
        assert!(parameters.ends_with(&["n_y", "n_z", "parity", "g_x", "g_y", "g_z"]), "{parameters:?}");
    }
    validated(&words(&kernel), "index");
}

#[test]
fn bytes_are_asked_for_only_where_there_are_some() {
    let asks = |kernel: &Verified| {
        let byte = Operand::Capability(Capability::Int8);
        module(kernel).capabilities.iter().any(|instruction| instruction.operands.contains(&byte))
    };
    let sum = |ty| single(&[ty, ty], |draft, loads| draft.binary(Binary::Eq, loads[0], loads[1]));
    let chosen = |ty| {
        single(&[ty], |draft, loads| {
            let zero = draft.literal(Value::from_bits(ty, 0));
            draft.binary(Binary::Add, loads[0], zero)
        })
    };
    for ty in [Type::F64, Type::F32, Type::I64, Type::I32, Type::U64, Type::U32] {
        assert!(!asks(&chosen(ty)), "{ty}");
        assert!(asks(&sum(ty)), "a result of truth values is bytes");
    }
    for ty in [Type::I8, Type::U8] {
        assert!(asks(&chosen(ty)), "{ty}");
    }
    let mut draft = heat(Type::F64);
    for (name, ty) in [("small", Type::U8), ("fixed", Type::Bool)] {
        draft.param(name, ty);
    }
    draft.kernel.exprs = heat(Type::F64).kernel.exprs;
    assert!(!asks(&draft.verified()), "scalars of 8 bits travel as 32");
}

#[test]
fn truth_values_are_bytes_in_memory() {
    let kernel = single(&[Type::Bool], |draft, loads| draft.expr(ExprKind::Unary(Unary::Not, loads[0]), Type::Bool));
    let module = module(&kernel);
    let names = names(&module);
    let types: Vec<&str> = module.functions[0].parameters[..2]
        .iter()
        .map(|parameter| names[&parameter.result_type.expect("a parameter has a type")].as_str())
        .collect();
    assert_eq!(types, ["u8_pointer"; 2]);
    assert_eq!([Op::INotEqual, Op::Select].map(|op| of_a_point(&module, op).len()), [1, 1]);
    validated(&words(&kernel), "truths");
}

#[test]
fn both_signs_share_a_type() {
    let types = [Type::I64, Type::U64, Type::I32, Type::U32, Type::I8, Type::U8];
    let kernel = single(&types, |draft, loads| {
        let casts: Vec<_> = loads.iter().map(|load| draft.expr(ExprKind::Cast(*load), Type::F64)).collect();
        casts.into_iter().reduce(|sum, cast| draft.binary(Binary::Add, sum, cast)).expect("there are some")
    });
    let module = module(&kernel);
    let widths: Vec<_> = instructions(&module, Op::TypeInt).iter().map(|ty| ty.operands.clone()).collect();
    let width = |bits| vec![Operand::LiteralBit32(bits), Operand::LiteralBit32(0)];
    assert_eq!(widths, [64, 32, 8].map(width));
    validated(&words(&kernel), "signs");
}

#[test]
fn a_table_lies_in_constant_memory_once() {
    for ty in Type::ALL {
        let kernel = single(&[Type::U64], |draft, loads| {
            let values = (0..5).map(|bits| Value::from_bits(ty, bits)).collect();
            let table = draft.kernel.tables.push(Table { name: "weights".into(), ty, values });
            draft.expr(ExprKind::Element { table, index: loads[0] }, ty)
        });
        let module = module(&kernel);
        assert_eq!(instructions(&module, Op::ConstantComposite).len(), 1, "{ty}");
        assert_eq!(instructions(&module, Op::Variable).len(), 2, "{ty}: the table and the global id");
        assert_eq!(of_a_point(&module, Op::AccessChain).len(), 1, "{ty}");
        assert_eq!(of_a_point(&module, Op::ULessThan).len(), 1, "{ty}: the index is kept in bounds");
        validated(&words(&kernel), ty.name());
    }
}

#[test]
fn both_entry_points_are_named_and_see_the_global_id() {
    let module = module(&heat(Type::F64).verified());
    let entry_points: Vec<String> = module
        .entry_points
        .iter()
        .map(|entry_point| match &entry_point.operands[2..] {
            [Operand::LiteralString(name), Operand::IdRef(interface)] => {
                let wanted = [
                    Operand::IdRef(*interface),
                    Operand::Decoration(Decoration::BuiltIn),
                    Operand::BuiltIn(BuiltIn::GlobalInvocationId),
                ];
                assert!(module.annotations.iter().any(|decoration| decoration.operands == wanted));
                name.clone()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(entry_points, ["heat", "heat_rows"]);
}

#[test]
fn contraction_is_off_unless_the_user_allows_it() {
    let off = |module: &Module| {
        let off = Operand::ExecutionMode(ExecutionMode::ContractionOff);
        module.execution_modes.iter().filter(|mode| mode.operands.contains(&off)).count()
    };
    let mut draft = heat(Type::F64);
    assert_eq!(off(&module(&heat(Type::F64).verified())), 2);
    draft.kernel.contract = true;
    assert_eq!(off(&module(&draft.verified())), 0);
}

#[test]
fn only_a_function_that_is_called_for_separate_buffers_is_promised_that_they_are() {
    let module = module(&heat(Type::F64).verified());
    let attributes: Vec<&Instruction> = module
        .annotations
        .iter()
        .filter(|decoration| decoration.operands[1] == Operand::Decoration(Decoration::FuncParamAttr))
        .collect();
    let [apart] = attributes[..] else { panic!("{attributes:?}") };
    assert_eq!(apart.operands[2], Operand::FunctionParameterAttribute(FunctionParameterAttribute::NoAlias));
    let [point, function, row] = FUNCTIONS.map(|function| &module.functions[function]);
    assert_eq!(function.parameters[0].result_id, Some(apart.operands[0].unwrap_id_ref()), "the result");

    let calls = instructions(&module, Op::FunctionCall);
    assert_eq!(calls.len(), 1);
    assert!(row.all_inst_iter().any(|instruction| instruction == calls[0]));
    let compared = row.all_inst_iter().filter(|instruction| instruction.class.opcode == Op::INotEqual);
    assert_eq!(compared.count(), 3, "the result with each field");
    assert!(!point.all_inst_iter().any(|instruction| instruction.class.opcode == Op::ConvertPtrToU));
}

#[test]
fn each_cell_is_loaded_once() {
    let module = module(&heat(Type::F64).verified());
    // Entry points load the global id too.
    for (function, ids) in FUNCTIONS.into_iter().zip([1, 0, 1]) {
        let loads = ops(&module, function).into_iter().filter(|op| *op == Op::Load).count();
        assert_eq!(loads, 7 + 1 + 7 + ids);
    }
}

#[test]
fn loads_and_stores_state_their_alignment() {
    for (ty, bytes) in [(Type::F64, 8), (Type::F32, 4)] {
        let module = module(&heat(ty).verified());
        let mut accesses = instructions(&module, Op::Load);
        accesses.extend(instructions(&module, Op::Store));
        for access in accesses {
            let of_ids = access.operands.last() == Some(&Operand::LiteralBit32(32));
            assert!(of_ids || access.operands.last() == Some(&Operand::LiteralBit32(bytes)), "{access:?}");
        }
    }
}

#[test]
fn all_loads_come_before_the_stores() {
    // In place: the second result must see the old value of `a` even if the first overwrites it.
    let mut draft = Draft::new("both");
    let (a, b) = (draft.field("a", Type::F64), draft.field("b", Type::F64));
    let outputs = [draft.output(Type::F64), draft.output(Type::F64)];
    for (output, field) in outputs.into_iter().zip([b, a]) {
        let value = draft.load(field, [0; 3]);
        let store = draft.store(output, value);
        draft.kernel.body.push(store);
    }
    let module = module(&draft.verified());
    for function in FUNCTIONS {
        let ops = ops(&module, function);
        let last_load = ops.iter().rposition(|op| *op == Op::Load);
        let first_store = ops.iter().position(|op| *op == Op::Store);
        assert!(last_load < first_store, "{ops:?}");
    }
}

#[test]
fn literals_keep_their_bits() {
    for bits in [0, 1 << 63, 0.1f64.to_bits(), f64::INFINITY.to_bits(), 0xFFF8_0000_0000_1234, 1] {
        let kernel = single(&[], |draft, _| draft.literal(Value::F64(f64::from_bits(bits))));
        let module = module(&kernel);
        let constants = instructions(&module, Op::Constant);
        let double = names(&module).into_iter().find(|(_, name)| name == "f64").map(|(id, _)| id);
        let ours: Vec<_> = constants.iter().filter(|constant| constant.result_type == double).collect();
        assert_eq!(ours.len(), 1);
        assert_eq!(ours[0].operands, [Operand::LiteralBit64(bits)]);
    }
}

#[test]
fn branches_meet_in_a_phi() {
    let mut draft = Draft::new("choose");
    let a = draft.field("a", Type::F64);
    let out = draft.output(Type::F64);
    let local = draft.local("chosen", Type::F64, true);
    let [here, left] = [[0; 3], [-1, 0, 0]].map(|offset| draft.load(a, offset));
    let condition = draft.binary(Binary::Lt, here, left);
    let place = draft.place();
    let bind = draft.bind(local, here);
    let then = vec![Stmt::Assign { local, value: left, place }];
    let chosen = draft.expr(ExprKind::Local(local), Type::F64);
    let store = draft.store(out, chosen);
    draft.kernel.body = vec![bind, Stmt::If { condition, then, otherwise: vec![], place }, store];
    let kernel = draft.verified();
    let module = module(&kernel);
    let phis = |function| ops(&module, function).into_iter().filter(|op| *op == Op::Phi).count();
    assert_eq!(FUNCTIONS.map(phis), [1, 2, 2], "a row's loop has one of its own");
    assert_eq!(instructions(&module, Op::Variable).len(), 1, "the global id is the only variable");
    validated(&words(&kernel), "choose");
}

#[test]
fn the_text_shows_names_and_source_lines() {
    let text = disassemble(&words(&heat(Type::F64).verified()));
    for line in [
        "OpEntryPoint Kernel %heat \"heat\" %global_id",
        "%heat_rows = OpFunction %void None %",
        "%beta = OpFunctionParameter %f64",
        "    ; heat.rs:4",
        "    %u_mX = OpLoad %f64 %u_mX_cell Aligned 8",
        "    OpBranchConditional %",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    assert!(text.contains("%flux_X = OpFMul %f64 "), "locals give their names\n{text}");
    assert!(!text.contains("OpName") && !text.contains("OpLine"));
}

#[test]
fn what_is_no_module_is_said_to_be_none() {
    let words = words(&heat(Type::F64).verified());
    let whole = disassemble(&words);
    for length in 0..words.len() {
        let text = disassemble(&words[..length]);
        assert!(text.starts_with("; not a SPIR-V module: ") || text.len() < whole.len());
    }
    for wrong in [&words[..3], &words[..words.len() - 1], &[0; 8], &[]] {
        assert!(disassemble(wrong).starts_with("; not a SPIR-V module: "), "{}", disassemble(wrong));
    }
}
