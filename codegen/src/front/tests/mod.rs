//! What the language accepts, by value, and what it refuses, by message. Each case is one line.

mod accepted;
mod agreement;
mod refused;
mod world;

use super::{Compiled, Options, compile};
use crate::interpret::{Point, interpret};
use crate::ir::{Axis, Field, Id, Kernel, Offset, Param, Type, Value};

/// Field number f holds 1000 f + x + 10 y + 100 z at displacement (x, y, z); scalar number s is 0.5 + s; the indices are
/// 7, 8 and 9.
struct Numbered<'k>(&'k Kernel);

impl Numbered<'_> {
    fn value(ty: Type, value: f64) -> Value {
        match ty {
            Type::F64 => Value::F64(value),
            Type::F32 => Value::F32(value as f32),
            Type::Bool => Value::Bool(value > 0.0),
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
        Numbered::value(self.0.params[param].ty, 0.5 + param.index() as f64)
    }

    fn index(&self, axis: Axis) -> i32 {
        7 + axis as i32
    }
}

fn compiled(source: &str) -> Result<Compiled, Vec<String>> {
    let function = syn::parse_str(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    compile(&function, &Options::default())
        .map_err(|refused| refused.diagnostics.iter().map(|diagnostic| diagnostic.to_string()).collect())
}

fn accepted(source: &str) -> Compiled {
    compiled(source).unwrap_or_else(|wrong| panic!("{source} is refused: {wrong:?}"))
}

/// The values of the function at the numbered point.
fn run_all(source: &str) -> Vec<Value> {
    let compiled = accepted(source);
    interpret(&compiled.kernel, &Numbered(&compiled.kernel))
}

/// The first value of the function at the numbered point.
fn run(source: &str) -> Value {
    run_all(source)[0]
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

/// What is wrong with a source of one line, each with the text that is underlined.
fn underlined(source: &str) -> Vec<(String, String)> {
    let function = syn::parse_str(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let refused = compile(&function, &Options::default()).expect_err("this is refused");
    let text = |diagnostic: &crate::Diagnostic| {
        let (first, last) = refused.spans.of(diagnostic.place);
        source.chars().take(last.end().column).skip(first.start().column).collect()
    };
    refused.diagnostics.iter().map(|diagnostic| (text(diagnostic), diagnostic.text())).collect()
}

/// The body is refused with exactly these mistakes: the text that is underlined, and a part of what is said.
fn refused_at(body: &str, expected: &[(&str, &str)]) {
    refused_whole_at(&format!("fn k(u: &Field<f64>, v: &Field<f64>, a: f64, b: f64) -> f64 {{ {body} }}"), expected);
}

fn refused_whole_at(source: &str, expected: &[(&str, &str)]) {
    let found = underlined(source);
    let fits = found.len() == expected.len()
        && found.iter().zip(expected).all(|((at, text), (place, part))| at == place && text.contains(part));
    assert!(fits, "{source}\ngives {found:#?}\nnot {expected:#?}");
}

fn refused_whole(source: &str, parts: &[&str]) {
    let wrong = compiled(source).err().unwrap_or_else(|| panic!("{source} is accepted")).join("\n");
    for part in parts {
        assert!(wrong.contains(part), "{source}\ngives {wrong:?}\nwithout {part:?}");
    }
}
