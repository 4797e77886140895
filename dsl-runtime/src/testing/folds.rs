//! Kernels that fold values over rows, update every second point, or read fields of fewer axes, for the tests of this
//! crate.

use super::{NO_CODE, SEVEN, each, each_row, field, noise, read, updated, value};
use crate::backend::host::BoxArgs;
use crate::backend::reference::View;
use crate::backend::{BufferId, Cells, Device, Launch, Place, QueueId};
use crate::geometry::Box3;
use crate::kernel::{DeviceCode, FieldDesc, HostCode, KernelDesc, OutputDesc, ParamDesc, Role, ScalarType};
use crate::layout::{Layout, ROWS, Region, Strides, WHOLE};
use crate::offset::{HERE, X, Y, Z};
use crate::reduction::{Accumulator, Largest, Least, Max, Min, Sum, Total};

const fn folded(role: Role, ty: ScalarType) -> OutputDesc {
    OutputDesc { ty, role }
}

/// A new value, the sum of what changed and the largest value, from a field, a field along X and one along Y and Z.
pub(crate) static FOLDED: KernelDesc = KernelDesc {
    name: "folded",
    module: "testing",
    file: "src/testing/folds.rs",
    line: 20,
    fields: &[
        field("a", ScalarType::F32, &[read(0, 0, 0, 21), read(1, 0, 0, 22), read(0, -1, 0, 23)]),
        FieldDesc {
            axes: [true, false, false],
            ..field("s", ScalarType::F32, &[read(0, 0, 0, 24), read(-1, 0, 0, 24)])
        },
        FieldDesc { axes: ROWS, ..field("w", ScalarType::F64, &[read(0, 0, 0, 25), read(0, 1, 1, 26)]) },
    ],
    params: &[ParamDesc { name: "c", ty: ScalarType::F32 }],
    outputs: &[value(ScalarType::F32), folded(Role::Sum, ScalarType::F32), folded(Role::Max, ScalarType::F32)],
    loads: 7,
    flops: 6,
    bytes: 8,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let values = folded_point(&at.field(0), &at.field(1), &at.field(2), at.scalar(0));
        at.store(0, values);
    },
    host: HostCode { baseline: folded_box, avx2: None, avx512: None },
    code: DeviceCode { rows_entry: "folded_rows", opencl: FOLDED_SOURCE, ..NO_CODE },
};

fn folded_point(a: &View<'_, f32>, s: &View<'_, f32>, w: &View<'_, f64>, c: f32) -> (f32, Sum<f32>, Max<f32>) {
    let new = (a[X] - a[-Y]) * s[-X] + c * s[HERE] + (w[HERE] * w[Y + Z]) as f32;
    (new, Sum(new - a[HERE]), Max(new))
}

/// # Safety
/// As for every native kernel.
unsafe fn folded_box(args: &BoxArgs<'_>) {
    let (a, s, w) = (args.fields[0].cast::<f32>(), args.fields[1].cast::<f32>(), args.fields[2].cast::<f64>());
    let (out, change) = (args.outputs[0].cast::<f32>(), args.outputs[1].cast::<f64>());
    let (largest, c) = (args.outputs[2].cast::<f32>(), f32::from_bits(args.scalars[0] as u32));
    let rows = args.sz / args.sy;
    each_row(args, |y, z| {
        let (mut sum, mut max) = (Total::<f32>::new(), Largest::<f32>::new());
        for x in updated(args, y, z) {
            let p = x + y * args.sy + z * args.sz;
            // SAFETY: the caller promises that the footprint lies in the buffers and that the types are right.
            unsafe {
                let w = *w.offset(y + z * rows) * *w.offset(y + 1 + (z + 1) * rows);
                let new = (*a.offset(p + 1) - *a.offset(p - args.sy)) * *s.offset(x - 1) + c * *s.offset(x) + w as f32;
                let old = *a.offset(p);
                *out.offset(p) = new;
                sum.add(x, new - old);
                max.add(x, new);
            }
        }
        // SAFETY: as above.
        unsafe {
            *change.offset(y + z * rows) = sum.row();
            *largest.offset(y + z * rows) = max.row();
        }
    });
}

