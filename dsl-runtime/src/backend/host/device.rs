//! The host device: buffers of the host's memory, and operations that are checked here and done by the engine.

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::engine::Engine;
use super::memory::{Block, free_memory};
use super::processor::{Address, Processor, dense};
use super::queues::Moment;
use super::work::{Copying, Launching, Rows, Work};
use crate::backend::{
    BufferId, Cells, Device, DeviceInfo, EventId, FreeMemory, KernelId, Launch, OpenOptions, Place, QueueId, Staging,
    allowed_cpus, outside,
};
use crate::clock::Span;
use crate::error::{Error, Result};
use crate::kernel::KernelDesc;
use crate::layout::{Layout, Region};
use crate::placement::{Home, Sys};

/// Devices with these processors, each with its facts; they share an engine.
pub(super) fn devices_of(
    processors: Vec<(DeviceInfo, Processor)>,
    options: &OpenOptions,
) -> Result<Vec<Box<dyn Device>>> {
    let (infos, processors): (Vec<_>, Vec<_>) = processors.into_iter().unzip();
    let engine = Engine::new(processors, options)
        .map_err(|source| Error::System { call: "starting helper threads".into(), source })?;
    let engine = Arc::new(engine);
    let (sys, allowed) = (Sys::default(), allowed_cpus());
    let device = |(number, info)| -> Box<dyn Device> {
        let place = engine.processor(number).pool.place();
        let home = place.home(options.affinity, &sys, &allowed, engine.issuer_works());
        Box::new(HostDevice { info, home, number, engine: Arc::clone(&engine), state: Mutex::default() })
    };
    Ok(infos.into_iter().enumerate().map(device).collect())
}

struct HostDevice {
    info: DeviceInfo,
    home: Home,
    /// Its number in the engine.
    number: usize,
    engine: Arc<Engine>,
    /// Held while operations are checked, never while they run.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    buffers: BTreeMap<BufferId, (Arc<Block>, Layout)>,
    last_buffer: u64,
    kernels: Vec<&'static KernelDesc>,
}

impl HostDevice {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is only changed in single steps, so a poisoned lock holds nothing broken.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn misuse(&self, call: &str, message: impl Into<String>) -> Error {
        Error::Driver { backend: "host", device: self.summary(), call: call.into(), message: message.into() }
    }

    /// The rows of a region that lies in a buffer.
    fn rows(&self, call: &str, place: Place<'_>) -> Result<Rows> {
        let state = self.state();
        let (block, _) = (state.buffers.get(&place.buffer))
            .ok_or_else(|| self.misuse(call, format!("there is no buffer {}", place.buffer.0)))?;
        if place.region.end() > block.bytes() {
            return Err(self.misuse(call, format!("{:?} leaves the buffer of {} bytes", place.region, block.bytes())));
        }
        let address = Address(block.base());
        Ok(Rows { address, region: *place.region, _held: Arc::clone(block) as _ })
    }

    /// The rows of staging memory from byte `at` on that take those of a region without gaps.
    fn staged(&self, call: &str, staging: &Arc<Staging>, at: usize, region: &Region) -> Result<Rows> {
        let part = staging.part(at, region.bytes()).ok_or_else(|| outside(self, call))?;
        Ok(Rows { address: Address(part.cast()), region: dense(region), _held: Arc::clone(staging) as _ })
    }

    fn issue_copy(&self, call: &str, queue: QueueId, from: Rows, to: Rows, apart: bool) -> Result<()> {
        if !from.region.same_shape(&to.region) {
            return Err(self.misuse(call, "the boxes have different shapes"));
        }
        self.engine.issue(self.number, queue, Work::Copy(Copying { from, to, apart }))
    }

    /// Does a copy on the calling thread once the queue is empty.
    fn copy_now(&self, queue: QueueId, from: &Rows, to: &Rows) -> Result<()> {
        self.engine.finish(self.number, queue)?;
        // SAFETY: the rows were checked against their memory, which is held or borrowed; a buffer of the device isn't
        // borrowed as data. The queue is empty, and the plan's dependencies keep other queues away.
        let copy = |own: &Processor| unsafe { own.copy_rows(from.address, &from.region, to.address, &to.region, true) };
        self.engine.alone(self.number, copy)
    }

