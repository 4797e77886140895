//! The arguments of an entry point, and what they say about the work item.

use std::ops::Range;

use rspirv::spirv::{Op, Word};

use super::Source;
use super::fold::stored;
use super::module::Module;
use crate::ir::{Kernel, Role, Type, Value};

/// The arguments of an entry point.
pub(super) struct Arguments {
    /// Outputs, then fields.
    pub(super) buffers: Vec<Buffer>,
    /// For each of them the index of the element at the subdomain's origin.
    pub(super) origins: Vec<Origin>,
    /// What is the same for all points.
    pub(super) inputs: Inputs,
    /// The first point of the box.
    pub(super) lo: [Word; 3],
    /// The size of the box.
    pub(super) n: [Word; 3],
    /// Which points of it.
    pub(super) parity: Word,
}

/// A buffer as the kernel sees it.
pub(super) struct Buffer {
    pub(super) name: String,
    pub(super) ty: Type,
    /// Along which axes it extends.
    pub(super) axes: [bool; 3],
    /// Whether the kernel touches it at all.
    pub(super) used: bool,
    /// The argument.
    pub(super) pointer: Word,
}

/// Where the index of an origin is.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// It is this argument.
    Whole(Word),
    /// It is the first (0) or second (1) number of this one.
    Part(Word, u32),
}

/// What the values of a point depend on besides its place and the fields.
pub(super) struct Inputs {
    pub(super) scalars: Vec<Word>,
    /// The distances of rows and planes.
    pub(super) strides: [Word; 2],
    /// The global index of the subdomain's origin, if the kernel asks for an index.
    pub(super) global: Option<[Word; 3]>,
}

impl Arguments {
    /// The type of entry points.
    pub(super) fn signature(module: &mut Module, source: &Source<'_>) -> Word {
        let kernel = source.kernel;
        let mut types = Buffer::types(module, kernel);
        let buffers = types.len();
        types.extend(match source.has_paired_origins {
            false => vec![module.index; buffers],
            true => vec![module.pair(); buffers.div_ceil(2)],
        });
        types.extend(kernel.params.iter().map(|param| module.argument(param.ty)));
        types.extend([module.index; 2]);
        types.extend([module.int; 7]);
        if source.facts.uses_index {
            types.extend([module.int; 3]);
        }
        let void = module.void;
        module.builder.type_function(void, types)
    }

    /// Declares the parameters of the open function.
    pub(super) fn declare(module: &mut Module, source: &Source<'_>) -> Arguments {
        let int = module.int;
        let buffers = Buffer::declare(module, source);
        let origins = Origin::declare(module, source, &buffers);
        let scalars = scalars(module, source);
        let strides = strides(module);
        let lo = ["lo_x", "lo_y", "lo_z"].map(|name| module.parameter(int, name));
        let n = ["n_x", "n_y", "n_z"].map(|name| module.parameter(int, name));
        let parity = module.parameter(int, "parity");
        let inputs = Inputs { scalars, strides, global: global(module, source) };
        Arguments { buffers, origins, inputs, lo, n, parity }
    }
}

impl Origin {
    /// Declares those of all buffers as parameters of the open function.
    fn declare(module: &mut Module, source: &Source<'_>, buffers: &[Buffer]) -> Vec<Origin> {
        let mut origins = Vec::new();
        if source.has_paired_origins {
            let ty = module.pair();
            for (number, pair) in buffers.chunks(2).enumerate() {
                let argument = module.parameter(ty, &format!("origins_{number}"));
                origins.extend((0..).zip(pair).map(|(part, _)| Origin::Part(argument, part)));
            }
        } else {
            let index = module.index;
            for buffer in buffers {
                origins.push(Origin::Whole(module.parameter(index, &format!("{}_origin", buffer.name))));
            }
        }
        origins
    }

    /// Its value, in 64 bits.
    pub(super) fn value(self, module: &mut Module) -> Word {
        match self {
            Origin::Whole(origin) => origin,
            Origin::Part(pair, part) => {
                let (index, int) = (module.index, module.int);
                let origin = module.component(int, pair, part);
                module.value(Op::SConvert, index, &[origin])
            }
        }
    }
}

impl Buffer {
    /// The types of all of them as parameters.
    pub(super) fn types(module: &Module, kernel: &Kernel) -> Vec<Word> {
        let outputs = kernel.outputs.iter().map(stored);
        outputs.chain(kernel.fields.iter().map(|field| field.ty)).map(|ty| module.pointer(ty)).collect()
    }

