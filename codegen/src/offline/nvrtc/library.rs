//! The NVRTC library itself: loading it, its entry points, and one program in its hands.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr;

use super::super::processes;
use super::super::programs::loader_reason;

/// The answer that means a mistake in the source. Every other one means that this library can't tell.
pub(super) const COMPILATION: c_int = 6;
/// The answer to an architecture that the library does not know.
pub(super) const INVALID_OPTION: c_int = 5;

/// A loaded NVRTC.
#[derive(Debug)]
pub(super) struct Library {
    table: Table,
    version: (c_int, c_int),
}

/// What a program is compiled to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Product {
    Ptx,
    Cubin,
}

/// An NVRTC call that failed.
pub(super) struct Refusal {
    pub(super) call: &'static str,
    pub(super) code: c_int,
    pub(super) log: String,
}

impl Library {
    /// Loads the library at `path`, or the one that the loader finds under that name, for the life of the process.
    pub(super) fn load(path: &Path) -> Result<Library, String> {
        // SAFETY: loading runs the library's initialisers; NVRTC's have no demands on the program. A file that is no
        // library is refused by the loader.
        let library = unsafe { libloading::Library::new(path) }.map_err(loader_reason)?;
        // It is never unloaded: NVRTC registers handlers that run at the end of the process.
        let table = Table::of(&ManuallyDrop::new(library))?;
        let mut version = (0, 0);
        // SAFETY: `nvrtcVersion` fills two `int`s, which live here.
        let code = unsafe { (table.version)(&mut version.0, &mut version.1) };
        match code {
            0 => Ok(Library { table, version }),
            code => Err(format!("nvrtcVersion answered {code}")),
        }
    }

    /// Major and minor.
    pub(super) fn version(&self) -> (c_int, c_int) {
        self.version
    }

    /// Compiles `source`, which the log calls `name`.
    pub(super) fn compile(
        &self,
        source: &str,
        name: &str,
        options: &[String],
        product: Product,
    ) -> Result<Vec<u8>, Refusal> {
        let c_string = |text: &str| {
            CString::new(text).map_err(|_| Refusal {
                call: "nvrtcCreateProgram",
                code: COMPILATION,
                log: format!("{name} holds a NUL character"),
            })
        };
        let program = Program::new(&self.table, &c_string(source)?, &c_string(name)?)?;
        let options = options.iter().map(|option| c_string(option)).collect::<Result<Vec<_>, _>>()?;
        program.compile(&options)?;
        let (call, getters) = match product {
            Product::Ptx => ("nvrtcGetPTX", self.table.ptx),
            Product::Cubin => ("nvrtcGetCUBIN", self.table.cubin),
        };
        let refusal = |code, log: &str| Refusal { call, code, log: log.into() };
        let bytes = program.bytes(getters).map_err(|code| refusal(code, ""))?;
        match bytes.is_empty() {
            false => Ok(bytes),
            true => Err(refusal(0, "but gave nothing")),
        }
    }
}

/// A program being compiled; destroyed when dropped.
struct Program<'a> {
    table: &'a Table,
    raw: RawProgram,
}

impl<'a> Program<'a> {
    fn new(table: &'a Table, source: &CString, name: &CString) -> Result<Program<'a>, Refusal> {
        let mut raw = ptr::null_mut();
        let (source, name) = (source.as_ptr(), name.as_ptr());
        // SAFETY: both texts are C strings, copied by the call; there are no headers, hence the null lists.
        let code = unsafe { (table.create)(&mut raw, source, name, 0, ptr::null(), ptr::null()) };
        match code {
            0 => Ok(Program { table, raw }),
            code => Err(Refusal { call: "nvrtcCreateProgram", code, log: String::new() }),
        }
    }

    fn compile(&self, options: &[CString]) -> Result<(), Refusal> {
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(options.len()).expect("a handful of options");
        // SAFETY: the program is live and the options are `count` C strings that outlive the call.
        let code = unsafe { (self.table.compile)(self.raw, count, options.as_ptr()) };
        match code {
            0 => Ok(()),
            code => Err(Refusal { call: "nvrtcCompileProgram", code, log: self.log() }),
        }
    }

    fn bytes(&self, (size, get): Getters) -> Result<Vec<u8>, c_int> {
        let mut count = 0;
        // SAFETY: the program is live; the size goes to a `usize` that lives here.
        let code = unsafe { size(self.raw, &mut count) };
        if code != 0 {
            return Err(code);
        }
        let mut bytes = vec![0_u8; count];
        // SAFETY: the buffer has the size that the library asked for just above.
        let code = unsafe { get(self.raw, bytes.as_mut_ptr().cast()) };
        match code {
            0 => Ok(bytes),
            code => Err(code),
        }
    }

    /// The log, less the warning that Volta is on its way out, which every compilation for it repeats.
    fn log(&self) -> String {
        let log = processes::text(&self.bytes(self.table.log).unwrap_or_default());
        let told = |line: &&str| !line.starts_with("nvrtc: warning: Architectures prior to");
        let log: Vec<_> = log.trim_end_matches('\0').lines().filter(told).collect();
        log.join("\n").trim().to_string()
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `nvrtcCreateProgram` and is destroyed here only.
        unsafe { (self.table.destroy)(&mut self.raw) };
    }
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
#[derive(Debug)]
struct Table {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    create: Create,
    destroy: unsafe extern "C" fn(*mut RawProgram) -> c_int,
    compile: unsafe extern "C" fn(RawProgram, c_int, *const *const c_char) -> c_int,
    ptx: Getters,
    cubin: Getters,
    log: Getters,
}

impl Table {
    fn of(library: &libloading::Library) -> Result<Table, String> {
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the field's type is the function's signature in nvrtc.h, unchanged since CUDA 11.1, and the
                // library is never unloaded.
                *unsafe { library.get($name) }
                    .map_err(|cause| format!("it is no NVRTC of CUDA 11.1 or later: {}", loader_reason(cause)))?
            };
        }
        Ok(Table {
            version: symbol!("nvrtcVersion"),
            create: symbol!("nvrtcCreateProgram"),
            destroy: symbol!("nvrtcDestroyProgram"),
            compile: symbol!("nvrtcCompileProgram"),
            ptx: (symbol!("nvrtcGetPTXSize"), symbol!("nvrtcGetPTX")),
            cubin: (symbol!("nvrtcGetCUBINSize"), symbol!("nvrtcGetCUBIN")),
            log: (symbol!("nvrtcGetProgramLogSize"), symbol!("nvrtcGetProgramLog")),
        })
    }
}
