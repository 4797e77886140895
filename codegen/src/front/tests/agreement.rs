//! The same text through rustc and through the front end and the interpreter: the same bits at many points.

// The functions are written for what they mean, and each takes all that there is.
#![allow(unused, clippy::all, reason = "each function is written for the language's sake and takes all parameters")]

use super::accepted;
use super::world::{
    Field, FieldX, FieldXY, FieldXZ, FieldY, FieldYZ, FieldZ, HERE, Max, Min, Offset, PARAMETERS, Point, Results, Seen,
    Sum, World, X, Y, Z, seen,
};
use crate::interpret::interpret;

/// Holds what rustc made of a function against what the compiler makes of its text.
fn hold(ty: &str, body: &str, rust: impl Fn(&World) -> Vec<Seen>) {
    let source = format!("fn k({PARAMETERS}) -> {ty} {body}");
    let kernel = accepted(&source).kernel;
    for seed in 0..200 {
        let world = World::of(seed * 977);
        let values = interpret(&kernel, &world).into_iter().zip(kernel.outputs.iter());
        let values: Vec<Seen> = values.map(|(value, output)| seen(output.role, value)).collect();
        assert_eq!(values, rust(&world), "{source}\nat point {seed}\n{:?}", kernel.body);
    }
}

/// `agree! { (names of the parameters) f64 { body } .. }`; the names are given so that the bodies may use them.
macro_rules! agree {
    (($u:ident $v:ident $n:ident $m:ident $q:ident $s:ident $gx:ident $gy:ident $gz:ident $gxy:ident $gxz:ident $gyz:ident
      $a:ident $b:ident $i:ident $l:ident $w:ident $c:ident $p:ident)
        $($ty:ty $body:block)*) => {
        $({
            fn rust(
                $u: &Field<f64>,
                $v: &Field<f32>,
                $n: &Field<i32>,
                $m: &Field<u8>,
                $q: &Field<bool>,
                $s: &[Field<f64>; 2],
                $gx: &FieldX<f64>,
                $gy: &FieldY<f32>,
                $gz: &[FieldZ<f64>; 2],
                $gxy: &FieldXY<i32>,
                $gxz: &FieldXZ<f64>,
                $gyz: &FieldYZ<bool>,
                $a: f64,
                $b: f64,
                $i: i32,
                $l: i64,
                $w: u32,
                $c: bool,
                $p: Point,
            ) -> $ty $body
            hold(stringify!($ty), stringify!($body), |world| {
                let World { u, v, n, m, q, s, gx, gy, gz, gxy, gxz, gyz, a, b, i, l, w, c, p } = world.clone();
                rust(&u, &v, &n, &m, &q, &s, &gx, &gy, &gz, &gxy, &gxz, &gyz, a, b, i, l, w, c, p).all()
            });
        })*
    };
}

#[test]
fn integers_are_numbers() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        i32 { n[X] * n[Y] + n[Z] - i }
        i32 { n[X] / 3 + n[Y] % 7 - n[Z] / -4 }
        i32 { -n[X] + !n[Y] }
        i64 { l * n[X] as i64 - 7 }
        u32 { (w + 3) * 5 % 7 }
        u8 { m[X] + m[Y] / 2 }
        bool { n[X] < i && m[X] >= m[Y] || w == 3 }
        i32 { let mut t = n[X]; t += 3; t -= i; t *= 2; t /= 3; t %= 11; t }
        i32 { let k = 3; let t = k * n[X]; t + k }
        i32 { if c { 1 } else { 2 } }
        i64 { let t = if c { 1 } else { n[X] as i64 }; t }
        f64 { let t = if c { 1 } else { 2 }; t as f64 + a }
        u8 { let t: u8 = 200; if c { t } else { m[X] } }
        f64 { let t = i as usize % 5; t as f64 }
    }
}

