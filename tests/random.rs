//! Random kernels: native code and OpenCL devices against the interpreter.
//!
//! `POLYHALO_RANDOM_KERNELS` is their number and `POLYHALO_RANDOM_SEED` the seed of the first; a failure names the seed of
//! its kernel.

use polyhalo_codegen::Verified;
use polyhalo_codegen::front::{Options, compile};
use polyhalo_codegen::random::{Limits, kernel};
use polyhalo_tests::agreement::{check, check_host, check_opencl};
use polyhalo_tests::number;

/// The number and the first seed of the kernels, unless the environment has others.
const KERNELS: u64 = 20;
const SEED: u64 = 1;

fn kernels() -> Vec<Verified> {
    let seed = number("POLYHALO_RANDOM_SEED", SEED);
    let seeds = (0..number("POLYHALO_RANDOM_KERNELS", KERNELS)).map(|number| seed.wrapping_add(number));
    seeds.map(|seed| kernel(&format!("random_{seed}"), seed, Limits::default())).collect()
}

#[test]
fn native_code_has_the_interpreters_bits() {
    check_host(&kernels());
}

#[test]
fn opencl_devices_have_the_interpreters_bits() {
    check_opencl(&kernels());
}

/// Kernels of one result whose bodies are given with their types; `x: &Field<float>`.
fn written(bodies: impl IntoIterator<Item = (&'static str, String)>) -> Vec<Verified> {
    let kernel = |(number, (float, body)): (usize, (&str, String))| {
        let text = format!("fn written_{number}(x: &Field<{float}>) -> {float} {{ {body} }}");
        let function = syn::parse_str(&text).expect("it is Rust");
        let compiled = compile(&function, &Options::default());
        compiled.unwrap_or_else(|refused| panic!("{text}: {:?}", refused.diagnostics)).kernel
    };
    bodies.into_iter().enumerate().map(kernel).collect()
}

/// Of a number between -1 and 0 the integer is 0, which has no sign.
#[test]
fn a_float_that_was_an_integer_is_no_negative_zero() {
    let mut bodies = Vec::new();
    for float in ["f64", "f32"] {
        for integer in ["i64", "i32", "i8", "u64", "u32", "u8"] {
            bodies.push((float, format!("x[HERE] as {integer} as {float}")));
        }
        let other = if float == "f64" { "f32" } else { "f64" };
        bodies.push((float, format!("(x[HERE] * 0.5) as i32 as {other} as {float}")));
        bodies.push((float, format!("let n = x[HERE] as i32; if n > 3 {{ x[X] }} else {{ n as {float} }}")));
        bodies.push((float, format!("1.0 / ((x[HERE] * 0.25) as i8 as i64 as {float})")));
        bodies.push((float, format!("(x[HERE] as i32).max(x[X] as i32) as {float}")));
        bodies.push((float, format!("x[HERE] - (x[HERE] as i64) as {float} * 0.125")));
    }
    check(&written(bodies));
}
