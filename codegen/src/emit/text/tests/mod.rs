//! The C texts as they are emitted: how they read, and that they compute every bit as the interpreter does.

mod cpu;
mod kernels;
mod world;

use cpu::{check, is_nan};
use kernels::{Build, average, heat};
use world::{ALL, GRID, World};

use super::term::COLUMNS;
use super::{CudaC, HipC, OpenClC, Walk, gpu_forms};
use crate::emit::{Code, Emitter};
use crate::ir::{Axis, Binary, Exactness, ExprKind, Function, Kernel, Place, Role, Stmt, Table, Type, Value};
use crate::random::{self, Limits, Random};
use crate::verify::{Verified, binary_result, verify};

const C_EMITTERS: [&dyn Emitter; 3] = [&CudaC, &HipC, &OpenClC];

fn text(emitter: &dyn Emitter, kernel: &Verified) -> String {
    match emitter.emit(kernel) {
        Code::Text(text) => text,
        Code::Words(_) => unreachable!("C is text"),
    }
}

#[test]
fn kernels_made_by_hand_have_the_interpreters_bits() {
    for kernel in [heat(), average()] {
        let world = World::random(&mut Random::new(1), &kernel).by_parity();
        check(&kernel.name.clone(), &[(kernel, world)], 0);
    }
}

/// A kernel that reads all of so many fields.
fn many(name: &str, fields: usize) -> Verified {
    let mut build = Build::named(name);
    let output = build.output(Type::F64);
    let mut sum = build.literal(Value::F64(0.5));
    for number in 0..fields {
        let field = build.field(&format!("u_{number}"), Type::F64);
        let load = build.load(field, [number as i32 % 3 - 1, 0, number as i32 % 2]);
        sum = build.binary(Binary::Add, sum, load);
    }
    build.0.body.push(Stmt::Store { output, value: sum, place: Place::default() });
    build.verified()
}

#[test]
fn kernels_of_very_many_fields_have_the_interpreters_bits() {
    let cases = [("whole", 58, false), ("paired", 59, true), ("even", 64, true)].map(|(name, fields, is_paired)| {
        let kernel = many(name, fields);
        assert_eq!(text(&OpenClC, &kernel).contains("const int2 origins_0,"), is_paired, "{name}");
        assert_eq!(text(&OpenClC, &kernel).contains("const long u_0_origin,"), !is_paired, "{name}");
        assert!(!text(&CudaC, &kernel).contains("origin,"), "{name}");
        let world = World::random(&mut Random::new(1), &kernel).by_parity();
        (kernel, world)
    });
    check("many", &cases, 0);
}

#[test]
fn random_kernels_have_the_interpreters_bits() {
    let limits = Limits { reach: 1, ..Limits::default() };
    let mut values = Random::new(1);
    let cases = (0..100).map(|seed| random::kernel(&format!("random_{seed}"), seed, limits));
    let cases: Vec<(Verified, World)> =
        cases.map(|kernel| (kernel.clone(), World::random(&mut values, &kernel).by_parity())).collect();
    let results = |(kernel, world): &(Verified, World)| {
        let results = kernel.outputs.ids().flat_map(|output| world.expected(kernel, output, ALL));
        results.flatten().collect::<Vec<Value>>()
    };
    let results: Vec<Value> = cases.iter().flat_map(results).collect();
    let numbers = results.iter().filter(|result| !is_nan(**result)).count();
    assert!(4 * numbers > 3 * results.len(), "{numbers} numbers in {} results leave little to compare", results.len());
    check("random", &cases, 0);
}

