//! PTX to machine code for NVIDIA GPUs with `ptxas`, and back to text with `nvdisasm`: what a driver would make of our PTX,
//! and what it would cost.

use super::Outcome;
use super::private::Folder;
use super::processes::{self, Finished, LIMIT, text};
use super::programs::{self, Environment, Program, Search, process_environment};
use super::usage::{self, Usage};

const HOMES: &[(&str, &str)] = &[("CUDA_HOME", "bin"), ("CUDA_PATH", "bin")];
const FOLDERS: &[&str] = &["/usr/local/cuda/bin"];
const INSIDE: &[&str] = &["bin", "nvidia/cuda_nvcc/bin", "nvidia/cu13/bin"];

/// How the assembler is found.
pub const PTXAS: Search = Search {
    tool: "ptxas",
    variable: "POLYHALO_PTXAS",
    homes: HOMES,
    folders: FOLDERS,
    inside: INSIDE,
    names: &["ptxas"],
    probe: |path| programs::version_line(path, release),
};

/// How the disassembler is found.
pub const NVDISASM: Search = Search {
    tool: "nvdisasm",
    variable: "POLYHALO_NVDISASM",
    homes: HOMES,
    folders: FOLDERS,
    inside: INSIDE,
    names: &["nvdisasm"],
    probe: |path| programs::version_line(path, release),
};

/// NVIDIA's assembler.
#[derive(Clone, Debug)]
pub struct Ptxas(Program);

/// NVIDIA's disassembler.
#[derive(Clone, Debug)]
pub struct Nvdisasm(Program);

/// Machine code and what its kernels use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// An ELF file that a driver loads as it is.
    pub cubin: Vec<u8>,
    /// One entry per kernel, in the order of the PTX.
    pub kernels: Vec<Resources>,
}

/// What one kernel uses on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The kernel's name.
    pub kernel: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes written to memory because they did not fit into registers, in the kernel and the functions it calls.
    pub spill_stores: u32,
    /// Bytes read back.
    pub spill_loads: u32,
    /// Memory of a thread's own in bytes, spills included.
    pub stack_bytes: u32,
    /// Memory shared by a block, in bytes.
    pub shared_bytes: u32,
}

/// The `ptxas` of this machine.
pub fn find() -> Result<Ptxas, String> {
    find_in(&process_environment)
}

/// As [`find`] with the variables of `environment`.
pub fn find_in(environment: Environment) -> Result<Ptxas, String> {
    PTXAS.find_in(environment).map(Ptxas)
}

/// The `nvdisasm` of this machine.
pub fn find_disassembler() -> Result<Nvdisasm, String> {
    NVDISASM.find().map(Nvdisasm)
}

impl Ptxas {
    /// The file and its version.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// Assembles for `arch`, such as `sm_90`.
    pub fn assemble(&self, ptx: &str, arch: &str) -> Outcome<Assembled> {
        let attempt = || -> Result<Outcome<Assembled>, String> {
            let folder = Folder::new()?;
            folder.write("kernel.ptx", ptx.as_bytes())?;
            let mut command = folder.command(&self.0.path);
            command.args(["-v", "-arch", arch, "kernel.ptx", "-o", "kernel.cubin"]);
            let done = processes::run(command, b"", LIMIT)?;
            if !done.status.success() {
                return Ok(self.refusal(&done));
            }
            let cubin = folder.read("kernel.cubin")?;
            Ok(Outcome::Built(Assembled { cubin, kernels: resources(&done.log()) }))
        };
        attempt().unwrap_or_else(Outcome::Absent)
    }

    /// The GPUs that it knows, such as `sm_90`.
    pub fn architectures(&self) -> Result<Vec<String>, String> {
        let help = programs::answer(&self.0.path, &["--help"])?.log();
        // The help also lists GPUs for other options; every list is the same.
        let names = help.split('\'').filter(|word| word.starts_with("sm_")).map(str::to_owned);
        let mut names: Vec<String> = names.collect();
        let number = |name: &String| name.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok();
        names.sort_by_key(|name| (number(name), name.clone()));
        names.dedup();
        Ok(names)
    }

    fn refusal(&self, done: &Finished) -> Outcome<Assembled> {
        let log = done.log();
        // An `error` is a mistake in the PTX; what is only `fatal` (an unknown device, a PTX version that is too new, a
        // target above the device) says that this ptxas and this PTX do not fit together.
        let in_source = |line: &str| line.starts_with("ptxas kernel.ptx, line ") && line.contains("; error ");
        match !done.crashed() && log.lines().any(in_source) {
            true => Outcome::Rejected(log),
            false => Outcome::Absent(format!("ptxas {} failed ({}): {log}", self.0.version, done.status)),
        }
    }
}

