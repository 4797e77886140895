//! The example and the program from outside: options, output, files, exit codes.

#[path = "program/inspect.rs"]
mod inspect;
mod process;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use polyhalo_codegen::offline::require;
use process::{EXAMPLES, example, fails, out, run, several_with_opencl, strategies, text};
use serde_json::Value;

fn heat(arguments: &[&str]) -> Output {
    run(example("heat", arguments))
}

fn polyhalo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polyhalo"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    run(command)
}

/// What an example says of itself with `--json`.
fn json(name: &str, arguments: &[&str]) -> Value {
    let said = out(run(example(name, &[arguments, &["--json"]].concat())));
    serde_json::from_str(&said).expect("standard output is one JSON object and nothing else")
}

/// A file in a folder of this test's own.
fn file(name: &str) -> PathBuf {
    process::file("program", name)
}

/// What a NumPy file says about its array.
fn header(path: &Path) -> String {
    let array = std::fs::read(path).expect("the array was written");
    assert!(array.starts_with(b"\x93NUMPY"));
    text(&array[10..array.iter().position(|byte| *byte == b'\n').expect("a header ends")])
}

#[test]
fn heat_gives_the_golden_numbers() {
    for devices in ["reference", "host"] {
        let run = json("heat", &["--n", "34", "--steps", "60", "--devices", devices]);
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
    let run = json("heat", &["--n", "23,9,14", "--steps", "7", "--devices", "host", "--threads", "2", "--verify"]);
    assert_eq!((&run["max_abs_diff"], &run["bits_equal"]), (&Value::from(0.0), &Value::from(true)));
    assert_eq!(run["n"], serde_json::json!([23, 9, 14]));
    let picture = file("verified.png");
    let arguments = ["--n", "12", "--steps", "2", "--devices", "host", "--verify", "--png", picture.to_str().unwrap()];
    let shown = out(heat(&arguments));
    assert!(shown.contains("heat 12x12x12, 2 steps on host"), "{shown}");
    assert!(shown.contains("largest difference 0e0, all bits equal, |a-b| <= 1e-6 + 1e-5|b| fulfilled"), "{shown}");
}

#[test]
fn heat_gives_the_same_bits_wherever_threads_run_and_however_planes_are_shared_out() {
    let trace = file("trace.json");
    for options in [
        &["--devices", "host:2", "--affinity", "near", "--exchange", "neighbour", "--split", "3,1"][..],
        &["--devices", "host:3", "--affinity", "far", "--helpers", "0"],
        &["--devices", "host:2", "--affinity", "none", "--helpers", "1", "--exchange", "deep:2"],
        &["--devices", "host:2", "--helpers", "devices", "--exchange", "threaded", "--trace", trace.to_str().unwrap()],
    ] {
        let run = json("heat", &[&["--n", "11,9,14", "--steps", "4", "--verify"], options].concat());
        assert_eq!(run["bits_equal"], Value::from(true), "{options:?}: {run}");
    }
    let events: Value = serde_json::from_slice(&std::fs::read(trace).expect("the trace was written")).expect("JSON");
    assert!(events["traceEvents"].as_array().is_some_and(|events| !events.is_empty()), "{events}");
}

#[test]
fn heat_writes_an_array_and_a_picture() {
    let (array, picture) = (file("u.npy"), file("u.png"));
    let arguments = ["--n", "16,8,4", "--steps", "1", "--devices", "host", "--json"];
    let files = ["--save", array.to_str().unwrap(), "--png", picture.to_str().unwrap()];
    out(heat(&[&arguments[..], &files[..]].concat()));
    let header = header(&array);
    assert!(header.contains("(4, 8, 16)") && header.contains("<f8"), "{header}");
    let picture = std::fs::read(picture).expect("the picture was written");
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn heat_does_nothing_in_no_steps() {
    let run = json("heat", &["--n", "8", "--steps", "0", "--devices", "host"]);
    assert_eq!((&run["points"], &run["points_per_second"]), (&Value::from(0), &Value::from(0.0)));
}

/// An example on a small grid against the reference; its number in the list.
fn verify_example(number: usize, devices: &str, exchange: &str) {
    let (name, is_transcendental) = EXAMPLES[number];
    let arguments = ["--n", "19,11,14", "--steps", "3", "--devices", devices, "--exchange", exchange, "--verify"];
    let run = json(name, &arguments);
    assert_eq!(run["steps"], Value::from(3), "{name}: {run}");
    assert!(run["points"].as_u64().is_some_and(|points| points > 0), "{name}: {run}");
    assert_eq!(run["within_tolerance"], Value::from(true), "{name}: {run}");
    assert!(is_transcendental || run["bits_equal"] == true, "{name}: {run}");
}

#[test]
fn every_example_verifies_itself_on_the_host() {
    (0..EXAMPLES.len()).for_each(|number| verify_example(number, "host", "auto"));
}

#[test]
fn every_example_verifies_itself_on_pocl() {
    let found = polyhalo::devices::find("opencl:pocl", &[]).map_err(|error| error.to_string());
    if require::available("pocl", found).is_some() {
        (0..EXAMPLES.len()).for_each(|number| verify_example(number, "opencl:pocl", "auto"));
    }
}

#[test]
fn every_example_verifies_itself_on_several_devices_with_every_strategy() {
    for number in 0..EXAMPLES.len() {
        // Another number of devices for each strategy, and another combination for each example.
        let counts = [2, 3, 4, 7].into_iter().cycle().skip(number);
        for (exchange, count) in strategies().iter().zip(counts) {
            verify_example(number, &format!("host:{count}"), exchange);
        }
    }
}

#[test]
fn every_example_verifies_itself_on_several_devices_with_opencl_ones_among_them() {
    let sets = several_with_opencl();
    for number in 0..EXAMPLES.len() {
        let strategies = strategies();
        // Two of the sets for each example, as some vendors take long to build kernels.
        for turn in 0..sets.len().min(2) {
            let devices = &sets[(2 * number + turn) % sets.len()];
            verify_example(number, devices, &strategies[(number + turn) % strategies.len()]);
        }
    }
}

#[test]
fn himeno_gives_the_published_gosa() {
    let run = json("himeno", &["--devices", "host"]);
    let gosas = run["gosa"].as_array().expect("one number for each iteration");
    let last = gosas.last().and_then(Value::as_f64).expect("a number");
    assert_eq!((gosas.len(), &run["grid"]), (64, &serde_json::json!([128, 64, 64])));
    assert!((last / 2.395185e-3 - 1.0).abs() <= 1e-3, "{last}");
}

#[test]
fn gray_scott_goes_on_from_a_checkpoint_bit_for_bit() {
    let (checkpoint, whole, parts) = (file("state"), file("whole.npy"), file("parts.npy"));
    let [checkpoint, whole, parts] = [&checkpoint, &whole, &parts].map(|path| path.to_str().expect("UTF-8"));
    let go = |steps: &str, devices: &str, more: &[&str]| {
        json("gray_scott", &[&["--n", "12,9,10", "--steps", steps, "--devices", devices], more].concat())
    };
    go("7", "reference", &["--save", whole]);
    go("4", "host", &["--checkpoint", checkpoint]);
    go("3", "host", &["--restore", checkpoint, "--save", parts, "--verify"]);
    let read = |path| std::fs::read(path).expect("it was written");
    assert!(read(whole) == read(parts), "7 steps are not 4 and 3");
    let said = fails(run(example("gray_scott", &["--n", "9", "--devices", "host", "--restore", checkpoint])), 2);
    assert!(said.contains(checkpoint) && said.contains("12") && said.contains("grid"), "{said}");
}

#[test]
fn wave_writes_what_receivers_hear_and_snapshots() {
    let (receivers, snapshots) = (file("receivers.npy"), file("snapshots"));
    let _ = std::fs::remove_dir_all(&snapshots);
    let files = ["--receivers", receivers.to_str().unwrap(), "--snapshots", snapshots.to_str().unwrap()];
    let size = ["--n", "13,12,11", "--steps", "5", "--every", "2", "--devices", "host"];
    let run = json("wave", &[&size[..], &files[..]].concat());
    assert_eq!(run["receivers"].as_array().map(Vec::len), Some(5 * 13));
    let header = header(&receivers);
    assert!(header.contains("(5, 13)") && header.contains("<f4"), "{header}");
    let names = std::fs::read_dir(snapshots).expect("the folder was made");
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["p-000002.vti", "p-000004.vti"]);
}

#[test]
fn perona_malik_has_pictures_before_and_after() {
    let after = file("volume.png");
    let before = file("volume-before.png");
    let _ = std::fs::remove_file(&before);
    json("perona_malik", &["--n", "16", "--steps", "2", "--devices", "host", "--png", after.to_str().unwrap()]);
    let [before, after] = [before, after].map(|path| std::fs::read(path).expect("it was written"));
    assert!(before.starts_with(b"\x89PNG") && after.starts_with(b"\x89PNG") && before != after);
}

#[test]
fn poisson_stops_when_the_residual_is_small_enough() {
    let run = json("poisson", &["--n", "17", "--tolerance", "1e-4", "--devices", "host"]);
    let steps = run["steps"].as_u64().expect("a number");
    let residuals: Vec<_> = run["residual"].as_array().expect("one for each sweep").iter().map(Value::as_f64).collect();
    assert!(steps < 1000 && steps.is_multiple_of(10) && residuals.len() as u64 == steps, "{run}");
    assert!(residuals.first() > residuals.last() && residuals.last().unwrap().unwrap() <= 1e-4, "{run}");
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
    few(&["--n", "8", "--devices", "abacus"], &["`abacus` asks for `abacus`", "host", "reference"]);
    few(&["--n", "8", "--devices", "opencl:nobody"], &["`nobody`", "opencl"]);
    few(&["--n", "8", "--devices", "host:9"], &["9 devices", "8 planes along Z"]);
    few(&["--n", "8", "--devices", "host:2", "--exchange", "deep:0"], &["`deep:0`", "synchronous", "deep"]);
    few(&["--n", "8", "--devices", "cuda"], &["cuda"]);
    few(&["--n", "8", "--devices", "host", "--exchange", "pigeon"], &["`pigeon`", "synchronous", "peer-to-peer"]);
    few(&["--n", "8", "--devices", "host", "--affinity", "here"], &["affinity `here`", "near, far, none"]);
    few(&["--n", "8", "--devices", "host", "--helpers", "-"], &["`-`", "auto, devices, a number"]);
    few(&["--n", "8", "--devices", "host", "--split", "odd"], &["`odd`", "measured", "3,1"]);
    few(&["--n", "8", "--devices", "host", "--threads", "0"], &["0 threads"]);
    few(&["--n", "20000", "--devices", "host"], &["memory", "GiB"]);
    few(&["--n", "0", "--devices", "host"], &["no cells along X"]);
    few(&["--n", "1,2"], &["one number or three"]);
    few(&["--n", "8", "--steps", "1", "--devices", "host", "--save", "/no/such/folder/u.npy"], &["/no/such/folder"]);
    few(&["--n", "8", "--steps", "many"], &["--steps", "many"]);
    let other = |name: &str, arguments: &[&str], parts: &[&str]| {
        let said = fails(run(example(name, &[&["--devices", "host", "--steps", "1"], arguments].concat())), 2);
        assert!(parts.iter().all(|part| said.contains(part)) && !said.contains("panicked"), "{name}: {said}");
    };
    other("wave", &["--n", "8"], &["`wave` reads `p` over 9 cells along X", "the grid has 8"]);
    other("wave", &["--n", "12", "--snapshots", "Cargo.toml/here"], &["Cargo.toml/here"]);
    other("gray_scott", &["--n", "8", "--restore", "no/such/state"], &["no/such/state"]);
    other("gray_scott", &["--n", "8", "--restore", "Cargo.toml"], &["Cargo.toml", "checkpoint"]);
    other("burgers", &["--nu", "nan"], &["--nu", "a number greater than 0"]);
    other("poisson", &["--tolerance", "0"], &["--tolerance", "a number greater than 0"]);
    other("perona_malik", &["--kappa", "steep"], &["--kappa", "a number greater than 0"]);
    other("elastic", &["--n", "4"], &["the grid has 4"]);
}

#[test]
fn devices_and_doctor_say_what_is_there_and_why_the_rest_is_not() {
    let shown = out(polyhalo(&["devices"]));
    for backend in ["reference", "host", "opencl", "cuda", "hip"] {
        assert!(shown.contains(backend), "{shown}");
    }
    let listed: Value = serde_json::from_str(&out(polyhalo(&["devices", "--json"]))).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(5));
    // The host's own CPUs are near it; a processor has no PCI address.
    let host = &listed[1]["devices"][0];
    let cpus = host["cpus"].as_array().map(Vec::len);
    assert_eq!((&host["pci"], cpus.map(Value::from)), (&Value::Null, Some(host["compute_units"].clone())), "{host}");
    assert!(host["nodes"].is_array() && shown.contains("near CPU"), "{shown}");
    let tools: Value = serde_json::from_str(&out(polyhalo(&["doctor", "--json"]))).expect("JSON");
    for tool in tools.as_array().expect("a list of tools") {
        assert!(tool["gives"].is_string() && tool["install"].is_string(), "{tool}");
        assert!(tool["found"].is_string() != tool["missing"].is_string(), "{tool}");
    }
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_polyhalo"));
    doctor.args(["doctor", "--json"]).env("POLYHALO_HIPRTC", "off");
    let tools: Value = serde_json::from_str(&out(run(doctor))).expect("JSON");
    let is_hiprtc = |tool: &&Value| tool["name"] == "AMD's run-time compiler (hiprtc)";
    let hiprtc = tools.as_array().and_then(|tools| tools.iter().find(is_hiprtc)).expect("doctor looks for hiprtc");
    assert_eq!(hiprtc["missing"], "POLYHALO_HIPRTC turns hiprtc off");
}

#[test]
fn oclgrind_finds_no_race_and_no_read_out_of_bounds() {
    let driver = std::env::var("POLYHALO_OCLGRIND_ICD").map_err(|_| "POLYHALO_OCLGRIND_ICD is not set".to_owned());
    let Some(driver) = require::available("oclgrind", driver) else { return };
    let log = file("oclgrind.log");
    let _ = std::fs::remove_file(&log);
    let mut command =
        example("heat", &["--n", "14,9,11", "--steps", "2", "--devices", "opencl:oclgrind", "--verify", "--json"]);
    command.env("OCL_ICD_VENDORS", driver).env("OCLGRIND_LOG", &log);
    command.env("OCLGRIND_CHECK_API", "1").env("OCLGRIND_DATA_RACES", "1").env("OCLGRIND_MAX_ERRORS", "20");
    let run: Value = serde_json::from_str(&out(run(command))).expect("JSON");
    assert_eq!(run["bits_equal"], Value::from(true), "{run}");
    let found = std::fs::read_to_string(&log).expect("oclgrind writes a log, empty when there is nothing to say");
    assert!(found.is_empty(), "{found}");
}
