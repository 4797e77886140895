//! The host device: native kernels over tiles of the grid on a pool of pinned threads.
//!
//! Operations run when they are enqueued, so queues and events have nothing to wait for.

mod affinity;
mod args;
mod cache;
mod memory;
mod pool;
mod split;
pub mod support;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use args::{BoxArgs, InstructionSet};
pub use memory::{free_memory, total_memory};

use super::{
    Backend, BufferId, Device, DeviceInfo, DeviceKind, EventId, FreeMemory, KernelId, Launch, Listing, OpenOptions,
    Place, QueueId, listed,
};
use crate::error::{Error, Result};
use crate::geometry::Box3;
use crate::kernel::{HostKernel, KernelDesc};
use crate::layout::{LINE_BYTES, Layout, Region};
use affinity::allowed_cpus;
use cache::Caches;
use memory::Block;
use pool::Pool;
use split::{thread_boxes, tiles};
use sweep::Sweep;

/// The back end with the host device.
pub struct Host;

/// The variable of the environment that overrides the choice of the instruction set.
pub const INSTRUCTION_SET_VARIABLE: &str = "POLYHALO_INSTRUCTION_SET";

/// More threads than this are taken for a mistake.
const MOST_THREADS: usize = 4096;

/// Boxes of fewer bytes are copied by the calling thread alone.
const SHARED_COPY_BYTES: usize = 256 << 10;

impl Backend for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    fn devices(&self) -> Listing {
        let info = DeviceInfo {
            backend: self.name(),
            ordinal: 0,
            name: processor_name(),
            platform: String::new(),
            notes: vec![format!("kernels for {}", InstructionSet::best())],
            kind: DeviceKind::Cpu,
            fp64: true,
            units: allowed_cpus().len() as u32,
            memory_bytes: total_memory(),
        };
        Listing { devices: vec![info], absent: Vec::new() }
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<Box<dyn Device>> {
        let info = listed(self, ordinal)?;
        let set = instruction_set(options)?;
        let cpus = allowed_cpus();
        let threads = options.threads.unwrap_or(cpus.len());
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(Error::Threads { asked: threads, allowed: cpus.len(), most: MOST_THREADS });
        }
        let pool = Pool::new(threads, &cpus)
            .map_err(|source| Error::System { call: format!("starting {threads} threads"), source })?;
        Ok(Box::new(HostDevice { info, set, pool, caches: Caches::of_threads(threads), state: Mutex::default() }))
    }
}

/// The model of the processor, as the system names it.
fn processor_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| format!("{} CPU", env::consts::ARCH), |(_, name)| name.trim().to_owned())
}

fn instruction_set(options: &OpenOptions) -> Result<InstructionSet> {
    let wish = match (options.instruction_set, env::var(INSTRUCTION_SET_VARIABLE)) {
        (Some(set), _) => set,
        (None, Err(_)) => return Ok(InstructionSet::best()),
        (None, Ok(name)) => InstructionSet::named(&name).ok_or_else(|| Error::InstructionSet {
            reason: format!("{INSTRUCTION_SET_VARIABLE} may be baseline, avx2 or avx512"),
            asked: name,
        })?,
    };
    if wish.is_available() {
        return Ok(wish);
    }
    let reason = format!("this CPU doesn't have it; the best that it has is {}", InstructionSet::best());
    Err(Error::InstructionSet { asked: wish.to_string(), reason })
}

struct HostDevice {
    info: DeviceInfo,
    set: InstructionSet,
    pool: Pool,
    caches: Caches,
    /// Held during every operation: the memory belongs to one operation at a time.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    buffers: BTreeMap<BufferId, (Block, Layout)>,
    last_buffer: u64,
    kernels: Vec<&'static KernelDesc>,
}

/// An address that the threads of the pool may share.
#[derive(Clone, Copy)]
struct Address<T>(*mut T);

// SAFETY: an address alone gives no access; each use says why it is right.
unsafe impl<T> Send for Address<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Address<T> {}

impl<T> Address<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

impl HostDevice {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is only changed in single steps, so a poisoned lock holds nothing broken.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn misuse(&self, call: &str, message: impl Into<String>) -> Error {
        Error::Driver { backend: "host", device: self.summary(), call: call.into(), message: message.into() }
    }

    /// The address of the first byte of a buffer that holds the region.
    fn address(&self, state: &State, call: &str, place: Place<'_>) -> Result<Address<u8>> {
        let (block, _) = (state.buffers.get(&place.buffer))
            .ok_or_else(|| self.misuse(call, format!("there is no buffer {}", place.buffer.0)))?;
        if place.region.end() > block.bytes() {
            return Err(self.misuse(call, format!("{:?} leaves the buffer of {} bytes", place.region, block.bytes())));
        }
        Ok(Address(block.base()))
    }

