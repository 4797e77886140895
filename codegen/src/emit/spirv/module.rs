//! The module under construction: what both entry points share, and instructions for the block that is open.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rspirv::dr::{Builder, InsertPoint, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, FunctionControl, FunctionParameterAttribute, LoopControl,
    MemoryAccess, MemoryModel, Op, OpenclStd100Op, SelectionControl, SourceLanguage, StorageClass, Word,
};

use super::fold::stored;
use crate::ir::{Binary, Id, Kernel, Place, Table, Type, Value};

/// A module, possibly with an open function and an open block.
pub(super) struct Module {
    pub(super) builder: Builder,
    pub(super) void: Word,
    /// 64-bit integers: indices, strides and ids.
    pub(super) index: Word,
    /// 32-bit integers.
    pub(super) int: Word,
    /// The variable with the global ids of the work item.
    pub(super) invocation: Word,
    /// The label of the open block.
    pub(super) block: Word,
    ids: Word,
    /// The types of values in registers.
    types: BTreeMap<Type, Word>,
    /// Pointers to cells in buffers.
    pointers: BTreeMap<Type, Word>,
    constants: BTreeMap<(Word, u64), Word>,
    /// Every id in `constants`.
    constant_ids: BTreeSet<Word>,
    tables: Vec<Elements>,
    /// The instruction set OpenCL.std.
    opencl: Word,
    /// Values computed in the blocks that dominate the open one; the last scope is the innermost. Only looked up, so
    /// that the order of a hash can't reach the output.
    known: Vec<HashMap<Computation, Word>>,
    named: BTreeSet<Word>,
    file: Option<Word>,
    /// The source line of the instructions to come, and the one in force in the open block; 0 is none.
    line: u32,
    line_in_force: u32,
}

type Computation = (Op, Word, Vec<Operand>);

/// A table in constant memory.
struct Elements {
    variable: Word,
    /// The type of pointers to an element.
    pointer: Word,
    ty: Type,
    last: u64,
}

impl Module {
    /// The head of the module for `kernel`.
    pub(super) fn new(kernel: &Kernel) -> Module {
        let (types, cells) = (types(kernel), cells(kernel));
        let mut builder = Builder::new();
        builder.set_version(1, 0);
        for capability in [Capability::Addresses, Capability::Kernel, Capability::Int64] {
            builder.capability(capability);
        }
        if types.contains(&Type::F64) {
            builder.capability(Capability::Float64);
        }
        if types.iter().any(|ty| matches!(ty, Type::I8 | Type::U8)) {
            builder.capability(Capability::Int8);
        }
        let opencl = builder.ext_inst_import("OpenCL.std");
        builder.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
        let file = (!kernel.file.is_empty()).then(|| builder.string(kernel.file.clone()));
        builder.source(SourceLanguage::OpenCL_C, 102_000, file, None::<String>);

        let void = builder.type_void();
        let index = builder.type_int(64, 0);
        let int = builder.type_int(32, 0);
        let ids = builder.type_vector(index, 3);
        let pointer_to_ids = builder.type_pointer(None, StorageClass::Input, ids);
        let invocation = builder.variable(pointer_to_ids, None, StorageClass::Input, None);
        let global_id = Operand::BuiltIn(BuiltIn::GlobalInvocationId);
        builder.decorate(invocation, Decoration::BuiltIn, [global_id]);
        builder.decorate(invocation, Decoration::Constant, []);

        let mut module = Module {
            builder,
            void,
            index,
            int,
            invocation,
            block: 0,
            ids,
            types: BTreeMap::new(),
            pointers: BTreeMap::new(),
            constants: BTreeMap::new(),
            constant_ids: BTreeSet::new(),
            tables: Vec::new(),
            opencl,
            known: vec![HashMap::new()],
            named: BTreeSet::new(),
            file,
            line: 0,
            line_in_force: 0,
        };
        for (id, name) in [(void, "void"), (index, "u64"), (int, "u32"), (ids, "u64x3")] {
            module.name(id, name);
        }
        // The set of functions has no name: llvm-spirv 15 aborts at one.
        module.name(pointer_to_ids, "u64x3_pointer");
        module.name(invocation, "global_id");
        for ty in types {
            module.add_type(ty);
            if cells.contains(&ty) {
                module.add_pointer(ty);
            }
        }
        for table in kernel.tables.iter() {
            module.add_table(table);
        }
        module
    }

