//! Kernels over every type of cell and scalar, for the tests of this crate.

use super::{NO_CODE, each, field, noise, read, value};
use crate::backend::host::BoxArgs;
use crate::backend::reference::{PointArgs, View};
use crate::backend::{Cells, Device, Launch, Place, QueueId};
use crate::geometry::Box3;
use crate::kernel::{DeviceCode, HostCode, KernelDesc, OutputDesc, ParamDesc, ScalarType};
use crate::layout::{Layout, Strides, WHOLE};
use crate::offset::{HERE, X, Y, Z};
use crate::source::Point;

/// A value of each type, in the order of [`ScalarType::ALL`].
pub(crate) type Nine = (f64, f32, i64, i32, i8, u64, u32, u8, bool);

const fn param(name: &'static str, ty: ScalarType) -> ParamDesc {
    ParamDesc { name, ty }
}

/// A value of each type.
const VALUES: [OutputDesc; 9] = {
    let mut values = [value(ScalarType::F64); 9];
    let mut n = 0;
    while n < 9 {
        values[n] = value(ScalarType::ALL[n]);
        n += 1;
    }
    values
};

/// A field, a scalar and a result of each type, and the indices of the point. Each field is read at another offset.
pub(crate) static MIXED: KernelDesc = KernelDesc {
    name: "mixed",
    module: "testing",
    file: "src/testing/mixed.rs",
    line: 20,
    fields: &[
        field("a", ScalarType::F64, &[read(1, 0, 0, 21)]),
        field("b", ScalarType::F32, &[read(-1, 0, 0, 22)]),
        field("c", ScalarType::I64, &[read(0, 1, 0, 23)]),
        field("d", ScalarType::I32, &[read(0, -1, 0, 24)]),
        field("e", ScalarType::I8, &[read(0, 0, 1, 25)]),
        field("f", ScalarType::U64, &[read(0, 0, -1, 26)]),
        field("g", ScalarType::U32, &[read(0, 0, 0, 27)]),
        field("h", ScalarType::U8, &[read(2, 1, 0, 28)]),
        field("m", ScalarType::Bool, &[read(0, 0, 0, 29)]),
    ],
    params: &[
        param("sa", ScalarType::F64),
        param("sb", ScalarType::F32),
        param("sc", ScalarType::I64),
        param("sd", ScalarType::I32),
        param("se", ScalarType::I8),
        param("sf", ScalarType::U64),
        param("sg", ScalarType::U32),
        param("sh", ScalarType::U8),
        param("sm", ScalarType::Bool),
    ],
    outputs: &VALUES,
    loads: 9,
    flops: 3,
    bytes: 78,
    contract: false,
    uses_index: true,
    vendor_functions: &["exp", "sin"],
    reference: mixed_point,
    host: HostCode { baseline: mixed_box, avx2: None, avx512: None },
    code: DeviceCode { entry: "mixed", rows_entry: "mixed_rows", opencl: MIXED_SOURCE, ..NO_CODE },
};

/// The kernel for values that were read: `p` are the indices of the point.
pub(crate) fn mixed(cells: Nine, scalars: Nine, p: [i32; 3]) -> Nine {
    let (a, b, c, d, e, f, g, h, m) = cells;
    let (sa, sb, sc, sd, se, sf, sg, sh, sm) = scalars;
    (
        a * sa + f64::from(p[0]),
        b + sb,
        c.wrapping_mul(sc),
        d ^ sd.wrapping_add(p[1]),
        e.wrapping_add(se),
        f.wrapping_sub(sf),
        g >> (sg & 31),
        h.wrapping_mul(sh),
        (m != sm) ^ (p[2] & 1 == 0),
    )
}

