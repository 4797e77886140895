//! Runs the text of a C target on this machine: a few lines of C play the GPU, gcc compiles both.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use super::{C_EMITTERS, text};
use crate::emit::names::{entry_point, rows_entry_point};
use crate::emit::{Emitter, Target};
use crate::interpret::{Point, interpret};
use crate::ir::{Field, Id, Kernel, Offset, Param, Type, Value};
use crate::offline::require::available;
use crate::verify::Verified;

/// Cells of the test's grid along each axis; a frame of one cell is not computed.
pub(super) const GRID: [usize; 3] = [5, 4, 4];

/// What kernels see: a grid for each field, a value for each scalar.
pub(super) struct World {
    pub(super) grids: Vec<Vec<Value>>,
    pub(super) scalars: Vec<Value>,
}

pub(super) struct At<'w>(pub(super) &'w World, pub(super) usize);

impl Point for At<'_> {
    fn load(&self, field: Id<Field>, offset: Offset) -> Value {
        let [x, y, z] = offset.0.map(|cells| cells as isize);
        let cell = self.1 as isize + x + GRID[0] as isize * (y + GRID[1] as isize * z);
        self.0.grids[field.index()][cell as usize]
    }

    fn param(&self, param: Id<Param>) -> Value {
        self.0.scalars[param.index()]
    }
}

pub(super) fn inner_points() -> impl Iterator<Item = usize> {
    let [x, y, z] = GRID;
    (1..z - 1).flat_map(move |k| (1..y - 1).flat_map(move |j| (1..x - 1).map(move |i| i + x * (j + y * k))))
}

/// Bits as the test compares them: every not-a-number is alike, for their bits are nobody's promise.
fn bits(value: Value) -> u64 {
    if is_nan(value) { u64::MAX } else { value.bits() }
}

pub(super) fn is_nan(value: Value) -> bool {
    match value {
        Value::F64(value) => value.is_nan(),
        Value::F32(value) => value.is_nan(),
        Value::Bool(_) => false,
    }
}

/// C that lets a CPU run the text of a target.
fn prelude(target: Target) -> &'static str {
    match target {
        Target::Cuda => {
            "#include <cmath>\n#include <cstdio>\n#include <cstring>\n
            #define __global__\n#define __launch_bounds__(n)\n
            static struct { unsigned x, y, z; } blockIdx, blockDim = {2, 1, 3}, threadIdx;
            static double __longlong_as_double(long long bits) { double v; std::memcpy(&v, &bits, 8); return v; }
            static float __int_as_float(unsigned bits) { float v; std::memcpy(&v, &bits, 4); return v; }\n"
        }
        Target::Hip => {
            "#include <cstdio>\n#include <cstring>\n#define __global__\n
            static struct { unsigned x, y, z; } blockIdx, blockDim = {2, 1, 3}, threadIdx;
            #define __builtin_amdgcn_workgroup_id_x() blockIdx.x\n#define __builtin_amdgcn_workgroup_size_x() blockDim.x
            #define __builtin_amdgcn_workitem_id_x() threadIdx.x\n#define __builtin_amdgcn_workgroup_id_y() blockIdx.y
            #define __builtin_amdgcn_workgroup_size_y() blockDim.y\n#define __builtin_amdgcn_workitem_id_y() threadIdx.y
            #define __builtin_amdgcn_workgroup_id_z() blockIdx.z\n#define __builtin_amdgcn_workgroup_size_z() blockDim.z
            #define __builtin_amdgcn_workitem_id_z() threadIdx.z\n"
        }
        Target::OpenCl => {
            "#include <stdbool.h>\n#include <stdio.h>\n#include <string.h>\n#include <tgmath.h>\n
            #define kernel\n#define global\ntypedef unsigned long ulong;
            static int global_id[3];\nstatic unsigned long get_global_id(int axis) { return global_id[axis]; }
            static double as_double(ulong bits) { double v; memcpy(&v, &bits, 8); return v; }
            static float as_float(unsigned bits) { float v; memcpy(&v, &bits, 4); return v; }\n"
        }
        Target::SpirV | Target::Native => unreachable!("no C"),
    }
}

/// C statements that run the kernel of `name` over the inner points.
fn launches(target: Target, kernel: &Kernel, pointers: &str, numbers: &str) -> Vec<String> {
    let [x, y, z] = GRID.map(|cells| cells - 2);
    let geometry = format!("{}, {}, 1, 1, 1, {x}, {y}, {z}", GRID[0], GRID[0] * GRID[1]);
    let point = entry_point(&kernel.name);
    match target {
        Target::Cuda | Target::Hip => {
            let call = format!("{point}({pointers}, {numbers}{geometry});");
            let each = |part: &str, of: [usize; 3]| {
                let [x, y, z] = of;
                format!(
                    "for ({part}.z = 0; {part}.z < {z}; ++{part}.z) for ({part}.y = 0; {part}.y < {y}; ++{part}.y)
                    for ({part}.x = 0; {part}.x < {x}; ++{part}.x) "
                )
            };
            let blocks = [x.div_ceil(2), y, z.div_ceil(3)];
            vec![each("blockIdx", blocks) + &each("threadIdx", [2, 1, 3]) + &call]
        }
        Target::OpenCl => {
            let origins = "0, ".repeat(kernel.outputs.len() + kernel.fields.len());
            let call = |name: &str| format!("{name}({pointers}, {origins}{numbers}{geometry});");
            let each = |axis: usize, count: usize| {
                format!("for (global_id[{axis}] = 0; global_id[{axis}] < {count}; ++global_id[{axis}]) ")
            };
            // One more than there are points, as when sizes are rounded up.
            vec![
                each(2, z + 1) + &each(1, y + 1) + &each(0, x + 1) + &call(&point),
                each(1, z + 1) + &each(0, y + 1) + &call(&rows_entry_point(&kernel.name)),
            ]
        }
        Target::SpirV | Target::Native => unreachable!("no C"),
    }
}

