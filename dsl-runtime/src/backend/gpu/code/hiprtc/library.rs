//! The hiprtc library itself: loading it, its entry points, and one program in its hands. Only the child does this.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::UNIX_EPOCH;

use polyhalo_codegen::offline::programs::loader_reason;
use polyhalo_codegen::offline::{Outcome, processes};

use super::Hiprtc;

/// The answer to a mistake in the source, and, with an empty log, to much else.
const COMPILATION: c_int = 6;

/// A loaded hiprtc.
pub(super) struct Library {
    path: PathBuf,
    table: Table,
}

impl Library {
    /// The first of `candidates` that is hiprtc, or why none is.
    pub(super) fn first(candidates: &[PathBuf]) -> Result<Library, String> {
        let mut refused = Vec::new();
        for path in candidates {
            match Library::load(path) {
                Ok(library) => return Ok(library),
                // What the loader doesn't know under a bare name is simply not there.
                Err(reason) if is_name(path) && reason.contains("cannot open shared object file") => {}
                Err(reason) => refused.push(format!("{}: {reason}", path.display())),
            }
        }
        let tried: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
        Err(match refused.is_empty() {
            true => format!("no library of hiprtc was found as {}", tried.join(", ")),
            false => format!("no library of hiprtc can be used: {}", refused.join("; ")),
        })
    }

    fn load(path: &Path) -> Result<Library, String> {
        // SAFETY: loading runs the library's initialisers, in a process that has nothing else to do; a file that is no
        // library is refused by the loader.
        let library = unsafe { libloading::Library::new(path) }.map_err(loader_reason)?;
        // It is never unloaded: the process ends without it.
        Ok(Library { path: path.to_owned(), table: Table::of(&ManuallyDrop::new(library))? })
    }

    /// What it is.
    pub(super) fn identity(&self) -> Result<Hiprtc, String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the call fills two `int`s, which live here.
        match unsafe { (self.table.version)(&mut major, &mut minor) } {
            0 => {
                let version = format!("{major}.{minor}");
                Ok(Hiprtc { library: self.path.clone(), version, build: self.build().unwrap_or_default() })
            }
            code => Err(format!("{}: hiprtcVersion answered {}", self.path.display(), self.named(code))),
        }
    }

    /// The size and the date of its file.
    fn build(&self) -> Option<String> {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `info` is room for what the call writes, and the address is a function of the library.
        let found = unsafe { libc::dladdr(self.table.version as *const c_void, info.as_mut_ptr()) };
        // SAFETY: all zeroes is a valid value of it, should the call have written nothing.
        let info = (found != 0).then(|| unsafe { info.assume_init() })?;
        // SAFETY: the call succeeded, so the name is a string of the loader's.
        let file = OsStr::from_bytes(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes());
        let facts = std::fs::metadata(file).ok()?;
        let date = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(format!("{} bytes of {}", facts.len(), date.as_nanos()))
    }

    /// Compiles `source`, which the log calls `name`.
    pub(super) fn compile(&self, source: &str, name: &str, options: &[String]) -> Outcome<Vec<u8>> {
        let attempt = || {
            let program = Program::new(self, source, name)?;
            program.compile(options)?;
            let code = program.bytes("hiprtcGetCode", self.table.code)?;
            match code.is_empty() {
                false => Ok(code),
                true => Err(Outcome::Absent("hiprtc gave an empty code object".into())),
            }
        };
        attempt().map_or_else(|refused| refused, Outcome::Built)
    }

    fn named(&self, code: c_int) -> String {
        // SAFETY: the call takes any code, and gives a constant string or null.
        let text = unsafe { (self.table.error_string)(code) };
        match text.is_null() {
            true => code.to_string(),
            // SAFETY: it isn't null, so it is a string that the library keeps.
            false => format!("{code} ({})", unsafe { CStr::from_ptr(text) }.to_string_lossy()),
        }
    }

    fn refusal(&self, call: &str, code: c_int) -> Outcome<Vec<u8>> {
        Outcome::Absent(format!("{call} answered {}", self.named(code)))
    }
}

fn is_name(path: &Path) -> bool {
    path.components().count() == 1
}

/// A program being compiled; destroyed when dropped.
struct Program<'a> {
    library: &'a Library,
    raw: RawProgram,
}

