//! Native Rust: all kernels become one library, which is compiled, loaded and called here.

use std::env;
use std::path::Path;

use libloading::{Library, Symbol};
use polyhalo_codegen::Verified;
use polyhalo_codegen::emit::{Emitter, NativeRust};
use polyhalo_codegen::offline::private::Folder;
use polyhalo_codegen::offline::processes;
use polyhalo_runtime::backend::host::InstructionSet;

use super::abi::Run;
use super::case::{GLOBAL, Values};
use super::{Case, cases, none_failed};

/// What the emitted modules are compiled with: the runtime's own source, so that its stores are tested too.
const ARGS: &str = include_str!("../../dsl-runtime/src/backend/host/args.rs");
const SUPPORT: &str = include_str!("../../dsl-runtime/src/backend/host/support.rs");
const REDUCTION: &str = include_str!("../../dsl-runtime/src/reduction/accumulate.rs");

/// The rest of the library, but for the modules of the kernels.
const ENTRANCE: &str = r#"
pub type HostKernel = unsafe fn(&args::BoxArgs<'_>);

pub struct HostCode {
    pub baseline: HostKernel,
    pub avx2: Option<HostKernel>,
    pub avx512: Option<HostKernel>,
}

/// Whether there was such a version to run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(run: &abi::Run) -> bool {
    let code = &KERNELS[run.kernel];
    let Some(version) = [Some(code.baseline), code.avx2, code.avx512][run.version] else { return false };
    unsafe {
        version(&args::BoxArgs {
            outputs: std::slice::from_raw_parts(run.outputs, run.output_count),
            fields: std::slice::from_raw_parts(run.fields, run.field_count),
            scalars: std::slice::from_raw_parts(run.scalars, run.scalar_count),
            sy: run.sy,
            sz: run.sz,
            lo: run.lo,
            size: run.size,
            parity: run.parity,
            global: run.global,
            ahead: run.ahead,
            stream: run.stream,
        });
    }
    support::fence();
    true
}
"#;

/// Runs native code of all kernels, in every version that this CPU has.
///
/// # Panics
/// When rustc refuses a kernel, a result is not the interpreter's, or anything else is touched.
pub fn check(kernels: &[Verified]) {
    if kernels.is_empty() {
        return;
    }
    let folder = Folder::new().expect("there is room for a temporary folder");
    let library = Native::new(kernels, &folder);
    let failure = |number: usize| cases(&kernels[number]).iter().find_map(|case| library.failure(number, case));
    let failures: Vec<String> = (0..kernels.len()).filter_map(failure).collect();
    none_failed(&failures);
}

/// The library of native kernels.
struct Native(Library);

impl Native {
    fn new(kernels: &[Verified], folder: &Folder) -> Self {
        folder.write("kernels.rs", source(kernels).as_bytes()).expect("the file can be written");
        let rustc = env::var_os("RUSTC").unwrap_or("rustc".into());
        let mut command = folder.command(Path::new(&rustc));
        command.args(["--edition", "2024", "-O", "--crate-type", "cdylib", "--cap-lints", "allow"]);
        command.args(["-o", "kernels.so", "kernels.rs"]);
        let limit = processes::LIMIT * (1 + u32::try_from(kernels.len() / 8).expect("kernels can be counted"));
        let run = processes::run(command, b"", limit).expect("rustc is there where cargo is, and ends");
        let path = folder.path().join("kernels.so");
        // SAFETY: we made the library; loading it runs nothing.
        let library = unsafe { Library::new(&path) };
        Native(library.unwrap_or_else(|error| panic!("no library: {error}; rustc says\n{}", run.log())))
    }

    /// What goes wrong in a case.
    fn failure(&self, kernel: usize, case: &Case<'_>) -> Option<String> {
        for (version, set) in InstructionSet::ALL.into_iter().enumerate().filter(|(_, set)| set.is_available()) {
            // Nothing that is updated in part or was read goes past the caches.
            let may_stream = case.parity.is_none() && !case.is_in_place();
            let ways = [(0, false), (0, true), (64, false), (1 << 20, true)];
            for (ahead, stream) in ways.into_iter().filter(|(_, stream)| may_stream || !stream) {
                for shift in [0, 3] {
                    let found = self.run(kernel, version, case, (ahead, stream, shift));
                    if let Some(wrong) = case.difference(&found, |_| true) {
                        let how = format!("{set}, ahead {ahead}, stream {stream}, shifted by {shift}");
                        return Some(format!("native ({how}): {wrong}\n{case}"));
                    }
                }
            }
        }
        None
    }

