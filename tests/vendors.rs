//! Every fixture through the vendors' own compilers: is the code for each target taken, what does it use, and is its
//! arithmetic the one that was written? No device is needed; a missing tool skips its tests (see `offline::require`).

use std::collections::BTreeSet;
use std::process::Command;

use polyhalo_codegen::analyse::analyse;
use polyhalo_codegen::emit::text::{GpuForm, Walk, gpu_forms};
use polyhalo_codegen::emit::{Code, CudaC, Emitter, HipC, NativeRust, OpenClC, SpirV, Target};
use polyhalo_codegen::ir::{ExprKind, Value};
use polyhalo_codegen::offline::private::Folder;
use polyhalo_codegen::offline::require::{available, built};
use polyhalo_codegen::offline::{Clang, Nvrtc, clang, nvrtc, ocloc, processes, ptxas, spirv_tools};
use polyhalo_tests::fixtures::{Fixture, fixtures, folder as folder_of_package, kernels_of};

/// PTX is made for the oldest GPU and serves all.
const PTX_ARCH: u32 = 70;
const NVIDIA_GPUS: [&str; 4] = ["sm_70", "sm_80", "sm_90", "sm_100"];
/// Those that today's `nvdisasm` knows as well.
const DISASSEMBLED_GPUS: [&str; 2] = ["sm_80", "sm_90"];
const AMD_GPUS: [&str; 3] = ["gfx90a", "gfx942", "gfx1100"];
/// With more registers per thread than this too few threads fit on a GPU to hide the latency of its memory.
const REGISTERS: u32 = 64;
/// Kernels that fold hold running sums in registers too, those that march what they need again, those of very many fields
/// what they load ahead.
const MORE_REGISTERS: u32 = 128;

/// Kernels with the most registers of their forms by point and by march, on NVIDIA's GPUs and on AMD's.
const STATED: [(&str, [u32; 4]); 5] = [
    ("heat", [32, 40, 36, 60]),
    ("mean27", [32, 80, 60, 68]),
    ("upwind", [32, 48, 36, 44]),
    ("velocity", [64, 104, 96, 120]),
    ("stress", [76, 112, 92, 160]),
];

/// Where ptxas keeps one register in memory during its divisions, of which there are six, rather than take one more than 48.
const ONE_SPILL: (&str, &str) = ("signs_march", "sm_70");

fn registers(fixture: &Fixture, walk: Walk, is_amd: bool) -> u32 {
    let stated = STATED.iter().find(|(name, _)| *name == fixture.name);
    match (stated, walk) {
        (Some((_, limits)), _) => limits[2 * usize::from(is_amd) + usize::from(walk == Walk::March)],
        (None, Walk::Point) if !has_many_fields(fixture) => REGISTERS,
        (None, _) => MORE_REGISTERS,
    }
}

/// The fixtures, and elastic waves from the examples: with heat, 27 points and one-sided differences the stated ones.
fn with_elastic() -> Vec<Fixture> {
    let root = folder_of_package().parent().expect("the package lies in the repository");
    let mut all = fixtures();
    all.extend(kernels_of(&root.join("examples/kernels/elastic.rs")));
    for (name, _) in STATED {
        let marches = |fixture: &Fixture| gpu_forms(&fixture.kernel).iter().any(|form| form.walk == Walk::March);
        assert!(all.iter().any(|fixture| fixture.name == name && marches(fixture)), "`{name}` is gone");
    }
    all
}

/// The form whose code is called `entry`.
fn form<'f>(forms: &'f [GpuForm], entry: &str, what: &str) -> &'f GpuForm {
    forms.iter().find(|form| form.entry == entry).unwrap_or_else(|| panic!("{what}: `{entry}` is none of its forms"))
}

/// Whether not even the pointers to all fields fit the scalar registers of AMD's GPUs, of which there are about a hundred.
fn has_many_fields(fixture: &Fixture) -> bool {
    fixture.kernel.fields.len() > 40
}

