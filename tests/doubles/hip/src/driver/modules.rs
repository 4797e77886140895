//! Modules, their kernels and launches.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polyhalo_double_engine::{Failure, Kind, Machine, Order, Outcome, View, Work};

use super::device::{BLOCK, BLOCK_THREADS, GRID};
use super::{architecture, call, codes, give, streams::own, wrong};
use crate::executor::{self, Kernel, Launch, Loaded, ParameterKind, Range, Unloadable};

/// Shared memory of a block at most, in bytes.
const SHARED_BYTES: u32 = 64 << 10;

#[derive(Clone, Copy)]
struct Module {
    device: usize,
    code: &'static Loaded,
}

#[derive(Clone, Copy)]
struct Function {
    module: u64,
    device: usize,
    kernel: &'static Kernel,
}

#[derive(Default)]
struct Table {
    last: u64,
    modules: BTreeMap<u64, Module>,
    functions: BTreeMap<u64, Function>,
}

impl Table {
    /// A handle that was never given before.
    fn handle(&mut self) -> u64 {
        self.last += 16;
        0x5EED_6000_0000_0000 + self.last
    }
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn table<T>(action: impl FnOnce(&mut Table) -> T) -> T {
    let mut table: MutexGuard<'_, Option<Table>> = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    action(table.get_or_insert_default())
}

/// The bytes of an image, as far as its own head tells.
///
/// # Safety
/// It is not null, and as long as its head says.
unsafe fn bytes<'a>(image: *const c_void) -> Result<&'a [u8], Unloadable> {
    const MAGIC: &[u8] = b"\x7fELF\x02";
    const HEAD: usize = 64;
    let start = image.cast::<u8>();
    // Byte by byte: what isn't ELF may end anywhere.
    // SAFETY: the caller's promise; a comparison that fails ends it.
    let is = |text: &[u8]| text.iter().enumerate().all(|(at, byte)| unsafe { *start.add(at) } == *byte);
    if is(b"__CLANG_OFFLOAD_BUNDLE__") {
        return Err(Unloadable::Foreign);
    }
    if !is(MAGIC) {
        return Err(Unloadable::Broken("no ELF file".into()));
    }
    // SAFETY: a 64-bit ELF file has such a head.
    let head = unsafe { slice::from_raw_parts(start, HEAD) };
    let number = |at: usize, bytes: usize| {
        head[at..at + bytes].iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
    };
    // The table of sections comes last.
    let size = number(0x28, 8).saturating_add(number(0x3A, 2) * number(0x3C, 2));
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(start, size.max(HEAD)) })
}

/// Loads what the run-time compiler made.
///
/// # Safety
/// The image is null or as long as its head says.
unsafe fn load(device: usize, place: *mut u64, image: *const c_void) -> Outcome<()> {
    if image.is_null() {
        return Err(wrong(codes::INVALID_VALUE, "no image"));
    }
    let failed = |code, message: String| Failure::new(Kind::Code(code), message);
    // SAFETY: it isn't null; the rest is the caller's promise.
    let loaded = unsafe { bytes(image) }.and_then(executor::load);
    let code = loaded.map_err(|reason| match reason {
        // The caller finds that out by trying.
        Unloadable::Foreign => failed(codes::NO_BINARY_FOR_GPU, "the image is for another device".into()),
        Unloadable::Broken(reason) => failed(codes::INVALID_IMAGE, format!("the image is none: {reason}")),
    })?;
    let processor = |of: &str| of.split(':').next().unwrap_or_default().to_owned();
    if processor(&code.architecture) != processor(architecture()) {
        let message = format!("the image is for {}, the device is a {}", code.architecture, architecture());
        return Err(failed(codes::NO_BINARY_FOR_GPU, message));
    }
    let handle = table(|table| {
        let handle = table.handle();
        table.modules.insert(handle, Module { device, code });
        handle
    });
    // SAFETY: the caller of the entry point gives a place.
    unsafe { give(place, handle) }
}

/// Loads an image.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleLoadData(place: *mut u64, image: *const c_void) -> i32 {
    // SAFETY: the caller gives an image.
    call("hipModuleLoadData", |_, device| unsafe { load(device, place, image) })
}

/// Loads an image. The double has no options.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleLoadDataEx(
    place: *mut u64,
    image: *const c_void,
    _count: u32,
    _options: *mut u32,
    _values: *mut *mut c_void,
) -> i32 {
    // SAFETY: the caller gives an image.
    call("hipModuleLoadDataEx", |_, device| unsafe { load(device, place, image) })
}

/// Unloads a module; its kernels are no longer known.
#[unsafe(no_mangle)]
extern "C" fn hipModuleUnload(module: u64) -> i32 {
    call("hipModuleUnload", |_, _| {
        let gone = table(|table| {
            table.functions.retain(|_, function| function.module != module);
            table.modules.remove(&module)
        });
        gone.map(drop).ok_or_else(|| unknown(module, "module"))
    })
}

fn unknown(handle: u64, what: &str) -> Failure {
    wrong(codes::INVALID_HANDLE, format!("{handle:#x} is no {what}"))
}

/// A kernel of a module.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleGetFunction(place: *mut u64, module: u64, name: *const c_char) -> i32 {
    call("hipModuleGetFunction", |_, _| {
        if name.is_null() {
            return Err(wrong(codes::INVALID_VALUE, "no name"));
        }
        // SAFETY: it isn't null, and the caller's text ends in a zero.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        let found = table(|table| table.modules.get(&module).copied()).ok_or_else(|| unknown(module, "module"))?;
        let Some(kernel) = found.code.kernel(&name) else {
            return Err(Failure::new(Kind::Code(codes::NOT_FOUND), format!("the module has no `{name}`")));
        };
        let handle = table(|table| {
            let handle = table.handle();
            table.functions.insert(handle, Function { module, device: found.device, kernel });
            handle
        });
        // SAFETY: the caller gives a place.
        unsafe { give(place, handle) }
    })
}

