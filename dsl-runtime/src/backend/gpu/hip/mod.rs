//! AMD's driver, through a table of its entry points; what came or went between releases may be missing.
//!
//! `entries` has the table, `codes` what the driver's numbers mean, `copy` the copies. With the feature `hip-link` the table is
//! filled with what is linked at build time, unless the variable names a library.

mod codes;
mod copy;
mod entries;
#[cfg(feature = "hip-link")]
mod link;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use polyhalo_codegen::offline::programs::{Environment, process_environment};

use super::driver::{
    Address, Architecture, Called, Card, Driver, End, Event, Failure, Function, Graph, Image, Kind, Module, Stream,
    Uses,
};
use super::library::{self, Found, Search, unasked};
use crate::placement::pci_address;
use entries::Entries;

/// How the library is found.
const SEARCH: Search = Search {
    driver: "HIP",
    variable: "POLYHALO_HIP",
    names: if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"]
    },
    homes: &[("ROCM_PATH", "lib"), ("HIP_PATH", "lib")],
    folders: &["/opt/rocm/lib"],
    inside: &["", "lib", "lib64"],
    origin: "comes with AMD's ROCm",
};

/// Streams that don't wait for the default one.
const NON_BLOCKING: u32 = 1;
/// Events without times.
const DISABLE_TIMING: u32 = 2;
/// Pinned memory for all cards.
const PORTABLE: u32 = 1;
/// A recording that other threads' calls don't disturb.
const CAPTURE_THREAD_LOCAL: u32 = 1;

/// What a card can be asked: attributes whose numbers have been the same since HIP 5.
mod attribute {
    pub(super) const MAX_GRID: [i32; 3] = [29, 30, 31];
    pub(super) const MAX_THREADS_PER_BLOCK: i32 = 56;
    pub(super) const MULTIPROCESSORS: i32 = 63;
    pub(super) const WARP_SIZE: i32 = 87;
}

/// Where the properties of a card hold its processor: of those since HIP 6, which have a call of their own, and of the older.
const PROCESSOR_R0600: usize = 1160;
const PROCESSOR_OLD: usize = 396;

/// The driver of this machine, loaded when first asked for; why there is none.
pub(super) fn driver() -> Result<&'static dyn Driver, String> {
    driver_of(&process_environment)
}

/// As [`driver`] with the variables of `environment`.
pub(super) fn driver_of(environment: Environment) -> Result<&'static dyn Driver, String> {
    find(environment).map(|driver| driver as &dyn Driver)
}

/// As [`driver`], by its type.
fn find(environment: Environment) -> Result<&'static Hip, String> {
    static FOUND: Found<Hip> = Found::nothing();
    let candidates = SEARCH.candidates(environment)?;
    #[cfg(feature = "hip-link")]
    if let library::Candidates::Usual(_) = candidates {
        return FOUND.or(std::path::Path::new(""), || Hip::new(&link::linked));
    }
    SEARCH.first(&candidates, |file| {
        FOUND.or(file, || {
            let library = library::load(file)?;
            Hip::new(&|name| library::address(library, name))
        })
    })
}

/// AMD's driver, loaded.
#[derive(Debug)]
pub(super) struct Hip {
    entries: Entries,
    /// The number of cards, once there are some.
    count: OnceLock<u32>,
}

/// Calls an entry point of the table.
macro_rules! call {
    ($hip:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: results go to variables of the caller, texts end with a zero, and handles and addresses are those that the
        // driver gave for the card at hand, as `Driver` asks.
        unsafe { $hip.entries.$name($($argument),*) }
    };
}
use call;

thread_local! {
    /// The driver and the card that were made current in this thread last.
    static CURRENT: Cell<Option<(usize, u32)>> = const { Cell::new(None) };
}

impl Hip {
    /// The driver whose entry points `find` gives.
    fn new(find: &dyn Fn(&str) -> Option<*const c_void>) -> Result<Self, String> {
        // SAFETY: the addresses are those of a library that calls itself AMD's driver.
        let entries = unsafe { Entries::fill(find) };
        let entries = entries.map_err(|name| format!("it lacks {name}, which every HIP driver has"))?;
        Ok(Self { entries, count: OnceLock::new() })
    }

