//! OpenCL C and SPIR-V to machine code for Intel GPUs with `ocloc`, Intel's offline compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::private::Folder;
use super::processes::{self, Finished, LIMIT};
use super::programs::{self, Environment, Program, Search, process_environment};
use super::usage::{self, Usage};
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

/// The options for OpenCL C.
const SOURCE: &[&str] = &["-options", "-cl-std=CL1.2"];

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
        self.compile("kernel.cl", source.as_bytes(), SOURCE, device)
    }

    /// Compiles a SPIR-V module for `device`. A module that was cut short is refused here: `ocloc` takes it for an empty
    /// one, or aborts.
    pub fn from_spirv(&self, module: &[u8], device: &str) -> Outcome<Vec<u8>> {
        match spirv_tools::whole(module) {
            Ok(()) => self.compile("kernel.spv", module, &["-spirv_input"], device),
            Err(fault) => Outcome::Rejected(format!("the SPIR-V module is damaged: {fault}")),
        }
    }

    /// The assembly of OpenCL C 1.2 for `device`, and what each kernel uses.
    ///
    /// `ocloc disasm` needs a library that no package brings under the name by which it is looked for, so the compiler
    /// itself is asked to dump what it makes.
    pub fn assembly(&self, source: &str, device: &str) -> Outcome<Assembly> {
        let attempt = || -> Result<Outcome<Assembly>, String> {
            let folder = Folder::new()?;
            folder.write("kernel.cl", source.as_bytes())?;
            let dumps = folder.path().join("dumps");
            fs::create_dir(&dumps).map_err(|cause| format!("{} could not be made: {cause}", dumps.display()))?;
            // The newer format of machine code tells what a kernel uses. Today's releases write it unasked, and one that
            // doesn't know this option is asked without.
            let mut refused = None;
            for format in [&["--format", "zebin"][..], &[]] {
                let mut command = self.command(&folder, "kernel.cl", &[SOURCE, format].concat(), device);
                command.env("IGC_ShaderDumpEnable", "1").env("IGC_DumpToCustomDir", &dumps);
                let done = processes::run(command, b"", LIMIT)?;
                if done.status.success() {
                    return Assembly::read(&dumps, &binary(&folder.path().join("out"))?).map(Outcome::Built);
                }
                refused.get_or_insert(done);
            }
            Ok(refusal(&refused.expect("two attempts were made")))
        };
        attempt().unwrap_or_else(Outcome::Absent)
    }

    /// The devices that it knows, such as `pvc`.
    pub fn devices(&self) -> Result<Vec<String>, String> {
        let mut command = Command::new(&self.0.path);
        command.args(["compile", "--help"]);
        // Releases differ in whether this is a success.
        let help = processes::run(command, b"", LIMIT)?.log();
        let lists = help.split("<device_type> can be: ").skip(1);
        // A list ends in prose about numbers of versions.
        let names = lists.filter_map(|list| list.lines().next()).flat_map(|list| {
            let names = list.split([',', ' ']).map(|name| name.trim_end_matches('.'));
            names.take_while(|name| *name != "version").filter(|name| !name.is_empty())
        });
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.dedup();
        match names.is_empty() {
            true => Err("ocloc does not list its devices".into()),
            false => Ok(names),
        }
    }

    fn compile(&self, file: &str, input: &[u8], options: &[&str], device: &str) -> Outcome<Vec<u8>> {
        let attempt = || -> Result<Outcome<Vec<u8>>, String> {
            let folder = Folder::new()?;
            folder.write(file, input)?;
            let done = processes::run(self.command(&folder, file, options, device), b"", LIMIT)?;
            match done.status.success() {
                true => binary(&folder.path().join("out")).map(Outcome::Built),
                false => Ok(refusal(&done)),
            }
        };
        attempt().unwrap_or_else(Outcome::Absent)
    }

    fn command(&self, folder: &Folder, file: &str, options: &[&str], device: &str) -> Command {
        let mut command = folder.command(&self.0.path);
        command
            .args(["compile", "-file", file, "-device", device, "-output", "built", "-out_dir", "out"])
            .args(options);
        command
    }
}

