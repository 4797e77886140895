//! Runs PTX on the CPU, as far as NVRTC produces it from this project's kernels: what a stand-in for a GPU executes.
//!
//! A [`Module`] is parsed once; an opcode or modifier that is not known is an error that names its line. Arithmetic has
//! the bits that PTX promises. What PTX leaves open has the CPU's: which bits an f64 that is not a number has, and the
//! approximate functions (`ex2.approx`, `rcp.approx` and their like), of which a GPU has its own. Barriers, shared memory and
//! atomics are not known.

mod decode;
mod kernel;
mod lanes;
mod machine;
mod memory;
mod operations;
mod syntax;
#[cfg(test)]
mod tests;
mod text;
mod types;

use std::sync::Arc;

pub use kernel::{Kernel, Param};
pub use machine::{Fault, Stats};
pub use memory::{Extent, Loads, Memory};

use memory::Tables;

/// A module of PTX.
#[derive(Debug)]
pub struct Module {
    /// What stands after `.version`: `6.3`.
    pub version: String,
    /// What stands after `.target`: `sm_70`.
    pub target: String,
    /// Its kernels, in order.
    pub kernels: Vec<Kernel>,
}

impl Module {
    /// Reads a module. An error names the line and what is not understood there.
    pub fn parse(text: &str) -> Result<Module, String> {
        let source = syntax::source(text)?;
        let tables = Arc::new(Tables::new(&source.tables)?);
        let kernels = decode::kernels(&source, &Arc::from(text), &tables)?;
        Ok(Module { version: source.version, target: source.target, kernels })
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}
