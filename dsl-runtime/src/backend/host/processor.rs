//! What runs the work of one device: its threads, the instruction set of its kernels and what it knows of its caches.

use std::ptr;

use super::args::{BoxArgs, InstructionSet};
use super::cache::Caches;
use super::memory::Block;
use super::pool::Pool;
use super::split::{thread_boxes, tiles};
use super::support;
use super::sweep::{self, Sweep};
use super::work::Launching;
use crate::error::{Error, Result};
use crate::geometry::Box3;
use crate::kernel::{HostKernel, KernelDesc};
use crate::layout::{LINE_BYTES, Layout, Region};

/// Boxes of fewer bytes are copied by the calling thread alone.
const SHARED_COPY_BYTES: usize = 256 << 10;

const PAGE: usize = 4096;

/// The threads of a device and what they run.
pub(super) struct Processor {
    /// The device in reports and messages.
    pub(super) name: String,
    pub(super) set: InstructionSet,
    pub(super) pool: Pool,
    pub(super) caches: Caches,
}

/// An address that threads may share.
#[derive(Clone, Copy)]
pub(super) struct Address<T>(pub(super) *mut T);

// SAFETY: an address alone gives no access; each use says why it is right.
unsafe impl<T> Send for Address<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Address<T> {}

impl<T> Address<T> {
    pub(super) fn get(&self) -> *mut T {
        self.0
    }
}

impl Processor {
    /// Runs `work` on the pool.
    fn together(&self, place: &str, work: &(dyn Fn(usize) + Sync)) -> Result<()> {
        self.pool.run(work).map_err(|message| self.panicked(place, message))
    }

    /// Runs `work` on the calling thread.
    fn alone(&self, place: &str, work: &(dyn Fn(usize) + Sync)) -> Result<()> {
        self.pool.run_alone(work).map_err(|message| self.panicked(place, message))
    }

    fn panicked(&self, place: &str, message: String) -> Error {
        Error::Panicked { device: self.name.clone(), place: place.into(), message }
    }

    /// Zeroed memory for a layout, each page touched first by the thread that will compute it.
    pub(super) fn memory(&self, layout: &Layout, number: u64) -> Result<Block> {
        let block = block(layout.bytes, number)?;
        let base = Address(block.base());
        let parts = thread_boxes(&layout.cells, self.pool.threads());
        // SAFETY: the block was made for this layout, nobody else knows it, and the threads' parts are disjoint.
        self.together("first touch", &|number| unsafe { touch(base, layout, &parts[number]) })?;
        Ok(block)
    }

    /// Zeroed memory that the first thread touched.
    pub(super) fn own_memory(&self, bytes: usize) -> Result<Block> {
        let block = block(bytes, 0)?;
        let base = Address(block.base());
        let touch = |number: usize| {
            if number == 0 {
                // SAFETY: the bytes lie in the block, which nobody else knows. Volatile, because the memory is zero already.
                (0..bytes).step_by(PAGE).for_each(|byte| unsafe { base.get().add(byte).write_volatile(0) });
            }
        };
        self.together("first touch", &touch)?;
        Ok(block)
    }

    /// Copies the rows of `from` at `source` to the rows of `to` at `target`; both regions have the same shape.
    ///
    /// # Safety
    /// The rows lie in memory that is valid for reading and writing and that nothing else writes to (nor reads, in `to`)
    /// meanwhile, and none of `to` overlaps one of `from` when `shared` is set.
    pub(super) unsafe fn copy_rows(
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

    /// Runs a kernel over its box.
    ///
    /// # Safety
    /// [`Launch::check`](crate::backend::Launch::check) found no fault in the launch, the memory is still there, and nothing
    /// else uses the cells that are written, nor writes to those that are read, meanwhile.
    pub(super) unsafe fn launch(&self, launch: &Launching) -> Result<()> {
        let Launching { kernel, outputs, fields, range, strides, .. } = launch;
        let threads = sweep::threads(kernel, range, self.pool.threads());
        let parts = thread_boxes(range, threads);
        let native = self.native(kernel);
        let sweep = Sweep::new(kernel, range, strides.row, launch.partly, &self.caches);
        let work = |number: usize| {
            let outputs: Vec<_> = outputs.iter().map(Address::get).collect();
            let fields: Vec<_> = fields.iter().map(|field| field.get().cast_const()).collect();
            for tile in tiles(parts[number], sweep.tile_rows) {
                let args = BoxArgs {
                    outputs: &outputs,
                    fields: &fields,
                    scalars: &launch.scalars,
                    sy: strides.row as isize,
                    sz: strides.plane as isize,
                    lo: tile.lo.map(|cell| cell as isize),
                    size: tile.size(),
                    parity: launch.parity.map_or(-1, i32::from),
                    global: launch.global,
                    ahead: sweep.ahead,
                    stream: sweep.stream,
                };
                // SAFETY: `check` made sure of types, footprints and that no point reads what another writes; tiles are
                // disjoint and hold whole rows, and the caller promises that nothing else is in the way. The
                // instruction set was found to be there when the device was opened.
                unsafe { native(&args) };
            }
            if sweep.stream {
                support::fence();
            }
        };
        let place = format!("`{}`", kernel.name);
        if threads == 1 { self.alone(&place, &work) } else { self.together(&place, &work) }
    }
}

fn block(bytes: usize, number: u64) -> Result<Block> {
    Block::new(bytes, number)
        .map_err(|source| Error::System { call: format!("reserving {bytes} bytes of memory"), source })
}

/// Writes a zero to every page of the rows of `part`, which the calling thread will compute.
///
/// # Safety
/// The buffer at `base` has the layout, and no other thread uses the cells of `part`.
unsafe fn touch(base: Address<u8>, layout: &Layout, part: &Box3) {
    let Some(region) = layout.region(part) else { return };
    for start in region.row_starts() {
        for byte in (start..start + region.row_bytes).step_by(PAGE) {
            // SAFETY: the byte lies in a row of the region, which lies in the buffer. Volatile, because the memory is
            // zero already.
            unsafe { base.get().add(byte).write_volatile(0) };
        }
    }
}

/// The region of data that hold the rows of `region` without gaps.
pub(super) fn dense(region: &Region) -> Region {
    let row_pitch = region.row_bytes;
    Region { offset: 0, row_pitch, plane_pitch: row_pitch * region.rows, ..*region }
}
