//! Kernels written by hand and devices made up for the tests of this crate.

mod faulty;
mod folds;
mod mixed;
mod notebook;

use crate::backend::host::BoxArgs;
use crate::backend::reference::{PointArgs, View};
use crate::boundary::Faces;
use crate::error::Result;
use crate::geometry::Box3;
use crate::halo::widest_range;
use crate::kernel::{DeviceCode, FieldDesc, HostCode, KernelDesc, OutputDesc, ParamDesc, Read, ScalarType};
use crate::layout::WHOLE;
use crate::offset::{HERE, Offset, X, Y, Z};
use crate::shape::Shape;

pub(crate) use faulty::{Calls, Faulty, KINDS};
pub(crate) use folds::{COPY, FOLDED, RELAX, SIZES, SPY, TALLY, check_parity, check_shift, run_folded};
pub(crate) use mixed::{BUNDLE, CHECKED, MIXED, Nine, PLACES, mixed, run_mixed};
pub(crate) use notebook::{notebooks, notebooks_at, row};

const NO_CODE: DeviceCode = DeviceCode {
    entry: "",
    rows_entry: "",
    paired_origins: false,
    gpu: &[],
    cuda: "",
    ptx: None,
    hip: "",
    hip_objects: &[],
    opencl: "",
    spirv: &[],
};

const fn read(x: i32, y: i32, z: i32, line: u32) -> Read {
    Read { offset: [x, y, z], line }
}

const fn field(name: &'static str, ty: ScalarType, reads: &'static [Read]) -> FieldDesc {
    FieldDesc { name, ty, axes: WHOLE, reads }
}

const fn value(ty: ScalarType) -> OutputDesc {
    OutputDesc::value(ty)
}

const SEVEN: &[Read] = &[
    read(0, 0, 0, 11),
    read(1, 0, 0, 12),
    read(-1, 0, 0, 12),
    read(0, 1, 0, 13),
    read(0, -1, 0, 13),
    read(0, 0, 1, 14),
    read(0, 0, -1, 14),
];

/// The heat step of the design.
pub(crate) static HEAT: KernelDesc = KernelDesc {
    name: "heat",
    module: "testing",
    file: "src/testing.rs",
    line: 10,
    fields: &[
        field("u", ScalarType::F64, SEVEN),
        field("f", ScalarType::F64, &[read(0, 0, 0, 11)]),
        field("kappa", ScalarType::F64, SEVEN),
    ],
    params: &[ParamDesc { name: "beta", ty: ScalarType::F64 }],
    outputs: &[value(ScalarType::F64)],
    loads: 15,
    flops: 26,
    bytes: 32,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let value = heat(&at.field(0), &at.field(1), &at.field(2), at.scalar(0));
        at.store(0, value);
    },
    host: HostCode { baseline: heat_box, avx2: None, avx512: None },
    code: NO_CODE,
};

fn heat(u: &View<'_, f64>, f: &View<'_, f64>, kappa: &View<'_, f64>, beta: f64) -> f64 {
    let flux = |d: Offset| (kappa[d] + kappa[HERE]) * (u[d] - u[HERE]);
    u[HERE] + f[HERE] + beta * (flux(X) + flux(-X) + flux(Y) + flux(-Y) + flux(Z) + flux(-Z))
}

/// Calls `row` with Y and Z of every row of the box.
fn each_row(args: &BoxArgs<'_>, mut row: impl FnMut(isize, isize)) {
    let [_, ny, nz] = args.size.map(|n| n as isize);
    for k in 0..nz {
        (0..ny).for_each(|j| row(args.lo[1] + j, args.lo[2] + k));
    }
}

/// The X of every point of a row that is updated.
fn updated(args: &BoxArgs<'_>, y: isize, z: isize) -> impl Iterator<Item = isize> {
    let parity = args.parity as isize;
    let row = args.lo[0]..args.lo[0] + args.size[0] as isize;
    row.filter(move |x| parity < 0 || (x + y + z) & 1 == parity)
}

/// The default range of a kernel on fields of one extent with fixed boundaries.
pub(crate) fn plain_range(kernel: &KernelDesc, cells: [usize; 3]) -> Result<Box3> {
    let shape = Shape { name: "f".into(), ty: ScalarType::F64, axes: [true; 3], cells, faces: Faces::default() };
    widest_range(kernel, &vec![&shape; kernel.fields.len()], &shape.whole())
}

/// Calls `point` with the distance in cells of every point of the box that is updated from local cell (0, 0, 0).
fn each(args: &BoxArgs<'_>, mut point: impl FnMut(isize)) {
    each_row(args, |y, z| updated(args, y, z).for_each(|x| point(x + y * args.sy + z * args.sz)));
}

/// # Safety
/// As for every native kernel.
unsafe fn heat_box(args: &BoxArgs<'_>) {
    let (u, f, kappa) = (args.fields[0].cast::<f64>(), args.fields[1].cast::<f64>(), args.fields[2].cast::<f64>());
    let (out, beta) = (args.outputs[0].cast::<f64>(), f64::from_bits(args.scalars[0]));
    each(args, |c| {
        // SAFETY: the caller promises that the footprint lies in the buffers and that the types are right.
        unsafe {
            let flux = |d: isize| (*kappa.offset(c + d) + *kappa.offset(c)) * (*u.offset(c + d) - *u.offset(c));
            let sum = flux(1) + flux(-1) + flux(args.sy) + flux(-args.sy) + flux(args.sz) + flux(-args.sz);
            *out.offset(c) = *u.offset(c) + *f.offset(c) + beta * sum;
        }
    });
}

