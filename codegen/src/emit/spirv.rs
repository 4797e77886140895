//! SPIR-V 1.0 for OpenCL, written with `rspirv`.
//!
//! A module holds two entry points with the same arguments: `NAME` computes one point per work item (global ids 0, 1,
//! 2 along X, Y, Z), `NAME_rows` one row per work item (ids 0, 1 along Y, Z); a kernel that folds values has the second
//! only. Both guard against ids outside the box, so the global size may be rounded up. The arguments, in order, as the
//! OpenCL C of the same kernel has them too:
//!
//! 1. one pointer per output, then one per field;
//! 2. for each of these pointers a 64-bit integer: the element index of the subdomain's origin (0, 0, 0); where there
//!    are so many that a device might not take them (`origins`), for each two of these pointers a vector of two 32-bit
//!    signed integers, the last one filled up with a 0;
//! 3. the scalars; one of 8 bits is the low part of a 32-bit integer, and a truth value is such an integer, true unless
//!    0, because `bool` has no size and bytes by value are awkward;
//! 4. the distance of rows `sy` and of planes `sz` in elements, 64-bit signed, common to all buffers;
//! 5. the first point `lo_x`, `lo_y`, `lo_z` of the box and its size `n_x`, `n_y`, `n_z`, 32-bit signed;
//! 6. the `parity`, 32-bit signed: -1 for all points of the box, 0 or 1 for those whose indices in the subdomain add up
//!    to an even or an odd number;
//! 7. only if the kernel asks for an index: the global index `g_x`, `g_y`, `g_z` of the subdomain's point (0, 0, 0),
//!    32-bit signed.
//!
//! Point (i, j, k) of a buffer is element origin + i + j * sy + k * sz. A field that doesn't extend along all axes leaves
//! out the terms of those that are missing; without X it is element origin + j + k * (sz / sy), or only one of the two. A
//! folded result is stored once per row, as if it extended along Y and Z. A cell of truth values is a byte, 0 or 1.
//!
//! Pointers may be equal: a result may take the place of a field that is read at its own point only, or of one that is
//! read at points of the other parity. So stores are the last thing that a point does, and no entry point promises
//! that its arguments share no memory.
//!
//! The module asks for nothing that a consumer may lack: no `Int8` without bytes to load or compute with, no `Vector16`
//! or `Linkage`, integer constants by `OpConstant` (translators have failed on `OpConstantNull`), `ContractionOff`
//! unless the kernel allows fusion.
//! Single-precision division and square root are correctly rounded only if the program is built with
//! `-cl-fp32-correctly-rounded-divide-sqrt`; double precision always is.

mod address;
mod arguments;
mod body;
mod disassemble;
mod fold;
mod module;
mod operations;
mod rows;
#[cfg(test)]
mod tests;

use rspirv::binary::Assemble;
use rspirv::spirv::{ExecutionMode, ExecutionModel, Op};

pub use disassemble::disassemble;

use crate::analyse::{Analysis, analyse};
use crate::emit::names::{Names, entry_point, rows_entry_point};
use crate::emit::origins::has_paired_origins;
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Binary, Kernel, Type};
use crate::verify::Verified;
use address::cells;
use arguments::{Arguments, position, takes_all, wrong_parity};
use body::Body;
use fold::Fold;
use module::Module;

/// Emits SPIR-V 1.0 with the OpenCL memory model and 64-bit pointers.
pub struct SpirV;

impl Emitter for SpirV {
    fn target(&self) -> Target {
        Target::SpirV
    }

    fn emit(&self, kernel: &Verified) -> Code {
        let source = Source {
            kernel,
            facts: analyse(kernel),
            has_paired_origins: has_paired_origins(kernel),
            names: Names::new(kernel, Target::SpirV),
        };
        let mut module = Module::new(kernel);
        let folds = Fold::of(kernel);
        if folds.is_empty() {
            entry(&mut module, &source, entry_point(&kernel.name), point);
            let apart = rows::apart(&mut module, &source);
            entry(&mut module, &source, rows_entry_point(&kernel.name), |body, arguments| {
                rows::row(body, arguments, apart);
            });
        } else {
            entry(&mut module, &source, rows_entry_point(&kernel.name), |body, arguments| {
                rows::folded_row(body, arguments, &folds);
            });
        }
        Code::Words(module.finish().assemble())
    }
}

/// The kernel and what has been found out about it.
struct Source<'k> {
    kernel: &'k Kernel,
    facts: Analysis,
    /// Whether an argument holds two origins.
    has_paired_origins: bool,
    names: Names,
}

/// An entry point of this name, in which `item` is what a work item does.
fn entry(module: &mut Module, source: &Source<'_>, name: String, item: impl FnOnce(&mut Body<'_, '_>, &Arguments)) {
    let signature = Arguments::signature(module, source);
    let function = module.routine(
        &name,
        signature,
        |module| Arguments::declare(module, source),
        |module, arguments| item(&mut Body::new(module, source, &arguments.inputs), arguments),
    );
    let interface = [module.invocation];
    module.builder.entry_point(ExecutionModel::Kernel, function, name, interface);
    if !source.kernel.contract {
        module.builder.execution_mode(function, ExecutionMode::ContractionOff, []);
    }
}

/// Computes the work item's point.
fn point(body: &mut Body<'_, '_>, arguments: &Arguments) {
    let module = &mut *body.module;
    let (at, inside) = position(module, arguments, 0..3);
    let at = [at[0], at[1], at[2]];
    let (truth, zero) = (module.ty(Type::Bool), module.index_constant(0));
    let [start, compute, skipped, done] = ["start", "point", "skipped", "done"].map(|name| module.label(name));
    module.select(inside, start, done, done);

    module.open(start);
    let (all, wrong) = (takes_all(module, arguments), wrong_parity(module, arguments, at));
    let right = module.value(Op::IEqual, truth, &[wrong, zero]);
    let updated = module.binary(Binary::Or, Type::Bool, all, right);
    module.select(updated, compute, skipped, skipped);

    module.open(compute);
    let cells = cells(module, arguments, at, "cell");
    body.run(&cells, arguments.inputs.global.map(|_| at));
    body.store();
    body.module.branch(skipped);

    body.module.open(skipped);
    body.module.branch(done);

    body.module.open(done);
}
