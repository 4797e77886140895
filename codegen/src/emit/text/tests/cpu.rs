//! Runs the text of a C target on this machine: a few lines of C play the GPU, gcc compiles both.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use super::super::address::Axes;
use super::super::c::library;
use super::super::fold::row_type;
use super::super::{GpuForm, Walk, cuda, gpu_forms, opencl};
use super::world::{GRID, Launch, ORIGIN, World, extent, global, index, lo, places};
use super::{C_EMITTERS, text};
use crate::analyse::analyse;
use crate::emit::names::{entry_point, rows_entry_point};
use crate::emit::{Emitter, Target, has_paired_origins};
use crate::ir::{Exactness, Function, Role, Type, Value};
use crate::offline::require::available;
use crate::verify::Verified;

/// Whether a result is as near to the expected one as it must be, in units in the last place. Every not-a-number is alike,
/// for their bits are nobody's promise.
fn near(got: Value, expected: Value, units: i64) -> bool {
    // Floats that follow each other have numbers that follow each other.
    let order = |value: Value| match value {
        Value::F64(value) if value.is_sign_negative() => -((value.to_bits() & !(1 << 63)) as i64),
        Value::F32(value) if value.is_sign_negative() => -i64::from(value.to_bits() & !(1 << 31)),
        value => value.bits() as i64,
    };
    match (is_nan(got), is_nan(expected)) {
        (false, false) if units > 0 => order(got).abs_diff(order(expected)) <= units.unsigned_abs(),
        (false, false) => got == expected,
        (got, expected) => got && expected,
    }
}

pub(super) fn is_nan(value: Value) -> bool {
    match value {
        Value::F64(value) => value.is_nan(),
        Value::F32(value) => value.is_nan(),
        _ => false,
    }
}

/// C that lets a CPU run the text of a target.
fn prelude(target: Target) -> String {
    match target {
        Target::Cuda => "#include <math.h>\n#include <stdio.h>\n#include <string.h>\n
            #define __global__\n#define __device__\n#define __launch_bounds__(n)\n
            static struct { unsigned x, y, z; } blockIdx, blockDim, gridDim, threadIdx;
            static double __longlong_as_double(long long bits) { double v; memcpy(&v, &bits, 8); return v; }
            static float __int_as_float(unsigned bits) { float v; memcpy(&v, &bits, 4); return v; }
            static float __uint_as_float(unsigned bits) { float v; memcpy(&v, &bits, 4); return v; }
            static long long __double_as_longlong(double value) { long long v; memcpy(&v, &value, 8); return v; }
            static unsigned __float_as_uint(float value) { unsigned v; memcpy(&v, &value, 4); return v; }
            static int __popc(unsigned a) { return __builtin_popcount(a); }
            static int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
            static double __dadd_rn(double a, double b) { return a + b; }
            static double __dsub_rn(double a, double b) { return a - b; }\n"
            .into(),
        Target::Hip => {
            "#include <cmath>\n#include <cstdio>\n#include <cstring>\n#define __global__\n#define __device__\n
            static struct { unsigned x, y, z; } blockIdx, blockDim, gridDim, threadIdx;
            #define __builtin_amdgcn_workgroup_id_x() blockIdx.x\n#define __builtin_amdgcn_workgroup_size_x() blockDim.x
            #define __builtin_amdgcn_workitem_id_x() threadIdx.x\n#define __builtin_amdgcn_workgroup_id_y() blockIdx.y
            #define __builtin_amdgcn_workgroup_size_y() blockDim.y\n#define __builtin_amdgcn_workitem_id_y() threadIdx.y
            #define __builtin_amdgcn_workgroup_id_z() blockIdx.z\n#define __builtin_amdgcn_workgroup_size_z() blockDim.z
            #define __builtin_amdgcn_workitem_id_z() threadIdx.z\n#define __builtin_amdgcn_grid_size_z() gridDim.z\n"
                .to_string()
                + &device_library()
        }
        Target::OpenCl => "#include <stdbool.h>\n#include <stdio.h>\n#include <string.h>\n#include <tgmath.h>\n
            #define kernel\n#define global\n
            typedef unsigned long ulong;\ntypedef unsigned int uint;\ntypedef unsigned char uchar;\n
            typedef struct { int x, y; } int2;
            static int global_id[3];\nstatic unsigned long get_global_id(int axis) { return global_id[axis]; }
            static double as_double(ulong bits) { double v; memcpy(&v, &bits, 8); return v; }
            static float as_float(unsigned bits) { float v; memcpy(&v, &bits, 4); return v; }
            static ulong as_ulong(double value) { ulong v; memcpy(&v, &value, 8); return v; }
            static unsigned as_uint(float value) { unsigned v; memcpy(&v, &value, 4); return v; }
            #define popcount(a) __builtin_popcountll(a)\n"
            .into(),
        Target::SpirV | Target::Native => unreachable!("no C"),
    }
}

