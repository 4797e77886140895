//! How a launch goes through memory: what fits in which cache decides, and no choice changes a result.

use super::cache::Caches;
use crate::geometry::Box3;
use crate::kernel::{FieldDesc, KernelDesc, Role};
use crate::layout::WHOLE;

/// About how far ahead memory is asked for. Measured: 2 to 4 KB are about equally good.
const AHEAD_BYTES: usize = 5 << 9;

/// Fewer rows in a tile would read the rows around it too often.
const LEAST_ROWS: usize = 4;

/// Launches of less work ([`work`]) are done by the calling thread alone: to wake others and to wait for them takes about as
/// long as this much. With debug assertions every launch is shared out, so that tests with small grids see all threads.
const SHARED_WORK: u64 = if cfg!(debug_assertions) { 0 } else { WORTH_SHARING };
const WORTH_SHARING: u64 = 32 << 10;

/// How the threads go through their boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sweep {
    /// Rows of points that a kernel gets at once, of all planes: few enough that the rows of neighbouring planes are
    /// still in the second-level cache when they are read again.
    pub(super) tile_rows: usize,
    /// How many cells ahead memory is asked for; 0 for not at all, where the caches hold everything with room to spare.
    pub(super) ahead: isize,
    /// Whether results go past the caches, which couldn't keep them until they are read.
    pub(super) stream: bool,
}

impl Sweep {
    /// The sweep of a kernel over `range` by the threads that have these caches; there are `row` cells from one row to
    /// the next. `partly` says that lines of results may be in a cache when they are written, or are written in part: a
    /// result's memory is also a field's, or not all points are updated.
    pub(super) fn new(kernel: &KernelDesc, range: &Box3, row: usize, partly: bool, caches: &Caches) -> Self {
        let bytes = usize::try_from(range.points()).unwrap_or(usize::MAX).saturating_mul(point_bytes(kernel));
        let widest = read(kernel).map(|field| field.ty.bytes()).max();
        let held = bytes <= caches.last_bytes / 2;
        Self {
            tile_rows: tile_rows(kernel, range, caches),
            ahead: if held { 0 } else { widest.map_or(0, |widest| ahead(widest, row) as isize) },
            stream: !partly && bytes > caches.last_bytes,
        }
    }
}

/// How many of `threads` threads a launch is worth.
pub(super) fn threads(kernel: &KernelDesc, range: &Box3, threads: usize) -> usize {
    if is_worth(kernel, range, SHARED_WORK) { threads } else { 1 }
}

fn is_worth(kernel: &KernelDesc, range: &Box3, least: u64) -> bool {
    work(kernel, range) >= least
}

/// About how many bytes a thread moves in the time that the launch takes it.
fn work(kernel: &KernelDesc, range: &Box3) -> u64 {
    let arithmetic = u64::from(kernel.flops) + 64 * kernel.vendor_functions.len() as u64;
    range.points().saturating_mul(point_bytes(kernel) as u64 + arithmetic)
}

/// How many cells ahead memory is asked for, of which the widest have so many bytes: whole rows unless these are long, so
/// that what lies between rows isn't asked for in place of what is needed.
fn ahead(bytes: usize, row: usize) -> usize {
    let cells = AHEAD_BYTES / bytes;
    let rows = (cells + row / 2) / row.max(1);
    if rows == 0 { cells } else { rows * row }
}

/// The fields that are read and have a cell for every point; others have next to none.
fn read(kernel: &KernelDesc) -> impl Iterator<Item = &'static FieldDesc> {
    kernel.fields.iter().filter(|field| !field.reads.is_empty() && field.axes == WHOLE)
}

/// The bytes of a point in all results that have a value for every point.
fn result_bytes(kernel: &KernelDesc) -> usize {
    let values = kernel.outputs.iter().filter(|output| output.role == Role::Value);
    values.map(|output| output.ty.bytes()).sum()
}

/// The bytes of all fields and results, for each point.
fn point_bytes(kernel: &KernelDesc) -> usize {
    read(kernel).map(|field| field.ty.bytes()).sum::<usize>() + result_bytes(kernel)
}