impl Nvdisasm {
    /// The file and its version.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// The machine instructions (SASS) of a cubin as text. A release that has dropped the cubin's device can't tell.
    pub fn sass(&self, cubin: &[u8]) -> Outcome<String> {
        let attempt = || -> Result<String, String> {
            let folder = Folder::new()?;
            folder.write("kernel.cubin", cubin)?;
            let mut command = folder.command(&self.0.path);
            command.args(["--print-code", "kernel.cubin"]);
            let done = processes::run(command, b"", LIMIT)?;
            match done.status.success() {
                true => Ok(text(&done.stdout)),
                false => Err(format!("nvdisasm {} failed ({}): {}", self.0.version, done.status, done.log())),
            }
        };
        attempt().map_or_else(Outcome::Absent, Outcome::Built)
    }
}

/// What each kernel uses: what `ptxas` tells, and the loads and stores in the machine code.
pub fn usages(kernels: &[Resources], sass: &str) -> Vec<Usage> {
    let counted = usage::count(usage::sass::listings(sass));
    let usage = |used: &Resources| {
        let counted = counted.iter().find(|counted| counted.kernel == used.kernel).cloned();
        Usage {
            kernel: used.kernel.clone(),
            registers: Some(used.registers),
            spill_bytes: Some(used.spill_stores),
            local_bytes: Some(used.stack_bytes),
            shared_bytes: Some(used.shared_bytes),
            ..counted.unwrap_or_default()
        }
    };
    kernels.iter().map(usage).collect()
}

/// `V12.9.86` of `Cuda compilation tools, release 12.9, V12.9.86`.
fn release(line: &str) -> Option<&str> {
    line.strip_prefix("Cuda compilation tools, release ")?.split_once(", V").map(|(_, version)| version)
}

/// What `ptxas -v` tells about each kernel.
pub fn resources(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or(rest).to_string();
            kernels.push(Resources { kernel, ..Resources::default() });
        }
        let Some(kernel) = kernels.last_mut() else {
            continue;
        };
        kernel.stack_bytes += before(line, " bytes stack frame").unwrap_or(0);
        kernel.spill_stores += before(line, " bytes spill stores").unwrap_or(0);
        kernel.spill_loads += before(line, " bytes spill loads").unwrap_or(0);
        kernel.registers = before(line, " registers").unwrap_or(kernel.registers);
        kernel.shared_bytes = before(line, " bytes smem").unwrap_or(kernel.shared_bytes);
    }
    kernels
}

