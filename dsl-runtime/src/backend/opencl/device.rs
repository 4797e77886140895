//! An open OpenCL device.
//!
//! All devices of a platform share one context, so that buffers can be copied between them without the host.

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use opencl3::error_codes::{CL_MEM_COPY_OVERLAP, CL_MEM_OBJECT_ALLOCATION_FAILURE};

use super::arguments::{Numbers, Origins, set_arguments};
use super::call::{Called, Context, DeviceId, Event, Failure, Memory, PlatformId, Rect};
use super::discover::{Facts, Found};
use super::lane::Lane;
use super::locked;
use super::mapping::{self, Entry};
use super::program::{self, Loaded};
use crate::backend::{
    BufferId, Device, DeviceInfo, DeviceKind, EventId, FreeMemory, KernelId, Launch, OpenClForm, Place, QueueId, host,
};
use crate::error::{Error, Result};
use crate::kernel::KernelDesc;
use crate::layout::{Layout, Region};

/// The queue for the device's own work.
const HOUSEKEEPING: QueueId = QueueId(u32::MAX);

/// Writes up to this size are copied and return at once; longer ones wait, rather than hold their data twice.
const STAGED_BYTES: usize = 64 << 20;

/// What the devices of a platform have in common.
#[derive(Debug)]
struct Platform {
    context: Context,
    /// Bytes that this program has allocated on each device.
    used: Vec<(DeviceId, AtomicU64)>,
}

/// The platforms in use, each with one context for as long as a device of it is open.
static PLATFORMS: Mutex<Vec<(PlatformId, Weak<Platform>)>> = Mutex::new(Vec::new());

impl Platform {
    /// The context of a platform, shared with every open device of it.
    fn shared(id: PlatformId, all: &[Found]) -> Called<Arc<Self>> {
        let mut platforms = locked(&PLATFORMS);
        platforms.retain(|(_, platform)| platform.strong_count() > 0);
        let known = platforms.iter().find(|(known, _)| *known == id);
        if let Some(platform) = known.and_then(|(_, platform)| platform.upgrade()) {
            return Ok(platform);
        }
        let devices: Vec<_> = all.iter().filter(|found| found.platform == id).map(|found| found.device).collect();
        let context = Context::new(&devices)?;
        let used = devices.into_iter().map(|device| (device, AtomicU64::new(0))).collect();
        let platform = Arc::new(Self { context, used });
        platforms.push((id, Arc::downgrade(&platform)));
        Ok(platform)
    }

    fn used(&self, device: DeviceId) -> &AtomicU64 {
        let entry = self.used.iter().find(|(known, _)| *known == device);
        &entry.expect("a device of the platform's listing").1
    }
}

/// An open device.
pub(super) struct OpenClDevice {
    facts: Facts,
    device: DeviceId,
    form: OpenClForm,
    /// The entry point, where a test chooses it.
    entry: Option<Entry>,
    // Queues are dropped, and so finished, before the buffers and kernels that their work uses.
    queues: Mutex<BTreeMap<QueueId, Arc<Lane>>>,
    events: Mutex<Events>,
    kernels: Mutex<Vec<Entrance>>,
    buffers: Mutex<Buffers>,
    platform: Arc<Platform>,
}

/// A loaded kernel.
#[derive(Clone)]
struct Entrance {
    kernel: &'static KernelDesc,
    // OpenCL keeps arguments in the kernel object, so one thread at a time sets them and enqueues.
    loaded: Arc<Mutex<Loaded>>,
}

#[derive(Default)]
struct Buffers {
    last: u64,
    alive: BTreeMap<BufferId, Arc<Buffer>>,
}

