//! CUDA C to PTX or cubin through NVIDIA's run-time compiler, a library that needs neither a GPU nor a driver.
//!
//! The library is loaded when asked for and never linked. Of its symbols, ten serve, which every release since CUDA 11.1 has.

mod library;
mod version_line;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use library::{COMPILATION, INVALID_OPTION, Library, Product, Refusal};
use version_line::without_preamble;
pub use version_line::{lowered, lowered_to, target};

use super::cache::{Cache, Key, Provenance};
use super::programs::{Environment, Named, process_environment};
use super::{Outcome, processes};

/// The variable that names the library's file or folder; `off` says to do without.
pub const VARIABLE: &str = "POLYHALO_NVRTC";

/// Library names, best first: CUDA 12 knows every GPU from Volta on, 13 has dropped Volta.
const NAMES: [&str; 4] = ["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so.11", "libnvrtc.so"];

/// Where a toolkit, or a wheel unpacked into a folder, keeps the library.
const INSIDE: [&str; 7] = [
    "",
    "lib64",
    "lib",
    "lib/x86_64-linux-gnu",
    "targets/x86_64-linux/lib",
    "nvidia/cuda_nvrtc/lib",
    "nvidia/cu13/lib",
];

/// The virtual architecture that kernels are compiled for: PTX for it runs on every later GPU.
pub const OLDEST_ARCH: u32 = 70;

/// PTX for `source`, from the cache or from the NVRTC library of this machine.
pub fn ptx(cache: &Cache, source: &str, name: &str, arch: u32, contract: bool) -> Outcome<String> {
    let nvrtc = match find() {
        Ok(nvrtc) => nvrtc,
        Err(reason) => return Outcome::Absent(reason),
    };
    nvrtc.kept_ptx(cache, source, name, arch, contract).map(|(ptx, _)| ptx)
}

/// A loaded NVRTC library. Copies share it; it stays loaded for the life of the process.
#[derive(Clone, Debug)]
pub struct Nvrtc(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    path: PathBuf,
    library: Library,
}

/// The NVRTC library of this machine: `POLYHALO_NVRTC`, then `CUDA_HOME` and `CUDA_PATH`, then the loader's own search.
/// An error says what was tried and why nothing served. A library found once is remembered, a failure is not.
pub fn find() -> Result<Nvrtc, String> {
    find_in(&process_environment)
}

/// As [`find`] with the variables of `environment`.
pub fn find_in(environment: Environment) -> Result<Nvrtc, String> {
    if cfg!(all(unix, target_feature = "crt-static")) {
        return Err("a statically linked program can't load NVRTC (build it without +crt-static)".into());
    }
    let named = Named::read(environment, VARIABLE);
    let candidates = match &named {
        Named::Off => return Err(format!("{VARIABLE} turns NVRTC off")),
        Named::At(path) if path.is_dir() => in_folder(path),
        Named::At(path) => vec![path.clone()],
        Named::Unset => usual_places(environment),
    };
    let mut refused = Vec::new();
    for candidate in &candidates {
        match remembered(candidate) {
            Ok(nvrtc) => return Ok(nvrtc),
            // What the loader does not know under a bare name is simply not there.
            Err(reason) if candidate.is_relative() && reason.contains("cannot open shared object file") => {}
            Err(reason) => refused.push(format!("{}: {reason}", candidate.display())),
        }
    }
    Err(match named {
        Named::At(path) if candidates.is_empty() => {
            format!("{VARIABLE} names the folder {}, which holds no libnvrtc.so", path.display())
        }
        Named::At(path) if refused.is_empty() => {
            format!("{VARIABLE} names {}, which is not there", path.display())
        }
        Named::At(_) => format!("{VARIABLE} can't be used: {}", refused.join("; ")),
        Named::Off | Named::Unset if refused.is_empty() => {
            format!("no libnvrtc.so was found in {VARIABLE}, $CUDA_HOME, $CUDA_PATH or by the loader")
        }
        Named::Off | Named::Unset => {
            format!("no NVRTC library can be used: {}", refused.join("; "))
        }
    })
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let files = INSIDE.iter().flat_map(|inside| NAMES.map(|name| folder.join(inside).join(name)));
    files.filter(|file| file.exists()).collect()
}