    fn add_type(&mut self, ty: Type) {
        let id = match ty {
            Type::F64 => self.builder.type_float(64, None),
            Type::F32 => self.builder.type_float(32, None),
            // One type for both signs: only operations tell them apart. A type that is there already is given again.
            Type::I64 | Type::U64 => self.index,
            Type::I32 | Type::U32 => self.int,
            Type::I8 | Type::U8 => self.builder.type_int(8, 0),
            Type::Bool => self.builder.type_bool(),
        };
        self.types.insert(ty, id);
        self.name(id, unsigned(ty).name());
    }

    fn add_pointer(&mut self, ty: Type) {
        let to = self.ty(cell(ty));
        let pointer = self.builder.type_pointer(None, StorageClass::CrossWorkgroup, to);
        self.pointers.insert(ty, pointer);
        self.name(pointer, format!("{}_pointer", unsigned(cell(ty))));
    }

    /// A table lies in constant memory, once for both entry points, its elements as arguments come.
    fn add_table(&mut self, table: &Table) {
        let element = self.argument(table.ty);
        let values: Vec<Word> =
            table.values.iter().map(|value| self.literal(Value::from_bits(wide(table.ty), value.bits()))).collect();
        let length = self.index_constant(values.len() as i64);
        let ty = self.builder.type_array(element, length);
        let values = self.builder.constant_composite(ty, values);
        let [whole, pointer] =
            [ty, element].map(|ty| self.builder.type_pointer(None, StorageClass::UniformConstant, ty));
        let variable = self.builder.variable(whole, None, StorageClass::UniformConstant, Some(values));
        self.builder.decorate(variable, Decoration::Constant, []);
        self.name(variable, table.name.clone());
        let last = table.values.len() as u64 - 1;
        self.tables.push(Elements { variable, pointer, ty: table.ty, last });
    }

    /// The finished module.
    pub(super) fn finish(self) -> rspirv::dr::Module {
        self.builder.module()
    }

    /// The type of values in registers.
    pub(super) fn ty(&self, ty: Type) -> Word {
        self.types[&ty]
    }

    /// The type of pointers to cells.
    pub(super) fn pointer(&self, ty: Type) -> Word {
        self.pointers[&ty]
    }

    /// The type of scalar arguments; bytes and truth values travel as integers.
    pub(super) fn argument(&self, ty: Type) -> Word {
        self.ty(wide(ty))
    }

    /// The value of a scalar that came as an argument does.
    pub(super) fn scalar(&mut self, ty: Type, argument: Word) -> Word {
        match ty {
            Type::F64 | Type::F32 | Type::I64 | Type::I32 | Type::U64 | Type::U32 => argument,
            Type::I8 | Type::U8 => self.value(Op::UConvert, self.ty(ty), &[argument]),
            Type::Bool => {
                let zero = self.literal(Value::U32(0));
                self.value(Op::INotEqual, self.ty(ty), &[argument, zero])
            }
        }
    }

    /// Names `id` for those who read the module; the first name stays.
    pub(super) fn name(&mut self, id: Word, name: impl Into<String>) {
        if self.named.insert(id) {
            self.builder.name(id, name);
        }
    }

    /// A function of this type without a result: `declare` declares its parameters, from which `fill` writes its blocks.
    pub(super) fn routine<P>(
        &mut self,
        name: &str,
        signature: Word,
        declare: impl FnOnce(&mut Module) -> P,
        fill: impl FnOnce(&mut Module, &P),
    ) -> Word {
        let control = FunctionControl::NONE;
        let id = self.builder.begin_function(self.void, None, control, signature).expect("no function is open");
        self.name(id, name);
        let parameters = declare(self);
        let entry = self.label("entry");
        self.open(entry);
        self.enter(); // Nothing is known to the next function.
        fill(self, &parameters);
        self.leave();
        self.builder.ret().expect("the last block is open");
        self.builder.end_function().expect("a function is open");
        id
    }

