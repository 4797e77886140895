//! What the one GPU device asks of a vendor's driver: CUDA's and HIP's differ in names, handles and codes, not in what they do.
//!
//! Handles are plain numbers that only the driver that gave them understands; the device keeps them with their owner. Every
//! call names the card it is for, and the driver makes that card current for the calling thread.

use std::ffi::c_void;
use std::fmt;

/// The result of a call.
pub(super) type Called<T> = Result<T, Failure>;

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The entry point, such as `cuLaunchKernel`.
    pub(super) call: &'static str,
    /// The driver's code; 0 where the driver wasn't asked.
    pub(super) code: i32,
    /// What the code means, in the driver's words: `CUDA_ERROR_OUT_OF_MEMORY (2): out of memory`.
    pub(super) message: String,
    /// What a caller can act on.
    pub(super) kind: Kind,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is no room for an allocation.
    OutOfMemory,
    /// The library doesn't have the entry point, or the card can't do it.
    Unsupported,
    /// The driver doesn't take this code: for another card, too new, or broken.
    InvalidImage,
    /// The card or its context is lost: nothing works any more.
    Lost,
    /// Anything else.
    Other,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What is known of a card without opening it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    /// Its number.
    pub(super) ordinal: u32,
    /// Its name.
    pub(super) name: String,
    /// What code it runs.
    pub(super) architecture: Architecture,
    /// The size of its memory.
    pub(super) memory_bytes: u64,
    /// Multiprocessors or compute units.
    pub(super) units: u32,
    /// Threads that run in step: 32 or 64.
    pub(super) warp: u32,
    /// Threads of a block at most.
    pub(super) block_threads: u32,
    /// Blocks of a grid at most, along X, Y and Z.
    pub(super) grid: [u32; 3],
    /// Its PCI address, as in `0000:c1:00.0`.
    pub(super) pci: Option<String>,
}

/// What code a card runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Architecture {
    /// A compute capability of NVIDIA's: 9.0 is (9, 0).
    Sm(u32, u32),
    /// A processor of AMD's with its features: `gfx90a:sramecc+:xnack-`.
    Gfx(String),
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sm(major, minor) => write!(f, "sm_{major}{minor}"),
            Self::Gfx(name) => f.write_str(name),
        }
    }
}

/// An address in the memory of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address(pub(super) u64);

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream(pub(super) usize);

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event(pub(super) usize);

/// Loaded code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module(pub(super) usize);

/// A kernel of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function(pub(super) usize);

/// Recorded work that can be enqueued at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Graph(pub(super) usize);

/// What a kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uses {
    /// Registers of a thread.
    pub(super) registers: u32,
    /// Memory of a thread for what doesn't fit registers, in bytes.
    pub(super) local_bytes: u32,
    /// Threads of a block at most.
    pub(super) block_threads: u32,
}

/// Code to be loaded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Image<'a> {
    /// PTX.
    Ptx(&'a str),
    /// A cubin, or a code object.
    Object(&'a [u8]),
}

/// One end of a copy: a box of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Where it lies.
    pub(super) side: Side,
    /// The first byte.
    pub(super) address: u64,
    /// Bytes from one row to the next.
    pub(super) row_pitch: usize,
    /// Bytes from one plane to the next, a multiple of `row_pitch`.
    pub(super) plane_pitch: usize,
}

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// In the host's memory.
    Host,
    /// On the card of that number.
    Card(u32),
}

/// A vendor's driver, loaded.
///
/// Nothing here panics. A call that the library lacks fails with [`Kind::Unsupported`].
pub(super) trait Driver: fmt::Debug + Send + Sync {
    /// The back end's name: `cuda` or `hip`.
    fn backend(&self) -> &'static str;

    /// The driver's version, for people and as part of keys: `CUDA 12.4`.
    fn version(&self) -> String;

    /// The newest version of PTX that the driver takes, as (major, minor); `None` for a driver that takes none.
    fn ptx(&self) -> Option<(u32, u32)>;

    /// The cards. A broken card is a failure of its own, which hides no other.
    fn cards(&self) -> Called<Vec<Called<Card>>>;

