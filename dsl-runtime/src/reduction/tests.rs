//! Sums against exact ones, orders that must not matter, and the rules for what isn't a plain number.

use std::fmt::Debug;

use super::*;
use crate::element::{Element, Primitive};
use crate::kernel::ScalarType;
use crate::testing::noise;

/// The row of values that begin at `x`, one by one.
fn row<T: Copy, A: Accumulator<T>>(x: isize, values: &[T]) -> A::Row {
    let mut folded = A::new();
    values.iter().enumerate().for_each(|(i, &value)| folded.add(x + i as isize, value));
    folded.row()
}

fn sum(values: &[f64]) -> f64 {
    row::<_, Total<f64>>(0, values)
}

/// Values between powers of two that lie far apart, of both signs.
fn wild(count: usize, seed: u64) -> Vec<f64> {
    let mut random = noise(seed);
    (0..count).map(|_| (random() - 0.5) * (random() * 90.0 - 45.0).exp2()).collect()
}

#[test]
fn sums_are_as_good_as_the_last_bit() {
    for count in [1, 7, 8, 9, 64, 1000] {
        for seed in 1..20 {
            let values: Vec<f64> =
                wild(count, seed).iter().map(|v| (v * 60_f64.exp2()).round() / 60_f64.exp2()).collect();
            let units: i128 = values.iter().map(|v| (v * 60_f64.exp2()) as i128).sum();
            let (found, expected) = (sum(&values), units as f64 / 60_f64.exp2());
            let ulp = expected.abs().max(1e-10) * f64::EPSILON;
            assert!((found - expected).abs() <= ulp, "{count} {seed}: {found:e} {expected:e}");
        }
    }
}

#[test]
fn what_rounding_takes_from_a_running_sum_is_kept() {
    assert_eq!(sum(&[1e16, 1.0, -1e16]), 1.0);
    assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
    // Within a lane, and between lanes.
    let mut values = [0.0; 64];
    (values[0], values[8], values[16], values[5], values[33]) = (1e16, 1.0, -1e16, 3.0, 0.25);
    assert_eq!(sum(&values), 4.25);
    // One after the other they would give 100000.00000133288.
    assert_eq!(sum(&vec![0.1; 1_000_000]), 100_000.0);
    let halves: Vec<f32> = vec![0.1; 100_000];
    assert_eq!(row::<_, Total<f32>>(0, &halves), f64::from(0.1_f32) * 100_000.0);
}

/// Checks that no way of handing values over changes the bits of a row.
fn check_ways<T: Primitive, A: Accumulator<T, Row: Primitive>>(values: &[T]) {
    let mut random = noise(values.len() as u64);
    for x in [-9, -8, -1, 0, 3, 16] {
        let expected = row::<T, A>(x, values).to_word();
        let mut all = A::new();
        all.add_all(x, values);
        assert_eq!(all.row().to_word(), expected, "{values:?} from {x}");
        // In pieces of any length, empty ones too.
        let (mut pieces, mut done) = (A::new(), 0);
        while done < values.len() {
            let count = ((random() * 20.0) as usize).min(values.len() - done);
            pieces.add_all(x + done as isize, &values[done..done + count]);
            done += count;
        }
        assert_eq!(pieces.row().to_word(), expected, "{values:?} from {x} in pieces");
        for first in [0, 1, 2] {
            let (mut single, mut alternate) = (A::new(), A::new());
            for i in (first..values.len()).step_by(2) {
                single.add(x + i as isize, values[i]);
            }
            alternate.add_alternate(x, values, first);
            assert_eq!(alternate.row().to_word(), single.row().to_word(), "{values:?} from {x}, every second");
        }
    }
}

fn check_all_ways<T: Primitive + Summed<Sum: Accumulator<T, Row: Primitive>>>(values: &[T])
where
    Largest<T>: Accumulator<T, Row = T>,
    Least<T>: Accumulator<T, Row = T>,
{
    for count in (0..=40).chain([63, 64, 65, 100]) {
        let values = &values[..count];
        check_ways::<T, Total<T>>(values);
        check_ways::<T, Largest<T>>(values);
        check_ways::<T, Least<T>>(values);
    }
}