    /// Calls a function without a result.
    pub(super) fn invoke(&mut self, function: Word, arguments: Vec<Word>) {
        self.builder.function_call(self.void, None, function, arguments).expect("a block is open");
    }

    /// A parameter of the open function.
    pub(super) fn parameter(&mut self, ty: Word, name: &str) -> Word {
        let id = self.builder.function_parameter(ty).expect("a function is open");
        self.name(id, name);
        id
    }

    /// What `parameter` points to is reached in no other way.
    pub(super) fn alone(&mut self, parameter: Word) {
        let attribute = Operand::FunctionParameterAttribute(FunctionParameterAttribute::NoAlias);
        self.builder.decorate(parameter, Decoration::FuncParamAttr, [attribute]);
    }

    /// An integer constant of type [`Module::index`].
    pub(super) fn index_constant(&mut self, value: i64) -> Word {
        self.constant(Type::U64, value as u64, || format!("u64_{value}"))
    }

    /// A constant of the kernel, by its bits.
    pub(super) fn literal(&mut self, value: Value) -> Word {
        let (ty, bits) = (value.ty(), value.bits());
        match value {
            Value::F64(number) => self.constant(ty, bits, || format!("f64_{number:?}")),
            Value::F32(number) => self.constant(ty, bits, || format!("f32_{number:?}")),
            Value::I64(number) => self.constant(ty, bits, || format!("i64_{number}")),
            Value::I32(number) => self.constant(ty, bits, || format!("i32_{number}")),
            Value::I8(number) => self.constant(ty, bits, || format!("i8_{number}")),
            Value::U64(number) => self.constant(ty, bits, || format!("u64_{number}")),
            Value::U32(number) => self.constant(ty, bits, || format!("u32_{number}")),
            Value::U8(number) => self.constant(ty, bits, || format!("u8_{number}")),
            Value::Bool(truth) => self.constant(ty, bits, || truth.to_string()),
        }
    }

    /// The one constant of type `ty` with these bits.
    fn constant(&mut self, ty: Type, bits: u64, name: impl FnOnce() -> String) -> Word {
        let id = self.ty(ty);
        if let Some(known) = self.constants.get(&(id, bits)) {
            return *known;
        }
        let constant = match (ty, ty.bytes()) {
            (Type::Bool, _) if bits == 0 => self.builder.constant_false(id),
            (Type::Bool, _) => self.builder.constant_true(id),
            (_, 8) => self.builder.constant_bit64(id, bits),
            (_, _) => self.builder.constant_bit32(id, bits as u32),
        };
        self.constants.insert((id, bits), constant);
        self.constant_ids.insert(constant);
        self.name(constant, name().replace('-', "m"));
        constant
    }

    /// Whether the value is a constant.
    pub(super) fn is_constant(&self, value: Word) -> bool {
        self.constant_ids.contains(&value)
    }

    /// A fresh id for a block, or for a value that is used before it is defined.
    pub(super) fn label(&mut self, name: &str) -> Word {
        let id = self.builder.id();
        self.name(id, name);
        id
    }

    /// Begins the block `label`.
    pub(super) fn open(&mut self, label: Word) {
        self.builder.begin_block(Some(label)).expect("the block before is closed");
        self.block = label;
        self.line_in_force = 0;
    }

    /// Begins the first block of a region whose values are unknown to the rest of the function.
    pub(super) fn enter(&mut self) {
        self.known.push(HashMap::new());
    }

    /// Ends that region.
    pub(super) fn leave(&mut self) {
        self.known.pop().expect("a region was entered");
    }

    /// The instructions to come are due to the source at `place`.
    pub(super) fn at(&mut self, place: Place) {
        self.line = place.line;
    }