    /// Declares all of them as parameters of the open function.
    pub(super) fn declare(module: &mut Module, source: &Source<'_>) -> Vec<Buffer> {
        let Source { kernel, facts, names, .. } = source;
        let mut buffers = Vec::new();
        for (id, output) in kernel.outputs.enumerate() {
            let axes = match output.role {
                Role::Value => [true; 3],
                Role::Sum | Role::Max | Role::Min => [false, true, true],
            };
            let (name, ty) = (names.output(id).to_string(), stored(output));
            let pointer = module.parameter(module.pointer(ty), &name);
            buffers.push(Buffer { name, ty, axes, used: true, pointer });
        }
        for ((id, field), footprint) in kernel.fields.enumerate().zip(&facts.footprints) {
            let (name, ty, axes) = (names.field(id).to_string(), field.ty, field.axes);
            let pointer = module.parameter(module.pointer(ty), &name);
            buffers.push(Buffer { name, ty, axes, used: !footprint.reads.is_empty(), pointer });
        }
        buffers
    }
}

impl Inputs {
    /// The types of all of them as parameters.
    pub(super) fn types(module: &Module, source: &Source<'_>) -> Vec<Word> {
        let scalars = source.kernel.params.iter().map(|param| module.argument(param.ty));
        let global = if source.facts.uses_index { 3 } else { 0 };
        scalars.chain([module.index; 2]).chain(std::iter::repeat_n(module.int, global)).collect()
    }

    /// Declares all of them as parameters of the open function, one after the other.
    pub(super) fn declare(module: &mut Module, source: &Source<'_>) -> Inputs {
        let scalars = scalars(module, source);
        let strides = strides(module);
        Inputs { scalars, strides, global: global(module, source) }
    }

    /// All of them, in the same order.
    pub(super) fn words(&self) -> Vec<Word> {
        let global = self.global.iter().flatten();
        self.scalars.iter().chain(&self.strides).chain(global).copied().collect()
    }
}

fn scalars(module: &mut Module, source: &Source<'_>) -> Vec<Word> {
    let mut scalars = Vec::new();
    for (id, param) in source.kernel.params.enumerate() {
        let ty = module.argument(param.ty);
        scalars.push(module.parameter(ty, source.names.param(id)));
    }
    scalars
}

fn strides(module: &mut Module) -> [Word; 2] {
    let index = module.index;
    ["sy", "sz"].map(|name| module.parameter(index, name))
}

fn global(module: &mut Module, source: &Source<'_>) -> Option<[Word; 3]> {
    let int = module.int;
    source.facts.uses_index.then(|| ["g_x", "g_y", "g_z"].map(|name| module.parameter(int, name)))
}

/// The point (id + lo) in the subdomain along each axis that work items span, and whether the id is inside the box.
pub(super) fn position(module: &mut Module, arguments: &Arguments, axes: Range<usize>) -> (Vec<Word>, Word) {
    let (index, truth) = (module.index, module.ty(Type::Bool));
    let ids = module.invocation_ids();
    let mut inside = None;
    let mut point = Vec::new();
    for (item, axis) in axes.enumerate() {
        let name = ["x", "y", "z"][axis];
        let id = module.component(index, ids, item as u32);
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

/// Whether the parity is that of all points.
pub(super) fn takes_all(module: &mut Module, arguments: &Arguments) -> Word {
    let (zero, truth) = (module.literal(Value::U32(0)), module.ty(Type::Bool));
    module.value(Op::SLessThan, truth, &[arguments.parity, zero])
}

/// 0 if the indices of the point `at` add up to a number of the wanted parity, else 1; anything when all are wanted.
pub(super) fn wrong_parity(module: &mut Module, arguments: &Arguments, at: [Word; 3]) -> Word {
    let index = module.index;
    let parity = module.value(Op::SConvert, index, &[arguments.parity]);
    let plane = module.value(Op::IAdd, index, &[at[1], at[2]]);
    let sum = module.value(Op::IAdd, index, &[at[0], plane]);
    let bits = module.value(Op::BitwiseXor, index, &[sum, parity]);
    let one = module.index_constant(1);
    module.value(Op::BitwiseAnd, index, &[bits, one])
}
