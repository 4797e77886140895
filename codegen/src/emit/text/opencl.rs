//! OpenCL C 1.2: two kernels in one source. In the first a work item computes a point, which suits GPUs; in the second a
//! row along x, which suits CPUs. Where results are folded there is only the second.

use super::c::{Argument, ArgumentKind, Own, Source, Spelling, library};
use super::forms::Walk;
use super::helper::Helper;
use super::term::Term;
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Function, Type, Value};
use crate::verify::Verified;

/// Emits OpenCL C.
pub struct OpenClC;

static SPELLING: Spelling = Spelling {
    target: Target::OpenCl,
    language: "OpenCL C 1.2",
    types,
    long: ["L", "ul"],
    helper: "static inline",
    table: "const",
    lacks: |helper| !matches!(helper, Helper::Remainder(Type::F64 | Type::F32)),
    call,
    remainder: |_, a, b| Term::call("fmod", vec![a, b]),
    from_bits: |value| match value {
        Value::F64(value) => format!("as_double(0x{:016x}ul /* {value} */)", value.to_bits()),
        Value::F32(value) => format!("as_float(0x{:08x}u /* {value} */)", value.to_bits()),
        _ => unreachable!("only floats are unbounded"),
    },
};

pub(super) fn types(ty: Type) -> &'static str {
    match ty {
        Type::F64 => "double",
        Type::F32 => "float",
        Type::I64 => "long",
        Type::I32 => "int",
        Type::I8 => "char",
        Type::U64 => "ulong",
        Type::U32 => "uint",
        Type::U8 => "uchar",
        Type::Bool => "bool",
    }
}

fn call(function: Function, ty: Type, arguments: Vec<Term>) -> Term {
    match (function, ty) {
        (Function::ToBits, Type::F64) => Term::call("as_ulong", arguments),
        (Function::ToBits, _) => Term::call("as_uint", arguments),
        (Function::FromBits, Type::U64) => Term::call("as_double", arguments),
        (Function::FromBits, _) => Term::call("as_float", arguments),
        (Function::CountOnes, ty) => {
            // Small integers are computed as larger ones, whose signs are not to be counted.
            let unsigned = match ty.bytes() {
                1 => "(uchar)",
                4 => "(uint)",
                _ => "(ulong)",
            };
            let arguments = arguments.into_iter().map(|a| Term::prefix(unsigned, a)).collect();
            Term::prefix("(uint)", Term::call("popcount", arguments))
        }
        // Overloaded: with float arguments these are the functions of floats.
        (function, _) => Term::call(library(function).expect("the others were dealt with"), arguments),
    }
}

impl Emitter for OpenClC {
    fn target(&self) -> Target {
        Target::OpenCl
    }

    fn emit(&self, kernel: &Verified) -> Code {
        let source = Source::new(kernel, &SPELLING);
        let (rows, point) = (source.rows_entry(), source.entry());
        let of_a_point = format!("{point}: one work item computes one point; global ids are (x, y, z).");
        let of_a_row = format!("{rows}: one work item computes a row along x; global ids are (y, z).");
        let mut text = match source.folds() {
            true => source.head(&[of_a_row]),
            false => source.head(&[of_a_point, of_a_row]),
        };
        text.push('\n');
        if source.has_doubles() {
            text.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
        }
        let contract = if kernel.contract { "ON" } else { "OFF" };
        text.push_str(&format!("#pragma OPENCL FP_CONTRACT {contract}\n"));
        text.push_str(&source.functions());
        let id = |axis: usize| format!("(int)get_global_id({axis})");
        let mut body = source.row_ids([id(0), id(1)]);
        if source.folds() {
            body.extend(source.row(&[]));
        } else {
            text.push_str(&kernel_function(&source, &point, source.point([id(0), id(1), id(2)])));
            body.extend(row_calls(&source));
            text.push_str(&row_function(&source));
        }
        text.push_str(&kernel_function(&source, &rows, body));
        Code::Text(text)
    }
}

