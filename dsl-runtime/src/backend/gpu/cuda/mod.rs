//! NVIDIA's driver, through the types of cudarc and the library that it finds.
//!
//! The entry points are taken from the library one by one, for cudarc's own functions panic where one is missing and give codes
//! as an enumeration, which no code may hold that it doesn't list. `entries` has the table, `codes` what the driver's numbers
//! mean, `context` the contexts of the cards, `copy` the copies.

mod codes;
mod context;
mod copy;
mod entries;
#[cfg(test)]
mod tests;

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute, CUevent, CUfunction, CUgraphExec, CUmodule, CUstream};
use polyhalo_codegen::offline::programs::{Environment, process_environment};

use super::driver::{
    Address, Architecture, Called, Card, Driver, End, Event, Failure, Function, Graph, Image, Kind, Module, Stream,
    Uses,
};
use super::library::{self, Candidates, Found, Search, unasked};
use crate::placement::pci_address;
use context::Slot;
use entries::Entries;

/// How the library is found where the variable names it; cudarc knows the usual places.
const SEARCH: Search = Search {
    driver: "CUDA",
    variable: "POLYHALO_CUDA",
    names: &["libcuda.so.1", "libcuda.so", "nvcuda.dll"],
    homes: &[],
    folders: &[],
    inside: &["", "lib64", "lib"],
    origin: "comes with NVIDIA's driver",
};

/// Streams that don't wait for the default one.
const NON_BLOCKING: u32 = 1;
/// Events without times.
const DISABLE_TIMING: u32 = 2;
/// Pinned memory for all cards.
const PORTABLE: u32 = 1;
/// A recording that other threads' calls don't disturb.
const CAPTURE_THREAD_LOCAL: u32 = 1;
/// Where the driver's compiler writes what it has against PTX, and the room for it.
const JIT_ERROR_LOG: [c_int; 2] = [5, 6];

/// The driver of this machine, loaded when first asked for; why there is none.
pub(super) fn driver() -> Result<&'static dyn Driver, String> {
    driver_of(&process_environment)
}

/// As [`driver`] with the variables of `environment`.
pub(super) fn driver_of(environment: Environment) -> Result<&'static dyn Driver, String> {
    find(environment).map(|driver| driver as &dyn Driver)
}

/// As [`driver`], by its type.
fn find(environment: Environment) -> Result<&'static Cuda, String> {
    static FOUND: Found<Cuda> = Found::nothing();
    let candidates = match SEARCH.candidates(environment)? {
        Candidates::Named(files) => Candidates::Named(files),
        Candidates::Usual(_) => {
            let names = ["cuda", "nvcuda"].into_iter().flat_map(cudarc::get_lib_name_candidates);
            Candidates::Usual(names.map(PathBuf::from).collect())
        }
    };
    SEARCH.first(&candidates, |file| {
        FOUND.or(file, || {
            let named = library::load(file)?;
            let library = match candidates {
                Candidates::Named(_) => named,
                // SAFETY: loading the library again, which is loaded already, only finds it.
                Candidates::Usual(_) => unsafe { cudarc::driver::sys::culib() },
            };
            Cuda::new(&|name| library::address(library, name))
        })
    })
}

/// NVIDIA's driver, loaded.
#[derive(Debug)]
pub(super) struct Cuda {
    entries: Entries,
    /// The cards, once the driver is started and has some.
    slots: OnceLock<Vec<Slot>>,
}

/// Calls an entry point of the table.
macro_rules! call {
    ($cuda:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: results go to variables of the caller, texts end with a zero, and handles and addresses are those that the
        // driver gave for the card at hand, as `Driver` asks.
        unsafe { $cuda.entries.$name($($argument),*) }
    };
}
use call;

impl Cuda {
    /// The driver whose entry points `find` gives.
    fn new(find: &dyn Fn(&str) -> Option<*const c_void>) -> Result<Self, String> {
        // SAFETY: the addresses are those of a library that calls itself NVIDIA's driver.
        let entries = unsafe { Entries::fill(find) };
        let entries = entries.map_err(|name| format!("it lacks {name}, which every CUDA driver since 9.0 has"))?;
        Ok(Self { entries, slots: OnceLock::new() })
    }

