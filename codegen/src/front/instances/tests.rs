//! What generic functions become, by value, and what is refused, by message.

use quote::ToTokens;

use super::*;
use crate::interpret::{Point, interpret};
use crate::ir::{Axis, Field, Id, Kernel, Offset, Param, Value};

/// Field number f holds 1000 f + x + 10 y + 100 z at displacement (x, y, z); every scalar is 0.5.
struct Numbered<'k>(&'k Kernel);

impl Numbered<'_> {
    fn value(ty: ir::Type, value: f64) -> Value {
        match ty {
            ir::Type::F64 => Value::F64(value),
            ir::Type::F32 => Value::F32(value as f32),
            integer => Value::from_bits(integer, value as i64 as u64),
        }
    }
}

impl Point for Numbered<'_> {
    fn load(&self, field: Id<Field>, Offset([x, y, z]): Offset) -> Value {
        let value = 1000 * field.index() as i32 + x + 10 * y + 100 * z;
        Numbered::value(self.0.fields[field].ty, f64::from(value))
    }

    fn param(&self, param: Id<Param>) -> Value {
        Numbered::value(self.0.params[param].ty, 0.5)
    }

    fn index(&self, axis: Axis) -> i32 {
        axis as i32
    }
}

/// What a kernel gives at the numbered point.
pub(in crate::front) fn values(compiled: &Compiled) -> Vec<Value> {
    interpret(&compiled.kernel, &Numbered(&compiled.kernel))
}

fn made(options: &str, source: &str) -> Result<Vec<(String, String, Compiled)>, Vec<String>> {
    let function = syn::parse_str(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let options = syn::parse_str(options).unwrap_or_else(|error| panic!("{options}: {error}"));
    let said = |refused: Refused| refused.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>();
    let instances = instances(&function, &[], &options).map_err(said)?;
    let compiled = compile_instances(&instances, &options).map_err(said)?;
    let described = instances.iter().map(|instance| (instance.name.clone(), instance.describe()));
    Ok(described.zip(compiled).map(|((name, described), compiled)| (name, described, compiled)).collect())
}

/// The instances have these names and first values at the numbered point.
fn check(options: &str, source: &str, expected: &[(&str, Value)]) {
    let made = made(options, source).unwrap_or_else(|wrong| panic!("{source} is refused: {wrong:#?}"));
    for (name, _, compiled) in &made {
        assert_eq!(compiled.kernel.name, *name);
    }
    let found: Vec<(&str, Value)> =
        made.iter().map(|(name, _, compiled)| (name.as_str(), values(compiled)[0])).collect();
    assert_eq!(found, expected, "{source}");
}

/// The mistakes are so many, and the text of all of them has each part.
fn refused_with(options: &str, source: &str, number: usize, parts: &[&str]) {
    let wrong = made(options, source).err().unwrap_or_else(|| panic!("{source} is accepted"));
    assert_eq!(wrong.len(), number, "{wrong:#?}");
    let wrong = wrong.join("\n");
    for part in parts {
        assert!(wrong.contains(part), "{source}\ngives {wrong}\nwithout {part:?}");
    }
}

#[test]
fn types_are_put_everywhere() {
    let all = [("k_f32", Value::F32(0.5 + f32::EPSILON)), ("k_f64", Value::F64(0.5 + f64::EPSILON))];
    check(
        "T = f32 | f64",
        "fn k<T: Element>(u: &Field<T>, a: T) -> T where T: Copy { let b: T = u[HERE] * 0.0; a + b + T::EPSILON }",
        &all,
    );
    check(
        "T = f32 | f64",
        "fn k<T>(u: &[Field<T>; 1], a: T) -> (T, T) { let f = |x: T| -> T { x + T::EPSILON }; (f(a), u[0][HERE]) }",
        &all,
    );
    check("T = f32 | f64", "fn k<T>(u: &Field<T>, a: T) -> [T; 1] { fn f(x: T) -> T { x + T::EPSILON } [f(a)] }", &all);
    // A value may have the name of a type.
    check("T = f64", "fn k<T>(T: &Field<T>) -> T { T[X] }", &[("k_f64", Value::F64(1.0))]);
    check("T = i8", "fn k<T>(u: &Field<T>) -> T { T::MAX - u[HERE] }", &[("k_i8", Value::I8(127))]);
}

#[test]
fn constants_are_known_at_compile_time() {
    let sum =
        "fn k<const R: usize>(u: &Field<f64>) -> f64 { let mut s = 0.0; for i in 1..=R { s += u[i as i32 * X]; } s }";
    check("R = 1 | 2 | 4", sum, &[("k_1", Value::F64(1.0)), ("k_2", Value::F64(3.0)), ("k_4", Value::F64(10.0))]);
    let table = "fn k<const R: usize>(u: &Field<f64>) -> f64 { let w: [f64; R] = [1.5; R]; w[R - 1] * u[2 * R as i32 * Y - X] }";
    check("R = 1 | 0x2", table, &[("k_1", Value::F64(28.5)), ("k_2", Value::F64(58.5))]);
    let many = "fn k<const N: usize>(u: &[Field<f64>; N]) -> [f64; N] { let mut r = [0.0; N]; for i in 0..N { r[i] = u[N - 1][HERE]; } r }";
    check("N = 1 | 3", many, &[("k_1", Value::F64(0.0)), ("k_3", Value::F64(2000.0))]);
    let signed = "fn k<const D: i32, const B: bool>(u: &Field<f64>) -> f64 { if B { u[D * X] } else { u[D * Z] } }";
    check(
        "B = true | false, D = -1 | 1",
        signed,
        &[
            ("k_m1_true", Value::F64(-1.0)),
            ("k_m1_false", Value::F64(-100.0)),
            ("k_1_true", Value::F64(1.0)),
            ("k_1_false", Value::F64(100.0)),
        ],
    );
}

#[test]
fn lists_multiply_in_the_order_of_the_parameters() {
    let both = "fn k<'a, T, const R: usize>(u: &'a Field<T>) -> T { u[R as i32 * X] }";
    let made = made("R = 1 | 2, T = f32 | i32", both).expect("accepted");
    let names: Vec<&str> = made.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["k_f32_1", "k_f32_2", "k_i32_1", "k_i32_2"]);
    assert_eq!(made[3].1, "T = i32, R = 2");
    assert_eq!(values(&made[3].2), [Value::I32(2)]);
}