    /// Makes a card ready for use; each call is to be answered by one of [`close`](Self::close).
    fn open(&self, card: u32) -> Called<()>;

    /// The end of a use of a card.
    fn close(&self, card: u32) -> Called<()>;

    /// Bytes free on the card, and all.
    fn memory(&self, card: u32) -> Called<[u64; 2]>;

    /// Memory on the card.
    fn alloc(&self, card: u32, bytes: usize) -> Called<Address>;

    /// Gives memory back.
    fn free(&self, card: u32, address: Address) -> Called<()>;

    /// Enqueues zeroes.
    fn zero(&self, card: u32, stream: Stream, address: Address, bytes: usize) -> Called<()>;

    /// Pinned memory of the host that every card of the driver can copy from and to.
    fn alloc_host(&self, card: u32, bytes: usize) -> Called<*mut u8>;

    /// Gives pinned memory back.
    fn free_host(&self, card: u32, start: *mut u8) -> Called<()>;

    /// A stream that doesn't wait for the default one.
    fn stream(&self, card: u32) -> Called<Stream>;

    /// Gives a stream back.
    fn destroy_stream(&self, card: u32, stream: Stream) -> Called<()>;

    /// Waits until the stream is empty, and says what failed in it.
    fn finish_stream(&self, card: u32, stream: Stream) -> Called<()>;

    /// An event, with times if `timed`.
    fn event(&self, card: u32, timed: bool) -> Called<Event>;

    /// Gives an event back.
    fn destroy_event(&self, card: u32, event: Event) -> Called<()>;

    /// The event becomes the moment after what was enqueued on the stream so far.
    fn record(&self, card: u32, event: Event, stream: Stream) -> Called<()>;

    /// Waits for an event.
    fn finish_event(&self, card: u32, event: Event) -> Called<()>;

    /// Whether an event has happened.
    fn has_happened(&self, card: u32, event: Event) -> Called<bool>;

    /// Milliseconds between two timed events of a card that have happened.
    fn elapsed(&self, card: u32, from: Event, to: Event) -> Called<f32>;

    /// What is enqueued on the stream from now on starts after the event, which may be another card's.
    fn wait(&self, card: u32, stream: Stream, event: Event) -> Called<()>;

    /// Enqueues a copy of `shape` (bytes, rows, planes), of which none is 0. Between two cards it works whether or not one can
    /// reach the other's memory.
    ///
    /// # Safety
    /// Host memory is valid until the copy is done, and the boxes lie in memory that is theirs.
    unsafe fn copy(&self, card: u32, stream: Stream, from: End, to: End, shape: [usize; 3]) -> Called<()>;

    /// Whether `card` can reach the memory of `peer` by itself.
    fn reaches(&self, card: u32, peer: u32) -> Called<bool>;

    /// Lets `card` reach the memory of `peer`; no failure where that is so already.
    fn enable_peer(&self, card: u32, peer: u32) -> Called<()>;

    /// Loads code. The message of a failure holds the driver's log, if it has one.
    fn load(&self, card: u32, image: Image<'_>) -> Called<Module>;

    /// Unloads code.
    fn unload(&self, card: u32, module: Module) -> Called<()>;

    /// A kernel of a module.
    fn function(&self, card: u32, module: Module, name: &str) -> Called<Function>;

    /// What a kernel uses.
    fn uses(&self, card: u32, function: Function) -> Called<Uses>;

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// The arguments point to values of the kernel's types, and what the kernel reads and writes is there.
    unsafe fn launch(
        &self,
        card: u32,
        stream: Stream,
        function: Function,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &mut [*mut c_void],
    ) -> Called<()>;

    /// Begins to record what this thread enqueues on the stream, and on streams that come to wait for its events.
    fn begin_capture(&self, card: u32, stream: Stream) -> Called<()>;

    /// Ends the recording that began on the stream; after a failure the stream works as before.
    fn end_capture(&self, card: u32, stream: Stream) -> Called<Graph>;

    /// Enqueues what was recorded.
    fn launch_graph(&self, card: u32, stream: Stream, graph: Graph) -> Called<()>;

    /// Gives a recording back.
    fn destroy_graph(&self, card: u32, graph: Graph) -> Called<()>;
}
