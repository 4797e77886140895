//! HIP to code objects for AMD GPUs through clang's AMDGPU target: no ROCm, no headers, no device libraries.

use std::path::Path;
use std::process::Command;

use super::Outcome;
use super::cache::{Cache, Key};
use super::private::Folder;
use super::processes::{self, Finished, LIMIT, text};
use super::programs::{self, Environment, Program, Search, process_environment};
use super::usage::{self, Usage};

/// How clang is found. ROCm's own comes before the system's; the newest release that was tried comes first.
pub const SEARCH: Search = Search {
    tool: "clang with the AMDGPU target",
    variable: "POLYHALO_CLANG",
    homes: &[("ROCM_PATH", "llvm/bin")],
    folders: &["/opt/rocm/llvm/bin"],
    inside: &["bin", "llvm/bin"],
    names: &["clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang"],
    probe,
};

/// Of a vector register, for one thread.
const REGISTER_BYTES: u32 = 4;

/// A clang that can make code for AMD GPUs.
#[derive(Clone, Debug)]
pub struct Clang(Program);

/// What one kernel uses on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The kernel's name.
    pub kernel: String,
    /// Vector registers per thread, accumulation registers included where the device has them.
    pub vgprs: u32,
    /// Scalar registers per wave.
    pub sgprs: u32,
    /// Vector registers that did not fit and live in memory.
    pub spills_vgpr: u32,
    /// Scalar registers that did not fit.
    pub spills_sgpr: u32,
    /// Private memory per thread.
    pub scratch_bytes: u32,
    /// Memory shared by a block.
    pub shared_bytes: u32,
    /// Threads in a wave, where the metadata tell.
    pub lanes: Option<u32>,
}

/// A code object for `source`, from the cache or from the clang of this machine.
pub fn code_object(cache: &Cache, source: &str, arch: &str, contract: bool) -> Outcome<Vec<u8>> {
    let clang = match find() {
        Ok(clang) => clang,
        Err(reason) => return Outcome::Absent(reason),
    };
    let options = options(arch, contract).join(" ");
    let key = Key::of(&["code object", clang.version(), &options, source]);
    cache.built(&key, || clang.code_object(source, arch, contract))
}

/// The clang of this machine.
pub fn find() -> Result<Clang, String> {
    find_in(&process_environment)
}

/// As [`find`] with the variables of `environment`.
pub fn find_in(environment: Environment) -> Result<Clang, String> {
    SEARCH.find_in(environment).map(Clang)
}

impl Clang {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The line with which it introduces itself.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// A code object (a bare AMDGPU ELF file) for `arch`, such as `gfx90a`. The same source gives the same bytes.
    pub fn code_object(&self, source: &str, arch: &str, contract: bool) -> Outcome<Vec<u8>> {
        self.compile(source, arch, contract, "-c", "kernel.co")
    }

    /// The assembly text of the code object, as clang writes it; [`resources`] reads its notes.
    pub fn assembly(&self, source: &str, arch: &str, contract: bool) -> Outcome<String> {
        self.compile(source, arch, contract, "-S", "kernel.s").map(|bytes| text(&bytes))
    }

    fn compile(&self, source: &str, arch: &str, contract: bool, form: &str, file: &str) -> Outcome<Vec<u8>> {
        let attempt = || -> Result<Outcome<Vec<u8>>, String> {
            let folder = Folder::new()?;
            let mut command = folder.command(self.path());
            command.args(options(arch, contract)).args([form, "-o", file, "-"]);
            let done = processes::run(command, source.as_bytes(), LIMIT)?;
            match done.status.success() {
                true => folder.read(file).map(Outcome::Built),
                false => Ok(self.refusal(arch, &done)),
            }
        };
        attempt().unwrap_or_else(Outcome::Absent)
    }

    /// Whose fault it is that `done` failed.
    fn refusal(&self, arch: &str, done: &Finished) -> Outcome<Vec<u8>> {
        let log = done.log();
        // Only a mistake in the source has a place in it. A device that clang does not know, a function that needs a
        // device library, a linker that is missing and a crash have none.
        let in_source = |line: &str| line.starts_with("<stdin>:") && line.contains("error: ");
        if !done.crashed() && log.lines().any(in_source) {
            return Outcome::Rejected(log);
        }
        match self.knows(arch) {
            Ok(false) => Outcome::Absent(format!("{} does not know the device {arch}", self.version())),
            Ok(true) | Err(_) => Outcome::Absent(format!("{} failed ({}): {log}", self.version(), done.status)),
        }
    }

