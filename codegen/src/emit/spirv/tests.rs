//! What the emitted modules are made of; that they compute the right bits is tested where there is a device.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{
    BuiltIn, Capability, Decoration, ExecutionMode, FunctionParameterAttribute, Op, OpenclStd100Op, Word,
};

use super::{SpirV, disassemble};
use crate::emit::{Code, Emitter};
use crate::ir::{
    Binary, Expr, ExprKind, Field, Function, Id, Kernel, Local, Offset, Output, Param, Place, Role, Stmt, Type, Unary,
    Value,
};
use crate::random::{self, Limits};
use crate::verify::{Verified, verify};

/// A kernel under construction; each expression is on a line of its own unless `line` stays.
#[derive(Default)]
struct Draft {
    kernel: Kernel,
    line: u32,
}

impl Draft {
    fn new(name: &str) -> Draft {
        let kernel = Kernel { name: name.into(), file: "heat.rs".into(), ..Kernel::default() };
        Draft { kernel, line: 1 }
    }

    fn place(&self) -> Place {
        Place { line: self.line, ..Place::default() }
    }

    fn field(&mut self, name: &str, ty: Type) -> Id<Field> {
        let place = self.place();
        self.kernel.fields.push(Field { name: name.into(), ty, place })
    }

    fn param(&mut self, name: &str, ty: Type) -> Id<Expr> {
        let place = self.place();
        let param = self.kernel.params.push(Param { name: name.into(), ty, place });
        self.expr(ExprKind::Param(param), ty)
    }

    fn local(&mut self, name: &str, ty: Type, mutable: bool) -> Id<Local> {
        self.kernel.locals.push(Local { name: name.into(), ty, mutable, note: None })
    }

    fn output(&mut self, ty: Type) -> Id<Output> {
        self.kernel.outputs.push(Output { ty, role: Role::Value })
    }

    fn expr(&mut self, kind: ExprKind, ty: Type) -> Id<Expr> {
        let place = self.place();
        self.kernel.exprs.push(Expr { kind, ty, place })
    }

    fn literal(&mut self, value: Value) -> Id<Expr> {
        self.expr(ExprKind::Literal(value), value.ty())
    }

    fn load(&mut self, field: Id<Field>, offset: [i32; 3]) -> Id<Expr> {
        let ty = self.kernel.fields[field].ty;
        self.expr(ExprKind::Load { field, offset: Offset(offset) }, ty)
    }

    fn binary(&mut self, op: Binary, a: Id<Expr>, b: Id<Expr>) -> Id<Expr> {
        let ty = match op.kind() {
            crate::ir::BinaryKind::Arithmetic => self.kernel.exprs[a].ty,
            _ => Type::Bool,
        };
        self.expr(ExprKind::Binary(op, a, b), ty)
    }

    fn bind(&mut self, local: Id<Local>, value: Id<Expr>) -> Stmt {
        Stmt::Let { local, value: Some(value), place: self.place() }
    }

    fn store(&mut self, output: Id<Output>, value: Id<Expr>) -> Stmt {
        Stmt::Store { output, value, place: self.place() }
    }

    fn verified(self) -> Verified {
        verify(self.kernel).expect("the kernel is sound")
    }
}