    fn count(&self) -> Called<u32> {
        if let Some(&count) = self.count.get() {
            return Ok(count);
        }
        let mut count = 0;
        call!(self, hipGetDeviceCount(&mut count))?;
        match count.max(0).unsigned_abs() {
            0 => Ok(0),
            count => Ok(*self.count.get_or_init(|| count)),
        }
    }

    /// Makes a card current in this thread, if it isn't.
    fn enter(&self, card: u32) -> Called<()> {
        let which = Some((ptr::from_ref(self).addr(), card));
        if CURRENT.get() != which {
            call!(self, hipSetDevice(card as c_int))?;
            CURRENT.set(which);
        }
        Ok(())
    }

    fn card(&self, ordinal: u32) -> Called<Card> {
        let device = ordinal as c_int;
        let mut name = [0; 256];
        call!(self, hipDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device))?;
        let mut memory_bytes = 0;
        call!(self, hipDeviceTotalMem(&mut memory_bytes, device))?;
        let number = |attribute: c_int| -> Called<u32> {
            let mut value = 0;
            call!(self, hipDeviceGetAttribute(&mut value, attribute, device))?;
            Ok(value.max(0).unsigned_abs())
        };
        let mut pci = [0; 32];
        let tells_pci = call!(self, hipDeviceGetPCIBusId(pci.as_mut_ptr(), pci.len() as c_int, device)).is_ok();
        let [x, y, z] = attribute::MAX_GRID;
        Ok(Card {
            ordinal,
            name: text(&name),
            architecture: Architecture::Gfx(self.processor(device)?),
            memory_bytes: memory_bytes as u64,
            units: number(attribute::MULTIPROCESSORS)?,
            warp: number(attribute::WARP_SIZE)?,
            block_threads: number(attribute::MAX_THREADS_PER_BLOCK)?,
            grid: [number(x)?, number(y)?, number(z)?],
            pci: if tells_pci { pci_address(&text(&pci)) } else { None },
        })
    }

    /// The name of a card's processor with its features, which only its properties hold.
    fn processor(&self, device: c_int) -> Called<String> {
        /// More than any release writes.
        #[repr(C, align(16))]
        struct Properties([c_char; 16384]);
        let mut properties = Box::new(Properties([0; 16384]));
        let start = ptr::from_mut(&mut *properties).cast::<c_void>();
        let (call, at) = if self.entries.hipGetDevicePropertiesR0600.is_some() {
            call!(self, hipGetDevicePropertiesR0600(start, device))?;
            ("hipGetDevicePropertiesR0600", PROCESSOR_R0600)
        } else {
            call!(self, hipGetDeviceProperties(start, device))?;
            ("hipGetDeviceProperties", PROCESSOR_OLD)
        };
        let processor = text(&properties.0[at..at + 256]);
        if !processor.starts_with("gfx") {
            let message = format!("the processor `{processor}`, which is no gfx architecture");
            return Err(unasked(call, Kind::Unsupported, message));
        }
        Ok(processor)
    }

    /// Recorded work made ready, by the newest call that there is.
    fn instantiated(&self, graph: *mut c_void) -> Called<*mut c_void> {
        let (mut made, mut node) = (ptr::null_mut(), ptr::null_mut());
        if self.entries.hipGraphInstantiateWithFlags.is_some() {
            call!(self, hipGraphInstantiateWithFlags(&mut made, graph, 0))?;
        } else {
            call!(self, hipGraphInstantiate(&mut made, graph, &mut node, ptr::null_mut(), 0))?;
        }
        Ok(made)
    }
}

