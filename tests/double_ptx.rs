//! The stand-in that executes PTX against the interpreter: every kernel of the tests, the examples and the cases, and random
//! ones; what NVRTC makes of functions without an exact definition; and how often a marching thread loads.
//!
//! `POLYHALO_RANDOM_KERNELS` and `POLYHALO_RANDOM_SEED` choose the random kernels.

use std::fs;

use polyhalo_codegen::Verified;
use polyhalo_codegen::emit::text::{Walk, gpu_forms};
use polyhalo_codegen::emit::{CudaC, Emitter};
use polyhalo_codegen::front::kernels_of_file;
use polyhalo_codegen::offline::nvrtc;
use polyhalo_codegen::offline::require::{available, built};
use polyhalo_codegen::random::{Limits, kernel};
use polyhalo_double_ptx::{Extent, Kernel, Memory, Module};
use polyhalo_tests::agreement::check_ptx;
use polyhalo_tests::fixtures::{fixtures, folder};
use polyhalo_tests::number;

/// The number and the first seed of the kernels, unless the environment has others.
const KERNELS: u64 = 20;
const SEED: u64 = 1;

#[test]
fn double_has_the_interpreters_bits_for_every_fixture() {
    check_ptx(&fixtures().into_iter().map(|fixture| fixture.kernel).collect::<Vec<_>>());
}

#[test]
fn double_has_the_interpreters_bits_for_random_kernels() {
    let (count, seed) = (number("POLYHALO_RANDOM_KERNELS", KERNELS), number("POLYHALO_RANDOM_SEED", SEED));
    let seeds = (0..count).map(|number| seed.wrapping_add(number));
    check_ptx(&seeds.map(|seed| kernel(&format!("random_{seed}"), seed, Limits::default())).collect::<Vec<_>>());
}

#[test]
fn double_has_the_interpreters_bits_for_examples_and_cases() {
    let kernels: Vec<Verified> = ["examples/kernels", "examples/cases", "dsl-runtime/src/boundary"]
        .iter()
        .flat_map(|at| kernels_in(at))
        .collect();
    assert!(kernels.len() > 20, "there are only {}", kernels.len());
    check_ptx(&kernels);
}