/// The same kernel with some results folded and some fields that lack axes.
fn with_folds(kernel: &Verified, random: &mut Random) -> Verified {
    let mut changed = Kernel::clone(kernel);
    let axes: Vec<[bool; 3]> = kernel
        .fields
        .iter()
        .map(|_| random.pick(&[1, 2, 3, 4, 5, 6, 7, 7]))
        .map(|bits: u8| [0, 1, 2].map(|axis| bits >> axis & 1 == 1))
        .collect();
    for id in kernel.fields.ids() {
        changed.fields[id].axes = axes[id.index()];
    }
    for id in kernel.exprs.ids() {
        if let ExprKind::Load { field, offset } = &mut changed.exprs[id].kind {
            let cells = offset.0.iter().zip(axes[field.index()]);
            let cells: Vec<i32> = cells.map(|(cells, extends)| if extends { *cells } else { 0 }).collect();
            offset.0.copy_from_slice(&cells);
        }
    }
    for (id, output) in kernel.outputs.enumerate() {
        if output.ty != Type::Bool {
            changed.outputs[id].role = random.pick(&[Role::Value, Role::Sum, Role::Max, Role::Min]);
        }
    }
    verify(changed).expect("still sound")
}

#[test]
fn random_folds_and_fields_that_lack_axes_have_the_interpreters_bits() {
    let limits = Limits { reach: 1, ..Limits::default() };
    let mut random = Random::new(4);
    let cases = (100..200).map(|seed| random::kernel(&format!("random_{seed}"), seed, limits));
    let cases = cases.map(|kernel| {
        let kernel = with_folds(&kernel, &mut random);
        let world = World::random(&mut random, &kernel).by_parity();
        (kernel, world)
    });
    let cases: Vec<(Verified, World)> = cases.collect();
    for role in [Role::Value, Role::Sum, Role::Max, Role::Min] {
        let outputs = cases.iter().flat_map(|(kernel, _)| kernel.outputs.iter());
        assert!(outputs.filter(|output| output.role == role).count() > 20, "too few are {role:?}");
    }
    check("folds", &cases, 0);
}

/// Sums, largest and least values of one field.
fn folded(ty: Type, name: &str) -> Verified {
    let mut build = Build::named(name);
    let u = build.field("u", ty);
    let value = build.load(u, [0; 3]);
    for role in [Role::Sum, Role::Max, Role::Min] {
        build.folded(value, role);
    }
    build.verified()
}

#[test]
fn what_is_special_is_folded_by_the_rules() {
    let mut random = Random::new(5);
    let mut cases = Vec::new();
    for ty in Type::ALL.into_iter().filter(|ty| ty.is_number()) {
        let random_values = special(&mut random, ty).grids.remove(0);
        let mut grids = vec![random_values];
        if ty.is_float() {
            let float = |value: f64| if ty == Type::F64 { Value::F64(value) } else { Value::F32(value as f32) };
            let cells: usize = GRID.iter().product();
            let some = |random: &mut Random, values: &[f64]| -> Vec<Value> {
                (0..cells).map(|_| float(random.pick(values))).collect()
            };
            grids.push(vec![float(-0.0); cells]);
            grids.push(some(&mut random, &[0.0, -0.0]));
            grids.push(some(&mut random, &[1e30, 1.0, -1e30, 1e-30, 0.1]));
            grids.push(some(&mut random, &[f64::MAX, f64::MAX, -1.0, 3e38]));
            grids.push(some(&mut random, &[f64::INFINITY, 1.0, 2.5]));
        }
        for grid in grids {
            let kernel = folded(ty, &format!("special_{}", cases.len()));
            cases.push((kernel, World::of(vec![grid], Vec::new()).by_parity()));
        }
    }
    check("special", &cases, 0);
}

