//! What is not understood is refused when a module is parsed.

use super::{module, parsed};
use crate::Module;

fn refused(body: &str, what: &str) {
    let text = module("", 1, body);
    let error = Module::parse(&text).expect_err(body);
    assert!(error.contains(what), "`{body}`: {error}");
    let line: usize = error
        .strip_prefix("line ")
        .and_then(|rest| rest.split(':').next())
        .and_then(|line| line.parse().ok())
        .unwrap_or_else(|| panic!("{error} names no line"));
    let named = text.lines().nth(line - 1).unwrap_or_default();
    assert!(body.contains(named.trim()), "{error} names `{named}`");
}

#[test]
fn unknown_opcodes_and_modifiers_are_named_with_their_line() {
    for opcode in [
        "bar.sync 0;",
        "membar.gl;",
        "atom.global.add.u32 %r1, [%rd1], %r2;",
        "ld.shared.u32 %r1, [%rd1];",
        "ld.global.v8.u32 %r1, [%rd1];",
        "add.sat.s32 %r1, %r2, %r3;",
        "add.f16 %rs1, %rs2, %rs3;",
        "mul.rz.f64 %fd1, %fd2, %fd3;",
        "fma.f64 %fd1, %fd2, %fd3, %fd4;",
        "div.f64 %fd1, %fd2, %fd3;",
        "sqrt.rz.f32 %f1, %f2;",
        "min.rn.f64 %fd1, %fd2, %fd3;",
        "cvt.f32.f64 %f1, %fd1;",
        "cvt.rzi.f64.s32 %fd1, %r1;",
        "cvt.s32.f32 %r1, %f1;",
        "cvt.rn.s32.s64 %r1, %rd1;",
        "setp.lt.b32 %p1, %r1, %r2;",
        "setp.lt.ftz.f32 %p1, %f1, %f2;",
        "and.u32 %r1, %r2, %r3;",
        "shl.u32 %r1, %r2, %r3;",
        "mul.s32 %r1, %r2, %r3;",
        "lop3.b32 %r1, %r2, %r3, %r4, 7;",
        "trap;",
        "vote.sync.all.pred %p1, %p2, -1;",
    ] {
        refused(&format!("mov.u32 %r1, 0;\n{opcode}\nmov.u32 %r2, 0;"), "is not known");
    }
}

#[test]
fn operands_must_fit() {
    refused("add.s32 %r1, %r2, %rd3;", "`%rd3` has not the size");
    refused("add.s32 %r1, %r2;", "1 sources, not 2");
    refused("add.s32 %r1, %r2, 0f3F800000;", "is no value");
    refused("add.rn.f32 %f1, %f2, 1;", "is no value");
    refused("add.s32 %r1, %r2, %x;", "`%x` is not known");
    refused("mov.u32 %r100, 1;", "`%r100` is not known");
    refused("mov.u32 5, %r1;", "can't be written");
    refused("@%r1 mov.u32 %r1, %r2;", "is no predicate");
    refused("bra nowhere;", "no label `nowhere`");
    refused("here: mov.u32 %r1, 1;\nhere: mov.u32 %r1, 1;", "two labels");
    refused("ld.param.u64 %rd1, [p7];", "no parameter `p7`");
    refused("ld.param.u64 %rd1, [p0+4];", "has 8 bytes");
    refused("ld.global.u32 %r1, [%r2];", "has not the size");
    refused("ld.global.u64 %r1, [%rd2];", "has not the size");
    refused("st.global.u32 [%rd2], %p1;", "is a predicate");
    refused("call.uni missing;", "no function `missing`");
    refused(".pragma \"other\";", "pragma");
    refused(".shared .b32 x;", "is not known");
    refused("mov.u32 %r1, 09;", "no number");
    refused("mov.u32 %r1, %r2 %r3;", "should stand");
}

#[test]
fn functions_that_nobody_calls_are_looked_at_too() {
    let text = module(".func odd(.param .b32 a) { bar.sync 0; ret; }", 0, "");
    assert!(Module::parse(&text).expect_err("barriers").contains("`bar.sync` is not known"));
    let text = module(".func again(.param .b32 a) { .param .b32 b; call again, (b); ret; }", 0, "");
    assert!(Module::parse(&text).expect_err("endless").contains("calls itself"));
}

#[test]
fn modules_say_what_they_are() {
    let module = parsed(&module(
        "/* a comment\nof two lines */ .extern .shared;".split_once(".extern").expect("it has").0,
        0,
        "",
    ));
    assert_eq!((module.version.as_str(), module.target.as_str()), ("6.3", "sm_70"));
    assert!(module.kernel("k").is_some() && module.kernel("other").is_none());
    assert!(Module::parse("").is_err() && Module::parse(".version 6.3").is_err());
    assert!(Module::parse(".version 6.3 .target sm_70 .extern .func f;").is_err());
}
