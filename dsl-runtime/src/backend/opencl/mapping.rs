//! Which entry point a device runs and in which work-groups: pure functions of facts.
//!
//! Every group size is explicit and the global size is rounded up to it; kernels guard against the points outside.

use crate::backend::DeviceKind;
use crate::kernel::DeviceCode;

/// The entry points of every kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// One work-item per point: global ids are X, Y and Z.
    Points,
    /// One work-item per row along X: global ids are Y and Z.
    Rows,
}

impl Entry {
    /// The name of the entry point in a kernel's code.
    pub(super) fn name(self, code: &DeviceCode) -> &'static str {
        match self {
            Entry::Points => code.entry,
            Entry::Rows => code.rows_entry,
        }
    }

    /// What a work-item does, for reports.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Entry::Points => "one point per work-item",
            Entry::Rows => "one row per work-item",
        }
    }
}

/// What the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The kind of the device.
    pub(super) kind: DeviceKind,
    /// Whether it runs neighbouring work-items as one vector, as GPUs and Intel's CPU compiler do.
    pub(super) vectorises_groups: bool,
    /// The most work-items in a group.
    pub(super) group: usize,
    /// The most work-items in a group along each axis.
    pub(super) items: [usize; 3],
}

/// The work of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    axes: usize,
    global: [usize; 3],
    local: [usize; 3],
}

impl Grid {
    /// Work-items along each axis; multiples of [`Grid::local`].
    pub(super) fn global(&self) -> &[usize] {
        &self.global[..self.axes]
    }

    /// Work-items of a group along each axis.
    pub(super) fn local(&self) -> &[usize] {
        &self.local[..self.axes]
    }
}

/// The entry point that suits a device.
///
/// Measured with heat in double precision on two cores of a Zen 5 that was busy otherwise, the best of many launches,
/// in GPts/s at
/// 64^3 and 256^3 (groups as in [`grid`]):
///
/// | | one point per item | one row per item |
/// |---|---|---|
/// | PoCL, OpenCL C | 1.3, 0.2 | 2.3, 0.5 |
/// | Intel's CPU runtime, OpenCL C | 2.4, 0.6 | 2.8, 1.0 |
/// | Intel's CPU runtime, SPIR-V | 2.8, 0.9 | 3.0, 1.0 |
pub(super) fn entry(limits: &Limits) -> Entry {
    match limits.kind {
        DeviceKind::Gpu => Entry::Points,
        DeviceKind::Cpu => Entry::Rows,
    }
}

/// Groups for a box of `n` points, none of which is zero. `kernel_group` is the most items that the kernel allows in a
/// group.
pub(super) fn grid(limits: &Limits, entry: Entry, kernel_group: usize, n: [usize; 3]) -> Grid {
    let (axes, work, wanted) = match (entry, limits.kind) {
        // A row per thread is for kernels that fold: as many groups as there can be of full width.
        (Entry::Rows, DeviceKind::Gpu) => (2, [n[1], n[2], 1], [64, 1, 1]),
        // Eight or more items along the first axis would become a vector across rows, which is four times slower.
        (Entry::Rows, DeviceKind::Cpu) if limits.vectorises_groups => (2, [n[1], n[2], 1], [4, 4, 1]),
        (Entry::Rows, DeviceKind::Cpu) => (2, [n[1], n[2], 1], [32, 4, 1]),
        (Entry::Points, DeviceKind::Cpu) => (3, n, [256, 1, 1]),
        (Entry::Points, DeviceKind::Gpu) => (3, n, [64, 4, 1]),
    };
    let hands_on = entry == Entry::Points;
    let local = group(wanted, hands_on, work, limits.group.min(kernel_group), limits.items);
    let global = std::array::from_fn(|axis| work[axis].next_multiple_of(local[axis]));
    Grid { axes, global, local }
}

/// The group nearest to `wanted` that has no more items than the device allows. An axis that has less work than wanted
/// may hand its
/// items on to the next. Powers of two keep the number of different groups, each of which may be compiled anew, small.
fn group(wanted: [usize; 3], hands_on: bool, work: [usize; 3], most: usize, items: [usize; 3]) -> [usize; 3] {
    let mut left = wanted.iter().product::<usize>().min(most.max(1));
    let mut spare = 1;
    std::array::from_fn(|axis| {
        let asked = wanted[axis] * spare;
        let size = power_of_two_up_to(asked.min(left).min(items[axis].max(1)).min(work[axis].next_power_of_two()));
        spare = if hands_on { (asked / size).max(1) } else { 1 };
        left = (left / size).max(1);
        size
    })
}