#[test]
fn a_result_may_take_the_place_of_a_field() {
    let mut random = Random::new(6);
    // Two results in the place of the fields that both are made of.
    let mut build = Build::named("turned");
    let [a, b] = ["a", "b"].map(|name| build.field(name, Type::F64));
    let [a, b] = [a, b].map(|field| build.load(field, [0; 3]));
    let (sum, difference) = (build.binary(Binary::Add, a, b), build.binary(Binary::Sub, a, b));
    build.result(sum);
    build.result(difference);
    build.folded(sum, Role::Max);
    let turned = build.verified();
    let mut world = World::random(&mut random, &turned).by_parity();
    world.replaced = vec![Some(1), Some(0), None];
    let mut cases = vec![(turned, world)];
    // Points of a parity, made of those of the other.
    let mut build = Build::named("relaxed");
    let u = build.field("u", Type::F64);
    let around = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]];
    let around = around.map(|offset| build.load(u, offset));
    let sum = around.into_iter().reduce(|a, b| build.binary(Binary::Add, a, b)).expect("there are six");
    build.result(sum);
    let relaxed = build.verified();
    let mut world = World::random(&mut random, &relaxed).by_parity();
    world.replaced = vec![Some(0)];
    world.launches.retain(|launch| launch.parity >= 0);
    cases.push((relaxed, world));
    check("place", &cases, 0);
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
        let worlds =
            |_| kernels.iter().map(|kernel| (kernel.clone(), World::random(&mut random, kernel))).collect::<Vec<_>>();
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
    World::of((0..2).map(|_| (0..cells).map(|_| random.pick(&values)).collect()).collect(), Vec::new())
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
    let expected = "    const Index c = (lo_x + i) + (lo_y + j) * sy + (lo_z + k) * sz;

    const double flux = (kappa[c + 1] + kappa[c]) * (u[c + 1] - u[c]); // heat.rs:8: flux(X)
    const double flux_2 = (kappa[c - 1] + kappa[c]) * (u[c - 1] - u[c]); // heat.rs:8: flux(-X)
    const double flux_3 = (kappa[c + sy] + kappa[c]) * (u[c + sy] - u[c]); // heat.rs:8: flux(Y)
    const double flux_4 = (kappa[c - sy] + kappa[c]) * (u[c - sy] - u[c]); // heat.rs:8: flux(-Y)
    const double flux_5 = (kappa[c + sz] + kappa[c]) * (u[c + sz] - u[c]); // heat.rs:8: flux(Z)
    const double flux_6 = (kappa[c - sz] + kappa[c]) * (u[c - sz] - u[c]); // heat.rs:8: flux(-Z)
    out[c] = u[c] + f[c] + beta * (flux + flux_2 + flux_3 + flux_4 + flux_5 + flux_6); // heat.rs:9
}
";
    assert!(cuda.contains(expected), "{cuda}");
}

#[test]
fn a_march_loads_each_column_once_for_each_point() {
    let mut build = Build::named("tall");
    let [u, v] = ["u", "v"].map(|name| build.field(name, Type::F64));
    let [flag, line] = ["flag", "line"].map(|name| build.field(name, Type::F32));
    build.0.fields[flag].axes = [true, true, false];
    build.0.fields[line].axes = [false, false, true];
    let narrow = [(flag, [1, 0, 0]), (line, [0, 0, 0]), (line, [0, 0, 2])].map(|(field, at)| build.load(field, at));
    let narrow = narrow.into_iter().reduce(|a, b| build.binary(Binary::Mul, a, b)).expect("there are three");
    let wide = [(u, [0, -1, -1]), (u, [0, -1, 1]), (v, [1, 0, 1]), (v, [0, 0, -1])];
    let wide = wide.map(|(field, at)| build.load(field, at));
    let wide = wide.into_iter().reduce(|a, b| build.binary(Binary::Mul, a, b)).expect("there are four");
    build.result(narrow);
    build.result(wide);
    let cuda = text(&CudaC, &build.verified());
    let expected = "
    const Index start = (lo_x + i) + (lo_y + j) * sy + (lo_z + first) * sz;
    const Index start_xy = (lo_x + i) + (lo_y + j) * sy;
    const Index start_z = lo_z + first;

    double u_ym1_zm1 = u[start - sy - sz];
    double u_ym1 = u[start - sy];
    const float flag_x1 = flag[start_xy + 1];
    float line_here = line[start_z];
    float line_z1 = line[start_z + 1];
#pragma unroll 1
    for (int k = first; k < end; ++k) {
        const Index c = start + (k - first) * sz;
        const Index c_z = start_z + (k - first);
        const double u_ym1_z1 = u[c - sy + sz];
        const float line_z2 = line[c_z + 2];
        if (!(parity >= 0 && ((lo_x + lo_y + lo_z + i + j + k) & 1) != parity)) {
            const double v_zm1 = v[c - sz];
            const double v_x1_z1 = v[c + 1 + sz];
            const float result_0 = flag_x1 * line_here * line_z2; // tall.rs:9
            const double result_1 = u_ym1_zm1 * u_ym1_z1 * v_x1_z1 * v_zm1; // tall.rs:9
            out_0[c] = result_0; // tall.rs:9
            out_1[c] = result_1; // tall.rs:9
        }
        u_ym1_zm1 = u_ym1;
        u_ym1 = u_ym1_z1;
        line_here = line_z1;
        line_z1 = line_z2;
    }
}
";
    assert!(cuda.contains(expected), "{cuda}");
}

