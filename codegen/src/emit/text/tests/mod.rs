//! The C texts as they are emitted: how they read, and that they compute every bit as the interpreter does.

mod cpu;
mod kernels;

use cpu::{At, GRID, World, check, inner_points, is_nan};
use kernels::{Build, average, heat};

use super::term::COLUMNS;
use super::{CudaC, HipC, OpenClC};
use crate::emit::{Code, Emitter};
use crate::interpret::interpret;
use crate::ir::{Binary, ExprKind, Function, Kernel, Place, Stmt, Type, Value};
use crate::random::{self, Limits, Random};
use crate::verify::{Verified, verify};

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
        check(&kernel.name.clone(), &[(kernel, world)]);
    }
}

#[test]
fn random_kernels_have_the_interpreters_bits() {
    let limits = Limits { reach: 1, ..Limits::default() };
    let mut values = Random::new(1);
    let cases = (0..60).map(|seed| random::kernel(&format!("random_{seed}"), seed, limits));
    let cases: Vec<(Verified, World)> = cases.map(|kernel| (kernel.clone(), world(&mut values, &kernel))).collect();
    let points = || cases.iter().flat_map(|case| inner_points().map(move |point| (case, point)));
    let results: Vec<Value> =
        points().flat_map(|((kernel, world), point)| interpret(kernel, &At(world, point))).collect();
    let numbers = results.iter().filter(|result| !is_nan(**result)).count();
    assert!(4 * numbers > 3 * results.len(), "{numbers} numbers in {} results leave little to compare", results.len());
    check("random", &cases);
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