    fn insert(&mut self, instruction: Instruction) {
        if let Some(file) = self.file
            && self.line != self.line_in_force
        {
            match self.line {
                0 => self.builder.no_line(),
                line => self.builder.line(file, line, 0),
            }
            self.line_in_force = self.line;
        }
        self.builder.insert_into_block(InsertPoint::End, instruction).expect("a block is open");
    }

    /// The result of a pure instruction, computed anew unless a dominating block has it.
    fn pure(&mut self, op: Op, ty: Word, operands: Vec<Operand>) -> Word {
        let computation = (op, ty, operands);
        if let Some(id) = self.known.iter().rev().find_map(|known| known.get(&computation)) {
            return *id;
        }
        let id = self.builder.id();
        self.insert(Instruction::new(op, Some(ty), Some(id), computation.2.clone()));
        self.known.last_mut().expect("the function's own scope").insert(computation, id);
        id
    }

    /// A pure operation on values.
    pub(super) fn value(&mut self, op: Op, ty: Word, operands: &[Word]) -> Word {
        self.pure(op, ty, operands.iter().map(|id| Operand::IdRef(*id)).collect())
    }

    /// As [`Module::value`] for an id that is in use already.
    pub(super) fn define(&mut self, op: Op, ty: Word, id: Word, operands: &[Word]) {
        let operands = operands.iter().map(|id| Operand::IdRef(*id)).collect();
        self.insert(Instruction::new(op, Some(ty), Some(id), operands));
    }

    /// A function of OpenCL.std.
    pub(super) fn call(&mut self, function: OpenclStd100Op, ty: Word, arguments: &[Word]) -> Word {
        let mut operands = vec![Operand::IdRef(self.opencl), Operand::LiteralExtInstInteger(function as u32)];
        operands.extend(arguments.iter().map(|id| Operand::IdRef(*id)));
        self.pure(Op::ExtInst, ty, operands)
    }

    /// The global ids of the work item.
    pub(super) fn invocation_ids(&mut self) -> Word {
        let pointer = Operand::IdRef(self.invocation);
        let aligned = [Operand::MemoryAccess(MemoryAccess::ALIGNED), Operand::LiteralBit32(32)];
        self.pure(Op::Load, self.ids, [pointer].into_iter().chain(aligned).collect())
    }

    /// The type of two 32-bit integers.
    pub(super) fn pair(&mut self) -> Word {
        // A type that is there already is given again.
        let pair = self.builder.type_vector(self.int, 2);
        self.name(pair, "u32x2");
        pair
    }

    /// A component, of type `ty`, of a vector.
    pub(super) fn component(&mut self, ty: Word, vector: Word, item: u32) -> Word {
        let operands = vec![Operand::IdRef(vector), Operand::LiteralBit32(item)];
        self.pure(Op::CompositeExtract, ty, operands)
    }

    /// `pointer + elements`, inside the same buffer.
    pub(super) fn displaced(&mut self, ty: Type, pointer: Word, elements: Word) -> Word {
        self.value(Op::InBoundsPtrAccessChain, self.pointer(ty), &[pointer, elements])
    }

    /// The cell at `pointer`. Pure: all loads of a point come before its stores.
    pub(super) fn load(&mut self, ty: Type, pointer: Word) -> Word {
        let cell = self.read(cell(ty), pointer);
        match ty {
            Type::Bool => {
                let zero = self.literal(Value::U8(0));
                self.value(Op::INotEqual, self.ty(ty), &[cell, zero])
            }
            _ => cell,
        }
    }

    /// Writes the cell at `pointer`.
    pub(super) fn store(&mut self, ty: Type, pointer: Word, value: Word) {
        let value = if ty == Type::Bool { self.cast(ty, cell(ty), value) } else { value };
        let mut operands = vec![Operand::IdRef(pointer), Operand::IdRef(value)];
        operands.extend(aligned(ty));
        self.insert(Instruction::new(Op::Store, None, None, operands));
    }