/// The heat equation: u + f + beta * (the fluxes through six faces), each flux a local of its own.
fn heat(ty: Type) -> Draft {
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

/// `out = value`, with fields `a` of f64 and `b` of f32 and a truth value `p` to build the value from.
fn single(value: impl FnOnce(&mut Draft, [Id<Expr>; 3]) -> Id<Expr>) -> Verified {
    let mut draft = Draft::new("single");
    let (a, b) = (draft.field("a", Type::F64), draft.field("b", Type::F32));
    let p = draft.param("p", Type::Bool);
    let (a, b) = (draft.load(a, [0; 3]), draft.load(b, [0; 3]));
    let value = value(&mut draft, [a, b, p]);
    let ty = draft.kernel.exprs[value].ty;
    match ty {
        Type::F64 | Type::F32 => {
            let out = draft.output(ty);
            let store = draft.store(out, value);
            draft.kernel.body.push(store);
        }
        Type::Bool => {
            let out = draft.output(Type::F64);
            let [one, two] = [1.0, 2.0].map(|number| draft.literal(Value::F64(number)));
            let (then, otherwise) = (draft.store(out, one), draft.store(out, two));
            let place = draft.place();
            let (then, otherwise) = (vec![then], vec![otherwise]);
            draft.kernel.body.push(Stmt::If { condition: value, then, otherwise, place });
        }
    }
    draft.verified()
}

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

/// The operation codes of entry point `index`, in order.
fn ops(module: &Module, index: usize) -> Vec<Op> {
    module.functions[index].all_inst_iter().map(|instruction| instruction.class.opcode).collect()
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
    for op in [
        Op::FAdd,
        Op::FSub,
        Op::FMul,
        Op::FDiv,
        Op::FNegate,
        Op::FConvert,
        Op::ExtInst,
        Op::FOrdLessThan,
        Op::FOrdLessThanEqual,
        Op::FOrdGreaterThan,
        Op::FOrdGreaterThanEqual,
        Op::FOrdEqual,
        Op::FUnordNotEqual,
        Op::LogicalAnd,
        Op::LogicalOr,
        Op::LogicalEqual,
        Op::LogicalNotEqual,
        Op::INotEqual,
        Op::Phi,
    ] {
        assert!(seen.get(&op).is_some_and(|times| *times >= 5), "{op:?} is hardly ever tested");
    }
    for op in [Op::ConstantNull, Op::LogicalNot] {
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
    draft.param("fixed", Type::Bool);
    let module = module(&draft.verified());
    let names = names(&module);
    let expected = "out u f kappa out_origin u_origin f_origin kappa_origin beta fixed sy sz \
                    lo_x lo_y lo_z n_x n_y n_z";
    assert_eq!(module.functions.len(), 2);
    for function in &module.functions {
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
        let expected = [&["f64_pointer"; 4][..], &["u64"; 4], &["f64", "u32", "u64", "u64"], &["u32"; 6]];
        assert_eq!(types, expected.concat());
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
fn results_and_fields_share_no_memory_and_fields_are_not_written() {
    let module = module(&heat(Type::F64).verified());
    let names = names(&module);
    let with = |attribute: FunctionParameterAttribute| -> Vec<&str> {
        let attribute = Operand::FunctionParameterAttribute(attribute);
        let with = module.annotations.iter().filter(|decoration| decoration.operands.contains(&attribute));
        with.map(|decoration| names[&decoration.operands[0].unwrap_id_ref()].as_str()).collect()
    };
    assert_eq!(with(FunctionParameterAttribute::NoAlias), ["out", "u", "f", "kappa", "out", "u", "f", "kappa"]);
    assert_eq!(with(FunctionParameterAttribute::NoWrite), ["u", "f", "kappa", "u", "f", "kappa"]);
}

#[test]
fn each_cell_is_loaded_once() {
    let module = module(&heat(Type::F64).verified());
    let ids = 1; // The global id is loaded too.
    for function in 0..2 {
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
    for function in 0..2 {
        let ops = ops(&module, function);
        let last_load = ops.iter().rposition(|op| *op == Op::Load);
        let first_store = ops.iter().position(|op| *op == Op::Store);
        assert!(last_load < first_store, "{ops:?}");
    }
}

/// `op` is the one that the kernel's value needs.
fn check(expected: Op, value: impl FnOnce(&mut Draft, [Id<Expr>; 3]) -> Id<Expr>) {
    let module = module(&single(value));
    assert_eq!(instructions(&module, expected).len(), 2, "{expected:?}, once per entry point");
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
        check(expected, |draft, [a, ..]| {
            let one = draft.literal(Value::F64(1.0));
            draft.binary(op, a, one)
        });
    }
}

#[test]
fn negation_keeps_the_sign_of_zero() {
    check(Op::FNegate, |draft, [a, ..]| draft.expr(ExprKind::Unary(Unary::Neg, a), Type::F64));
}

#[test]
fn casts_change_the_width_and_only_that() {
    check(Op::FConvert, |draft, [a, ..]| draft.expr(ExprKind::Cast(a), Type::F32));
    let same = single(|draft, [a, ..]| draft.expr(ExprKind::Cast(a), Type::F64));
    assert!(instructions(&module(&same), Op::FConvert).is_empty());
}

#[test]
fn functions_are_those_of_opencl() {
    for (function, expected) in [
        (Function::Sqrt, OpenclStd100Op::sqrt),
        (Function::Abs, OpenclStd100Op::fabs),
        (Function::MulAdd, OpenclStd100Op::fma),
    ] {
        let kernel =
            single(|draft, [_, b, _]| draft.expr(ExprKind::Call(function, vec![b; function.arity()]), Type::F32));
        let module = module(&kernel);
        for call in instructions(&module, Op::ExtInst) {
            assert_eq!(call.operands[1], Operand::LiteralExtInstInteger(expected as u32));
            assert_eq!(call.operands.len(), 2 + function.arity());
        }
    }
}

#[test]
fn a_truth_value_comes_as_an_integer() {
    check(Op::INotEqual, |_, [.., p]| p);
}

#[test]
fn literals_keep_their_bits() {
    for bits in [0, 1 << 63, 0.1f64.to_bits(), f64::INFINITY.to_bits(), 0xFFF8_0000_0000_1234, 1] {
        let kernel = single(|draft, _| draft.literal(Value::F64(f64::from_bits(bits))));
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
    assert_eq!([phis(0), phis(1)], [1, 2], "the row's loop has one of its own");
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
