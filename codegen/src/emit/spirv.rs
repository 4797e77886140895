//! SPIR-V 1.0 for OpenCL, written with `rspirv`.
//!
//! A module holds two entry points with the same arguments: `NAME` computes one point per work item (global ids 0, 1,
//! 2 along X, Y, Z), `NAME_rows` one row per work item (ids 0, 1 along Y, Z). Both guard against ids outside the box,
//! so the global size may be rounded up. The arguments, in order, as the OpenCL C of the same kernel has them too:
//!
//! 1. one pointer per output, then one per field;
//! 2. for each of these pointers a 64-bit unsigned integer: the element index of the subdomain's origin (0, 0, 0);
//! 3. the scalars; one of 8 bits is the low part of a 32-bit integer, and a truth value is such an integer, true unless
//!    0, because `bool` has no size and bytes by value are awkward;
//! 4. the distance of rows `sy` and of planes `sz` in elements, 64-bit signed, common to all buffers;
//! 5. the first point `lo_x`, `lo_y`, `lo_z` of the box and its size `n_x`, `n_y`, `n_z`, 32-bit signed;
//! 6. only if the kernel asks for an index: the global index `g_x`, `g_y`, `g_z` of the subdomain's point (0, 0, 0),
//!    32-bit signed.
//!
//! Point (i, j, k) of a buffer is element origin + i + j * sy + k * sz. A cell of truth values is a byte, 0 or 1.
//!
//! The module asks for nothing that a consumer may lack: no `Int8` without bytes to load or compute with, no `Vector16`
//! or `Linkage`, integer constants by `OpConstant` (translators have failed on `OpConstantNull`), `ContractionOff`
//! unless the kernel allows fusion.
//! Single-precision division and square root are correctly rounded only if the program is built with
//! `-cl-fp32-correctly-rounded-divide-sqrt`; double precision always is.

mod body;
mod disassemble;
mod module;
mod operations;
#[cfg(test)]
mod tests;

use rspirv::binary::Assemble;
use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, ExecutionMode, ExecutionModel, FunctionControl, FunctionParameterAttribute, Op, Word};

pub use disassemble::disassemble;

use crate::analyse::{Analysis, analyse};
use crate::emit::names::{Names, entry_point, rows_entry_point};
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Kernel, Role, Type};
use crate::verify::Verified;
use body::Body;
use module::Module;

/// Emits SPIR-V 1.0 with the OpenCL memory model and 64-bit pointers.
pub struct SpirV;

impl Emitter for SpirV {
    fn target(&self) -> Target {
        Target::SpirV
    }

    fn emit(&self, kernel: &Verified) -> Code {
        let source = Source { kernel, facts: analyse(kernel), names: Names::new(kernel, Target::SpirV) };
        let mut module = Module::new(kernel);
        function(&mut module, &source, Mapping::Point);
        function(&mut module, &source, Mapping::Row);
        Code::Words(module.finish().assemble())
    }
}

/// The kernel and what has been found out about it.
struct Source<'k> {
    kernel: &'k Kernel,
    facts: Analysis,
    names: Names,
}

/// What one work item computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mapping {
    /// One point.
    Point,
    /// All points of the box along X.
    Row,
}

/// The arguments of an entry point.
struct Arguments {
    /// Outputs, then fields.
    buffers: Vec<Buffer>,
    scalars: Vec<Word>,
    /// The distances of rows and planes.
    strides: [Word; 2],
    /// The first point of the box.
    lo: [Word; 3],
    /// The size of the box.
    n: [Word; 3],
    /// The global index of the subdomain's origin, if the kernel asks for an index.
    global: Option<[Word; 3]>,
}

/// A pointer argument.
struct Buffer {
    name: String,
    ty: Type,
    pointer: Word,
    /// The index of the element at the subdomain's origin.
    origin: Word,
    /// Whether the kernel touches it at all.
    used: bool,
}