#[test]
fn ptx_fits_every_nvidia_gpu() {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    let Some(assembler) = available("ptxas", ptxas::find()) else { return };
    for fixture in with_elastic() {
        let (ptx, forms) = (ptx(&nvrtc, &fixture), gpu_forms(&fixture.kernel));
        assert!(
            !ptx.contains(".func ") && !ptx.contains(".local "),
            "`{}` calls or keeps something:\n{ptx}",
            fixture.name
        );
        for gpu in NVIDIA_GPUS {
            let what = format!("`{}` for {gpu}", fixture.name);
            let kernels = built(&what, assembler.assemble(&ptx, gpu)).kernels;
            assert_eq!(kernels.len(), forms.len(), "{what}: {kernels:?}");
            for used in kernels {
                let form = form(&forms, &used.kernel, &what);
                let spilled = if (used.kernel.as_str(), gpu) == ONE_SPILL { [4, 8] } else { [0; 2] };
                assert_eq!([used.spill_stores, used.spill_loads], spilled, "{what}: {used:?}");
                assert!((8..=registers(&fixture, form.walk, false)).contains(&used.registers), "{what}: {used:?}");
            }
        }
    }
}

#[test]
fn each_value_is_loaded_once_in_a_march() {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    let mut seen = 0;
    for fixture in with_elastic() {
        let ptx = ptx(&nvrtc, &fixture);
        let analysis = analyse(&fixture.kernel);
        let reads = analysis.footprints.iter().flat_map(|footprint| {
            let is_tall = fixture.kernel.fields[footprint.field].axes[2];
            footprint
                .reads
                .iter()
                .filter(move |_| is_tall)
                .map(|(offset, _)| (footprint.field, offset.0[0], offset.0[1]))
        });
        let columns = reads.collect::<BTreeSet<_>>().len();
        for form in gpu_forms(&fixture.kernel).iter().filter(|form| form.walk == Walk::March) {
            let loops = loads_of_loops(&ptx, &form.entry);
            assert!(!loops.is_empty(), "`{}` has no loop:\n{ptx}", form.entry);
            assert!(loops.iter().all(|loads| *loads == columns), "`{}`: {loops:?}, not {columns}", form.entry);
            seen += 1;
        }
    }
    assert!(seen >= 2 * STATED.len(), "only {seen} kernels march");
}

/// How many loads from global memory stand in each loop of a kernel of PTX.
fn loads_of_loops(ptx: &str, entry: &str) -> Vec<usize> {
    let (_, kernel) = ptx.split_once(&format!(".entry {entry}(")).unwrap_or_else(|| panic!("no `{entry}` in\n{ptx}"));
    let lines: Vec<&str> = kernel.lines().take_while(|line| *line != "}").map(str::trim).collect();
    let loads_since = |at: usize, line: &&str| {
        let (before, label) = line.strip_suffix(';')?.rsplit_once(char::is_whitespace)?;
        let start =
            before.contains("bra").then(|| lines[..at].iter().position(|line| *line == format!("{label}:")))??;
        let loads = lines[start..at].iter().filter(|line| line.starts_with("ld.global") || line.contains(" ld.global"));
        Some(loads.count())
    };
    let loops = lines.iter().enumerate().filter_map(|(at, line)| loads_since(at, line));
    loops.filter(|loads| *loads > 0).collect()
}

#[test]
fn threads_that_follow_each_other_read_and_write_cells_that_do() {
    let is_named = |fixture: &Fixture| STATED.iter().any(|(name, _)| *name == fixture.name);
    for fixture in with_elastic().iter().filter(|fixture| is_named(fixture)) {
        for emitter in [&CudaC as &dyn Emitter, &HipC] {
            let text = fixture.text(emitter);
            let indices: Vec<&str> = text.lines().filter(|line| line.contains("(lo_x + i)")).collect();
            // One for points and one for marches, each with the thread's own number as it is.
            assert_eq!(indices.len(), 2, "{text}");
            assert!(indices.iter().all(|line| line.contains(" = (lo_x + i) + (lo_y + j) * sy + ")), "{indices:?}");
            let x = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let first = match emitter.target() {
                Target::Cuda => "const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);",
                _ => {
                    "const int i = (int)(__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + \
                     __builtin_amdgcn_workitem_id_x());"
                }
            };
            assert_eq!(x.matches(first).count(), 2, "{text}");
        }
    }
}

