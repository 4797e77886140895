//! Devices behind one trait: the only modules that touch hardware, drivers or raw memory.
//!
//! A new back end is a folder here, an `impl Backend` and an entry in [`BACKENDS`].

mod affinity;
pub mod gpu;
pub mod host;
mod numa;
pub mod opencl;
pub mod reference;
mod staging;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::clock::Span;
use crate::error::{Error, Result};
use crate::geometry::Box3;
use crate::kernel::{FieldDesc, KernelDesc, Read, Role, ScalarType};
use crate::layout::{Layout, ROWS, Region, Strides, WHOLE};
use crate::placement::Home;
pub(crate) use affinity::Pinned;
pub use affinity::allowed_cpus;
pub use gpu::{GpuOptions, Shape, Tune};
pub use staging::Staging;

/// Every back end, in the order in which they are listed.
pub static BACKENDS: &[&dyn Backend] = &[&reference::Reference, &host::Host, &opencl::OpenCl, &gpu::Cuda, &gpu::Hip];

/// A way to reach devices.
pub trait Backend: Sync {
    /// The word for it in a device description, such as `host`.
    fn name(&self) -> &'static str;

    /// What is there, and why the rest is not. Never fails and never panics: a missing or broken vendor library is a
    /// reason.
    fn devices(&self) -> Listing;

    /// Opens devices, by their `ordinals` of the listing, to be used together. One that occurs several times is split: a
    /// processor into parts with threads or compute units of their own, anything else into devices that share it.
    fn open(&self, ordinals: &[u32], options: &OpenOptions) -> Result<Vec<Box<dyn Device>>>;

    /// Opens one device.
    fn open_one(&self, ordinal: u32, options: &OpenOptions) -> Result<Box<dyn Device>> {
        let mut devices = self.open(&[ordinal], options)?;
        Ok(devices.pop().expect("a device for each ordinal"))
    }
}

/// The devices of a back end.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Devices that can be opened.
    pub devices: Vec<DeviceInfo>,
    /// Why others, or all, are not there; one sentence each.
    pub absent: Vec<String>,
}

/// What is known about a device before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The back end.
    pub backend: &'static str,
    /// Its number there.
    pub ordinal: u32,
    /// The name of the device.
    pub name: String,
    /// The platform that offers it; empty when there is nothing to say.
    pub platform: String,
    /// The driver's version and what else is to be known of the device, such as what it can't do.
    pub notes: Vec<String>,
    /// What it is.
    pub kind: DeviceKind,
    /// Its PCI address, as in `0000:c1:00.0`; `None` for processors and where the driver doesn't tell.
    pub pci: Option<String>,
    /// Whether it computes in double precision.
    pub fp64: bool,
    /// Compute units, or CPUs.
    pub units: u32,
    /// The size of its memory.
    pub memory_bytes: u64,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.backend, self.ordinal, self.name)?;
        if !self.platform.is_empty() {
            write!(f, " ({})", self.platform)?;
        }
        Ok(())
    }
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A processor that shares the host's memory.
    Cpu,
    /// A graphics processor or another accelerator.
    Gpu,
}

/// Wishes for a device that is being opened; a back end ignores what doesn't concern it.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Threads of each host device; when absent the CPUs of the process's mask are shared out among the devices.
    pub threads: Option<usize>,
    /// The threads that serve the queues of host devices.
    pub helpers: Helpers,
    /// When operations of host devices run.
    pub order: Order,
    /// Which CPUs the threads of a device keep to.
    pub affinity: Affinity,
    /// Whether the times of operations are kept for [`Device::span`].
    pub trace: bool,
    /// The instruction set of native kernels; the best one of the CPU when absent.
    pub instruction_set: Option<host::InstructionSet>,
    /// The form in which OpenCL gets its kernels.
    pub opencl_form: OpenClForm,
    /// How kernels are laid out on CUDA and HIP devices.
    pub gpu: GpuOptions,
}

