//! The C texts as they are emitted: how they read, and that they compute every bit as the interpreter does.

mod cpu;
mod kernels;

use cpu::{At, GRID, World, check, inner_points, is_nan};
use kernels::{Build, average, heat};

use super::term::COLUMNS;
use super::{CudaC, HipC, OpenClC};
use crate::emit::{Code, Emitter};
use crate::interpret::interpret;
use crate::ir::{Axis, Binary, Exactness, ExprKind, Function, Kernel, Place, Stmt, Table, Type, Value};
use crate::random::{self, Limits, Random};
use crate::verify::{Verified, binary_result, verify};

const C_EMITTERS: [&dyn Emitter; 3] = [&CudaC, &HipC, &OpenClC];

fn text(emitter: &dyn Emitter, kernel: &Verified) -> String {
    match emitter.emit(kernel) {
        Code::Text(text) => text,
        Code::Words(_) => unreachable!("C is text"),
    }
}

fn world(random: &mut Random, kernel: &Verified) -> World {
    let cells: usize = GRID.iter().product();
    World {
        grids: kernel.fields.iter().map(|field| (0..cells).map(|_| random.value(field.ty)).collect()).collect(),
        scalars: kernel.params.iter().map(|param| random.value(param.ty)).collect(),
    }
}

#[test]
fn kernels_made_by_hand_have_the_interpreters_bits() {
    for kernel in [heat(), average()] {
        let world = world(&mut Random::new(1), &kernel);
        check(&kernel.name.clone(), &[(kernel, world)], 0);
    }
}

#[test]
fn random_kernels_have_the_interpreters_bits() {
    let limits = Limits { reach: 1, ..Limits::default() };
    let mut values = Random::new(1);
    let cases = (0..100).map(|seed| random::kernel(&format!("random_{seed}"), seed, limits));
    let cases: Vec<(Verified, World)> = cases.map(|kernel| (kernel.clone(), world(&mut values, &kernel))).collect();
    let points = || cases.iter().flat_map(|case| inner_points().map(move |point| (case, point)));
    let results: Vec<Value> =
        points().flat_map(|((kernel, world), point)| interpret(kernel, &At(world, point))).collect();
    let numbers = results.iter().filter(|result| !is_nan(**result)).count();
    assert!(4 * numbers > 3 * results.len(), "{numbers} numbers in {} results leave little to compare", results.len());
    check("random", &cases, 0);
}

/// A kernel of one function, which the fields of the world give arguments.
fn of_function(function: Function, ty: Type) -> Option<Verified> {
    function.result(ty)?;
    let mut build = Build::named(&format!("{}_{ty}", function.name()));
    let fields: Vec<_> = (0..function.arity()).map(|number| build.field(&format!("u{number}"), ty)).collect();
    let arguments = fields.into_iter().map(|field| build.load(field, [0; 3])).collect();
    let value = build.call(function, arguments);
    build.result(value);
    Some(build.verified())
}

#[test]
fn every_function_has_the_interpreters_bits_or_nearly() {
    let mut random = Random::new(7);
    let all = Type::ALL.into_iter().flat_map(|ty| Function::ALL.map(|function| (function, ty)));
    for (exactness, units) in [(Exactness::Exact, 0), (Exactness::Vendor, 4)] {
        let functions = all.clone().filter(|(function, _)| function.exactness() == exactness);
        let kernels: Vec<Verified> = functions.filter_map(|(function, ty)| of_function(function, ty)).collect();
        let worlds = |_| kernels.iter().map(|kernel| (kernel.clone(), world(&mut random, kernel))).collect::<Vec<_>>();
        let cases: Vec<(Verified, World)> = (0..4).flat_map(worlds).enumerate().map(renamed).collect();
        check(&format!("{exactness:?}"), &cases, units);
    }
}

