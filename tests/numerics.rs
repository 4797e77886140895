//! Every kernel of `kernels/` on every device of this machine against the function as rustc compiles it, bit for bit, on
//! awkward grids.

#[path = "kernels/heat.rs"]
mod heat;
#[path = "kernels/idle.rs"]
mod idle;
#[path = "kernels/literals.rs"]
mod literals;
#[path = "kernels/mean27.rs"]
mod mean27;
#[path = "kernels/names.rs"]
mod names;
#[path = "kernels/signs.rs"]
mod signs;
#[path = "kernels/upwind.rs"]
mod upwind;
#[path = "kernels/weighted.rs"]
mod weighted;
#[path = "kernels/wider.rs"]
mod wider;
#[path = "kernels/widths.rs"]
mod widths;

use polyhalo::backend::{DeviceKind, OpenClForm, host::InstructionSet};
use polyhalo::prelude::*;
use polyhalo::{Builder, Error};
use polyhalo_codegen::offline::require;

/// Values without a pattern, between -2 and 2, from the point's indices.
fn noise(seed: u64) -> impl Fn(Point) -> f64 + Sync {
    move |Point { i, j, k }| {
        let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for index in [i, j, k] {
            word = (word ^ index as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
            word ^= word >> 32;
        }
        (word >> 11) as f64 / (1u64 << 51) as f64 - 2.0
    }
}

fn noise_f32(seed: u64) -> impl Fn(Point) -> f32 + Sync {
    let noise = noise(seed);
    move |point| noise(point) as f32
}

/// The bits of a result, with all not-a-numbers made one: their payload is nobody's promise.
fn bits(values: impl IntoIterator<Item = f64>) -> Vec<u64> {
    values.into_iter().map(|value| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }).collect()
}

const STEPS: u64 = 3;

/// Fills fields, runs some steps, gives the bits of the result.
type Run = fn(&Simulation) -> Result<Vec<u64>>;

/// One kernel of one f64 field `u` and others.
macro_rules! run {
    ($u:ident = $first:expr, $($field:ident = $values:expr,)* => $call:expr) => {
        |sim: &Simulation| {
            let $u = sim.field_from(stringify!($u), $first)?;
            $(let $field = sim.field_from(stringify!($field), $values)?;)*
            let step = sim.step(|s| s.update(&$u, $call))?;
            sim.run(&step, STEPS)?;
            Ok(bits($u.read()?.iter().map(|&value| f64::from(value))))
        }
    };
}

/// Whole numbers from 0 to 7 without a pattern.
fn whole(seed: u64) -> impl Fn(Point) -> u8 + Sync {
    let noise = noise(seed);
    move |point| ((noise(point) + 2.0) * 2.0) as u8
}

const CASES: [(&str, Run); 16] = [
    ("life", |sim| {
        let whole = whole(24);
        let age = sim.field_from("age", |point: Point| i32::from(whole(point)) - 3)?;
        let step = sim.step(|s| s.update(&age, wider::life(&age)))?;
        sim.run(&step, STEPS)?;
        Ok(age.read()?.iter().map(|&age| age as u32 as u64).collect())
    }),
    ("coloured", run!(u = noise(25), kind = whole(26), => wider::coloured(&u, &kind))),
    ("extremes", |sim| {
        let u = sim.field_from("u", noise(27))?;
        let v = [sim.field_from("v", noise(28))?, sim.field_from("w", noise(29))?];
        let sum = sim.field::<f64>("sum")?;
        let step = sim.step(|s| s.update((&u, &sum), wider::extremes(&u, &v, 1.5)))?;
        sim.run(&step, STEPS)?;
        Ok(bits(u.read()?.iter().chain(sum.read()?.iter()).copied()))
    }),
    ("heat", run!(u = noise(1), f = noise(2), kappa = noise(3), => heat::heat(&u, &f, &kappa, 0.04))),
    ("idle", run!(u = noise(4), spare = noise_f32(5), => idle::idle(&u, &spare, 1.0))),
    ("literals", run!(u = noise(6), => literals::literals(&u, true))),
    ("literals, not ok", run!(u = noise(6), => literals::literals(&u, false))),
    ("literals_f32", run!(u = noise_f32(7), => literals::literals_f32(&u, true))),
    ("mean27", run!(u = noise(8), => mean27::mean27(&u))),
    ("mean27_f32", run!(u = noise_f32(9), => mean27::mean27_f32(&u))),
    (
        "double",
        run!(
            u = noise(10),
            v = noise(11),
            w = noise(12),
            x = noise(13),
            y = noise(14),
            => names::double(&u, &v, &w, &x, &y, 0.3, true)
        ),
    ),
    ("signs", run!(u = noise(15), => signs::signs(&u, 0.7, 1.3))),
    ("upwind", run!(u = noise(16), speed = noise(17), => upwind::upwind(&u, &speed, 0.01))),
    ("weighted", run!(u = noise(18), w = noise(19), => weighted::weighted(&u, &w, 0.1, true))),
    ("weighted, unlimited", run!(u = noise(20), w = noise(21), => weighted::weighted(&u, &w, 0.1, false))),
    ("widths", run!(coarse = noise_f32(22), fine = noise(23), => widths::widths(&coarse, &fine, 0.6))),
];