/// The text that the driver wrote, up to its zero.
fn text(written: &[c_char]) -> String {
    let bytes: Vec<u8> = written.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// A handle as the driver wants it.
fn raw(handle: usize) -> *mut c_void {
    handle as *mut c_void
}

fn raw_address(address: Address) -> *mut c_void {
    address.0 as usize as *mut c_void
}

impl Driver for Hip {
    fn backend(&self) -> &'static str {
        "hip"
    }

    fn version(&self) -> String {
        let mut version = 0;
        match call!(self, hipRuntimeGetVersion(&mut version)) {
            Ok(()) => codes::version(version),
            Err(_) => "HIP".to_owned(),
        }
    }

    fn ptx(&self) -> Option<(u32, u32)> {
        None
    }

    fn cards(&self) -> Called<Vec<Called<Card>>> {
        Ok((0..self.count()?).map(|ordinal| self.card(ordinal)).collect())
    }

    fn open(&self, card: u32) -> Called<()> {
        let count = self.count()?;
        if card >= count {
            return Err(unasked("hipSetDevice", Kind::Other, format!("there is no card {card}, but {count}")));
        }
        self.enter(card)
    }

    fn close(&self, _card: u32) -> Called<()> {
        // A card is the process's from its first use on: nothing was taken that could be given back.
        Ok(())
    }

    fn memory(&self, card: u32) -> Called<[u64; 2]> {
        self.enter(card)?;
        let (mut free, mut all) = (0, 0);
        call!(self, hipMemGetInfo(&mut free, &mut all))?;
        Ok([free as u64, all as u64])
    }

    fn alloc(&self, card: u32, bytes: usize) -> Called<Address> {
        self.enter(card)?;
        let mut start = ptr::null_mut();
        call!(self, hipMalloc(&mut start, bytes))?;
        Ok(Address(start.addr() as u64))
    }

    fn free(&self, card: u32, address: Address) -> Called<()> {
        self.enter(card)?;
        call!(self, hipFree(raw_address(address)))
    }

    fn zero(&self, card: u32, stream: Stream, address: Address, bytes: usize) -> Called<()> {
        self.enter(card)?;
        call!(self, hipMemsetAsync(raw_address(address), 0, bytes, raw(stream.0)))
    }

    fn alloc_host(&self, card: u32, bytes: usize) -> Called<*mut u8> {
        self.enter(card)?;
        let mut start = ptr::null_mut();
        call!(self, hipHostMalloc(&mut start, bytes, PORTABLE))?;
        Ok(start.cast())
    }

    fn free_host(&self, card: u32, start: *mut u8) -> Called<()> {
        self.enter(card)?;
        call!(self, hipHostFree(start.cast()))
    }

    fn stream(&self, card: u32) -> Called<Stream> {
        self.enter(card)?;
        let mut stream = ptr::null_mut();
        call!(self, hipStreamCreateWithFlags(&mut stream, NON_BLOCKING))?;
        Ok(Stream(stream as usize))
    }

    fn destroy_stream(&self, card: u32, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, hipStreamDestroy(raw(stream.0)))
    }

    fn finish_stream(&self, card: u32, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, hipStreamSynchronize(raw(stream.0)))
    }

    fn event(&self, card: u32, timed: bool) -> Called<Event> {
        self.enter(card)?;
        let mut event = ptr::null_mut();
        call!(self, hipEventCreateWithFlags(&mut event, if timed { 0 } else { DISABLE_TIMING }))?;
        Ok(Event(event as usize))
    }

    fn destroy_event(&self, card: u32, event: Event) -> Called<()> {
        self.enter(card)?;
        call!(self, hipEventDestroy(raw(event.0)))
    }

    fn record(&self, card: u32, event: Event, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, hipEventRecord(raw(event.0), raw(stream.0)))
    }

    fn finish_event(&self, card: u32, event: Event) -> Called<()> {
        self.enter(card)?;
        call!(self, hipEventSynchronize(raw(event.0)))
    }

    fn has_happened(&self, card: u32, event: Event) -> Called<bool> {
        self.enter(card)?;
        // SAFETY: the event is the driver's. The code itself is looked at, as the usual answer is no failure to be described.
        match unsafe { (self.entries.hipEventQuery)(raw(event.0)) } {
            codes::NOT_READY => Ok(false),
            code => self.entries.judged("hipEventQuery", code).map(|()| true),
        }
    }

    fn elapsed(&self, card: u32, from: Event, to: Event) -> Called<f32> {
        self.enter(card)?;
        let mut milliseconds = 0.0;
        call!(self, hipEventElapsedTime(&mut milliseconds, raw(from.0), raw(to.0)))?;
        Ok(milliseconds)
    }

    fn wait(&self, card: u32, stream: Stream, event: Event) -> Called<()> {
        self.enter(card)?;
        call!(self, hipStreamWaitEvent(raw(stream.0), raw(event.0), 0))
    }

    unsafe fn copy(&self, card: u32, stream: Stream, from: End, to: End, shape: [usize; 3]) -> Called<()> {
        self.enter(card)?;
        // SAFETY: as the caller promises.
        unsafe { self.copy_box(raw(stream.0), from, to, shape) }
    }

    fn reaches(&self, card: u32, peer: u32) -> Called<bool> {
        if self.entries.hipDeviceCanAccessPeer.is_none() || self.entries.hipDeviceEnablePeerAccess.is_none() {
            return Ok(false);
        }
        let mut can = 0;
        call!(self, hipDeviceCanAccessPeer(&mut can, card as c_int, peer as c_int))?;
        Ok(can != 0)
    }

    fn enable_peer(&self, card: u32, peer: u32) -> Called<()> {
        self.enter(card)?;
        match call!(self, hipDeviceEnablePeerAccess(peer as c_int, 0)) {
            Err(Failure { code: codes::PEER_ACCESS_ALREADY_ENABLED, .. }) => Ok(()),
            answer => answer,
        }
    }

    fn load(&self, card: u32, image: Image<'_>) -> Called<Module> {
        self.enter(card)?;
        let refused = |kind, what: &str| Err(unasked("hipModuleLoadData", kind, what.to_owned()));
        let image = match image {
            Image::Ptx(_) => return refused(Kind::Unsupported, "HIP takes no PTX"),
            // The driver isn't told where the image ends.
            Image::Object(bytes) if !super::image::is_whole(bytes) => {
                return refused(Kind::InvalidImage, "the code object is broken or cut short");
            }
            Image::Object(bytes) => bytes,
        };
        let mut module = ptr::null_mut();
        call!(self, hipModuleLoadData(&mut module, image.as_ptr().cast()))?;
        Ok(Module(module as usize))
    }

    fn unload(&self, card: u32, module: Module) -> Called<()> {
        self.enter(card)?;
        call!(self, hipModuleUnload(raw(module.0)))
    }

    fn function(&self, card: u32, module: Module, name: &str) -> Called<Function> {
        self.enter(card)?;
        let name = CString::new(name)
            .map_err(|_| unasked("hipModuleGetFunction", Kind::Other, format!("`{name}` has a zero in it")))?;
        let mut function = ptr::null_mut();
        call!(self, hipModuleGetFunction(&mut function, raw(module.0), name.as_ptr()))?;
        Ok(Function(function as usize))
    }

    fn uses(&self, card: u32, function: Function) -> Called<Uses> {
        self.enter(card)?;
        let number = |attribute: c_int| -> Called<u32> {
            let mut value = 0;
            call!(self, hipFuncGetAttribute(&mut value, attribute, raw(function.0)))?;
            Ok(value.max(0).unsigned_abs())
        };
        // HIP_FUNC_ATTRIBUTE_NUM_REGS, _LOCAL_SIZE_BYTES and _MAX_THREADS_PER_BLOCK.
        Ok(Uses { registers: number(4)?, local_bytes: number(3)?, block_threads: number(0)? })
    }

    unsafe fn launch(
        &self,
        card: u32,
        stream: Stream,
        function: Function,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &mut [*mut c_void],
    ) -> Called<()> {
        self.enter(card)?;
        let (stream, function, arguments) = (raw(stream.0), raw(function.0), arguments.as_mut_ptr());
        let ([x, y, z], [by, bz]) = (grid, [block[1], block[2]]);
        call!(self, hipModuleLaunchKernel(function, x, y, z, block[0], by, bz, 0, stream, arguments, ptr::null_mut()))
    }

    fn begin_capture(&self, card: u32, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, hipStreamBeginCapture(raw(stream.0), CAPTURE_THREAD_LOCAL))
    }

    fn end_capture(&self, card: u32, stream: Stream) -> Called<Graph> {
        self.enter(card)?;
        let mut graph = ptr::null_mut();
        call!(self, hipStreamEndCapture(raw(stream.0), &mut graph))?;
        if graph.is_null() {
            return Err(unasked("hipStreamEndCapture", Kind::Other, "the recording became invalid".to_owned()));
        }
        let made = self.instantiated(graph);
        let gone = call!(self, hipGraphDestroy(graph));
        let made = made?;
        gone.map(|()| Graph(made as usize))
    }

    fn launch_graph(&self, card: u32, stream: Stream, graph: Graph) -> Called<()> {
        self.enter(card)?;
        call!(self, hipGraphLaunch(raw(graph.0), raw(stream.0)))
    }

    fn destroy_graph(&self, card: u32, graph: Graph) -> Called<()> {
        self.enter(card)?;
        call!(self, hipGraphExecDestroy(raw(graph.0)))
    }
}