    /// The element of a table at an index of type u64, the last one past the end.
    pub(super) fn element(&mut self, table: Id<Table>, index: Word) -> Word {
        let Elements { variable, pointer, ty, last } = self.tables[table.index()];
        let last = self.literal(Value::U64(last));
        let index = self.extreme(Binary::Lt, Type::U64, last, index);
        // Not OpInBoundsAccessChain: Intel's graphics compiler fails on some (seen in 1.0.12504).
        let element = self.value(Op::AccessChain, pointer, &[variable, index]);
        let value = self.read(wide(ty), element);
        self.scalar(ty, value)
    }

    fn read(&mut self, ty: Type, pointer: Word) -> Word {
        let mut operands = vec![Operand::IdRef(pointer)];
        operands.extend(aligned(ty));
        self.pure(Op::Load, self.ty(ty), operands)
    }

    /// The value that came with the control flow; only at the head of a block.
    pub(super) fn phi(&mut self, ty: Word, from: &[(Word, Word)]) -> Word {
        let from = from.iter().copied();
        self.builder.phi(ty, None, from).expect("a block is open")
    }

    /// As [`Module::phi`] for an id that is in use already.
    pub(super) fn define_phi(&mut self, ty: Word, id: Word, from: &[(Word, Word)]) {
        let from = from.iter().copied();
        self.builder.phi(ty, Some(id), from).expect("a block is open");
    }

    /// Closes the block with a jump.
    pub(super) fn branch(&mut self, to: Word) {
        self.builder.branch(to).expect("a block is open");
    }

    /// Closes the block with a choice whose ways meet at `merge`.
    pub(super) fn select(&mut self, condition: Word, yes: Word, no: Word, merge: Word) {
        let builder = &mut self.builder;
        builder.selection_merge(merge, SelectionControl::NONE).expect("a block is open");
        builder.branch_conditional(condition, yes, no, []).expect("a block is open");
    }

    /// Closes the head of a loop: on to `body` while `more` holds, then to `end`.
    pub(super) fn repeat(&mut self, more: Word, body: Word, next: Word, end: Word) {
        let builder = &mut self.builder;
        builder.loop_merge(end, next, LoopControl::NONE, []).expect("a block is open");
        builder.branch_conditional(more, body, end, []).expect("a block is open");
    }
}

fn aligned(ty: Type) -> [Operand; 2] {
    let bytes = u32::try_from(ty.bytes()).expect("a cell is small");
    [Operand::MemoryAccess(MemoryAccess::ALIGNED), Operand::LiteralBit32(bytes)]
}

/// The types that `kernel` computes with, those of indices, and truth values, which every guard needs.
fn types(kernel: &Kernel) -> BTreeSet<Type> {
    let exprs = kernel.exprs.iter().map(|expr| expr.ty);
    let params = kernel.params.iter().map(|param| wide(param.ty));
    let tables = kernel.tables.iter().map(|table| wide(table.ty));
    let always = [Type::U64, Type::U32, Type::Bool];
    // A truth value in memory is a byte that nothing else may need.
    let cells = cells(kernel).into_iter().flat_map(|ty| [ty, cell(ty)]);
    let all = exprs.chain(params).chain(tables).chain(cells).chain(always);
    all.flat_map(|ty| [ty, unsigned(ty)]).collect()
}

/// The types of cells in buffers.
fn cells(kernel: &Kernel) -> BTreeSet<Type> {
    let outputs = kernel.outputs.iter().map(stored);
    outputs.chain(kernel.fields.iter().map(|field| field.ty)).collect()
}

/// How a cell is stored.
fn cell(ty: Type) -> Type {
    match ty {
        Type::Bool => Type::U8,
        ty => ty,
    }
}

/// How a value travels that is no cell: `bool` has no size, and bytes by value are awkward.
fn wide(ty: Type) -> Type {
    match ty {
        Type::I8 | Type::U8 | Type::Bool => Type::U32,
        ty => ty,
    }
}

/// The unsigned type of the same width; by its name both go.
pub(super) fn unsigned(ty: Type) -> Type {
    match ty {
        Type::I64 => Type::U64,
        Type::I32 => Type::U32,
        Type::I8 => Type::U8,
        Type::F64 | Type::F32 | Type::U64 | Type::U32 | Type::U8 | Type::Bool => ty,
    }
}