    /// The version of CUDA that the driver serves.
    fn release(&self) -> Called<(u32, u32)> {
        let mut version = 0;
        call!(self, cuDriverGetVersion(&mut version))?;
        Ok(codes::parts(version))
    }

    fn card(&self, ordinal: u32, device: CUdevice) -> Called<Card> {
        use CUdevice_attribute::*;
        let mut name = [0; 256];
        call!(self, cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device))?;
        let mut memory_bytes = 0;
        call!(self, cuDeviceTotalMem_v2(&mut memory_bytes, device))?;
        let number = |attribute: CUdevice_attribute| -> Called<u32> {
            let mut value = 0;
            call!(self, cuDeviceGetAttribute(&mut value, attribute as c_int, device))?;
            Ok(value.max(0).unsigned_abs())
        };
        let mut pci = [0; 32];
        let tells_pci = call!(self, cuDeviceGetPCIBusId(pci.as_mut_ptr(), pci.len() as c_int, device)).is_ok();
        Ok(Card {
            ordinal,
            name: text(&name),
            architecture: Architecture::Sm(
                number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            memory_bytes: memory_bytes as u64,
            units: number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            warp: number(CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            block_threads: number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            grid: [
                number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            pci: if tells_pci { pci_address(&text(&pci)) } else { None },
        })
    }

    /// Recorded work made ready, by the newest call that there is.
    fn instantiated(&self, graph: cudarc::driver::sys::CUgraph) -> Called<CUgraphExec> {
        let (mut made, mut node) = (ptr::null_mut(), ptr::null_mut());
        if self.entries.cuGraphInstantiateWithFlags.is_some() {
            call!(self, cuGraphInstantiateWithFlags(&mut made, graph, 0))?;
        } else if self.entries.cuGraphInstantiate_v2.is_some() {
            call!(self, cuGraphInstantiate_v2(&mut made, graph, &mut node, ptr::null_mut(), 0))?;
        } else {
            call!(self, cuGraphInstantiate(&mut made, graph, &mut node, ptr::null_mut(), 0))?;
        }
        Ok(made)
    }
}

/// The text that the driver wrote, up to its zero.
fn text(written: &[c_char]) -> String {
    let bytes: Vec<u8> = written.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

impl Driver for Cuda {
    fn backend(&self) -> &'static str {
        "cuda"
    }

    fn version(&self) -> String {
        match self.release() {
            Ok((major, minor)) => format!("CUDA {major}.{minor}"),
            Err(_) => "CUDA".to_owned(),
        }
    }

    fn ptx(&self) -> Option<(u32, u32)> {
        self.release().ok().and_then(codes::ptx)
    }

    fn cards(&self) -> Called<Vec<Called<Card>>> {
        let slots = self.slots()?;
        let card = |(ordinal, slot): (usize, &Slot)| self.card(ordinal as u32, slot.device()?);
        Ok(slots.iter().enumerate().map(card).collect())
    }

    fn open(&self, card: u32) -> Called<()> {
        self.retain(card)
    }

    fn close(&self, card: u32) -> Called<()> {
        self.release_context(card)
    }

    fn memory(&self, card: u32) -> Called<[u64; 2]> {
        self.enter(card)?;
        let (mut free, mut all) = (0, 0);
        call!(self, cuMemGetInfo_v2(&mut free, &mut all))?;
        Ok([free as u64, all as u64])
    }

    fn alloc(&self, card: u32, bytes: usize) -> Called<Address> {
        self.enter(card)?;
        let mut address = 0;
        call!(self, cuMemAlloc_v2(&mut address, bytes))?;
        Ok(Address(address))
    }

    fn free(&self, card: u32, address: Address) -> Called<()> {
        self.enter(card)?;
        call!(self, cuMemFree_v2(address.0))
    }

    fn zero(&self, card: u32, stream: Stream, address: Address, bytes: usize) -> Called<()> {
        self.enter(card)?;
        call!(self, cuMemsetD8Async(address.0, 0, bytes, raw_stream(stream)))
    }

    fn alloc_host(&self, card: u32, bytes: usize) -> Called<*mut u8> {
        self.enter(card)?;
        let mut start = ptr::null_mut();
        call!(self, cuMemHostAlloc(&mut start, bytes, PORTABLE))?;
        Ok(start.cast())
    }

    fn free_host(&self, card: u32, start: *mut u8) -> Called<()> {
        self.enter(card)?;
        call!(self, cuMemFreeHost(start.cast()))
    }

    fn stream(&self, card: u32) -> Called<Stream> {
        self.enter(card)?;
        let mut stream = ptr::null_mut();
        call!(self, cuStreamCreate(&mut stream, NON_BLOCKING))?;
        Ok(Stream(stream as usize))
    }

    fn destroy_stream(&self, card: u32, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, cuStreamDestroy_v2(raw_stream(stream)))
    }

    fn finish_stream(&self, card: u32, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, cuStreamSynchronize(raw_stream(stream)))
    }