    fn check_length(&self, call: &str, region: &Region, bytes: usize) -> Result<()> {
        if bytes == region.bytes() {
            return Ok(());
        }
        Err(self.misuse(call, format!("{bytes} bytes for a box of {}", region.bytes())))
    }

    fn moment(&self, call: &str, event: EventId) -> Result<Moment> {
        self.engine.moment(self.number, event).ok_or_else(|| self.misuse(call, "the device gave no such event"))
    }

    /// A device that shares the engine of this one.
    fn peer<'a>(&self, other: &'a dyn Device) -> Option<&'a Self> {
        other.as_any().downcast_ref::<Self>().filter(|other| Arc::ptr_eq(&self.engine, &other.engine))
    }

    fn wait_until(&self, queue: QueueId, moment: Moment) -> Result<()> {
        let failed = |reason| self.misuse("wait", format!("what it waits for failed: {reason}"));
        self.engine.wait(self.number, queue, moment).map_err(failed)
    }
}

impl Drop for HostDevice {
    fn drop(&mut self) {
        self.engine.drain(self.number);
    }
}

/// Data of the caller as rows; the caller sees to it that they are used only while they are borrowed.
fn lent(data: *mut u8, region: &Region) -> Rows {
    Rows { address: Address(data), region: dense(region), _held: Arc::new(()) }
}