fn function(handle: u64) -> Outcome<Function> {
    table(|table| table.functions.get(&handle).copied()).ok_or_else(|| unknown(handle, "kernel"))
}

/// What a kernel uses.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipFuncGetAttribute(place: *mut i32, attribute: u32, handle: u64) -> i32 {
    call("hipFuncGetAttribute", |_, _| {
        let function = function(handle)?;
        let value = match attribute {
            0 => i32::try_from(function.kernel.block_threads).unwrap_or(i32::MAX),
            // Shared, constant and local memory.
            1..=3 => 0,
            // Registers: as many as AMD's compilers use for a small kernel.
            4 => 32,
            _ => {
                return Err(wrong(
                    codes::INVALID_VALUE,
                    format!("the double knows no attribute {attribute} of kernels"),
                ));
            }
        };
        // SAFETY: the caller gives a place.
        unsafe { give(place, value) }
    })
}

/// Enqueues a kernel.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleLaunchKernel(
    handle: u64,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_bytes: u32,
    stream: u64,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> i32 {
    call("hipModuleLaunchKernel", |machine, device| {
        let function = function(handle)?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        check(function.kernel, grid, block, shared_bytes)?;
        let parameters = &function.kernel.parameters;
        if !extra.is_null() || (arguments.is_null() && !parameters.is_empty()) {
            return Err(wrong(codes::INVALID_VALUE, "the double takes arguments as a list of pointers"));
        }
        let values = parameters.iter().enumerate().map(|(at, parameter)| {
            // SAFETY: the caller gives a pointer for each parameter.
            let place = unsafe { *arguments.add(at) };
            if place.is_null() || parameter.bytes > 8 {
                return Err(wrong(
                    codes::INVALID_VALUE,
                    format!("argument {at} of `{}` is missing", function.kernel.name),
                ));
            }
            let mut word = 0_u64;
            // SAFETY: it points to a value of the parameter's type, which fits a word.
            unsafe {
                std::ptr::from_mut(&mut word).cast::<u8>().copy_from_nonoverlapping(place.cast(), parameter.bytes)
            };
            Ok(word)
        });
        let values: Vec<u64> = values.collect::<Outcome<_>>()?;
        launch(machine, own(machine, device, stream)?, function, grid, block, values)
    })
}

/// The limits of launches.
fn check(kernel: &Kernel, grid: [u32; 3], block: [u32; 3], shared_bytes: u32) -> Outcome<()> {
    let refused = |what: String| Err(wrong(codes::INVALID_CONFIGURATION, format!("`{}`: {what}", kernel.name)));
    if grid.contains(&0) || block.contains(&0) {
        return refused(format!("no threads: a grid of {grid:?} blocks of {block:?}"));
    }
    if (0..3).any(|axis| grid[axis] > GRID[axis]) {
        return refused(format!("a grid of {grid:?} blocks is too large"));
    }
    let threads: u64 = block.iter().map(|size| u64::from(*size)).product();
    if (0..3).any(|axis| block[axis] > BLOCK[axis]) || threads > u64::from(BLOCK_THREADS.min(kernel.block_threads)) {
        return refused(format!("a block of {block:?} threads is too large"));
    }
    // AMD's GPUs count threads along an axis with 32 bits.
    if (0..3).any(|axis| u64::from(grid[axis]) * u64::from(block[axis]) > u64::from(u32::MAX)) {
        return refused(format!("too many threads: a grid of {grid:?} blocks of {block:?}"));
    }
    if shared_bytes > SHARED_BYTES {
        return refused(format!("{shared_bytes} bytes of shared memory"));
    }
    Ok(())
}

fn launch(
    machine: &Machine,
    stream: u64,
    function: Function,
    grid: [u32; 3],
    block: [u32; 3],
    values: Vec<u64>,
) -> Outcome<()> {
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    let kernel = function.kernel;
    let pointers =
        kernel.parameters.iter().zip(&values).filter(|(parameter, _)| parameter.kind != ParameterKind::Value);
    let touches = machine.touches(pointers.map(|(_, address)| *address));
    let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    // No order of threads is promised.
    let backwards = match machine.settings().order {
        Order::Eager => false,
        Order::Lazy => true,
        Order::Random(seed) => (seed ^ number) & 1 == 1,
    };
    let action = move |view: &View<'_>| {
        let reach = |address: usize, bytes: usize, writes: bool| {
            let extent = view.reach(address as u64, bytes, writes)?;
            Ok(Range { lo: extent.start as usize, hi: extent.end as usize })
        };
        let mut values = values.clone();
        let places: Vec<*mut c_void> = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        // SAFETY: the values were taken by the kernel's own list of parameters; what can be reached is memory that the engine
        // gave out, and it runs one piece of work at a time.
        let outcome = unsafe { kernel.run(&Launch { grid, block, backwards, reach: &reach }, &places) };
        outcome.map_err(|fault| {
            let kind = match fault.kind {
                executor::FaultKind::Address(_) => Kind::IllegalAddress,
                executor::FaultKind::Undefined => Kind::LaunchFailed,
            };
            Failure::misuse(kind, fault.to_string())
        })
    };
    let name = kernel.name.clone();
    machine.enqueue(stream, Work { name, device: function.device, touches, action: Arc::new(action) })
}