    fn event(&self, card: u32, timed: bool) -> Called<Event> {
        self.enter(card)?;
        let mut event = ptr::null_mut();
        call!(self, cuEventCreate(&mut event, if timed { 0 } else { DISABLE_TIMING }))?;
        Ok(Event(event as usize))
    }

    fn destroy_event(&self, card: u32, event: Event) -> Called<()> {
        self.enter(card)?;
        call!(self, cuEventDestroy_v2(raw_event(event)))
    }

    fn record(&self, card: u32, event: Event, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, cuEventRecord(raw_event(event), raw_stream(stream)))
    }

    fn finish_event(&self, card: u32, event: Event) -> Called<()> {
        self.enter(card)?;
        call!(self, cuEventSynchronize(raw_event(event)))
    }

    fn has_happened(&self, card: u32, event: Event) -> Called<bool> {
        self.enter(card)?;
        // SAFETY: the event is the driver's. The code itself is looked at, as the usual answer is no failure to be described.
        match unsafe { (self.entries.cuEventQuery)(raw_event(event)) } {
            codes::NOT_READY => Ok(false),
            code => self.entries.judged("cuEventQuery", code).map(|()| true),
        }
    }

    fn elapsed(&self, card: u32, from: Event, to: Event) -> Called<f32> {
        self.enter(card)?;
        let mut milliseconds = 0.0;
        call!(self, cuEventElapsedTime(&mut milliseconds, raw_event(from), raw_event(to)))?;
        Ok(milliseconds)
    }

    fn wait(&self, card: u32, stream: Stream, event: Event) -> Called<()> {
        self.enter(card)?;
        call!(self, cuStreamWaitEvent(raw_stream(stream), raw_event(event), 0))
    }

    unsafe fn copy(&self, card: u32, stream: Stream, from: End, to: End, shape: [usize; 3]) -> Called<()> {
        self.enter(card)?;
        // SAFETY: as the caller promises.
        unsafe { self.copy_box(raw_stream(stream), from, to, shape) }
    }

    fn reaches(&self, card: u32, peer: u32) -> Called<bool> {
        if self.entries.cuDeviceCanAccessPeer.is_none() || self.entries.cuCtxEnablePeerAccess.is_none() {
            return Ok(false);
        }
        let (device, peer) = (self.slot(card)?.device()?, self.slot(peer)?.device()?);
        let mut can = 0;
        call!(self, cuDeviceCanAccessPeer(&mut can, device, peer))?;
        Ok(can != 0)
    }

    fn enable_peer(&self, card: u32, peer: u32) -> Called<()> {
        let peer = self.context(peer)?;
        self.enter(card)?;
        match call!(self, cuCtxEnablePeerAccess(peer, 0)) {
            Err(Failure { code: codes::PEER_ACCESS_ALREADY_ENABLED, .. }) => Ok(()),
            answer => answer,
        }
    }

    fn load(&self, card: u32, image: Image<'_>) -> Called<Module> {
        self.enter(card)?;
        let broken = |what: &str| unasked("cuModuleLoadDataEx", Kind::InvalidImage, what.to_owned());
        let ptx;
        let start = match image {
            Image::Ptx(source) => {
                ptx = CString::new(source).map_err(|_| broken("the PTX has a zero in it"))?;
                ptx.as_ptr().cast()
            }
            // The driver isn't told where the image ends.
            Image::Object(bytes) if !super::image::is_whole(bytes) => {
                return Err(broken("the cubin is broken or cut short"));
            }
            Image::Object(bytes) => bytes.as_ptr().cast::<c_void>(),
        };
        let mut log = [0; 8192];
        let (mut options, mut values) =
            (JIT_ERROR_LOG, [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len())]);
        let mut module = ptr::null_mut();
        let (count, options, values) = (options.len() as u32, options.as_mut_ptr(), values.as_mut_ptr());
        let loaded = call!(self, cuModuleLoadDataEx(&mut module, start, count, options, values));
        match loaded {
            Ok(()) => Ok(Module(module as usize)),
            Err(mut failure) => {
                let log = text(&log);
                if !log.is_empty() {
                    failure.message = format!("{}: {log}", failure.message);
                }
                Err(failure)
            }
        }
    }

    fn unload(&self, card: u32, module: Module) -> Called<()> {
        self.enter(card)?;
        call!(self, cuModuleUnload(raw_module(module)))
    }

    fn function(&self, card: u32, module: Module, name: &str) -> Called<Function> {
        self.enter(card)?;
        let name = CString::new(name)
            .map_err(|_| unasked("cuModuleGetFunction", Kind::Other, format!("`{name}` has a zero in it")))?;
        let mut function = ptr::null_mut();
        call!(self, cuModuleGetFunction(&mut function, raw_module(module), name.as_ptr()))?;
        Ok(Function(function as usize))
    }

    fn uses(&self, card: u32, function: Function) -> Called<Uses> {
        self.enter(card)?;
        let number = |attribute: c_int| -> Called<u32> {
            let mut value = 0;
            call!(self, cuFuncGetAttribute(&mut value, attribute, raw_function(function)))?;
            Ok(value.max(0).unsigned_abs())
        };
        // CU_FUNC_ATTRIBUTE_NUM_REGS, _LOCAL_SIZE_BYTES and _MAX_THREADS_PER_BLOCK.
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
        let (stream, arguments) = (raw_stream(stream), arguments.as_mut_ptr());
        let ([x, y, z], [by, bz]) = (grid, [block[1], block[2]]);
        let function = raw_function(function);
        call!(self, cuLaunchKernel(function, x, y, z, block[0], by, bz, 0, stream, arguments, ptr::null_mut()))
    }

    fn begin_capture(&self, card: u32, stream: Stream) -> Called<()> {
        self.enter(card)?;
        call!(self, cuStreamBeginCapture_v2(raw_stream(stream), CAPTURE_THREAD_LOCAL))
    }

    fn end_capture(&self, card: u32, stream: Stream) -> Called<Graph> {
        self.enter(card)?;
        let mut graph = ptr::null_mut();
        call!(self, cuStreamEndCapture(raw_stream(stream), &mut graph))?;
        if graph.is_null() {
            return Err(unasked("cuStreamEndCapture", Kind::Other, "the recording became invalid".to_owned()));
        }
        let made = self.instantiated(graph);
        let gone = call!(self, cuGraphDestroy(graph));
        let made = made?;
        gone.map(|()| Graph(made as usize))
    }

    fn launch_graph(&self, card: u32, stream: Stream, graph: Graph) -> Called<()> {
        self.enter(card)?;
        call!(self, cuGraphLaunch(graph.0 as CUgraphExec, raw_stream(stream)))
    }

    fn destroy_graph(&self, card: u32, graph: Graph) -> Called<()> {
        self.enter(card)?;
        call!(self, cuGraphExecDestroy(graph.0 as CUgraphExec))
    }
}

fn raw_stream(stream: Stream) -> CUstream {
    stream.0 as CUstream
}

fn raw_event(event: Event) -> CUevent {
    event.0 as CUevent
}

fn raw_module(module: Module) -> CUmodule {
    module.0 as CUmodule
}

fn raw_function(function: Function) -> CUfunction {
    function.0 as CUfunction
}
