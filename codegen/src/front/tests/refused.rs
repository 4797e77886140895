//! What the language refuses, by message.

use super::{compiled, refused, refused_at, refused_whole, refused_whole_at};
use crate::front::Options;

#[test]
fn outer_names_are_refused() {
    refused("u[HERE] * OMEGA", &["`OMEGA` is not known inside the stencil", "const OMEGA", "can't see names outside"]);
    refused("u[x]", &["`x` is not known", "written in capitals: `X`"]);
    refused("sqrt(a)", &["`sqrt` is not known", "functions of numbers are methods: `x.sqrt()`"]);
    refused("helper(a)", &["the function `helper` is not known", "define `helper` inside the stencil"]);
    refused("let kappa = a; kapa", &["`kapa` is not known", "there is `kappa`"]);
    refused("fabs(a)", &["in Rust it is `x.abs()`"]);
    refused("max(a, b)", &["functions of numbers are methods: `a.max(b)`"]);
    refused("let c = b; fn f(x: f64) -> f64 { x + c } f(a)", &["a nested `fn` sees only its parameters", "pass `c`"]);
    refused_at("#[cfg(test)] let a = b; a", &[("#[cfg(test)]", "there can be no `#[cfg]` inside of a stencil")]);
    refused("crate::OMEGA", &["`crate::OMEGA` is not known"]);
}

#[test]
fn fields_are_read_at_offsets() {
    refused("u", &["the field `u` stands where a number is needed", "`u[HERE]`"]);
    refused("u * 2.0", &["`*` of the whole field `u`", "`u[HERE]`"]);
    refused("u[0]", &["indexed by an integer", "`u[HERE]`"]);
    refused("u[3]", &["indexed by an integer", "`u[3*X]`"]);
    refused("u[-1]", &["indexed by an integer", "`u[-X]`"]);
    refused("u[(1, 0, 0)]", &["indexed by a tuple", "as a sum"]);
    refused("u[a * X]", &["an offset meets a number that is only known at run time"]);
    refused("u[65 * X]", &["farther than 64 cells"]);
    refused("a[HERE]", &["a number can't be indexed"]);
    refused("u[HERE] = 1.0; a", &["`u[HERE]` can't be assigned", "the new value is what the function returns"]);
    refused("for w in u { } a", &["the field `u` can't be looped over", "[X, -X"]);
    refused_at("u(i + 1, j, k)", &[("u(i + 1, j, k)", "write `u[X]`")]);
    refused_at("u[i][j - 2][k]", &[("u[i][j - 2][k]", "write `u[-2*Y]`")]);
    refused_at("for i in 0..2 { let x = u[i]; } a", &[("i", "`u[i*X]` is i cells along X")]);
    refused_at("u[X][Y]", &[("u[X]", "offsets are added: `u[X + Y]`")]);
    refused_at("u[X + 1]", &[("X + 1", "write `2*X`")]);
    refused_at("u[2X]", &[("2X", "is written: `2*X`")]);
    refused_at("let u = a; u[X]", &[("u", "`u` is a variable here that hides the field of this name")]);
    refused_at("u[0..2]", &[("0..2", "read at one offset at a time")]);
    refused_at("u.len() as f64", &[("len", "doesn't know the size of the grid")]);
    refused("u.sqrt()", &["the field `u` stands where a number is needed", "`u[HERE].sqrt(..)`"]);
}