fn usual_places(environment: Environment) -> Vec<PathBuf> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(environment).filter(|home| !home.is_empty());
    let files = homes.flat_map(|home| in_folder(Path::new(&home)));
    files.chain(NAMES.map(PathBuf::from)).collect()
}

fn remembered(path: &Path) -> Result<Nvrtc, String> {
    static FOUND: Mutex<BTreeMap<PathBuf, Nvrtc>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(nvrtc) = found.get(path) {
        return Ok(nvrtc.clone());
    }
    let nvrtc = Nvrtc::load(path)?;
    found.insert(path.to_path_buf(), nvrtc.clone());
    Ok(nvrtc)
}

impl Nvrtc {
    /// Loads the library at `path`, or the one that the loader finds under that name.
    pub fn load(path: &Path) -> Result<Nvrtc, String> {
        let library = Library::load(path)?;
        Ok(Nvrtc(Arc::new(Loaded { path: path.to_path_buf(), library })))
    }

    /// The library's version, such as `12.9`.
    pub fn version(&self) -> String {
        let (major, minor) = self.0.library.version();
        format!("{major}.{minor}")
    }

    /// The file it came from, or the name under which the loader found it.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// PTX for the virtual architecture `compute_<arch>` (70 is Volta), its `.version` [`lowered`]. `name` stands for the
    /// source in the log. A library that has dropped `arch` gives PTX for `compute_75`; its `.target` line says so.
    pub fn ptx(&self, source: &str, name: &str, arch: u32, contract: bool) -> Outcome<String> {
        self.plain_ptx(source, name, arch, contract).map(|ptx| lowered(&ptx))
    }

    /// As [`ptx`](Self::ptx), from the cache if it is there; says whether it was.
    pub fn kept_ptx(
        &self,
        cache: &Cache,
        source: &str,
        name: &str,
        arch: u32,
        contract: bool,
    ) -> Outcome<(String, Provenance)> {
        let options = options(&format!("compute_{arch}"), contract).join(" ");
        let key = Key::of(&["ptx", &self.version(), &options, source]);
        let build = || self.plain_ptx(source, name, arch, contract).map(String::into_bytes);
        // The `.version` line is lowered after the cache, so that an entry never holds an outdated rule.
        cache.kept_or_built(&key, build).map(|(bytes, from)| (lowered(&processes::text(&bytes)), from))
    }

    /// A cubin for the real architecture `sm_<arch>`.
    pub fn cubin(&self, source: &str, name: &str, arch: u32, contract: bool) -> Outcome<Vec<u8>> {
        let options = options(&format!("sm_{arch}"), contract);
        self.outcome(self.0.library.compile(source, name, &options, Product::Cubin))
    }

    /// PTX as NVRTC writes it, for the cache and for tests.
    pub(super) fn plain_ptx(&self, source: &str, name: &str, arch: u32, contract: bool) -> Outcome<String> {
        let compile = |arch: u32| {
            let options = options(&format!("compute_{arch}"), contract);
            self.0.library.compile(source, name, &options, Product::Ptx)
        };
        let answer = match compile(arch) {
            Err(Refusal { code: INVALID_OPTION, .. }) if (70..75).contains(&arch) => compile(75),
            answer => answer,
        };
        self.outcome(answer).map(|bytes| without_preamble(&processes::text(&bytes)).to_string())
    }

    fn outcome(&self, answer: Result<Vec<u8>, Refusal>) -> Outcome<Vec<u8>> {
        match answer {
            Ok(product) => Outcome::Built(product),
            Err(Refusal { code: COMPILATION, log, .. }) => Outcome::Rejected(log),
            Err(Refusal { call, code, log }) => {
                Outcome::Absent(format!("NVRTC {}: {call} answered {code}: {log}", self.version()))
            }
        }
    }
}

