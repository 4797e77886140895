//! The vendors' compilers, run on a machine that need not have the vendor's device: NVRTC and `ptxas` for NVIDIA, clang's
//! AMDGPU target for AMD, `ocloc` for Intel, SPIRV-Tools for SPIR-V.
//!
//! None of them is needed. Each is looked for when asked (`POLYHALO_<TOOL>` first, then the usual places); what is missing
//! or broken is [`Outcome::Absent`] with its reason, and only a mistake in the source itself is [`Outcome::Rejected`].
//!
//! To add a tool: describe how it is found in a [`programs::Search`], wrap its command in a file of its own, and give it a
//! line in [`tools::tools`].

pub mod cache;
pub mod clang;
pub mod nvrtc;
pub mod ocloc;
pub mod private;
pub mod processes;
pub mod programs;
pub mod ptxas;
pub mod require;
#[cfg(test)]
mod samples;
pub mod spirv_tools;
pub mod tools;
pub mod usage;

pub use cache::Cache;
pub use clang::Clang;
pub use nvrtc::Nvrtc;
pub use tools::{ToolStatus, tools};
pub use usage::{Traffic, Usage};

/// What came of asking a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The tool did its work.
    Built(T),
    /// The tool could not say: it is missing, broken, too old for the device asked for, or crashed. The text tells which.
    Absent(String),
    /// The tool read the source and found a mistake in it. The text is the tool's log.
    Rejected(String),
}

impl<T> Outcome<T> {
    /// What was built, or nothing.
    pub fn built(self) -> Option<T> {
        self.into_result().ok()
    }

    /// What was built, or the reason or log that stands for it, for callers to whom both mean "no".
    pub fn into_result(self) -> Result<T, String> {
        match self {
            Outcome::Built(product) => Ok(product),
            Outcome::Absent(text) | Outcome::Rejected(text) => Err(text),
        }
    }

    /// The same outcome with its product turned into another.
    pub fn map<U>(self, turn: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Outcome::Built(product) => Outcome::Built(turn(product)),
            Outcome::Absent(reason) => Outcome::Absent(reason),
            Outcome::Rejected(log) => Outcome::Rejected(log),
        }
    }
}