    /// Whether `arch` is among the processors that the AMDGPU target lists.
    fn knows(&self, arch: &str) -> Result<bool, String> {
        // Features may follow: gfx90a:xnack-.
        let processor = arch.split(':').next().unwrap_or(arch);
        Ok(self.architectures()?.iter().any(|name| name == processor))
    }

    /// The GPUs that it knows, such as `gfx90a`.
    pub fn architectures(&self) -> Result<Vec<String>, String> {
        let done =
            programs::answer(self.path(), &["-x", "hip", "--target=amdgcn-amd-amdhsa", "--print-supported-cpus"])?;
        let log = done.log();
        // Generic ones, such as gfx9-generic, are for objects that several GPUs can load.
        let names = log.lines().map(str::trim).filter(|line| line.starts_with("gfx") && !line.contains(' '));
        Ok(names.map(str::to_owned).collect())
    }
}

/// The options of every compilation: strict floating point whatever a configuration file of the machine says, and nothing
/// that depends on where the compiler runs.
fn options(arch: &str, contract: bool) -> Vec<String> {
    let fixed = [
        "-x",
        "hip",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-nogpulib",
        "-nogpuinc",
        "-std=c++17",
        "-O3",
        "-fno-fast-math",
        "-fhip-fp32-correctly-rounded-divide-sqrt",
        "-fno-gpu-flush-denormals-to-zero",
        // Otherwise a symbol is named after a hash of the place where the compiler runs.
        "-fuse-cuid=none",
        // The newest that ROCm 5 can load.
        "-mcode-object-version=5",
    ];
    let mut options: Vec<String> = fixed.map(String::from).into();
    options.push(format!("-ffp-contract={}", if contract { "fast" } else { "off" }));
    options.push(format!("--offload-arch={arch}"));
    options
}

/// What each kernel of an assembly text uses, from the metadata at its end.
pub fn resources(assembly: &str) -> Vec<Resources> {
    let metadata = assembly.split(".amdgpu_metadata").nth(1).unwrap_or_default();
    // Kernels are the items of a list at one indentation; those of their arguments stand deeper.
    let kernels = metadata.split("\n  - ").skip(1);
    let read = |kernel: &str| {
        let value = |name: &str| {
            let line = kernel.lines().map(str::trim).find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim)
        };
        let count = |name: &str| value(name)?.parse::<u32>().ok();
        Some(Resources {
            // The kernel's own name stands after those of its arguments, its symbol is unambiguous.
            kernel: value(".symbol")?.trim_matches('\'').trim_end_matches(".kd").to_string(),
            vgprs: count(".vgpr_count")?,
            sgprs: count(".sgpr_count")?,
            spills_vgpr: count(".vgpr_spill_count")?,
            spills_sgpr: count(".sgpr_spill_count")?,
            scratch_bytes: count(".private_segment_fixed_size")?,
            shared_bytes: count(".group_segment_fixed_size")?,
            lanes: count(".wavefront_size"),
        })
    };
    kernels.filter_map(read).collect()
}

/// What each kernel of an assembly text uses: its metadata, and its loads and stores.
pub fn usages(assembly: &str) -> Vec<Usage> {
    let counted = usage::count(usage::gcn::listings(assembly));
    let waves = usage::gcn::waves(assembly);
    let usage = |used: Resources| {
        let counted = counted.iter().find(|counted| counted.kernel == used.kernel).cloned();
        let waves = waves.iter().find(|(kernel, _)| *kernel == used.kernel).map(|(_, waves)| *waves);
        Usage {
            kernel: used.kernel,
            registers: Some(used.vgprs),
            scalar_registers: Some(used.sgprs),
            spill_bytes: Some(REGISTER_BYTES * (used.spills_vgpr + used.spills_sgpr)),
            local_bytes: Some(used.scratch_bytes),
            shared_bytes: Some(used.shared_bytes),
            lanes: used.lanes,
            waves,
            ..counted.unwrap_or_default()
        }
    };
    resources(assembly).into_iter().map(usage).collect()
}