/// The number that stands before `unit` in `line`.
fn before(line: &str, unit: &str) -> Option<u32> {
    line.split_once(unit)?.0.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc, require, samples};
    use super::*;

    fn ptxas() -> Option<Ptxas> {
        require::available("ptxas", find())
    }

    #[test]
    fn a_log_is_read_kernel_by_kernel() {
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'heat' for 'sm_70'
ptxas info    : Function properties for heat
    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 22 registers, used 0 barriers, 388 bytes cmem[0]
ptxas info    : Compiling entry function 'march' for 'sm_70'
ptxas info    : Function properties for march
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for helper
    8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 2880 bytes smem, 400 bytes cmem[0]
";
        let used = |kernel: &str, registers, [spill_stores, spill_loads, stack_bytes, shared_bytes]: [u32; 4]| {
            Resources { kernel: kernel.into(), registers, spill_stores, spill_loads, stack_bytes, shared_bytes }
        };
        let (heat, march) = (used("heat", 22, [24, 32, 16, 0]), used("march", 48, [8, 4, 8, 2880]));
        assert_eq!(resources(log), [heat, march]);
        assert_eq!(resources("nothing of use"), []);
    }

    #[test]
    fn ptx_becomes_machine_code_without_spills() {
        let Some(ptxas) = ptxas() else { return };
        for arch in ["sm_75", "sm_80", "sm_90"] {
            let assembled = require::built(arch, ptxas.assemble(samples::PTX, arch));
            assert!(assembled.cubin.starts_with(b"\x7fELF"));
            let [kernel] = assembled.kernels.as_slice() else { panic!("{:?}", assembled.kernels) };
            assert_eq!((kernel.kernel.as_str(), kernel.spill_stores, kernel.spill_loads), ("scale", 0, 0));
            assert!((4..64).contains(&kernel.registers), "{kernel:?}");
        }
    }

    #[test]
    fn it_lists_the_gpus_that_it_knows() {
        let Some(ptxas) = ptxas() else { return };
        let names = ptxas.architectures().unwrap();
        let place = |name: &str| names.iter().position(|known| known == name).expect(name);
        assert!(place("sm_80") < place("sm_90") && names.iter().all(|name| name.starts_with("sm_")), "{names:?}");
    }

    #[test]
    fn a_mistake_in_the_ptx_is_rejected() {
        let Some(ptxas) = ptxas() else { return };
        let bad = samples::PTX.replace("mul.rn.f64", "mull.rn.f64");
        assert_ne!(bad, samples::PTX);
        match ptxas.assemble(&bad, "sm_80") {
            Outcome::Rejected(log) => assert!(log.contains("'mull'"), "{log}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_does_not_fit_this_ptxas_is_no_mistake() {
        let Some(ptxas) = ptxas() else { return };
        let newer = samples::PTX.replace(".version 6.3", ".version 99.0");
        let above = samples::PTX.replace(".version 6.3", ".version 7.8").replace("sm_70", "sm_90");
        for (ptx, arch, told) in [
            (samples::PTX, "sm_999", "sm_999"),
            (&newer, "sm_80", "Unsupported .version 99.0"),
            (&above, "sm_80", ".target is higher"),
        ] {
            match ptxas.assemble(ptx, arch) {
                Outcome::Absent(reason) => assert!(reason.contains(told), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn one_lowered_volta_text_serves_every_gpu_bit_for_bit() {
        let Some(ptxas) = ptxas() else { return };
        let Some(nvrtc) = require::available("nvrtc", nvrtc::find()) else {
            return;
        };
        for (arch, devices) in
            [(70, &["sm_70", "sm_75", "sm_80", "sm_90", "sm_100"][..]), (80, &["sm_80"]), (90, &["sm_90"])]
        {
            let plain = require::built("PTX", nvrtc.plain_ptx(samples::CUDA, "heat", arch, false));
            let lowered = nvrtc::lowered(&plain);
            assert_ne!(plain, lowered);
            for device in devices {
                let after = match ptxas.assemble(&lowered, device) {
                    Outcome::Built(after) => after,
                    // This ptxas does not know the device, or this NVRTC no longer writes PTX for Volta.
                    Outcome::Absent(reason)
                        if reason.contains("not defined") || reason.contains(".target is higher") =>
                    {
                        require::say_skipped(&reason);
                        continue;
                    }
                    other => panic!("compute_{arch} on {device}: {other:?}"),
                };
                let [kernel] = after.kernels.as_slice() else { panic!("{:?}", after.kernels) };
                assert_eq!((kernel.spill_stores, kernel.spill_loads), (0, 0));
                match ptxas.assemble(&plain, device) {
                    Outcome::Built(before) => {
                        assert_eq!(before, after, "compute_{arch} on {device}")
                    }
                    // What was to be shown: a ptxas older than NVRTC takes the lowered text only.
                    Outcome::Absent(reason) => {
                        assert!(reason.contains("Unsupported .version"), "{reason}")
                    }
                    Outcome::Rejected(log) => panic!("compute_{arch} on {device}: {log}"),
                }
            }
        }
    }

    #[test]
    fn no_contraction_reaches_the_machine_code() {
        let Some(ptxas) = ptxas() else { return };
        let Some(nvrtc) = require::available("nvrtc", nvrtc::find()) else {
            return;
        };
        let Some(nvdisasm) = require::available("nvdisasm", find_disassembler()) else {
            return;
        };
        let sass = |contract| {
            let ptx = require::built("PTX", nvrtc.ptx(samples::CUDA, "heat", 75, contract));
            let assembled = require::built("cubin", ptxas.assemble(&ptx, "sm_90"));
            require::built("SASS", nvdisasm.sass(&assembled.cubin))
        };
        let (strict, contracted) = (sass(false), sass(true));
        assert!(strict.contains("DADD") && strict.contains("DMUL") && !strict.contains("DFMA"), "{strict}");
        assert!(contracted.contains("DFMA"), "{contracted}");
    }

    #[test]
    fn loads_and_stores_are_found_in_the_machine_code() {
        let Some(ptxas) = ptxas() else { return };
        let Some(nvdisasm) = require::available("nvdisasm", find_disassembler()) else { return };
        let assembled = require::built("cubin", ptxas.assemble(samples::PTX, "sm_90"));
        let sass = require::built("SASS", nvdisasm.sass(&assembled.cubin));
        let [scale] = usages(&assembled.kernels, &sass).try_into().unwrap();
        assert_eq!((scale.kernel.as_str(), scale.spill_bytes, scale.local_bytes), ("scale", Some(0), Some(0)));
        let once = usage::Traffic { loads: 1, loaded_bytes: 8, stores: 1, stored_bytes: 8 };
        assert_eq!((scale.traffic, scale.in_loop), (once, None));
    }

    #[test]
    fn what_is_no_cubin_is_not_disassembled() {
        let Some(nvdisasm) = require::available("nvdisasm", find_disassembler()) else {
            return;
        };
        let Outcome::Absent(reason) = nvdisasm.sass(b"no cubin") else { panic!("read text as machine code") };
        assert!(reason.starts_with("nvdisasm "), "{reason}");
    }
}
