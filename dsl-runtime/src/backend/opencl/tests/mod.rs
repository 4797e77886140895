//! The OpenCL devices of this machine, driven through the `Device` trait.
//!
//! A platform that is missing is skipped loudly; `POLYHALO_REQUIRE` (a comma list of `pocl`, `intel`, `oclgrind`,
//! `clang`, or `all`) turns the skip into a failure.

mod folds;
mod limits;
mod machine;
mod numerics;
mod origins;
mod several;
mod transfers;
mod types;

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use super::device::{How, OpenClDevice};
use super::discover::{Facts, Found, discover};
use super::mapping::Entry;
use super::program;
use super::{FORM_VARIABLE, OpenCl, form_of};
use crate::backend::{
    Affinity, Backend, BufferId, Cells, Device, DeviceInfo, DeviceKind, EventId, KernelId, Launch, OpenClForm,
    OpenOptions, Place, QueueId, host, reference,
};
use crate::error::Error;
use crate::geometry::Box3;
use crate::kernel::{DeviceCode, FieldDesc, HostCode, KernelDesc, OutputDesc, ParamDesc, Read, ScalarType};
use crate::layout::{Layout, Region, Strides, WHOLE};

/// The kernel of these tests, in the form that the emitters write: `real` is the type of cells.
macro_rules! heat_source {
    ($real:literal, $pragma:literal) => {
        concat!(
            $pragma,
            "#pragma OPENCL FP_CONTRACT OFF\n",
            "#define PARAMETERS global ",
            $real,
            " *restrict out, global const ",
            $real,
            " *restrict u, global const ",
            $real,
            " *restrict kappa, ulong out_at, ulong u_at, ulong kappa_at, ",
            $real,
            " beta, uint damped, long sy, long sz, int lo_x, int lo_y, int lo_z, int n_x, int n_y, int n_z, int parity\n",
            "#define U(d) u[u_at + p + (d)]\n",
            "#define KAPPA(d) kappa[kappa_at + p + (d)]\n",
            "#define FLUX(d) (KAPPA(d) + KAPPA(0)) * (U(d) - U(0))\n",
            "#define POINT \\\n",
            "    const ",
            $real,
            " sum = FLUX(1) + FLUX(-1) + FLUX(sy) + FLUX(-sy) + FLUX(sz) + FLUX(-sz); \\\n",
            "    out[out_at + p] = damped ? (U(0) + beta * sum) / sqrt(KAPPA(0)) : U(0) + beta * sum;\n",
            "kernel void heat(PARAMETERS) {\n",
            "    const long x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);\n",
            "    if (x >= n_x || y >= n_y || z >= n_z) return;\n",
            "    const long p = (lo_x + x) + (lo_y + y) * sy + (lo_z + z) * sz;\n",
            "    POINT\n",
            "}\n",
            "kernel void heat_rows(PARAMETERS) {\n",
            "    const long y = get_global_id(0), z = get_global_id(1);\n",
            "    if (y >= n_y || z >= n_z) return;\n",
            "    for (long x = 0; x < n_x; x++) {\n",
            "        const long p = (lo_x + x) + (lo_y + y) * sy + (lo_z + z) * sz;\n",
            "        POINT\n",
            "    }\n",
            "}\n",
        )
    };
}

