//! HIP: one thread computes one point. hipcc, hiprtc and plain clang take it, with or without HIP's headers.

use super::c::{Source, Spelling};
use super::cuda::one_thread_a_point;
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Function, Type, Value};
use crate::verify::Verified;

/// Emits HIP.
pub struct HipC;

static SPELLING: Spelling = Spelling {
    target: Target::Hip,
    language: "HIP",
    long: "long long",
    // Built-in functions need neither headers nor device libraries.
    function: |function, ty| match (function, ty) {
        (Function::Sqrt, Type::F32) => "__builtin_sqrtf",
        (Function::Sqrt, Type::F64 | Type::Bool) => "__builtin_sqrt",
        (Function::Abs, Type::F32) => "__builtin_fabsf",
        (Function::Abs, Type::F64 | Type::Bool) => "__builtin_fabs",
        (Function::MulAdd, Type::F32) => "__builtin_fmaf",
        (Function::MulAdd, Type::F64 | Type::Bool) => "__builtin_fma",
    },
    from_bits: |value| match value {
        Value::F64(value) => format!("__builtin_bit_cast(double, 0x{:016x}ull /* {value} */)", value.to_bits()),
        Value::F32(value) => format!("__builtin_bit_cast(float, 0x{:08x}u /* {value} */)", value.to_bits()),
        Value::Bool(value) => value.to_string(),
    },
};

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
        let head = source.head(&["One thread computes one point; threads run along x first.", fusing]);
        let prelude = [
            "",
            "#ifndef __global__ // No HIP header has been read.",
            "#define __global__ __attribute__((global))",
            "#endif",
            &format!("#pragma clang fp contract({contract})"),
            "",
            "extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size(1, 256)))",
        ];
        let index = |axis: &str| {
            let builtin = |what: &str| format!("__builtin_amdgcn_{what}_{axis}()");
            let first = format!("{} * {}", builtin("workgroup_id"), builtin("workgroup_size"));
            format!("(int)({first} +\n        {})", builtin("workitem_id"))
        };
        let opening = format!("{}\nvoid {}(", prelude.join("\n"), source.entry());
        Code::Text(head + &one_thread_a_point(&source, &opening, index))
    }
}
