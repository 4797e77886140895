//! An open GPU.
//!
//! `card` is what is had from a card, `lane` a stream with what is under way in it, `moments` the events, `recording` work
//! that is enqueued again and again; `load`, `launch`, `shapes` and `arguments` are about kernels, `copies` about boxes.

mod arguments;
mod card;
mod copies;
#[cfg(test)]
mod fake;
mod kept;
mod lane;
mod launch;
mod listing;
mod load;
mod moments;
mod peer;
mod recording;
mod shapes;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::driver::{Called, Failure, Kind};
use crate::backend::{
    BufferId, Device, DeviceInfo, EventId, FreeMemory, GpuOptions, KernelId, Launch, Pinned, Place, QueueId,
    RecordingId, Staging, outside,
};
use crate::clock::Span;
use crate::error::{Error, Result};
use crate::kernel::KernelDesc;
use crate::layout::Layout;
use crate::placement::Home;
use card::{Buffer, OpenCard};
use copies::Rect;
use lane::{Kept, Lane, Moment, Work};
pub(super) use listing::{listing, open};
use load::Kernel;
use moments::{Beat, Moments};
use recording::Recording;

/// The queue for the device's own work.
const HOUSEKEEPING: QueueId = QueueId(u32::MAX);

/// Writes up to this size are copied and return at once; longer ones wait, rather than hold their data twice.
const STAGED_BYTES: usize = 64 << 20;

/// An open device: a card, or a share of one.
struct GpuDevice {
    info: DeviceInfo,
    home: Home,
    gpu: GpuOptions,
    traces: bool,
    card: Arc<OpenCard>,
    queues: Mutex<BTreeMap<QueueId, Arc<Lane>>>,
    moments: Mutex<Moments>,
    /// From the card's clock to the program's, once it was needed.
    beat: Mutex<Option<Beat>>,
    recordings: Mutex<Recordings>,
    kernels: Mutex<Vec<Arc<Kernel>>>,
    buffers: Mutex<Buffers>,
}

#[derive(Default)]
struct Buffers {
    last: u64,
    alive: BTreeMap<BufferId, Arc<Buffer>>,
}

#[derive(Default)]
struct Recordings {
    last: u64,
    alive: BTreeMap<RecordingId, Arc<Recording>>,
}

impl GpuDevice {
    fn driver(&self, failure: Failure) -> Error {
        Error::Driver {
            backend: self.info.backend,
            device: self.info.to_string(),
            call: failure.call.to_owned(),
            message: failure.to_string(),
        }
    }

    fn misuse(&self, call: &str, message: impl Into<String>) -> Error {
        let (device, message) = (self.info.to_string(), message.into());
        Error::Driver { backend: self.info.backend, device, call: call.into(), message }
    }

    /// The queue of that number, made when first used.
    fn lane(&self, id: QueueId) -> Result<Arc<Lane>> {
        let mut queues = locked(&self.queues);
        if let Some(lane) = queues.get(&id) {
            return Ok(lane.clone());
        }
        let lane = Lane::new(&self.card, self.traces && id != HOUSEKEEPING);
        let lane = Arc::new(lane.map_err(|failure| self.driver(failure))?);
        queues.insert(id, lane.clone());
        Ok(lane)
    }

    /// An error, and the end of the recording, if the queue is being recorded: the driver would break it off itself.
    fn check_waits(&self, call: &str, queue: QueueId, lane: &Lane) -> Result<()> {
        let Some(recording) = lane.recording() else { return Ok(()) };
        recording.abandon();
        Err(self.misuse(call, format!("queue {} was being recorded, and nobody may wait for it", queue.0)))
    }

    fn buffer(&self, call: &str, id: BufferId) -> Result<Arc<Buffer>> {
        let buffer = locked(&self.buffers).alive.get(&id).cloned();
        buffer.ok_or_else(|| self.misuse(call, format!("there is no buffer {}", id.0)))
    }

    /// A buffer and a box in it, checked.
    fn place(&self, call: &str, place: Place<'_>) -> Result<(Arc<Buffer>, Rect)> {
        let buffer = self.buffer(call, place.buffer)?;
        let rect = Rect::new(place.region, buffer.bytes).ok_or_else(|| {
            let region = place.region;
            self.misuse(call, format!("the box {region:?} doesn't fit a buffer of {} bytes", buffer.bytes))
        })?;
        Ok((buffer, rect))
    }