/// As many rows as fill half of a thread's second-level cache with the planes that are in use at a time.
fn tile_rows(kernel: &KernelDesc, range: &Box3, caches: &Caches) -> usize {
    let [cells, rows, _] = range.size();
    let planes = |halo: [[u32; 2]; 3]| halo[2].into_iter().map(|planes| planes as usize).sum::<usize>() + 1;
    if read(kernel).all(|field| planes(field.halo()) == 1) {
        // Nothing is read again from another plane.
        return rows.max(1);
    }
    let fields = read(kernel).map(|field| planes(field.halo()) * field.ty.bytes()).sum::<usize>();
    let in_use = (fields + result_bytes(kernel)).saturating_mul(cells);
    (caches.own_bytes / 2 / in_use.max(1)).clamp(LEAST_ROWS, rows.max(LEAST_ROWS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AVERAGE, BROKEN, FOLDED, HEAT, LOPSIDED, TALLY};

    const CACHES: Caches = Caches { own_bytes: 1 << 20, last_bytes: 32 << 20 };

    fn sweep(kernel: &KernelDesc, size: [i64; 3]) -> Sweep {
        let row = size[0] as usize + 8;
        Sweep::new(kernel, &Box3 { lo: [1; 3], hi: size.map(|cells| cells + 1) }, row, false, &CACHES)
    }

    #[test]
    fn tiles_fill_half_of_the_second_level_with_the_planes_in_use() {
        let rows = |kernel, size| sweep(kernel, size).tile_rows;
        // 3 planes of u and kappa, one of f and one of the result, 8 bytes each.
        assert_eq!(rows(&HEAT, [256, 256, 256]), (512 << 10) / (8 * 8 * 256));
        assert_eq!(rows(&HEAT, [512, 512, 512]), 16);
        // 3 planes of a field and one of the result, 4 bytes each.
        assert_eq!(rows(&AVERAGE, [512, 512, 512]), 64);
        // 2 planes of one field, one of the other and two results.
        assert_eq!(rows(&LOPSIDED, [512, 512, 512]), 25);
        assert_eq!(rows(&HEAT, [1 << 20, 512, 4]), LEAST_ROWS);
        assert_eq!(rows(&HEAT, [8, 10, 512]), 10);
        assert_eq!(rows(&HEAT, [8, 1, 512]), LEAST_ROWS);
        // No field is read in two planes.
        assert_eq!(rows(&BROKEN, [512, 512, 512]), 512);
    }

    #[test]
    fn memory_is_asked_for_ahead_where_caches_do_not_hold_all() {
        let ahead = |kernel, size| sweep(kernel, size).ahead;
        // One, two and four rows, then less than the half of one.
        assert_eq!(ahead(&HEAT, [256, 256, 256]), 264);
        assert_eq!(ahead(&AVERAGE, [256, 256, 256]), 2 * 264);
        assert_eq!(ahead(&HEAT, [64, 64, 128]), 0);
        assert_eq!(ahead(&HEAT, [64, 64, 129]), 4 * 72);
        assert_eq!(ahead(&HEAT, [633, 64, 64]), 320);
    }

    #[test]
    fn results_go_past_the_caches_when_no_cache_holds_the_launch() {
        let stream = |size| sweep(&HEAT, size).stream;
        assert!(!stream([64, 128, 128]) && stream([65, 128, 128]));
        let range = Box3 { lo: [0; 3], hi: [256; 3] };
        assert!(!Sweep::new(&HEAT, &range, 264, true, &CACHES).stream);
        assert!(stream([1 << 20, 1 << 20, 1 << 20]));
    }

    #[test]
    fn folds_and_fields_of_fewer_axes_take_no_room() {
        // A value, a whole field; neither the sum and the largest value nor the fields along X and along Y and Z.
        assert_eq!(point_bytes(&FOLDED), 8);
        assert_eq!(point_bytes(&TALLY), 5);
        let sweep = sweep(&FOLDED, [512, 512, 512]);
        assert_eq!((sweep.tile_rows, sweep.ahead, sweep.stream), (512, 520, true));
    }

    #[test]
    fn little_work_is_left_to_one_thread() {
        let shared = |kernel, size: [i64; 3]| is_worth(kernel, &Box3 { lo: [0; 3], hi: size }, WORTH_SHARING);
        assert!(!shared(&HEAT, [3; 3]) && !shared(&HEAT, [8; 3]) && shared(&HEAT, [16; 3]));
        assert!(!shared(&AVERAGE, [64, 1, 8]) && shared(&AVERAGE, [64; 3]));
        assert!(shared(&HEAT, [1 << 20; 3]));
        assert_eq!(threads(&HEAT, &Box3 { lo: [0; 3], hi: [64; 3] }, 6), 6);
    }

    #[test]
    fn nothing_to_do_is_no_fault() {
        let sweep = Sweep::new(&HEAT, &Box3::EMPTY, 0, false, &CACHES);
        assert_eq!(sweep, Sweep { tile_rows: LEAST_ROWS, ahead: 0, stream: false });
    }
}
