//! 8. Reductions: the same bits everywhere, accurate, and documented where there is no number.

use polyhalo::prelude::*;
use polyhalo::{Element, Error};

use crate::everywhere;
use crate::kernels::{both, extremes, sum};

const GRIDS: [[usize; 3]; 6] = [[1, 1, 1], [9, 1, 1], [1, 17, 1], [3, 2, 33], [65, 7, 5], [129, 33, 9]];

/// Whole multiples of 2^-20 without a pattern, of both signs and several magnitudes.
fn whole(p: Point) -> i64 {
    let mut word = (i64::from(p.i) + 1_000 * i64::from(p.j) + 1_000_000 * i64::from(p.k)) as u64;
    word = (word ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^= word >> 29;
    (word as i64) >> (14 + word % 30)
}

#[test]
fn sums_of_doubles_are_exact_but_for_the_rounding_of_rows_planes_and_all() {
    for [nx, ny, nz] in GRIDS {
        let row = |j: usize, k: usize| -> i128 {
            (0..nx).map(|i| i128::from(whole(Point { i: i as i32, j: j as i32, k: k as i32 }))).sum()
        };
        let rows: Vec<Vec<i128>> = (0..nz).map(|k| (0..ny).map(|j| row(j, k)).collect()).collect();
        let planes: Vec<i128> = rows.iter().map(|rows| rows.iter().sum()).collect();
        let exact: i128 = planes.iter().sum();
        let rounded = rows.iter().flatten().chain(&planes).chain([&exact]).map(|sum| sum.abs()).sum::<i128>();
        let results: Vec<u64> = everywhere([nx, ny, nz])
            .into_iter()
            .map(|sim| {
                let u = sim.field_from("u", |p: Point| whole(p) as f64 / f64::from(1 << 20)).unwrap();
                let mut made = None;
                let step = sim.step(|s| made = Some(s.reduce(sum(&u)))).unwrap();
                sim.run(&step, 1).unwrap();
                made.unwrap().get().unwrap().to_bits()
            })
            .collect();
        assert!(results.iter().all(|bits| *bits == results[0]), "{nx} {ny} {nz}");
        // The values are whole multiples of 2^-20, and so are all sums that are rounded to f64s of no more than 2^73.
        let found = f64::from_bits(results[0]) * f64::from(1 << 20);
        let off = (found as i128 - exact).abs() as f64;
        assert!(off <= rounded as f64 * (f64::EPSILON / 2.0) * 1.000_001, "{nx} {ny} {nz}: {found:e} {exact:e}");
    }
}

#[test]
fn large_numbers_that_cancel_leave_what_was_small() {
    for sim in everywhere([64, 8, 8]) {
        // In every lane a large number, its negative, and ones between.
        let value = |p: Point| match p.k {
            0 => 1e17,
            7 => -1e17,
            _ => 1.0,
        };
        let u = sim.field_from("u", value).unwrap();
        let mut made = None;
        let step = sim.step(|s| made = Some(s.reduce(sum(&u)))).unwrap();
        sim.run(&step, 1).unwrap();
        assert_eq!(made.unwrap().get().unwrap(), 64.0 * 8.0 * 6.0, "{sim:?}");
    }
}

#[test]
fn sums_of_singles_are_added_up_in_double_precision() {
    for sim in everywhere([100, 40, 50]) {
        let u = sim.field_from("u", |_: Point| 0.1_f32).unwrap();
        let mut made = None;
        let step = sim.step(|s| made = Some(s.reduce(sum(&u)))).unwrap();
        sim.run(&step, 1).unwrap();
        assert_eq!(made.unwrap().get().unwrap(), (f64::from(0.1_f32) * 200_000.0) as f32, "{sim:?}");
    }
}

/// The sum, the largest and the least value of a row.
fn folds(sim: &Simulation, values: &[f64]) -> [f64; 3] {
    let u = sim.field_from("u", |p: Point| values[p.i as usize]).unwrap();
    let mut made = None;
    let step = sim.step(|s| made = Some((s.reduce(sum(&u)), s.reduce(extremes(&u))))).unwrap();
    sim.run(&step, 1).unwrap();
    let (sum, (most, least)) = made.unwrap();
    [sum, most, least].map(|scalar| scalar.get().unwrap())
}

#[test]
fn not_a_number_infinities_and_zeros_follow_the_rules() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cases: [(&[f64], [f64; 3]); 7] = [
        (&[1.0, nan, 2.0], [nan, nan, nan]),
        (&[nan], [nan, nan, nan]),
        (&[1.0, inf, 2.0], [inf, inf, 1.0]),
        (&[-inf, 5.0, inf], [nan, inf, -inf]),
        (&[-0.0, -0.0, -0.0], [0.0, 0.0, 0.0]),
        (&[0.0, -0.0], [0.0, 0.0, 0.0]),
        (&[-3.0, -1.0, -2.0, 0.5, 4.0, -9.5, 1.0, 1.0, 1.0, 2.5], [-5.5, 4.0, -9.5]),
    ];
    for (values, expected) in cases {
        for sim in everywhere([values.len(), 1, 1]) {
            let found = folds(&sim, values);
            assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{sim:?} {values:?}: {found:?}");
        }
    }
}