#[test]
fn nvidia_arithmetic_is_what_was_written() {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    let Some(assembler) = available("ptxas", ptxas::find()) else { return };
    let Some(disassembler) = available("nvdisasm", ptxas::find_disassembler()) else { return };
    for fixture in fixtures() {
        let ptx = ptx(&nvrtc, &fixture);
        for gpu in DISASSEMBLED_GPUS {
            let what = format!("`{}` for {gpu}", fixture.name);
            let cubin = built(&what, assembler.assemble(&ptx, gpu)).cubin;
            let operations = sass_operations(&built(&what, disassembler.sass(&cubin)));
            assert!(operations.iter().any(|name| name.starts_with("STG.E")), "{what} stores nothing: {operations:?}");
            let fuses = |name: &String| name.starts_with("DFMA") || name.starts_with("FFMA");
            check_fusing(&fixture, &what, &operations, fuses);
            let double = |name: &String| {
                let arithmetic = ["DADD", "DMUL", "DFMA", "DSETP", "DMNMX"];
                arithmetic.iter().any(|double| name.starts_with(double)) || name.contains("F64") || name.contains("64H")
            };
            check_width(&fixture, &what, &operations, double);
        }
    }
}

#[test]
fn literals_reach_ptx_with_their_last_bit() {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    for fixture in fixtures().iter().filter(|fixture| fixture.name.starts_with("literals")) {
        let ptx = ptx(&nvrtc, fixture);
        let mut seen = 0;
        for expr in fixture.kernel.exprs.iter() {
            let bits = match expr.kind {
                ExprKind::Literal(Value::F64(value)) if value != 0.0 => format!("0d{:016X}", value.to_bits()),
                ExprKind::Literal(Value::F32(value)) if value != 0.0 => format!("0f{:08X}", value.to_bits()),
                _ => continue,
            };
            seen += 1;
            assert!(ptx.contains(&bits), "{bits} of `{}` is not in its PTX:\n{ptx}", fixture.name);
        }
        assert!(seen > 8, "`{}` has only {seen} literals", fixture.name);
    }
}

#[test]
fn hip_fits_every_amd_gpu_and_its_arithmetic_is_what_was_written() {
    let Some(clang) = available("clang", clang::find()) else { return };
    for fixture in with_elastic() {
        let forms = gpu_forms(&fixture.kernel);
        for gpu in AMD_GPUS {
            let what = format!("`{}` for {gpu}", fixture.name);
            let assembly = built(&what, clang.assembly(&fixture.text(&HipC), gpu, fixture.kernel.contract));
            let kernels = clang::resources(&assembly);
            assert_eq!(kernels.len(), forms.len(), "{what}: {kernels:?}");
            for used in &kernels {
                let form = form(&forms, &used.kernel, &what);
                // Scalar registers spill into vector registers, which is cheap; nothing may go to memory.
                let spills_sgpr = if has_many_fields(&fixture) { 0 } else { used.spills_sgpr };
                assert_eq!([used.spills_vgpr, spills_sgpr, used.scratch_bytes], [0; 3], "{what} spills: {used:?}");
                assert!((1..=registers(&fixture, form.walk, true)).contains(&used.vgprs), "{what}: {used:?}");
            }

            let operations = amd_operations(&assembly);
            assert!(operations.iter().any(|name| name.starts_with("global_store_")), "{what} stores nothing");
            let fuses = |name: &String| name.contains("_fma") || name.contains("_mad_f") || name.contains("_mac_f");
            check_fusing(&fixture, &what, &operations, fuses);
            check_width(&fixture, &what, &operations, |name| name.contains("_f64"));
        }
    }
}