#[test]
fn numbers_have_one_type() {
    refused("2 * a", &["the integer 2 meets a float", "`2.0`"]);
    refused("a as f32 + b", &["`f32` meets `f64`", "`(a as f32) as f64`"]);
    refused("1", &["the integer 1 stands where a float is needed", "`1.0`"]);
    refused("a < b", &["`f64` meets `bool`", "if c { 1.0 } else { 0.0 }"]);
    refused("if a { 1.0 } else { 2.0 }", &["the condition is a number", "a comparison such as `a < b`"]);
    refused("(a < b) * 2.0", &["`*` of a bool and a number", "choose a number"]);
    refused("(a < b) + (b < a)", &["`+` of two bools"]);
    refused("let x: f32 = 1.0; x * u[X]", &["`f32` meets `f64`"]);
    refused("(a < b) as f64", &["a bool can't be cast to `f64`", "f64::from(c)"]);
    refused("(a as i16) as f64", &["can't be cast to `i16`", "`i32`"]);
    refused("(a as bool) as f64", &["a number can't be cast to `bool`", "`x != 0`"]);
    refused("a + (a as i32)", &["this integer meets a float", "`(a as i32) as f64`"]);
    refused("let n = a as i32; let m = n + 1u8; a", &["`i32` meets `u8`"]);
    refused("let n = a as u8; (n + 300) as f64", &["300 does not fit into `u8`"]);
    refused("let n = a as u8; (-n) as f64", &["an unsigned integer (`u8`) can't be negated"]);
    refused("let n = 1 << 40; n as f64", &["the type of the integer 1099511627776 is not known", "`1u64`"]);
    refused("let n = 1u8 << 8; a", &["a shift by 8 is outside"]);
    refused("let n = a as i32; n", &["`f64` meets `i32`"]);
    refused("!a", &["`!` of a float"]);
    refused("a ^ b", &["`^` of a float", "a power is `a.powf(b)`"]);
    refused("a << 2", &["the integer 2 meets a float"]);
    refused("a << b", &["`<<` of what is no integer"]);
    refused("(a < b) & (a as i32)", &["`&` of a bool and a number"]);
    refused("(a < b) == 1", &["`==` of a bool and a number"]);
    refused("(a && b) as f64", &["`&&` of a number"]);
    refused("1.0e999", &["too large for f64"]);
    refused("let x: f64 = 1; x", &["the integer 1 stands where a float is needed", "`1.0`"]);
    refused_at("let x: Real = a; x", &[("Real", "the type `Real` is not known inside the stencil")]);
    refused_at(
        "const W: Weight = 0.5; W * a",
        &[("Weight", "`type Real = f64;`, is seen only where it stands in a `#[stencil] mod`")],
    );
    refused_at("const W: Real = 0.5; W * a", &[("Real", "in Rust it is `f64`")]);
    refused_at("let w: W = [1.0, 2.0]; a", &[("W", "the type `W` is not known")]);
    refused_at("let x: Option<f64> = a; a", &[("Option<f64>", "write the type of the number itself")]);
    refused_at("let f = |x: double| x; f(a)", &[("double", "in Rust it is `f64`")]);
    refused_at("fn f(x: f64) -> i16 { x } f(a)", &[("i16", "8, 32 or 64 bits")]);
    refused_at("1 / 2 * a", &[("1 / 2", "`1 / 2` is a division of integers, without a fraction: write `1.0 / 2.0`")]);
    refused_at("a ** 2", &[("a ** 2", "`**` is not an operator of Rust\n  = help: a power is `a.powi(2)`")]);
    refused_at("(a + b) ^ 0.5", &[("(a + b) ^ 0.5", "a power is `(a + b).powf(0.5)`")]);
    refused_at("a as f32 * b", &[("a as f32 * b", "`(a as f32) as f64`")]);
    refused("let n: u8 = 300; n as f64", &["300 does not fit into `u8`"]);
    refused("a + 1u7", &["the suffix `u7`"]);
    refused("let x = 7 / 0; a", &["division by zero"]);
}

#[test]
fn control_flow_is_for_and_if() {
    refused("while a > b { } a", &["`while` is not part", "`for` over a range"]);
    refused("loop { } a", &["`loop` is not part"]);
    refused("match a { _ => 1.0 }", &["`match` on a float", "compare it"]);
    refused(
        "match a as i32 { n if n > 2 => 1.0, _ => a }",
        &["a condition on an arm of `match`", "write `if` in the arm"],
    );
    refused("match X { _ => 1.0 }", &["`match` on an offset", "integers, bools and tuples"]);
    refused("match a as i32 { Some(n) => 1.0, _ => a }", &["the pattern `Some(n)`", "ranges `1..=3`"]);
    refused("if a > b { return X; } a", &["one branch gives an offset, the other a number"]);
    refused("if a > b { return; } a", &["one branch gives `()`, the other a number"]);
    refused("let mut s = a; if a > b && { s = b; true } { } s", &["the right side of `&&` assigns or returns", "`if`"]);
    refused("if a > b || { return a; } { } b", &["the right side of `||` assigns or returns"]);
    refused("for i in 0..100 { if u[X] > i as f64 { return a; } } b", &["more than 64 early returns"]);
    refused("for i in 0..3 { break; } a", &["`break` is not part"]);
    refused("for i in 0..3 { continue; } a", &["`continue` is not part"]);
    refused("for i in 0.. { } a", &["the range has no end"]);
    refused("for i in 0..100000 { } a", &["has 100000 turns", "at most 4096"]);
    refused("if let x = a { 1.0 } else { 2.0 }", &["`if let` is not part"]);
    refused("if a < b { 1.0 }", &["one branch gives", "needs `else`"]);
    refused("let d = if a < b { X } else { Y }; u[d]", &["an offset depends on a condition"]);
    refused("let mut n = 0; if a < b { n = 1; } u[n*X]", &["an offset meets a number that is only known at run time"]);
    refused("let mut d = X; if a < b { d = Y; } u[d]", &["the offset `d` changes under a condition"]);
    refused("let f = if a < b { u } else { v }; f[X]", &["which field is read depends on a condition"]);
    refused("for i in 0..(a as i32) { } a", &["the bounds of this loop are not known at compile time"]);
}