impl Device for HostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn summary(&self) -> String {
        self.engine.processor(self.number).name.clone()
    }

    fn home(&self) -> &Home {
        &self.home
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        Ok(free_memory())
    }

    fn alloc(&self, layout: &Layout) -> Result<BufferId> {
        let buffer = {
            let mut state = self.state();
            state.last_buffer += 1;
            BufferId(state.last_buffer)
        };
        let block = self.engine.alone(self.number, |processor| processor.memory(layout, buffer.0))?;
        self.state().buffers.insert(buffer, (Arc::new(block), *layout));
        Ok(buffer)
    }

    fn free(&self, buffer: BufferId) {
        // Operations that still use it hold the memory.
        self.state().buffers.remove(&buffer);
    }

    fn write(&self, queue: QueueId, to: Place<'_>, data: &[u8]) -> Result<()> {
        let to = self.rows("write", to)?;
        self.check_length("write", &to.region, data.len())?;
        if !self.engine.keeps(data.len()) {
            return self.copy_now(queue, &lent(data.as_ptr().cast_mut(), &to.region), &to);
        }
        let data = Arc::new(data.to_vec());
        let address = Address(data.as_ptr().cast_mut());
        let from = Rows { address, region: dense(&to.region), _held: data };
        self.issue_copy("write", queue, from, to, true)
    }

    fn read(&self, queue: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()> {
        let from = self.rows("read", from)?;
        self.check_length("read", &from.region, data.len())?;
        let to = lent(data.as_mut_ptr(), &from.region);
        self.copy_now(queue, &from, &to)
    }

    fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        let (source, target) = (self.rows("copy", from)?, self.rows("copy", to)?);
        let apart = from.buffer != to.buffer || !from.region.meets(to.region);
        self.issue_copy("copy", queue, source, target, apart)
    }

    fn load(&self, kernel: &'static KernelDesc) -> Result<KernelId> {
        let kernels = &mut self.state().kernels;
        let known = kernels.iter().position(|&other| ptr::eq(other, kernel));
        let number = known.unwrap_or_else(|| {
            kernels.push(kernel);
            kernels.len() - 1
        });
        Ok(KernelId(number as u32))
    }

    fn launch(&self, queue: QueueId, launch: &Launch<'_>) -> Result<()> {
        let state = self.state();
        let kernel = *(state.kernels.get(launch.kernel.0 as usize))
            .ok_or_else(|| self.misuse("launch", format!("there is no kernel {}", launch.kernel.0)))?;
        let layout = |buffer| state.buffers.get(&buffer).map(|(_, layout)| *layout);
        launch.check(kernel, layout).map_err(|message| self.misuse("launch", message))?;
        // An origin that is moved may lie outside the buffer.
        let address = |cells: &Cells| {
            let (block, layout) = &state.buffers[&cells.buffer];
            Address(block.base().wrapping_add(cells.origin.wrapping_mul(layout.ty.bytes())))
        };
        let all = launch.outputs.iter().chain(launch.fields);
        let work = Launching {
            kernel,
            outputs: launch.outputs.iter().map(address).collect(),
            fields: launch.fields.iter().map(address).collect(),
            scalars: launch.scalars.to_vec(),
            strides: launch.strides,
            global: launch.global,
            range: launch.range,
            parity: launch.parity,
            partly: launch.is_in_place() || launch.parity.is_some(),
            _held: all.map(|cells| Arc::clone(&state.buffers[&cells.buffer].0) as _).collect(),
        };
        drop(state);
        self.engine.issue(self.number, queue, Work::Launch(work))
    }

    fn signal(&self, queue: QueueId) -> Result<EventId> {
        Ok(self.engine.signal(self.number, queue).event())
    }

    fn wait(&self, queue: QueueId, event: EventId) -> Result<()> {
        self.wait_until(queue, self.moment("wait", event)?)
    }

    fn finish(&self, queue: QueueId) -> Result<()> {
        self.engine.finish(self.number, queue)
    }

    fn synchronize(&self, event: EventId) -> Result<()> {
        let moment = self.moment("synchronize", event)?;
        let failed = |reason| self.misuse("synchronize", format!("it failed before: {reason}"));
        self.engine.synchronize(moment)?.map_err(failed)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn awaits(&self, other: &dyn Device) -> bool {
        self.peer(other).is_some()
    }

    fn wait_for_peer(&self, queue: QueueId, other: &dyn Device, event: EventId) -> Result<()> {
        match self.peer(other) {
            Some(peer) => self.wait_until(queue, peer.moment("wait", event)?),
            None => other.synchronize(event),
        }
    }

    fn reaches(&self, other: &dyn Device) -> Result<(), String> {
        let apart = || format!("{} and {} were not opened together", self.summary(), other.summary());
        self.peer(other).map(|_| ()).ok_or_else(apart)
    }

    fn copy_to_peer(&self, queue: QueueId, from: Place<'_>, other: &dyn Device, to: Place<'_>) -> Result<()> {
        let peer = self.peer(other).ok_or_else(|| {
            self.misuse("copy to another device", format!("{} was not opened together with it", other.summary()))
        })?;
        if ptr::eq(self, peer) {
            return self.copy(queue, from, to);
        }
        let (from, to) = (self.rows("copy", from)?, peer.rows("copy", to)?);
        self.issue_copy("copy", queue, from, to, true)
    }

    fn staging(&self, bytes: usize) -> Result<Arc<Staging>> {
        let block = self.engine.alone(self.number, |processor| processor.own_memory(bytes))?;
        let start = block.base();
        // SAFETY: the block has so many bytes, belongs to no thread and lives as long as the owner.
        Ok(Arc::new(unsafe { Staging::owned(start, bytes, Box::new(block)) }))
    }

    fn download(&self, queue: QueueId, from: Place<'_>, to: &Arc<Staging>, at: usize) -> Result<()> {
        let from = self.rows("download", from)?;
        let to = self.staged("download", to, at, &from.region)?;
        self.issue_copy("download", queue, from, to, true)
    }

    fn upload(&self, queue: QueueId, from: &Arc<Staging>, at: usize, to: Place<'_>) -> Result<()> {
        let to = self.rows("upload", to)?;
        let from = self.staged("upload", from, at, &to.region)?;
        self.issue_copy("upload", queue, from, to, true)
    }

    fn span(&self, event: EventId) -> Result<Option<Span>> {
        Ok(self.engine.span(self.moment("span", event)?))
    }
}
