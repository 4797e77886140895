//! The example and the program from outside: options, output, files, exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use polyhalo_codegen::offline::require;
use serde_json::Value;

/// The example `heat` as Cargo has built it beside this test.
fn heat(arguments: &[&str]) -> Output {
    heat_command(arguments).output().expect("the example starts")
}

fn heat_command(arguments: &[&str]) -> Command {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let example = profile.join("examples").join(format!("heat{}", std::env::consts::EXE_SUFFIX));
    assert!(example.exists(), "{} is missing: build it with `cargo build --examples`", example.display());
    let mut command = Command::new(example);
    command.args(arguments);
    command
}

fn polyhalo(arguments: &[&str]) -> Output {
    let root = env!("CARGO_MANIFEST_DIR");
    Command::new(env!("CARGO_BIN_EXE_polyhalo")).args(arguments).current_dir(root).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Standard output of a run that went well.
fn out(output: Output) -> String {
    assert!(output.status.success(), "{}\n{}", output.status, text(&output.stderr));
    text(&output.stdout)
}

/// Standard error of a run that ended with `code`.
fn fails(output: Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stderr)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&out(heat(arguments))).expect("standard output is one JSON object and nothing else")
}

/// A file in a folder of this test's own.
fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder.join(name)
}

#[test]
fn heat_gives_the_golden_numbers() {
    for devices in ["reference", "host"] {
        let run = json(&["--n", "34", "--steps", "60", "--devices", devices, "--json"]);
        let near = |name: &str, expected: f64| {
            let found = run[name].as_f64().unwrap_or_else(|| panic!("no {name} in {run}"));
            assert!(((found - expected) / expected).abs() < 1e-13, "{name} on {devices}: {found}");
        };
        near("sum", 8705.548105714577);
        near("center", 0.8806430311590892);
        assert_eq!((&run["n"], &run["steps"]), (&Value::from(34), &Value::from(60)));
        assert_eq!(run["points"], Value::from(60 * 32 * 32 * 32));
        for name in ["seconds", "points_per_second", "effective_bandwidth", "copy_bandwidth"] {
            assert!(run[name].as_f64().is_some_and(|value| value > 0.0), "{name} in {run}");
        }
        assert!(run["exchange"].is_string() && run["devices"].is_array(), "{run}");
        assert!(run.get("bits_equal").is_none(), "nothing was verified");
    }
}

#[test]
fn heat_verifies_itself() {
    let run = json(&["--n", "23,9,14", "--steps", "7", "--devices", "host", "--threads", "2", "--verify", "--json"]);
    assert_eq!((&run["max_abs_diff"], &run["bits_equal"]), (&Value::from(0.0), &Value::from(true)));
    assert_eq!(run["n"], serde_json::json!([23, 9, 14]));
    let picture = file("verified.png");
    let arguments = ["--n", "12", "--steps", "2", "--devices", "host", "--verify", "--png", picture.to_str().unwrap()];
    let shown = out(heat(&arguments));
    assert!(shown.contains("heat 12x12x12, 2 steps on host"), "{shown}");
    assert!(shown.contains("largest difference 0e0, all bits equal, |a-b| <= 1e-6 + 1e-5|b| fulfilled"), "{shown}");
}