/// What of AMD's device library kernels may call, made of the C++ library.
fn device_library() -> String {
    let mut code = String::new();
    for function in Function::ALL.into_iter().filter(|function| function.exactness() == Exactness::Vendor) {
        let name = library(function).expect("C's library has all of these");
        for (ty, float) in [(Type::F64, "double"), (Type::F32, "float")] {
            let names = &["a", "b"][..function.arity()];
            let parameters: Vec<String> = names.iter().map(|name| format!("{float} {name}")).collect();
            let (parameters, arguments) = (parameters.join(", "), names.join(", "));
            let head = format!("extern \"C\" {float} __ocml_{name}_{ty}({parameters})");
            writeln!(code, "{head} {{ return std::{name}({arguments}); }}").expect(TAKES_ALL);
        }
    }
    code
}

/// What a kernel is given: names of arrays with the axes along which they extend, and the scalars.
struct Given {
    arrays: Vec<(String, Axes)>,
    scalars: Vec<String>,
}

/// C statements that run a kernel, each in another way.
fn launches(target: Target, kernel: &Verified, given: &Given, launch: Launch) -> Vec<String> {
    let [x, y, z] = [launch.width, GRID[1] - 2, GRID[2] - 2];
    let [lo_x, lo_y, lo_z] = lo();
    let parity = launch.parity;
    let mut geometry = format!("{}, {}, {lo_x}, {lo_y}, {lo_z}, {x}, {y}, {z}, {parity}", GRID[0], GRID[0] * GRID[1]);
    if analyse(kernel).uses_index {
        geometry += &global().map(|index| format!(", {index}")).concat();
    }
    let scalars = given.scalars.iter().map(|name| format!("{name}, ")).collect::<String>();
    let origins = || given.arrays.iter().map(|(_, axes)| index(*axes, ORIGIN));
    let (point, rows) = (entry_point(&kernel.name), rows_entry_point(&kernel.name));
    let folds = kernel.outputs.iter().any(|output| output.role != Role::Value);
    match target {
        Target::Cuda | Target::Hip => {
            let pointers = given.arrays.iter().zip(origins()).map(|((name, _), origin)| format!("{name} + {origin}, "));
            let pointers = pointers.collect::<String>();
            let each = |part: &str, of: [usize; 3]| {
                let [x, y, z] = of;
                format!(
                    "for ({part}.z = 0; {part}.z < {z}; ++{part}.z) for ({part}.y = 0; {part}.y < {y}; ++{part}.y)
                    for ({part}.x = 0; {part}.x < {x}; ++{part}.x) "
                )
            };
            let launch = |form: GpuForm| {
                let (blocks, threads) = match form.walk {
                    Walk::Point => ([x.div_ceil(2), y, z.div_ceil(3)], [2, 1, 3]),
                    // The last of three parts is empty.
                    Walk::March if form.narrow => ([x.div_ceil(2), y, 3], [2, 1, 1]),
                    Walk::March => ([x.div_ceil(2), y, 1], [2, 1, 1]),
                    Walk::Row => ([y.div_ceil(2), z, 1], [2, 1, 1]),
                };
                let size =
                    |part: &str, [x, y, z]: [usize; 3]| format!("{part}.x = {x}, {part}.y = {y}, {part}.z = {z};\n");
                let sizes = size("blockDim", threads) + &size("gridDim", blocks);
                let call = format!("{}({pointers}{scalars}{geometry});", form.entry);
                sizes + &each("blockIdx", blocks) + &each("threadIdx", threads) + &call
            };
            gpu_forms(kernel).into_iter().map(launch).collect()
        }
        Target::OpenCl => {
            let pointers = given.arrays.iter().map(|(name, _)| format!("{name}, ")).collect::<String>();
            let mut origins: Vec<String> = origins().map(|origin| format!("{origin}, ")).collect();
            if has_paired_origins(kernel) {
                origins = origins.chunks(2).map(|pair| format!("(int2){{{}}}, ", pair.concat())).collect();
            }
            let origins = origins.concat();
            let call = |name: &str| format!("{name}({pointers}{origins}{scalars}{geometry});");
            let each = |axis: usize, count: usize| {
                format!("for (global_id[{axis}] = 0; global_id[{axis}] < {count}; ++global_id[{axis}]) ")
            };
            // One more than there are points, as when sizes are rounded up.
            let by_point = each(2, z + 1) + &each(1, y + 1) + &each(0, x + 1) + &call(&point);
            let by_row = each(1, z + 1) + &each(0, y + 1) + &call(&rows);
            if folds { vec![by_row] } else { vec![by_point, by_row] }
        }
        Target::SpirV | Target::Native => unreachable!("no C"),
    }
}

