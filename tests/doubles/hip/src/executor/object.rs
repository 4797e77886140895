//! Loads what the double's compiler made, and runs launches of its kernels.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};
use std::{fmt, fs, slice};

use libloading::Library;

use super::compiler::{cache, own_file};

/// Loaded code. It stays loaded until the process ends.
#[derive(Debug)]
pub struct Loaded {
    /// What it was compiled for.
    pub architecture: String,
    /// Its kernels.
    pub kernels: Vec<Kernel>,
}

/// A kernel of loaded code.
#[derive(Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub parameters: Vec<Parameter>,
    /// Threads of a block at most.
    pub block_threads: u32,
    run: unsafe extern "C" fn(*mut RawLaunch, *mut *mut c_void),
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its size.
    pub bytes: usize,
    /// What it is.
    pub kind: ParameterKind,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A value.
    Value,
    /// The address of memory that is read.
    Read,
    /// The address of memory that may be written.
    Write,
}

/// Why code can't be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unloadable {
    /// It is code for another kind of machine: a code object of a real GPU.
    Foreign,
    /// It is no code, or can't be read.
    Broken(String),
}

/// Memory around an address.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The first byte.
    pub lo: usize,
    /// The byte behind the last.
    pub hi: usize,
}

/// Finds the memory around so many bytes at an address, which are read or (if true) written; an error if a launch may not do
/// so.
pub type Reach<'a> = &'a dyn Fn(usize, usize, bool) -> Result<Range, String>;

/// A launch.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block along each axis.
    pub block: [u32; 3],
    /// Whether the last thread comes first.
    pub backwards: bool,
    /// What it may touch.
    pub reach: Reach<'a>,
}

/// What a launch did that it must not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it was.
    pub kind: FaultKind,
    /// The block.
    pub block: [u32; 3],
    /// The thread of the block.
    pub thread: [u32; 3],
}

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Touched memory that it may not touch, for the given reason.
    Address(String),
    /// Did what C++ gives no meaning: a sum of signed integers that is too large, a shift by too much.
    Undefined,
}

/// The prelude's `Launch`.
#[repr(C)]
struct RawLaunch {
    grid: [u32; 3],
    block: [u32; 3],
    backwards: u32,
    reach: extern "C" fn(*const RawLaunch, usize, u32, bool, *mut Range) -> bool,
    context: *const c_void,
    fault: RawFault,
}

/// The prelude's `Fault`.
#[repr(C)]
#[derive(Default)]
struct RawFault {
    kind: u32,
    block: [u32; 3],
    thread: [u32; 3],
    address: usize,
}

/// The prelude's `Entry`.
#[repr(C)]
struct RawEntry {
    name: *const c_char,
    run: Option<unsafe extern "C" fn(*mut RawLaunch, *mut *mut c_void)>,
    parameters: *const RawParameter,
    parameter_count: u32,
    block_threads: u32,
}

/// The prelude's `Argument`.
#[repr(C)]
struct RawParameter {
    bytes: u32,
    kind: u32,
}

/// Loads an image that [`compile`](super::compile) made, in this process or another one. The same image is loaded once.
///
/// # Errors
/// When it is another one.
pub fn load(image: &[u8]) -> Result<&'static Loaded, Unloadable> {
    static LOADED: Mutex<Option<HashMap<Vec<u8>, &'static Loaded>>> = Mutex::new(None);
    machine(image)?;
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    if let Some(object) = loaded.get(image) {
        return Ok(object);
    }
    let object: &'static Loaded = Box::leak(Box::new(open(image).map_err(Unloadable::Broken)?));
    loaded.insert(image.to_vec(), object);
    Ok(object)
}

/// Looks at the head of an ELF file.
fn machine(image: &[u8]) -> Result<(), Unloadable> {
    /// ELF's numbers of AMD's GPUs and of NVIDIA's.
    const GPUS: [u16; 2] = [224, 190];
    /// What clang puts before the code objects of several GPUs.
    const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
    let own = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    match image {
        _ if image.starts_with(BUNDLE) => Err(Unloadable::Foreign),
        [0x7f, b'E', b'L', b'F', head @ ..] if head.len() >= 60 => match u16::from_le_bytes([image[18], image[19]]) {
            found if found == own => Ok(()),
            found if GPUS.contains(&found) => Err(Unloadable::Foreign),
            found => Err(Unloadable::Broken(format!("an ELF file for machine {found}"))),
        },
        _ => Err(Unloadable::Broken("no ELF file".into())),
    }
}