#[test]
fn bits_are_rusts() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        u32 { (w << 3) ^ (w >> 1) & 0xFF | 1 }
        i32 { n[X] >> 2 ^ n[Y] << 1 }
        i32 { 1 << (m[X] as i32) }
        u8 { m[X] & 1 << 2 | m[Y] }
        i64 { l >> w % 8 }
        u32 { let mut t = w; t &= 0x0F; t |= 64; t ^= 5; t <<= 2; t >>= 1; t }
        bool { c & q[X] | q[Y] ^ c }
        bool { !q[X] != c }
        i32 { ((n[X] & 1 == 1) as i32) + (q[X] as i32) }
        u32 { n[X].count_ones() + m[Y].count_ones() }
        i32 { const MASK: i32 = (1 << 4) - 1; n[X] & MASK & !3 }
        u8 { !5u8 & m[X] }
        u32 { let mut t = w; for k in 0..3 { t = t ^ t << 2 * k; } t }
    }
}

#[test]
fn casts_are_rusts() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        i32 { u[X] as i32 }
        u8 { u[X] as u8 }
        u8 { n[X] as u8 }
        i8 { n[X] as i8 }
        i8 { u[X] as i8 }
        u64 { n[X] as u64 }
        i64 { v[X] as i64 + w as i64 }
        f32 { l as f32 / 3.0 }
        f64 { n[X] as f64 + m[X] as f64 + w as f64 }
        u32 { (n[X] as f32 * 1.5) as u32 }
        f64 { f64::from(n[X]) + f64::from(v[X]) + f64::from(c) }
        i64 { i64::from(m[X]) + i64::from(q[X]) }
        i32 { i32::from(m[X]) - 3 }
        i64 { 3_000_000_000 as i64 + l }
        f64 { (u8::MAX as i32 + i32::MIN / 2) as f64 }
        u32 { u32::BITS - 1 + (i8::MIN as i32 + 200) as u32 }
        u64 { if c { u64::MAX } else { 18_446_744_073_709_551_615 } }
    }
}

#[test]
fn functions_of_floats_are_the_standard_librarys() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        f64 { u[X].min(u[Y]) + 0.0 }
        f64 { f64::max(u[X], 2.0) + 0.0 }
        f64 { u[X].floor() + u[Y].ceil() * 3.0 + u[Z].trunc() / 7.0 + u[-X].round() }
        f32 { v[X].floor() + v[Y].round() }
        f64 { u[X].copysign(2.0 - m[X] as f64) }
        f64 { u[X].clamp(-1.0, 1.5) }
        f32 { v[X].clamp(-1.0, 1.5) }
        f64 { u[X].signum() }
        f32 { v[X].signum() }
        f64 { u[X].recip() + u[Y].fract() }
        f64 { u[X] % u[Y] }
        f64 { u[X].rem_euclid(u[Y]) }
        f64 { u[X].div_euclid(u[Y]) }
        f32 { v[X].rem_euclid(3.0) + v[Y].div_euclid(-0.7) }
        bool { u[X].is_nan() || u[Y].is_infinite() && !u[Z].is_finite() }
        bool { (u[X] * u[X]).is_sign_positive() == (2.0 - m[X] as f64).is_sign_negative() }
        f64 { u[X].to_degrees() - u[Y].to_radians() }
        f32 { v[X].to_degrees() - v[Y].to_radians() }
        u64 { u[X].abs().min(5.0).to_bits() >> 3 }
        f32 { f32::from_bits(v[X].abs().min(5.0).to_bits() ^ 1) }
        f64 { u[X].powi(2) + u[Y].powi(3) - u[Z].powi(0) }
        f64 { u[X].powi(7) }
        f64 { u[X].powi(13) }
        f64 { u[X].powi(-5) }
        f32 { v[X].powi(1) * v[Y].powi(-1) + v[Z].powi(6) }
        f64 { let mut t = 0.0; for k in 0..6 { t += u[X].powi(k) * b; } t }
    }
}