fn function(module: &mut Module, source: &Source<'_>, mapping: Mapping) {
    let kernel = source.kernel;
    let name = match mapping {
        Mapping::Point => entry_point(&kernel.name),
        Mapping::Row => rows_entry_point(&kernel.name),
    };
    let signature = signature(module, source);
    let void = module.void;
    let function =
        module.builder.begin_function(void, None, FunctionControl::NONE, signature).expect("no function is open");
    module.name(function, name.clone());
    let interface = [module.invocation];
    module.builder.entry_point(ExecutionModel::Kernel, function, name, interface);
    if !kernel.contract {
        module.builder.execution_mode(function, ExecutionMode::ContractionOff, []);
    }
    let arguments = arguments(module, source);

    let entry = module.label("entry");
    module.open(entry);
    let body = Body::new(module, source, &arguments);
    match mapping {
        Mapping::Point => point(body, &arguments),
        Mapping::Row => row(body, &arguments),
    }
    module.builder.ret().expect("the last block is open");
    module.builder.end_function().expect("a function is open");
}

fn signature(module: &mut Module, source: &Source<'_>) -> Word {
    let kernel = source.kernel;
    let outputs = kernel.outputs.iter().map(|output| output.ty);
    let cells: Vec<Type> = outputs.chain(kernel.fields.iter().map(|field| field.ty)).collect();
    let mut types: Vec<Word> = cells.iter().map(|ty| module.pointer(*ty)).collect();
    types.extend(cells.iter().map(|_| module.index));
    types.extend(kernel.params.iter().map(|param| module.argument(param.ty)));
    types.extend([module.index; 2]);
    types.extend([module.int; 6]);
    if source.facts.uses_index {
        types.extend([module.int; 3]);
    }
    let void = module.void;
    module.builder.type_function(void, types)
}

fn arguments(module: &mut Module, source: &Source<'_>) -> Arguments {
    let Source { kernel, facts, names } = source;
    let (index, int) = (module.index, module.int);
    let mut buffers = Vec::new();
    for (id, output) in kernel.outputs.enumerate() {
        match output.role {
            Role::Value => {}
            Role::Sum | Role::Max | Role::Min => unreachable!("verified: no result is folded"),
        }
        let name = names.output(id).to_string();
        let ty = module.pointer(output.ty);
        let pointer = module.parameter(ty, &name);
        // Whoever launches promises that no result shares memory with a field; without a word of it, rows don't vectorise.
        attribute(module, pointer, FunctionParameterAttribute::NoAlias);
        buffers.push(Buffer { name, ty: output.ty, pointer, origin: 0, used: true });
    }
    for ((id, field), footprint) in kernel.fields.enumerate().zip(&facts.footprints) {
        assert!(field.axes == [true; 3], "verified: fields extend along all axes");
        let name = names.field(id).to_string();
        let ty = module.pointer(field.ty);
        let pointer = module.parameter(ty, &name);
        attribute(module, pointer, FunctionParameterAttribute::NoWrite);
        attribute(module, pointer, FunctionParameterAttribute::NoAlias);
        let used = !footprint.reads.is_empty();
        buffers.push(Buffer { name, ty: field.ty, pointer, origin: 0, used });
    }
    for buffer in &mut buffers {
        buffer.origin = module.parameter(index, &format!("{}_origin", buffer.name));
    }
    let mut scalars = Vec::new();
    for (id, param) in kernel.params.enumerate() {
        let ty = module.argument(param.ty);
        scalars.push(module.parameter(ty, names.param(id)));
    }
    Arguments {
        buffers,
        scalars,
        strides: ["sy", "sz"].map(|name| module.parameter(index, name)),
        lo: ["lo_x", "lo_y", "lo_z"].map(|name| module.parameter(int, name)),
        n: ["n_x", "n_y", "n_z"].map(|name| module.parameter(int, name)),
        global: facts.uses_index.then(|| ["g_x", "g_y", "g_z"].map(|name| module.parameter(int, name))),
    }
}

fn attribute(module: &mut Module, parameter: Word, attribute: FunctionParameterAttribute) {
    let operand = Operand::FunctionParameterAttribute(attribute);
    module.builder.decorate(parameter, Decoration::FuncParamAttr, [operand]);
}