/// The largest power of two that is at most `n`, which is at least 1.
fn power_of_two_up_to(n: usize) -> usize {
    1 << n.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POCL: Limits = Limits { kind: DeviceKind::Cpu, vectorises_groups: false, group: 4096, items: [4096; 3] };
    const INTEL: Limits = Limits { kind: DeviceKind::Cpu, vectorises_groups: true, group: 8192, items: [8192; 3] };
    const GPU: Limits = Limits { kind: DeviceKind::Gpu, vectorises_groups: true, group: 1024, items: [1024, 1024, 64] };

    #[track_caller]
    fn check(limits: &Limits, n: [usize; 3], global: &[usize], local: &[usize]) {
        let grid = grid(limits, entry(limits), 1024, n);
        assert_eq!((grid.global(), grid.local()), (global, local), "{n:?} on {limits:?}");
    }

    #[test]
    fn each_kind_of_device_gets_the_entry_that_was_fastest_on_it() {
        assert_eq!([POCL, INTEL, GPU].map(|limits| entry(&limits)), [Entry::Rows, Entry::Rows, Entry::Points]);
        let code = &crate::backend::opencl::tests::HEAT.code;
        assert_eq!([Entry::Points.name(code), Entry::Rows.name(code)], ["heat", "heat_rows"]);
    }

    #[test]
    fn large_boxes_get_the_measured_groups() {
        check(&POCL, [256, 256, 256], &[256, 256], &[32, 4]);
        check(&INTEL, [256, 256, 256], &[256, 256], &[4, 4]);
        check(&GPU, [256, 256, 256], &[256, 256, 256], &[64, 4, 1]);
    }

    #[test]
    fn a_gpu_that_folds_gets_a_row_per_thread() {
        for (n, global, local) in [([256; 3], [256, 256], [64, 1]), ([9, 3, 70], [4, 70], [4, 1])] {
            let grid = grid(&GPU, Entry::Rows, 1024, n);
            assert_eq!((grid.global(), grid.local()), (&global[..], &local[..]), "{n:?}");
        }
    }

    #[test]
    fn thin_boxes_get_thin_groups_and_points_hand_their_items_to_the_next_axis() {
        check(&POCL, [100, 1, 300], &[1, 300], &[1, 4]);
        check(&POCL, [100, 300, 1], &[320, 1], &[32, 1]);
        check(&INTEL, [100, 300, 1], &[300, 1], &[4, 1]);
        check(&INTEL, [1, 1, 1], &[1, 1], &[1, 1]);
        check(&GPU, [34, 34, 34], &[64, 36, 34], &[64, 4, 1]);
        check(&GPU, [1, 500, 3], &[1, 512, 3], &[1, 256, 1]);
    }

    #[test]
    fn no_group_is_larger_than_the_device_or_the_kernel_allows() {
        for limits in [POCL, INTEL, GPU] {
            for group in [1, 3, 7, 64, 100, 1 << 20] {
                for items in [[1, 1, 1], [2, 5, 64], [16, 16, 16], [4096, 1, 1]] {
                    for kernel_group in [1, 2, 17, 128, 8192] {
                        for n in [[1, 1, 1], [2, 3, 5], [17, 1, 97], [64, 4, 1], [65, 5, 2], [257, 255, 1]] {
                            let limits = Limits { group, items, ..limits };
                            for entry in [Entry::Points, Entry::Rows] {
                                let grid = grid(&limits, entry, kernel_group, n);
                                let size = grid.local().iter().product::<usize>();
                                assert!(size >= 1 && size <= group.min(kernel_group), "{grid:?} {limits:?}");
                                assert!(
                                    grid.local().iter().zip(items).all(|(&size, most)| size <= most),
                                    "{grid:?} {limits:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn groups_cover_the_box_and_less_than_one_group_more() {
        for n in [[1, 1, 1], [2, 3, 5], [17, 1, 97], [63, 64, 65], [1000, 1, 1]] {
            for limits in [POCL, INTEL, GPU] {
                for (entry, work) in [(Entry::Points, vec![n[0], n[1], n[2]]), (Entry::Rows, vec![n[1], n[2]])] {
                    let grid = grid(&limits, entry, 1024, n);
                    for ((&global, &local), work) in grid.global().iter().zip(grid.local()).zip(work) {
                        assert!(global >= work && global < work + local && global % local == 0, "{grid:?}");
                    }
                }
            }
        }
    }
}