impl<'a> Program<'a> {
    fn new(library: &'a Library, source: &str, name: &str) -> Result<Self, Outcome<Vec<u8>>> {
        let (source, name) = (c_string(source)?, c_string(name)?);
        let mut raw = ptr::null_mut();
        let (source, name) = (source.as_ptr(), name.as_ptr());
        // SAFETY: both texts are C strings, copied by the call; there are no headers, hence the null lists.
        let code = unsafe { (library.table.create)(&mut raw, source, name, 0, ptr::null(), ptr::null()) };
        match code {
            0 => Ok(Program { library, raw }),
            code => Err(library.refusal("hiprtcCreateProgram", code)),
        }
    }

    fn compile(&self, options: &[String]) -> Result<(), Outcome<Vec<u8>>> {
        let options = options.iter().map(|option| c_string(option)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(options.len()).expect("a handful of options");
        // SAFETY: the program is live and the options are `count` C strings that outlive the call.
        let code = unsafe { (self.library.table.compile)(self.raw, count, options.as_ptr()) };
        if code == 0 {
            return Ok(());
        }
        let log = self.bytes("hiprtcGetProgramLog", self.library.table.log).unwrap_or_default();
        let log = processes::text(&log).trim_end_matches('\0').trim().to_owned();
        // Only a mistake in the source has a place in it; an option that this release doesn't know has none.
        let in_source = log.lines().any(|line| line.contains(": error: "));
        Err(match code == COMPILATION && in_source {
            true => Outcome::Rejected(log),
            false => Outcome::Absent(format!("hiprtcCompileProgram answered {}: {log}", self.library.named(code))),
        })
    }

    fn bytes(&self, call: &str, (size, get): Getters) -> Result<Vec<u8>, Outcome<Vec<u8>>> {
        let mut count = 0;
        // SAFETY: the program is live; the size goes to a `usize` that lives here.
        let code = unsafe { size(self.raw, &mut count) };
        if code != 0 {
            return Err(self.library.refusal(&format!("{call}Size"), code));
        }
        let mut bytes = vec![0_u8; count];
        // SAFETY: the buffer has the size that the library asked for just above.
        match unsafe { get(self.raw, bytes.as_mut_ptr().cast()) } {
            0 => Ok(bytes),
            code => Err(self.library.refusal(call, code)),
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `hiprtcCreateProgram` and is destroyed here only.
        unsafe { (self.library.table.destroy)(&mut self.raw) };
    }
}

fn c_string(text: &str) -> Result<CString, Outcome<Vec<u8>>> {
    CString::new(text).map_err(|_| Outcome::Rejected("error: a NUL character in the source or its options".into()))
}

type RawProgram = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut RawProgram,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
/// A function that tells how many bytes there are, and one that fills them in.
type Getters =
    (unsafe extern "C" fn(RawProgram, *mut usize) -> c_int, unsafe extern "C" fn(RawProgram, *mut c_char) -> c_int);

/// The entry points. Results are plain integers: a newer library may answer what no list of ours holds.
struct Table {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    create: Create,
    destroy: unsafe extern "C" fn(*mut RawProgram) -> c_int,
    compile: unsafe extern "C" fn(RawProgram, c_int, *const *const c_char) -> c_int,
    code: Getters,
    log: Getters,
}

impl Table {
    fn of(library: &libloading::Library) -> Result<Table, String> {
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the field's type is the function's signature in hiprtc.h, the same since ROCm 3, and the library
                // is never unloaded.
                *unsafe { library.get($name) }.map_err(|cause| format!("it has no hiprtc: {}", loader_reason(cause)))?
            };
        }
        Ok(Table {
            version: symbol!("hiprtcVersion"),
            error_string: symbol!("hiprtcGetErrorString"),
            create: symbol!("hiprtcCreateProgram"),
            destroy: symbol!("hiprtcDestroyProgram"),
            compile: symbol!("hiprtcCompileProgram"),
            code: (symbol!("hiprtcGetCodeSize"), symbol!("hiprtcGetCode")),
            log: (symbol!("hiprtcGetProgramLogSize"), symbol!("hiprtcGetProgramLog")),
        })
    }
}