/// An array definition in C, whose values are read through `name_bits`.
fn array(name: &str, ty: Type, values: &[Value]) -> String {
    let (word, float) = match ty {
        Type::F64 => ("unsigned long long", "double"),
        Type::F32 => ("unsigned int", "float"),
        Type::Bool => ("unsigned char", "unsigned char"),
    };
    let bits: Vec<String> = values.iter().map(|value| format!("{:#x}", value.bits())).collect();
    format!("static const {word} {name}_bits[] = {{{}}};\nstatic {float} {name}[{}];\n", bits.join(", "), values.len())
}

/// A program that runs each kernel on its world and prints the bits of the results, point by point.
fn program(emitter: &dyn Emitter, cases: &[(Verified, World)]) -> String {
    let mut code = prelude(emitter.target()).to_string();
    for (number, (kernel, world)) in cases.iter().enumerate() {
        code += &text(emitter, kernel);
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
    let zeros = |ty| {
        let zero = match ty {
            Type::F64 => Value::F64(0.0),
            Type::F32 => Value::F32(0.0),
            Type::Bool => Value::Bool(false),
        };
        vec![zero; GRID.iter().product()]
    };
    let mut code = String::new();
    let mut names = Vec::new();
    for (id, output) in kernel.outputs.enumerate() {
        names.push(format!("result{}", id.index()));
        code += &array(&names[names.len() - 1], output.ty, &zeros(output.ty));
    }
    for (id, field) in kernel.fields.enumerate() {
        names.push(format!("field{}", id.index()));
        code += &array(&names[names.len() - 1], field.ty, &world.grids[id.index()]);
    }
    let scalars: Vec<String> = (0..world.scalars.len()).map(|index| format!("scalar{index}")).collect();
    for (name, value) in scalars.iter().zip(&world.scalars) {
        code += &array(name, value.ty(), &[*value]);
    }
    let numbers: Vec<String> = scalars.iter().map(|name| format!("{name}[0], ")).collect();
    for name in names.iter().chain(&scalars) {
        writeln!(code, "memcpy({name}, {name}_bits, sizeof {name});").expect(TAKES_ALL);
    }
    for launch in launches(target, kernel, &names.join(", "), &numbers.concat()) {
        for name in &names[..kernel.outputs.len()] {
            writeln!(code, "memset({name}, 0xff, sizeof {name});").expect(TAKES_ALL);
        }
        code += &launch;
        for point in inner_points() {
            for (name, output) in names.iter().zip(kernel.outputs.iter()) {
                let word = match output.ty {
                    Type::F64 => "unsigned long long",
                    Type::F32 => "unsigned int",
                    Type::Bool => "unsigned char",
                };
                let print = format!("{{ {word} w; memcpy(&w, &{name}[{point}], sizeof w);");
                writeln!(code, "{print} printf(\"%llx\\n\", (unsigned long long)w); }}").expect(TAKES_ALL);
            }
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
    let compiled = gcc.arg(&file).arg("-o").arg(&program).arg("-lm").output().expect("gcc was there a moment ago");
    assert!(compiled.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program).output().expect("the program was built a moment ago");
    assert!(output.status.success(), "{} failed: {}", file.display(), output.status);
    let _ = std::fs::remove_dir_all(&folder);
    String::from_utf8(output.stdout).expect("the program prints numbers")
}

/// Runs each kernel on its world with every C target and compares with the interpreter.
pub(super) fn check(name: &str, cases: &[(Verified, World)]) {
    let gcc = Command::new("gcc").arg("--version").output().map_err(|cause| cause.to_string());
    let Some(_) = available("gcc", gcc) else { return };
    for emitter in C_EMITTERS {
        let target = emitter.target();
        let printed = run(&format!("{name}-{target}"), target, &program(emitter, cases));
        let mut printed = printed.lines();
        let entries = if target == Target::OpenCl { 2 } else { 1 };
        for (kernel, world) in cases {
            for _ in 0..entries {
                for point in inner_points() {
                    for expected in interpret(kernel, &At(world, point)) {
                        let got =
                            u64::from_str_radix(printed.next().expect("a line per result"), 16).expect("a number");
                        let got = match expected {
                            Value::F64(_) => Value::F64(f64::from_bits(got)),
                            Value::F32(_) => Value::F32(f32::from_bits(got as u32)),
                            Value::Bool(_) => Value::Bool(got == 1),
                        };
                        let same = bits(got) == bits(expected);
                        assert!(
                            same,
                            "{target}, point {point}: {got:?}, not {expected:?}, of\n{}",
                            text(emitter, kernel)
                        );
                    }
                }
            }
        }
        assert_eq!(printed.next(), None);
    }
}