#[test]
fn opencl_c_compiles_without_a_warning() {
    let Some(clang) = available("clang", clang::find()) else { return };
    for fixture in fixtures() {
        let source = fixture.text(&OpenClC);
        let log = opencl_log(&clang, &source);
        assert_eq!(log, "", "OpenCL C of `{}`:\n{source}", fixture.name);
    }
    assert!(opencl_log(&clang, "kernel void k(int a) { if (a = 1) return; }").contains("warning: "), "clang is silent");
}

#[test]
fn spirv_is_valid_for_opencl() {
    let Some(_) = available("spirv-val", spirv_tools::SPIRV_VAL.find()) else { return };
    for fixture in fixtures() {
        let module = SpirV.emit(&fixture.kernel).bytes();
        for environment in ["opencl1.2", "spv1.0"] {
            built(
                &format!("`{}` as SPIR-V for {environment}", fixture.name),
                spirv_tools::validate(&module, environment),
            );
        }
    }
}

#[test]
fn spirv_asks_for_no_more_than_every_consumer_has() {
    for fixture in fixtures() {
        let (name, code) = (&fixture.name, SpirV.emit(&fixture.kernel));
        let Code::Words(words) = &code else { panic!("SPIR-V is words") };
        assert_eq!(words[1], 0x0001_0000, "`{name}` is not SPIR-V 1.0");
        let text = code.readable();
        let after = |start: &str| text.lines().filter_map(|line| line.strip_prefix(start)).collect::<BTreeSet<_>>();
        let mut capabilities = BTreeSet::from(["Addresses", "Kernel", "Int64"]);
        capabilities.extend(fixture.has_doubles().then_some("Float64"));
        capabilities.extend(fixture.has_bytes().then_some("Int8"));
        assert_eq!(after("OpCapability "), capabilities, "capabilities of `{name}`");
        // Translators to LLVM stumble over it for integers.
        assert!(!text.contains("OpConstantNull"), "`{name}` holds OpConstantNull");
        let strict = after("OpExecutionMode ").iter().filter(|mode| mode.ends_with(" ContractionOff")).count();
        assert_eq!(strict, if fixture.kernel.contract { 0 } else { 2 }, "entry points of `{name}` that forbid fusing");
    }
}

#[test]
fn intel_gpus_take_opencl_c_and_spirv() {
    let Some(_) = available("ocloc", ocloc::find()) else { return };
    for fixture in fixtures() {
        let name = &fixture.name;
        built(&format!("OpenCL C of `{name}` for pvc"), ocloc::pvc_from_source(&fixture.text(&OpenClC)));
        let module = SpirV.emit(&fixture.kernel).bytes();
        built(&format!("SPIR-V of `{name}` for pvc"), ocloc::pvc_from_spirv(&module));
    }
}

#[test]
fn native_rust_compiles_without_a_warning() {
    for fixture in fixtures() {
        let text = fixture.text(&NativeRust);
        syn::parse_file(&text).unwrap_or_else(|error| panic!("`{}`: {error}:\n{text}", fixture.name));
        let log = rustc_log(&text);
        assert_eq!(log, "", "native Rust of `{}`:\n{text}", fixture.name);
    }
    assert!(rustc_log("fn F() {}").contains("warning: "), "rustc is silent");
}

fn ptx(nvrtc: &Nvrtc, fixture: &Fixture) -> String {
    let file = format!("{}.cu", fixture.name);
    built(&file, nvrtc.ptx(&fixture.text(&CudaC), &file, PTX_ARCH, fixture.kernel.contract))
}

/// Fused operations occur where the user allows or writes them, nowhere else; a division or root is made of some.
fn check_fusing(fixture: &Fixture, what: &str, operations: &BTreeSet<String>, fuses: impl Fn(&String) -> bool) {
    let fused = operations.iter().find(|name| fuses(name));
    let expected = fixture.kernel.contract || fixture.needs_fused_operations();
    assert_eq!(fused.is_some(), expected, "{what} holds {fused:?} of {operations:?}");
}