/// The same kernel under a name of its own.
fn renamed((number, (kernel, world)): (usize, (Verified, World))) -> (Verified, World) {
    let name = format!("{}_{number}", kernel.name);
    (verify(Kernel { name, ..Kernel::clone(&kernel) }).expect("still sound"), world)
}

/// Every operation and conversion of a type, of all pairs of values that are special for it.
#[test]
fn the_ends_of_ranges_have_the_interpreters_bits() {
    let mut random = Random::new(3);
    let mut cases = Vec::new();
    for ty in Type::ALL {
        for op in Binary::ALL.into_iter().filter(|op| binary_result(*op, ty).is_some()) {
            let mut build = Build::named(&format!("op_{}_{ty}", cases.len()));
            let [a, b] = ["a", "b"].map(|name| build.field(name, ty));
            let [a, b] = [a, b].map(|field| build.load(field, [0; 3]));
            let value = build.binary(op, a, b);
            build.result(value);
            // Constants, too, for which guards are left out.
            for bits in [0, 1, u64::MAX, 3, 1 << (8 * ty.bytes() - 1)] {
                let constant = build.literal(Value::from_bits(ty, bits));
                let (right, left) = (build.binary(op, a, constant), build.binary(op, constant, b));
                build.result(right);
                build.result(left);
            }
            cases.push((build.verified(), special(&mut random, ty)));
        }
        let mut build = Build::named(&format!("casts_{ty}"));
        let [a, _] = ["a", "b"].map(|name| build.field(name, ty));
        let a = build.load(a, [0; 3]);
        for to in Type::ALL.into_iter().filter(|to| to.is_number()) {
            let value = build.cast(a, to);
            build.result(value);
            // What is computed in another type than its own.
            if ty.is_integer() {
                let (one, twice) = (build.literal(Value::from_bits(ty, 1)), build.binary(Binary::Add, a, a));
                let sum = build.binary(Binary::Add, twice, one);
                let value = build.cast(sum, to);
                build.result(value);
            }
        }
        cases.push((build.verified(), special(&mut random, ty)));
    }
    check("ends", &cases, 0);
}

/// Two fields of special values, often the same.
fn special(random: &mut Random, ty: Type) -> World {
    let top = 8 * ty.bytes() as u32 - 1;
    let floats =
        [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1e308]
            .into_iter()
            .chain([7, 8, 31, 32, 63, 64].into_iter().flat_map(|bits| {
                let end = 2.0_f64.powi(bits);
                [end, -end, end - 0.5, -end - 0.5, end - 1.0, -end - 1.0, end.next_down(), -end.next_up()]
            }));
    let values: Vec<Value> = match ty {
        Type::F64 => floats.map(Value::F64).collect(),
        Type::F32 => floats.map(|value| Value::F32(value as f32)).collect(),
        ty => [0, 1, 2, 3, u64::MAX, u64::MAX - 1, 1 << top, (1 << top) - 1, 1 << (top / 2), 0x5a5a_5a5a_5a5a_5a5a]
            .map(|bits| Value::from_bits(ty, bits))
            .into(),
    };
    let cells: usize = GRID.iter().product();
    World { grids: (0..2).map(|_| (0..cells).map(|_| random.pick(&values)).collect()).collect(), scalars: Vec::new() }
}

#[test]
fn lines_are_not_too_long() {
    for kernel in [heat(), average()] {
        for emitter in C_EMITTERS {
            let text = text(emitter, &kernel);
            assert_eq!(text.lines().find(|line| line.len() > COLUMNS), None, "{text}");
        }
    }
}