fn open(image: &[u8]) -> Result<Loaded, String> {
    // A name of its own: the loader takes a name that it has seen for the same file.
    let path = own_file(".image.so");
    let written = fs::create_dir_all(cache()).and_then(|()| fs::write(&path, image));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    // SAFETY: an image is what the double's own compiler made, as far as its head tells; its tables are looked for below.
    let library = unsafe { Library::new(&path) };
    let _ = fs::remove_file(&path);
    let library = library.map_err(|error| format!("{error:?}"))?;
    // SAFETY: nothing but the double's compiler makes these symbols, which have the types that its prelude gives them. They
    // end as said there, and the library is never unloaded.
    let object = unsafe {
        let symbol = |name: &[u8]| library.get::<*const c_void>(name).map(|symbol| *symbol);
        let missing = |_| "it has no kernels of the double's compiler".to_owned();
        let architecture = symbol(b"polyhalo_double_architecture\0").map_err(missing)?;
        let entries = symbol(b"polyhalo_double_kernels\0").map_err(missing)?.cast::<RawEntry>();
        let text = |start: *const c_char| CStr::from_ptr(start).to_string_lossy().into_owned();
        let kernel = |entry: &RawEntry| {
            let run = entry.run?;
            let parameters = slice::from_raw_parts(entry.parameters, entry.parameter_count as usize);
            Some(Kernel {
                name: text(entry.name),
                parameters: parameters.iter().map(parameter).collect(),
                block_threads: entry.block_threads,
                run,
            })
        };
        Loaded {
            architecture: text(architecture.cast()),
            kernels: (0..).map_while(|number| kernel(&*entries.add(number))).collect(),
        }
    };
    std::mem::forget(library);
    Ok(object)
}

fn parameter(raw: &RawParameter) -> Parameter {
    let kind = match raw.kind {
        0 => ParameterKind::Value,
        1 => ParameterKind::Read,
        _ => ParameterKind::Write,
    };
    Parameter { bytes: raw.bytes as usize, kind }
}

/// What a launch needs to know of its caller.
struct Context<'a> {
    reach: Reach<'a>,
    /// Why the first access that must not be made must not be.
    refused: RefCell<Option<String>>,
}

extern "C" fn reach(launch: *const RawLaunch, address: usize, bytes: u32, writes: bool, range: *mut Range) -> bool {
    // SAFETY: the object hands back what `run` gave it, which made the context, and a range of its own.
    let (context, range) = unsafe { (&*(*launch).context.cast::<Context<'_>>(), &mut *range) };
    match (context.reach)(address, bytes as usize, writes) {
        Ok(found) => {
            *range = found;
            true
        }
        Err(reason) => {
            context.refused.borrow_mut().get_or_insert(reason);
            false
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { kind, block, thread } = self;
        match kind {
            FaultKind::Address(reason) => f.write_str(reason)?,
            FaultKind::Undefined => f.write_str("an operation that C++ gives no meaning")?,
        }
        write!(f, " (thread {thread:?} of block {block:?})")
    }
}

impl Loaded {
    /// The kernel of a name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

impl Kernel {
    /// Runs all threads of a launch on the calling thread. After a fault the kernel goes on, as if what it read were zero.
    ///
    /// # Errors
    /// What a thread did first that it must not do.
    ///
    /// # Safety
    /// The arguments are as many values as the kernel has parameters, of their sizes. The ranges that `reach` finds are memory
    /// that is there, and nothing else reads what the kernel writes or writes what it reads.
    pub unsafe fn run(&self, launch: &Launch<'_>, arguments: &[*mut c_void]) -> Result<(), Fault> {
        assert_eq!(arguments.len(), self.parameters.len(), "an argument for each parameter of `{}`", self.name);
        let context = Context { reach: launch.reach, refused: RefCell::new(None) };
        let mut raw = RawLaunch {
            grid: launch.grid,
            block: launch.block,
            backwards: launch.backwards.into(),
            reach,
            context: std::ptr::from_ref(&context).cast(),
            fault: RawFault::default(),
        };
        // SAFETY: the caller's promise; the entry only reads the list of arguments.
        unsafe { (self.run)(&mut raw, arguments.as_ptr().cast_mut()) };
        let RawFault { kind, block, thread, address } = raw.fault;
        let refused = context.refused.into_inner();
        let kind = match kind {
            0 => return Ok(()),
            1 | 2 => FaultKind::Address(refused.unwrap_or_else(|| format!("it may not touch {address:#x}"))),
            _ => FaultKind::Undefined,
        };
        Err(Fault { kind, block, thread })
    }
}