/// One run tells both the version (on standard error) and the targets.
fn probe(path: &Path) -> Result<String, String> {
    let done = programs::answer(path, &["-v", "--print-targets"])?;
    let targets = text(&done.stdout);
    if !targets.lines().any(|line| line.trim_start().starts_with("amdgcn ")) {
        return Err("it was built without the AMDGPU target".into());
    }
    let beside = |folder: Option<&Path>| folder.is_some_and(|folder| folder.join("lld").is_file());
    let real = path.canonicalize().map_err(|cause| cause.to_string())?;
    if !beside(path.parent()) && !beside(real.parent()) && !asks_for_lld(path) {
        return Err("its linker lld is not installed".into());
    }
    let version = text(&done.stderr).lines().find(|line| line.contains("clang version")).map(str::to_string);
    version.ok_or_else(|| "it does not tell its version".into())
}

/// Whether clang itself finds an `lld` somewhere else: it then answers with the path.
fn asks_for_lld(path: &Path) -> bool {
    let mut command = Command::new(path);
    command.arg("-print-prog-name=lld");
    let answer = processes::run(command, b"", LIMIT).map(|done| text(&done.stdout));
    answer.is_ok_and(|answer| Path::new(answer.trim()).is_absolute())
}

#[cfg(test)]
mod tests {
    use super::super::{require, samples};
    use super::*;

    const DEVICES: [&str; 3] = ["gfx90a", "gfx942", "gfx1100"];

    fn clang() -> Option<Clang> {
        require::available("clang", find())
    }

    #[test]
    fn a_kernel_becomes_the_same_code_object_every_time() {
        let Some(clang) = clang() else { return };
        for arch in DEVICES {
            let first = require::built(arch, clang.code_object(samples::HIP, arch, false));
            // 224 is the AMD GPU among ELF's machines.
            assert!(first.starts_with(b"\x7fELF") && first[18..20] == 224_u16.to_le_bytes(), "{arch}");
            let holds = |text: &[u8]| first.windows(text.len()).any(|part| part == text);
            // The mark that would tell where the compiler ran is there without what it would tell.
            let mark = b"__hip_cuid_";
            let marks = first.windows(mark.len() + 1).filter(|part| part.starts_with(mark));
            assert!(marks.map(|part| part[mark.len()]).all(|next| next == 0), "{arch}");
            let temporary = std::env::temp_dir();
            assert!(holds(b"heat.kd") && !holds(temporary.as_os_str().as_encoded_bytes()), "{arch}");
            assert_eq!(first, require::built(arch, clang.code_object(samples::HIP, arch, false)), "{arch}");
        }
    }

    #[test]
    fn assembly_shows_strict_arithmetic_and_no_spills() {
        let Some(clang) = clang() else { return };
        for arch in DEVICES {
            let strict = require::built(arch, clang.assembly(samples::HIP, arch, false));
            assert!(strict.contains("v_mul_f64") && !strict.contains("v_fma_f64"), "{strict}");
            let contracted = require::built(arch, clang.assembly(samples::HIP, arch, true));
            assert!(contracted.contains("v_fma_f64") || contracted.contains("v_fmac_f64"), "{contracted}");
            let resources = resources(&strict);
            let [heat] = resources.as_slice() else { panic!("{resources:?}") };
            assert_eq!(
                (heat.kernel.as_str(), heat.spills_vgpr, heat.spills_sgpr, heat.scratch_bytes),
                ("heat", 0, 0, 0)
            );
            assert!((8..128).contains(&heat.vgprs) && (8..104).contains(&heat.sgprs), "{heat:?}");
        }
    }

    #[test]
    fn spills_are_seen() {
        let Some(clang) = clang() else { return };
        // Eighty values that live at once, in a kernel that promises eight waves.
        let source = "extern \"C\" __attribute__((global)) __attribute__((amdgpu_waves_per_eu(8, 8)))\n\
                      void wide(const double* u, double* v) {\n  double a[80];\n\
                      #pragma unroll\n  for (int i = 0; i < 80; i++) a[i] = u[i * 64 + __builtin_amdgcn_workitem_id_x()];\n\
                      __builtin_amdgcn_s_barrier();\n\
                      #pragma unroll\n  for (int i = 0; i < 80; i++) v[i * 64 + __builtin_amdgcn_workitem_id_x()] = a[i] * a[79 - i];\n}\n";
        let assembly = require::built("gfx90a", clang.assembly(source, "gfx90a", false));
        let wide = &resources(&assembly)[0];
        assert!(wide.spills_vgpr > 0 && wide.scratch_bytes > 0, "{wide:?}");
        let [wide] = usages(&assembly).try_into().unwrap();
        assert!(wide.spill_bytes > Some(0) && wide.local_bytes > Some(0), "{wide:?}");
        // Spills go to memory too, but no field is read by them.
        assert_eq!((wide.traffic.loaded_bytes, wide.traffic.stored_bytes), (80 * 8, 80 * 8), "{wide:?}");
    }