/// The kernel in OpenCL C.
const FOLDED_SOURCE: &str = r"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
void add(double *sum, double *lost, double value) {
    const double next = *sum + value, part = next - *sum;
    *lost += (*sum - (next - part)) + (value - part);
    *sum = next;
}
kernel void folded_rows(global float *out, global double *change, global float *largest, global const float *a,
    global const float *s, global const double *w, ulong out_at, ulong change_at, ulong largest_at, ulong a_at,
    ulong s_at, ulong w_at, float c, long sy, long sz, int lo_x, int lo_y, int lo_z, int n_x, int n_y, int n_z,
    int parity) {
    const long y = get_global_id(0), z = get_global_id(1);
    if (y >= n_y || z >= n_z) return;
    const long j = lo_y + y, k = lo_z + z, rows = sz / sy, row = j + k * rows;
    double sum[8], lost[8];
    for (int lane = 0; lane < 8; lane++) sum[lane] = lost[lane] = 0.0;
    float most = -INFINITY;
    for (long i = lo_x; i < lo_x + n_x; i++) {
        if (parity >= 0 && ((i + j + k) & 1) != parity) continue;
        const long p = i + j * sy + k * sz;
        const float weight = (float)(w[w_at + row] * w[w_at + row + 1 + rows]);
        const float new_value = (a[a_at + p + 1] - a[a_at + p - sy]) * s[s_at + i - 1] + c * s[s_at + i] + weight;
        const float step = new_value - a[a_at + p];
        add(&sum[i & 7], &lost[i & 7], (double)step);
        const float plain = new_value + 0.0f;
        if (plain > most || plain != plain) most = plain;
        out[out_at + p] = new_value;
    }
    double total = 0.0, rounded = 0.0;
    for (int lane = 0; lane < 8; lane++) {
        add(&total, &rounded, sum[lane]);
        rounded += lost[lane];
    }
    change[change_at + row] = rounded - rounded == 0.0 ? total + rounded : total;
    largest[largest_at + row] = most;
}
";

/// Nothing but folds: the sum of a field of small integers and the least value of another.
pub(crate) static TALLY: KernelDesc = KernelDesc {
    name: "tally",
    module: "testing",
    file: "src/testing/folds.rs",
    line: 100,
    fields: &[field("a", ScalarType::I8, &[read(0, 0, 0, 101)]), field("b", ScalarType::U32, &[read(0, 0, 0, 102)])],
    params: &[],
    outputs: &[folded(Role::Sum, ScalarType::I8), folded(Role::Min, ScalarType::U32)],
    loads: 2,
    flops: 0,
    bytes: 5,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let (a, b): (View<'_, i8>, View<'_, u32>) = (at.field(0), at.field(1));
        let values = (Sum(a[HERE]), Min(b[HERE]));
        at.store(0, values);
    },
    host: HostCode { baseline: tally_box, avx2: None, avx512: None },
    code: NO_CODE,
};

/// # Safety
/// As for every native kernel.
unsafe fn tally_box(args: &BoxArgs<'_>) {
    let (a, b) = (args.fields[0].cast::<i8>(), args.fields[1].cast::<u32>());
    let (sum_of, least_of) = (args.outputs[0].cast::<i64>(), args.outputs[1].cast::<u32>());
    each_row(args, |y, z| {
        let (mut sum, mut least) = (Total::<i8>::new(), Least::<u32>::new());
        for x in updated(args, y, z) {
            let p = x + y * args.sy + z * args.sz;
            // SAFETY: as in `folded_box`.
            unsafe {
                sum.add(x, *a.offset(p));
                least.add(x, *b.offset(p));
            }
        }
        let row = y + z * (args.sz / args.sy);
        // SAFETY: as in `folded_box`.
        unsafe {
            *sum_of.offset(row) = sum.row();
            *least_of.offset(row) = least.row();
        }
    });
}

/// A point moves towards the mean of its neighbours: in place when every second point is left out.
pub(crate) static RELAX: KernelDesc = KernelDesc {
    name: "relax",
    module: "testing",
    file: "src/testing/folds.rs",
    line: 150,
    fields: &[field("u", ScalarType::F64, SEVEN)],
    params: &[ParamDesc { name: "weight", ty: ScalarType::F64 }],
    outputs: &[value(ScalarType::F64)],
    loads: 7,
    flops: 9,
    bytes: 16,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let (u, weight): (View<'_, f64>, f64) = (at.field(0), at.scalar(0));
        let value = u[HERE] + weight * (u[X] + u[-X] + u[Y] + u[-Y] + u[Z] + u[-Z] - 6.0 * u[HERE]);
        at.store(0, value);
    },
    host: HostCode { baseline: relax_box, avx2: None, avx512: None },
    code: DeviceCode { entry: "relax", rows_entry: "relax_rows", opencl: RELAX_SOURCE, ..NO_CODE },
};