#[test]
fn a_march_is_left_out_where_it_saves_nothing_or_keeps_too_much() {
    let marches = |columns: i32, depth: i32| {
        let mut build = Build::named("deep");
        let u = build.field("u", Type::F64);
        let ends = (0..columns).flat_map(|x| [[x, 0, 0], [x, 0, depth]]);
        let loads: Vec<_> = ends.map(|at| build.load(u, at)).collect();
        let sum = loads.into_iter().reduce(|a, b| build.binary(Binary::Add, a, b)).expect("there are some");
        build.result(sum);
        gpu_forms(&build.verified()).iter().any(|form| form.walk == Walk::March)
    };
    assert!(!marches(3, 0));
    assert!(marches(1, 1) && marches(16, 2) && marches(1, 47));
    assert!(!marches(17, 2) && !marches(1, 48));
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

#[test]
fn what_is_added_up_is_rounded_first_whatever_may_be_fused() {
    let strict = folded(Type::F64, "total");
    let free = verify(Kernel { contract: true, ..Kernel::clone(&strict) }).expect("still sound");
    let ways: [(&dyn Emitter, &str); 3] = [
        (&CudaC, "*sum = __dadd_rn(old, value);"),
        (&HipC, "{\n#pragma clang fp contract(off)\n    const double old = *sum;"),
        (&OpenClC, "{\n#pragma OPENCL FP_CONTRACT OFF\n    const double old = *sum;"),
    ];
    for (emitter, way) in ways {
        assert!(text(emitter, &free).contains(way), "{}", text(emitter, &free));
        assert!(!text(emitter, &strict).contains(way));
    }
}

#[test]
fn no_pointer_is_promised_to_be_the_only_one() {
    for emitter in C_EMITTERS {
        assert!(!text(emitter, &heat()).contains("restrict"), "{}", emitter.target());
    }
}

#[test]
fn a_field_is_indexed_without_the_axes_it_lacks() {
    let mut build = Build::named("sponge");
    let [u, rows] = ["u", "rows"].map(|name| build.field(name, Type::F32));
    let [sx, xz] = ["sx", "c_x"].map(|name| build.field(name, Type::F32));
    for (field, axes) in [(rows, [false, true, true]), (sx, [true, false, false]), (xz, [true, false, true])] {
        build.0.fields[field].axes = axes;
    }
    let loads = [(u, [1, 0, 0]), (rows, [0, 1, -2]), (sx, [-1, 0, 0]), (xz, [0, 0, 1])];
    let loads = loads.map(|(field, offset)| build.load(field, offset));
    let product = loads.into_iter().reduce(|a, b| build.binary(Binary::Mul, a, b)).expect("there are four");
    build.result(product);
    let cuda = text(&CudaC, &build.verified());
    let expected = "    const Index rows_2 = sz / sy;
    const Index c = (lo_x + i) + (lo_y + j) * sy + (lo_z + k) * sz;
    const Index c_xz = (lo_x + i) + (lo_z + k) * sy;
    const Index c_x_2 = lo_x + i;
    const Index c_yz = (lo_y + j) + (lo_z + k) * rows_2;

    out[c] = u[c + 1] * rows[c_yz + 1 - 2*rows_2] * sx[c_x_2 - 1] * c_x[c_xz + sy]; // sponge.rs:9
}
";
    assert!(cuda.contains(expected), "{cuda}");
    assert!(
        cuda.contains("\n//   rows            f32 field along yz, read at 1 points within y 0..1, z -2..0\n"),
        "{cuda}"
    );
}

