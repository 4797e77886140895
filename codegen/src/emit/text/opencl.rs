//! OpenCL C 1.2: two kernels in one source. In the first a work item computes a point, which suits GPUs; in the second a
//! row along x, which suits CPUs.

use super::c::{Argument, ArgumentKind, Source, Spelling, stored};
use crate::emit::names::rows_entry_point;
use crate::emit::{Code, Emitter, Target};
use crate::ir::{Function, Value};
use crate::verify::Verified;

/// Emits OpenCL C.
pub struct OpenClC;

static SPELLING: Spelling = Spelling {
    target: Target::OpenCl,
    language: "OpenCL C 1.2",
    long: "long",
    // Overloaded: with float arguments these are the functions of floats.
    function: |function, _| match function {
        Function::Sqrt => "sqrt",
        Function::Abs => "fabs",
        Function::MulAdd => "fma",
    },
    from_bits: |value| match value {
        Value::F64(value) => format!("as_double(0x{:016x}ul /* {value} */)", value.to_bits()),
        Value::F32(value) => format!("as_float(0x{:08x}u /* {value} */)", value.to_bits()),
        Value::Bool(value) => value.to_string(),
    },
};

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
        ArgumentKind::Output(ty) => format!("global {} *restrict {name}", stored(*ty)),
        ArgumentKind::Field(ty) | ArgumentKind::Scalar(ty) => format!("global const {} *restrict {name}", stored(*ty)),
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
        format!("    for (int {i} = 0; {i} < {n_x}; ++{i}) {{"),
        format!("        const {} {c} = {row} + {i};", SPELLING.long),
        String::new(),
    ]);
    lines.extend(source.body(8));
    lines.push("    }".into());
    lines
}