/// # Safety
/// As for every native kernel.
unsafe fn relax_box(args: &BoxArgs<'_>) {
    let (u, out, weight) =
        (args.fields[0].cast::<f64>(), args.outputs[0].cast::<f64>(), f64::from_bits(args.scalars[0]));
    let (sy, sz) = (args.sy, args.sz);
    each(args, |p| {
        // SAFETY: as in `folded_box`.
        unsafe {
            let at = |d: isize| *u.offset(p + d);
            let sum = at(1) + at(-1) + at(sy) + at(-sy) + at(sz) + at(-sz) - 6.0 * at(0);
            *out.offset(p) = at(0) + weight * sum;
        }
    });
}

/// The kernel in OpenCL C.
const RELAX_SOURCE: &str = r"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define PARAMETERS global double *out, global const double *u, ulong out_at, ulong u_at, double weight, long sy, \
    long sz, int lo_x, int lo_y, int lo_z, int n_x, int n_y, int n_z, int parity
#define U(d) u[u_at + p + (d)]
#define POINT(skip) \
    const long i = lo_x + x, j = lo_y + y, k = lo_z + z, p = i + j * sy + k * sz; \
    if (parity >= 0 && ((i + j + k) & 1) != parity) skip; \
    out[out_at + p] = U(0) + weight * (U(1) + U(-1) + U(sy) + U(-sy) + U(sz) + U(-sz) - 6.0 * U(0));
kernel void relax(PARAMETERS) {
    const long x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x >= n_x || y >= n_y || z >= n_z) return;
    POINT(return)
}
kernel void relax_rows(PARAMETERS) {
    const long y = get_global_id(0), z = get_global_id(1);
    if (y >= n_y || z >= n_z) return;
    for (long x = 0; x < n_x; x++) { POINT(continue) }
}
";

/// The value of another point, wherever the launch shifts the reads to.
pub(crate) static COPY: KernelDesc = KernelDesc {
    name: "copy",
    module: "testing",
    file: "src/testing/folds.rs",
    line: 200,
    fields: &[field("u", ScalarType::F64, &[read(0, 0, 0, 201)])],
    params: &[],
    outputs: &[value(ScalarType::F64)],
    loads: 1,
    flops: 0,
    bytes: 16,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let value: f64 = at.field(0)[HERE];
        at.store(0, value);
    },
    host: HostCode { baseline: copy_box, avx2: None, avx512: None },
    code: DeviceCode { entry: "copy", rows_entry: "copy_rows", opencl: COPY_SOURCE, ..NO_CODE },
};

/// # Safety
/// As for every native kernel.
unsafe fn copy_box(args: &BoxArgs<'_>) {
    let (u, out) = (args.fields[0].cast::<f64>(), args.outputs[0].cast::<f64>());
    // SAFETY: as in `folded_box`.
    each(args, |p| unsafe { *out.wrapping_offset(p) = *u.wrapping_offset(p) });
}

/// Gives 1 everywhere where results are asked to go past the caches.
pub(crate) static SPY: KernelDesc =
    KernelDesc { name: "spy", line: 290, host: HostCode { baseline: spy_box, ..COPY.host }, code: NO_CODE, ..COPY };

/// # Safety
/// As for every native kernel.
unsafe fn spy_box(args: &BoxArgs<'_>) {
    let out = args.outputs[0].cast::<f64>();
    // SAFETY: as in `folded_box`.
    each(args, |p| unsafe { *out.offset(p) = f64::from(u8::from(args.stream)) });
}

/// The kernel in OpenCL C.
const COPY_SOURCE: &str = r"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define PARAMETERS global double *out, global const double *u, ulong out_at, ulong u_at, long sy, long sz, int lo_x, \
    int lo_y, int lo_z, int n_x, int n_y, int n_z, int parity
#define POINT \
    const long p = (lo_x + x) + (lo_y + y) * sy + (lo_z + z) * sz; \
    out[out_at + p] = u[u_at + p];