/// The unsigned integer of a size.
fn word(bytes: usize) -> &'static str {
    match bytes {
        1 => "unsigned char",
        4 => "unsigned int",
        _ => "unsigned long long",
    }
}

/// An array definition in the C of a target, whose values are read through `name_bits`.
fn array(target: Target, name: &str, ty: Type, values: &[Value]) -> String {
    let types = if target == Target::OpenCl { opencl::types } else { cuda::types };
    let (word, element) = (word(ty.bytes()), types(if ty == Type::Bool { Type::U8 } else { ty }));
    let bits: Vec<String> = values.iter().map(|value| format!("{:#x}", value.bits())).collect();
    let bits = bits.join(", ");
    format!("static const {word} {name}_bits[] = {{{bits}}};\nstatic {element} {name}[{}];\n", values.len())
}

/// A program that runs each kernel on its world and prints the bits of the results, point by point.
fn program(emitter: &dyn Emitter, cases: &[(Verified, World)]) -> String {
    let mut code = prelude(emitter.target());
    for (name, role) in [("points", Role::Value), ("rows", Role::Sum)] {
        let indices: Vec<String> = places(role).into_iter().map(|at| index(extent(role), at).to_string()).collect();
        writeln!(code, "static const int {name}[] = {{{}}};", indices.join(", ")).expect(TAKES_ALL);
    }
    code += "static void show(const void *value, int bytes)
             { unsigned long long bits = 0; memcpy(&bits, value, bytes); printf(\"%llx\\n\", bits); }\n";
    let mut functions = BTreeSet::new();
    for (number, (kernel, world)) in cases.iter().enumerate() {
        let text = text(emitter, kernel);
        // Kernels of one program share the functions above them.
        let is_shared = |part: &str| part.contains("\nstatic inline ") && !part.contains("always_inline");
        let is_new = |part: &&str| !is_shared(part) || functions.insert(part.to_string());
        code += &text.split("\n\n").filter(is_new).collect::<Vec<_>>().join("\n\n");
        write!(code, "static void case_{number}(void) {{\n{}}}\n", case(emitter.target(), kernel, world))
            .expect(TAKES_ALL);
    }
    code += "int main(void) {\n";
    for number in 0..cases.len() {
        writeln!(code, "case_{number}();").expect(TAKES_ALL);
    }
    code + "return 0; }\n"
}

const TAKES_ALL: &str = "strings take all";

/// The statements for one kernel.
fn case(target: Target, kernel: &Verified, world: &World) -> String {
    let mut code = String::new();
    let mut arrays = Vec::new();
    for (id, output) in kernel.outputs.enumerate() {
        let name = match world.replaced(id) {
            Some(field) => format!("field{field}"),
            None => {
                let name = format!("result{}", id.index());
                let ty = if output.ty == Type::Bool { Type::U8 } else { row_type(output) };
                code += &array(target, &name, ty, &vec![Value::from_bits(ty, u64::MAX); GRID.iter().product()]);
                name
            }
        };
        arrays.push((name, extent(output.role)));
    }
    for (id, field) in kernel.fields.enumerate() {
        let name = format!("field{}", id.index());
        code += &array(target, &name, field.ty, &world.grids[id.index()]);
        arrays.push((name, field.axes));
    }
    let scalars: Vec<String> = (0..world.scalars.len()).map(|index| format!("scalar{index}")).collect();
    for (name, value) in scalars.iter().zip(&world.scalars) {
        // As it travels: 8 bits as 32, whatever the sign.
        let travels = if value.ty().bytes() == 1 { Value::U32(value.bits() as u32) } else { *value };
        code += &array(target, name, travels.ty(), &[travels]);
    }
    let all: BTreeSet<&String> = arrays.iter().map(|(name, _)| name).chain(&scalars).collect();
    let scalars = scalars.iter().map(|name| format!("{name}[0]")).collect();
    let given = Given { arrays: arrays.clone(), scalars };
    for launch in world.launches.iter().flat_map(|launch| launches(target, kernel, &given, *launch)) {
        for name in &all {
            writeln!(code, "memcpy({name}, {name}_bits, sizeof {name});").expect(TAKES_ALL);
        }
        code += &launch;
        for ((_, output), (name, _)) in kernel.outputs.enumerate().zip(&arrays) {
            let (where_at, count) =
                (if output.role == Role::Value { "points" } else { "rows" }, places(output.role).len());
            let each = format!("for (int at = 0; at < {count}; ++at)");
            writeln!(code, "{each} show(&{name}[{where_at}[at]], sizeof {name}[0]);").expect(TAKES_ALL);
        }
    }
    code
}

/// Compiles and runs a C program; what it prints.
fn run(name: &str, target: Target, code: &str) -> String {
    let folder = std::env::temp_dir().join(format!("polyhalo-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let language = if target == Target::OpenCl { ["c", "c11"] } else { ["c++", "c++17"] };
    let file: PathBuf = folder.join("program.").with_extension(language[0].replace("c++", "cpp"));
    std::fs::write(&file, code).expect("the temporary folder can be written");
    let program = folder.join("program");
    let mut gcc = Command::new("gcc");
    gcc.args(["-x", language[0], &format!("-std={}", language[1]), "-O0", "-ffp-contract=off", "-w", "-Werror"]);
    gcc.args(["-Werror=parentheses", "-Werror=logical-not-parentheses"]);
    // A plain char of OpenCL C has a sign.
    gcc.arg("-fsigned-char");
    // What C leaves undefined ends the program.
    gcc.args(["-fsanitize=undefined,float-cast-overflow", "-fsanitize-undefined-trap-on-error"]);
    let compiled = gcc.arg(&file).arg("-o").arg(&program).arg("-lm").output().expect("gcc was there a moment ago");
    assert!(compiled.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program).output().expect("the program was built a moment ago");
    assert!(output.status.success(), "{} failed: {}", file.display(), output.status);
    let _ = std::fs::remove_dir_all(&folder);
    String::from_utf8(output.stdout).expect("the program prints numbers")
}

/// Runs each kernel on its world with every C target and compares with what is expected, which must be met within so
/// many units in the last place.
pub(super) fn check(name: &str, cases: &[(Verified, World)], units: i64) {
    let gcc = Command::new("gcc").arg("--version").output().map_err(|cause| cause.to_string());
    let Some(_) = available("gcc", gcc) else { return };
    for emitter in C_EMITTERS {
        let target = emitter.target();
        let printed = run(&format!("{name}-{target}"), target, &program(emitter, cases));
        let mut printed = printed.lines();
        for (kernel, world) in cases {
            let folds = kernel.outputs.iter().any(|output| output.role != Role::Value);
            let entries = match target {
                Target::OpenCl if folds => 1,
                Target::OpenCl => 2,
                _ => gpu_forms(kernel).len(),
            };
            for launch in world.launches.iter().flat_map(|launch| vec![*launch; entries]) {
                for (id, output) in kernel.outputs.enumerate() {
                    for (expected, at) in world.expected(kernel, id, launch).into_iter().zip(places(output.role)) {
                        let line = printed.next().expect("a line per result");
                        let bits = u64::from_str_radix(line, 16).expect("a number");
                        let ty = row_type(output);
                        let is_right = match expected {
                            Some(expected) => {
                                near(Value::from_bits(ty, bits), expected, units) && (ty != Type::Bool || bits < 2)
                            }
                            None => bits == u64::MAX >> (64 - 8 * ty.bytes()),
                        };
                        let got = Value::from_bits(ty, bits);
                        assert!(
                            is_right,
                            "{target}, result {} at {at:?}, {launch:?}: {got:?}, not {expected:?}, of\n{}",
                            id.index(),
                            text(emitter, kernel)
                        );
                    }
                }
            }
        }
        assert_eq!(printed.next(), None);
    }
}