#[test]
fn the_rest_of_rust_is_named_and_refused() {
    refused("println!(\"{a}\"); a", &["`println!` are not part", "a stencil has no output"]);
    refused("assert!(a > 0.0); a", &["a stencil can't fail"]);
    refused("unsafe { a }", &["`unsafe` is not part"]);
    refused("let s = \"x\"; a", &["text is not part"]);
    refused("let f = move |x: f64| x; f(a)", &["`move` is not part"]);
    refused("fn f(x: f64) -> f64 { f(x) } f(a)", &["`f` calls itself", "recursion is not possible"]);
    refused("let f = |x: f64| x; f(a, b)", &["`f` takes 1 argument, 2 are given"]);
    refused("let p = &mut a; *p", &["`&mut` is not part"]);
    refused("a.powi(b as i32)", &["`powi` with an exponent that is only known at run time", "`powf`"]);
    refused("((a as i32).pow(b as u32)) as f64", &["`pow` with an exponent"]);
    refused("a.exp_m1()", &["the method `exp_m1`", "`x.exp() - 1.0`"]);
    refused("a.ln_1p()", &["the method `ln_1p`", "`(1.0 + x).ln()`"]);
    refused("a.gamma()", &["the method `gamma` of a float", "`sqrt`", "`powi`", "`sin_cos`"]);
    refused("(a as i32).sqrt()", &["the method `sqrt` of an integer", "(n as f64).sqrt"]);
    refused("(a as i32).reverse_bits() as f64", &["the method `reverse_bits`", "`count_ones`"]);
    refused("(a as i32).is_multiple_of(3); a", &["of a signed integer is not accepted", "`n % 3 == 0`"]);
    refused("(a as u32).abs() as f64", &["the method `abs` of `u32`"]);
    refused("(a < b).then(b)", &["the method `then` of a bool"]);
    refused("a.max(b, a)", &["`max` takes 1 argument", "write `a.max(b)`"]);
    refused("a.max(1)", &["the integer 1 stands where a float is needed"]);
    refused("a.clamp(b)", &["`clamp` does not take 1 argument", "takes both bounds"]);
    refused("2.sqrt()", &["the method `sqrt` of an integer"]);
    refused("f64::gamma(a)", &["the method `gamma`"]);
    refused("std::mem::swap(a, b)", &["`std::mem::swap` is not known"]);
    refused("f64::from_bits(a)", &["`u64` meets `f64`"]);
    refused("i32::LARGEST as f64", &["`i32::LARGEST` is not known"]);
    refused("struct S; a", &["a type of your own can't be inside a stencil"]);
    refused("let x; x = a; x", &["a variable without a value"]);
    refused("let x = a; x = b; x", &["`x` is not mutable", "let mut x"]);
    refused("a & b", &["`&` of a float"]);
    refused("const N: i32 = 3; N = 4; a", &["`N` is a `const`", "let mut x = N"]);
    refused("let mut w = [a, b]; w[2] = a; a", &["index 2 is outside"]);
    refused("let mut w = [a, b]; w[a as usize] = a; a", &["an array is written at a number", "under a condition"]);
    refused("let mut w = [a, b]; w = [a]; a", &["an array does not fit the variable"]);
    refused("let mut w = [X, Y]; a", &["`w` is an array and can't be `mut`"]);
    refused("let mut n = 3; n[0] = 1; a", &["`n` is an integer, which has no parts"]);
    refused("let w = [a, b]; w[0] = 1.0; a", &["`w` is not mutable"]);
    refused("let w = [a * b, b]; w[a as usize]", &["an array of values that are computed", "`const` array"]);
    refused("let w = [[1.0], [2.0]]; let r = w[a as usize]; r[0]", &["an array of arrays", "`w[i as usize][j]`"]);
    refused("let w = [u, v]; w[a as usize][X]", &["an array of fields", "`match n"]);
    refused("let w = [1.0, 2.0]; w[a]", &["indexed by a number that is no integer", "`w[n as usize]`"]);
    refused("let mut s = a; s + { s = b; s }", &["read here and assigned later"]);
    refused("let w = [1.0, 2.0]; w[2]", &["index 2 is outside", "0 to 1"]);
    refused("u[HERE];", &["`()` stands where a number is needed", "does a `;` stand behind it"]);
    refused("let f = |x: f64| q + x; a", &["`q` is not known"]);
}