/// Threads that do what was enqueued on the queues of host devices while the issuing threads go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Helpers {
    /// None for a single host device, one for each of several.
    #[default]
    Auto,
    /// One for each host device.
    Devices,
    /// So many in all; with 0 an operation is done by the thread that issues it, before it goes on.
    Count(usize),
}

impl fmt::Display for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Devices => f.write_str("devices"),
            Self::Count(count) => count.fmt(f),
        }
    }
}

impl FromStr for Helpers {
    type Err = Error;

    /// `auto`, `devices` or a number.
    fn from_str(text: &str) -> Result<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "devices" => Ok(Self::Devices),
            number => {
                let known = vec!["auto", "devices", "a number"];
                let unknown = |_| Error::NoSuchChoice { what: "number of helper threads", name: text.into(), known };
                number.parse().map(Self::Count).map_err(unknown)
            }
        }
    }
}

/// When an operation of a host device runs, within what its queue and its waits allow. All orders give the same results
/// if no dependency is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As soon as it may.
    #[default]
    Eager,
    /// When somebody waits for it, and not before.
    Lazy,
    /// In an order drawn at random with this seed.
    Random(u64),
}

/// The CPUs that the threads for a device keep to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Those near the device.
    #[default]
    Near,
    /// Those far from it, for comparison: of another NUMA node, if there is one.
    Far,
    /// Any.
    None,
}

impl Affinity {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Near, Self::Far, Self::None];

    fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Affinity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|affinity| affinity.name().eq_ignore_ascii_case(text.trim()));
        let known = || Self::ALL.map(Self::name).to_vec();
        found.ok_or_else(|| Error::NoSuchChoice { what: "affinity", name: text.into(), known: known() })
    }
}

/// The form in which an OpenCL device gets its kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenClForm {
    /// SPIR-V where the platform takes it, OpenCL C elsewhere.
    #[default]
    Auto,
    /// OpenCL C.
    Source,
    /// SPIR-V; an error where the platform doesn't take it.
    SpirV,
}

/// Memory on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u64);

/// A kernel on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(pub u32);

/// A queue of a device; its operations run in order. A device has as many as are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

impl QueueId {
    /// The queue for kernels.
    pub const COMPUTE: Self = Self(0);
}

/// A moment in a queue, from [`Device::signal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// Work that a device has recorded, from [`Device::recorded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordingId(pub u64);

/// A buffer and the place in it from which cells are counted: that of local cell (0, 0, 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The buffer.
    pub buffer: BufferId,
    /// The index of local cell (0, 0, 0), or of the one that takes its place.
    pub origin: usize,
}

/// One kernel over one box.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: KernelId,
    /// Where the results go, in the order of [`KernelDesc::outputs`]; no buffer occurs twice. What is folded goes to
    /// buffers that extend along Y and Z ([`ROWS`]) and hold the type [`OutputDesc::stored`](crate::kernel::OutputDesc::stored); all others extend
    /// along all axes.
    ///
    /// The buffer of a value may be among `fields` too if each cell that is written is read for its own point only: the
    /// kernel reads the field at no displacement, or `parity` leaves out the points that it reads, or `shift` moves
    /// all reads out of the range.
    pub outputs: &'a [Cells],
    /// The fields, in the order of [`KernelDesc::fields`]; a buffer may occur more than once. Their origins are those of
    /// their layouts moved by `shift` ([`Layout::shifted_origin`]).
    pub fields: &'a [Cells],
    /// How far all fields are read from where the kernel says, in cells along X, Y and Z: the cells of a boundary
    /// are filled this way.
    pub shift: [i64; 3],
    /// The scalars, in the order of [`KernelDesc::params`]: the bits of the value in the low bytes; a `bool` is true
    /// unless all are 0.
    pub scalars: &'a [u64],
    /// The strides common to all these fields.
    pub strides: Strides,
    /// The global index of local cell (0, 0, 0) along X, Y and Z.
    pub global: [i32; 3],
    /// The points to update, in local coordinates. May be empty. The box lies inside the buffers of the results, and the
    /// footprint of the kernel around it, moved by `shift`, inside those of the fields.
    pub range: Box3,
    /// Which points of the range: all, or those whose local indices add up to an even (0) or an odd (1) number.
    pub parity: Option<u8>,
}