#[test]
fn a_row_is_folded_in_lanes() {
    let cuda = text(&CudaC, &folded(Type::F32, "size"));
    let expected = "    const Index rows = sz / sy;
    const Index row = lo_x + (lo_y + j) * sy + (lo_z + k) * sz;
    const Index c_yz = (lo_y + j) + (lo_z + k) * rows;
    // 8 running sums, by the index along x modulo 8, and what rounding took from them.
    double sum[8] = {0.0}, lost[8] = {0.0};
    float largest = __int_as_float(0xff800000 /* -inf */);
    float least = __int_as_float(0x7f800000 /* inf */);
    for (int block = -(lo_x & 7); block < n_x; block += 8) {
#pragma unroll
        for (int lane = 0; lane < 8; ++lane) {
            const int i = block + lane;
            if (i < 0 || i >= n_x || (parity >= 0 && ((lo_x + lo_y + lo_z + i + j + k) & 1) != parity)) {
                continue;
            }
            const Index c = row + i;

            const float result_0 = u[c]; // size.rs:9
            const float result_1 = u[c]; // size.rs:9
            const float result_2 = u[c]; // size.rs:9
            add_up(&sum[lane], &lost[lane], result_0); // size.rs:9
            largest = largest_f32(largest, result_1); // size.rs:9
            least = least_f32(least, result_2); // size.rs:9
        }
    }
    out_0[c_yz] = row_sum(sum, lost);
    out_1[c_yz] = largest;
    out_2[c_yz] = least;
}
";
    assert!(cuda.contains(expected), "{cuda}");
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
";
    assert!(cuda.contains(expected), "{cuda}");
    let expected = "
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const int j = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    const int k = (int)(blockIdx.z * blockDim.z + threadIdx.z);
    if (i >= n_x || j >= n_y || k >= n_z) {
        return;
    }
    if (parity >= 0 && ((lo_x + lo_y + lo_z + i + j + k) & 1) != parity) {
        return;
    }
    const Index c = (lo_x + i) + (lo_y + j) * sy + (lo_z + k) * sz;

    static const int primes[3] = {2, 3, 5};
    const int x = g_x + lo_x + i;
    const int z = g_z + lo_z + k;
    const int sum = (int)((unsigned int)cells[c - 1] + (unsigned int)cells[c + 1] + 1u);
    // automaton.rs:9
    const int result_0 = (x ^ z) & primes[min_u64((unsigned long long)div_i32(sum, step), 2ull)];
    const bool result_1 = (alive[c] != 0) ^ ((sum & 1) == 1); // automaton.rs:9
    out_0[c] = result_0; // automaton.rs:9
    out_1[c] = result_1; // automaton.rs:9
}
";
    assert!(cuda.contains(expected), "{cuda}");
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
        // Those that do what a thread does are always inlined.
        let functions = |kernel: &Verified| {
            let text = text(emitter, kernel);
            text.matches("static inline").count() - text.matches("always_inline").count()
        };
        assert_eq!(functions(&heat()), 0, "{}", emitter.target());
        assert_eq!(functions(&automaton()), 2, "{}", emitter.target());
        assert_eq!(functions(&folded(Type::F64, "folds")), 4, "{}", emitter.target());
        assert_eq!(functions(&folded(Type::I8, "folds")), 2, "{}", emitter.target());
    }
}

#[test]
fn no_function_above_a_kernel_is_called_like_it() {
    let kernel = verify(Kernel { name: "min_u64".into(), ..Kernel::clone(&automaton()) }).expect("still sound");
    for emitter in C_EMITTERS {
        let text = text(emitter, &kernel);
        assert!(text.contains(" min_u64_2(") && text.contains(" min_u64("), "{text}");
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