/// A kernel function with what is inside it.
fn kernel_function(source: &Source, name: &str, body: Vec<String>) -> String {
    let lines: Vec<String> = origins(source).into_iter().chain(body).collect();
    format!("\nkernel void {name}(\n    {})\n{{\n{}\n}}\n", arguments(source).join(",\n    "), lines.join("\n"))
}

/// The arguments of a kernel function.
fn arguments(source: &Source) -> Vec<String> {
    let ty = if source.has_paired_origins { "int2" } else { "long" };
    let origins = source.own.origins.iter().map(|origin| format!("const {ty} {origin}"));
    pointers(source).into_iter().chain(origins).chain(numbers(source)).collect()
}

fn pointers(source: &Source) -> Vec<String> {
    let pointer = |Argument { name, kind }: Argument| match kind {
        ArgumentKind::Output(ty) => format!("global {} *{name}", source.stored(ty)),
        ArgumentKind::Field(ty) | ArgumentKind::Scalar(ty) => format!("global const {} *{name}", source.stored(ty)),
        ArgumentKind::Stride | ArgumentKind::Extent => unreachable!("pointers are results and fields"),
    };
    source.pointers().into_iter().map(pointer).collect()
}

fn numbers(source: &Source) -> Vec<String> {
    source.numbers().iter().map(|argument| source.number(argument)).collect()
}

/// Moves every pointer to its subdomain's first element: a host can't pass a pointer into the middle of a buffer.
fn origins(source: &Source) -> Vec<String> {
    let moved = |(number, pointer): (usize, Argument)| {
        let origins = &source.own.origins;
        match (source.has_paired_origins, number % 2) {
            (false, _) => format!("    {} += {};", pointer.name, origins[number]),
            (true, 0) => format!("    {} += {}.x;", pointer.name, origins[number / 2]),
            (true, _) => format!("    {} += {}.y;", pointer.name, origins[number / 2]),
        }
    };
    source.pointers().into_iter().enumerate().map(moved).collect()
}

/// Points of a row depend on none of its results, which a compiler can't see where a result takes a field's place. Not
/// every loop can be vectorised, and PoCL would tell the user so.
const INDEPENDENT: [&str; 4] = [
    "#ifdef __clang__",
    "#pragma clang diagnostic ignored \"-Wpass-failed\"",
    "#pragma clang loop vectorize(assume_safety)",
    "#endif",
];

/// The function that computes a row, apart from the kernel function so that it can be compiled for a constant parity.
fn row_function(source: &Source) -> String {
    let [_, j, k] = &source.own.ijk;
    let ids = [j, k].map(|id| format!("const int {id}"));
    let parameters: Vec<String> = pointers(source).into_iter().chain(numbers(source)).chain(ids).collect();
    format!(
        "\n// The points of row ({j}, {k}).\nstatic inline __attribute__((always_inline)) void {}(\n    {})\n{{\n{}\n}}\n",
        row_function_name(source),
        parameters.join(",\n    "),
        source.row(&INDEPENDENT).join("\n"),
    )
}

fn row_function_name<'s>(source: &'s Source) -> &'s str {
    &source.own.functions[Walk::Row as usize]
}

/// Calls the row function: for all points it sees a constant, and its loop tests nothing.
fn row_calls(source: &Source) -> Vec<String> {
    let Own { parity, ijk: [_, j, k], .. } = &source.own;
    let arguments = source.pointers().into_iter().chain(source.numbers()).map(|argument| argument.name);
    let arguments: Vec<String> = arguments.chain([j.clone(), k.clone()]).collect();
    let call = |of_parity: &str| {
        let actual = |name: &String| Term::whole(if name == parity { of_parity } else { name });
        Term::call(row_function_name(source), arguments.iter().map(actual).collect()).around("", ";").lines(8)
    };
    let mut lines = vec![format!("    if ({parity} < 0) {{ // Constant: no point is tested.")];
    lines.extend(call("-1"));
    lines.push("    } else {".into());
    lines.extend(call(parity));
    lines.push("    }".into());
    lines
}