    /// Runs `work` on the pool.
    fn together(&self, place: &str, work: &(dyn Fn(usize) + Sync)) -> Result<()> {
        self.pool.run(work).map_err(|message| self.panicked(place, message))
    }

    fn panicked(&self, place: &str, message: String) -> Error {
        Error::Panicked { device: self.summary(), place: place.into(), message }
    }

    /// Copies the rows of `from` at `source` to the rows of `to` at `target`; both regions have the same shape.
    ///
    /// # Safety
    /// The rows lie in memory that is valid for reading and writing, and none of `to` overlaps one of `from` when
    /// `shared` is set.
    unsafe fn copy_rows(
        &self,
        source: Address<u8>,
        from: &Region,
        target: Address<u8>,
        to: &Region,
        shared: bool,
    ) -> Result<()> {
        let rows = from.rows * from.planes;
        let threads = if shared && from.bytes() >= SHARED_COPY_BYTES { self.pool.threads() } else { 1 };
        // What the caches couldn't keep goes past them: lines needn't be read before they are written.
        let stream = shared && from.bytes().saturating_mul(2) > self.caches.last_bytes;
        // Long rows are cut, so that a single one is shared out too.
        let pieces = threads.div_ceil(rows.max(1));
        let copy = |number: usize| {
            let start = |row: usize, region: &Region| {
                region.offset + row / region.rows * region.plane_pitch + row % region.rows * region.row_pitch
            };
            let units = rows * pieces;
            for unit in units * number / threads..units * (number + 1) / threads {
                let (row, piece) = (unit / pieces, unit % pieces);
                let (first, last) = (from.row_bytes * piece / pieces, from.row_bytes * (piece + 1) / pieces);
                // SAFETY: the caller promises valid rows, which don't overlap when they are shared; the pieces of
                // different threads are disjoint.
                unsafe {
                    let source = source.get().add(start(row, from) + first);
                    let target = target.get().add(start(row, to) + first);
                    if stream {
                        let head = target.align_offset(LINE_BYTES).min(last - first);
                        ptr::copy_nonoverlapping(source, target, head);
                        support::store(target.add(head), source.add(head), last - first - head, true);
                    } else {
                        ptr::copy(source, target, last - first);
                    }
                }
            }
            support::fence();
        };
        if threads == 1 {
            copy(0);
            return Ok(());
        }
        self.together("a copy", &copy)
    }

    fn native(&self, kernel: &KernelDesc) -> HostKernel {
        let code = &kernel.host;
        match self.set {
            InstructionSet::Baseline => code.baseline,
            InstructionSet::Avx2 => code.avx2.unwrap_or(code.baseline),
            InstructionSet::Avx512 => code.avx512.or(code.avx2).unwrap_or(code.baseline),
        }
    }
}

/// Writes a zero to every page of the rows of `part`, which the calling thread will compute.
///
/// # Safety
/// The buffer at `base` has the layout, and no other thread uses the cells of `part`.
unsafe fn touch(base: Address<u8>, layout: &Layout, part: &Box3) {
    const PAGE: usize = 4096;
    let Some(region) = layout.region(part) else { return };
    for start in region.row_starts() {
        for byte in (start..start + region.row_bytes).step_by(PAGE) {
            // SAFETY: the byte lies in a row of the region, which lies in the buffer. Volatile, because the memory is
            // zero already.
            unsafe { base.get().add(byte).write_volatile(0) };
        }
    }
}