#[test]
fn values_handed_over_at_once_are_folded_as_one_by_one() {
    let values = wild(100, 3);
    check_all_ways(&values);
    check_all_ways(&values.iter().map(|&v| v as f32).collect::<Vec<_>>());
    let words: Vec<u64> = values.iter().map(|v| v.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    check_all_ways(&words);
    check_all_ways(&words.iter().map(|&w| w as i64).collect::<Vec<_>>());
    check_all_ways(&words.iter().map(|&w| w as i32).collect::<Vec<_>>());
    check_all_ways(&words.iter().map(|&w| (w >> 9) as i8).collect::<Vec<_>>());
    check_all_ways(&words.iter().map(|&w| w as u32).collect::<Vec<_>>());
    check_all_ways(&words.iter().map(|&w| (w >> 9) as u8).collect::<Vec<_>>());
    let mut zeros = vec![-0.0; 100];
    check_all_ways(&zeros);
    (zeros[30], zeros[70]) = (f64::INFINITY, f64::INFINITY);
    check_all_ways(&zeros);
}

#[test]
fn not_a_number_infinities_and_zeros_follow_the_rules() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    assert_eq!(sum(&[1.0, infinity, 2.0, infinity]), infinity);
    assert_eq!(sum(&[1.0, -infinity, 1e308, 1e308]), -infinity);
    assert!(sum(&[infinity, 1.0, -infinity]).is_nan() && sum(&[1.0, nan]).is_nan());
    assert_eq!(sum(&[f64::MAX, f64::MAX]), infinity);
    for zeros in [&[][..], &[-0.0], &[-0.0; 20], &[1.0, -1.0], &[0.0, -0.0]] {
        assert_eq!(sum(zeros).to_bits(), 0, "{zeros:?}");
    }
    // Where the not-a-number is makes no difference, nor does what surrounds it.
    for at in [0, 3, 19] {
        let mut values = wild(20, 4);
        values[at] = nan;
        let mut all = Largest::<f64>::new();
        all.add_all(0, &values);
        assert!(all.row().is_nan() && row::<_, Least<f64>>(0, &values).is_nan());
    }
    assert_eq!(row::<_, Largest<f64>>(0, &[-0.0, -1.0]).to_bits(), 0);
    assert_eq!(row::<_, Least<f32>>(0, &[0.0, -0.0, 5.0]).to_bits(), 0);
    assert_eq!(row::<_, Largest<f64>>(0, &[-infinity, -5.0]), -5.0);
}

#[test]
fn without_values_there_is_the_neutral_one() {
    for ty in ScalarType::ALL.into_iter().filter(|&ty| ty != ScalarType::Bool) {
        let neutral = |role| fold(role, ty, &[], 7, [0; 2]).unwrap();
        let expected = match ty {
            ScalarType::F64 => [f64::NEG_INFINITY.to_word(), f64::INFINITY.to_word()],
            ScalarType::F32 => [f32::NEG_INFINITY.to_word(), f32::INFINITY.to_word()],
            ScalarType::I64 => [i64::MIN.to_word(), i64::MAX.to_word()],
            ScalarType::I32 => [i32::MIN.to_word(), i32::MAX.to_word()],
            ScalarType::I8 => [i8::MIN.to_word(), i8::MAX.to_word()],
            ScalarType::U64 => [0, u64::MAX],
            ScalarType::U32 => [0, u32::MAX.into()],
            ScalarType::U8 => [0, u8::MAX.into()],
            ScalarType::Bool => [0, 0],
        };
        assert_eq!([neutral(Role::Max), neutral(Role::Min)], expected, "{ty}");
        assert_eq!(neutral(Role::Sum), 0, "{ty}");
        for role in [Role::Sum, Role::Max, Role::Min] {
            let stored = words(role, ty).unwrap().row();
            let expected = words(role, role.stored(ty)).unwrap().row();
            assert_eq!(stored, expected, "the neutral row of {role:?} of {ty}");
        }
    }
    assert!(words(Role::Sum, ScalarType::Bool).is_none() && words(Role::Value, ScalarType::F64).is_none());
}

fn bytes<T: Element>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| value.append(&mut bytes));
    bytes
}

/// The fold of the values that a kernel stored for rows, planes of `rows` values.
fn folded<T: Element, S: Element>(role: Role, rows: usize, stored: &[S]) -> Result<T, Overflow> {
    assert_eq!(role.stored(T::TYPE), S::TYPE);
    fold(role, T::TYPE, &bytes(stored), rows, [0; 2]).map(T::from_word)
}

#[track_caller]
fn check<T: Element + Debug>(found: Result<T, Overflow>, expected: T) {
    assert_eq!(found, Ok(expected));
}