/// All kernels of the Rust files in a folder of the repository.
fn kernels_in(below: &str) -> Vec<Verified> {
    let below = folder().parent().expect("the package lies in the repository").join(below);
    let entries = fs::read_dir(&below).unwrap_or_else(|error| panic!("{}: {error}", below.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    let kernels = files.iter().flat_map(|file| {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let source = kernels_of_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let compiled = source
            .kernels
            .iter()
            .map(|kernel| kernel.compile().unwrap_or_else(|refused| panic!("{:#?}", refused.diagnostics)).kernel);
        compiled.collect::<Vec<_>>()
    });
    kernels.collect()
}

/// A thread that goes along Z keeps the planes that it needs again: of each field it loads each value once.
#[test]
fn double_sees_a_marching_thread_load_each_value_once() {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    let heat = fixtures().into_iter().find(|fixture| fixture.name == "heat").expect("it is a fixture").kernel;
    let source = CudaC.emit(&heat).readable();
    let forms = gpu_forms(&heat);
    let size = [40u64, 6, 9];
    let [row, plane] = [size[0] + 2, (size[0] + 2) * (size[1] + 2)];
    for arch in [70, 90] {
        let ptx = built("heat.cu", nvrtc.ptx(&source, "heat.cu", arch, false));
        let module = Module::parse(&ptx).unwrap_or_else(|error| panic!("{error}:\n{ptx}"));
        for form in &forms {
            let kernel = module.kernel(&form.entry).expect("all forms are there");
            let mut fields = [(); 4].map(|()| Array(vec![1.0; (plane * (size[2] + 2)) as usize]));
            let (memory, starts) = Arrays::of(&mut fields.each_mut());
            let mut arguments: Vec<u64> = starts.iter().map(|start| start + 8 * (1 + row + plane)).collect();
            arguments.extend([0.5f64.to_bits(), row, plane, 0, 0, 0]);
            arguments.extend(size);
            arguments.push(u64::MAX);
            let parts = 2;
            let (layers, block) = if form.walk == Walk::March { (parts, [32, 2, 1]) } else { (5, [32, 2, 2]) };
            let run = kernel.run_noting_loads([2, 3, layers], block, &packed(kernel, &arguments), &memory);
            let (stats, loads) = run.unwrap_or_else(|fault| panic!("{fault}"));
            let [columns, points] = [size[0] * size[1], size.iter().product()];
            assert_eq!(stats.stores, points, "{}", form.entry);
            assert!(loads.values().all(|count| *count == 1), "{} loads a value twice", form.entry);
            // Two fields at seven points and one at one; of the seven, three lie in the column.
            let expected = match form.walk {
                Walk::March => 11 * points + 4 * columns * u64::from(parts),
                Walk::Point | Walk::Row => 15 * points,
            };
            assert_eq!(stats.loads, expected, "loads of {} for compute_{arch}", form.entry);
        }
    }
}

/// Memory that may be touched: one array.
struct Array(Vec<f64>);

impl Array {
    fn address(&mut self) -> u64 {
        self.0.as_mut_ptr().expose_provenance() as u64
    }
}

/// Several of them.
struct Arrays(Vec<Extent>);

impl Arrays {
    fn of(arrays: &mut [&mut Array]) -> (Arrays, Vec<u64>) {
        let addresses: Vec<u64> = arrays.iter_mut().map(|array| array.address()).collect();
        let ends = addresses.iter().zip(arrays).map(|(start, array)| start + size_of_val(array.0.as_slice()) as u64);
        (Arrays(addresses.iter().zip(ends).map(|(start, end)| Extent { start: *start, end }).collect()), addresses)
    }
}

// SAFETY: the tests keep the arrays until the run is over, and touch them only then.
unsafe impl Memory for Arrays {
    fn reach(&self, address: u64, _: usize, _: bool) -> Result<Extent, String> {
        let holds = |extent: &&Extent| (extent.start..extent.end).contains(&address);
        self.0.iter().find(holds).copied().ok_or("no memory is there".to_owned())
    }
}

/// Arguments in the places of a kernel's parameters.
fn packed(kernel: &Kernel, arguments: &[u64]) -> Vec<u8> {
    assert_eq!(kernel.params.len(), arguments.len(), "an argument for each parameter");
    let mut bytes = vec![0; kernel.param_bytes()];
    for (argument, param) in arguments.iter().zip(&kernel.params) {
        bytes[param.offset..][..param.bytes].copy_from_slice(&argument.to_le_bytes()[..param.bytes]);
    }
    bytes
}

/// A function of two numbers in CUDA C, for double and for float, and in Rust.
type Known = (&'static str, &'static str, fn(f64, f64) -> f64);

const FUNCTIONS: [Known; 14] = [
    ("sin(x)", "sinf(x)", |x, _| x.sin()),
    ("cos(x)", "cosf(x)", |x, _| x.cos()),
    ("tan(x)", "tanf(x)", |x, _| x.tan()),
    ("exp(x)", "expf(x)", |x, _| x.exp()),
    ("exp2(x)", "exp2f(x)", |x, _| x.exp2()),
    ("log(fabs(x))", "logf(fabsf(x))", |x, _| x.abs().ln()),
    ("log2(fabs(x))", "log2f(fabsf(x))", |x, _| x.abs().log2()),
    ("log10(fabs(x))", "log10f(fabsf(x))", |x, _| x.abs().log10()),
    ("pow(fabs(x), y)", "powf(fabsf(x), y)", |x, y| x.abs().powf(y)),
    ("atan2(x, y)", "atan2f(x, y)", |x, y| x.atan2(y)),
    ("tanh(x)", "tanhf(x)", |x, _| x.tanh()),
    ("asin(x * 0.03)", "asinf(x * 0.03f)", |x, _| (x * 0.03).asin()),
    ("cbrt(x)", "cbrtf(x)", |x, _| x.cbrt()),
    ("hypot(x, y)", "hypotf(x, y)", |x, y| x.hypot(y)),
];

/// Long sequences with loops, tables, carries and calls: if any part were wrong, the results would be nowhere near.
#[test]
fn double_computes_functions_as_nvrtc_spells_them() {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    const POINTS: usize = 96;
    // From small arguments to some for which pi must be known to many digits.
    let mut x = Array((0..POINTS).map(|point| (point as f64 - 48.0) * 0.61 + 0.13).collect());
    let mut y = Array((0..POINTS).map(|point| (point as f64 * 0.77).rem_euclid(6.0) - 2.9).collect());
    x.0[3] = 1.0e6 + 0.3;
    x.0[5] = 3.0e9;
    let is_far = |point: usize| point == 3 || point == 5;
    let mut out = Array(vec![0.0; POINTS]);
    for (in_double, in_float, expected) in FUNCTIONS {
        for (ty, function, near) in [("double", in_double, 1e-14), ("float", in_float, 4e-6)] {
            let source = format!(
                "extern \"C\" __global__ void f(double *out, const double *a, const double *b) {{\n\
                 int i = threadIdx.x; {ty} x = a[i], y = b[i]; out[i] = {function}; }}\n"
            );
            for arch in [70, 90] {
                let ptx = built(function, nvrtc.ptx(&source, "f.cu", arch, false));
                let module = Module::parse(&ptx).unwrap_or_else(|error| panic!("{function}: {error}:\n{ptx}"));
                let kernel = module.kernel("f").expect("it was compiled");
                let (memory, addresses) = Arrays::of(&mut [&mut out, &mut x, &mut y]);
                let arguments = packed(kernel, &addresses);
                kernel
                    .run([1; 3], [POINTS as u32, 1, 1], &arguments, &memory)
                    .unwrap_or_else(|fault| panic!("{fault}"));
                for point in 0..POINTS {
                    let narrowed = |value: f64| if ty == "float" { f64::from(value as f32) } else { value };
                    let (x, y) = (narrowed(x.0[point]), narrowed(y.0[point]));
                    let (found, expected) = (out.0[point], narrowed(expected(x, y)));
                    let tolerance = near * expected.abs().max(if is_far(point) { 1.0 } else { 1e-2 });
                    let is_near = found == expected
                        || (found - expected).abs() <= tolerance
                        || (found.is_nan() && expected.is_nan());
                    assert!(is_near, "{function} of {x} and {y} for compute_{arch} is {found}, not {expected}");
                }
            }
        }
    }
}

/// Integers in ways that no kernel of the tests has: a table of branches, vectors, arrays of the thread, odd instructions.
#[test]
fn double_runs_branch_tables_vectors_and_local_arrays() {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    let source = r#"
        __device__ __noinline__ int twice(int a, int b) { return a * 2 + b; }
        extern "C" __global__ void f(long long *out, const int4 *in, int s) {
            int i = threadIdx.x;
            int4 v = in[i];
            int r;
            switch (v.x & 15) {
                case 0: r = s; break;
                case 1: r = s * 7 + v.y; break;
                case 2: r = __clz(v.y); break;
                case 3: r = __brev(v.y + s); break;
                case 4: r = __popc(v.z); break;
                case 5: r = v.z / (v.y | 1); break;
                case 6: r = __ffs(v.w); break;
                case 7: r = __byte_perm(v.x, v.y, 0x1634); break;
                case 8: r = v.x >> (s & 63); break;
                case 9: r = twice(v.x, v.z); break;
                default: r = __funnelshift_l(v.x, v.y, s);
            }
            unsigned char bytes[16];
            for (int k = 0; k < 16; ++k) bytes[k] = k * v.y + s;
            out[2 * i] = r + (long long)__mulhi(v.x, v.y);
            ((longlong2 *)out)[i].y = (long long)__umul64hi(((unsigned long long)(unsigned)v.w << 32) | (unsigned)v.x, ~0ull / 3) + bytes[v.z & 15];
        }"#;
    const THREADS: usize = 77;
    let word = |at: usize| (at as u32).wrapping_mul(0x9e37_79b9) ^ (at as u32) << 7;
    let cells: Vec<[u32; 4]> = (0..THREADS).map(|thread| std::array::from_fn(|part| word(4 * thread + part))).collect();
    let expected = |[x, y, z, w]: [u32; 4], s: i32| {
        let [sx, sy, sz] = [x, y, z].map(u32::cast_signed);
        let r = match x & 15 {
            0 => s,
            1 => s.wrapping_mul(7).wrapping_add(sy),
            2 => y.leading_zeros() as i32,
            3 => y.wrapping_add_signed(s).reverse_bits().cast_signed(),
            4 => z.count_ones() as i32,
            5 => sz.wrapping_div(sy | 1),
            6 => {
                if w == 0 {
                    0
                } else {
                    w.trailing_zeros() as i32 + 1
                }
            }
            7 => {
                let bytes = [x.to_le_bytes(), y.to_le_bytes()].concat();
                i32::from_le_bytes([bytes[4], bytes[3], bytes[6], bytes[1]])
            }
            8 => sx >> (s & 63).min(31),
            9 => sx.wrapping_mul(2).wrapping_add(sz),
            _ => (((u64::from(y) << 32 | u64::from(x)) << (s & 31)) >> 32) as i32,
        };
        let high = ((i64::from(sx) * i64::from(sy)) >> 32) as i32;
        let wide = u128::from(u64::from(w) << 32 | u64::from(x)) * u128::from(u64::MAX / 3);
        let byte = (z & 15).wrapping_mul(y).wrapping_add_signed(s) as u8;
        [i64::from(r) + i64::from(high), ((wide >> 64) as i64).wrapping_add(i64::from(byte))]
    };
    for arch in [70, 90] {
        let ptx = built("f.cu", nvrtc.ptx(source, "f.cu", arch, false));
        let module = Module::parse(&ptx).unwrap_or_else(|error| panic!("{error}:\n{ptx}"));
        assert!(ptx.contains("brx.idx") || ptx.contains("call"), "the test has lost its point:\n{ptx}");
        let kernel = module.kernel("f").expect("it was compiled");
        for s in [5, 21] {
            let pairs = |cell: &[u32; 4]| {
                [0, 2].map(|part| f64::from_bits(u64::from(cell[part + 1]) << 32 | u64::from(cell[part])))
            };
            let mut input = Array(cells.iter().flat_map(pairs).collect());
            let mut out = Array(vec![0.0; 2 * THREADS]);
            let (memory, addresses) = Arrays::of(&mut [&mut out, &mut input]);
            let arguments = packed(kernel, &[addresses[0], addresses[1], s as u64]);
            kernel.run([1; 3], [THREADS as u32, 1, 1], &arguments, &memory).unwrap_or_else(|fault| panic!("{fault}"));
            for (thread, cell) in cells.iter().enumerate() {
                let found = [0, 1].map(|part| out.0[2 * thread + part].to_bits().cast_signed());
                assert_eq!(found, expected(*cell, s), "of {cell:x?} and {s} for compute_{arch}");
            }
        }
    }
}