impl Device for HostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn summary(&self) -> String {
        let threads = self.pool.threads();
        format!("host ({threads} thread{}, {})", if threads == 1 { "" } else { "s" }, self.set)
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        Ok(free_memory())
    }

    fn alloc(&self, layout: &Layout) -> Result<BufferId> {
        let mut state = self.state();
        state.last_buffer += 1;
        let buffer = BufferId(state.last_buffer);
        let block = Block::new(layout.bytes, buffer.0)
            .map_err(|source| Error::System { call: format!("reserving {} bytes of memory", layout.bytes), source })?;
        let base = Address(block.base());
        let parts = thread_boxes(&layout.cells, self.pool.threads());
        // SAFETY: the block was made for this layout, nobody else knows it, and the threads' parts are disjoint.
        self.together("first touch", &|number| unsafe { touch(base, layout, &parts[number]) })?;
        state.buffers.insert(buffer, (block, *layout));
        Ok(buffer)
    }

    fn free(&self, buffer: BufferId) {
        self.state().buffers.remove(&buffer);
    }

    fn write(&self, _: QueueId, to: Place<'_>, data: &[u8]) -> Result<()> {
        let state = self.state();
        let target = self.address(&state, "write", to)?;
        let from = dense(to.region);
        if data.len() != from.bytes() {
            return Err(self.misuse("write", format!("{} bytes for a box of {}", data.len(), from.bytes())));
        }
        // SAFETY: `address` checked the target's rows, the data are as long as the dense rows, and a buffer of the
        // device isn't borrowed as data.
        unsafe { self.copy_rows(Address(data.as_ptr().cast_mut()), &from, target, to.region, true) }
    }

    fn read(&self, _: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()> {
        let state = self.state();
        let source = self.address(&state, "read", from)?;
        let to = dense(from.region);
        if data.len() != to.bytes() {
            return Err(self.misuse("read", format!("{} bytes for a box of {}", data.len(), to.bytes())));
        }
        // SAFETY: as in `write`.
        unsafe { self.copy_rows(source, from.region, Address(data.as_mut_ptr()), &to, true) }
    }

    fn copy(&self, _: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        let state = self.state();
        let (source, target) = (self.address(&state, "copy", from)?, self.address(&state, "copy", to)?);
        if !from.region.same_shape(to.region) {
            return Err(self.misuse("copy", "the boxes have different shapes"));
        }
        let apart = from.buffer != to.buffer || !from.region.meets(to.region);
        // SAFETY: `address` checked the rows of both; they are shared out only when they don't overlap.
        unsafe { self.copy_rows(source, from.region, target, to.region, apart) }
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

    fn launch(&self, _: QueueId, launch: &Launch<'_>) -> Result<()> {
        let state = self.state();
        let kernel = *(state.kernels.get(launch.kernel.0 as usize))
            .ok_or_else(|| self.misuse("launch", format!("there is no kernel {}", launch.kernel.0)))?;
        let layout = |buffer| state.buffers.get(&buffer).map(|(_, layout)| *layout);
        launch.check(kernel, layout).map_err(|message| self.misuse("launch", message))?;
        // An origin that is moved may lie outside the buffer.
        let address = |cells: &super::Cells| {
            let (block, layout) = &state.buffers[&cells.buffer];
            block.base().wrapping_add(cells.origin.wrapping_mul(layout.ty.bytes()))
        };
        let outputs: Vec<_> = launch.outputs.iter().map(|cells| Address(address(cells))).collect();
        let fields: Vec<_> = launch.fields.iter().map(|cells| Address(address(cells))).collect();
        let threads = sweep::threads(kernel, &launch.range, self.pool.threads());
        let parts = thread_boxes(&launch.range, threads);
        let native = self.native(kernel);
        // Memory past the caches is for lines that are written whole and weren't read.
        let partly = launch.is_in_place() || launch.parity.is_some();
        let sweep = Sweep::new(kernel, &launch.range, launch.strides.row, partly, &self.caches);
        let work = |number: usize| {
            let outputs: Vec<_> = outputs.iter().map(Address::get).collect();
            let fields: Vec<_> = fields.iter().map(|field| field.get().cast_const()).collect();
            for tile in tiles(parts[number], sweep.tile_rows) {
                let args = BoxArgs {
                    outputs: &outputs,
                    fields: &fields,
                    scalars: launch.scalars,
                    sy: launch.strides.row as isize,
                    sz: launch.strides.plane as isize,
                    lo: tile.lo.map(|cell| cell as isize),
                    size: tile.size(),
                    parity: launch.parity.map_or(-1, i32::from),
                    global: launch.global,
                    ahead: sweep.ahead,
                    stream: sweep.stream,
                };
                // SAFETY: `check` made sure of types, footprints and that no point reads what another writes; tiles are
                // disjoint and hold whole rows, and the state is locked. The instruction set was found to be there when the device was opened.
                unsafe { native(&args) };
            }
            if sweep.stream {
                support::fence();
            }
        };
        if threads == 1 {
            return self.pool.run_alone(&work).map_err(|message| self.panicked(&format!("`{}`", kernel.name), message));
        }
        self.together(&format!("`{}`", kernel.name), &work)
    }

    fn signal(&self, _: QueueId) -> Result<EventId> {
        Ok(EventId(0))
    }

    fn wait(&self, _: QueueId, _: EventId) -> Result<()> {
        Ok(())
    }

    fn finish(&self, _: QueueId) -> Result<()> {
        Ok(())
    }
}

/// The region of data that hold the rows of `region` without gaps.
fn dense(region: &Region) -> Region {
    let row_pitch = region.row_bytes;
    Region { offset: 0, row_pitch, plane_pitch: row_pitch * region.rows, ..*region }
}