#[test]
fn heat_reads_well() {
    let cuda = text(&CudaC, &heat());
    let expected = "    const long long c = (lo_x + i) + (lo_y + j) * sy + (lo_z + k) * sz;

    const double flux = (kappa[c + 1] + kappa[c]) * (u[c + 1] - u[c]); // heat.rs:8: flux(X)
    const double flux_2 = (kappa[c - 1] + kappa[c]) * (u[c - 1] - u[c]); // heat.rs:8: flux(-X)
    const double flux_3 = (kappa[c + sy] + kappa[c]) * (u[c + sy] - u[c]); // heat.rs:8: flux(Y)
    const double flux_4 = (kappa[c - sy] + kappa[c]) * (u[c - sy] - u[c]); // heat.rs:8: flux(-Y)
    const double flux_5 = (kappa[c + sz] + kappa[c]) * (u[c + sz] - u[c]); // heat.rs:8: flux(Z)
    const double flux_6 = (kappa[c - sz] + kappa[c]) * (u[c - sz] - u[c]); // heat.rs:8: flux(-Z)
    out[c] = u[c] + f[c] + beta * (flux + flux_2 + flux_3 + flux_4 + flux_5 + flux_6); // heat.rs:9
}
";
    assert!(cuda.ends_with(expected), "{cuda}");
}

#[test]
fn doubles_are_asked_for_only_where_they_occur() {
    let fp64 = "cl_khr_fp64";
    assert!(text(&OpenClC, &heat()).contains(fp64));
    let mut build = Build::named("single");
    let u = build.field("u", Type::F32);
    let output = build.output(Type::F32);
    let (load, tenth) = (build.load(u, [0; 3]), build.literal(Value::F32(0.1)));
    let product = build.binary(Binary::Mul, load, tenth);
    let value = build.expr(ExprKind::Call(Function::Sqrt, vec![product]), Type::F32);
    build.0.body.push(Stmt::Store { output, value, place: Place::default() });
    let kernel = build.verified();
    assert!(!text(&OpenClC, &kernel).contains(fp64));
    assert!(text(&CudaC, &kernel).contains("out[c] = sqrtf(u[c] * 0.1f);"));
    for emitter in C_EMITTERS {
        assert!(!text(emitter, &kernel).contains("double"), "{}", text(emitter, &kernel));
    }
}

#[test]
fn contraction_is_off_unless_allowed() {
    let strict = heat();
    assert!(text(&OpenClC, &strict).contains("FP_CONTRACT OFF"));
    assert!(text(&HipC, &strict).contains("contract(off)"));
    let free = verify(Kernel { contract: true, ..Kernel::clone(&strict) }).expect("still sound");
    assert!(text(&OpenClC, &free).contains("FP_CONTRACT ON"));
    assert!(text(&HipC, &free).contains("contract(fast)"));
}

/// A kernel of integers: the conversions, guards and tables that C needs can be read.
fn automaton() -> Verified {
    let mut build = Build::named("automaton");
    let (cells, alive) = (build.field("cells", Type::I32), build.field("alive", Type::Bool));
    let step = build.param("step", Type::I32);
    let values = [2, 3, 5].map(Value::I32).into();
    let table = build.0.tables.push(Table { name: "primes".into(), ty: Type::I32, values });
    let [left, right] = [-1, 1].map(|side| build.load(cells, [side, 0, 0]));
    let one = build.literal(Value::I32(1));
    let sum = build.binary(Binary::Add, left, right);
    let sum = build.binary(Binary::Add, sum, one);
    let local = build.local("sum", Type::I32, false, None);
    build.0.body.push(Stmt::Let { local, value: Some(sum), place: Place::default() });
    let sum = build.read(local);
    let step = build.expr(ExprKind::Param(step), Type::I32);
    let index = build.binary(Binary::Div, sum, step);
    let index = build.cast(index, Type::U64);
    let prime = build.expr(ExprKind::Element { table, index }, Type::I32);
    let [x, z] = [Axis::X, Axis::Z].map(|axis| build.expr(ExprKind::Index(axis), Type::I32));
    let diagonal = build.binary(Binary::BitXor, x, z);
    let masked = build.binary(Binary::BitAnd, diagonal, prime);
    build.result(masked);
    let alive = build.load(alive, [0; 3]);
    let odd = build.binary(Binary::BitAnd, sum, one);
    let odd = build.binary(Binary::Eq, odd, one);
    let lives = build.binary(Binary::BitXor, alive, odd);
    build.result(lives);
    build.verified()
}