#[test]
fn transcendental_functions_are_the_standard_librarys() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        f64 { u[X].exp() + u[Y].abs().ln() + u[X].exp2() }
        f64 { u[X].abs().log2() + u[Y].abs().log10() + u[Z].abs().log(3.0) }
        f64 { u[X].sin() * u[Y].cos() - u[Z].tan() }
        f64 { a.asin() + a.acos() + u[X].atan() + u[X].atan2(u[Y]) }
        f64 { a.sinh() + a.cosh() + u[X].tanh() + u[X].cbrt() + u[X].hypot(b) }
        f32 { v[X].sin() + v[Y].exp() + v[Z].powf(0.5) }
        f64 { u[X].abs().powf(b) }
        f64 { let (sin, cos) = u[X].sin_cos(); sin / cos }
    }
}

#[test]
fn functions_of_integers_are_the_standard_librarys() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        i32 { n[X].abs() + n[X].min(n[Y]) - n[Z].max(3) }
        i32 { n[X].signum() * n[Y].clamp(-5, 7) }
        i32 { n[X].rem_euclid(7) + n[Y].rem_euclid(-3) }
        i32 { n[X].div_euclid(7) + n[Y].div_euclid(-3) }
        u8 { m[X].rem_euclid(5) + m[Y].div_euclid(2) }
        u32 { n[X].abs_diff(n[Y]) + w.abs_diff(7) }
        u8 { m[X].abs_diff(m[Y]) }
        u32 { n[X].unsigned_abs() }
        i32 { n[X].pow(3) - i32::pow(n[Y], 2) + n[Z].pow(0) }
        u8 { m[X].wrapping_mul(100).wrapping_sub(m[Y]).wrapping_add(250) }
        i32 { n[X].wrapping_mul(1_000_000_007).wrapping_neg() }
        bool { n[X].is_positive() || n[Y].is_negative() }
        i32 { std::cmp::max(n[X], 0) - std::cmp::min(i, n[Y]) }
        i32 { i32::abs(n[X]) + i32::max(2, n[Y]) }
        u32 { n[X].leading_zeros() + m[Y].leading_zeros() * 100 + l.leading_zeros() * 10_000 }
        u32 { n[X].trailing_zeros() + m[Y].trailing_zeros() * 100 + l.trailing_zeros() * 10_000 }
        u32 { n[X].count_zeros() + w.count_zeros() }
        u32 { w.rotate_left(7) ^ w.rotate_right(m[X] as u32) }
        i32 { n[X].rotate_left(13) ^ i.rotate_right(w) }
        u8 { m[X].rotate_left(3) ^ m[Y].rotate_right(13) }
        bool { w.is_multiple_of(3) || m[X].is_multiple_of(m[Y]) }
        bool { w.is_power_of_two() != m[X].is_power_of_two() }
        u32 { w.div_ceil(7) + (m[X] as u32).div_ceil(w + 1) }
        i32 { n[X].wrapping_abs() }
        u8 { m[X].saturating_sub(m[Y]).saturating_add(250) }
        u32 { w.saturating_sub(20) + w.saturating_add(u32::MAX - 10) / 2 }
        i32 { n[X].saturating_add(i32::MAX - 5).wrapping_add(n[Y].saturating_sub(i32::MAX)) }
        i32 { n[X].saturating_add(i32::MIN + 3).wrapping_add(n[Y].saturating_add(i)) }
        i64 { l.saturating_sub(i64::MIN + 3).wrapping_add(l.saturating_add(i64::MIN)) }
        i8 { (n[X] as i8 * 6).saturating_add(n[Y] as i8).saturating_sub(n[Z] as i8 * 6) }
    }
}