fn mixed_point(at: &mut PointArgs<'_>) {
    let (a, b, c): (View<'_, f64>, View<'_, f32>, View<'_, i64>) = (at.field(0), at.field(1), at.field(2));
    let (d, e, f): (View<'_, i32>, View<'_, i8>, View<'_, u64>) = (at.field(3), at.field(4), at.field(5));
    let (g, h, m): (View<'_, u32>, View<'_, u8>, View<'_, bool>) = (at.field(6), at.field(7), at.field(8));
    let cells = (a[X], b[-X], c[Y], d[-Y], e[Z], f[-Z], g[HERE], h[2 * X + Y], m[HERE]);
    let (sa, sb, sc, sd, se) = (at.scalar(0), at.scalar(1), at.scalar(2), at.scalar(3), at.scalar(4));
    let scalars = (sa, sb, sc, sd, se, at.scalar(5), at.scalar(6), at.scalar(7), at.scalar(8));
    let Point { i, j, k } = at.point();
    at.store(0, mixed(cells, scalars, [i, j, k]));
}

/// # Safety
/// As for every native kernel.
unsafe fn mixed_box(args: &BoxArgs<'_>) {
    let (fields, outputs, words) = (args.fields, args.outputs, args.scalars);
    let scalars = (
        f64::from_bits(words[0]),
        f32::from_bits(words[1] as u32),
        words[2] as i64,
        words[3] as i32,
        words[4] as i8,
        words[5],
        words[6] as u32,
        words[7] as u8,
        words[8] != 0,
    );
    let (sy, sz) = (args.sy, args.sz);
    each(args, |c| {
        let z = c.div_euclid(sz);
        let y = (c - z * sz).div_euclid(sy);
        let local = [c - z * sz - y * sy, y, z];
        let p = std::array::from_fn(|axis| args.global[axis] + local[axis] as i32);
        // SAFETY: the caller promises that the footprint lies in the buffers and that the types are right.
        unsafe {
            let cells = (
                *fields[0].cast::<f64>().offset(c + 1),
                *fields[1].cast::<f32>().offset(c - 1),
                *fields[2].cast::<i64>().offset(c + sy),
                *fields[3].cast::<i32>().offset(c - sy),
                *fields[4].cast::<i8>().offset(c + sz),
                *fields[5].cast::<u64>().offset(c - sz),
                *fields[6].cast::<u32>().offset(c),
                *fields[7].offset(c + 2 + sy),
                *fields[8].offset(c) != 0,
            );
            let values = mixed(cells, scalars, p);
            *outputs[0].cast::<f64>().offset(c) = values.0;
            *outputs[1].cast::<f32>().offset(c) = values.1;
            *outputs[2].cast::<i64>().offset(c) = values.2;
            *outputs[3].cast::<i32>().offset(c) = values.3;
            *outputs[4].cast::<i8>().offset(c) = values.4;
            *outputs[5].cast::<u64>().offset(c) = values.5;
            *outputs[6].cast::<u32>().offset(c) = values.6;
            *outputs[7].offset(c) = values.7;
            *outputs[8].offset(c) = u8::from(values.8);
        }
    });
}

/// The kernel in OpenCL C.
const MIXED_SOURCE: &str = r"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define PARAMETERS \
    global double *ra, global float *rb, global long *rc, global int *rd, global char *re, global ulong *rf, \
    global uint *rg, global uchar *rh, global uchar *rm, \
    global const double *a, global const float *b, global const long *c, global const int *d, global const char *e, \
    global const ulong *f, global const uint *g, global const uchar *h, global const uchar *m, \
    ulong ra_at, ulong rb_at, ulong rc_at, ulong rd_at, ulong re_at, ulong rf_at, ulong rg_at, ulong rh_at, \
    ulong rm_at, ulong a_at, ulong b_at, ulong c_at, ulong d_at, ulong e_at, ulong f_at, ulong g_at, ulong h_at, \
    ulong m_at, double sa, float sb, long sc, int sd, int se, ulong sf, uint sg, uint sh, uint sm, long sy, long sz, \
    int lo_x, int lo_y, int lo_z, int n_x, int n_y, int n_z, int parity, int g_x, int g_y, int g_z
#define POINT \
    const long p = (lo_x + x) + (lo_y + y) * sy + (lo_z + z) * sz; \
    const int i = g_x + lo_x + (int)x, j = g_y + lo_y + (int)y, k = g_z + lo_z + (int)z; \
    ra[ra_at + p] = a[a_at + p + 1] * sa + (double)i; \
    rb[rb_at + p] = b[b_at + p - 1] + sb; \
    rc[rc_at + p] = (long)((ulong)c[c_at + p + sy] * (ulong)sc); \
    rd[rd_at + p] = d[d_at + p - sy] ^ (int)((uint)sd + (uint)j); \
    re[re_at + p] = (char)(uchar)((uchar)e[e_at + p + sz] + (uchar)se); \
    rf[rf_at + p] = f[f_at + p - sz] - sf; \
    rg[rg_at + p] = g[g_at + p] >> (sg & 31u); \
    rh[rh_at + p] = (uchar)(h[h_at + p + 2 + sy] * sh); \
    rm[rm_at + p] = ((m[m_at + p] != sm) != ((k & 1) == 0)) ? 1 : 0;
kernel void mixed(PARAMETERS) {
    const long x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x >= n_x || y >= n_y || z >= n_z) return;
    POINT
}
kernel void mixed_rows(PARAMETERS) {
    const long y = get_global_id(0), z = get_global_id(1);
    if (y >= n_y || z >= n_z) return;
    for (long x = 0; x < n_x; x++) { POINT }
}
";

/// Scalars for [`MIXED`], as bits: no two bytes are alike.
const SCALARS: [u64; 9] = [
    0.3_f64.to_bits(),
    (-1.5_f32).to_bits() as u64,
    -7_000_000_011_i64 as u64,
    -2_000_000_001_i32 as u32 as u64,
    0x9c,
    u64::MAX - 4,
    37,
    0xc9,
    1,
];

/// Runs [`MIXED`] over `n` points of subdomains with ghosts; `global` is the global index of local cell (0, 0, 0). Gives
/// all cells of all results.
pub(crate) fn run_mixed(device: &dyn Device, n: [usize; 3], global: [i32; 3]) -> Vec<Vec<u8>> {
    let strides = Strides::for_cells(n.map(|n| n + 4), 4).unwrap();
    let range = Box3 { lo: [0; 3], hi: n.map(|n| n as i64) };
    let stored = Box3 { lo: [-1, -2, -1], hi: range.hi.map(|hi| hi + 2) };
    let make = |(number, ty): (usize, ScalarType)| {
        let layout = Layout::new(ty, WHOLE, stored, strides).unwrap();
        let buffer = device.alloc(&layout).unwrap();
        let region = layout.region(&stored).unwrap();
        let mut random = noise(number as u64 + 1);
        let cell = |value: f64| match ty {
            ScalarType::F64 => (value - 0.5).to_ne_bytes().to_vec(),
            ScalarType::F32 => (value as f32 - 0.5).to_ne_bytes().to_vec(),
            ScalarType::Bool => vec![u8::from(value < 0.5)],
            _ => value.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[..ty.bytes()].to_vec(),
        };
        let data: Vec<u8> = (0..stored.points()).flat_map(|_| cell(random())).collect();
        device.write(QueueId::COMPUTE, Place { buffer, region: &region }, &data).unwrap();
        (Cells { buffer, origin: layout.origin }, region)
    };
    let made: Vec<_> = ScalarType::ALL.into_iter().chain(ScalarType::ALL).enumerate().map(make).collect();
    let cells: Vec<_> = made.iter().map(|(cells, _)| *cells).collect();
    let (outputs, fields) = cells.split_at(9);
    let kernel = device.load(&MIXED).unwrap();
    let scalars = &SCALARS;
    let launch = Launch { kernel, outputs, fields, shift: [0; 3], scalars, strides, global, range, parity: None };
    device.launch(QueueId::COMPUTE, &launch).unwrap();
    device.finish(QueueId::COMPUTE).unwrap();
    let results = made[..9].iter().map(|(cells, region)| {
        let mut data = vec![0; region.bytes()];
        device.read(QueueId::COMPUTE, Place { buffer: cells.buffer, region }, &mut data).unwrap();
        data
    });
    let results = results.collect();
    cells.iter().for_each(|cells| device.free(cells.buffer));
    results
}

/// Sizes for [`run_mixed`] with axes of one cell and primes, each with a place in a grid.
pub(crate) const PLACES: [([usize; 3], [i32; 3]); 6] = [
    ([1, 1, 1], [0, 0, 0]),
    ([1, 7, 3], [5, 0, 1]),
    ([31, 1, 2], [0, 100, 7]),
    ([64, 5, 3], [1 << 20, 3, 2_000_000_001]),
    ([67, 3, 5], [i32::MAX - 66, 1, 0]),
    ([130, 2, 1], [3, 9, 4]),
];

/// Three fields taken at once, three results given at once.
pub(crate) static BUNDLE: KernelDesc = KernelDesc {
    name: "bundle",
    module: "testing",
    file: "src/testing/mixed.rs",
    line: 200,
    fields: &[
        field("f[0]", ScalarType::I32, &[read(-1, 0, 0, 201)]),
        field("f[1]", ScalarType::I32, &[read(0, 0, 0, 202)]),
        field("f[2]", ScalarType::I32, &[read(0, 0, 0, 203)]),
    ],
    params: &[],
    outputs: &[value(ScalarType::I32), value(ScalarType::I32), value(ScalarType::I32)],
    loads: 3,
    flops: 0,
    bytes: 24,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let values = bundle(&[at.field(0), at.field(1), at.field(2)]);
        at.store(0, values);
    },
    host: HostCode { baseline: bundle_box, avx2: None, avx512: None },
    code: NO_CODE,
};

fn bundle(f: &[View<'_, i32>; 3]) -> [i32; 3] {
    [f[1][HERE], f[2][HERE].wrapping_mul(3), f[0][-X]]
}

/// # Safety
/// As for every native kernel.
unsafe fn bundle_box(args: &BoxArgs<'_>) {
    each(args, |c| {
        // SAFETY: as in `mixed_box`.
        unsafe {
            *args.outputs[0].cast::<i32>().offset(c) = *args.fields[1].cast::<i32>().offset(c);
            *args.outputs[1].cast::<i32>().offset(c) = (*args.fields[2].cast::<i32>().offset(c)).wrapping_mul(3);
            *args.outputs[2].cast::<i32>().offset(c) = *args.fields[0].cast::<i32>().offset(c - 1);
        }
    });
}

/// Integers divided and looked up as Rust does it, for the reference device alone: it panics on some.
pub(crate) static CHECKED: KernelDesc = KernelDesc {
    name: "checked",
    module: "testing",
    file: "src/testing/mixed.rs",
    line: 300,
    fields: &[field("a", ScalarType::I32, &[read(0, 0, 0, 301)])],
    params: &[],
    outputs: &[value(ScalarType::I32), value(ScalarType::I32)],
    loads: 1,
    flops: 0,
    bytes: 12,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let values = checked(&at.field(0));
        at.store(0, values);
    },
    host: HostCode { baseline: untouched, avx2: None, avx512: None },
    code: NO_CODE,
};

fn checked(a: &View<'_, i32>) -> (i32, i32) {
    const TABLE: [i32; 4] = [5, 6, 7, 8];
    let value = a[HERE];
    (100 / value, TABLE[value.unsigned_abs() as usize % 5])
}

/// # Safety
/// None: it touches nothing.
unsafe fn untouched(_: &BoxArgs<'_>) {}
