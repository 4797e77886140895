//! One emitter per target, and the list that names them all.
//!
//! To add a target: a variant of [`Target`], a file with an [`Emitter`] and an entry in [`EMITTERS`]; the tests over
//! `EMITTERS` then ask for its golden files.

mod names;
pub mod native;
mod origins;
pub mod spirv;
pub mod text;

use std::fmt;

use crate::verify::Verified;

pub use native::NativeRust;
pub use origins::has_paired_origins;
pub use spirv::SpirV;
pub use text::{CudaC, HipC, OpenClC};

/// What code is emitted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// CUDA C, compiled by NVRTC.
    Cuda,
    /// HIP, compiled by clang's AMDGPU target or hiprtc.
    Hip,
    /// OpenCL C 1.2.
    OpenCl,
    /// SPIR-V 1.0 for OpenCL.
    SpirV,
    /// Rust for the CPU.
    Native,
}

impl Target {
    /// The word by which the command line knows the target.
    pub fn name(self) -> &'static str {
        match self {
            Target::Cuda => "cuda",
            Target::Hip => "hip",
            Target::OpenCl => "opencl",
            Target::SpirV => "spirv",
            Target::Native => "host",
        }
    }

    /// The usual ending of a file with such code.
    pub fn extension(self) -> &'static str {
        match self {
            Target::Cuda => "cu",
            Target::Hip => "hip",
            Target::OpenCl => "cl",
            Target::SpirV => "spv",
            Target::Native => "rs",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an emitter gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Source text.
    Text(String),
    /// The words of a binary module.
    Words(Vec<u32>),
}

impl Code {
    /// The bytes as they go into a file, little-endian.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Code::Text(text) => text.clone().into_bytes(),
            Code::Words(words) => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }
    }

    /// Something to read: the text itself, or the module disassembled.
    pub fn readable(&self) -> String {
        match self {
            Code::Text(text) => text.clone(),
            Code::Words(words) => spirv::disassemble(words),
        }
    }
}

/// Turns a verified kernel into code for one target.
pub trait Emitter: Sync {
    /// For what.
    fn target(&self) -> Target;
    /// The code; total, because `kernel` is verified.
    fn emit(&self, kernel: &Verified) -> Code;
}

/// Every emitter.
pub static EMITTERS: &[&dyn Emitter] = &[&CudaC, &HipC, &OpenClC, &SpirV, &NativeRust];
