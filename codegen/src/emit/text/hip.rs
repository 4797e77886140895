//! HIP, in the forms of a kernel (`forms`). hipcc, hiprtc and plain clang take it, with or without HIP's headers.
//!
//! Whatever has the same bits everywhere needs no device library. The other functions are declared by the names they have
//! in it, so that without the library the program can't be linked.

use std::collections::BTreeSet;

use super::c::{Source, Spelling, library};
use super::cuda::{ones, types};
use super::forms::{self, explained, kernels};
use super::term::Term;
use super::walk::used;
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Exactness, ExprKind, Function, Kernel, Type, Value};
use crate::verify::Verified;

/// Emits HIP.
pub struct HipC;

static SPELLING: Spelling = Spelling {
    target: Target::Hip,
    language: "HIP",
    types,
    long: ["ll", "ull"],
    helper: "static inline __device__",
    // Without `static` every thread would fill a table of its own.
    table: "static const",
    // Clang's own remainder of floats is not exact in most releases.
    lacks: |_| true,
    call,
    remainder: |_, _, _| unreachable!("a function stands for it"),
    from_bits: |value| match value {
        Value::F64(value) => format!("__builtin_bit_cast(double, 0x{:016x}ull /* {value} */)", value.to_bits()),
        Value::F32(value) => format!("__builtin_bit_cast(float, 0x{:08x}u /* {value} */)", value.to_bits()),
        _ => unreachable!("only floats are unbounded"),
    },
};

static FORMS: forms::Spelling = forms::Spelling {
    kernel: "extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size(1, 256))) void ",
    thread: |axis| {
        let builtin = |what: &str| format!("__builtin_amdgcn_{what}_{axis}()");
        let first = format!("{} * {}", builtin("workgroup_id"), builtin("workgroup_size"));
        format!("(int)({first} +\n        {})", builtin("workitem_id"))
    },
    // A block has one thread along Z.
    part: ["(int)__builtin_amdgcn_workgroup_id_z()", "(int)__builtin_amdgcn_grid_size_z()"],
};

fn call(function: Function, ty: Type, arguments: Vec<Term>) -> Term {
    let cast = |to: &str| Term::list(&format!("__builtin_bit_cast({to}, "), arguments.clone(), ")");
    match (function, ty) {
        (Function::ToBits, Type::F64) => cast("unsigned long long"),
        (Function::ToBits, _) => cast("unsigned int"),
        (Function::FromBits, Type::U64) => cast("double"),
        (Function::FromBits, _) => cast("float"),
        (Function::CountOnes, Type::I64 | Type::U64) => ones("__builtin_popcountll", ty, arguments),
        (Function::CountOnes, _) => ones("__builtin_popcount", ty, arguments),
        (function, ty) => Term::call(&name(function, ty), arguments),
    }
}

/// A function of clang's, which it translates itself, or of the device library.
fn name(function: Function, ty: Type) -> String {
    let name = library(function).expect("the others were dealt with");
    match (function.exactness(), ty) {
        (Exactness::Exact, Type::F32) => format!("__builtin_{name}f"),
        (Exactness::Exact, _) => format!("__builtin_{name}"),
        (Exactness::Vendor, ty) => format!("__ocml_{name}_{ty}"),
    }
}

/// Declarations of what the kernel calls in the device library.
fn declarations(kernel: &Kernel) -> Vec<String> {
    let called = used(kernel).into_iter().filter_map(|id| match &kernel.exprs[id].kind {
        ExprKind::Call(function, _) if function.exactness() == Exactness::Vendor => {
            Some((*function, kernel.exprs[id].ty))
        }
        _ => None,
    });
    let declaration = |(function, ty): (Function, Type)| {
        let float = types(ty);
        let arguments = vec![float; function.arity()].join(", ");
        format!("extern \"C\" __device__ {float} {}({arguments});", name(function, ty))
    };
    called.collect::<BTreeSet<_>>().into_iter().map(declaration).collect()
}

impl Emitter for HipC {
    fn target(&self) -> Target {
        Target::Hip
    }

    fn emit(&self, kernel: &Verified) -> Code {
        let source = Source::new(kernel, &SPELLING);
        let (contract, fusing) = if kernel.contract {
            ("fast", "Multiplications and additions may be fused.")
        } else {
            ("off", "Nothing is fused (also pass -ffp-contract=off), so the bits are the same everywhere.")
        };
        let mut launch = explained(&source);
        launch.push(fusing.into());
        let mut prelude: Vec<String> = [
            "",
            "#ifndef __global__ // No HIP header has been read.",
            "#define __global__ __attribute__((global))",
            "#define __device__ __attribute__((device))",
            "#endif",
        ]
        .map(String::from)
        .into();
        prelude.push(format!("#pragma clang fp contract({contract})"));
        let declarations = declarations(&source.kernel);
        if !declarations.is_empty() {
            prelude.push(String::new());
            prelude.extend(declarations);
        }
        let prelude = prelude.join("\n") + "\n";
        Code::Text(source.head(&launch) + &prelude + &source.functions() + &kernels(source, &FORMS))
    }
}
