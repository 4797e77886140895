//! Floats.

use super::{check, pairs, results};

/// Zeros, ends, subnormal numbers, infinities and what is not a number.
const DOUBLES: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    -2.5,
    3.7,
    -3.7,
    1e300,
    -1e300,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    -3e-310,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    9.3e18,
    -4.0e9,
    255.4,
    0.1,
];

fn doubles() -> Vec<[u64; 3]> {
    pairs(&DOUBLES.map(f64::to_bits))
}

fn singles() -> Vec<[u64; 3]> {
    let near = |value: f64| {
        u64::from((if value.abs() == 3e-310 || value == 5e-324 { value * 1e270 } else { value } as f32).to_bits())
    };
    pairs(&DOUBLES.map(near))
}

/// Of f64, whatever is not a number counts as the same.
fn double(body: &str, expected: impl Fn(f64, f64, f64) -> f64) {
    let plain = |value: u64| if f64::from_bits(value).is_nan() { f64::NAN.to_bits() } else { value };
    let inputs = doubles();
    for (input, found) in inputs.iter().zip(results("", body, &inputs)) {
        let [a, b, c] = input.map(f64::from_bits);
        let expected = plain(expected(a, b, c).to_bits());
        assert!(plain(found) == expected, "`{body}` of {a}, {b}, {c} is {}", f64::from_bits(found));
    }
}

/// Of f32, what is not a number has the bits that PTX lays down.
fn single(body: &str, expected: impl Fn(f32, f32, f32) -> f32) {
    let of = |bits: u64| f32::from_bits(bits as u32);
    check(body, &singles(), |a, b, c| {
        let expected = expected(of(a), of(b), of(c));
        u64::from(if expected.is_nan() { 0x7fff_ffff } else { expected.to_bits() })
    });
}

#[test]
fn arithmetic_is_rounded_to_the_nearest_and_never_fused() {
    double("add.rn.f64 %fd20, %fd1, %fd2;", |a, b, _| a + b);
    double("sub.f64 %fd20, %fd1, %fd2;", |a, b, _| a - b);
    double("mul.rn.f64 %fd20, %fd1, %fd2;", |a, b, _| a * b);
    double("mul.f64 %fd10, %fd1, %fd2; add.f64 %fd20, %fd10, %fd3;", |a, b, c| a * b + c);
    double("fma.rn.f64 %fd20, %fd1, %fd2, %fd3;", f64::mul_add);
    double("div.rn.f64 %fd20, %fd1, %fd2;", |a, b, _| a / b);
    double("sqrt.rn.f64 %fd20, %fd1;", |a, _, _| a.sqrt());
    double("rcp.rn.f64 %fd20, %fd1;", |a, _, _| 1.0 / a);
    double("neg.f64 %fd20, %fd1;", |a, _, _| -a);
    double("abs.f64 %fd20, %fd1;", |a, _, _| a.abs());
    double("copysign.f64 %fd20, %fd1, %fd2;", |a, b, _| b.copysign(a));
    single("add.rn.f32 %f20, %f1, %f2;", |a, b, _| a + b);
    single("sub.rn.f32 %f20, %f1, %f2;", |a, b, _| a - b);
    single("mul.rn.f32 %f20, %f1, %f2;", |a, b, _| a * b);
    single("fma.rn.f32 %f20, %f1, %f2, %f3;", f32::mul_add);
    single("div.rn.f32 %f20, %f1, %f2;", |a, b, _| a / b);
    single("sqrt.rn.f32 %f20, %f1;", |a, _, _| a.sqrt());
    single("add.rn.f32 %f20, %f1, 0f3FC00000;", |a, _, _| a + 1.5);
}

#[test]
fn flushing_and_saturating_happen_only_where_they_are_asked_for() {
    let flushed = |a: f32| if a.is_subnormal() { 0f32.copysign(a) } else { a };
    single("add.rn.ftz.f32 %f20, %f1, %f2;", |a, b, _| flushed(flushed(a) + flushed(b)));
    single("mul.rn.ftz.f32 %f20, %f1, 0f3F000000;", |a, _, _| flushed(flushed(a) * 0.5));
    let saturated = |a: f32| if a > 0.0 { a.min(1.0) } else { 0.0 };
    single("add.rn.sat.f32 %f20, %f1, %f2;", |a, b, _| saturated(a + b));
    single("cvt.sat.f32.f32 %f20, %f1;", |a, _, _| saturated(a));
}