/// The options of every compilation: strict floating point, no path and no line information, so that the same source gives
/// the same bytes everywhere.
fn options(arch: &str, contract: bool) -> [String; 6] {
    [
        format!("--gpu-architecture={arch}"),
        format!("--fmad={contract}"),
        "--prec-div=true".into(),
        "--prec-sqrt=true".into(),
        "--ftz=false".into(),
        "--std=c++17".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::private::Folder;
    use super::super::{ptxas, require, samples};
    use super::*;
    use std::fs;
    use std::process::Command;

    fn nvrtc() -> Option<Nvrtc> {
        require::available("nvrtc", find())
    }

    /// What `find` says when only `POLYHALO_NVRTC` is set.
    fn named(path: &Path) -> Result<Nvrtc, String> {
        let value = path.as_os_str().to_os_string();
        find_in(&|variable| (variable == VARIABLE).then(|| value.clone()))
    }

    #[test]
    fn a_kernel_becomes_the_same_strict_ptx_every_time() {
        let Some(nvrtc) = nvrtc() else { return };
        let ptx = require::built("PTX", nvrtc.ptx(samples::CUDA, "heat.cu", 70, false));
        assert!(ptx.starts_with(".version 6.3\n.target sm_7"), "{ptx}");
        assert!(ptx.contains(".entry heat(") && ptx.contains("add.rn.f64") && !ptx.contains("fma.rn.f64"), "{ptx}");
        assert!(!ptx.contains("heat.cu") && !ptx.contains("NVVM") && !ptx.contains('\0'), "{ptx}");
        assert!(ptx.ends_with("}\n\n") || ptx.ends_with("}\n"), "cut short: {ptx}");
        assert_eq!(Outcome::Built(ptx), nvrtc.ptx(samples::CUDA, "another/name.cu", 70, false));
    }

    #[test]
    fn ptx_of_the_oldest_version_gives_the_same_machine_code() {
        let Some(nvrtc) = nvrtc() else { return };
        let Some(ptxas) = require::available("ptxas", ptxas::find()) else { return };
        for (target, _, oldest) in version_line::TARGETS {
            let arch = target.trim_start_matches("sm_").parse().unwrap();
            let plain = match nvrtc.plain_ptx(samples::CUDA, "heat.cu", arch, false) {
                Outcome::Built(ptx) if super::target(&ptx) == Some(target) => ptx,
                other => {
                    require::say_skipped(&format!("NVRTC {} makes nothing for {target}: {other:?}", nvrtc.version()));
                    continue;
                }
            };
            let code = |ptx: &str| require::built(target, ptxas.assemble(ptx, target)).cubin;
            assert_eq!(code(&plain), code(&lowered_to(&plain, oldest).unwrap()), "{target}");
        }
    }

    #[test]
    fn contraction_is_a_switch() {
        let Some(nvrtc) = nvrtc() else { return };
        let ptx = require::built("PTX", nvrtc.ptx(samples::CUDA, "heat.cu", 80, true));
        assert!(ptx.contains("fma.rn.f64"), "{ptx}");
    }

    #[test]
    fn a_cubin_is_machine_code() {
        let Some(nvrtc) = nvrtc() else { return };
        let cubin = require::built("cubin", nvrtc.cubin(samples::CUDA, "heat.cu", 90, false));
        assert!(cubin.starts_with(b"\x7fELF"));
    }

    #[test]
    fn a_mistake_in_the_source_is_rejected_with_its_place() {
        let Some(nvrtc) = nvrtc() else { return };
        let bad = samples::CUDA.replace("double b", "doubl b");
        let Outcome::Rejected(log) = nvrtc.ptx(&bad, "heat.cu", 70, false) else { panic!("compiled nonsense") };
        assert!(log.starts_with("heat.cu(1): error:") && log.contains("doubl"), "{log}");
        let Outcome::Rejected(log) = nvrtc.ptx("int a;\0", "heat.cu", 70, false) else { panic!("compiled a NUL") };
        assert!(log.contains("NUL"), "{log}");
    }

    #[test]
    fn an_unknown_architecture_is_no_mistake_in_the_source() {
        let Some(nvrtc) = nvrtc() else { return };
        for outcome in [
            nvrtc.ptx(samples::CUDA, "heat.cu", 999, false).map(|_| ()),
            nvrtc.cubin(samples::CUDA, "heat.cu", 999, false).map(|_| ()),
        ] {
            let Outcome::Absent(reason) = outcome else { panic!("{outcome:?}") };
            assert!(reason.contains("answered 5") && reason.contains("gpu-architecture"), "{reason}");
        }
    }

    #[test]
    fn a_missing_or_wrong_library_is_a_reason() {
        let folder = Folder::new().unwrap();
        let check = |path: &Path, told: &str| {
            let reason = named(path).unwrap_err();
            assert!(reason.contains(VARIABLE) && reason.contains(told), "{reason}");
        };
        check(&folder.path().join("libnvrtc.so.12"), "No such file");
        check(Path::new("no-such-library.so"), "which is not there");
        check(folder.path(), "holds no libnvrtc.so");
        check(Path::new("off"), "turns NVRTC off");
        folder.write("libnvrtc.so.12", b"not a library").unwrap();
        check(folder.path(), "libnvrtc.so.12: ");
        // A library, but another one.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        check(Path::new("libm.so.6"), "no NVRTC of CUDA 11.1 or later");
    }

    #[test]
    fn a_library_that_appears_later_is_found() {
        let Some(nvrtc) = nvrtc() else { return };
        let folder = Folder::new().unwrap();
        assert!(named(folder.path()).is_err());
        fs::create_dir(folder.path().join("lib64")).unwrap();
        if !nvrtc.path().is_absolute() {
            return require::say_skipped("NVRTC was found by name, so its file is not known");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(nvrtc.path(), folder.path().join("lib64/libnvrtc.so.12")).unwrap();
        assert_eq!(named(folder.path()).unwrap().version(), nvrtc.version());
    }

    /// The library finds its second half by name in the whole process, so this needs a process that has not loaded it:
    /// the test runs itself again, with the variable set.
    #[test]
    fn a_library_without_its_builtins_is_absent() {
        const HALF: &str = "POLYHALO_TEST_HALF_NVRTC";
        if let Some(path) = std::env::var_os(HALF) {
            let outcome = named(Path::new(&path)).unwrap().ptx(samples::CUDA, "heat.cu", 75, false);
            let Outcome::Absent(reason) = outcome else { panic!("compiled without builtins: {outcome:?}") };
            assert!(reason.contains("answered 7") && reason.contains("builtins"), "{reason}");
            return println!("absent as it should be");
        }
        let Some(nvrtc) = nvrtc() else { return };
        if !nvrtc.path().is_absolute() {
            return require::say_skipped("NVRTC was found by name, so its file is not known");
        }
        let folder = Folder::new().unwrap();
        fs::copy(nvrtc.path(), folder.path().join("libnvrtc.so.12")).unwrap();
        let path = format!("{}::a_library_without_its_builtins_is_absent", module_path!());
        let (_, name) = path.split_once("::").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(HALF, folder.path()).env_remove("LD_LIBRARY_PATH");
        let done = processes::run(command, b"", processes::LIMIT).unwrap();
        assert!(done.status.success() && done.log().contains("absent as it should be"), "{}", done.log());
    }

    #[test]
    fn many_threads_share_one_library() {
        let Some(nvrtc) = nvrtc() else { return };
        let expected = nvrtc.ptx(samples::CUDA, "heat.cu", 80, false);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| find().unwrap().ptx(samples::CUDA, "heat.cu", 80, false))).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), expected);
            }
        });
    }

    #[test]
    fn what_was_compiled_is_kept() {
        if nvrtc().is_none() {
            return;
        }
        let folder = Folder::new().unwrap();
        let cache = cache_in(folder.path());
        let first = ptx(&cache, samples::CUDA, "heat.cu", 70, false);
        let kept = fs::read_dir(folder.path()).unwrap().count();
        let again = ptx(&cache, samples::CUDA, "heat.cu", 70, false);
        assert_eq!((kept, fs::read_dir(folder.path()).unwrap().count()), (1, 1));
        assert!(matches!(&first, Outcome::Built(ptx) if ptx.starts_with(".version 6.3")));
        assert_eq!(first, again);
        assert_ne!(first, ptx(&cache, samples::CUDA, "heat.cu", 70, true));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    fn cache_in(folder: &Path) -> Cache {
        let folder = folder.as_os_str().to_os_string();
        Cache::open_in(None, &|variable| (variable == super::super::cache::VARIABLE).then(|| folder.clone()))
    }
}