/// The point (id + lo) in the subdomain along each axis that work items span, and whether the id is inside the box.
fn position(module: &mut Module, arguments: &Arguments, axes: std::ops::Range<usize>) -> (Vec<Word>, Word) {
    let (index, truth) = (module.index, module.ty(Type::Bool));
    let ids = module.invocation_ids();
    let mut inside = None;
    let mut point = Vec::new();
    for (item, axis) in axes.enumerate() {
        let name = ["x", "y", "z"][axis];
        let id = module.component(ids, item as u32);
        module.name(id, name);
        let n = module.value(Op::SConvert, index, &[arguments.n[axis]]);
        let within = module.value(Op::SLessThan, truth, &[id, n]);
        inside = Some(match inside {
            None => within,
            Some(inside) => module.value(Op::LogicalAnd, truth, &[inside, within]),
        });
        let lo = module.value(Op::SConvert, index, &[arguments.lo[axis]]);
        let at = module.value(Op::IAdd, index, &[lo, id]);
        module.name(at, ["i", "j", "k"][axis]);
        point.push(at);
    }
    (point, inside.expect("work items span an axis at least"))
}

/// `i + j * sy + k * sz`.
fn element(module: &mut Module, arguments: &Arguments, [i, j, k]: [Word; 3]) -> Word {
    let index = module.index;
    let [sy, sz] = arguments.strides;
    let rows = module.value(Op::IMul, index, &[j, sy]);
    let planes = module.value(Op::IMul, index, &[k, sz]);
    let row = module.value(Op::IAdd, index, &[i, rows]);
    module.value(Op::IAdd, index, &[row, planes])
}

/// For each buffer the pointer to the cell `element` away from the subdomain's origin.
fn cells(module: &mut Module, arguments: &Arguments, element: Word, suffix: &str) -> Vec<Word> {
    let mut cells = Vec::new();
    for buffer in &arguments.buffers {
        if !buffer.used {
            cells.push(buffer.pointer);
            continue;
        }
        let index = module.index;
        let position = module.value(Op::IAdd, index, &[buffer.origin, element]);
        let cell = module.displaced(buffer.ty, buffer.pointer, position);
        module.name(cell, format!("{}_{suffix}", buffer.name));
        cells.push(cell);
    }
    cells
}

fn point(mut body: Body<'_, '_>, arguments: &Arguments) {
    let module = &mut *body.module;
    let (at, inside) = position(module, arguments, 0..3);
    let (compute, done) = (module.label("point"), module.label("done"));
    module.select(inside, compute, done, done);

    module.open(compute);
    let at = [at[0], at[1], at[2]];
    let element = element(module, arguments, at);
    let cells = cells(module, arguments, element, "cell");
    body.run(&cells, arguments.global.map(|_| at));
    body.module.branch(done);

    body.module.open(done);
}

fn row(mut body: Body<'_, '_>, arguments: &Arguments) {
    let module = &mut *body.module;
    let (index, truth) = (module.index, module.ty(Type::Bool));
    let (at, inside) = position(module, arguments, 1..3);
    let zero = module.index_constant(0);
    let one = module.index_constant(1);
    let n = module.value(Op::SConvert, index, &[arguments.n[0]]);
    let first = module.value(Op::SConvert, index, &[arguments.lo[0]]);
    let [start, head, compute, next, end, done] =
        ["row", "head", "point", "next", "end", "done"].map(|name| module.label(name));
    module.select(inside, start, done, done);

    module.open(start);
    let element = element(module, arguments, [first, at[0], at[1]]);
    let rows = cells(module, arguments, element, "row");
    module.branch(head);

    module.open(head);
    let following = module.label("x_next");
    let x = module.phi(index, &[(zero, start), (following, next)]);
    module.name(x, "x");
    let more = module.value(Op::SLessThan, truth, &[x, n]);
    module.repeat(more, compute, next, end);

    module.open(compute);
    let mut cells = Vec::new();
    for (buffer, row) in arguments.buffers.iter().zip(rows) {
        let cell = if buffer.used { module.displaced(buffer.ty, row, x) } else { row };
        if buffer.used {
            module.name(cell, format!("{}_cell", buffer.name));
        }
        cells.push(cell);
    }
    let at = arguments.global.map(|_| [module.value(Op::IAdd, index, &[first, x]), at[0], at[1]]);
    body.run(&cells, at);
    let module = &mut *body.module;
    module.branch(next);

    module.open(next);
    module.define(Op::IAdd, index, following, &[x, one]);
    module.branch(head);

    module.open(end);
    module.branch(done);
    module.open(done);
}