#[test]
fn signatures_are_fields_scalars_and_a_result() {
    refused_whole("fn k(u: Field<f64>) -> f64 { 1.0 }", &["a field is borrowed: `u: &Field<f64>`"]);
    refused_whole("fn k(u: &mut Field<f64>) -> f64 { 1.0 }", &["fields are read only"]);
    refused_whole("fn k(u: &Field<f64>, n: usize) -> f64 { u[HERE] }", &["type `usize`", "scalars are `f64`"]);
    refused_whole("fn k(u: &Field<f64>, n: usize) -> f64 { u[HERE] }", &["its size depends on the machine", "`u64`"]);
    refused_whole("fn k(u: &Field<f64>, p: &Point) -> f64 { u[HERE] }", &["write `p: Point`"]);
    refused_whole("fn k(u: &Field<f64>, p: Point) -> f64 { p.x as f64 }", &["a point has no part `.x`", "`.i`, `.j`"]);
    refused_whole("fn k(u: &Field<f64>, p: Point) -> f64 { p }", &["the point stands where a number", "`p.i`"]);
    refused_whole("fn k(u: &Field<i16>) -> f64 { u[HERE] }", &["a field holds `f64`, `f32`"]);
    refused_whole(
        "fn k(s: &[Field<f64>]) -> f64 { 1.0 }",
        &["the number of fields must be known: `s: &[Field<f64>; 3]`"],
    );
    refused_whole("fn k(s: &[Field<f64>; N]) -> f64 { 1.0 }", &["must be a literal from 1 to 64"]);
    refused_whole("fn k(s: [Field<f64>; 2]) -> f64 { 1.0 }", &["fields are borrowed: `s: &[Field<f64>; 2]`"]);
    refused_whole("fn k(u: &Field<f64>, w: [f64; 2]) -> f64 { 1.0 }", &["pass its numbers one by one"]);
    refused_whole(
        "fn k(u: &Field<f64>) -> (f64, f64) { u[X] }",
        &["returns a number, its signature says a tuple of 2"],
    );
    refused_whole(
        "fn k(u: &Field<f64>) -> [f64; 2] { [u[X]; 3] }",
        &["returns an array of 3, its signature says an array of 2"],
    );
    refused_whole("fn k(u: &Field<f64>) -> (f64, (f64, f64)) { 1.0 }", &["can't return"]);
    refused_whole("fn k(u: &Field<f64>) -> (f64, f32) { (u[X], u[Y]) }", &["`f32` meets `f64`"]);
    refused_whole("fn k(u: &Field<f64>, d: Offset) -> f64 { u[d] }", &["can't be an `Offset`"]);
    refused_whole("fn k(u: &Field<f64>, (a, b): (f64, f64)) -> f64 { a }", &["is a plain name"]);
    refused_whole("fn k(u: &Field<f64>, mut a: f64) -> f64 { a }", &["parameter `a` can't be `mut`"]);
    refused_whole("fn k(u: &Field<f64>) { }", &["`k` returns nothing", "-> f64"]);
    refused_whole("fn k(u: &Field<f64>) -> String { u[HERE] }", &["can't return `String`"]);
    refused_whole("fn k<T>(u: &Field<f64>) -> f64 { u[HERE] }", &["generic stencils are not accepted yet"]);
    let thirteen = format!("fn k(u: &Field<f64>) -> ({}) {{ u[HERE] }}", ["f64"; 13].join(", "));
    refused_whole(&thirteen, &["can't return", "at most 12 results; return an array"]);
    refused_whole("async fn k(u: &Field<f64>) -> f64 { u[HERE] }", &["can't be `async`"]);
    refused_whole("unsafe fn k(u: &Field<f64>) -> f64 { u[HERE] }", &["can't be `unsafe`"]);
    refused_whole("extern \"C\" fn k(u: &Field<f64>) -> f64 { u[HERE] }", &["has no ABI"]);
    refused_whole("fn k(&self, u: &Field<f64>) -> f64 { u[HERE] }", &["it has no `self`"]);
}

