//! CUDA C, in the forms of a kernel (`forms`). NVRTC and nvcc take it without any header.

use super::c::{Source, Spelling, library};
use super::forms::{self, explained, kernels};
use super::helper::Helper;
use super::term::Term;
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Function, Type, Value};
use crate::verify::Verified;

/// Emits CUDA C.
pub struct CudaC;

static SPELLING: Spelling = Spelling {
    target: Target::Cuda,
    language: "CUDA C",
    types,
    long: ["ll", "ull"],
    helper: "static inline __device__",
    // Without `static` every thread would fill a table of its own.
    table: "static const",
    lacks: |helper| !matches!(helper, Helper::Remainder(Type::F64 | Type::F32)),
    call,
    remainder: |ty, a, b| Term::call(if ty == Type::F64 { "fmod" } else { "fmodf" }, vec![a, b]),
    from_bits: |value| match value {
        Value::F64(value) => format!("__longlong_as_double(0x{:016x}LL /* {value} */)", value.to_bits()),
        Value::F32(value) => format!("__int_as_float(0x{:08x} /* {value} */)", value.to_bits()),
        _ => unreachable!("only floats are unbounded"),
    },
};

static FORMS: forms::Spelling = forms::Spelling {
    kernel: "extern \"C\" __global__ void __launch_bounds__(256) ",
    thread: |axis| format!("(int)(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"),
    part: ["(int)blockIdx.z", "(int)gridDim.z"],
};

/// The types of C++.
pub(super) fn types(ty: Type) -> &'static str {
    match ty {
        Type::F64 => "double",
        Type::F32 => "float",
        Type::I64 => "long long",
        Type::I32 => "int",
        // Whether a plain char has a sign is up to the compiler.
        Type::I8 => "signed char",
        Type::U64 => "unsigned long long",
        Type::U32 => "unsigned int",
        Type::U8 => "unsigned char",
        Type::Bool => "bool",
    }
}

fn call(function: Function, ty: Type, arguments: Vec<Term>) -> Term {
    match (function, ty) {
        (Function::ToBits, Type::F64) => {
            Term::prefix("(unsigned long long)", Term::call("__double_as_longlong", arguments))
        }
        (Function::ToBits, _) => Term::call("__float_as_uint", arguments),
        (Function::FromBits, Type::U64) => Term::call("__longlong_as_double", arguments),
        (Function::FromBits, _) => Term::call("__uint_as_float", arguments),
        (Function::CountOnes, Type::I64 | Type::U64) => ones("__popcll", ty, arguments),
        (Function::CountOnes, _) => ones("__popc", ty, arguments),
        (function, Type::F32) => Term::call(&format!("{}f", known(function)), arguments),
        (function, _) => Term::call(known(function), arguments),
    }
}

fn known(function: Function) -> &'static str {
    library(function).expect("the others were dealt with")
}

/// The number of ones, counted by a function that takes 32 or 64 bits.
pub(super) fn ones(name: &str, ty: Type, mut arguments: Vec<Term>) -> Term {
    if ty == Type::I8 {
        // Copies of the sign are not to be counted.
        arguments = arguments.into_iter().map(|a| Term::prefix("(unsigned char)", a)).collect();
    }
    Term::prefix("(unsigned int)", Term::call(name, arguments))
}

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
        let mut launch = explained(&source);
        launch.push(fmad.into());
        Code::Text(source.head(&launch) + &source.functions() + &kernels(source, &FORMS))
    }
}
