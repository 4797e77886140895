//! An open OpenCL device.

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use opencl3::error_codes::CL_MEM_OBJECT_ALLOCATION_FAILURE;

use super::arguments::{Numbers, Origins, set_arguments};
use super::call::{Called, DeviceId, Failure, Memory, Rect};
use super::discover::{Facts, Found};
use super::lane::{Kept, Lane, Moment};
use super::locked;
use super::mapping::{self, Entry};
use super::moments::{Alignment, Moments, Reading};
use super::pinned::pinned;
use super::program::{self, Loaded};
use super::shared::{Platform, Seat, Wish, used};
use crate::backend::{
    Affinity, BufferId, Device, DeviceInfo, DeviceKind, EventId, FreeMemory, KernelId, Launch, OpenClForm, Pinned,
    Place, QueueId, Staging, allowed_cpus, host, outside,
};
use crate::clock::Span;
use crate::error::{Error, Result};
use crate::kernel::KernelDesc;
use crate::layout::{Layout, Region};
use crate::placement::{Home, Near, Sys};

/// The queue for the device's own work.
const HOUSEKEEPING: QueueId = QueueId(u32::MAX);

/// Writes up to this size are copied and return at once; longer ones wait, rather than hold their data twice.
const STAGED_BYTES: usize = 64 << 20;

/// How devices are opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// The form of their kernels.
    pub(super) form: OpenClForm,
    /// The entry point, where a test chooses it.
    pub(super) entry: Option<Entry>,
    /// Whether the times of commands are kept.
    pub(super) trace: bool,
    /// Where threads that work for them stay.
    pub(super) affinity: Affinity,
}

/// An open device.
pub(super) struct OpenClDevice {
    /// Those of its part, where the device is split.
    pub(super) facts: Facts,
    seat: Seat,
    home: Home,
    /// The whole or the part.
    device: DeviceId,
    how: How,
    // Queues are dropped, and so finished, before the buffers and kernels that their work uses.
    queues: Mutex<BTreeMap<QueueId, Arc<Lane>>>,
    moments: Mutex<Moments>,
    /// From the device's clock to the program's, where the device traces.
    alignment: Mutex<Option<Alignment>>,
    kernels: Mutex<Vec<Entrance>>,
    buffers: Mutex<Buffers>,
    /// Bytes that this program has allocated on the whole device.
    used: Arc<AtomicU64>,
    pub(super) platform: Arc<Platform>,
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
pub(super) struct Buffer {
    pub(super) memory: Memory,
    layout: Layout,
    bytes: usize,
    used: Arc<AtomicU64>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // OpenCL keeps the memory until enqueued work is done with it.
        self.used.fetch_sub(self.bytes as u64, Ordering::Relaxed);
    }
}

impl OpenClDevice {
    /// Opens devices of a discovery to be used together. One that occurs several times is split, or shared where it can't
    /// be.
    pub(super) fn open(found: &[&Found], all: &[Found], how: How) -> Result<Vec<Self>> {
        let count = |device| found.iter().filter(|other| other.device == device).count();
        let wish =
            |found: &Found| Wish { device: found.device, units: found.facts.info.units, count: count(found.device) };
        let mut devices = Vec::new();
        for (place, &found_here) in found.iter().enumerate() {
            let mut wishes: Vec<Wish> = Vec::new();
            for other in found.iter().filter(|other| other.platform == found_here.platform) {
                let wish = wish(other);
                if wish.count > 1 && !wishes.contains(&wish) {
                    wishes.push(wish);
                }
            }
            let platform = Platform::shared(found_here.platform, all, &wishes);
            let platform = platform.map_err(|failure| driver(&found_here.facts, failure))?;
            let number = found[..=place].iter().filter(|other| other.device == found_here.device).count();
            let seat = platform.seat(&wish(found_here), number);
            devices.push(Self::sit(found_here, seat, platform, how)?);
        }
        Ok(devices)
    }