#[test]
fn extremes_prefer_numbers_and_know_the_sign_of_zero() {
    // Zeros of different signs are told apart, unlike in Rust.
    let least = |a: f64, b: f64| {
        if a == b && a.is_sign_negative() {
            a
        } else if a == b {
            b
        } else {
            a.min(b)
        }
    };
    double("min.f64 %fd20, %fd1, %fd2;", |a, b, _| least(a, b));
    double("max.f64 %fd20, %fd1, %fd2;", |a, b, _| -least(-a, -b));
    single("min.f32 %f20, %f1, %f2;", |a, b, _| least(f64::from(a), f64::from(b)) as f32);
    single("max.f32 %f20, %f1, %f2;", |a, b, _| -least(-f64::from(a), -f64::from(b)) as f32);
    single("min.NaN.f32 %f20, %f1, %f2;", |a, b, _| {
        if a.is_nan() || b.is_nan() { f32::NAN } else { least(f64::from(a), f64::from(b)) as f32 }
    });
}

#[test]
fn comparisons_say_what_they_do_with_what_is_no_number() {
    let both = |text: &str, expected: fn(f64, f64) -> bool| {
        check(&format!("setp.{text}.f64 %p20, %fd1, %fd2;"), &doubles(), |a, b, _| {
            u64::from(expected(f64::from_bits(a), f64::from_bits(b)))
        });
        check(&format!("setp.{text}.f32 %p20, %f1, %f2;"), &singles(), |a, b, _| {
            let of = |bits: u64| f64::from(f32::from_bits(bits as u32));
            u64::from(expected(of(a), of(b)))
        });
    };
    both("eq", |a, b| a == b);
    both("ne", |a, b| a != b && !a.is_nan() && !b.is_nan());
    both("lt", |a, b| a < b);
    both("le", |a, b| a <= b);
    both("gt", |a, b| a > b);
    both("ge", |a, b| a >= b);
    both("equ", |a, b| a == b || a.is_nan() || b.is_nan());
    both("neu", |a, b| a != b);
    both("ltu", |a, b| a < b || a.is_nan() || b.is_nan());
    both("leu", |a, b| a <= b || a.is_nan() || b.is_nan());
    both("gtu", |a, b| a > b || a.is_nan() || b.is_nan());
    both("geu", |a, b| a >= b || a.is_nan() || b.is_nan());
    both("num", |a, b| !a.is_nan() && !b.is_nan());
    both("nan", |a, b| a.is_nan() || b.is_nan());
    check("testp.finite.f64 %p20, %fd1;", &doubles(), |a, _, _| u64::from(f64::from_bits(a).is_finite()));
    check("testp.subnormal.f32 %p20, %f1;", &singles(), |a, _, _| u64::from(f32::from_bits(a as u32).is_subnormal()));
}

#[test]
fn floats_become_the_integers_at_the_end_of_the_range() {
    // What is no number becomes zero, but where 64 bits take part the highest bit.
    let of = f64::from_bits;
    check("cvt.rzi.s32.f64 %r20, %fd1;", &doubles(), |a, _, _| {
        if of(a).is_nan() { 0x8000_0000 } else { u64::from((of(a) as i32).cast_unsigned()) }
    });
    check("cvt.rzi.u64.f64 %rd20, %fd1;", &doubles(), |a, _, _| if of(a).is_nan() { 1 << 63 } else { of(a) as u64 });
    check("cvt.rzi.s64.f64 %rd20, %fd1;", &doubles(), |a, _, _| {
        if of(a).is_nan() { 1 << 63 } else { (of(a) as i64).cast_unsigned() }
    });
    check("cvt.rni.s32.f64 %r20, %fd1;", &doubles(), |a, _, _| {
        if of(a).is_nan() { 0x8000_0000 } else { u64::from((of(a).round_ties_even() as i32).cast_unsigned()) }
    });
    check("cvt.rmi.s64.f64 %rd20, %fd1;", &doubles(), |a, _, _| {
        if of(a).is_nan() { 1 << 63 } else { (of(a).floor() as i64).cast_unsigned() }
    });
    check("cvt.rzi.u32.f32 %r20, %f1;", &singles(), |a, _, _| u64::from(f32::from_bits(a as u32) as u32));
    check("cvt.rzi.u8.f32 %r20, %f1;", &singles(), |a, _, _| u64::from(f32::from_bits(a as u32) as u8));
    check("cvt.rzi.s64.f32 %rd20, %f1;", &singles(), |a, _, _| {
        let value = f32::from_bits(a as u32);
        if value.is_nan() { 1 << 63 } else { (value as i64).cast_unsigned() }
    });
}

