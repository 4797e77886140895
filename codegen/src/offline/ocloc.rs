//! OpenCL C and SPIR-V to machine code for Intel GPUs with `ocloc`, Intel's offline compiler.

use std::fs;
use std::path::Path;

use super::private::Folder;
use super::processes::{self, Finished, LIMIT};
use super::programs::{self, Environment, Program, Search, process_environment};
use super::{Outcome, spirv_tools};

/// How the compiler is found.
pub const SEARCH: Search = Search {
    tool: "ocloc",
    variable: "POLYHALO_OCLOC",
    homes: &[],
    folders: &[],
    inside: &["bin"],
    names: &["ocloc"],
    probe,
};

/// Intel's data-centre GPU "Ponte Vecchio": the Intel GPU with double precision in hardware.
const PVC: &str = "pvc";

/// The exit code for a mistake in the source; others mean an unknown device, bad arguments or a crash.
const BUILD_FAILURE: i32 = 245;

/// Intel's offline compiler.
#[derive(Clone, Debug)]
pub struct Ocloc(Program);

/// The `ocloc` of this machine.
pub fn find() -> Result<Ocloc, String> {
    find_in(&process_environment)
}

/// As [`find`] with the variables of `environment`.
pub fn find_in(environment: Environment) -> Result<Ocloc, String> {
    SEARCH.find_in(environment).map(Ocloc)
}

/// Machine code for the GPU Max series from OpenCL C 1.2.
pub fn pvc_from_source(source: &str) -> Outcome<Vec<u8>> {
    find().map_or_else(Outcome::Absent, |ocloc| ocloc.from_source(source, PVC))
}

/// Machine code for the GPU Max series from a SPIR-V module.
pub fn pvc_from_spirv(module: &[u8]) -> Outcome<Vec<u8>> {
    find().map_or_else(Outcome::Absent, |ocloc| ocloc.from_spirv(module, PVC))
}

impl Ocloc {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Compiles OpenCL C 1.2 for `device`.
    pub fn from_source(&self, source: &str, device: &str) -> Outcome<Vec<u8>> {
        self.compile("kernel.cl", source.as_bytes(), &["-options", "-cl-std=CL1.2"], device)
    }

    /// Compiles a SPIR-V module for `device`. A module that was cut short is refused here: `ocloc` takes it for an empty
    /// one, or aborts.
    pub fn from_spirv(&self, module: &[u8], device: &str) -> Outcome<Vec<u8>> {
        match spirv_tools::whole(module) {
            Ok(()) => self.compile("kernel.spv", module, &["-spirv_input"], device),
            Err(fault) => Outcome::Rejected(format!("the SPIR-V module is damaged: {fault}")),
        }
    }

    fn compile(&self, file: &str, input: &[u8], options: &[&str], device: &str) -> Outcome<Vec<u8>> {
        let attempt = || -> Result<Outcome<Vec<u8>>, String> {
            let folder = Folder::new()?;
            folder.write(file, input)?;
            let mut command = folder.command(&self.0.path);
            command.args(["compile", "-file", file, "-device", device, "-output", "built", "-out_dir", "out"]);
            let done = processes::run(
                {
                    command.args(options);
                    command
                },
                b"",
                LIMIT,
            )?;
            match done.status.success() {
                true => binary(&folder.path().join("out")).map(Outcome::Built),
                false => Ok(refusal(&done)),
            }
        };
        attempt().unwrap_or_else(Outcome::Absent)
    }
}

fn refusal(done: &Finished) -> Outcome<Vec<u8>> {
    match done.status.code() {
        Some(BUILD_FAILURE) => Outcome::Rejected(done.log()),
        _ => Outcome::Absent(format!("ocloc failed ({}): {}", done.status, done.log())),
    }
}

/// The machine code among the files that ocloc left; its name holds the device's, spelled differently by each release.
fn binary(folder: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |cause| format!("ocloc left no readable output: {cause}");
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            return fs::read(path).map_err(unreadable);
        }
    }
    Err("ocloc left no machine code".into())
}

/// Its releases have no common way to tell their version, so the answer is empty when it is ocloc at all.
fn probe(path: &Path) -> Result<String, String> {
    let log = programs::answer(path, &["--help"])?.log();
    match log.contains("ocloc") {
        true => Ok(String::new()),
        false => Err("its --help does not look like ocloc's".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{require, samples};
    use super::*;

    fn ocloc() -> Option<Ocloc> {
        require::available("ocloc", find())
    }

    #[test]
    fn both_forms_become_machine_code() {
        let Some(ocloc) = ocloc() else { return };
        let from_source = require::built("OpenCL C", ocloc.from_source(samples::OPENCL, PVC));
        let from_spirv = require::built("SPIR-V", ocloc.from_spirv(&spirv_tools::bytes(&samples::SPIRV), PVC));
        let holds = |binary: &[u8], name: &[u8]| binary.windows(name.len()).any(|part| part == name);
        assert!(holds(&from_source, b"heat"), "no kernel heat in {} bytes", from_source.len());
        assert!(holds(&from_spirv, b"nothing"), "no kernel nothing in {} bytes", from_spirv.len());
    }

    #[test]
    fn a_mistake_in_the_source_is_rejected() {
        let Some(ocloc) = ocloc() else { return };
        let Outcome::Rejected(log) = ocloc.from_source(&samples::OPENCL.replace("double b", "doubl b"), PVC) else {
            panic!("a wrong source was not rejected")
        };
        assert!(log.contains("doubl"), "{log}");
    }

    #[test]
    fn an_unknown_device_is_no_mistake_in_the_source() {
        let Some(ocloc) = ocloc() else { return };
        let Outcome::Absent(reason) = ocloc.from_source(samples::OPENCL, "nosuchdevice") else {
            panic!("an unknown device was compiled for")
        };
        assert!(reason.contains("nosuchdevice"), "{reason}");
    }

    #[test]
    fn a_damaged_module_is_rejected_before_ocloc_sees_it() {
        let Some(ocloc) = ocloc() else { return };
        let module = spirv_tools::bytes(&samples::SPIRV);
        let Outcome::Rejected(log) = ocloc.from_spirv(&module[..module.len() - 8], PVC) else {
            panic!("half a module was compiled")
        };
        assert!(log.contains("ends inside a function"), "{log}");
    }
}