#[test]
fn a_plain_function_is_its_only_instance() {
    let plain = "fn r#match(u: &Field<f64>) -> f64 { u[X] }";
    let made = made("", plain).expect("accepted");
    assert_eq!((made.len(), made[0].0.as_str(), made[0].1.as_str()), (1, "match", ""));
}

#[test]
fn lifetimes_are_left_out() {
    let source = "fn k<'a>(u: &'a Field<f64>, v: &'a [Field<f64>; 2]) -> f64 { \
                  fn at<'b>(u: &'b Field<f64>) -> f64 { u[X] } let w: &'a Field<f64> = u; at(w) + v[1][HERE] }";
    check("", source, &[("k", Value::F64(2001.0))]);
}

#[test]
fn nested_generic_functions_are_copied_for_their_arguments() {
    check(
        "",
        "fn k(u: &Field<f64>) -> f64 { const W: usize = 3; \
         fn d<const R: usize>(u: &Field<f64>, d: Offset) -> f64 { u[R as i32 * d] } \
         d::<2>(u, X) + d::<W>(u, Y) + d::<2>(u, Z) }",
        &[("k", Value::F64(232.0))],
    );
    check(
        "T = f32 | f64, R = 2",
        "fn k<T, const R: usize>(u: &Field<T>) -> T { \
         fn at<T, const R: usize>(u: &Field<T>) -> T { u[R as i32 * X] } \
         fn twice<T>(u: &Field<T>) -> T { let at = at::<T, 5>(u); at + at } \
         twice(u) + at(u) + at::<T, R>(u) + at::<_, R>(u) }",
        &[("k_f32_2", Value::F32(16.0)), ("k_f64_2", Value::F64(16.0))],
    );
    let refused = |body: &str, parts: &[&str]| {
        let source =
            format!("fn k(u: &Field<f64>) -> f64 {{ fn at<T, const R: usize>(u: &Field<T>) -> T {{ u[X] }} {body} }}");
        refused_with("", &source, 1, parts);
    };
    refused("at(u)", &["`T` of the generic function `at`", "`at::<f64>(..)`"]);
    refused("at::<f64>(u)", &["`at` has 2 generic parameters, 1 are given"]);
    refused("at::<f64, { 1 + 1 }>(u)", &["`R` of `at` is given as `{ 1 + 1 }`", "name of a constant"]);
    refused("at::<[f64; 2], 1>(u)", &["`T` of `at` is given as `[f64; 2]`"]);
}

