//! What the language accepts, by value, and what it refuses, by message. Each case is one line.

use super::{Options, compile};
use crate::interpret::{Point, interpret};
use crate::ir::{Field, Id, Kernel, Offset, Param, Type, Value};

/// Field number f holds 1000 f + x + 10 y + 100 z at displacement (x, y, z); scalar number s is 0.5 + s.
struct Numbered<'k>(&'k Kernel);

impl Numbered<'_> {
    fn value(ty: Type, value: f64) -> Value {
        match ty {
            Type::F64 => Value::F64(value),
            Type::F32 => Value::F32(value as f32),
            Type::Bool => Value::Bool(value > 0.0),
        }
    }
}

impl Point for Numbered<'_> {
    fn load(&self, field: Id<Field>, Offset([x, y, z]): Offset) -> Value {
        let value = 1000 * field.index() as i32 + x + 10 * y + 100 * z;
        Numbered::value(self.0.fields[field].ty, f64::from(value))
    }

    fn param(&self, param: Id<Param>) -> Value {
        Numbered::value(self.0.params[param].ty, 0.5 + param.index() as f64)
    }
}

fn compiled(source: &str) -> Result<crate::front::Compiled, Vec<String>> {
    let function = syn::parse_str(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    compile(&function, &Options::default())
        .map_err(|refused| refused.diagnostics.iter().map(|diagnostic| diagnostic.to_string()).collect())
}

/// The value of the function at the numbered point.
fn run(source: &str) -> Value {
    let compiled = compiled(source).unwrap_or_else(|wrong| panic!("{source} is refused: {wrong:?}"));
    interpret(&compiled.kernel, &Numbered(&compiled.kernel))[0]
}

/// The body, with fields `u`, `v` and scalars `a`, `b` of f64, gives `expected`.
fn check(body: &str, expected: f64) {
    let source = format!("fn k(u: &Field<f64>, v: &Field<f64>, a: f64, b: f64) -> f64 {{ {body} }}");
    assert_eq!(run(&source), Value::F64(expected), "{body}");
}

/// The body is refused with a message that contains each part.
fn refused(body: &str, parts: &[&str]) {
    let source = format!("fn k(u: &Field<f64>, v: &Field<f64>, a: f64, b: f64) -> f64 {{ {body} }}");
    refused_whole(&source, parts);
}

fn refused_whole(source: &str, parts: &[&str]) {
    let wrong = compiled(source).err().unwrap_or_else(|| panic!("{source} is accepted")).join("\n");
    for part in parts {
        assert!(wrong.contains(part), "{source}\ngives {wrong:?}\nwithout {part:?}");
    }
}

#[test]
fn offsets_are_sums_and_multiples() {
    check("u[HERE]", 0.0);
    check("u[X] + u[Y] + u[Z]", 111.0);
    check("u[2*X - Y]", -8.0);
    check("u[-(X + Y) * 2]", -22.0);
    check("v[Z - 3*Z + X]", 801.0);
    check("const R: i32 = 4; u[R*X] - u[-R*X]", 8.0);
    check("let d = X + Z; u[d] + u[-d]", 0.0);
    check("u[Offset::Y]", 10.0);
}

#[test]
fn arithmetic_is_rusts() {
    check("u[3*X] - (v[HERE] - u[X])", 3.0 - (1000.0 - 1.0));
    check("a / b / 3.0", 0.5 / 1.5 / 3.0);
    check("-a * -b", 0.75);
    check("-u[X].abs()", -1.0);
    check("(a - 2.0).abs().sqrt().mul_add(2.0, b)", 1.5_f64.sqrt().mul_add(2.0, 1.5));
    check("f64::sqrt(v[HERE])", 1000.0_f64.sqrt());
    check("let z = -0.0; z * a", -0.0);
    check("2f64 + 1e-3 + 1_000.5", 2.0 + 1e-3 + 1000.5);
    check("std::f64::consts::PI + f64::EPSILON", std::f64::consts::PI + f64::EPSILON);
}

#[test]
fn names_are_shadowed_and_assigned() {
    check("let x = a; let x = x + 1.0; x", 1.5);
    check("let mut s = a; s += 2.0; s *= s; s -= 1.0; s /= 2.0; s", 2.625);
    check("let s = a; let f = |x: f64| x + s; let s = 100.0; f(1.0) + s", 101.5);
    check("let mut s = a; let t = s; s = 9.0; t + s", 9.5);
    check("let mut s = a; let t = (s, [s, s + 1.0]); s = 9.0; t.0 + t.1[0] + t.1[1] + s", 0.5 + 0.5 + 1.5 + 9.0);
    check("let (x, [y, z]) = (a, [b, 2.0]); x + y * z", 3.5);
    check("let r#type = a; r#type", 0.5);
    check("let x = { let a = 5.0; a }; x + a", 5.5);
    check("return a;", 0.5);
}

#[test]
fn closures_and_functions_are_inlined() {
    check("let f = |d: Offset| u[d] - u[-d]; f(X) + f(2*Y)", 2.0 + 40.0);
    check("let lap = |w: &Field<f64>| w[X] + w[-X] - 2.0 * w[HERE]; lap(u) + lap(&v)", 0.0);
    check("fn square(x: f64) -> f64 { x * x } square(b) + square(square(2.0))", 18.25);
    check("let g = |f: f64, d| f * u[d]; g(a, X) + g(b, Y)", 15.5);
    check("let apply = |n: i32, x: f64| x * n as f64; apply(3, a)", 1.5);
    check("let twice = |x: f64| { let y = x + x; y }; let four = |x| twice(twice(x)); four(a)", 2.0);
    check("let mut s = 0.0; let unused = |x: f64| x; s += 1.0; s", 1.0);
}

#[test]
fn loops_are_unrolled() {
    check("let mut s = 0.0; for i in -1..=1 { for j in 0..2 { s += u[i*X + j*Y] } } s", 30.0);
    check("let mut s = 0.0; for d in [X, -Y, Z] { s += u[d]; } s", 91.0);
    check(
        "const W: [f64; 3] = [1.0, 2.0, 4.0]; let mut s = 0.0; for i in 0..W.len() { s += W[i] * u[i as i32 * X]; } s",
        10.0,
    );
    check("let mut s = 0.0; for (i, w) in [3.0, 5.0].iter().enumerate() { s += w * i as f64; } s", 5.0);
    check("let mut s = 0.0; for (d, w) in [X, Y].into_iter().zip([2.0, 3.0]) { s += w * u[d]; } s", 32.0);
    check("let mut s = a; for i in (0..6).step_by(2).rev() { s = s * 2.0 + i as f64; } s", 4.0 + 16.0 + 4.0);
    check("let mut s = 0.0; for i in 5..5 { s += 1.0; } s + a", 0.5);
    check("let mut n = 0; let mut s = 0.0; for d in [X, Y, Z] { n += 1; s += u[n * d]; } s", 1.0 + 20.0 + 300.0);
}

#[test]
fn branches_choose() {
    check("if a < b { u[X] } else { u[Y] }", 1.0);
    check("let c = if a > b { 1.0 } else if a == 0.5 { 2.0 } else { 3.0 }; c", 2.0);
    check("let mut s = a; if !(a >= b) && b != 0.0 || a > 7.0 { s = b; } s", 1.5);
    check("let (x, y) = if a < b { (a, b) } else { (b, a) }; y - x", 1.0);
    check("let mut s = 0.0; for i in -1..=1 { if i != 0 { s += u[i * X + Y]; } } s", 20.0);
    check("if (1, 2) == (1, 2) && true { a } else { b }", 0.5);
    check("let inside = a < b; if inside == (b < 2.0) { 1.0 } else { 0.0 }", 1.0);
}

#[test]
fn literals_take_the_type_of_their_use() {
    let source = "fn k(u: &Field<f32>) -> f32 { let w = 0.1; let mut s = 0.0; s += w * u[X]; s / 3.0 }";
    assert_eq!(run(source), Value::F32(0.1_f32 / 3.0));
    let source = "fn k(u: &Field<f32>, v: &Field<f64>) -> f64 { let w = 0.1; (u[X] * w) as f64 + v[HERE] * 0.1 }";
    assert_eq!(run(source), Value::F64(f64::from(0.1_f32) + 1000.0 * 0.1));
    // Rounded once, from the digits: through f64 this would be another float.
    let digits = "0.50000002980232238769531250000000001";
    let source = format!("fn k(u: &Field<f32>) -> f32 {{ u[HERE] + {digits} }}");
    assert_eq!(run(&source), Value::F32(digits.parse().unwrap()));
}

#[test]
fn results_and_calls_say_what_they_are() {
    let source = "fn k(u: &Field<f64>) -> f64 { let flux = |d: Offset| u[d] - u[HERE]; flux(-X) + flux(2 * Y) }";
    let kernel = compiled(source).unwrap().kernel;
    let notes: Vec<_> = kernel.locals.iter().map(|local| local.note.clone().unwrap_or_default()).collect();
    assert_eq!(notes, ["flux(-X)", "flux(2*Y)"]);
    let source =
        "fn k(u: &Field<f64>) -> f64 { let f = |d: Offset| u[d] * 2.0; let a = f(X); let b = f(Y) + 1.0; a - b }";
    let kernel = compiled(source).unwrap().kernel;
    let names: Vec<_> = kernel.locals.iter().map(|local| local.name.as_str()).collect();
    assert_eq!(names, ["a", "f", "b"], "the user's name where there is one, else the closure's");
}

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
    refused("u.sqrt()", &["the field `u` stands where a number is needed", "`u[HERE]`"]);
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
    refused("(a < b) as f64", &["a bool can't be cast"]);
    refused("a as i32 as f64", &["a float can't be cast to `i32`"]);
    refused("a % b", &["`%` of floats"]);
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
    refused("match a { _ => 1.0 }", &["`match` is not part", "write `if a < b"]);
    refused("if a > b { return 1.0; } a", &["early `return` is not accepted yet"]);
    refused("for i in 0..3 { break; } a", &["`break` is not part"]);
    refused("for i in 0..3 { continue; } a", &["`continue` is not part"]);
    refused("for i in 0.. { } a", &["the range has no end"]);
    refused("for i in 0..100000 { } a", &["has 100000 turns", "at most 4096"]);
    refused("if let x = a { 1.0 } else { 2.0 }", &["`if let` is not part"]);
    refused("if a < b { 1.0 }", &["one branch gives", "needs `else`"]);
    refused("let d = if a < b { X } else { Y }; u[d]", &["an offset depends on a condition"]);
    refused("let mut n = 0; if a < b { n = 1; } u[n*X]", &["changes under a condition"]);
}