    /// The same for data of so many bytes.
    fn place_of(&self, call: &str, place: Place<'_>, bytes: usize) -> Result<(Arc<Buffer>, Rect)> {
        let (buffer, rect) = self.place(call, place)?;
        if rect.bytes() == bytes {
            Ok((buffer, rect))
        } else {
            Err(self.misuse(call, format!("the box {:?} doesn't hold {bytes} bytes", place.region)))
        }
    }

    /// An event of this device, unless it has happened.
    fn pending(&self, call: &str, event: EventId) -> Result<Option<Arc<Moment>>> {
        let moments = locked(&self.moments);
        if !moments.knows(event) {
            return Err(self.misuse(call, format!("there is no event {}", event.0)));
        }
        let moment = moments.pending(event).filter(|moment| !moment.is_past());
        if let Some(moment) = &moment
            && moment.recording().is_some_and(|recording| !recording.is_being_made())
        {
            return Err(self.misuse(call, format!("event {} is part of a recording that has ended", event.0)));
        }
        Ok(moment)
    }

    /// When an operation ran, by the program's clock.
    fn time(&self, work: &Work) -> Called<Span> {
        let mut beat = locked(&self.beat);
        if let Some(beat) = beat.as_ref().filter(|beat| !beat.is_old()) {
            return beat.span(work);
        }
        let lane = self.lane(HOUSEKEEPING).map_err(|error| {
            let message = error.to_string();
            Failure { call: "span", code: 0, message, kind: Kind::Other }
        })?;
        // The old one may be nearer.
        let span = beat.as_ref().map(|beat| beat.span(work));
        let beat = beat.insert(Beat::take(&self.card, &lane)?);
        span.unwrap_or_else(|| beat.span(work))
    }