impl Launch<'_> {
    /// Says what doesn't fit, given the layouts of the device's buffers: the number and types of the arguments, the
    /// strides, the footprint around the range, and buffers that are written and used a second time. A device calls it
    /// before it runs anything.
    pub fn check(&self, kernel: &KernelDesc, layout: impl Fn(BufferId) -> Option<Layout>) -> Result<(), String> {
        let counts = [
            ("results", self.outputs.len(), kernel.outputs.len()),
            ("fields", self.fields.len(), kernel.fields.len()),
            ("scalars", self.scalars.len(), kernel.params.len()),
        ];
        if let Some((what, found, expected)) = counts.into_iter().find(|(_, found, expected)| found != expected) {
            return Err(format!("`{}` takes {expected} {what}, and {found} were given", kernel.name));
        }
        if self.parity.is_some_and(|parity| parity > 1) {
            return Err("the parity of a point is 0 or 1".into());
        }
        let fits = |cells: &Cells, (ty, axes): (ScalarType, [bool; 3]), shift: [i64; 3], needed: &Box3| {
            let layout = layout(cells.buffer).ok_or_else(|| format!("there is no buffer {}", cells.buffer.0))?;
            let same = layout.ty == ty
                && layout.axes == axes
                && layout.strides == self.strides
                && layout.shifted_origin(shift) == cells.origin;
            if !same || !layout.holds(needed) {
                let needed = layout.along(needed);
                return Err(format!(
                    "buffer {} doesn't hold the {ty} cells {needed} with these strides",
                    cells.buffer.0
                ));
            }
            Ok(())
        };
        for (cells, output) in self.outputs.iter().zip(kernel.outputs) {
            let axes = if output.role == Role::Value { WHOLE } else { ROWS };
            fits(cells, (output.stored(), axes), [0; 3], &self.range)?;
            if output.role != Role::Value && output.ty == ScalarType::Bool {
                return Err(format!("`{}` folds truth values", kernel.name));
            }
        }
        for (cells, field) in self.fields.iter().zip(kernel.fields) {
            fits(cells, (field.ty, field.axes), self.shift, &self.footprint(field))?;
        }
        self.check_aliases(kernel)
    }

    /// The cells of a field that are read.
    fn footprint(&self, field: &FieldDesc) -> Box3 {
        let part = field.footprint(&self.range);
        let moved = |side: [i64; 3]| std::array::from_fn(|axis| side[axis].saturating_add(self.shift[axis]));
        if part.is_empty() { part } else { Box3 { lo: moved(part.lo), hi: moved(part.hi) } }
    }

    /// An error if a buffer is written and used a second time in a way in which a point might read the new value of
    /// another.
    fn check_aliases(&self, kernel: &KernelDesc) -> Result<(), String> {
        for (number, cells) in self.outputs.iter().enumerate() {
            let is_folded = kernel.outputs[number].role != Role::Value;
            let twice = self.outputs[..number].iter().any(|other| other.buffer == cells.buffer);
            let read = self.fields.iter().zip(kernel.fields).filter(|(other, _)| other.buffer == cells.buffer);
            let mut fields = read.map(|(_, field)| field);
            if twice || fields.any(|field| is_folded || !self.may_be_in_place(field)) {
                return Err(format!("buffer {} is written and used a second time", cells.buffer.0));
            }
        }
        Ok(())
    }

    /// Whether no point reads what the update of another writes, if a result is written to the memory of this field.
    fn may_be_in_place(&self, field: &FieldDesc) -> bool {
        let own = |offset: [i32; 3]| offset == [0; 3];
        let skipped = |offset: [i32; 3]| offset.into_iter().fold(0, |sum, cells| sum ^ cells) & 1 == 1;
        let in_place = |read: &Read| own(read.offset) || (self.parity.is_some() && skipped(read.offset));
        let apart = self.footprint(field).intersection(&self.range).is_empty();
        apart || (self.shift == [0; 3] && field.reads.iter().all(in_place))
    }

    /// Whether a result is written to the memory of a field.
    pub(crate) fn is_in_place(&self) -> bool {
        self.outputs.iter().any(|to| self.fields.iter().any(|from| from.buffer == to.buffer))
    }
}