#[test]
fn several_mistakes_are_reported_at_once_and_each_once() {
    refused_at("for i in 0..3 { let x = i * a; } a", &[("i", "convert it: `i as f64`")]);
    let source = "fn k(u: &Field<f64>) -> f64 { let f = |d: Offset| u[d] * q; f(X) + f(Y) + p + u[0] }";
    let wrong = compiled(source).err().unwrap();
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

#[test]
fn a_stencil_has_a_size() {
    let twice = |n: usize| format!("let f{n} = |x: f64| f{0}(x) + f{0}(x + 1.0);", n - 1);
    let chain: String = (1..40).map(twice).collect();
    let long = "more than 50000 operations";
    refused(&format!("let f0 = |x: f64| x * a; {chain} f39(b)"), &[long, "split it into stages"]);
    let loops = "let mut s = 0.0; for i in 0..4000 { for j in 0..4000 { s += i as f64 * a + j as f64; } } s";
    refused(loops, &[long, "`polyhalo inspect` counts"]);
    let copies = "let mut w = [a; 400]; for i in 0..4000 { let v = w; } a";
    refused(copies, &["more than 1000000 literals and reads of variables"]);
    let empty = "for i in 0..4000 { for j in 0..4000 { for k in 0..4000 { } } } a";
    refused(empty, &["more than 200000 turns in all"]);
}

#[test]
fn fields_are_not_read_along_axes_that_they_lack() {
    let check = |parameter: &str, body: &str, expected: &[(&str, &str)]| {
        refused_whole_at(&format!("fn k(u: &Field<f64>, s: {parameter}, a: f64) -> f64 {{ {body} }}"), expected);
    };
    let lacks = "`s` is read along Y, but a `FieldX<f64>` does not extend along Y";
    check("&FieldX<f64>", "s[Y]", &[("Y", lacks)]);
    check("&FieldX<f64>", "s[Y]", &[("Y", "it is the same everywhere along Y: write `s[HERE]`")]);
    check("&FieldXZ<f64>", "s[2*X - Y]", &[("2*X - Y", "a `FieldXZ<f64>` does not extend along Y")]);
    check("&FieldXZ<f64>", "s[2*X - Y]", &[("2*X - Y", "write `s[2*X]`")]);
    check("&FieldYZ<f64>", "s[X] + s[Z]", &[("X", "does not extend along X")]);
    check(
        "&[FieldX<f64>; 2]",
        "s[1][Z]",
        &[("Z", "`s[1]` is read along Z, but a `FieldX<f64>` does not extend along Z")],
    );
    check("&FieldX<f64>", "let f = |d: Offset| u[d] * s[d]; f(X) + f(Y)", &[("d", lacks)]);
    check("&FieldX<f64>", "for d in [X, Y] { let t = s[d]; } a", &[("d", lacks)]);
    check("&FieldX<f64>", "s", &[("s", "the field `s` stands where a number is needed")]);
    check(
        "&FieldX<f64>",
        "let f = |w: &Field<f64>| w[HERE]; f(s)",
        &[("w", "`s` is a `FieldX<f64>`, here a `Field<f64>` is taken")],
    );
    check("FieldX<f64>", "a", &[("FieldX<f64>", "a field is borrowed: `s: &FieldX<f64>`")]);
    check("&FieldX<i16>", "a", &[("&FieldX<i16>", "a field holds `f64`, `f32`")]);
    check(
        "&FieldYX<f64>",
        "a",
        &[("&FieldYX<f64>", "in this order: `Field`, `FieldX`, `FieldY`, `FieldZ`, `FieldXY`")],
    );
    check("&mut FieldX<f64>", "a", &[("&mut FieldX<f64>", "fields are read only")]);
    check("&[FieldX<f64>]", "a", &[("&[FieldX<f64>]", "`s: &[FieldX<f64>; 3]`")]);
}

#[test]
fn folds_are_returned_and_nothing_else() {
    let check = |result: &str, body: &str, expected: &[(&str, &str)]| {
        let source = format!("fn k(u: &Field<f64>, n: &Field<i32>, a: f64, c: bool) -> {result} {{ {body} }}");
        refused_whole_at(&source, expected);
    };
    let later = "the fold over all points is known only after the kernel";
    check("Sum<f64>", "Sum(a) + 1.0", &[("Sum(a) + 1.0", "`+` of a `Sum`")]);
    check("Sum<f64>", "1.0 - Max(a)", &[("1.0 - Max(a)", later)]);
    check("Sum<f64>", "Sum(a) * Sum(a)", &[("Sum(a) * Sum(a)", "compute first and fold at last: `Sum(a * b)`")]);
    check("Sum<f64>", "if Sum(a) > 1.0 { Sum(a) } else { Sum(0.0) }", &[("Sum(a) > 1.0", "`>` of a `Sum`")]);
    check("Sum<f64>", "-Sum(a)", &[("-Sum(a)", "fold what it gives: `Sum(-x)`")]);
    check("Sum<f64>", "Sum(a).sqrt()", &[("sqrt", "fold what it gives: `Sum(x.sqrt(..))`")]);
    check("f64", "Sum(a).0", &[("0", "`.0` of a `Sum`")]);
    check("f64", "let s = Sum(a); s.0 + a", &[("0", "let x = ..; Sum(x)")]);
    check("Sum<i32>", "Sum(a) as i32", &[("Sum(a) as i32", "cast the value: `Sum(x as i32)`")]);
    check("f64", "u[HERE] * f64::sqrt(Max(a))", &[("f64::sqrt(Max(a))", "a `Max` stands where a number is needed")]);
    check("Sum<f64>", "let mut s = Sum(a); s", &[("mut s", "`s` is a `Sum` and can't be `mut`")]);
    check(
        "Sum<f64>",
        "let mut t = a * a; t = Sum(a); Sum(t)",
        &[("t = Sum(a)", "a `Sum` stands where a number is needed")],
    );
    // Another fold, or none.
    check("Sum<f64>", "Max(a)", &[("Max(a)", "a `Max` stands where the type says `Sum<f64>`")]);
    check("Sum<f64>", "let s = Max(a); s", &[("Max(a)", "write `Sum(..)`, or change the type to `Max<..>`")]);
    check("f64", "Sum(a)", &[("Sum(a)", "a `Sum` stands where the type says `f64`")]);
    check("f64", "Sum(a)", &[("Sum(a)", "change the type to `Sum<f64>`")]);
    check("(f64, Max<f64>)", "(a, u[X])", &[("(a, u[X])", "write `Max(..)` around the value")]);
    check("Sum<f64>", "u[X]", &[("u[X]", "a number stands where the type says `Sum<f64>`")]);
    check("Sum<f64>", "if c { return a; } Sum(a)", &[("return a", "a number stands where the type says `Sum<f64>`")]);
    check("Sum<f64>", "Sum(a);", &[("Sum(a);", "`()` stands where a number is needed")]);
    check("f64", "let s: f64 = Sum(a); s", &[("Sum(a)", "a `Sum` stands where the type says `f64`")]);
    // Branches.
    check("Sum<f64>", "if c { Sum(a) } else { Max(a) }", &[("Max(a)", "this branch gives a `Max`, the other a `Sum`")]);
    check("Sum<f64>", "if c { return Min(a); } Sum(a)", &[("Min(a)", "a `Min` stands where the type says `Sum<f64>`")]);
    check("Sum<f64>", "if c { Sum(a) } else { 0.0 }", &[("Sum(a)", "one branch gives a `Sum`, the other a number")]);
    check("Sum<f64>", "if c { Sum(a) } Sum(a)", &[("Sum(a)", "one branch gives a `Sum`, the other `()`")]);
    check(
        "Sum<f64>",
        "if c { Sum(a) } else { Sum(n[X]) }",
        &[("if c { Sum(a) } else { Sum(n[X]) }", "`f64` meets `i32`")],
    );
    // Types of values.
    check("Sum<f64>", "Sum(n[X])", &[("Sum(n[X])", "`f64` meets `i32`")]);
    check("Sum<f64>", "Sum(1)", &[("Sum(1)", "write `1.0`")]);
    check("Sum<i64>", "Sum(n[X])", &[("Sum(n[X])", "`i64` meets `i32`")]);
    check("Sum<u8>", "Sum(300)", &[("Sum(300)", "300 does not fit into `u8`")]);
    check("Sum<u32>", "Sum(a > 1.0)", &[("a > 1.0", "`Sum` of a bool")]);
    check("Max<u32>", "Max(true)", &[("true", "count with `Sum(c as u32)`")]);
    check("Sum<bool>", "Sum(c as u32)", &[("Sum<bool>", "can't return `Sum<bool>`")]);
    check("(f64, Max<bool>)", "(a, Max(a))", &[("Max<bool>", "numbers are folded: count with")]);
    check("Sum<usize>", "Sum(1)", &[("Sum<usize>", "its size depends on the machine")]);
    check("Sum<(f64, f64)>", "Sum(a)", &[("Sum<(f64, f64)>", "several are a tuple")]);
    check("Sum<Max<f64>>", "Sum(Max(a))", &[("Sum<Max<f64>>", "a fold is of numbers"), ("Max(a)", "`Sum` of a `Max`")]);
    check("Sum", "Sum(a)", &[("Sum", "say what is folded: `Sum<f64>`")]);
    // The call.
    check("Sum<f64>", "Sum(a, a)", &[("Sum(a, a)", "`Sum` takes one value, 2 are given")]);
    check("Sum<f64>", "Sum()", &[("Sum()", "`Sum` takes one value, 0 are given")]);
    check("Sum<f64>", "Sum(u)", &[("u", "read it at a point: `u[HERE]`")]);
    check("Sum<f64>", "Sum([a, a])", &[("[a, a]", "an array stands where a number is needed")]);
    check("Sum<f64>", "let f = Sum; f(a)", &[("Sum", "it is called with the value that is to be folded: `Sum(x)`")]);
    check("Sum<f64>", "Sum::<i32>(a)", &[("a", "`i32` meets `f64`")]);
    refused_whole(
        "fn k(u: &Field<f64>, s: Sum<f64>) -> f64 { u[HERE] }",
        &["which a stencil can't take", "what was folded is passed as a scalar: `s: f64`"],
    );
}

#[test]
fn an_integer_beside_a_float_is_pointed_at() {
    refused_at("u[HERE] + 1", &[("1", "the integer 1 meets a float\n  = help: write `1.0`")]);
    refused_at("2 * a", &[("2", "write `2.0`")]);
    refused_at("a - (-0x10)", &[("(-0x10)", "write `-16.0`")]);
    refused_at("let mut s = a; s += 1; s", &[("1", "write `1.0`")]);
    refused_at(
        "let n = 3; u[n * X] * n",
        &[("n", "write `3.0` where `n` gets its value, or convert it here: `n as f64`")],
    );
    refused_at("for i in 1..2 { let x = a * (i + 1); } a", &[("(i + 1)", "convert it: `(i + 1) as f64`")]);
    let source = "fn k(u: &Field<f32>) -> f32 { let n = 3; u[X] * n }";
    refused_whole_at(source, &[("n", "convert it here: `n as f32`")]);
}

#[test]
fn a_division_of_integers_is_shown_wherever_a_float_is_needed() {
    let told = "`5 / 9` is a division of integers, without a fraction: write `5.0 / 9.0`";
    refused_at("const C: f64 = 5 / 9; C * a", &[("5 / 9", told)]);
    refused_at("let c: f64 = 5 / 9; c * a", &[("5 / 9", told)]);
    refused_at("let c = 5 / 9; c * a", &[("c", told)]);
    refused_at("let c = (5 / 9); let d = -c; a - d", &[("d", told)]);
    refused_at("let f = |x: f64| x * a; f(5 / 9)", &[("5 / 9", told)]);
    refused_at("fn f(x: f64) -> f64 { x } f(2 * (5 / 9))", &[("2 * (5 / 9)", told)]);
    refused_at("fn f() -> f64 { 5 / 9 } f()", &[("5 / 9", told)]);
    refused_at("a.powf(5 / 9)", &[("5 / 9", told)]);
    refused_at("a.max(5 / 9)", &[("5 / 9", told)]);
    refused_at("let w: [f64; 2] = [1.0, 5 / 9]; w[0]", &[("5 / 9", told)]);
    refused_at("(5 / 9) * a", &[("(5 / 9)", told)]);
    refused_at("let mut s = a; s += 5 / 9; s", &[("5 / 9", told)]);
    refused_at("let mut s = a; s = 5 / 9; s", &[("s = 5 / 9", told)]);
    refused_at("if a > b { 5 / 9 } else { a }", &[("if a > b { 5 / 9 } else { a }", told)]);
    refused_at("5 / 9", &[("5 / 9", told)]);
    refused_at("let n = 3; a * (n / 2)", &[("(n / 2)", "write `n as f64 / 2.0`")]);
    let single = "fn k(u: &Field<f32>) -> f32 { let n = 3; u[X] * (n / 2) }";
    refused_whole_at(single, &[("(n / 2)", "write `n as f32 / 2.0`")]);
    refused_whole_at("fn k(u: &Field<f64>) -> Sum<f64> { Sum(5 / 9) }", &[("Sum(5 / 9)", told)]);
}

#[test]
fn a_number_of_another_type_is_shown_with_its_conversion() {
    refused_at("let n = a as i32; n", &[("n", "`f64` meets `i32`\n  = help: convert it: `n as f64`")]);
    refused_at("let n = a as i32; let x: f64 = n + 1; x", &[("n + 1", "convert it: `(n + 1) as f64`")]);
    refused_at("let n = a as i32; a.max(n)", &[("n", "convert it: `n as f64`")]);
    refused_at("u[HERE].max(0)", &[("0", "the integer 0 stands where a float is needed\n  = help: write `0.0`")]);
    let pair = "fn k(u: &Field<f64>, n: &Field<i32>) -> (f64, f64) { (u[X], n[X]) }";
    refused_whole_at(pair, &[("n[X]", "convert it: `n[X] as f64`")]);
}

#[test]
fn mistakes_of_beginners_are_named() {
    refused_at("u[X / 2]", &[("X / 2", "there is no value between two")]);
    refused_at("u[X / 2]", &[("X / 2", "`0.5 * (u[HERE] + u[X])`")]);
    refused_at("u[X + Y * 0.5]", &[("Y * 0.5", "offsets must be known at compile time")]);
    refused_at("if u[HERE] = 0.0 { a } else { b }", &[("u[HERE] = 0.0", "write `u[HERE] == 0.0`")]);
    refused_at("u.X + a", &[("X", "it is read with brackets: `u[X]`")]);
    refused_at("u.y", &[("y", "it is read with brackets: `u[Y]`")]);
    refused_at("let f = |x: f64| if x > 0.0 { f(x - 1.0) } else { x }; f(a)", &[("f", "`f` calls itself")]);
    refused_at("a + rand()", &[("rand", "a stencil gives the same at every call")]);
    refused_at("f64::PI * a", &[("f64::PI", "write the whole path: `std::f64::consts::PI`")]);
    refused_at("f32::TAU as f64 * a", &[("f32::TAU", "write the whole path: `std::f32::consts::TAU`")]);
    for name in ["X", "Y", "Z", "HERE"] {
        let source = format!("fn k(u: &Field<f64>, {name}: f64) -> f64 {{ u[HERE] }}");
        refused_whole_at(&source, &[(name, "`X`, `Y`, `Z` and `HERE` are offsets; give the parameter another name")]);
    }
    refused_whole_at(
        "fn k(u: &Field<f64>) -> ([f64; 2], Sum<f64>) { ([u[X]; 2], Sum(u[X])) }",
        &[("[f64; 2]", "an array stands alone, `[f64; 3]`, with no value and no fold beside it")],
    );
}

#[test]
fn what_is_not_mutable_is_pointed_at() {
    let declare = "`s` is not mutable\n  = help: declare it with `mut`: `let mut s = ..`";
    refused_at("let s = a; s = b; s", &[("s", declare)]);
    refused_at("let s = 0.0; for d in [X, Y] { s += u[d]; } s", &[("s", declare)]);
    refused_at("let w = [a, b]; w[0] = 1.0; w[1]", &[("w", "let mut w")]);
    refused_at("let n = 0; n += 1; a", &[("n", "let mut n")]);
    refused_at("a += 1.0; a", &[("a", "start a variable with it: `let mut a = a;`")]);
    // Both mistakes are told, and none that only follows from them.
    refused_at("let s = 0; for d in [X, Y] { s += u[d]; } s", &[("s", "write `0.0` where `s`"), ("s", declare)]);
    refused_at("let mut s = 0; for d in [X, Y] { s += u[d]; } s", &[("s", "write `0.0` where `s` gets its value")]);
}

#[test]
fn parameters_have_names_of_their_own() {
    let twice = |parameters: &str| format!("fn k({parameters}) -> f64 {{ 1.0 }}");
    for parameters in ["u: &Field<f64>, u: f64", "u: &Field<f64>, u: &Field<f64>", "u: &[Field<f64>; 2], u: Point"] {
        refused_whole_at(&twice(parameters), &[("u", "two parameters are named `u`\n  = help: give each parameter")]);
    }
}

#[test]
fn options_show_their_form() {
    let options = |text: &str| syn::parse_str::<Options>(text);
    for right in ["", "contract", "crate = a::b", "contract, crate = x,"] {
        assert!(options(right).is_ok(), "{right}");
    }
    let check = |text: &str, expected: &[&str]| {
        let wrong: Vec<String> = options(text).err().expect(text).into_iter().map(|error| error.to_string()).collect();
        let fits = wrong.len() == expected.len() && wrong.iter().zip(expected).all(|(text, part)| text.contains(part));
        assert!(fits, "{text} gives {wrong:#?}, not {expected:#?}");
    };
    check(
        "crate = \"x::y\"",
        &[
            "the option `crate` takes the path of polyhalo\n  = help: write it without quotes: `#[stencil(crate = x::y)]`",
        ],
    );
    for wrong in ["crate", "crate = ", "crate x", "crate = 3", "crate = \"a b\"", "crate = a b", "crate(x)"] {
        check(wrong, &["`#[stencil(crate = my_crate::polyhalo)]`"]);
    }
    for wrong in ["contract = true", "contract(yes)", "contract crate = x", "contract = false, crate = x"] {
        check(wrong, &["the option `contract` takes no value\n  = help: write `#[stencil(contract)]`"]);
    }
    check("\"contract\"", &["`\"contract\"` is not an option of #[stencil]\n  = help: the options are"]);
    check("fast", &["`fast` is not an option"]);
    check("fast, crate = \"x\", 7", &["`fast`", "`crate`", "`7` is not an option"]);
}