/// Primes, thin axes, rows around pieces and cache lines, a single plane, a single cell.
const GRIDS: [[usize; 3]; 14] = [
    [1, 1, 1],
    [2, 1, 1],
    [1, 1, 5],
    [3, 3, 3],
    [4, 3, 5],
    [5, 4, 4],
    [17, 19, 23],
    [31, 7, 5],
    [33, 6, 4],
    [65, 5, 7],
    [130, 4, 4],
    [7, 67, 5],
    [6, 5, 41],
    [64, 32, 16],
];

/// What a case gives on a grid, or the error that says why it gives nothing.
fn outcome(builder: &Builder, run: Run) -> Result<Vec<u64>, String> {
    let told = |error: Error| error.to_string();
    let sim = builder.clone().measure_bandwidth(false).build().map_err(told)?;
    run(&sim).map_err(told)
}

/// Every case on every grid: the same bits as the reference, or the same refusal.
fn check(what: &str, device: impl Fn(Builder) -> Builder) {
    for cells in GRIDS {
        let reference = Simulation::on(cells).devices("reference");
        let tested = device(Simulation::on(cells));
        for (name, run) in CASES {
            let (expected, found) = (outcome(&reference, run), outcome(&tested, run));
            if expected == found {
                continue;
            }
            let first = match (&expected, &found) {
                (Ok(expected), Ok(found)) => expected.iter().zip(found).position(|(a, b)| a != b),
                _ => None,
            };
            let Some(first) = first else { panic!("{name} on {what}, {cells:?}: {found:?} instead of {expected:?}") };
            let at = [first % cells[0], first / cells[0] % cells[1], first / cells[0] / cells[1]];
            let value = |outcome: Result<Vec<u64>, String>| f64::from_bits(outcome.expect("both have values")[first]);
            panic!("{name} on {what}, {cells:?}: {:?} instead of {:?} at {at:?}", value(found), value(expected));
        }
    }
}

#[test]
fn the_reference_is_the_function_itself() {
    // A value computed here by hand guards the oracle: one step of `mean27` in the middle of a cube of three.
    let sim = Simulation::on([3, 3, 3]).devices("reference").build().unwrap();
    let u = sim.field_from("u", noise(8)).unwrap();
    let before = u.read().unwrap();
    let step = sim.step(|s| s.update(&u, mean27::mean27(&u))).unwrap();
    sim.run(&step, 1).unwrap();
    let expected = before.iter().fold(0.0, |sum, value| sum + value) / 27.0;
    assert_eq!(u.get([1, 1, 1]).unwrap().to_bits(), expected.to_bits());
    let after = u.read().unwrap();
    let kept = after.indexed_iter().filter(|(at, _)| *at != (1, 1, 1)).all(|(at, value)| *value == before[at]);
    assert!(kept, "points whose footprint leaves the grid keep their value");
}

#[test]
fn host_gives_the_references_bits_for_any_number_of_threads() {
    for threads in [1, 2, 3, 7] {
        check(&format!("{threads} host threads"), |builder| builder.devices("host").threads(threads));
    }
}

#[test]
fn host_gives_the_references_bits_on_every_instruction_set() {
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
        check(&format!("the host's {set} kernels"), |builder| builder.devices("host").instruction_set(set));
    }
}

/// Runs the cases on the OpenCL platform with `part` in its name.
fn check_opencl(tool: &str, part: &str, form: OpenClForm) {
    let found = polyhalo::devices::find(&format!("opencl:{part}"), &[]).map_err(|error| error.to_string());
    if require::available(tool, found).is_some() {
        check(&format!("{tool}, {form:?}"), |builder| builder.devices(format!("opencl:{part}")).opencl_form(form));
    }
}

#[test]
fn pocl_gives_the_references_bits() {
    check_opencl("pocl", "portable", OpenClForm::Source);
}

#[test]
fn intel_gives_the_references_bits_from_opencl_c() {
    check_opencl("intel", "intel", OpenClForm::Source);
}

#[test]
fn intel_gives_the_references_bits_from_spirv() {
    check_opencl("intel", "intel", OpenClForm::SpirV);
}

#[test]
fn auto_is_a_gpu_or_the_host() {
    let sim = Simulation::on([4, 4, 4]).build().unwrap();
    let gpus = polyhalo::devices::inventory().backends.into_iter().flat_map(|(_, listing)| listing.devices);
    let gpu = gpus.filter(|device| device.kind == DeviceKind::Gpu && device.fp64).count() > 0;
    assert_eq!(sim.uses_gpu(), gpu);
    assert!(gpu || sim.devices()[0].starts_with("host"), "{:?}", sim.devices());
}