/// A box of bytes in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The buffer.
    pub buffer: BufferId,
    /// The box.
    pub region: &'a Region,
}

/// An open device. Operations on a queue run in the order in which they were enqueued; only `read`, `write` and
/// `finish` may block.
///
/// Ids that the device didn't give are answered by an error or ignored, never by undefined behaviour; so are regions
/// outside a buffer. Dropping a device waits for its work and frees its memory.
pub trait Device: Send + Sync {
    /// The facts about the device.
    fn info(&self) -> &DeviceInfo;

    /// A few words for reports, such as `host (2 threads, AVX-512)`.
    fn summary(&self) -> String;

    /// Where threads that work for the device stay and memory for its transfers lies, decided when it was opened.
    fn home(&self) -> &Home {
        const { &Home::ANYWHERE }
    }

    /// Memory that is free now and what limits it; `None` when the device can't tell.
    fn free_memory(&self) -> Result<Option<FreeMemory>>;

    /// Memory for the cells of `layout`, all bytes zero. The layout tells which thread or unit will work on which
    /// plane.
    fn alloc(&self, layout: &Layout) -> Result<BufferId>;

    /// Gives memory back once the work that uses it is finished, for which it may wait.
    fn free(&self, buffer: BufferId);

    /// Enqueues the replacement of a box by `data`, whose rows follow one another without gaps; `data` may be changed
    /// when the call returns.
    fn write(&self, queue: QueueId, to: Place<'_>, data: &[u8]) -> Result<()>;

    /// Waits for the queue, then fills `data` with a box, rows without gaps.
    fn read(&self, queue: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()>;

    /// Enqueues a copy between two boxes of the same shape, which may be in the same buffer but don't overlap.
    fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()>;

    /// Makes a kernel ready to run, compiling it if need be; the same id for the same kernel.
    fn load(&self, kernel: &'static KernelDesc) -> Result<KernelId>;

    /// Enqueues a kernel.
    fn launch(&self, queue: QueueId, launch: &Launch<'_>) -> Result<()>;

    /// The moment after all that was enqueued on the queue so far.
    fn signal(&self, queue: QueueId) -> Result<EventId>;

    /// What is enqueued on the queue from now on starts after the event.
    fn wait(&self, queue: QueueId, event: EventId) -> Result<()>;

    /// Blocks until the queue is empty, and reports what failed in it.
    fn finish(&self, queue: QueueId) -> Result<()>;

    /// Blocks until the event has happened, and reports what failed in its queue.
    fn synchronize(&self, event: EventId) -> Result<()>;

    /// The device itself, for others of its back end to recognise it.
    fn as_any(&self) -> &dyn Any;

    /// Whether queues of this device can wait for events of `other` without the host.
    fn awaits(&self, other: &dyn Device) -> bool {
        let _ = other;
        false
    }

    /// What is enqueued on the queue from now on starts after an event of `other`, which this device
    /// [`awaits`](Self::awaits).
    fn wait_for_peer(&self, queue: QueueId, other: &dyn Device, event: EventId) -> Result<()> {
        let _ = queue;
        other.synchronize(event)
    }

    /// Whether this device can copy to the memory of `other` without the host; if not, why.
    fn reaches(&self, other: &dyn Device) -> Result<(), String> {
        Err(format!("the back end `{}` copies through the host, to {} too", self.info().backend, other.summary()))
    }

    /// Enqueues a copy from a box of this device to one of the same shape of `other`, which it
    /// [`reaches`](Self::reaches).
    fn copy_to_peer(&self, queue: QueueId, from: Place<'_>, other: &dyn Device, to: Place<'_>) -> Result<()> {
        let mut bytes = vec![0; from.region.bytes()];
        self.read(queue, from, &mut bytes)?;
        other.write(QueueId::COMPUTE, to, &bytes)
    }

    /// Host memory for transfers of this device, zeroed, pinned where the driver has such. It lies near the device:
    /// its pages are touched first by a thread at [`home`](Self::home).
    fn staging(&self, bytes: usize) -> Result<Arc<Staging>> {
        Ok(Arc::new(Staging::pageable(bytes, self.home())))
    }

    /// Enqueues a copy of a box, rows without gaps, to `to` from byte `at` on. The memory may be that of another device.
    fn download(&self, queue: QueueId, from: Place<'_>, to: &Arc<Staging>, at: usize) -> Result<()> {
        let to = to.part(at, from.region.bytes()).ok_or_else(|| outside(self, "download"))?;
        // SAFETY: the part lies in the staging memory, and the plan lets nobody else use it until this is finished.
        self.read(queue, from, unsafe { &mut *to })
    }

    /// Enqueues the replacement of a box by what lies in `from` from byte `at` on, rows without gaps.
    fn upload(&self, queue: QueueId, from: &Arc<Staging>, at: usize, to: Place<'_>) -> Result<()> {
        let from = from.part(at, to.region.bytes()).ok_or_else(|| outside(self, "upload"))?;
        // SAFETY: the part lies in the staging memory, and the plan lets nobody write to it until this is finished.
        self.write(queue, to, unsafe { &*from })
    }

    /// Begins to record what this thread enqueues from now on, on `queue` and on queues, of this device and of others, that
    /// come to wait for its events; nothing of it is done. Until [`recorded`](Self::recorded) nobody may wait on the host for
    /// any of these queues. Whether the device can: `false` changes nothing.
    fn record(&self, queue: QueueId) -> Result<bool> {
        let _ = queue;
        Ok(false)
    }

    /// Ends a recording that began on `queue`, which by now waits for all the others.
    fn recorded(&self, queue: QueueId) -> Result<RecordingId> {
        Err(Error::Driver {
            backend: self.info().backend,
            device: self.summary(),
            call: "recorded".into(),
            message: format!("nothing is being recorded on queue {}", queue.0),
        })
    }

    /// Enqueues all that was recorded.
    fn replay(&self, queue: QueueId, recording: RecordingId) -> Result<()> {
        Err(Error::Driver {
            backend: self.info().backend,
            device: self.summary(),
            call: "replay".into(),
            message: format!("there is no recording {} for queue {}", recording.0, queue.0),
        })
    }

    /// Gives a recording back once it is done.
    fn forget(&self, recording: RecordingId) {
        let _ = recording;
    }

    /// When the last operation before the event ran, if the device was opened to trace and the event has happened.
    fn span(&self, event: EventId) -> Result<Option<Span>> {
        let _ = event;
        Ok(None)
    }

    /// How the loaded kernels are laid out on the device and where their code comes from, for reports: each kernel's name
    /// and a few words. Nothing where there is nothing to choose.
    fn shapes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// A box and the part of staging memory that it is to travel through don't fit.
pub(crate) fn outside<D: Device + ?Sized>(device: &D, call: &str) -> Error {
    Error::Driver {
        backend: device.info().backend,
        device: device.summary(),
        call: call.into(),
        message: "the box leaves the staging memory".into(),
    }
}

/// Memory that a device has to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeMemory {
    /// The bytes.
    pub bytes: u64,
    /// What sets the limit, such as `MemAvailable`.
    pub limit: String,
}

/// The entry of a back end's listing, or an error that shows the listing.
pub(crate) fn listed(backend: &dyn Backend, ordinal: u32) -> Result<DeviceInfo> {
    let listing = backend.devices();
    let count = listing.devices.len();
    listing.devices.into_iter().find(|info| info.ordinal == ordinal).ok_or_else(|| Error::NoSuchDevice {
        spec: format!("{} {ordinal}", backend.name()),
        reason: format!("the back end `{}` has {count} devices", backend.name()),
        inventory: crate::devices::inventory().to_string(),
    })
}

/// The message of a caught panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}