#[test]
fn floats_become_whole_as_they_are_told() {
    double("cvt.rzi.f64.f64 %fd20, %fd1;", |a, _, _| a.trunc());
    double("cvt.rni.f64.f64 %fd20, %fd1;", |a, _, _| a.round_ties_even());
    double("cvt.rmi.f64.f64 %fd20, %fd1;", |a, _, _| a.floor());
    double("cvt.rpi.f64.f64 %fd20, %fd1;", |a, _, _| a.ceil());
    let inputs = singles();
    for (body, expected) in [
        ("cvt.rpi.f32.f32 %f20, %f1;", f32::ceil as fn(f32) -> f32),
        ("cvt.rmi.f32.f32 %f20, %f1;", f32::floor),
        ("cvt.rzi.f32.f32 %f20, %f1;", f32::trunc),
        ("cvt.rni.f32.f32 %f20, %f1;", f32::round_ties_even),
    ] {
        for (input, found) in inputs.iter().zip(results("", body, &inputs)) {
            let (expected, found) = (expected(f32::from_bits(input[0] as u32)), f32::from_bits(found as u32));
            let is_same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(is_same, "`{body}` is {found}, not {expected}");
        }
    }
}

#[test]
fn integers_become_floats_in_every_rounding() {
    let words = pairs(&super::INTEGERS);
    check("cvt.rn.f64.s64 %fd20, %rd1;", &words, |a, _, _| (a as i64 as f64).to_bits());
    check("cvt.rn.f32.u64 %f20, %rd1;", &words, |a, _, _| u64::from((a as f32).to_bits()));
    check("cvt.rn.f32.s16 %f20, %rs1;", &words, |a, _, _| u64::from(f32::from(a as i16).to_bits()));
    check("cvt.rn.f64.u32 %fd20, %r1;", &words, |a, _, _| f64::from(a as u32).to_bits());
    check("cvt.rn.f64.s8 %fd20, %r1;", &words, |a, _, _| f64::from(a as i8).to_bits());
    let odd = [[(1 << 53) + 1, 0, 0], [(-(1i64 << 53) - 1).cast_unsigned(), 0, 0]];
    let low = (1u64 << 53) as f64;
    for (rounding, expected) in
        [("rn", [low, -low]), ("rz", [low, -low]), ("rp", [low + 2.0, -low]), ("rm", [low, -low - 2.0])]
    {
        let found = results("", &format!("cvt.{rounding}.f64.s64 %fd20, %rd1;"), &odd);
        assert_eq!(found, expected.map(f64::to_bits), "{rounding}");
    }
    let odd = [[(1 << 24) + 1, 0, 0], [(-(1i64 << 24) - 1).cast_unsigned(), 0, 0]];
    let low = (1u32 << 24) as f32;
    for (rounding, expected) in [("rz", [low, -low]), ("rp", [low + 2.0, -low]), ("rm", [low, -low - 2.0])] {
        let found = results("", &format!("cvt.{rounding}.f32.s64 %f20, %rd1;"), &odd);
        assert_eq!(found, expected.map(|value| u64::from(value.to_bits())), "{rounding}");
    }
}

#[test]
fn floats_of_other_sizes_are_rounded_as_they_are_told() {
    let value = |value: f64| u64::from((value as f32).to_bits());
    let inputs: Vec<[u64; 3]> =
        [1.0 + 1e-9, -1.0 - 1e-9, 1e39, -1e39, 1e-50, 0.1].map(|a: f64| [a.to_bits(), 0, 0]).to_vec();
    let (above, below) = (1.0f32.next_up(), 0.1f32);
    let exact = f64::from(below) > 0.1;
    let (low, high) = if exact { (below.next_down(), below) } else { (below, below.next_up()) };
    let max = f64::from(f32::MAX);
    let tiny = f64::from(f32::from_bits(1));
    let infinity = f64::INFINITY;
    let [above, low, high] = [above, low, high].map(f64::from);
    for (rounding, expected) in [
        ("rn", [1.0, -1.0, infinity, -infinity, 0.0, f64::from(below)]),
        ("rz", [1.0, -1.0, max, -max, 0.0, low]),
        ("rm", [1.0, -above, max, -infinity, 0.0, low]),
        ("rp", [above, -1.0, infinity, -max, tiny, high]),
    ] {
        let found = results("", &format!("cvt.{rounding}.f32.f64 %f20, %fd1;"), &inputs);
        assert_eq!(found, expected.map(value), "{rounding}");
    }
    double("cvt.rn.f32.f64 %f5, %fd1; cvt.f64.f32 %fd20, %f5;", |a, _, _| f64::from(a as f32));
}

