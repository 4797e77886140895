//! The table behind `polyhalo doctor`: every optional tool, where it is or why it is not, what it is good for and how to
//! get it.

use std::path::Path;

use super::programs::{self, Search};
use super::{clang, nvrtc, ocloc, ptxas, spirv_tools};

/// One optional tool on this machine.
#[derive(Clone, Debug)]
pub struct ToolStatus {
    /// What it is called.
    pub name: &'static str,
    /// Its file and version, or why it can't be used.
    pub found: Result<String, String>,
    /// What works with it that does not work without.
    pub gives: &'static str,
    /// A command that installs it, and the variable that names it where it is not found by itself.
    pub install: &'static str,
}

/// How to get NVRTC.
pub const INSTALL_NVRTC: &str = "pip install --no-deps --target DIR nvidia-cuda-nvrtc-cu12==12.9.86, then POLYHALO_NVRTC=DIR; in polyhalo's repository: tests/install nvrtc";
/// How to get `ptxas`.
pub const INSTALL_PTXAS: &str = "pip install --no-deps --target DIR nvidia-cuda-nvcc-cu12==12.9.86, then POLYHALO_PTXAS=DIR; in polyhalo's repository: tests/install ptxas";
/// How to get `nvdisasm`.
pub const INSTALL_NVDISASM: &str = "pip install --no-deps --target DIR nvidia-cuda-nvdisasm==13.5.37, then POLYHALO_NVDISASM=DIR; in polyhalo's repository: tests/install ptxas";
/// How to get a clang for AMD GPUs, and its linker.
pub const INSTALL_CLANG: &str = "apt-get install clang-22 lld-22 (any clang from 17 on, with lld), or POLYHALO_CLANG=FILE; in polyhalo's repository: tests/install clang";
/// How to get `ocloc`.
pub const INSTALL_OCLOC: &str = "apt-get install intel-opencl-icd (newer systems: intel-ocloc), or POLYHALO_OCLOC=FILE; in polyhalo's repository: tests/install ocloc";

/// How the OpenCL simulator is found.
pub const OCLGRIND: Search = Search {
    tool: "oclgrind",
    variable: "POLYHALO_OCLGRIND",
    homes: &[],
    folders: &[],
    inside: &["bin"],
    names: &["oclgrind"],
    probe: |path| programs::version_line(path, |line| line.strip_prefix("Oclgrind ")),
};

/// How the compiler wrapper of an MPI is found.
pub const MPICC: Search = Search {
    tool: "mpicc",
    variable: "MPICC",
    homes: &[("MPI_HOME", "bin")],
    folders: &[],
    inside: &["bin"],
    names: &["mpicc", "mpicc.openmpi", "mpicc.mpich", "mpicc_abi"],
    probe: |path| programs::answer(path, &["-show"]).map(|_| String::new()),
};

/// How the launcher of an MPI is found.
pub const MPIRUN: Search = Search {
    tool: "mpirun",
    variable: "POLYHALO_MPIRUN",
    names: &["mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich"],
    probe: any_version,
    ..MPICC
};

/// All optional tools, looked for now.
pub fn tools() -> Vec<ToolStatus> {
    let search = |search: Search| search.find().map(|program| program.to_string());
    let nvrtc = nvrtc::find().map(|nvrtc| format!("{} (version {})", nvrtc.path().display(), nvrtc.version()));
    vec![
        ToolStatus {
            name: "NVRTC",
            found: nvrtc,
            gives: "PTX for NVIDIA GPUs at build time; without it a program carries the CUDA C only",
            install: INSTALL_NVRTC,
        },
        ToolStatus {
            name: "ptxas",
            found: search(ptxas::PTXAS),
            gives: "a check of the PTX for each GPU, with registers and spills",
            install: INSTALL_PTXAS,
        },
        ToolStatus {
            name: "nvdisasm",
            found: search(ptxas::NVDISASM),
            gives: "the machine instructions of NVIDIA GPUs as text",
            install: INSTALL_NVDISASM,
        },
        ToolStatus {
            name: "clang AMDGPU",
            found: search(clang::SEARCH),
            gives: "code objects for AMD GPUs at build time; without it a program carries the HIP source only",
            install: INSTALL_CLANG,
        },
        ToolStatus {
            name: "spirv-val",
            found: search(spirv_tools::SPIRV_VAL),
            gives: "a check of every SPIR-V module",
            install: "apt-get install spirv-tools",
        },
        ToolStatus {
            name: "spirv-dis",
            found: search(spirv_tools::SPIRV_DIS),
            gives: "SPIR-V modules as text by SPIRV-Tools itself",
            install: "apt-get install spirv-tools",
        },
        ToolStatus {
            name: "ocloc",
            found: search(ocloc::SEARCH),
            gives: "a check of OpenCL C and SPIR-V for Intel GPUs, and their machine instructions as text",
            install: INSTALL_OCLOC,
        },
        ToolStatus {
            name: "oclgrind",
            found: search(OCLGRIND),
            gives: "a simulated OpenCL device that reports reads out of bounds and races",
            install: "apt-get install oclgrind",
        },
        ToolStatus {
            name: "mpicc",
            found: search(MPICC),
            gives: "building for several nodes",
            install: "apt-get install libopenmpi-dev (or libmpich-dev), or MPICC=FILE",
        },
        ToolStatus {
            name: "mpirun",
            found: search(MPIRUN),
            gives: "running on several nodes",
            install: "apt-get install openmpi-bin (or mpich)",
        },
    ]
}

/// The first line with a number in it that `path` answers to `--version`.
fn any_version(path: &Path) -> Result<String, String> {
    let line =
        programs::version_line(path, |line| line.contains(|letter: char| letter.is_ascii_digit()).then_some(line))?;
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_listed_once_with_what_it_gives_and_how_to_get_it() {
        let tools = tools();
        let names: Vec<_> = tools.iter().map(|tool| tool.name).collect();
        for expected in ["NVRTC", "ptxas", "nvdisasm", "clang AMDGPU", "spirv-val", "spirv-dis", "ocloc", "oclgrind"] {
            assert_eq!(names.iter().filter(|name| **name == expected).count(), 1, "{expected} in {names:?}");
        }
        for ToolStatus { name, found, gives, install } in tools {
            assert!(install.contains("install "), "{name}: {install}");
            assert!(!gives.is_empty());
            match found {
                Ok(place) => assert!(place.contains("lib") || place.contains('/'), "{name}: {place}"),
                Err(reason) => assert!(reason.contains("no ") || reason.contains("off"), "{name}: {reason}"),
            }
        }
    }
}