#[test]
fn folds_over_no_points_are_neutral() {
    for sim in everywhere([4, 3, 2]) {
        let u = sim.field_from("u", |_: Point| 5.0_f64).unwrap();
        let v = sim.field_from("v", |_: Point| 5_i32).unwrap();
        let none = Range::interior(2);
        let mut made = None;
        let step = sim.step(|s| {
            made = Some((
                s.reduce(sum(&u).over(none)),
                s.reduce(sum(&v).over(none)),
                s.reduce(extremes(&u).over(none)),
                // The only point of this box has the other colour.
                s.reduce(extremes(&u).over(Range::boxed([1, 0, 0], [2, 1, 1]).red())),
            ));
        });
        sim.run(&step.unwrap(), 2).unwrap();
        let (floats, integers, most, coloured) = made.unwrap();
        assert_eq!((floats.get().unwrap().to_bits(), integers.get().unwrap()), (0, 0), "{sim:?}");
        for (most, least) in [most, coloured] {
            assert_eq!((most.get().unwrap(), least.get().unwrap()), (f64::NEG_INFINITY, f64::INFINITY), "{sim:?}");
        }
    }
}

#[test]
fn sums_of_integers_are_exact_or_an_error_with_the_sum() {
    fn total<T: Element + Default>(
        sim: &Simulation,
        value: T,
        reduce: impl FnOnce(&mut polyhalo::Stages, &Field<T>) -> Scalar<T>,
    ) -> Result<T> {
        let u = sim.field_from("u", |_: Point| value)?;
        let mut made = None;
        let step = sim.step(|s| made = Some(reduce(s, &u)))?;
        sim.run(&step, 1)?;
        made.expect("the step was recorded").get()
    }
    for cells in [[16, 8, 2], [1, 1, 256]] {
        for make in crate::devices_for(cells) {
            let big = i32::MAX / 256;
            assert_eq!(total(&make.on(cells), big, |s, u| s.reduce(sum(u))).unwrap(), big * 256);
            assert_eq!(total(&make.on(cells), i64::MIN / 256, |s, u| s.reduce(sum(u))).unwrap(), i64::MIN);
            let error = total(&make.on(cells), i64::MIN / 256 - 1, |s, u| s.reduce(sum(u))).unwrap_err();
            assert!(
                matches!(error, Error::SumTooLarge { total, .. } if total == i128::from(i64::MIN) - 256),
                "{error}"
            );
            assert_eq!(total(&make.on([5, 3, 17]), 1_u8, |s, u| s.reduce(sum(u))).unwrap(), 255);
            let error = total(&make.on(cells), big + 1, |s, u| s.reduce(sum(u))).unwrap_err();
            assert!(
                matches!(error, Error::SumTooLarge { total, .. } if total == 256 * (i128::from(big) + 1)),
                "{error}"
            );
            let error = total(&make.on(cells), -big - 2, |s, u| s.reduce(sum(u))).unwrap_err();
            assert!(
                matches!(error, Error::SumTooLarge { total, .. } if total == -256 * (i128::from(big) + 2)),
                "{error}"
            );
            let error = total(&make.on(cells), 1_u8, |s, u| s.reduce(sum(u))).unwrap_err();
            assert!(matches!(error, Error::SumTooLarge { total: 256, .. }), "{error}");
        }
    }
}

/// What a row holds can be far beyond 64 bits, and the sum of all rows fit again.
#[test]
fn rows_of_large_integers_do_not_wrap_around() {
    for make in crate::devices_for([3, 2, 1]) {
        let signed = |values: [i64; 6]| {
            let sim = make.on([3, 2, 1]);
            let n = sim.field_from("n", |p: Point| values[(p.i + 3 * p.j) as usize])?;
            let mut made = None;
            let step = sim.step(|s| made = Some(s.reduce(sum(&n))))?;
            sim.run(&step, 1)?;
            made.expect("the step was recorded").get()
        };
        let (most, least) = (i64::MAX, i64::MIN);
        assert_eq!(signed([most, most, most, least, least, least]).unwrap(), -3, "{make:?}");
        assert_eq!(signed([most, most, 5, -most, -most, -7]).unwrap(), -2, "{make:?}");
        assert_eq!(signed([-1, -1, -1, -1, -1, -1]).unwrap(), -6, "{make:?}");
        let error = signed([most, most, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the sum of `sum_i64` is 18446744073709551614, which i64 can't hold: no integer type does; add up floats, as in \
             `Sum(value as f64)`"
        );
        let unsigned = |values: [u64; 2]| {
            let sim = make.on([2, 1, 1]);
            let n = sim.field_from("n", |p: Point| values[p.i as usize])?;
            let mut made = None;
            let step = sim.step(|s| made = Some(s.reduce(both(&n))))?;
            sim.run(&step, 1)?;
            let (sum, most, narrow) = made.expect("the step was recorded");
            Ok::<_, Error>((sum.get()?, most.get()?, narrow.get()?))
        };
        assert_eq!(unsigned([u64::MAX - 1, 1]).unwrap(), (u64::MAX, u64::MAX - 1, 2), "{make:?}");
        let error = unsigned([u64::MAX, u64::MAX]).unwrap_err();
        assert!(
            matches!(&error, Error::SumTooLarge { kernel, total, .. } if kernel == "both" && *total == 2 * i128::from(u64::MAX)),
            "{error}"
        );
    }
}