#[test]
fn a_stencil_has_a_size() {
    let twice = |n: usize| format!("let f{n} = |x: f64| f{0}(x) + f{0}(x + 1.0);", n - 1);
    let chain: String = (1..40).map(twice).collect();
    refused(&format!("let f0 = |x: f64| x * a; {chain} f39(b)"), &["more than 50000 operations", "fewer turns"]);
    let loops = "let mut s = 0.0; for i in 0..4000 { for j in 0..4000 { s += i as f64 * a + j as f64; } } s";
    refused(loops, &["more than 50000 operations"]);
    refused("for i in 0..4000 { for j in 0..4000 { for k in 0..4000 { } } } a", &["more than 200000 turns in all"]);
    check("let mut s = 0.0; for i in 0..20 { for j in 0..20 { s += (i * j) as f64; } } s", 36100.0);
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
    refused("a.powi(2)", &["the method `powi`", "x * x"]);
    refused("a.sin()", &["the method `sin`", "accepted methods: `sqrt`"]);
    refused("struct S; a", &["this item can't be inside a stencil"]);
    refused("let x; x = a; x", &["a variable without a value"]);
    refused("let x = a; x = b; x", &["`x` is not mutable", "let mut x"]);
    refused("a & b", &["`&` is not accepted yet"]);
    refused("let mut s = a; s + { s = b; s }", &["read here and assigned later"]);
    refused("let w = [1.0, 2.0]; w[2]", &["index 2 is outside", "0 to 1"]);
    refused("u[HERE];", &["`()` stands where a number is needed", "does a `;` stand behind it"]);
    refused("let f = |x: f64| q + x; a", &["`q` is not known"]);
}

