//! What can be shown of a kernel.

use clap::ValueEnum;
use polyhalo_codegen::emit::Target;

/// A form of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Show {
    /// Your function.
    Rust,
    /// The intermediate form: closures inlined, loops unrolled.
    Ir,
    /// Native Rust for the CPU.
    Host,
    /// CUDA C.
    Cuda,
    /// PTX, compiled by NVRTC from the CUDA C.
    Ptx,
    /// The machine code of NVIDIA GPUs, assembled by ptxas from the PTX and disassembled by nvdisasm.
    Sass,
    /// HIP.
    Hip,
    /// The assembly of AMD GPUs, compiled by clang from the HIP.
    Gcn,
    /// OpenCL C.
    Opencl,
    /// The assembly of Intel GPUs, compiled by ocloc from the OpenCL C.
    Pvc,
    /// SPIR-V, disassembled.
    Spirv,
    /// All of them, as far as the tools are there.
    All,
}

impl Show {
    pub(super) const EACH: [Show; 11] = [
        Show::Rust,
        Show::Ir,
        Show::Host,
        Show::Cuda,
        Show::Ptx,
        Show::Sass,
        Show::Hip,
        Show::Gcn,
        Show::Opencl,
        Show::Pvc,
        Show::Spirv,
    ];

    /// Those that a vendor's compiler makes, with what the kernel uses.
    pub(super) const COMPILED: [Show; 4] = [Show::Ptx, Show::Sass, Show::Gcn, Show::Pvc];

    /// The emitter behind a form, where there is one.
    pub(super) fn target(self) -> Option<Target> {
        match self {
            Show::Host => Some(Target::Native),
            Show::Cuda => Some(Target::Cuda),
            Show::Hip => Some(Target::Hip),
            Show::Opencl => Some(Target::OpenCl),
            Show::Spirv => Some(Target::SpirV),
            Show::Rust | Show::Ir | Show::Ptx | Show::Sass | Show::Gcn | Show::Pvc | Show::All => None,
        }
    }

    /// The word on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Show::Rust => "rust",
            Show::Ir => "ir",
            Show::Host => "host",
            Show::Cuda => "cuda",
            Show::Ptx => "ptx",
            Show::Sass => "sass",
            Show::Hip => "hip",
            Show::Gcn => "gcn",
            Show::Opencl => "opencl",
            Show::Pvc => "pvc",
            Show::Spirv => "spirv",
            Show::All => "all",
        }
    }

    /// The ending of a file in `--out`.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Show::Rust => "rs",
            Show::Ir => "ir",
            Show::Host => "host.rs",
            Show::Ptx => "ptx",
            Show::Sass => "sass",
            Show::Gcn => "s",
            Show::Pvc => "asm",
            Show::Spirv => "spvasm",
            Show::Cuda | Show::Hip | Show::Opencl => self.target().map_or("txt", Target::extension),
            Show::All => "txt",
        }
    }

    /// The GPU that is compiled for unless `--arch` says another.
    pub(super) fn default_arch(self) -> Option<&'static str> {
        match self {
            Show::Sass => Some("sm_90"),
            Show::Gcn => Some("gfx90a"),
            Show::Pvc => Some("pvc"),
            Show::Rust | Show::Ir | Show::Host | Show::Cuda | Show::Ptx | Show::Hip => None,
            Show::Opencl | Show::Spirv | Show::All => None,
        }
    }
}