kernel void copy(PARAMETERS) {
    const long x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x >= n_x || y >= n_y || z >= n_z) return;
    POINT
}
kernel void copy_rows(PARAMETERS) {
    const long y = get_global_id(0), z = get_global_id(1);
    if (y >= n_y || z >= n_z) return;
    for (long x = 0; x < n_x; x++) { POINT }
}
";

/// Runs a kernel over `n` points of subdomains with two ghosts on every side, filled with noise; all results have memory
/// of their own. Gives all cells of all results and then of all fields.
pub(crate) fn run_folded(
    device: &dyn Device,
    kernel: &'static KernelDesc,
    n: [usize; 3],
    parity: Option<u8>,
) -> Vec<Vec<u8>> {
    let stored = Box3 { lo: [-2; 3], hi: n.map(|n| n as i64 + 2) };
    let strides = Strides::for_cells(stored.size(), 4).unwrap();
    let range = Box3 { lo: [0; 3], hi: n.map(|n| n as i64) };
    let mut number = 0;
    let mut make = |ty: ScalarType, axes: [bool; 3]| {
        let layout = Layout::new(ty, axes, stored, strides).unwrap();
        let buffer = device.alloc(&layout).unwrap();
        let region = layout.region(&stored).unwrap();
        number += 1;
        let mut random = noise(number);
        let cell = |value: f64| match ty {
            ScalarType::F64 => (value - 0.5).to_ne_bytes().to_vec(),
            ScalarType::F32 => (value as f32 - 0.5).to_ne_bytes().to_vec(),
            _ => value.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[..ty.bytes()].to_vec(),
        };
        let data: Vec<u8> = (0..layout.cells.points()).flat_map(|_| cell(random())).collect();
        device.write(QueueId::COMPUTE, Place { buffer, region: &region }, &data).unwrap();
        (Cells { buffer, origin: layout.origin }, region)
    };
    let axes = |output: &OutputDesc| if output.role == Role::Value { WHOLE } else { ROWS };
    let outputs: Vec<_> = kernel.outputs.iter().map(|output| make(output.stored(), axes(output))).collect();
    let fields: Vec<_> = kernel.fields.iter().map(|field| make(field.ty, field.axes)).collect();
    let cells = |made: &[(Cells, _)]| made.iter().map(|(cells, _)| *cells).collect::<Vec<_>>();
    let scalar = |param: &ParamDesc| match param.ty {
        ScalarType::F32 => u64::from(0.3_f32.to_bits()),
        _ => 0.3_f64.to_bits(),
    };
    let launch = Launch {
        kernel: device.load(kernel).unwrap(),
        outputs: &cells(&outputs),
        fields: &cells(&fields),
        shift: [0; 3],
        scalars: &kernel.params.iter().map(scalar).collect::<Vec<_>>(),
        strides,
        global: [0; 3],
        range,
        parity,
    };
    device.launch(QueueId::COMPUTE, &launch).unwrap();
    device.finish(QueueId::COMPUTE).unwrap();
    let results = outputs.iter().chain(&fields).map(|(cells, region)| {
        let mut data = vec![0; region.bytes()];
        device.read(QueueId::COMPUTE, Place { buffer: cells.buffer, region }, &mut data).unwrap();
        data
    });
    let results = results.collect();
    outputs.iter().chain(&fields).for_each(|(cells, _)| device.free(cells.buffer));
    results
}

/// Sizes for the checks of this file: axes of one cell, primes, lanes and vectors plus and minus one.
pub(crate) const SIZES: [[usize; 3]; 8] =
    [[1, 1, 1], [2, 3, 1], [7, 3, 2], [8, 1, 5], [9, 4, 3], [33, 5, 2], [67, 2, 3], [130, 3, 4]];

/// A field of noise with one ghost below and two above along each axis, or with none below.
struct Noise {
    layout: Layout,
    buffer: BufferId,
    values: Vec<f64>,
}

impl Noise {
    fn new(device: &dyn Device, n: [usize; 3], below: i64) -> Self {
        let stored = Box3 { lo: [-below; 3], hi: n.map(|n| n as i64 + 2) };
        let strides = Strides::for_cells(stored.size(), 8).unwrap();
        let layout = Layout::new(ScalarType::F64, WHOLE, stored, strides).unwrap();
        let buffer = device.alloc(&layout).unwrap();
        let mut random = noise(7);
        let values: Vec<f64> = (0..layout.bytes / 8).map(|_| random() - 0.5).collect();
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let region = Region::run(0, layout.bytes);
        device.write(QueueId::COMPUTE, Place { buffer, region: &region }, &data).unwrap();
        Self { layout, buffer, values }
    }