/// The assembly of a program, and what its kernels use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// One kernel after the other.
    pub text: String,
    /// One entry per kernel, in the order of the text.
    pub kernels: Vec<Usage>,
}

impl Assembly {
    /// Reads what the compiler dumped beside the machine code that it made.
    fn read(dumps: &Path, binary: &[u8]) -> Result<Assembly, String> {
        let unreadable = |cause| format!("the dump of ocloc's compiler could not be read: {cause}");
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(dumps).map_err(unreadable)? {
            files.extend(
                Some(entry.map_err(unreadable)?.path()).filter(|path| path.extension().is_some_and(|e| e == "asm")),
            );
        }
        // A kernel is compiled again when the first attempt spills; its number then stands in front: `_1_simd16_entry_0001`.
        let order = |path: &PathBuf| {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let entry = name.rsplit('_').next().unwrap_or_default().to_owned();
            let attempt = name.split("_simd").next().and_then(|front| front.rsplit('_').next()?.parse::<u32>().ok());
            (entry, attempt.unwrap_or(0), name)
        };
        files.sort_by_key(order);
        let mut texts: Vec<(String, String)> = Vec::new();
        for file in &files {
            let text = processes::text(&fs::read(file).map_err(unreadable)?);
            let Some(head) = usage::xe::head(&text) else { continue };
            match texts.iter_mut().find(|(kernel, _)| *kernel == head.kernel) {
                Some((_, before)) => *before = text,
                None => texts.push((head.kernel, text)),
            }
        }
        if texts.is_empty() {
            return Err("ocloc's compiler dumped no assembly: this release can't".into());
        }
        let told = told(binary);
        let kernels = texts.iter().map(|(kernel, text)| {
            let head = usage::xe::head(text).unwrap_or_default();
            let counted = usage::count(usage::xe::listing(text).into_iter().collect()).pop().unwrap_or_default();
            let told = told.iter().find(|told| told.kernel == *kernel).cloned().unwrap_or_default();
            Usage {
                kernel: kernel.clone(),
                registers: told.registers.or(head.registers),
                spill_bytes: Some(head.spill_bytes),
                traffic: counted.traffic,
                in_loop: counted.in_loop,
                ..told
            }
        });
        let kernels = kernels.collect();
        Ok(Assembly { text: texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n"), kernels })
    }
}

/// What the machine code tells of its kernels, in a section of YAML; nothing in the older format.
fn told(binary: &[u8]) -> Vec<Usage> {
    let start = b"---\nversion:";
    let Some(at) = binary.windows(start.len()).position(|part| part == start) else { return Vec::new() };
    let info = processes::text(binary[at..].split(|byte| *byte == 0).next().unwrap_or_default());
    let kernels = info.split("\nkernels:").nth(1).unwrap_or_default();
    // The next key on the left margin ends the list.
    let end = kernels
        .match_indices('\n')
        .find(|(at, _)| kernels[at + 1..].starts_with(|c: char| c.is_alphanumeric() || c == '.'));
    let kernels = &kernels[..end.map_or(kernels.len(), |(at, _)| at)];
    let read = |kernel: &str| {
        let value = |text: &str, name: &str| {
            let line = text
                .lines()
                .map(|line| line.trim_start_matches([' ', '-']))
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.trim().trim_matches('\'').to_owned())
        };
        let number = |name: &str| value(kernel, name)?.parse::<u32>().ok();
        let buffers = kernel.split("per_thread_memory_buffers:").nth(1).unwrap_or_default();
        let sizes = buffers.split("- type:").skip(1).filter_map(|buffer| value(buffer, "size")?.parse::<u32>().ok());
        Some(Usage {
            kernel: value(kernel, "name")?,
            registers: number("grf_count"),
            lanes: number("simd_size"),
            // What isn't used isn't mentioned.
            shared_bytes: Some(number("slm_size").unwrap_or(0)),
            local_bytes: Some(sizes.sum()),
            ..Usage::default()
        })
    };
    kernels.split("\n  - ").skip(1).filter_map(read).collect()
}

fn refusal<T>(done: &Finished) -> Outcome<T> {
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
    fn the_assembly_tells_what_a_kernel_uses() {
        let Some(ocloc) = ocloc() else { return };
        let assembly = require::built("assembly", ocloc.assembly(samples::OPENCL, PVC));
        let [heat] = assembly.kernels.try_into().unwrap();
        assert_eq!((heat.kernel.as_str(), heat.spill_bytes, heat.in_loop), ("heat", Some(0), None), "{heat:?}");
        assert!(matches!(heat.registers, Some(128 | 256)) && heat.traffic.loads > 0, "{heat:?}");
        assert_eq!((heat.traffic.loaded_bytes, heat.traffic.stored_bytes), (7 * 8, 8), "{heat:?}");
        assert!(assembly.text.contains(":df"), "{}", assembly.text);
        let temporary = std::env::temp_dir().display().to_string();
        assert!(!assembly.text.contains(&temporary), "{}", assembly.text);
    }

    #[test]
    fn spills_are_seen_in_the_last_attempt() {
        let Some(ocloc) = ocloc() else { return };
        let source = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n\
                      __kernel void wide(__global const double* u, __global double* v) {\n  double a[120];\n\
                      size_t t = get_global_id(0);\n\
                      #pragma unroll\n  for (int i = 0; i < 120; i++) a[i] = u[i * 64 + t];\n\
                      barrier(CLK_GLOBAL_MEM_FENCE);\n\
                      #pragma unroll\n  for (int i = 0; i < 120; i++) v[i * 64 + t] = a[i] * a[119 - i];\n}\n";
        let assembly = require::built("assembly", ocloc.assembly(source, PVC));
        let [wide] = assembly.kernels.try_into().unwrap();
        assert!(wide.spill_bytes > Some(0) && wide.local_bytes.is_none_or(|bytes| bytes > 0), "{wide:?}");
        assert_eq!((wide.traffic.loaded_bytes, wide.traffic.stored_bytes), (120 * 8, 120 * 8), "{wide:?}");
    }

    #[test]
    fn the_section_about_kernels_is_read() {
        let yaml = "---\nversion: '1.20'\nkernels:\n  - name:            one\n    execution_env:\n      grf_count:       128\n      \
                    simd_size:       32\n      slm_size:        1024\n    per_thread_memory_buffers:\n      - type:            scratch\n        \
                    usage:           single_space\n        size:            65536\n  - name: two\n    execution_env:\n      grf_count: 256\n      \
                    simd_size: 16\n    per_thread_payload_arguments:\n      - arg_type: local_id\n        size: 192\nkernels_misc_info:\n  - name: one\n...\n";
        let binary = [b"\x7fELF\0", yaml.as_bytes(), b"\0rest"].concat();
        let used = |kernel: &str, registers, lanes, shared, local| Usage {
            kernel: kernel.into(),
            registers: Some(registers),
            lanes: Some(lanes),
            shared_bytes: Some(shared),
            local_bytes: Some(local),
            ..Usage::default()
        };
        assert_eq!(told(&binary), [used("one", 128, 32, 1024, 65536), used("two", 256, 16, 0, 0)]);
        assert_eq!(told(b"an older format"), []);
    }

    #[test]
    fn it_lists_the_devices_that_it_knows() {
        let Some(ocloc) = ocloc() else { return };
        let devices = ocloc.devices().unwrap();
        for device in ["pvc", "dg2", "skl"] {
            assert!(devices.iter().any(|name| name == device), "{device} in {devices:?}");
        }
        assert!(devices.iter().all(|name| !name.contains(char::is_whitespace)), "{devices:?}");
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