const fn neighbours() -> [Read; 27] {
    let mut reads = [read(0, 0, 0, 0); 27];
    let mut n = 0;
    while n < 27 {
        reads[n] = read(n as i32 % 3 - 1, n as i32 / 3 % 3 - 1, n as i32 / 9 - 1, 21 + n as u32);
        n += 1;
    }
    reads
}

/// The mean of 27 cells in single precision.
pub(crate) static AVERAGE: KernelDesc = KernelDesc {
    name: "average",
    module: "testing",
    file: "src/testing.rs",
    line: 20,
    fields: &[field("a", ScalarType::F32, &neighbours())],
    params: &[],
    outputs: &[value(ScalarType::F32)],
    loads: 27,
    flops: 27,
    bytes: 8,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let value = average(&at.field(0));
        at.store(0, value);
    },
    host: HostCode { baseline: average_box, avx2: None, avx512: None },
    code: NO_CODE,
};

fn average(a: &View<'_, f32>) -> f32 {
    let mut sum = 0.0;
    for n in 0..27 {
        sum += a[(n % 3 - 1) * X + (n / 3 % 3 - 1) * Y + (n / 9 - 1) * Z];
    }
    sum / 27.0
}

/// # Safety
/// As for every native kernel.
unsafe fn average_box(args: &BoxArgs<'_>) {
    let (a, out) = (args.fields[0].cast::<f32>(), args.outputs[0].cast::<f32>());
    each(args, |c| {
        let mut sum = 0.0;
        for n in 0..27 {
            let d = (n % 3 - 1) + (n / 3 % 3 - 1) * args.sy + (n / 9 - 1) * args.sz;
            // SAFETY: as in `heat_box`.
            sum += unsafe { *a.offset(c + d) };
        }
        // SAFETY: as in `heat_box`.
        unsafe { *out.offset(c) = sum / 27.0 };
    });
}

/// Two results from a footprint that reaches two cells up X and one cell down Z, and a switch.
pub(crate) static LOPSIDED: KernelDesc = KernelDesc {
    name: "lopsided",
    module: "testing",
    file: "src/testing.rs",
    line: 40,
    fields: &[
        field("a", ScalarType::F64, &[read(2, 0, 0, 41), read(0, 0, -1, 42)]),
        field("b", ScalarType::F64, &[read(0, 0, 0, 43)]),
    ],
    params: &[ParamDesc { name: "plus", ty: ScalarType::Bool }],
    outputs: &[value(ScalarType::F64), value(ScalarType::F64)],
    loads: 3,
    flops: 3,
    bytes: 32,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: |at| {
        let values = lopsided(&at.field(0), &at.field(1), at.scalar(0));
        at.store(0, values);
    },
    host: HostCode { baseline: lopsided_box, avx2: None, avx512: None },
    code: NO_CODE,
};

fn lopsided(a: &View<'_, f64>, b: &View<'_, f64>, plus: bool) -> (f64, f64) {
    let sum = a[2 * X] + a[-Z];
    (if plus { sum + b[HERE] } else { sum - b[HERE] }, sum * 0.5)
}

/// # Safety
/// As for every native kernel.
unsafe fn lopsided_box(args: &BoxArgs<'_>) {
    let (a, b) = (args.fields[0].cast::<f64>(), args.fields[1].cast::<f64>());
    let (first, second) = (args.outputs[0].cast::<f64>(), args.outputs[1].cast::<f64>());
    each(args, |c| {
        // SAFETY: as in `heat_box`.
        unsafe {
            let sum = *a.offset(c + 2) + *a.offset(c - args.sz);
            let b = *b.offset(c);
            *first.offset(c) = if args.scalars[0] != 0 { sum + b } else { sum - b };
            *second.offset(c) = sum * 0.5;
        }
    });
}

/// A kernel that panics on the reference device where its field is negative and on the host device always.
pub(crate) static BROKEN: KernelDesc = KernelDesc {
    name: "broken",
    module: "testing",
    file: "src/testing.rs",
    line: 60,
    fields: &[field("a", ScalarType::F64, &[read(0, 0, 0, 61)])],
    params: &[],
    outputs: &[value(ScalarType::F64)],
    loads: 1,
    flops: 0,
    bytes: 16,
    contract: false,
    uses_index: false,
    vendor_functions: &[],
    reference: broken_point,
    host: HostCode { baseline: broken_box, avx2: None, avx512: None },
    code: NO_CODE,
};

fn broken_point(at: &mut PointArgs<'_>) {
    let value: f64 = at.field(0)[HERE];
    assert!(value >= 0.0, "a negative value");
    at.store(0, value);
}

/// # Safety
/// None: it touches nothing.
unsafe fn broken_box(_: &BoxArgs<'_>) {
    panic!("a broken kernel");
}

/// A cheap sequence of values without pattern, from 0 to 1.
pub(crate) fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A folder of a test's own, removed at its end.
pub(crate) struct Folder(std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("polyhalo-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