#[test]
fn sums_are_rounded_up_down_and_towards_zero() {
    let tiny = 1e-30;
    let cases =
        [[1.0, tiny], [1.0, -tiny], [-1.0, tiny], [-1.0, -tiny], [f64::MAX, f64::MAX], [1.0, -1.0], [0.5, 0.25]];
    let inputs: Vec<[u64; 3]> = cases.iter().map(|[a, b]| [a.to_bits(), b.to_bits(), 0]).collect();
    let (above, below, infinity) = (1f64.next_up(), 1f64.next_down(), f64::INFINITY);
    for (rounding, expected) in [
        ("rz", [1.0, below, -below, -1.0, f64::MAX, 0.0, 0.75]),
        ("rm", [1.0, below, -1.0, -above, f64::MAX, -0.0, 0.75]),
        ("rp", [above, 1.0, -below, -1.0, infinity, 0.0, 0.75]),
    ] {
        let found = results("", &format!("add.{rounding}.f64 %fd20, %fd1, %fd2;"), &inputs);
        assert_eq!(
            found,
            expected.map(f64::to_bits),
            "{rounding}: {:?}",
            found.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>()
        );
    }
    // The product of two f32 and the sum, rounded once.
    let single = |value: f32| u64::from(value.to_bits());
    let cases = [[1.0, 1.0, 1e-30], [1.0, -1.0, 1e-30], [1e20, 1e20, 1.0], [0.1, 0.1, 0.3], [3.0, 5.0, -15.0]];
    let inputs: Vec<[u64; 3]> = cases.map(|case: [f32; 3]| case.map(single)).to_vec();
    let (above, below) = (1f32.next_up(), 1f32.next_down());
    // The exact sum fits an f64 here.
    let exact = f64::from(0.1f32) * f64::from(0.1f32) + f64::from(0.3f32);
    let nearest = exact as f32;
    let (low, high) =
        if f64::from(nearest) > exact { (nearest.next_down(), nearest) } else { (nearest, nearest.next_up()) };
    assert!(f64::from(nearest) != exact && exact > 0.0, "the case has lost its point");
    for (rounding, expected) in [
        ("rz", [1.0, -below, f32::MAX, low, 0.0]),
        ("rm", [1.0, -1.0, f32::MAX, low, -0.0]),
        ("rp", [above, -below, f32::INFINITY, high, 0.0]),
    ] {
        let found = results("", &format!("fma.{rounding}.f32 %f20, %f1, %f2, %f3;"), &inputs);
        assert_eq!(found, expected.map(single), "{rounding}");
    }
}

#[test]
fn approximate_functions_are_near() {
    let values = [0.3f32, 1.0, 2.5, 7.0];
    let inputs: Vec<[u64; 3]> = values.map(|value| [u64::from(value.to_bits()), 0, 0]).to_vec();
    for (name, function) in [
        ("ex2.approx.ftz", f32::exp2 as fn(f32) -> f32),
        ("lg2.approx", f32::log2),
        ("sin.approx", f32::sin),
        ("cos.approx", f32::cos),
        ("tanh.approx", f32::tanh),
        ("sqrt.approx", f32::sqrt),
        ("rcp.approx.ftz", f32::recip),
        ("rsqrt.approx", |value| 1.0 / value.sqrt()),
    ] {
        let found = results("", &format!("{name}.f32 %f20, %f1;"), &inputs);
        for (value, found) in values.iter().zip(found) {
            let (found, expected) = (f32::from_bits(found as u32), function(*value));
            assert!((found - expected).abs() <= expected.abs() * 3e-7 + 1e-7, "{name} of {value} is {found}");
        }
    }
    for (name, function) in [("rcp", f64::recip as fn(f64) -> f64), ("rsqrt", |value: f64| 1.0 / value.sqrt())] {
        let inputs: Vec<[u64; 3]> = [0.3, 7.0, 1e300].map(|value: f64| [value.to_bits(), 0, 0]).to_vec();
        for (input, found) in inputs.iter().zip(results("", &format!("{name}.approx.ftz.f64 %fd20, %fd1;"), &inputs)) {
            let expected = function(f64::from_bits(input[0]));
            assert_eq!(found & 0xffff_ffff, 0, "the lower half is empty");
            assert!((f64::from_bits(found) / expected - 1.0).abs() < 1e-6, "{name}");
        }
    }
}