#[test]
fn variables_change_at_run_time() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        f64 { let mut t = 0; for d in [X, -X, Y, -Y, Z, -Z] { if n[d] > 0 { t += 1; } } t as f64 * a }
        i32 { let mut t = 0; let mut k = 0; for d in [X, Y, Z] { k += 1; t += k * n[d]; } t }
        bool { let mut found = false; for d in [X, Y, Z] { if n[d] == 3 { found = true; } } found }
        f64 { let mut e = [0.0; 3]; e[0] = u[X]; e[1] += u[Y]; for k in 0..3 { e[k] += a; } e[0] + e[1] * e[2] }
        i32 { let mut e = [0; 2]; e[1] = n[X]; e[0] += e[1]; e[0] * 3 + e[1] }
        f64 { let mut e = [a, b]; e = [e[1], e[0]]; e[0] / e[1] }
        f64 { let mut t = (a, n[X]); t.0 += b; t.1 *= 2; t.0 + t.1 as f64 }
        f64 { let mut e = [[a; 2]; 2]; e[1][0] = b; let r = e[1]; e[1][0] = 7.0; r[0] + e[1][1] + e[1][0] }
        f64 { let mut t = a; for x in [t, t, b] { t += x; } t }
        f64 { let mut e = [a, b]; let f = e; e[0] = 1.0; f[0] + e[0] }
        f64 { let mut e = [a, b]; for x in e.iter() { } for k in 0..2 { if c { e[k] = 0.5; } } e[0] - e[1] }
        u32 { let mut h = w; for d in [X, Y] { h = (h ^ n[d] as u32).wrapping_mul(16_777_619); } h }
        f64 { let mut t = a; { let y = &t; } let y = t; t = 2.0; y + t }
        f64 { let mut d = X; let mut t = 0.0; for k in 0..3 { t += u[d]; d = d + Y; } t }
        f64 { let (mut x, mut y) = (a, 0); if c { y = 3; } x += y as f64; x }
    }
}

#[test]
fn returns_leave_early() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        f64 { if c { return u[X]; } u[Y] }
        f64 { if c { return u[X]; } else { return u[Y]; } }
        f64 { if c { if q[X] { return a; } } b }
        f64 { let mut t = a; if c { if q[X] { return t; } t += 1.0; } else if q[Y] { t *= 2.0; } t + b }
        f64 { let mut t = a; if c { t = 2.0; if q[X] { return t; } t = 3.0; } t }
        i32 { for d in [X, Y, Z] { if n[d] > 10 { return n[d]; } } -1 }
        i32 { for d in [X, Y, Z] { if n[d] > 0 { if n[-d] > 0 { return n[d]; } } } i }
        f64 { let x = if c { if q[X] { return 1.0; } a } else { b }; x * 2.0 }
        f64 { let x = if c { return 1.0; } else { b }; x * 2.0 }
        f64 { let x = if c { a } else { return b; }; let y = if q[X] { x } else { return x + 1.0; }; x + y }
        f64 { let f = |x: f64| { if x > 0.0 { return x; } -2.0 * x }; f(u[X]) + f(u[Y]) }
        f64 { fn f(x: f64, k: i32) -> f64 { if k > 0 { if x > 0.0 { return x; } } x * k as f64 } f(a, 2) + f(b, i) }
        f64 { let f = |x: f64| -> (f64, i32) { if x > 0.0 { return (x, 1); } (0.0, 2) }; let (x, k) = f(a); x * k as f64 }
        f64 { const DEEP: bool = true; if DEEP { return a; } b }
        f64 { let mut k = 0; if c { return a; } k += 1; u[k * X] }
        f64 { let mut k = 1; if c { k = if q[X] { return a } else { return b }; } u[k * X] }
        bool { if n[X] == n[Y] { return true; } if n[Y] == n[Z] { return q[X]; } false }
        f64 { match n[X] { 0 => return a, 1..=5 => {} _ => if c { return b; } } u[X] }
        f64 { let mut t = 0.0; for d in [X, Y] { if u[d] > 50.0 { return t; } t += u[d]; if q[d] { if c { return -t; } } } t + 0.5 }
        f64 { let f = |d: Offset| { for k in 1..3 { if q[k * d] { return u[k * d]; } } u[HERE] }; if f(X) > a { return f(Y); } f(Z) }
    }
}