#[test]
fn heat_writes_an_array_and_a_picture() {
    let (array, picture) = (file("u.npy"), file("u.png"));
    let arguments = ["--n", "16,8,4", "--steps", "1", "--devices", "host", "--json"];
    let files = ["--save", array.to_str().unwrap(), "--png", picture.to_str().unwrap()];
    out(heat(&[&arguments[..], &files[..]].concat()));
    let array = std::fs::read(array).expect("the array was written");
    assert!(array.starts_with(b"\x93NUMPY"));
    let header = text(&array[10..array.iter().position(|byte| *byte == b'\n').expect("a header ends")]);
    assert!(header.contains("(4, 8, 16)") && header.contains("<f8"), "{header}");
    let picture = std::fs::read(picture).expect("the picture was written");
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn heat_does_nothing_in_no_steps() {
    let run = json(&["--n", "8", "--steps", "0", "--devices", "host", "--json"]);
    assert_eq!((&run["points"], &run["points_per_second"]), (&Value::from(0), &Value::from(0.0)));
}

#[test]
fn bad_input_is_one_paragraph_and_exit_code_2() {
    let few = |arguments: &[&str], parts: &[&str]| {
        let said = fails(heat(arguments), 2);
        for part in parts {
            assert!(said.contains(part), "{arguments:?} says {said:?} without {part:?}");
        }
        assert!(!said.contains("panicked"), "{said}");
    };
    few(&["--n", "2", "--devices", "host"], &["`heat` reads `u` over 3 cells along X", "the grid has 2"]);
    few(&["--n", "8", "--devices", "abacus"], &["no device answers to `abacus`", "host", "reference"]);
    few(&["--n", "8", "--devices", "opencl:nobody"], &["`nobody`", "opencl"]);
    few(&["--n", "8", "--devices", "host:4"], &["4 devices", "one device at a time"]);
    few(&["--n", "8", "--devices", "cuda"], &["cuda"]);
    few(&["--n", "8", "--devices", "host", "--exchange", "pigeon"], &["`pigeon`", "synchronous", "peer-to-peer"]);
    few(&["--n", "8", "--devices", "host", "--threads", "0"], &["0 threads"]);
    few(&["--n", "20000", "--devices", "host"], &["memory", "GiB"]);
    few(&["--n", "0", "--devices", "host"], &["no cells along X"]);
    few(&["--n", "1,2"], &["one number or three"]);
    few(&["--n", "8", "--steps", "1", "--devices", "host", "--save", "/no/such/folder/u.npy"], &["/no/such/folder"]);
}

#[test]
fn inspect_tells_halos_and_costs_and_shows_every_target() {
    let shown = out(polyhalo(&["inspect", "examples/heat.rs", "--target", "all"]));
    for part in [
        "stencil heat (examples/heat.rs:",
        "halo 1 on -X because of u[-X] in line",
        "15 loads, 1 store, 26 flops, at least 32 bytes, 0.812 flops/byte",
        "---- rust ----",
        "let flux = |d: Offset|",
        "---- ir ----",
        "let flux: f64 = (kappa[X] + kappa[HERE]) * (u[X] - u[HERE]); // heat.rs:",
        "---- host ----",
        "*kappa.offset(sy)",
        "---- cuda ----",
        "extern \"C\" __global__",
        "---- ptx ----",
        "---- hip ----",
        "__builtin_amdgcn_workitem_id_x()",
        "---- opencl ----",
        "#pragma OPENCL FP_CONTRACT OFF",
        "---- spirv ----",
        "OpExecutionMode %heat ContractionOff",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
}

#[test]
fn inspect_writes_files() {
    let folder = file("inspected");
    out(polyhalo(&["inspect", "examples/heat.rs", "--kernel", "heat", "--out", folder.to_str().unwrap()]));
    for name in ["heat.cu", "heat.hip", "heat.cl", "heat.spv", "heat.spvasm", "heat.ir", "heat.host.rs", "heat.rs"] {
        assert!(folder.join(name).metadata().is_ok_and(|file| file.len() > 0), "{name} is missing");
    }
    let module = std::fs::read(folder.join("heat.spv")).expect("the module was written");
    assert_eq!(module[..4], 0x0723_0203_u32.to_le_bytes());
}

#[test]
fn inspect_reports_mistakes_by_line_and_ends_with_2() {
    let wrong = file("wrong.rs");
    std::fs::write(&wrong, "#[stencil]\nfn k(u: &Field<f64>) -> f64 {\n    u[0] + q\n}\n")
        .expect("the file is written");
    let said = fails(polyhalo(&["inspect", wrong.to_str().unwrap()]), 2);
    assert!(said.contains("wrong.rs:3:7: field `u` is indexed by an integer"), "{said}");
    assert!(said.contains("wrong.rs:3:12: `q` is not known"), "{said}");
    let said = fails(polyhalo(&["inspect", "Cargo.toml"]), 2);
    assert!(said.contains("not Rust"), "{said}");
    let said = fails(polyhalo(&["inspect", "examples/heat.rs", "--kernel", "cold"]), 2);
    assert!(said.contains("no stencil `cold`; it has heat"), "{said}");
}

#[test]
fn devices_and_doctor_say_what_is_there_and_why_the_rest_is_not() {
    let shown = out(polyhalo(&["devices"]));
    for backend in ["reference", "host", "opencl", "cuda", "hip"] {
        assert!(shown.contains(backend), "{shown}");
    }
    let listed: Value = serde_json::from_str(&out(polyhalo(&["devices", "--json"]))).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(5));
    let tools: Value = serde_json::from_str(&out(polyhalo(&["doctor", "--json"]))).expect("JSON");
    for tool in tools.as_array().expect("a list of tools") {
        assert!(tool["gives"].is_string() && tool["install"].is_string(), "{tool}");
        assert!(tool["found"].is_string() != tool["missing"].is_string(), "{tool}");
    }
}

#[test]
fn oclgrind_finds_no_race_and_no_read_out_of_bounds() {
    let driver = std::env::var("POLYHALO_OCLGRIND_ICD").map_err(|_| "POLYHALO_OCLGRIND_ICD is not set".to_owned());
    let Some(driver) = require::available("oclgrind", driver) else { return };
    let log = file("oclgrind.log");
    let _ = std::fs::remove_file(&log);
    let mut command =
        heat_command(&["--n", "14,9,11", "--steps", "2", "--devices", "opencl:oclgrind", "--verify", "--json"]);
    command.env("OCL_ICD_VENDORS", driver).env("OCLGRIND_LOG", &log);
    command.env("OCLGRIND_CHECK_API", "1").env("OCLGRIND_DATA_RACES", "1").env("OCLGRIND_MAX_ERRORS", "20");
    let run: Value = serde_json::from_str(&out(command.output().expect("the example starts"))).expect("JSON");
    assert_eq!(run["bits_equal"], Value::from(true), "{run}");
    let found = std::fs::read_to_string(&log).expect("oclgrind writes a log, empty when there is nothing to say");
    assert!(found.is_empty(), "{found}");
}