    fn sit(found: &Found, seat: Seat, platform: Arc<Platform>, how: How) -> Result<Self> {
        let mut facts = found.facts.clone();
        let info = &mut facts.info;
        let device = match &seat {
            Seat::Whole => found.device,
            Seat::Part { number, count, device, units } => {
                info.name += &format!(", part {number} of {count}");
                info.units = *units;
                *device
            }
            Seat::Beside { number, count, reason } => {
                info.name += &format!(", share {number} of {count}");
                info.notes.push(format!("{count} devices share all of it, as it can't be split: {reason}"));
                found.device
            }
        };
        let home = home(&facts.info, how.affinity);
        let opened = Self {
            facts,
            seat,
            home,
            device,
            how,
            queues: Mutex::default(),
            moments: Mutex::new(Moments::new(how.trace)),
            alignment: Mutex::default(),
            kernels: Mutex::default(),
            buffers: Mutex::default(),
            used: used(found.device),
            platform,
        };
        if how.trace {
            opened.align().map_err(|failure| opened.driver(failure))?;
        }
        Ok(opened)
    }

    /// Compares the device's clock with the program's, unless that was done not long ago.
    fn align(&self) -> Called<Alignment> {
        let mut alignment = locked(&self.alignment);
        if let Some(alignment) = *alignment
            && !alignment.is_old()
        {
            return Ok(alignment);
        }
        let queue = self.platform.context.queue(self.device, true)?;
        let memory = self.platform.context.memory(8)?;
        // Not a marker: not all runtimes give one a time of its own.
        let reading = Reading::take(|| {
            let event = queue.zero(&memory, 8)?;
            queue.finish()?;
            event.times().map(|[start, end]| start.midpoint(end))
        })?;
        let aligned = alignment.get_or_insert(Alignment::new(reading));
        aligned.update(reading);
        Ok(*aligned)
    }

    /// What another device of this process is to this one, if it is one of OpenCL too.
    pub(super) fn peer(other: &dyn Device) -> Option<&Self> {
        other.as_any().downcast_ref()
    }

    /// Whether buffers can be copied between the two without the host.
    pub(super) fn shares_context(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.platform, &other.platform)
    }

    pub(super) fn driver(&self, failure: Failure) -> Error {
        driver(&self.facts, failure)
    }

    pub(super) fn misuse(&self, call: &str, message: impl Into<String>) -> Error {
        Error::Driver {
            backend: "opencl",
            device: self.facts.info.to_string(),
            call: call.into(),
            message: message.into(),
        }
    }

    /// The queue of that number, made when first used.
    pub(super) fn lane(&self, id: QueueId) -> Result<Arc<Lane>> {
        let mut queues = locked(&self.queues);
        if let Some(lane) = queues.get(&id) {
            return Ok(lane.clone());
        }
        let queue = self.platform.context.queue(self.device, self.how.trace);
        let queue = queue.map_err(|failure| self.driver(failure))?;
        let lane = Arc::new(Lane::new(queue));
        queues.insert(id, lane.clone());
        Ok(lane)
    }

    fn buffer(&self, call: &str, id: BufferId) -> Result<Arc<Buffer>> {
        let buffer = locked(&self.buffers).alive.get(&id).cloned();
        buffer.ok_or_else(|| self.misuse(call, format!("there is no buffer {}", id.0)))
    }

    /// An event of this device, unless it has happened.
    pub(super) fn pending(&self, call: &str, event: EventId) -> Result<Option<Arc<Moment>>> {
        let moments = locked(&self.moments);
        if moments.knows(event) {
            Ok(moments.pending(event))
        } else {
            Err(self.misuse(call, format!("there is no event {}", event.0)))
        }
    }

    /// A buffer and a box in it, checked.
    pub(super) fn place(&self, call: &str, place: Place<'_>) -> Result<(Arc<Buffer>, Rect, [usize; 3])> {
        let buffer = self.buffer(call, place.buffer)?;
        let (rect, shape) = rect(place.region, buffer.bytes).ok_or_else(|| {
            let region = place.region;
            self.misuse(call, format!("the box {region:?} doesn't fit a buffer of {} bytes", buffer.bytes))
        })?;
        Ok((buffer, rect, shape))
    }

    /// The bytes that can still be allocated, and what sets the limit.
    fn free(&self) -> FreeMemory {
        let used = self.used.load(Ordering::Relaxed);
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
    let Region { offset, row_bytes, rows, planes, row_pitch, plane_pitch } = region.within(buffer_bytes)?;
    Some((Rect { offset, row_pitch, plane_pitch }, [row_bytes, rows, planes]))
}

