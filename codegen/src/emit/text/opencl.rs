//! OpenCL C 1.2: two kernels in one source. In the first a work item computes a point, which suits GPUs; in the second a
//! row along x, which suits CPUs.

use super::c::{Argument, ArgumentKind, Source, Spelling, library};
use super::helper::Helper;
use super::term::Term;
use crate::emit::names::rows_entry_point;
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
        let (rows, point) = (rows_entry_point(&kernel.name), source.entry());
        let launch = [
            format!("{point}: one work item computes one point; global ids are (x, y, z)."),
            format!("{rows}: one work item computes a row along x; global ids are (y, z)."),
        ];
        let mut text = source.head(&launch.each_ref().map(String::as_str));
        text.push('\n');
        if source.has_doubles() {
            text.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
        }
        let contract = if kernel.contract { "ON" } else { "OFF" };
        text.push_str(&format!("#pragma OPENCL FP_CONTRACT {contract}\n"));
        text.push_str(&source.functions());
        for (name, body) in [(point, one_item_a_point(&source)), (rows, one_item_a_row(&source))] {
            text.push_str(&format!("\nkernel void {name}(\n{})\n{{\n", arguments(&source)));
            text.extend(body.iter().map(|line| line.clone() + "\n"));
            text.push_str("}\n");
        }
        Code::Text(text)
    }
}

fn arguments(source: &Source) -> String {
    let pointer = |Argument { name, kind }: &Argument| match kind {
        ArgumentKind::Output(ty) => format!("global {} *restrict {name}", source.stored(*ty)),
        ArgumentKind::Field(ty) | ArgumentKind::Scalar(ty) => {
            format!("global const {} *restrict {name}", source.stored(*ty))
        }
        ArgumentKind::Stride | ArgumentKind::Extent => unreachable!("pointers are results and fields"),
    };
    let pointers = source.pointers();
    let numbers = source.numbers();
    let arguments = pointers.iter().map(pointer);
    let arguments = arguments.chain(source.own.origins.iter().map(|origin| format!("const ulong {origin}")));
    let arguments = arguments.chain(numbers.iter().map(|argument| source.number(argument)));
    arguments.map(|argument| format!("    {argument}")).collect::<Vec<_>>().join(",\n")
}

/// Moves every pointer to its subdomain's first element: a host can't pass a pointer into the middle of a buffer.
fn origins(source: &Source) -> Vec<String> {
    let pointers = source.pointers();
    pointers
        .iter()
        .zip(&source.own.origins)
        .map(|(pointer, origin)| format!("    {} += {origin};", pointer.name))
        .collect()
}

fn one_item_a_point(source: &Source) -> Vec<String> {
    let [[i, j, k], [n_x, n_y, n_z]] = [&source.own.ijk, &source.own.n];
    let mut lines = origins(source);
    lines.extend([
        format!("    const int {i} = (int)get_global_id(0);"),
        format!("    const int {j} = (int)get_global_id(1);"),
        format!("    const int {k} = (int)get_global_id(2);"),
        format!("    if ({i} >= {n_x} || {j} >= {n_y} || {k} >= {n_z}) {{"),
        "        return;".into(),
        "    }".into(),
        format!("    {}", source.center()),
        String::new(),
    ]);
    lines.extend(source.tables());
    lines.extend(source.body(4));
    lines
}

fn one_item_a_row(source: &Source) -> Vec<String> {
    let [[i, j, k], [n_x, n_y, n_z]] = [&source.own.ijk, &source.own.n];
    let (row, c) = (&source.own.row, &source.own.c);
    let mut lines = origins(source);
    lines.extend([
        format!("    const int {j} = (int)get_global_id(0);"),
        format!("    const int {k} = (int)get_global_id(1);"),
        format!("    if ({j} >= {n_y} || {k} >= {n_z}) {{"),
        "        return;".into(),
        "    }".into(),
        format!("    {}", source.row()),
    ]);
    lines.extend(source.tables());
    lines.extend([
        format!("    for (int {i} = 0; {i} < {n_x}; ++{i}) {{"),
        format!("        const {} {c} = {row} + {i};", types(Type::I64)),
        String::new(),
    ]);
    lines.extend(source.body(8));
    lines.push("    }".into());
    lines
}
