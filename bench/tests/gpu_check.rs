//! The check of a machine with GPUs, on a stand-in for NVIDIA's driver: everything but the speed is real.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use polyhalo_codegen::offline::{nvrtc, require};
use serde_json::Value;

#[test]
fn the_gpu_check_passes_on_the_double_and_writes_what_it_found() {
    if require::available("nvrtc", nvrtc::find()).is_none() {
        return;
    }
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libpolyhalo_double_cuda.so");
    let profile = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let programs = profile.join("examples");
    assert!(programs.join("heat").exists(), "the examples are missing: build them with `cargo build --examples`");
    let results = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("gpu-check");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu"));
    command.args(["--devices", "cuda", "--n", "20", "--graphs", "12", "--largest", "65536", "--reps", "1"]);
    command.args(["--parallel", "2", "--subdomains", "1,2", "--machine", "a stand-in"]);
    command.arg("--programs").arg(programs).arg("--out").arg(&results);
    command.env("POLYHALO_CUDA", library).env("POLYHALO_HIP", "off").env("POLYHALO_DOUBLE_MEMORY", "200000000");
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("everything passed"), "{said}");
    let read = |extension: &str| fs::read_to_string(results.with_extension(extension)).expect("it was written");
    let found: Value = serde_json::from_str(&read("json")).expect("JSON");
    let runs = found["results"].as_array().expect("a list");
    // Nine examples and the cases, on one device, and on two with six strategies.
    assert_eq!(runs.len(), 10 * (1 + 6));
    assert!(runs.iter().all(|run| run["fault"].is_null()), "{runs:?}");
    assert_eq!(found["heat"]["sizes"].as_array().map(Vec::len), Some(5));
    assert!(found["heat"]["sizes"][0]["shape"].as_str().is_some_and(|shape| shape.contains("registers")), "{found}");
    assert!(found["graphs"]["recorded_gpts_per_second"][0].as_f64().is_some_and(|speed| speed > 0.0));
    assert_eq!(found["transfers"].as_array().map(Vec::len), Some(3));
    let text = read("md");
    for part in ["a stand-in", "cuda 0: CUDA double 0: ", "70 of 70 runs", "| peer-to-peer |", "64 KiB"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}