    /// Launches a kernel that reads the field and writes it.
    fn update(&self, device: &dyn Device, kernel: &'static KernelDesc, range: Box3, how: ([i64; 3], Option<u8>)) {
        let (shift, parity) = how;
        let launch = Launch {
            kernel: device.load(kernel).unwrap(),
            outputs: &[Cells { buffer: self.buffer, origin: self.layout.origin }],
            fields: &[Cells { buffer: self.buffer, origin: self.layout.shifted_origin(shift) }],
            shift,
            scalars: &vec![0.3_f64.to_bits(); kernel.params.len()],
            strides: self.layout.strides,
            global: [0; 3],
            range,
            parity,
        };
        device.launch(QueueId::COMPUTE, &launch).unwrap();
    }

    fn at(&self, cell: [i64; 3]) -> f64 {
        self.values[self.layout.index(cell).unwrap()]
    }

    fn set(&mut self, cell: [i64; 3], value: f64) {
        let index = self.layout.index(cell).unwrap();
        self.values[index] = value;
    }

    /// Compares what the device has with what was computed here, and gives the memory back.
    fn check(self, device: &dyn Device, what: &str) {
        let (region, buffer) = (Region::run(0, self.layout.bytes), self.buffer);
        let mut data = vec![0; self.layout.bytes];
        device.read(QueueId::COMPUTE, Place { buffer, region: &region }, &mut data).unwrap();
        device.free(buffer);
        let expected = self.values.iter().flat_map(|value| value.to_ne_bytes());
        assert!(data.into_iter().eq(expected), "{what} on {}", device.summary());
    }
}

fn points(range: Box3) -> impl Iterator<Item = [i64; 3]> {
    let Box3 { lo, hi } = range;
    (lo[2]..hi[2]).flat_map(move |z| (lo[1]..hi[1]).flat_map(move |y| (lo[0]..hi[0]).map(move |x| [x, y, z])))
}

/// Checks updates of every second point, in place, against a loop.
pub(crate) fn check_parity(device: &dyn Device, n: [usize; 3]) {
    let mut field = Noise::new(device, n, 1);
    let range = Box3 { lo: [0; 3], hi: n.map(|n| n as i64) };
    for parity in [1, 0, 0] {
        field.update(device, &RELAX, range, ([0; 3], Some(parity)));
        for point in points(range).filter(|point| point.iter().sum::<i64>() & 1 == i64::from(parity)) {
            let at = |axis: usize, by: i64| {
                let mut cell = point;
                cell[axis] += by;
                field.at(cell)
            };
            let sum = at(0, 1) + at(0, -1) + at(1, 1) + at(1, -1) + at(2, 1) + at(2, -1) - 6.0 * at(0, 0);
            let value = at(0, 0) + 0.3 * sum;
            field.set(point, value);
        }
    }
    field.check(device, &format!("every second of {n:?}"));
}

/// Checks ghosts that are filled from the other side of the field they belong to, by shifted reads.
pub(crate) fn check_shift(device: &dyn Device, n: [usize; 3]) {
    for below in [1, 0] {
        let mut field = Noise::new(device, n, below);
        for axis in 0..3 {
            let cells = n[axis] as i64;
            // The ghosts of an axis extend over those of the axes before.
            let Box3 { mut lo, mut hi } = field.layout.cells;
            (lo[axis], hi[axis]) = (-below, 0);
            let low = (Box3 { lo, hi }, cells);
            (lo[axis], hi[axis]) = (cells, (cells + 2).min(2 * cells));
            let high = (Box3 { lo, hi }, -cells);
            for (ghosts, by) in [low, high] {
                let mut shift = [0; 3];
                shift[axis] = by;
                field.update(device, &COPY, ghosts, (shift, None));
                for point in points(ghosts) {
                    let mut from = point;
                    from[axis] += by;
                    let value = field.at(from);
                    field.set(point, value);
                }
            }
        }
        field.check(device, &format!("the ghosts of {n:?} with {below} below"));
    }
}