#[test]
fn integers_read_well() {
    let cuda = text(&CudaC, &automaton());
    let expected = "
// a / b; 0 when b is 0, and the least integer by -1 stays as it is.
static inline __device__ int div_i32(int a, int b)
{
    return b == 0 ? 0 : b == -1 ? (int)(-((unsigned int)a)) : a / b;
}

// The lesser number.
static inline __device__ unsigned long long min_u64(unsigned long long a, unsigned long long b)
{
    return b < a ? b : a;
}

extern \"C\" __global__ void __launch_bounds__(256) automaton(
    int *__restrict__ out_0,
    unsigned char *__restrict__ out_1,
    const int *__restrict__ cells,
    const unsigned char *__restrict__ alive,
    const int step,
    const long long sy,
    const long long sz,
    const int lo_x,
    const int lo_y,
    const int lo_z,
    const int n_x,
    const int n_y,
    const int n_z,
    const int g_x,
    const int g_y,
    const int g_z)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const int j = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    const int k = (int)(blockIdx.z * blockDim.z + threadIdx.z);
    if (i >= n_x || j >= n_y || k >= n_z) {
        return;
    }
    const long long c = (lo_x + i) + (lo_y + j) * sy + (lo_z + k) * sz;

    static const int primes[3] = {2, 3, 5};
    const int x = g_x + lo_x + i;
    const int z = g_z + lo_z + k;
    const int sum = (int)((unsigned int)cells[c - 1] + (unsigned int)cells[c + 1] + 1u);
    out_0[c] = (x ^ z) & primes[min_u64((unsigned long long)div_i32(sum, step), 2ull)]; // automaton.rs:9
    out_1[c] = (alive[c] != 0) ^ ((sum & 1) == 1); // automaton.rs:9
}
";
    assert!(cuda.ends_with(expected), "{cuda}");
}

#[test]
fn a_table_with_bits_for_values_is_not_static() {
    for (value, is_static) in [(0.5, true), (f64::INFINITY, false), (f64::NAN, false)] {
        let mut build = Build::named("look_up");
        let at = build.field("at", Type::U64);
        let values = vec![Value::F64(1.0), Value::F64(value)];
        let table = build.0.tables.push(Table { name: "values".into(), ty: Type::F64, values });
        let index = build.load(at, [0; 3]);
        let element = build.expr(ExprKind::Element { table, index }, Type::F64);
        build.result(element);
        assert_eq!(text(&CudaC, &build.verified()).contains("static const double values"), is_static, "{value}");
    }
}

#[test]
fn functions_above_a_kernel_are_only_those_it_calls() {
    for emitter in C_EMITTERS {
        assert!(!text(emitter, &heat()).contains("static inline"));
        let functions = text(emitter, &automaton()).matches("static inline").count();
        assert_eq!(functions, 2, "{}", emitter.target());
    }
}

#[test]
fn hip_declares_what_the_device_library_has() {
    let kernel = of_function(Function::Atan2, Type::F32).expect("a function of floats");
    let hip = text(&HipC, &kernel);
    assert!(hip.contains("extern \"C\" __device__ float __ocml_atan2_f32(float, float);\n"), "{hip}");
    assert!(hip.contains("#define __device__ __attribute__((device))\n#endif\n"), "{hip}");
    let all = Type::ALL.into_iter().flat_map(|ty| Function::ALL.map(|function| (function, ty)));
    for (function, ty) in all.filter(|(function, _)| function.exactness() == Exactness::Exact) {
        let Some(kernel) = of_function(function, ty) else { continue };
        assert!(!text(&HipC, &kernel).contains("__ocml_"), "{function:?} of {ty}");
    }
}