#[test]
fn matches_choose() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        i32 { match n[X] { 0 => 5, 1 | 2 => 6, 3..=9 => 7, -5..0 => n[Y], _ => 9 } }
        f64 { match c { true => a, false => b } }
        f64 { match (c, q[X]) { (true, true) => a, (true, false) => b, (false, _) => 3.0 } }
        i32 { match n[X] { ..-3 => 1, k @ -3..=3 => k * 2, other => other + 1 } }
        f64 { const FLUID: u8 = 0; const WALL: u8 = 1; match m[X] { FLUID => u[X], WALL => -u[X], _ => 0.0 } }
        f64 { let mut t = a; match n[X] % 3 { 0 => t += 1.0, 1 => { t *= 2.0; } _ => {} } t }
        f64 { let mut t = 0.0; for k in 0..4 { t += match k { 0 => a, 1 | 2 => b, _ => u[X] } * k as f64; } t }
        u32 { match w { u32::MAX => 0, 0..=10 => 1, 11.. => 2 } }
        bool { match n[X] > 0 { true => q[X], false => c } }
        i32 { let mut k = n[X]; match k { 3 => k = 4, 4 => k = 5, _ => k = 0 } k }
    }
}

#[test]
fn tables_are_indexed_at_run_time() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        f64 { const W: [f64; 12] = [0.5, -1.0, 2.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0 / 3.0, 10.0, 11.0]; W[m[X] as usize] }
        i32 { let t = [3, 1, 4, 1, 5]; t[n[X].rem_euclid(5) as usize] - t[2] }
        bool { const ALIVE: [bool; 3] = [false, true, true]; ALIVE[(m[X] % 3) as usize] }
        f32 { let t = [0.1, 0.2]; t[c as usize] * v[X] }
        u8 { const T: [[u8; 2]; 2] = [[1, 2], [3, 4]]; T[1][(m[X] & 1) as usize] + T[0][q[X] as usize] }
        f64 { let t = [1.0, 2.0, 4.0]; let f = |t: &[f64; 3], k: u8| t[(k % 3) as usize]; f(&t, m[X]) + f(&t, m[Y]) }
    }
}

#[test]
fn points_fields_and_conditions() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        f64 { if (p.i + p.j + p.k) % 2 == 0 { u[X] } else { u[Y] } }
        f64 { let r = (p.i - 3) as f64; r * r + p.k as f64 }
        f64 { let mut t = 0.0; for f in s { t += f[X] - f[-X]; } t }
        f64 { let div = |f: &[Field<f64>; 2]| f[0][X] + f[1][Y]; div(s) * s.len() as f64 }
        f64 { let mut t = 0.0; for (f, d) in s.iter().zip([X, Z]) { t += f[d]; } t }
        f64 { if q[X] && n[X] != 0 && 100 / n[X] > 3 { a } else { b } }
        f64 { let mut t = 0.0; for k in 0..3i32 { if k > 0 && n[k * X] > 0 { t += 1.0; } } t }
        bool { let far = p.i > 3; let all = far && true; all || false }
        bool { (n[X], c) == (n[Y], true) }
        bool { (4..=9).contains(&n[X]) || (-3..2).contains(&n[Y]) }
        bool { (-1.0..b).contains(&u[X]) != (..=a).contains(&u[Y]) }
        bool { (i..).contains(&n[X]) && (0..m[X]).contains(&m[Y]) }
        f64 { let mut t = 0.0; for k in 0..6 { if (2..=4).contains(&k) { t += u[(k - 2) * X]; } } t }
        bool { (n[X], m[X]) != (i, 3) }
    }
}