    /// The bytes of all memories after a run.
    fn run(&self, kernel: usize, version: usize, case: &Case<'_>, how: (isize, bool, usize)) -> Vec<Vec<u8>> {
        let (ahead, stream, shift) = how;
        // SAFETY: `ENTRANCE` defines the function with this type.
        let run: Symbol<'_, unsafe extern "C" fn(&Run) -> bool> =
            unsafe { self.0.get("run") }.expect("the library has an entrance");
        let distance = |number: usize, bytes: usize| shift * if case.of_output.contains(&number) { bytes } else { 8 };
        let place = |(number, values): (usize, &Values)| {
            Memory::new(&values.bytes(), distance(number, values.layout.ty.bytes()))
        };
        let mut memories: Vec<Memory> = case.memory.iter().enumerate().map(place).collect();
        // The origin of a field is moved, perhaps out of its memory.
        let origin = |number: usize, shift: [i64; 3]| {
            let layout = &case.memory[number].layout;
            memories[number].at(layout.shifted_origin(shift).wrapping_mul(layout.ty.bytes()))
        };
        let fields: Vec<*const u8> =
            case.of_field.iter().map(|field| origin(*field, case.shift).cast_const()).collect();
        let outputs: Vec<*mut u8> = case.of_output.iter().map(|output| origin(*output, [0; 3])).collect();
        let scalars = case.scalar_bits();
        let call = Run {
            kernel,
            version,
            outputs: outputs.as_ptr(),
            output_count: outputs.len(),
            fields: fields.as_ptr(),
            field_count: fields.len(),
            scalars: scalars.as_ptr(),
            scalar_count: scalars.len(),
            sy: case.strides.row as isize,
            sz: case.strides.plane as isize,
            lo: case.range.lo.map(|cell| cell as isize),
            size: case.range.size(),
            parity: case.parity.map_or(-1, i32::from),
            global: GLOBAL,
            ahead,
            stream,
        };
        // SAFETY: the lists are alive and as long as they say; results and fields hold the box and its footprints, have
        // the types of the kernel, and no point reads what another writes; this CPU has the instruction set.
        assert!(unsafe { run(&call) }, "the kernel has no such version");
        memories.iter_mut().map(|memory| memory.bytes().to_vec()).collect()
    }
}

/// The whole library as text.
fn source(kernels: &[Verified]) -> String {
    let module = |name: &str, text: &str| format!("pub mod {name} {{\n{text}}}\n\n");
    let mut source = module("abi", include_str!("abi.rs")) + &module("args", ARGS) + &module("support", SUPPORT);
    source.push_str(&module("reduction", REDUCTION));
    source.push_str(ENTRANCE);
    for (number, kernel) in kernels.iter().enumerate() {
        let scope = "use crate::{HostCode, args::BoxArgs, support::*};\n";
        let text = format!("{scope}{}", NativeRust.emit(kernel).readable());
        source.push_str(&module(&format!("kernel_{number}"), &text));
    }
    let codes: Vec<String> = (0..kernels.len()).map(|number| format!("kernel_{number}::CODE")).collect();
    source + &format!("static KERNELS: &[HostCode] = &[{}];\n", codes.join(", "))
}

/// Bytes that begin at a chosen distance from a cache line.
struct Memory {
    start: *mut u8,
    length: usize,
    /// Owns the bytes; written through `start` only.
    _room: Vec<u8>,
}

impl Memory {
    fn new(bytes: &[u8], shift: usize) -> Self {
        let mut room = vec![0; bytes.len() + shift + 64];
        let aligned = room.as_ptr().align_offset(64) + shift;
        let start = room[aligned..].as_mut_ptr();
        let mut memory = Memory { start, length: bytes.len(), _room: room };
        memory.bytes().copy_from_slice(bytes);
        memory
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the bytes lie in `_room`, which nothing else uses.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.start.wrapping_add(offset)
    }
}