#[test]
fn wrong_lists_are_refused_at_their_tokens() {
    let plain = "fn k(u: &Field<f64>) -> f64 { u[X] }";
    refused_with("T = f32", plain, 1, &["1:1: `T` is neither a generic parameter of `k` nor an option", "`contract`"]);
    let generic = "fn k<T>(u: &Field<T>) -> T { u[X] }";
    refused_with("", generic, 1, &["1:6: the type parameter `T` has no list", "#[stencil(T = f32 | f64)]"]);
    refused_with("T = f32 | f32", generic, 1, &["1:11: `f32` is listed twice"]);
    refused_with("T = f32, T = f64", generic, 1, &["1:10: `T` is listed twice"]);
    refused_with("T = String | usize | 3", generic, 3, &["`T` can't be `String`", "`usize`", "`3`", "`bool`"]);
    let constant = "fn k<const R: usize>(u: &Field<f64>) -> f64 { u[X] }";
    refused_with("contract", constant, 1, &["1:12: the const parameter `R` has no list", "#[stencil(R = 1 | 2 | 4)]"]);
    refused_with("R = f64 | true | 0.5 | WIDTH", constant, 4, &["`f64`", "`true`", "`0.5`", "`R` can't be `WIDTH`"]);
    let odd = "fn k<const C: char>(u: &Field<f64>) -> f64 { u[X] }";
    refused_with("C = 'a'", odd, 1, &["`C` is a constant of type `char`", "integers and `bool`"]);
    let array = "fn k<const R: usize>(u: &[Field<f64>; 2 * R]) -> f64 { u[0][X] }";
    refused_with("R = 1 | 2", array, 1, &["the length `2 * R` is computed from `R`"]);
}

#[test]
fn there_may_be_so_many_instances_and_no_more() {
    let list = |name: &str, number: usize| {
        let values: Vec<String> = (0..number).map(|value| value.to_string()).collect();
        format!("{name} = {}", values.join(" | "))
    };
    let source = "fn k<const A: usize, const B: usize>(u: &Field<f64>) -> f64 { u[A as i32 * X + B as i32 * Y] }";
    let most = made(&format!("{}, {}", list("A", 8), list("B", 8)), source).expect("accepted");
    assert_eq!(most.len(), MAX_INSTANCES);
    assert_eq!(values(&most[MAX_INSTANCES - 1].2), [Value::F64(77.0)]);
    let more = format!("{}, {}", list("A", 13), list("B", 5));
    refused_with(&more, source, 1, &["1:6: stencil `k` has 65 instances", "at most 64"]);
}

#[test]
fn a_mistake_of_all_instances_is_told_once_and_of_some_with_their_values() {
    refused_with(
        "T = f32 | f64 | i32",
        "fn k<T>(u: &Field<T>) -> T { let a = u[0]; unknown + a }",
        2,
        &["1:40: field `u` is indexed by an integer", "1:44: `unknown` is not known"],
    );
    let wrong = made("T = f32 | f64", "fn k<T>(u: &Field<T>) -> T { u[0] }").expect_err("refused");
    assert!(!wrong[0].contains("instance"), "{wrong:?}");
    let some = "fn k<T>(u: &Field<T>, a: f64) -> T { u[X] * a }";
    refused_with("T = f32 | f64", some, 1, &["this is the instance with T = f32"]);
    let nothing = made("T = f32 | f64", "async fn k<T>(u: &Field<T>) -> T { u[HERE] }").expect_err("refused");
    assert!(nothing.len() == 1 && nothing[0].contains("can't be `async`"), "{nothing:?}");
}

#[test]
fn the_tokens_stay_where_the_user_wrote_them() {
    let function: ItemFn = syn::parse_str("fn k<T>(u: &Field<T>,\n a: T) -> T {\n u[X] * a }").expect("Rust");
    let options: Options = syn::parse_str("T = f32").expect("options");
    let made = instances(&function, &[], &options).expect("accepted").remove(0).function;
    let FnArg::Typed(scalar) = &made.sig.inputs[1] else { panic!("a parameter") };
    assert_eq!(scalar.ty.to_token_stream().to_string(), "f32");
    let at = idents(scalar.ty.to_token_stream()).next().expect("a name").span().start();
    assert_eq!((at.line, at.column), (2, 4));
}