#[test]
fn fields_along_some_axes_are_read_along_them() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        f64 { gx[HERE] * u[X] + gx[2*X] - gx[-3*X] }
        f32 { gy[Y] * gy[-Y] + v[HERE] }
        f64 { gz[0][Z] - gz[1][-2*Z] * gxz[X - Z] }
        i32 { gxy[X + Y] + gxy[-X] * gxy[HERE] }
        bool { gyz[Y - 2*Z] != gyz[HERE] }
        f64 { let f = |w: &FieldX<f64>, d: Offset| w[d] + w[-d]; f(gx, X) * f(gx, 2*X) }
        f64 { fn f(w: &FieldXZ<f64>, x: f64) -> f64 { w[X] * x } f(gxz, a) + f(&gxz, b) }
        f64 { let mut t = 0.0; for (k, w) in gz.iter().enumerate() { t += w[(k as i32 + 1) * Z]; } t * gz.len() as f64 }
        f64 { let near = |w: &[FieldZ<f64>; 2]| w[0][Z] + w[1][Z]; near(gz) }
        f64 { let g = gx; let here = |w| g[HERE] * w; here(u[Y]) }
        f64 { let mut t = 0.0; for k in 1..=3 { t += gx[k * X] * (u[k * X] - u[-k * X]) + gy[k * Y] as f64; } t }
        f64 { if c { gx[X] } else { gxz[Z] } }
    }
}

#[test]
fn folds_are_given_the_value_of_their_point() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        Sum<f64> { Sum(u[X] * u[X]) }
        Max<f32> { Max(v[X].abs()) }
        Min<i32> { Min(n[X] + n[Y]) }
        Sum<u32> { Sum((u[X] > a) as u32) }
        Sum<i64> { Sum(1) }
        Sum<i64> { Sum(l * -3_000_000_017) }
        Sum<u64> { Sum(u[X].to_bits()) }
        (Sum<u64>, f64, Sum<i64>) { (Sum(w as u64), u[X], Sum(-l)) }
        [Sum<i64>; 2] { [Sum(l), Sum(-l)] }
        Sum<f64> { Sum(0.5) }
        Sum<u8> { let s = Sum(m[X]); s }
        Max<f64> { let x = u[X]; let s: Max<f64> = Max(x); s }
        Max<f64> { return Max(u[X]); }
        Sum<f64> { if c { Sum(u[X]) } else { Sum(0.0) } }
        Sum<i64> { if c { Sum(1) } else { Sum(l) } }
        Sum<i32> { let s = if c { Sum(n[X]) } else if q[X] { Sum(2) } else { Sum(3) }; s }
        Min<f64> { if q[X] { return Min(f64::INFINITY); } Min(u[X]) }
        Min<f64> { for d in [X, Y, Z] { if q[d] { return Min(u[d]); } } Min(b) }
        Sum<f64> { let f = |x: f64| Sum(x * a); f(u[X]) }
        Sum<f64> { fn f(x: f64) -> Sum<f64> { if x > 0.0 { return Sum(x); } Sum(-x) } f(u[X]) }
        Max<u8> { match n[X] { 0 => Max(m[X]), 1..=5 => Max(3), _ => Max(m[Y]) } }
        (f64, Sum<f64>) { let next = u[X] * a; (next, Sum((next - u[HERE]) * (next - u[HERE]))) }
        (Sum<f64>, Max<f32>, bool) { (Sum(u[X]), Max(v[X]), q[X]) }
        (f64, Max<f64>) { if c { return (a, Max(b)); } (u[X], Max(u[Y])) }
        (i32, Sum<i32>) { let (x, s) = if c { (n[X], Sum(n[Y])) } else { (1, Sum(2)) }; (x, s) }
        [Sum<f64>; 2] { [Sum(u[X]), Sum(u[Y])] }
        [Min<i32>; 3] { [Min(i); 3] }
        [Sum<f64>; 2] { let all = [Sum(u[X]), Sum(u[Y])]; [all[1], all[0]] }
        Sum<f64> { let mut t = u[X]; let s = Sum(t); t = 2.0; s }
        Sum::<f64> { Sum::<f64>(gx[X]) }
    }
}

#[test]
fn several_results_agree() {
    agree! { (u v n m q s gx gy gz gxy gxz gyz a b i l w c p)
        (f64, i32) { if c { return (a, n[X]); } (2.0, 3) }
        [f64; 2] { let mut e = [a; 2]; if c { e[1] = u[X]; } e }
    }
}
