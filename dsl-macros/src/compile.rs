//! Code for every target, ready to be embedded.

use std::path::Path;

use polyhalo_codegen::Verified;
use polyhalo_codegen::emit::{self, CudaC, Emitter, HipC, NativeRust, OpenClC, SpirV};
use polyhalo_codegen::front::Compiled;
use polyhalo_codegen::offline::{Cache, Outcome, clang, nvrtc};

/// AMD architectures that get a code object.
const HIP_ARCHS: [&str; 3] = ["gfx90a", "gfx942", "gfx1100"];

/// One kernel for all targets.
pub(crate) struct Code {
    pub(crate) cuda: String,
    pub(crate) ptx: Option<String>,
    pub(crate) hip: String,
    pub(crate) hip_objects: Vec<(&'static str, Vec<u8>)>,
    pub(crate) opencl: String,
    pub(crate) spirv: Vec<u8>,
    pub(crate) native: String,
}

/// The code of several kernels; those of one function are compiled side by side.
pub(crate) fn compile_all(kernels: &[Compiled]) -> Result<Vec<Code>, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    for some in kernels.chunks(threads) {
        let code: Vec<Result<Code, String>> = std::thread::scope(|scope| {
            let kernels = some.iter().map(|compiled| &compiled.kernel);
            let running: Vec<_> = kernels.map(|kernel| scope.spawn(|| compile(kernel))).collect();
            running.into_iter().map(|thread| thread.join().expect("compiling a kernel does not panic")).collect()
        });
        for code in code {
            all.push(code?);
        }
    }
    Ok(all)
}

/// Emits every target and runs the vendors' compilers that are there. An error is a vendor compiler's log about our code.
fn compile(kernel: &Verified) -> Result<Code, String> {
    let cuda = text(&CudaC, kernel);
    let hip = text(&HipC, kernel);
    let cache = Cache::open(Some(Path::new(env!("OUT_DIR"))));
    let ptx = match nvrtc::ptx(&cache, &cuda, &kernel.name, nvrtc::OLDEST_ARCH, kernel.contract) {
        Outcome::Built(ptx) => Some(ptx),
        Outcome::Absent(_) => None,
        Outcome::Rejected(log) => return Err(format!("NVRTC refuses the CUDA C of `{}`:\n{log}", kernel.name)),
    };
    let object = &|arch| clang::code_object(&cache, &hip, arch, kernel.contract);
    let outcomes = std::thread::scope(|scope| {
        let running = HIP_ARCHS.map(|arch| (arch, scope.spawn(move || object(arch))));
        running.map(|(arch, thread)| (arch, thread.join().expect("compiling a kernel does not panic")))
    });
    let mut hip_objects = Vec::new();
    for (arch, outcome) in outcomes {
        match outcome {
            Outcome::Built(object) => hip_objects.push((arch, object)),
            Outcome::Absent(_) => {}
            Outcome::Rejected(log) => {
                return Err(format!("clang refuses the HIP of `{}` for {arch}:\n{log}", kernel.name));
            }
        }
    }
    Ok(Code {
        ptx,
        hip_objects,
        cuda,
        hip,
        opencl: text(&OpenClC, kernel),
        spirv: SpirV.emit(kernel).bytes(),
        native: text(&NativeRust, kernel),
    })
}

fn text(emitter: &dyn Emitter, kernel: &Verified) -> String {
    match emitter.emit(kernel) {
        emit::Code::Text(text) => text,
        emit::Code::Words(_) => unreachable!("{} is a text language", emitter.target()),
    }
}