#[test]
fn rows_are_folded_into_planes_and_planes_into_the_result() {
    check(folded::<f64, _>(Role::Sum, 2, &[1.0, 2.0, 3.0, 4.5]), 10.5);
    check(folded::<f32, f64>(Role::Sum, 1, &[0.1, 0.2]), 0.3_f32);
    check(folded(Role::Max, 3, &[1, -7, 5, 4, 2, 0]), 5_i32);
    check(folded(Role::Min, 3, &[1.5_f32, -7.0, 5.0]), -7.0_f32);
    check(folded::<u8, u64>(Role::Sum, 2, &[100, 50, 100, 5]), 255);
    check(folded::<i8, i64>(Role::Sum, 2, &[-100, 50, -100, 22]), -128);
    // Rounded once: adding up rounded parts would give another value.
    check(folded::<f32, f64>(Role::Sum, 2, &[16_777_216.0, 1.0, 0.0, 1.0]), 16_777_218.0);
    // Planes and rows are lanes of eight, so the place of the first one matters to the last bit and no more.
    let stored = wild(60, 8);
    let results =
        [0, 1, 5].map(|z| f64::from_word(fold(Role::Sum, ScalarType::F64, &bytes(&stored), 6, [2, z]).unwrap()));
    assert!(results.iter().all(|sum| (sum - results[0]).abs() <= results[0].abs() * 1e-14), "{results:?}");
    let mut planes = <Total<f64> as Accumulator<f64>>::new();
    for (z, plane) in stored.chunks(6).enumerate() {
        planes.add(5 + z as isize, row::<_, Total<f64>>(2, plane));
    }
    assert_eq!(results[2].to_bits(), planes.row().to_bits());
}

#[test]
fn a_result_that_is_not_a_number_is_the_same_one_everywhere() {
    let odd = f64::from_bits(0xfff8_0000_dead_beef);
    for role in [Role::Sum, Role::Max, Role::Min] {
        assert_eq!(fold(role, ScalarType::F64, &bytes(&[1.0, odd]), 1, [0; 2]), Ok(f64::NAN.to_word()));
    }
    assert_eq!(fold(Role::Sum, ScalarType::F32, &bytes(&[odd]), 1, [0; 2]), Ok(f32::NAN.to_word()));
    let odd = f32::from_bits(0xffc1_2345);
    assert_eq!(fold(Role::Min, ScalarType::F32, &bytes(&[odd, 1.0]), 2, [0; 2]), Ok(f32::NAN.to_word()));
    check(folded::<f32, f64>(Role::Sum, 1, &[1e300]), f32::INFINITY);
}

#[test]
fn sums_that_their_type_cannot_hold_are_errors() {
    let overflow = |ty, total| Err(Overflow { ty, total });
    assert_eq!(folded::<i8, i64>(Role::Sum, 1, &[100, 28]), overflow(ScalarType::I8, 128).map(|()| 0));
    assert_eq!(folded::<u8, u64>(Role::Sum, 1, &[255, 1]), overflow(ScalarType::U8, 256).map(|()| 0));
    check(folded::<i32, i64>(Role::Sum, 1, &[i64::MAX, -1, -i64::MAX, 7]), 6);
    check(folded::<u32, u64>(Role::Sum, 2, &[u32::MAX.into()]), u32::MAX);
    check(folded::<i64, i64>(Role::Sum, 2, &[i64::MAX, i64::MIN, i64::MAX]), i64::MAX - 1);
    let total = 2 * i128::from(u64::MAX);
    assert_eq!(folded::<u64, u64>(Role::Sum, 1, &[u64::MAX; 2]), overflow(ScalarType::U64, total).map(|()| 0));
    // In two parts, as kernels give them.
    let whole = |values: &[u64]| {
        let mut sum = Fold::new(Role::Sum, ScalarType::U64);
        for box_of_rows in values.chunks(2) {
            for number in 0..Role::Sum.parts(ScalarType::U64) {
                let row: u64 =
                    row::<_, Total<u64>>(0, &box_of_rows.iter().map(|v| v.parts()[number]).collect::<Vec<_>>());
                sum.part(number);
                sum.add(&bytes(&[row]), 1, [0; 2]);
            }
        }
        sum.result().map(u64::from_word)
    };
    assert_eq!(whole(&[u64::MAX, 0, 0]), Ok(u64::MAX));
    assert_eq!(whole(&[u64::MAX, u64::MAX]), overflow(ScalarType::U64, total).map(|()| 0));
    assert_eq!(whole(&[u64::MAX - 5, 3, 2]), Ok(u64::MAX));
    let text = Overflow { ty: ScalarType::I8, total: 128 }.to_string();
    assert_eq!(text, "the sum is 128, which i8 can't hold");
}
