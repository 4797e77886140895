//! Devices behind one trait: the only modules that touch hardware, drivers or raw memory.
//!
//! A new back end is a folder here, an `impl Backend` and an entry in [`BACKENDS`].

pub mod cuda;
pub mod hip;
pub mod host;
mod library;
pub mod opencl;
pub mod reference;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;

use crate::error::{Error, Result};
use crate::geometry::Box3;
use crate::kernel::{KernelDesc, ScalarType};
use crate::layout::{Layout, Region, Strides};

/// Every back end, in the order in which they are listed.
pub static BACKENDS: &[&dyn Backend] = &[&reference::Reference, &host::Host, &opencl::OpenCl, &cuda::Cuda, &hip::Hip];

/// A way to reach devices.
pub trait Backend: Sync {
    /// The word for it in a device description, such as `host`.
    fn name(&self) -> &'static str;

    /// What is there, and why the rest is not. Never fails and never panics: a missing or broken vendor library is a
    /// reason.
    fn devices(&self) -> Listing;

    /// Opens the device with that `ordinal` of the listing.
    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<Box<dyn Device>>;
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
    /// Threads of a host device; all CPUs of the process's mask when absent.
    pub threads: Option<usize>,
    /// The instruction set of native kernels; the best one of the CPU when absent.
    pub instruction_set: Option<host::InstructionSet>,
    /// The form in which OpenCL gets its kernels.
    pub opencl_form: OpenClForm,
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

/// A buffer and the place of local cell (0, 0, 0) in it, counted in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The buffer.
    pub buffer: BufferId,
    /// The index of local cell (0, 0, 0).
    pub origin: usize,
}

/// One kernel over one box.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: KernelId,
    /// Where the results go, in the order of [`KernelDesc::outputs`]; no buffer of them is among `fields`, and none
    /// occurs twice.
    pub outputs: &'a [Cells],
    /// The fields, in the order of [`KernelDesc::fields`]; a buffer may occur more than once.
    pub fields: &'a [Cells],
    /// The scalars, in the order of [`KernelDesc::params`]: the bits of the value in the low bytes; a `bool` is true
    /// unless all are 0.
    pub scalars: &'a [u64],
    /// The strides common to all these fields.
    pub strides: Strides,
    /// The global index of local cell (0, 0, 0) along X, Y and Z.
    pub global: [i32; 3],
    /// The points to update, in local coordinates. May be empty. The box and the footprint of the kernel around it
    /// lie inside every buffer.
    pub range: Box3,
}

impl Launch<'_> {
    /// Says what doesn't fit, given the layouts of the device's buffers: the number and types of the arguments, the
    /// strides, the footprint around the range, and results that are used twice. A device calls it before it runs
    /// anything.
    pub fn check(&self, kernel: &KernelDesc, layout: impl Fn(BufferId) -> Option<Layout>) -> Result<(), String> {
        let counts = [
            ("results", self.outputs.len(), kernel.outputs.len()),
            ("fields", self.fields.len(), kernel.fields.len()),
            ("scalars", self.scalars.len(), kernel.params.len()),
        ];
        if let Some((what, found, expected)) = counts.into_iter().find(|(_, found, expected)| found != expected) {
            return Err(format!("`{}` takes {expected} {what}, and {found} were given", kernel.name));
        }
        let fits = |cells: &Cells, ty: ScalarType, needed: &Box3| {
            let layout = layout(cells.buffer).ok_or_else(|| format!("there is no buffer {}", cells.buffer.0))?;
            let same = layout.ty == ty && layout.strides == self.strides && layout.origin == cells.origin;
            if !same || !layout.cells.contains(needed) {
                return Err(format!(
                    "buffer {} doesn't hold the {ty} cells {needed} with these strides",
                    cells.buffer.0
                ));
            }
            Ok(())
        };
        for (cells, &ty) in self.outputs.iter().zip(kernel.outputs) {
            fits(cells, ty, &self.range)?;
        }
        for (cells, field) in self.fields.iter().zip(kernel.fields) {
            fits(cells, field.ty, &field.footprint(&self.range))?;
        }
        for (number, cells) in self.outputs.iter().enumerate() {
            let mut others = self.outputs[..number].iter().chain(self.fields);
            if others.any(|other| other.buffer == cells.buffer) {
                return Err(format!("buffer {} is written and used a second time", cells.buffer.0));
            }
        }
        Ok(())
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

    /// Memory that is free now and what limits it; `None` when the device can't tell.
    fn free_memory(&self) -> Result<Option<FreeMemory>>;

    /// Memory for the cells of `layout`, all bytes zero. The layout tells which thread or unit will work on which
    /// plane.
    fn alloc(&self, layout: &Layout) -> Result<BufferId>;

    /// Gives memory back once the work that uses it is finished.
    fn free(&self, buffer: BufferId);

    /// Enqueues the replacement of a box by `data`, whose rows follow one another without gaps; `data` may be changed
    /// when the call returns.
    fn write(&self, queue: QueueId, to: Place<'_>, data: &[u8]) -> Result<()>;

    /// Waits for the queue, then fills `data` with a box, rows without gaps.
    fn read(&self, queue: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()>;

    /// Enqueues a copy between two boxes of the same shape that don't overlap.
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