fn driver(facts: &Facts, failure: Failure) -> Error {
    let (device, call) = (facts.info.to_string(), failure.call.to_owned());
    Error::Driver { backend: "opencl", device, call, message: failure.to_string() }
}

/// Where threads that work for a device stay. The driver of a processor places its own threads, and those that issue for it
/// may help them: they run anywhere.
fn home(info: &DeviceInfo, affinity: Affinity) -> Home {
    match info.kind {
        DeviceKind::Cpu => Home::ANYWHERE,
        DeviceKind::Gpu => {
            let (sys, allowed) = (Sys::default(), allowed_cpus());
            Home::new(&Near::of(info, &sys, &allowed), affinity, &sys, &allowed)
        }
    }
}

impl Device for OpenClDevice {
    fn info(&self) -> &DeviceInfo {
        &self.facts.info
    }

    fn home(&self) -> &Home {
        &self.home
    }

    fn summary(&self) -> String {
        let form = match self.how.form {
            OpenClForm::Auto if self.facts.takes_spirv => program::Form::SpirV,
            OpenClForm::Auto | OpenClForm::Source => program::Form::Source,
            OpenClForm::SpirV => program::Form::SpirV,
        };
        let DeviceInfo { name, units, .. } = &self.facts.info;
        let entry = self.how.entry.unwrap_or_else(|| mapping::entry(&self.facts.limits()));
        let (platform, form, entry) = (&self.facts.info.platform, form.name(), entry.describe());
        let units = match &self.seat {
            Seat::Whole | Seat::Part { .. } => format!("{units} compute units"),
            Seat::Beside { reason, .. } => format!("all {units} compute units as it can't be split: {reason}"),
        };
        format!("opencl ({name} on {platform}, {units}, {form}, {entry})")
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
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
        let buffer = Buffer { memory, layout: *layout, bytes, used: self.used.clone() };
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
        let (source, wait) = (staged.as_deref().unwrap_or(data).as_ptr(), staged.is_none());
        // SAFETY: the shape was compared with the data; without waiting, the data is the staged copy, which `track`
        // keeps until the event.
        let event = unsafe { lane.queue.write(&buffer.memory, rect, shape, source, wait) };
        let event = event.map_err(|failure| self.driver(failure))?;
        let kept = staged.map_or(Kept::Nothing, Kept::Copy);
        lane.track("clEnqueueWriteBufferRect", event, kept).map_err(|failure| self.driver(failure))
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
        // SAFETY: the shape was compared with the data, and the call waits.
        let event = unsafe { lane.queue.read(&buffer.memory, rect, shape, data.as_mut_ptr(), true) };
        let event = event.map_err(|failure| self.driver(failure))?;
        lane.track("clEnqueueReadBufferRect", event, Kept::Nothing).map_err(|failure| self.driver(failure))?;
        lane.failure().map_or(Ok(()), |failure| Err(self.driver(failure)))
    }

    fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        self.copy_within(("copy", queue), from, self, to)
    }

    fn load(&self, kernel: &'static KernelDesc) -> Result<KernelId> {
        let mut kernels = locked(&self.kernels);
        if let Some(number) = kernels.iter().position(|entrance| ptr::eq(entrance.kernel, kernel)) {
            return Ok(KernelId(number as u32));
        }
        let context = &self.platform.context;
        let how = (self.how.form, self.how.entry);
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
        lane.track("clEnqueueNDRangeKernel", event, Kept::Nothing).map_err(|failure| self.driver(failure))
    }

    fn signal(&self, queue: QueueId) -> Result<EventId> {
        let moment = self.lane(queue)?.moment().map_err(|failure| self.driver(failure))?;
        Ok(locked(&self.moments).add(moment))
    }

    fn wait(&self, queue: QueueId, event: EventId) -> Result<()> {
        self.wait_for_event("wait", queue, (self, event))
    }

    fn finish(&self, queue: QueueId) -> Result<()> {
        let lane = locked(&self.queues).get(&queue).cloned();
        lane.map_or(Ok(()), |lane| lane.finish().map_err(|failure| self.driver(failure)))
    }

    fn synchronize(&self, event: EventId) -> Result<()> {
        if let Some(moment) = self.pending("synchronize", event)? {
            return moment.reach().map_err(|failure| self.driver(failure));
        }
        // It has happened and is forgotten, and with it the name of its queue.
        let lanes: Vec<_> = locked(&self.queues).values().cloned().collect();
        lanes.iter().find_map(|lane| lane.failure()).map_or(Ok(()), |failure| Err(self.driver(failure)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn awaits(&self, other: &dyn Device) -> bool {
        !self.facts.waits_on_host() && Self::peer(other).is_some_and(|other| self.shares_context(other))
    }

    fn wait_for_peer(&self, queue: QueueId, other: &dyn Device, event: EventId) -> Result<()> {
        match Self::peer(other) {
            Some(peer) if self.shares_context(peer) => self.wait_for_event("wait_for_peer", queue, (peer, event)),
            _ => other.synchronize(event),
        }
    }

    fn reaches(&self, other: &dyn Device) -> Result<(), String> {
        self.reach(other).map(|_| ())
    }

    fn copy_to_peer(&self, queue: QueueId, from: Place<'_>, other: &dyn Device, to: Place<'_>) -> Result<()> {
        let other = self.reach(other).map_err(|reason| self.misuse("copy_to_peer", reason))?;
        self.copy_within(("copy_to_peer", queue), from, other, to)
    }

    fn staging(&self, bytes: usize) -> Result<Arc<Staging>> {
        // The driver may touch the memory first, or this thread.
        let _near = Pinned::among(&self.home.cpus);
        // Nothing can't be mapped; and where the driver has no memory to its liking any other will do.
        let pinned = if bytes == 0 { None } else { pinned(&self.platform, self.device, bytes).ok() };
        Ok(Arc::new(pinned.unwrap_or_else(|| Staging::pageable(bytes, &self.home))))
    }

    fn download(&self, queue: QueueId, from: Place<'_>, to: &Arc<Staging>, at: usize) -> Result<()> {
        let (buffer, rect, shape) = self.place("download", from)?;
        let part = to.part(at, shape.iter().product()).ok_or_else(|| outside(self, "download"))?;
        if part.is_empty() {
            return Ok(());
        }
        let lane = self.lane(queue)?;
        // SAFETY: the part has the bytes of the box, `track` keeps the memory until the event, and the plan lets nobody
        // use the part before.
        let event = unsafe { lane.queue.read(&buffer.memory, rect, shape, part.cast(), false) };
        let event = event.map_err(|failure| self.driver(failure))?;
        let kept = Kept::Staging(to.clone());
        lane.track("clEnqueueReadBufferRect", event, kept).map_err(|failure| self.driver(failure))
    }

    fn upload(&self, queue: QueueId, from: &Arc<Staging>, at: usize, to: Place<'_>) -> Result<()> {
        let (buffer, rect, shape) = self.place("upload", to)?;
        let part = from.part(at, shape.iter().product()).ok_or_else(|| outside(self, "upload"))?;
        if part.is_empty() {
            return Ok(());
        }
        let lane = self.lane(queue)?;
        // SAFETY: the part has the bytes of the box, `track` keeps the memory until the event, and the plan lets nobody
        // write to the part before.
        let event = unsafe { lane.queue.write(&buffer.memory, rect, shape, part.cast::<u8>().cast_const(), false) };
        let event = event.map_err(|failure| self.driver(failure))?;
        let kept = Kept::Staging(from.clone());
        lane.track("clEnqueueWriteBufferRect", event, kept).map_err(|failure| self.driver(failure))
    }

    fn span(&self, event: EventId) -> Result<Option<Span>> {
        let Some(times) = locked(&self.moments).times(event) else { return Ok(None) };
        let span = times.and_then(|times| Ok(self.align()?.span(times)));
        span.map(Some).map_err(|failure| self.driver(failure))
    }
}
