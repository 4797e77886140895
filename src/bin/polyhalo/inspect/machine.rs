//! What the vendors' compilers make of a kernel, and which GPUs they know.

use polyhalo_codegen::emit::{CudaC, Emitter, HipC, OpenClC};
use polyhalo_codegen::offline::{Cache, Outcome, Usage, clang, nvrtc, ocloc, ptxas, tools, usage};
use polyhalo_codegen::verify::Verified;

use super::show::Show;
use crate::Failure;

/// A compiled text and what its kernels use.
pub(super) struct Machine {
    pub(super) text: String,
    /// What made it.
    pub(super) tools: String,
    pub(super) kernels: Vec<Usage>,
}

/// Compiles a kernel with the vendor's tools, or says why not.
pub(super) fn machine(show: Show, arch: Option<&str>, kernel: &Verified) -> Result<Machine, String> {
    let arch = arch.or(show.default_arch()).unwrap_or_default();
    match show {
        Show::Ptx => {
            let nvrtc = missing(nvrtc::find(), tools::INSTALL_NVRTC)?;
            let text = ptx(kernel)?;
            let kernels = usage::count(usage::ptx::listings(&text));
            Ok(Machine { text, tools: format!("NVRTC {}", nvrtc.version()), kernels })
        }
        Show::Sass => {
            missing(nvrtc::find(), tools::INSTALL_NVRTC)?;
            let ptxas = missing(ptxas::find(), tools::INSTALL_PTXAS)?;
            let nvdisasm = missing(ptxas::find_disassembler(), tools::INSTALL_NVDISASM)?;
            let assembled = made("ptxas", ptxas.assemble(&ptx(kernel)?, arch))?;
            let text = made("nvdisasm", nvdisasm.sass(&assembled.cubin))?;
            let tools = format!("ptxas {}, nvdisasm {}", ptxas.program().version, nvdisasm.program().version);
            Ok(Machine { kernels: ptxas::usages(&assembled.kernels, &text), tools, text })
        }
        Show::Gcn => {
            let clang = missing(clang::find(), tools::INSTALL_CLANG)?;
            let source = HipC.emit(kernel).readable();
            let text = made("clang", clang.assembly(&source, arch, kernel.contract))?;
            Ok(Machine { kernels: clang::usages(&text), tools: clang.version().to_owned(), text })
        }
        Show::Pvc => {
            let ocloc = missing(ocloc::find(), tools::INSTALL_OCLOC)?;
            let assembly = match ocloc.assembly(&OpenClC.emit(kernel).readable(), arch) {
                Outcome::Rejected(log) if log.contains("requires cl_khr_fp64 support") => {
                    return Err(format!("{arch} has no 64-bit floats, which this stencil uses"));
                }
                outcome => made("ocloc", outcome)?,
            };
            Ok(Machine { text: assembly.text, tools: "ocloc".into(), kernels: assembly.kernels })
        }
        Show::Rust | Show::Ir | Show::Host | Show::Cuda | Show::Hip | Show::Opencl | Show::Spirv | Show::All => {
            unreachable!("no vendor's tool makes {}", show.name())
        }
    }
}

fn ptx(kernel: &Verified) -> Result<String, String> {
    let cuda = CudaC.emit(kernel).readable();
    made("NVRTC", nvrtc::ptx(&Cache::open(None), &cuda, &kernel.name, nvrtc::OLDEST_ARCH, kernel.contract))
}

/// A tool that was found, or why it wasn't and how to get it.
fn missing<T>(found: Result<T, String>, install: &str) -> Result<T, String> {
    found.map_err(|reason| format!("{reason}. To get it: {install}"))
}

fn made<T>(tool: &str, outcome: Outcome<T>) -> Result<T, String> {
    match outcome {
        Outcome::Built(product) => Ok(product),
        Outcome::Absent(reason) => Err(reason),
        Outcome::Rejected(log) => Err(format!("{tool} refuses it: {log}")),
    }
}

/// Which form `arch` is for: `sm_90` is one of NVIDIA's GPUs, `gfx90a` of AMD's, every other word one that ocloc knows. An
/// error names those that the tool knows; without the tool any is taken.
pub(super) fn form_of(arch: &str) -> Result<Show, Failure> {
    let (show, tool, known) = if arch.starts_with("sm_") {
        (Show::Sass, "ptxas", ptxas::find().and_then(|ptxas| ptxas.architectures()))
    } else if arch.starts_with("gfx") {
        (Show::Gcn, "clang", clang::find().and_then(|clang| clang.architectures()))
    } else {
        (Show::Pvc, "ocloc", ocloc::find().and_then(|ocloc| ocloc.devices()))
    };
    // Features of AMD's GPUs follow a colon; ocloc also knows GPUs by version and by number.
    let name = arch.split(':').next().unwrap_or(arch);
    let is_number = show == Show::Pvc && name.starts_with(|first: char| first.is_ascii_digit());
    match known {
        Ok(known) if !is_number && !known.iter().any(|known| known == name) => {
            let others = match show {
                Show::Pvc => " (NVIDIA's GPUs are called `sm_90`, AMD's `gfx90a`)",
                _ => "",
            };
            Err(format!("`{arch}` is no GPU that {tool} knows{others}; it knows {}", known.join(", ")).into())
        }
        Ok(_) | Err(_) => Ok(show),
    }
}