const SOURCE: &str = heat_source!("double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
const SOURCE_F32: &str = heat_source!("float", "");

const STAR: &[Read] = &[
    Read { offset: [0, 0, 0], line: 1 },
    Read { offset: [1, 0, 0], line: 1 },
    Read { offset: [-1, 0, 0], line: 1 },
    Read { offset: [0, 1, 0], line: 1 },
    Read { offset: [0, -1, 0], line: 1 },
    Read { offset: [0, 0, 1], line: 1 },
    Read { offset: [0, 0, -1], line: 1 },
];

/// A descriptor whose code for the CPU is never called.
const fn describe(ty: ScalarType, opencl: &'static str, spirv: &'static [u8]) -> KernelDesc {
    fn point(_: &mut reference::PointArgs<'_>) {}
    unsafe fn points(_: &host::BoxArgs<'_>) {}
    let (fields, params, outputs): (&[FieldDesc], &[ParamDesc], &[OutputDesc]) = match ty {
        ScalarType::F64 => (
            &[
                FieldDesc { name: "u", ty: ScalarType::F64, axes: WHOLE, reads: STAR },
                FieldDesc { name: "kappa", ty: ScalarType::F64, axes: WHOLE, reads: STAR },
            ],
            &[ParamDesc { name: "beta", ty: ScalarType::F64 }, ParamDesc { name: "damped", ty: ScalarType::Bool }],
            const { &[OutputDesc::value(ScalarType::F64)] },
        ),
        _ => (
            &[
                FieldDesc { name: "u", ty: ScalarType::F32, axes: WHOLE, reads: STAR },
                FieldDesc { name: "kappa", ty: ScalarType::F32, axes: WHOLE, reads: STAR },
            ],
            &[ParamDesc { name: "beta", ty: ScalarType::F32 }, ParamDesc { name: "damped", ty: ScalarType::Bool }],
            const { &[OutputDesc::value(ScalarType::F32)] },
        ),
    };
    KernelDesc {
        name: "heat",
        module: module_path!(),
        file: file!(),
        line: 1,
        fields,
        params,
        outputs,
        loads: 14,
        flops: 26,
        bytes: 24,
        contract: false,
        uses_index: false,
        vendor_functions: &[],
        reference: point,
        host: HostCode { baseline: points, avx2: None, avx512: None },
        code: DeviceCode {
            gpu: &[],
            cuda: "",
            ptx: None,
            hip: "",
            hip_objects: &[],
            opencl,
            spirv,
            entry: "heat",
            rows_entry: "heat_rows",
            paired_origins: false,
        },
    }
}

/// A kernel in both forms; the module is only a header.
pub(super) static HEAT: KernelDesc =
    describe(ScalarType::F64, SOURCE, &[3, 2, 0x23, 7, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
/// A kernel on f32 in one form.
pub(super) static HEAT_F32: KernelDesc = describe(ScalarType::F32, SOURCE_F32, &[]);

/// The facts of a GPU that can do everything.
pub(super) fn fictitious() -> Facts {
    Facts {
        info: DeviceInfo {
            backend: "opencl",
            ordinal: 0,
            name: "fictitious".into(),
            platform: "none".into(),
            notes: Vec::new(),
            kind: DeviceKind::Gpu,
            pci: None,
            fp64: true,
            units: 4,
            memory_bytes: 1 << 30,
        },
        version: "OpenCL 3.0".into(),
        driver: "0".into(),
        max_alloc_bytes: 1 << 28,
        takes_source: true,
        takes_spirv: true,
        rounds_f32_division: true,
        max_argument_bytes: 1024,
        max_group: 256,
        max_items: [256; 3],
    }
}

fn skip(why: &str) {
    // Not `eprintln!`, which the harness hides.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

fn is_required(tool: &str) -> bool {
    let list = env::var("POLYHALO_REQUIRE").unwrap_or_default();
    list.split(',').map(str::trim).any(|item| item == tool || item == "all")
}

/// `found`, or a loud skip, or a failure where the tool is required.
fn available<T>(tool: &str, found: Option<T>, why: &str) -> Option<T> {
    match found {
        Some(found) => Some(found),
        None if is_required(tool) => panic!("POLYHALO_REQUIRE asks for {tool}: {why}"),
        None => {
            skip(&format!("{tool}: {why}"));
            None
        }
    }
}

/// The device of a platform, with everything that was found.
fn platform(tool: &str, part: &str) -> Option<(Found, Vec<Found>)> {
    let (all, absent) = discover();
    let found = all.iter().find(|found| found.facts.info.platform.contains(part)).cloned();
    let reasons: Vec<_> = absent.iter().map(|absent| absent.sentence()).collect();
    available(tool, found, &format!("no platform is called `{part}`; {}", reasons.join("; "))).map(|found| (found, all))
}

/// The platforms that this machine may offer.
const PLATFORMS: [(&str, &str); 2] = [("pocl", "Portable Computing Language"), ("intel", "Intel")];

/// Calls `test` for each device that is there.
fn on_each_platform(mut test: impl FnMut(&Found, &[Found])) {
    let known = PLATFORMS.into_iter().filter_map(|(tool, part)| platform(tool, part));
    known.for_each(|(found, all)| test(&found, &all));
}

/// The kernel with a module that clang made from its source, when clang can.
fn heat_with_module() -> Option<&'static KernelDesc> {
    static KERNEL: OnceLock<Option<&'static KernelDesc>> = OnceLock::new();
    let kernel = *KERNEL.get_or_init(|| {
        let clang = env::var_os("POLYHALO_CLANG").unwrap_or_else(|| "clang-22".into());
        let folder = env::temp_dir().join(format!("polyhalo-opencl-{}", std::process::id()));
        fs::create_dir_all(&folder).ok()?;
        let (source, module) = (folder.join("heat.cl"), folder.join("heat.spv"));
        fs::write(&source, SOURCE).ok()?;
        let made = Command::new(clang)
            .args([
                "--target=spirv64v1.0-unknown-unknown",
                "-x",
                "cl",
                "-cl-std=CL1.2",
                "-O2",
                "-ffp-contract=off",
                "-c",
            ])
            .args([source.as_os_str(), "-o".as_ref(), module.as_os_str()])
            .status();
        let module = made.is_ok_and(|status| status.success()).then(|| fs::read(&module).ok()).flatten();
        let _ = fs::remove_dir_all(&folder);
        Some(&*Box::leak(Box::new(describe(ScalarType::F64, SOURCE, module?.leak()))))
    });
    available("clang", kernel, "no clang with a SPIR-V target made a module")
}

/// Numbers without a pattern, in 0.5..1.5.
fn noise(count: usize, mut seed: u64) -> Vec<f64> {
    std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        0.5 + (seed >> 11) as f64 / (1_u64 << 53) as f64
    })
    .take(count)
    .collect()
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn values_of(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|value| f64::from_ne_bytes(value.try_into().unwrap())).collect()
}

/// A field on a device: as many values as its buffer holds.
struct Field {
    layout: Layout,
    buffer: BufferId,
}

impl Field {
    fn new(device: &dyn Device, layout: Layout, values: Option<&[f64]>) -> Self {
        let buffer = device.alloc(&layout).unwrap();
        let field = Self { layout, buffer };
        if let Some(values) = values {
            let region = Region::run(0, layout.bytes);
            device.write(QueueId::COMPUTE, Place { buffer, region: &region }, &bytes_of(values)).unwrap();
        }
        field
    }

    fn cells(&self) -> Cells {
        Cells { buffer: self.buffer, origin: self.layout.origin }
    }

    fn values(&self, device: &dyn Device) -> Vec<f64> {
        let region = Region::run(0, self.layout.bytes);
        let mut bytes = vec![0; self.layout.bytes];
        device.read(QueueId::COMPUTE, Place { buffer: self.buffer, region: &region }, &mut bytes).unwrap();
        values_of(&bytes)
    }
}

/// Owned cells `n`, of which a field stores `ghosts` more on every side.
fn layout(n: [usize; 3], ghosts: i64, strides: Strides) -> Layout {
    let cells = Box3 { lo: [-ghosts; 3], hi: n.map(|n| n as i64 + ghosts) };
    Layout::new(ScalarType::F64, WHOLE, cells, strides).unwrap()
}

const BETA: f64 = 0.098_765_432_1;

/// The kernel in Rust.
fn expected(n: [usize; 3], damped: bool, u: (&Layout, &[f64]), kappa: (&Layout, &[f64]), out: (&Layout, &mut [f64])) {
    let at = |(layout, values): (&Layout, &[f64]), cell: [i64; 3]| values[layout.index(cell).unwrap()];
    for z in 0..n[2] as i64 {
        for y in 0..n[1] as i64 {
            for x in 0..n[0] as i64 {
                let here = [x, y, z];
                let flux = |d: [i64; 3]| {
                    let there = [x + d[0], y + d[1], z + d[2]];
                    (at(kappa, there) + at(kappa, here)) * (at(u, there) - at(u, here))
                };
                let sum = flux([1, 0, 0])
                    + flux([-1, 0, 0])
                    + flux([0, 1, 0])
                    + flux([0, -1, 0])
                    + flux([0, 0, 1])
                    + flux([0, 0, -1]);
                let new = at(u, here) + BETA * sum;
                out.1[out.0.index(here).unwrap()] = if damped { new / at(kappa, here).sqrt() } else { new };
            }
        }
    }
}

/// Runs the kernel on a device over all owned cells and compares every cell of the buffer with the Rust loop, bit for
/// bit.
fn check_heat(device: &dyn Device, kernel: KernelId, n: [usize; 3], damped: bool) {
    let strides = Strides::for_cells(n.map(|n| n + 4), 8).unwrap();
    let (u_layout, kappa_layout, out_layout) = (layout(n, 1, strides), layout(n, 2, strides), layout(n, 0, strides));
    let values = |layout: &Layout, seed| noise(layout.bytes / 8, seed);
    let (u_values, kappa_values, mut out_values) =
        (values(&u_layout, 1), values(&kappa_layout, 2), values(&out_layout, 3));
    let u = Field::new(device, u_layout, Some(&u_values));
    let kappa = Field::new(device, kappa_layout, Some(&kappa_values));
    let out = Field::new(device, out_layout, Some(&out_values));
    let launch = Launch {
        kernel,
        outputs: &[out.cells()],
        fields: &[u.cells(), kappa.cells()],
        scalars: &[BETA.to_bits(), u64::from(damped)],
        strides,
        global: [0; 3],
        shift: [0; 3],
        parity: None,
        range: Box3 { lo: [0; 3], hi: n.map(|n| n as i64) },
    };
    device.launch(QueueId::COMPUTE, &launch).unwrap();
    let found = out.values(device);
    expected(n, damped, (&u_layout, &u_values), (&kappa_layout, &kappa_values), (&out_layout, &mut out_values));
    let wrong = found.iter().zip(&out_values).filter(|(found, expected)| found.to_bits() != expected.to_bits()).count();
    assert_eq!(wrong, 0, "{n:?} damped {damped} on {}", device.summary());
    [u, kappa, out].iter().for_each(|field| device.free(field.buffer));
}

/// Sizes with axes of one cell, primes, and groups plus and minus one.
const SIZES: [[usize; 3]; 9] =
    [[1, 1, 1], [1, 7, 13], [17, 1, 5], [31, 33, 1], [2, 3, 97], [64, 4, 3], [65, 5, 4], [63, 3, 5], [257, 37, 3]];

fn open(found: &Found, all: &[Found], form: OpenClForm, entry: Option<Entry>) -> OpenClDevice {
    let how = How { form, entry, trace: false, affinity: Affinity::Near };
    OpenClDevice::open(&[found], all, how).unwrap().pop().unwrap()
}

/// A device opened several times at once, for OpenCL C.
fn open_parts(found: &Found, all: &[Found], count: usize, trace: bool) -> Vec<OpenClDevice> {
    OpenClDevice::open(
        &vec![found; count],
        all,
        How { form: OpenClForm::Source, trace, entry: None, affinity: Affinity::Near },
    )
    .unwrap()
}