#[test]
fn signatures_are_fields_scalars_and_a_result() {
    refused_whole("fn k(u: Field<f64>) -> f64 { 1.0 }", &["a field is borrowed: `u: &Field<f64>`"]);
    refused_whole("fn k(u: &mut Field<f64>) -> f64 { 1.0 }", &["fields are read only"]);
    refused_whole("fn k(u: &Field<f64>, n: usize) -> f64 { u[HERE] }", &["type `usize`", "scalars `f64`"]);
    refused_whole("fn k(u: &Field<f64>, d: Offset) -> f64 { u[d] }", &["can't be an `Offset`"]);
    refused_whole("fn k(u: &Field<f64>, (a, b): (f64, f64)) -> f64 { a }", &["is a plain name"]);
    refused_whole("fn k(u: &Field<f64>, mut a: f64) -> f64 { a }", &["parameter `a` can't be `mut`"]);
    refused_whole("fn k(a: f64) -> f64 { a }", &["`k` takes no field"]);
    refused_whole("fn k(u: &Field<f64>) { }", &["`k` returns nothing", "-> f64"]);
    refused_whole("fn k(u: &Field<f64>) -> String { u[HERE] }", &["can't return `String`"]);
    refused_whole("fn k<T>(u: &Field<f64>) -> f64 { u[HERE] }", &["generic stencils are not accepted yet"]);
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
