//! CUDA C: one thread computes one point. NVRTC and nvcc take it without any header.

use super::c::{Argument, ArgumentKind, Source, Spelling, stored};
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Function, Type, Value};
use crate::verify::Verified;

/// Emits CUDA C.
pub struct CudaC;

static SPELLING: Spelling = Spelling {
    target: Target::Cuda,
    language: "CUDA C",
    long: "long long",
    function: |function, ty| match (function, ty) {
        (Function::Sqrt, Type::F32) => "sqrtf",
        (Function::Sqrt, Type::F64 | Type::Bool) => "sqrt",
        (Function::Abs, Type::F32) => "fabsf",
        (Function::Abs, Type::F64 | Type::Bool) => "fabs",
        (Function::MulAdd, Type::F32) => "fmaf",
        (Function::MulAdd, Type::F64 | Type::Bool) => "fma",
    },
    from_bits: |value| match value {
        Value::F64(value) => format!("__longlong_as_double(0x{:016x}LL /* {value} */)", value.to_bits()),
        Value::F32(value) => format!("__int_as_float(0x{:08x} /* {value} */)", value.to_bits()),
        Value::Bool(value) => value.to_string(),
    },
};

impl Emitter for CudaC {
    fn target(&self) -> Target {
        Target::Cuda
    }

    fn emit(&self, kernel: &Verified) -> Code {
        let source = Source::new(kernel, &SPELLING);
        let fmad = if kernel.contract {
            "Multiplications and additions may be fused: compile with --fmad=true."
        } else {
            "Compile with --fmad=false --prec-div=true --prec-sqrt=true --ftz=false for the same bits everywhere."
        };
        let head = source.head(&["One thread computes one point; threads run along x first.", fmad]);
        let index = |axis: &str| format!("(int)(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})");
        let opening = format!("\nextern \"C\" __global__ void __launch_bounds__(256) {}(", source.entry());
        Code::Text(head + &one_thread_a_point(&source, &opening, index))
    }
}

/// The kernel function for CUDA and HIP, which differ in how it begins and how a thread finds itself.
pub(super) fn one_thread_a_point(source: &Source, opening: &str, thread: impl Fn(&str) -> String) -> String {
    let pointer = |Argument { name, kind }: &Argument| match kind {
        ArgumentKind::Output(ty) => format!("{} *__restrict__ {name}", stored(*ty)),
        ArgumentKind::Field(ty) | ArgumentKind::Scalar(ty) => format!("const {} *__restrict__ {name}", stored(*ty)),
        ArgumentKind::Stride | ArgumentKind::Extent => unreachable!("pointers are results and fields"),
    };
    let pointers = source.pointers();
    let numbers = source.numbers();
    let arguments = pointers.iter().map(pointer).chain(numbers.iter().map(|argument| source.number(argument)));
    let arguments: Vec<String> = arguments.map(|argument| format!("    {argument}")).collect();
    let [[i, j, k], [n_x, n_y, n_z]] = [&source.own.ijk, &source.own.n];
    let mut lines = vec![opening.to_string(), arguments.join(",\n") + ")", "{".into()];
    for (name, axis) in source.own.ijk.iter().zip(["x", "y", "z"]) {
        lines.push(format!("    const int {name} = {};", thread(axis)));
    }
    lines.extend([
        format!("    if ({i} >= {n_x} || {j} >= {n_y} || {k} >= {n_z}) {{"),
        "        return;".into(),
        "    }".into(),
        format!("    {}", source.center()),
        String::new(),
    ]);
    lines.extend(source.body(4));
    lines.push("}\n".into());
    lines.join("\n")
}