    /// The bytes that can still be allocated, if the driver tells.
    fn room(&self) -> Called<Option<FreeMemory>> {
        match self.card.driver.memory(self.card.number()) {
            Ok([bytes, _]) => Ok(Some(FreeMemory { bytes, limit: "the memory of the card that is free".into() })),
            Err(Failure { kind: Kind::Unsupported, .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn out_of_memory(&self, layout: &Layout, room: FreeMemory) -> Error {
        let FreeMemory { bytes: free, limit } = room;
        let (what, needed) = (format!("a field over {}", layout.cells), layout.bytes.max(1) as u64);
        Error::OutOfMemory { device: self.info.to_string(), what, needed, free, limit }
    }

    /// Memory full of zeroes.
    fn zeroed(&self, layout: &Layout) -> Called<Arc<Buffer>> {
        let buffer = Arc::new(Buffer::new(&self.card, layout)?);
        let lane = self.lane(HOUSEKEEPING).map_err(|error| {
            let message = error.to_string();
            Failure { call: "alloc", code: 0, message, kind: Kind::Other }
        })?;
        let Buffer { address, bytes, .. } = *buffer;
        let zero = |stream| self.card.driver.zero(self.card.number(), stream, address, bytes);
        lane.enqueue([&buffer], Kept::Nothing, zero)?;
        // Any queue may use the buffer next, so the zeroes must be there before it is handed out.
        lane.finish()?;
        Ok(buffer)
    }
}

impl Device for GpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn home(&self) -> &Home {
        &self.home
    }

    fn summary(&self) -> String {
        let DeviceInfo { backend, name, units, .. } = &self.info;
        format!("{backend} ({name}, {}, {units} {})", self.card.facts.architecture, listing::units(backend))
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        self.room().map_err(|failure| self.driver(failure))
    }

    fn alloc(&self, layout: &Layout) -> Result<BufferId> {
        let room = self.free_memory()?;
        if let Some(room) = room.filter(|room| room.bytes < layout.bytes as u64) {
            return Err(self.out_of_memory(layout, room));
        }
        let buffer = self.zeroed(layout).map_err(|failure| match failure.kind {
            Kind::OutOfMemory => {
                let room = self.room().ok().flatten();
                let mut room = room.unwrap_or(FreeMemory { bytes: 0, limit: "what the driver doesn't tell".into() });
                room.limit += &format!(", but {} gave {failure}", failure.call);
                self.out_of_memory(layout, room)
            }
            Kind::Unsupported | Kind::InvalidImage | Kind::Lost | Kind::Other => self.driver(failure),
        })?;
        let mut buffers = locked(&self.buffers);
        buffers.last += 1;
        let id = BufferId(buffers.last);
        buffers.alive.insert(id, buffer);
        Ok(id)
    }

    fn free(&self, buffer: BufferId) {
        // Not while the others are locked: it may wait.
        let freed = locked(&self.buffers).alive.remove(&buffer);
        drop(freed);
    }

    fn write(&self, queue: QueueId, to: Place<'_>, data: &[u8]) -> Result<()> {
        let (buffer, rect) = self.place_of("write", to, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        let lane = self.lane(queue)?;
        let is_staged = data.len() <= STAGED_BYTES || lane.recording().is_some();
        let staged = is_staged.then(|| Box::<[u8]>::from(data));
        let source = Rect::packed(rect.shape).on_host(staged.as_deref().unwrap_or(data).as_ptr());
        let kept = staged.map_or(Kept::Nothing, Kept::Copy);
        // The data is the staged copy, which the lane keeps, or this call waits.
        let written = self.transfer(&lane, [&buffer], kept, (source, rect.on_card(&buffer)), rect.shape);
        written.map_err(|failure| self.driver(failure))?;
        if is_staged { Ok(()) } else { self.settle(&lane) }
    }

    fn read(&self, queue: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()> {
        let (buffer, rect) = self.place_of("read", from, data.len())?;
        let lane = self.lane(queue)?;
        self.check_waits("read", queue, &lane)?;
        if !data.is_empty() {
            let target = Rect::packed(rect.shape).on_host(data.as_mut_ptr());
            let read = self.transfer(&lane, [&buffer], Kept::Nothing, (rect.on_card(&buffer), target), rect.shape);
            read.map_err(|failure| self.driver(failure))?;
        }
        self.settle(&lane)
    }

    fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        self.copy_to(("copy", queue), from, self, to)
    }

    fn load(&self, kernel: &'static KernelDesc) -> Result<KernelId> {
        let mut kernels = locked(&self.kernels);
        if let Some(number) = kernels.iter().position(|loaded| ptr::eq(loaded.desc, kernel)) {
            return Ok(KernelId(number as u32));
        }
        kernels.push(Kernel::load(&self.card, kernel, |failure| self.driver(failure))?);
        Ok(KernelId((kernels.len() - 1) as u32))
    }

    fn launch(&self, queue: QueueId, launch: &Launch<'_>) -> Result<()> {
        self.launch_on(queue, launch)
    }

    fn signal(&self, queue: QueueId) -> Result<EventId> {
        let moment = self.lane(queue)?.moment().map_err(|failure| self.driver(failure))?;
        Ok(locked(&self.moments).add(moment, |work| self.time(work)))
    }

    fn wait(&self, queue: QueueId, event: EventId) -> Result<()> {
        self.wait_for("wait", queue, self, event)
    }

    fn finish(&self, queue: QueueId) -> Result<()> {
        let lane = locked(&self.queues).get(&queue).cloned();
        let Some(lane) = lane else { return Ok(()) };
        self.check_waits("finish", queue, &lane)?;
        lane.finish().map_err(|failure| self.driver(failure))
    }

    fn synchronize(&self, event: EventId) -> Result<()> {
        if let Some(moment) = self.pending("synchronize", event)? {
            if let Some(recording) = moment.recording() {
                recording.abandon();
                let message = format!("event {} was being recorded, and nobody may wait for it", event.0);
                return Err(self.misuse("synchronize", message));
            }
            return moment.reach().map_err(|failure| self.driver(failure));
        }
        // It has happened, and the name of its queue may be forgotten.
        let lanes: Vec<_> = locked(&self.queues).values().cloned().collect();
        lanes.iter().find_map(|lane| lane.failure()).map_or(Ok(()), |failure| Err(self.driver(failure)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn awaits(&self, other: &dyn Device) -> bool {
        self.peer(other).is_some()
    }

    fn wait_for_peer(&self, queue: QueueId, other: &dyn Device, event: EventId) -> Result<()> {
        match self.peer(other) {
            Some(peer) => self.wait_for("wait_for_peer", queue, peer, event),
            None => other.synchronize(event),
        }
    }

    fn reaches(&self, other: &dyn Device) -> Result<(), String> {
        self.reach(other).map(|_| ())
    }

    fn copy_to_peer(&self, queue: QueueId, from: Place<'_>, other: &dyn Device, to: Place<'_>) -> Result<()> {
        let other = self.reach(other).map_err(|reason| self.misuse("copy_to_peer", reason))?;
        self.copy_to(("copy_to_peer", queue), from, other, to)
    }

    fn staging(&self, bytes: usize) -> Result<Arc<Staging>> {
        // The driver may touch the memory first, or this thread.
        let _near = Pinned::among(&self.home.cpus);
        // Where the driver has no memory to its liking any other will do.
        let pinned = if bytes == 0 { None } else { card::Pinned::new(&self.card, bytes).ok() };
        Ok(Arc::new(pinned.map_or_else(|| Staging::pageable(bytes, &self.home), |pinned| pinned.staging(bytes))))
    }

    fn download(&self, queue: QueueId, from: Place<'_>, to: &Arc<Staging>, at: usize) -> Result<()> {
        let (buffer, rect) = self.place("download", from)?;
        let part = to.part(at, rect.bytes()).ok_or_else(|| outside(self, "download"))?;
        if rect.is_empty() {
            return Ok(());
        }
        let target = Rect::packed(rect.shape).on_host(part.cast());
        // The plan lets nobody use the part before it is done.
        let ends = (rect.on_card(&buffer), target);
        let read = self.transfer(&self.lane(queue)?, [&buffer], Kept::Staging(to.clone()), ends, rect.shape);
        read.map_err(|failure| self.driver(failure))
    }

    fn upload(&self, queue: QueueId, from: &Arc<Staging>, at: usize, to: Place<'_>) -> Result<()> {
        let (buffer, rect) = self.place("upload", to)?;
        let part = from.part(at, rect.bytes()).ok_or_else(|| outside(self, "upload"))?;
        if rect.is_empty() {
            return Ok(());
        }
        let source = Rect::packed(rect.shape).on_host(part.cast());
        // The plan lets nobody write to the part before it is done.
        let ends = (source, rect.on_card(&buffer));
        let written = self.transfer(&self.lane(queue)?, [&buffer], Kept::Staging(from.clone()), ends, rect.shape);
        written.map_err(|failure| self.driver(failure))
    }

    fn record(&self, queue: QueueId) -> Result<bool> {
        // A trace tells of each operation.
        if self.traces {
            return Ok(false);
        }
        let lane = self.lane(queue)?;
        if lane.recording().is_some() {
            return Err(self.misuse("record", format!("queue {} is being recorded already", queue.0)));
        }
        match Recording::begin(&lane) {
            Ok(()) => Ok(true),
            Err(Failure { kind: Kind::Unsupported, .. }) => Ok(false),
            Err(failure) => Err(self.driver(failure)),
        }
    }

    fn recorded(&self, queue: QueueId) -> Result<RecordingId> {
        let lane = self.lane(queue)?;
        let recording = lane.recording().filter(|recording| recording.began_on(&lane));
        let Some(recording) = recording else {
            return Err(self.misuse("recorded", format!("no recording that began on queue {} is being made", queue.0)));
        };
        recording.end().map_err(|failure| self.driver(failure))?;
        let mut recordings = locked(&self.recordings);
        recordings.last += 1;
        let id = RecordingId(recordings.last);
        recordings.alive.insert(id, recording);
        Ok(id)
    }

    fn replay(&self, queue: QueueId, recording: RecordingId) -> Result<()> {
        let found = locked(&self.recordings).alive.get(&recording).cloned();
        let Some(found) = found else {
            return Err(self.misuse("replay", format!("there is no recording {}", recording.0)));
        };
        found.replay(&self.lane(queue)?).map_err(|failure| self.driver(failure))
    }

    fn forget(&self, recording: RecordingId) {
        let found = locked(&self.recordings).alive.remove(&recording);
        if let Some(found) = found {
            found.forget();
        }
    }

    fn span(&self, event: EventId) -> Result<Option<Span>> {
        let span = locked(&self.moments).span(event, |work| self.time(work));
        span.transpose().map_err(|failure| self.driver(failure))
    }

    fn shapes(&self) -> Vec<(&'static str, String)> {
        let kernels = locked(&self.kernels);
        kernels.iter().map(|kernel| (kernel.desc.name, kernel.describe(self.gpu.shape))).collect()
    }
}

impl Drop for GpuDevice {
    fn drop(&mut self) {
        // Nobody holds a lane after this, and each waits for its work when it goes: everything that others give back below is
        // idle then. It is given back before the last hold on the card is.
        *locked(&self.moments) = Moments::default();
        let lanes = std::mem::take(&mut *locked(&self.queues));
        drop(lanes);
        let recordings = std::mem::take(&mut *locked(&self.recordings));
        recordings.alive.values().for_each(|recording| recording.forget());
        locked(&self.beat).take();
        *locked(&self.buffers) = Buffers::default();
        locked(&self.kernels).clear();
    }
}

/// No code panics while it holds these locks in a state that matters, so a poisoned one is as good as any.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
