//! HIP to code objects through AMD's run-time compiler, a library, in a process of its own.
//!
//! The library ends its process when it is asked for an architecture that it doesn't know, and comes to harm in other ways
//! too. So the program starts itself once more for each question: `child` does this and answers there, before `main`, with the
//! library that `library` wraps; `message` is what the two processes write to each other.

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod library;
mod message;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use message::{Request, Work};
use polyhalo_codegen::offline::cache::{Key, Provenance};
use polyhalo_codegen::offline::programs::{Environment, Named};
use polyhalo_codegen::offline::{Cache, Outcome};

/// The variable that names the library's file or folder; `off` says to do without.
const VARIABLE: &str = "POLYHALO_HIPRTC";

/// The variable that names the driver's library, beside or in which its hiprtc is.
const DRIVER: &str = "POLYHALO_HIP";

/// Names of the library, newest first; some systems keep hiprtc in the driver's library.
const NAMES: [&str; 8] = [
    "libhiprtc.so.7",
    "libhiprtc.so.6",
    "libhiprtc.so.5",
    "libhiprtc.so",
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
];

/// A kernel to be compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program<'a> {
    /// HIP.
    pub(super) source: &'a str,
    /// What the log calls it.
    pub(super) name: &'a str,
    /// A processor with its features, as the card tells it.
    pub(super) arch: &'a str,
    /// Whether multiply and add may be fused.
    pub(super) contract: bool,
}

/// A hiprtc library that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hiprtc {
    /// The file, or the name under which the loader finds it.
    library: PathBuf,
    /// Major and minor.
    version: String,
    /// What tells its build from others, as far as its file does: old releases give all builds the same version.
    build: String,
}

impl fmt::Display for Hiprtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hiprtc {}", self.version)
    }
}

/// The hiprtc of this machine: `POLYHALO_HIPRTC`, then what goes with `POLYHALO_HIP`, then `ROCM_PATH`, `HIP_PATH` and the
/// loader's own search. An error says what was tried and why nothing served. A library found once is remembered, a failure is
/// not.
pub(super) fn find(environment: Environment<'_>) -> Result<Hiprtc, String> {
    static FOUND: Mutex<BTreeMap<Vec<PathBuf>, Hiprtc>> = Mutex::new(BTreeMap::new());
    let candidates = candidates(environment)?;
    // Held while asking, so that devices which are opened together ask once.
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hiprtc) = found.get(&candidates) {
        return Ok(hiprtc.clone());
    }
    let answer = ask(&Request { libraries: candidates.clone(), work: Work::Identify }).into_result()?;
    let hiprtc = message::identity(&answer).ok_or("the answer about hiprtc is damaged")?;
    found.insert(candidates, hiprtc.clone());
    Ok(hiprtc)
}

impl Hiprtc {
    /// Its file and version.
    pub(super) fn place(&self) -> String {
        format!("{} (version {})", self.library.display(), self.version)
    }

    /// A code object for `program`, from the cache if it is there; says whether it was. It is for the driver of that version.
    pub(super) fn kept_object(
        &self,
        cache: &Cache,
        driver: &str,
        program: &Program<'_>,
    ) -> Outcome<(Vec<u8>, Provenance)> {
        let options = options(program);
        let key = Key::of(&["hiprtc", &self.version, &self.build, driver, &options.join(" "), program.source]);
        let (source, name) = (program.source.to_owned(), format!("{}.hip", program.name));
        let work = Work::Compile { source, name, options };
        cache.kept_or_built(&key, || ask(&Request { libraries: vec![self.library.clone()], work }))
    }
}

/// The options of every compilation: strict floating point, for the very card.
fn options(program: &Program<'_>) -> Vec<String> {
    vec![
        format!("--offload-arch={}", program.arch),
        "-O3".into(),
        "-std=c++17".into(),
        "-fno-fast-math".into(),
        "-fhip-fp32-correctly-rounded-divide-sqrt".into(),
        format!("-ffp-contract={}", if program.contract { "fast" } else { "off" }),
    ]
}

/// Where the library may be, in the order in which it is tried.
fn candidates(environment: Environment<'_>) -> Result<Vec<PathBuf>, String> {
    match Named::read(environment, VARIABLE) {
        Named::Off => return Err(format!("{VARIABLE} turns hiprtc off")),
        Named::At(path) if path.is_dir() => return in_folder(&path, VARIABLE),
        Named::At(path) => return Ok(vec![path]),
        Named::Unset => {}
    }
    match Named::read(environment, DRIVER) {
        Named::At(path) if path.is_dir() => in_folder(&path, DRIVER),
        Named::At(path) => {
            let beside = path.parent().map(present).unwrap_or_default();
            let own = beside.into_iter().filter(|file| is_hiprtc(file));
            Ok(own.chain([path.clone()]).collect())
        }
        Named::Off | Named::Unset => Ok(usual_places(environment)),
    }
}

fn in_folder(folder: &Path, variable: &str) -> Result<Vec<PathBuf>, String> {
    let inside: Vec<_> = ["", "lib", "lib64"].iter().flat_map(|inside| present(&folder.join(inside))).collect();
    match inside.is_empty() {
        true => Err(format!("{variable} names the folder {}, which holds no libhiprtc.so", folder.display())),
        false => Ok(inside),
    }
}

fn usual_places(environment: Environment<'_>) -> Vec<PathBuf> {
    let named = |variable| environment(variable).filter(|home| !home.is_empty());
    let homes = ["ROCM_PATH", "HIP_PATH"].into_iter().filter_map(named);
    let homes = homes.chain([OsString::from("/opt/rocm")]).flat_map(|home| present(&Path::new(&home).join("lib")));
    let (own, drivers) = NAMES.map(PathBuf::from).into_iter().partition::<Vec<_>, _>(|name| is_hiprtc(name));
    let (homes_own, homes_drivers) = homes.partition::<Vec<_>, _>(|file| is_hiprtc(file));
    // A hiprtc anywhere comes before a driver's library that may have it inside.
    [homes_own, own, homes_drivers, drivers].concat()
}

/// The libraries that lie in a folder.
fn present(folder: &Path) -> Vec<PathBuf> {
    NAMES.iter().map(|name| folder.join(name)).filter(|file| file.exists()).collect()
}

/// Whether a file is hiprtc by its name, not a driver that may have it inside.
fn is_hiprtc(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libhiprtc"))
}

/// The answer of a process of its own.
#[cfg(target_os = "linux")]
fn ask(request: &Request) -> Outcome<Vec<u8>> {
    child::Child::default().ask(request)
}

/// ROCm's run-time compiler is there for Linux only.
#[cfg(not(target_os = "linux"))]
fn ask(_: &Request) -> Outcome<Vec<u8>> {
    Outcome::Absent("hiprtc is asked on Linux only".into())
}

#[cfg(test)]
pub(super) mod tests;
