//! What the language refuses, by message.

use super::{compiled, refused, refused_whole};

#[test]
fn outer_names_are_refused() {
    refused("u[HERE] * OMEGA", &["`OMEGA` is not known inside the stencil", "const OMEGA", "can't see names outside"]);
    refused("u[x]", &["`x` is not known", "written in capitals: `X`"]);
    refused("sqrt(a)", &["`sqrt` is not known", "functions of numbers are methods: `x.sqrt()`"]);
    refused("helper(a)", &["the function `helper` is not known", "define `helper` inside the stencil"]);
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
    refused("u.sqrt()", &["the field `u` stands where a number is needed", "`u[HERE].sqrt(..)`"]);
}

#[test]
fn numbers_have_one_type() {
    refused("2 * a", &["the integer 2 meets a float", "`2.0`"]);
    refused("a as f32 + b", &["`f32` meets `f64`", "`x as f32`"]);
    refused("1", &["the integer 1 stands where a float is needed", "`1.0`"]);
    refused("a < b", &["`f64` meets `bool`", "if c { 1.0 } else { 0.0 }"]);
    refused("if a { 1.0 } else { 2.0 }", &["the condition is a number", "a comparison such as `a < b`"]);
    refused("(a < b) * 2.0", &["`*` of a bool and a number", "choose a number"]);
    refused("(a < b) + (b < a)", &["`+` of two bools"]);
    refused("let x: f32 = 1.0; x * u[X]", &["`f32` meets `f64`"]);
    refused("(a < b) as f64", &["a bool can't be cast to `f64`", "f64::from(c)"]);
    refused("(a as i16) as f64", &["can't be cast to `i16`", "`i32`"]);
    refused("(a as bool) as f64", &["a number can't be cast to `bool`", "`x != 0`"]);
    refused("a + (a as i32)", &["`f64` meets `i32`", "`x as f64`"]);
    refused("let n = a as i32; let m = n + 1u8; a", &["`i32` meets `u8`"]);
    refused("let n = a as u8; (n + 300) as f64", &["300 does not fit into `u8`"]);
    refused("let n = a as u8; (-n) as f64", &["an unsigned integer (`u8`) can't be negated"]);
    refused("let n = 1 << 40; n as f64", &["the type of the integer 1099511627776 is not known", "`1u64`"]);
    refused("let n = 1u8 << 8; a", &["a shift by 8 is outside"]);
    refused("let n = a as i32; n", &["`f64` meets `i32`"]);
    refused("!a", &["`!` of a float"]);
    refused("a ^ b", &["`^` of a float", "to_bits"]);
    refused("a << 2", &["the integer 2 meets a float"]);
    refused("a << b", &["`<<` of what is no integer"]);
    refused("(a < b) & (a as i32)", &["`&` of a bool and a number"]);
    refused("(a < b) == 1", &["`==` of a bool and a number"]);
    refused("(a && b) as f64", &["`&&` of a number"]);
    refused("1.0e999", &["too large for f64"]);
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
    refused("let s = \"x\"; a", &["this literal is not part"]);
    refused("let f = move |x: f64| x; f(a)", &["`move` is not part"]);
    refused("fn f(x: f64) -> f64 { f(x) } f(a)", &["`f` calls itself", "recursion is not possible"]);
    refused("let f = |x: f64| x; f(a, b)", &["`f` takes 1 arguments, 2 are given"]);
    refused("let p = &mut a; *p", &["`&mut` is not part"]);
    refused("a.powi(b as i32)", &["`powi` with an exponent that is only known at run time", "`powf`"]);
    refused("((a as i32).pow(b as u32)) as f64", &["`pow` with an exponent"]);
    refused("a.exp_m1()", &["the method `exp_m1`", "`x.exp() - 1.0`"]);
    refused("a.ln_1p()", &["the method `ln_1p`", "`(1.0 + x).ln()`"]);
    refused("a.gamma()", &["the method `gamma` of a float", "`sqrt`", "`powi`", "`sin_cos`"]);
    refused("(a as i32).sqrt()", &["the method `sqrt` of an integer", "(n as f64).sqrt"]);
    refused("(a as i32).leading_zeros() as f64", &["the method `leading_zeros`", "`count_ones`"]);
    refused("(a as u32).abs() as f64", &["the method `abs` of `u32`"]);
    refused("(a < b).then(b)", &["the method `then` of a bool"]);
    refused("a.max(b, a)", &["`max` takes 1 arguments"]);
    refused("a.max(1)", &["the integer 1 stands where a float is needed"]);
    refused("a.clamp(b)", &["`clamp` does not take 1 arguments"]);
    refused("2.sqrt()", &["the method `sqrt` of an integer"]);
    refused("f64::gamma(a)", &["the method `gamma`"]);
    refused("std::mem::swap(a, b)", &["`std::mem::swap` is not known"]);
    refused("f64::from_bits(a)", &["`u64` meets `f64`"]);
    refused("i32::LARGEST as f64", &["`i32::LARGEST` is not known"]);
    refused("struct S; a", &["this item can't be inside a stencil"]);
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
    refused("let w = [[1.0], [2.0]]; w[a as usize][0]", &["an array of arrays", "one flat array"]);
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
    refused_whole("fn k(u: &FieldX<f64>) -> f64 { 1.0 }", &["along some axes only are not accepted yet"]);
    refused_whole(
        "fn k(s: &[Field<f64>]) -> f64 { 1.0 }",
        &["the number of fields must be known: `s: &[Field<f64>; 3]`"],
    );
    refused_whole("fn k(s: &[Field<f64>; N]) -> f64 { 1.0 }", &["must be a literal from 1 to 64"]);
    refused_whole("fn k(s: [Field<f64>; 2]) -> f64 { 1.0 }", &["fields are borrowed: `s: &[Field<f64>; 2]`"]);
    refused_whole("fn k(u: &Field<f64>, w: [f64; 2]) -> f64 { 1.0 }", &["pass its numbers one by one"]);
    refused_whole(
        "fn k(u: &Field<f64>) -> Sum<f64> { u[X] }",
        &["can't return `Sum<f64>`", "reductions are not accepted yet"],
    );
    refused_whole(
        "fn k(u: &Field<f64>) -> (f64, f64) { u[X] }",
        &["returns a number, its signature says a tuple of 2"],
    );
    refused_whole(
        "fn k(u: &Field<f64>) -> [f64; 2] { [u[X]; 3] }",
        &["returns an array, its signature says an array of 2"],
    );
    refused_whole("fn k(u: &Field<f64>) -> (f64, (f64, f64)) { 1.0 }", &["can't return"]);
    refused_whole("fn k(u: &Field<f64>) -> (f64, f32) { (u[X], u[Y]) }", &["`f32` meets `f64`"]);
    refused_whole("fn k(u: &Field<f64>, d: Offset) -> f64 { u[d] }", &["can't be an `Offset`"]);
    refused_whole("fn k(u: &Field<f64>, (a, b): (f64, f64)) -> f64 { a }", &["is a plain name"]);
    refused_whole("fn k(u: &Field<f64>, mut a: f64) -> f64 { a }", &["parameter `a` can't be `mut`"]);
    refused_whole("fn k(a: f64) -> f64 { a }", &["`k` takes no field"]);
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
    let source = "fn k(u: &Field<f64>) -> f64 { let f = |d: Offset| u[d] * q; f(X) + f(Y) + p + u[0] }";
    let wrong = compiled(source).err().unwrap();
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

#[test]
fn a_stencil_has_a_size() {
    let twice = |n: usize| format!("let f{n} = |x: f64| f{0}(x) + f{0}(x + 1.0);", n - 1);
    let chain: String = (1..40).map(twice).collect();
    refused(&format!("let f0 = |x: f64| x * a; {chain} f39(b)"), &["more than 50000 operations", "fewer turns"]);
    let loops = "let mut s = 0.0; for i in 0..4000 { for j in 0..4000 { s += i as f64 * a + j as f64; } } s";
    refused(loops, &["more than 50000 operations"]);
    let empty = "for i in 0..4000 { for j in 0..4000 { for k in 0..4000 { } } } a";
    refused(empty, &["more than 200000 turns in all"]);
}