    #[test]
    fn loads_and_stores_are_found_in_the_assembly() {
        let Some(clang) = clang() else { return };
        let known = clang.architectures().unwrap();
        for arch in DEVICES {
            assert!(known.iter().any(|name| name == arch), "{arch} in {known:?}");
            let assembly = require::built(arch, clang.assembly(samples::HIP, arch, false));
            let [heat] = usages(&assembly).try_into().unwrap();
            let traffic = heat.traffic;
            // Seven values; a compiler may fetch neighbours along X by one instruction.
            assert_eq!((traffic.loaded_bytes, traffic.stores, traffic.stored_bytes), (7 * 8, 1, 8), "{arch}: {heat:?}");
            assert!((4..=7).contains(&traffic.loads) && heat.waves > Some(1) && heat.in_loop.is_none(), "{heat:?}");
            assert!(matches!(heat.lanes, Some(32 | 64)) && heat.spill_bytes == Some(0), "{heat:?}");
        }
    }

    #[test]
    fn a_mistake_in_the_source_is_rejected_with_its_place() {
        let Some(clang) = clang() else { return };
        let bad = samples::HIP.replace("double b", "doubl b");
        let Outcome::Rejected(log) = clang.code_object(&bad, "gfx90a", false) else { panic!("compiled nonsense") };
        assert!(log.contains("<stdin>:1:") && log.contains("doubl"), "{log}");
    }

    #[test]
    fn what_this_clang_can_not_do_is_no_mistake_in_the_source() {
        let Some(clang) = clang() else { return };
        for arch in ["gfx9999", "sm_70"] {
            let Outcome::Absent(reason) = clang.code_object(samples::HIP, arch, false) else { panic!("built {arch}") };
            assert!(reason.ends_with(&format!("does not know the device {arch}")), "{reason}");
        }
        // A function of the device library, which is not linked.
        let library = samples::HIP.replace("6.0 *", "__ocml_exp_f64(b) *");
        let library = format!("extern \"C\" __attribute__((device)) double __ocml_exp_f64(double);\n{library}");
        let Outcome::Absent(reason) = clang.code_object(&library, "gfx90a", false) else { panic!("linked nothing") };
        assert!(reason.contains("__ocml_exp_f64"), "{reason}");
    }

    #[test]
    fn metadata_of_several_kernels_is_told_apart() {
        let kernel = |name: &str, vgprs: u32| {
            format!(
                "  - .args:\n      - .name: {name}_argument\n        .offset: 0\n    .group_segment_fixed_size: 64\n    \
                 .name:           {name}\n    .private_segment_fixed_size: 8\n    .sgpr_count: 20\n    .sgpr_spill_count: 1\n    \
                 .symbol:         {name}.kd\n    .vgpr_count: {vgprs}\n    .vgpr_spill_count: 2\n    .wavefront_size: 64\n"
            )
        };
        let text = format!(
            "s_endpgm\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n{}{}amdhsa.target: x\n...\n\t.end_amdgpu_metadata\n",
            kernel("one", 24),
            kernel("two", 48)
        );
        let expected = |name: &str, vgprs| Resources {
            kernel: name.into(),
            vgprs,
            sgprs: 20,
            spills_vgpr: 2,
            spills_sgpr: 1,
            scratch_bytes: 8,
            shared_bytes: 64,
            lanes: Some(64),
        };
        assert_eq!(resources(&text), [expected("one", 24), expected("two", 48)]);
        assert_eq!(resources("no metadata"), []);
    }

    #[cfg(unix)]
    #[test]
    fn a_clang_without_the_target_or_the_linker_will_not_do() {
        use std::os::unix::fs::PermissionsExt;
        let folder = super::super::private::Folder::new().unwrap();
        let file = folder.path().join("clang");
        let check = |targets: &str, told: &str| {
            let script = format!("#!/bin/sh\n[ \"$1\" = -v ] && echo 'clang version 99' >&2 && echo '{targets}'\n");
            std::fs::write(&file, script).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            let value = file.as_os_str().to_os_string();
            let reason = find_in(&|variable| (variable == SEARCH.variable).then(|| value.clone())).unwrap_err();
            assert!(reason.contains(told), "{reason}");
        };
        check("    x86-64 - Intel", "without the AMDGPU target");
        check("    amdgcn - AMD GCN GPUs", "lld is not installed");
    }
}