/// A kernel of single precision computes nothing in double precision.
fn check_width(fixture: &Fixture, what: &str, operations: &BTreeSet<String>, double: impl Fn(&String) -> bool) {
    let double = operations.iter().find(|name| double(name));
    assert!(double.is_none() || fixture.has_doubles(), "{what} holds {double:?}");
}

/// `DADD` of `/*01a0*/  @!P0 DADD R2, R2, R4 ;`.
fn sass_operations(sass: &str) -> BTreeSet<String> {
    let operation = |line: &str| {
        let (_, instruction) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
        let mut words = instruction.split_whitespace().skip_while(|word| word.starts_with('@'));
        Some(words.next()?.trim_end_matches(';').to_owned())
    };
    sass.lines().filter_map(operation).collect()
}

/// `v_add_f64` of `v_add_f64 v[0:1], v[2:3], v[0:1]`.
fn amd_operations(assembly: &str) -> BTreeSet<String> {
    let code = assembly.split(".section").next().unwrap_or_default();
    let words = code.lines().filter_map(|line| line.split_whitespace().next());
    words
        .filter(|word| ["v_", "s_", "global_", "flat_"].iter().any(|kind| word.starts_with(kind)))
        .map(str::to_owned)
        .collect()
}

/// What clang says about OpenCL C 1.2.
fn opencl_log(clang: &Clang, source: &str) -> String {
    let mut command = Command::new(clang.path());
    command.args(["-x", "cl", "-cl-std=CL1.2", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-fsyntax-only"]);
    // What the user passes or names and does not use is the user's business.
    command.args(["-Wall", "-Wextra", "-Wno-unused", "-Wno-unused-parameter", "-Wno-unused-but-set-parameter", "-"]);
    processes::run(command, source.as_bytes(), processes::LIMIT).expect("clang was found").log()
}

/// What rustc says about native Rust, with what its module has in scope before it.
fn rustc_log(native: &str) -> String {
    const SCOPE: &str = "\
        #![allow(unused, mixed_script_confusables)]\n\
        pub struct BoxArgs<'a> {\n\
        \x20   pub outputs: &'a [*mut u8],\n\
        \x20   pub fields: &'a [*const u8],\n\
        \x20   pub scalars: &'a [u64],\n\
        \x20   pub sy: isize,\n\
        \x20   pub sz: isize,\n\
        \x20   pub lo: [isize; 3],\n\
        \x20   pub size: [usize; 3], pub parity: i32, pub global: [i32; 3],\n\
        \x20   pub ahead: isize,\n\
        \x20   pub stream: bool,\n\
        }\n\
        pub type HostKernel = unsafe fn(&BoxArgs<'_>);\n\
        pub struct HostCode {\n\
        \x20   pub baseline: HostKernel,\n\
        \x20   pub avx2: Option<HostKernel>,\n\
        \x20   pub avx512: Option<HostKernel>,\n\
        }\n\
        pub fn prefetch<T>(_: *const T) {}\n\
        pub unsafe fn store<T: Copy>(_: *mut T, _: *const T, _: usize, _: bool) {}\n\
        pub unsafe fn store_alternate<T: Copy>(_: *mut T, _: *const T, _: usize, _: usize) {}\n\
        use accumulate::{Accumulator, Largest, Least, Total};\n";
    let folder = Folder::new().expect("there is room for a temporary folder");
    let accumulate = folder_of_package().parent().expect("the package lies in the repository");
    let accumulate = accumulate.join("dsl-runtime/src/reduction/accumulate.rs");
    let accumulate = format!("#[path = {accumulate:?}]\npub mod accumulate;\n");
    // Attributes of the whole file come first.
    let (attributes, scope) = SCOPE.split_once('\n').expect("there are several lines");
    let text = format!("{attributes}\n{accumulate}{scope}{native}");
    folder.write("native.rs", text.as_bytes()).expect("the file can be written");
    let mut command = folder.command(std::env::var_os("RUSTC").unwrap_or("rustc".into()).as_ref());
    command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "native.rs"]);
    processes::run(command, b"", processes::LIMIT).expect("rustc is there where cargo is").log()
}
