//! 6. Arithmetic is Rust's: rustc computes here what each kernel must give.

use polyhalo::Element;
use polyhalo::prelude::*;
use polyhalo_codegen::emit::{Code, EMITTERS};
use polyhalo_tests::fixtures::fixtures;

use crate::everywhere;
use crate::kernels::{early, narrowed, negatives, nested, widened};

/// The values of a field of a row of such.
fn values<T: Element>(field: &Field<T>) -> Vec<T> {
    field.read().unwrap().into_raw_vec_and_offset().0
}

/// A field along X with these values.
fn row<T: Element>(sim: &Simulation, name: &str, values: &[T]) -> Field<T> {
    sim.field_from(name, |p: Point| values[p.i as usize]).unwrap()
}

/// Fields of zeros for the results of a kernel, the update and the comparison with what a function gives.
macro_rules! check {
    ($sim:ident, ($($out:ident: $ty:ty),+) = $call:expr, $expected:expr) => {{
        $(let $out = $sim.field::<$ty>(stringify!($out)).unwrap();)+
        let step = $sim.step(|s| s.update(($(&$out,)+), $call)).unwrap();
        $sim.run(&step, 1).unwrap();
        $(let $out = values(&$out);)+
        for i in 0..$sim.cells()[0] {
            let found = ($($out[i],)+);
            let expected: ($($ty,)+) = $expected(i);
            // As text, in which all not-a-numbers are alike and zeros keep their sign.
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{:?} at {i}", $sim);
        }
    }};
}

const WHOLE: [i64; 18] = [
    0,
    1,
    -1,
    127,
    128,
    255,
    256,
    -128,
    -129,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 53,
    (1 << 53) + 1,
    i64::MAX,
    i64::MIN,
    -(1 << 31),
    0x1234_5678_9abc_def0,
];

const REAL: [f64; 18] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    127.99,
    -128.99,
    255.5,
    3e9,
    -3e9,
    1e19,
    -1e19,
    1e300,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    16_777_217.0,
];

#[test]
fn casts_between_widths_and_signs() {
    for sim in everywhere([WHOLE.len(), 1, 1]) {
        let (a, x) = (row(&sim, "a", &WHOLE), row(&sim, "x", &REAL));
        check!(
            sim,
            (p: i8, q: u8, r: i32, s: u32, t: u64, v: f32, w: i8, y: u32, z: i64) = narrowed(&a, &x),
            |i: usize| {
                let (a, x) = (WHOLE[i], REAL[i]);
                let cut = (a as i8, a as u8, a as i32, a as u32, a as u64, a as f32);
                (cut.0, cut.1, cut.2, cut.3, cut.4, cut.5, x as i8, x as u32, (x as f32) as i64)
            }
        );
    }
    let small = WHOLE.map(|value| value as i8);
    let bytes = WHOLE.map(|value| (value >> 1) as u8);
    let words = WHOLE.map(|value| value as u32);
    for sim in everywhere([WHOLE.len(), 1, 1]) {
        let (a, b, c) = (row(&sim, "a", &small), row(&sim, "b", &bytes), row(&sim, "c", &words));
        check!(sim, (p: i64, q: i64, r: u64, s: i32, t: f64, v: f32, w: u32) = widened(&a, &b, &c), |i: usize| {
            let (a, b, c) = (small[i], bytes[i], words[i]);
            let sum = u32::from(a as u8) + u32::from((b as i8) as u8);
            (a.into(), b.into(), a as u64, c as i32, c.into(), c as f32, sum)
        });
    }
}

#[test]
fn quotients_and_remainders_of_negatives() {
    let pairs: Vec<(i32, i32)> = [-101, -100, -8, -7, -1, 0, 1, 7, 8, 99]
        .iter()
        .flat_map(|&a| [-9, -3, -2, 1, 2, 7, 100].map(|b| (a, b)))
        .collect();
    let (first, second): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    for sim in everywhere([pairs.len(), 1, 1]) {
        let (a, b) = (row(&sim, "a", &first), row(&sim, "b", &second));
        let out = ["o0", "o1", "o2", "o3", "o4", "o5"].map(|name| sim.field::<i32>(name).unwrap());
        let step = sim.step(|s| s.update(&out, negatives(&a, &b))).unwrap();
        sim.run(&step, 1).unwrap();
        let found = out.each_ref().map(values);
        for (i, &(a, b)) in pairs.iter().enumerate() {
            let expected = [a / b, a % b, a.rem_euclid(b), a.div_euclid(b), a >> 3, -(-a - -b)];
            assert_eq!(found.each_ref().map(|values| values[i]), expected, "{sim:?} {a} {b}");
        }
    }
}

#[test]
fn nested_signs_division_chains_and_literals_to_the_last_digit() {
    let doubles: Vec<f64> = REAL.iter().copied().chain([0.1, 1.0 / 3.0, 1e-310, 7e-45]).collect();
    let singles: Vec<f32> = doubles.iter().map(|&value| value as f32).collect();
    for sim in everywhere([doubles.len(), 1, 1]) {
        let (u, v) = (row(&sim, "u", &doubles), row(&sim, "v", &singles));
        check!(sim, (a: f64, b: f64, c: f32, d: f32) = nested(&u, &v), |i: usize| {
            let (u, v) = (doubles[i], singles[i]);
            let chain = 1.0 / (u / 3.0) / (7.0 / u) % 0.3;
            (-(-u - -(u - 0.1)), chain, v * 0.1 - v / 3.0 / 7.0, -(0.3 - -v) % 0.07)
        });
    }
}

#[test]
fn early_returns_and_both_arms_of_a_condition() {
    for cells in [[9, 3, 2], [40, 2, 2]] {
        let value = |[i, j, k]: [usize; 3]| ((i * 7 + j * 5 + k * 3) % 11) as i32 - 3;
        for sim in everywhere(cells) {
            let u = sim.field_from("u", |p: Point| value([p.i, p.j, p.k].map(|index| index as usize))).unwrap();
            let v = sim.field_from("v", |_: Point| 77).unwrap();
            let step = sim.step(|s| s.update(&v, early(&u))).unwrap();
            sim.run(&step, 1).unwrap();
            let found = v.read().unwrap();
            for at @ [i, j, k] in crate::cells_of(cells) {
                let next = |by: usize| value([i + by, j, k]);
                let expected = match (value(at) < 0, i % 2 == 0, j == 1) {
                    _ if i + 1 == cells[0] => 77,
                    (true, ..) => -1,
                    (false, true, true) => next(1) + 100,
                    (false, true, false) => (next(1) + 100) * 2,
                    (false, false, _) => (next(1) - 100) * 2,
                };
                assert_eq!(found[[k, j, i]], expected, "{sim:?} {at:?}");
            }
        }
    }
}

#[test]
fn a_kernel_of_single_precision_holds_no_double_operation_in_any_text() {
    let mut checked = 0;
    for fixture in fixtures().iter().filter(|fixture| !fixture.has_doubles()) {
        for emitter in EMITTERS {
            let Code::Text(text) = emitter.emit(&fixture.kernel) else { continue };
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            let code = words.filter(|word| *word == "double" || *word == "f64" || word.ends_with("_f64"));
            assert_eq!(code.count(), 0, "{} for {}:\n{text}", fixture.name, emitter.target());
            checked += 1;
        }
    }
    assert!(checked >= 8, "{checked} texts");
}