/// A buffer, shared with the calls that are using it.
struct Buffer {
    memory: Memory,
    layout: Layout,
    bytes: usize,
    device: DeviceId,
    platform: Arc<Platform>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // OpenCL keeps the memory until enqueued work is done with it.
        self.platform.used(self.device).fetch_sub(self.bytes as u64, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Events {
    last: u64,
    /// Those that may not have happened yet.
    pending: BTreeMap<u64, Arc<Event>>,
}

impl OpenClDevice {
    /// Opens a device of a discovery; `entry` overrides the choice of the entry point.
    pub(super) fn open(found: &Found, all: &[Found], form: OpenClForm, entry: Option<Entry>) -> Result<Self> {
        let facts = found.facts.clone();
        let platform = Platform::shared(found.platform, all).map_err(|failure| driver(&facts, failure))?;
        Ok(Self {
            entry,
            facts,
            device: found.device,
            form,
            queues: Mutex::default(),
            events: Mutex::default(),
            kernels: Mutex::default(),
            buffers: Mutex::default(),
            platform,
        })
    }

    /// Whether buffers can be copied between the two without the host.
    #[cfg(test)]
    pub(super) fn shares_context(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.platform, &other.platform)
    }

    fn driver(&self, failure: Failure) -> Error {
        driver(&self.facts, failure)
    }

    fn misuse(&self, call: &str, message: impl Into<String>) -> Error {
        Error::Driver {
            backend: "opencl",
            device: self.facts.info.to_string(),
            call: call.into(),
            message: message.into(),
        }
    }

    /// The queue of that number, made when first used.
    fn lane(&self, id: QueueId) -> Result<Arc<Lane>> {
        let mut queues = locked(&self.queues);
        if let Some(lane) = queues.get(&id) {
            return Ok(lane.clone());
        }
        let queue = self.platform.context.queue(self.device).map_err(|failure| self.driver(failure))?;
        let lane = Arc::new(Lane::new(queue));
        queues.insert(id, lane.clone());
        Ok(lane)
    }

    fn buffer(&self, call: &str, id: BufferId) -> Result<Arc<Buffer>> {
        let buffer = locked(&self.buffers).alive.get(&id).cloned();
        buffer.ok_or_else(|| self.misuse(call, format!("there is no buffer {}", id.0)))
    }

    /// A buffer and a box in it, checked.
    fn place(&self, call: &str, place: Place<'_>) -> Result<(Arc<Buffer>, Rect, [usize; 3])> {
        let buffer = self.buffer(call, place.buffer)?;
        let (rect, shape) = rect(place.region, buffer.bytes).ok_or_else(|| {
            let region = place.region;
            self.misuse(call, format!("the box {region:?} doesn't fit a buffer of {} bytes", buffer.bytes))
        })?;
        Ok((buffer, rect, shape))
    }

    /// The bytes that can still be allocated, and what sets the limit.
    fn free(&self) -> FreeMemory {
        let used = self.platform.used(self.device).load(Ordering::Relaxed);
        let own = FreeMemory {
            bytes: self.facts.info.memory_bytes.saturating_sub(used),
            limit: "CL_DEVICE_GLOBAL_MEM_SIZE less what this program uses".into(),
        };
        // A CPU's memory is the host's, and others use it too.
        let host = if self.facts.info.kind == DeviceKind::Cpu { host::free_memory() } else { None };
        host.filter(|host| host.bytes < own.bytes).unwrap_or(own)
    }

    /// An error unless a buffer of `bytes` can be had.
    fn check_room(&self, what: impl FnOnce() -> String, bytes: usize) -> Result<()> {
        let most = self.facts.max_alloc_bytes;
        if bytes as u64 > most {
            return Err(self.out_of_memory(
                what(),
                bytes,
                most,
                "CL_DEVICE_MAX_MEM_ALLOC_SIZE, for a single buffer".into(),
            ));
        }
        let FreeMemory { bytes: free, limit } = self.free();
        if bytes as u64 > free { Err(self.out_of_memory(what(), bytes, free, limit)) } else { Ok(()) }
    }

    fn out_of_memory(&self, what: String, bytes: usize, free: u64, limit: String) -> Error {
        Error::OutOfMemory { device: self.facts.info.to_string(), what, needed: bytes as u64, free, limit }
    }

    /// Enqueues a copy through a buffer of its own.
    fn copy_by_detour(
        &self,
        lane: &Lane,
        (source, here): (&Buffer, Rect),
        (target, there): (&Buffer, Rect),
        shape: [usize; 3],
    ) -> Called<Event> {
        let between = self.platform.context.memory(shape.iter().product())?;
        // The queue runs in order, and OpenCL keeps the memory until both copies are done.
        lane.queue.copy((&source.memory, here), (&between, Rect::packed(shape)), shape)?;
        lane.queue.copy((&between, Rect::packed(shape)), (&target.memory, there), shape)
    }

    /// The buffers of a launch, results first, if the kernel can't leave them.
    fn launch_buffers(&self, kernel: &KernelDesc, launch: &Launch<'_>) -> Result<Vec<Arc<Buffer>>> {
        let all = launch.outputs.iter().chain(launch.fields);
        let buffers: Vec<_> = all.map(|cells| self.buffer("launch", cells.buffer)).collect::<Result<_>>()?;
        let all = launch.outputs.iter().chain(launch.fields).zip(&buffers);
        let layouts: BTreeMap<_, _> = all.map(|(cells, buffer)| (cells.buffer, buffer.layout)).collect();
        let checked = launch.check(kernel, |buffer| layouts.get(&buffer).copied());
        checked.map(|()| buffers).map_err(|message| self.misuse("launch", message))
    }
}

/// The box in the form that OpenCL wants, with its shape (bytes, rows, planes); `None` if it doesn't fit the buffer.
fn rect(region: &Region, buffer_bytes: usize) -> Option<(Rect, [usize; 3])> {
    let Region { offset, row_bytes, rows, planes, .. } = *region;
    if row_bytes == 0 || rows == 0 || planes == 0 {
        return Some((Rect { offset: 0, row_pitch: 0, plane_pitch: 0 }, [0; 3]));
    }
    // OpenCL wants sensible pitches even along axes with a single row or plane, where they mean nothing.
    let row_pitch = if rows > 1 { region.row_pitch } else { row_bytes };
    let plane_pitch = if planes > 1 { region.plane_pitch } else { row_pitch.checked_mul(rows)? };
    let row_pitch = if rows == 1 && planes > 1 { plane_pitch } else { row_pitch };
    let last_row = (planes - 1).checked_mul(plane_pitch)?.checked_add((rows - 1).checked_mul(row_pitch)?)?;
    let end = offset.checked_add(last_row)?.checked_add(row_bytes)?;
    let is_apart =
        row_pitch >= row_bytes && plane_pitch >= row_pitch.checked_mul(rows)? && plane_pitch.is_multiple_of(row_pitch);
    (is_apart && end <= buffer_bytes).then_some((Rect { offset, row_pitch, plane_pitch }, [row_bytes, rows, planes]))
}

fn driver(facts: &Facts, failure: Failure) -> Error {
    let (device, call) = (facts.info.to_string(), failure.call.to_owned());
    Error::Driver { backend: "opencl", device, call, message: failure.to_string() }
}

impl Device for OpenClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.facts.info
    }

    fn summary(&self) -> String {
        let form = match self.form {
            OpenClForm::Auto if self.facts.takes_spirv => program::Form::SpirV,
            OpenClForm::Auto | OpenClForm::Source => program::Form::Source,
            OpenClForm::SpirV => program::Form::SpirV,
        };
        let DeviceInfo { name, units, .. } = &self.facts.info;
        let entry = self.entry.unwrap_or_else(|| mapping::entry(&self.facts.limits()));
        let (platform, form, entry) = (&self.facts.info.platform, form.name(), entry.describe());
        format!("opencl ({name} on {platform}, {units} compute units, {form}, {entry})")
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        Ok(Some(self.free()))
    }

    fn alloc(&self, layout: &Layout) -> Result<BufferId> {
        let bytes = layout.bytes.max(1);
        let what = || format!("a field over {}", layout.cells);
        self.check_room(what, bytes)?;
        let refused = |failure: Failure| match failure.code {
            CL_MEM_OBJECT_ALLOCATION_FAILURE => {
                let FreeMemory { bytes: free, limit } = self.free();
                self.out_of_memory(what(), bytes, free, format!("by {limit}, but {} gave {failure}", failure.call))
            }
            _ => self.driver(failure),
        };
        let memory = self.platform.context.memory(bytes).map_err(refused)?;
        self.platform.used(self.device).fetch_add(bytes as u64, Ordering::Relaxed);
        let buffer = Buffer { memory, layout: *layout, bytes, device: self.device, platform: self.platform.clone() };
        // Any queue may use the buffer next, so the zeroes must be there before it is handed out.
        let lane = self.lane(HOUSEKEEPING)?;
        let zeroed = lane.queue.zero(&buffer.memory, bytes).map_err(refused)?;
        lane.queue.finish().and_then(|()| zeroed.finished("clEnqueueFillBuffer")).map_err(refused)?;
        let mut buffers = locked(&self.buffers);
        buffers.last += 1;
        let id = BufferId(buffers.last);
        buffers.alive.insert(id, Arc::new(buffer));
        Ok(id)
    }

    fn free(&self, buffer: BufferId) {
        locked(&self.buffers).alive.remove(&buffer);
    }

    fn write(&self, queue: QueueId, to: Place<'_>, data: &[u8]) -> Result<()> {
        let (buffer, rect, shape) = self.place("write", to)?;
        if shape.iter().product::<usize>() != data.len() {
            return Err(self.misuse("write", format!("the box {:?} doesn't hold {} bytes", to.region, data.len())));
        }
        if data.is_empty() {
            return Ok(());
        }
        let lane = self.lane(queue)?;
        let staged = (data.len() <= STAGED_BYTES).then(|| Box::<[u8]>::from(data));
        let (source, wait) = (staged.as_deref().unwrap_or(data), staged.is_none());
        // SAFETY: the shape was compared with the data; without waiting, the data is the staged copy, which `track`
        // keeps until the event.
        let event = unsafe { lane.queue.write(&buffer.memory, rect, shape, source, wait) };
        let event = event.map_err(|failure| self.driver(failure))?;
        lane.track("clEnqueueWriteBufferRect", event, staged).map_err(|failure| self.driver(failure))
    }

    fn read(&self, queue: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()> {
        let (buffer, rect, shape) = self.place("read", from)?;
        if shape.iter().product::<usize>() != data.len() {
            return Err(self.misuse("read", format!("the box {:?} doesn't hold {} bytes", from.region, data.len())));
        }
        let lane = self.lane(queue)?;
        // Some CPU runtimes let a thread in clFinish help with the work, and one in a blocking read only watch.
        lane.finish().map_err(|failure| self.driver(failure))?;
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: the shape was compared with the data.
        let event = unsafe { lane.queue.read(&buffer.memory, rect, shape, data) };
        let event = event.map_err(|failure| self.driver(failure))?;
        event.finished("clEnqueueReadBufferRect").map(|_| ()).map_err(|failure| self.driver(failure))
    }

    fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        let (source, here, shape) = self.place("copy", from)?;
        let (target, there, there_shape) = self.place("copy", to)?;
        if shape != there_shape {
            return Err(self.misuse("copy", format!("{:?} and {:?} have different shapes", from.region, to.region)));
        }
        if shape.contains(&0) {
            return Ok(());
        }
        let lane = self.lane(queue)?;
        let event = match lane.queue.copy((&source.memory, here), (&target.memory, there), shape) {
            // The test for overlap that the standard suggests mistakes some boxes of one buffer that interlock for
            // boxes that overlap.
            Err(Failure { code: CL_MEM_COPY_OVERLAP, .. }) => {
                self.copy_by_detour(&lane, (&source, here), (&target, there), shape)
            }
            other => other,
        };
        let event = event.map_err(|failure| self.driver(failure))?;
        lane.track("clEnqueueCopyBufferRect", event, None).map_err(|failure| self.driver(failure))
    }

    fn load(&self, kernel: &'static KernelDesc) -> Result<KernelId> {
        let mut kernels = locked(&self.kernels);
        if let Some(number) = kernels.iter().position(|entrance| ptr::eq(entrance.kernel, kernel)) {
            return Ok(KernelId(number as u32));
        }
        let context = &self.platform.context;
        let how = (self.form, self.entry);
        let loaded = program::load(context, self.device, &self.facts, how, kernel, |failure| self.driver(failure))?;
        kernels.push(Entrance { kernel, loaded: Arc::new(Mutex::new(loaded)) });
        Ok(KernelId((kernels.len() - 1) as u32))
    }

    fn launch(&self, queue: QueueId, launch: &Launch<'_>) -> Result<()> {
        let entrance = locked(&self.kernels).get(launch.kernel.0 as usize).cloned();
        let Some(Entrance { kernel, loaded }) = entrance else {
            return Err(self.misuse("launch", format!("there is no kernel {}", launch.kernel.0)));
        };
        if launch.range.is_empty() {
            return Ok(());
        }
        let buffers = self.launch_buffers(kernel, launch)?;
        let lane = self.lane(queue)?;
        let memories: Vec<_> = buffers.iter().map(|buffer| &buffer.memory).collect();
        let loaded = locked(&loaded);
        let (limits, points) = (self.facts.limits(), launch.range.size());
        let numbers = Numbers::new(launch).ok_or_else(|| {
            self.misuse(
                "launch",
                format!("`{}` over {}: a coordinate has more than 31 bits", kernel.name, launch.range),
            )
        })?;
        let origins = Origins::new(kernel, launch).map_err(|reason| Error::Unsupported {
            device: self.facts.info.to_string(),
            kernel: kernel.name.to_owned(),
            reason,
        })?;
        set_arguments(&loaded.kernel, kernel, launch, &memories, &origins, &numbers)
            .map_err(|failure| self.driver(failure))?;
        let grid = mapping::grid(&limits, loaded.entry, loaded.group, points);
        // SAFETY: every argument is set, and `launch_buffers` compared what the kernel reads and writes with what the
        // buffers hold.
        let event = unsafe { lane.queue.launch(&loaded.kernel, grid.global(), grid.local()) };
        let event = event.map_err(|failure| self.driver(failure))?;
        lane.track("clEnqueueNDRangeKernel", event, None).map_err(|failure| self.driver(failure))
    }

    fn signal(&self, queue: QueueId) -> Result<EventId> {
        let lane = self.lane(queue)?;
        let marker = lane.queue.marker().map_err(|failure| self.driver(failure))?;
        // An event of a queue that isn't flushed may never happen.
        lane.queue.flush().map_err(|failure| self.driver(failure))?;
        let mut events = locked(&self.events);
        events.pending.retain(|_, event| !matches!(event.finished("clEnqueueMarkerWithWaitList"), Ok(true)));
        events.last += 1;
        let number = events.last;
        events.pending.insert(number, Arc::new(marker));
        Ok(EventId(number))
    }

    fn wait(&self, queue: QueueId, event: EventId) -> Result<()> {
        let events = locked(&self.events);
        if event.0 == 0 || event.0 > events.last {
            return Err(self.misuse("wait", format!("there is no event {}", event.0)));
        }
        let Some(pending) = events.pending.get(&event.0).cloned() else {
            return Ok(());
        };
        drop(events);
        let lane = self.lane(queue)?;
        let barrier = lane.queue.wait_for(&pending).map_err(|failure| self.driver(failure))?;
        lane.track("clEnqueueBarrierWithWaitList", barrier, None).map_err(|failure| self.driver(failure))
    }

    fn finish(&self, queue: QueueId) -> Result<()> {
        let lane = locked(&self.queues).get(&queue).cloned();
        lane.map_or(Ok(()), |lane| lane.finish().map_err(|failure| self.driver(failure)))
    }

    fn synchronize(&self, event: EventId) -> Result<()> {
        let Some(pending) = locked(&self.events).pending.get(&event.0).cloned() else { return Ok(()) };
        pending.wait().map_err(|failure| self.driver(failure))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
