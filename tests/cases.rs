//! The ten cases of `../shared/cases` on every device of this machine: compared element by element with their Python
//! references, and bit by bit with each other.

#[allow(dead_code, reason = "the other tests of programs use more of it")]
mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use polyhalo_codegen::offline::require;
use process::{example, fails, file, out, run, several_with_opencl, strategies, text};
use serde_json::Value;

/// Those that call a function whose last bits are the vendor's.
const TRANSCENDENTAL: [&str; 1] = ["perona_malik"];

/// The folder of all results on a device.
fn results(what: &str, arguments: &[&str]) -> PathBuf {
    let folder = file("cases", what);
    // Nothing of an earlier run may pass for a result.
    let _ = fs::remove_dir_all(&folder);
    let dump = ["all", "--dump", folder.to_str().expect("the target folder is UTF-8")];
    let said = out(run(example("cases", &[&dump[..], arguments].concat())));
    assert_eq!(said.lines().count(), 10, "{said}");
    folder
}

/// The results of the reference device.
fn reference() -> &'static Path {
    static RESULTS: OnceLock<PathBuf> = OnceLock::new();
    RESULTS.get_or_init(|| results("reference", &["--devices", "reference"]))
}

/// The names of what is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What the results must be, and the Python that compares them.
struct Judge {
    python: PathBuf,
    cases: PathBuf,
}

impl Judge {
    fn find() -> Option<Judge> {
        let python = std::env::var_os("POLYHALO_PYTHON").map(PathBuf::from);
        let python = require::available("numpy", python.ok_or_else(|| "POLYHALO_PYTHON is not set".to_owned()))?;
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases");
        let found = cases.join("compare.py").is_file();
        let absent = || format!("there is no {}/compare.py", cases.display());
        let cases = require::available("cases", found.then_some(cases.clone()).ok_or_else(absent))?;
        Some(Judge { python, cases })
    }

    /// Every final field, element by element.
    fn check_fields(&self, case: &str, folder: &Path) {
        let mut command = Command::new(&self.python);
        // Nothing is left beside the references.
        command.arg("-B").arg(self.cases.join("compare.py")).arg(self.cases.join(case)).arg("--bin").arg(folder);
        let output = run(command);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && said.trim() == "PASS", "{}: {said}", folder.display());
    }

    /// The scalars of every step.
    fn check_scalars(&self, case: &str, folder: &Path) {
        let expected = json(&self.cases.join(case).join("expected.json"));
        let found = json(&folder.join("scalars.json"));
        let faults = differences(&expected, &found);
        assert!(faults.is_empty(), "{}: {}", folder.display(), faults.join("\n"));
    }
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// How scalars differ from the expected ones, by the rule that `compare.py` states.
fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let tolerance = &expected["tolerance"];
    let near = |expected: f64, found: f64| {
        let apart = (expected - found).abs();
        match (tolerance["exact"].as_bool(), tolerance["scalars_abs"].as_f64(), tolerance["scalars_rel"].as_f64()) {
            (Some(true), _, _) => expected == found,
            (_, Some(most), _) => apart <= most,
            (_, None, part) => apart <= part.unwrap_or(0.0) * expected.abs(),
        }
    };
    let numbers = |value: &Value| -> Option<Vec<f64>> { value.as_array()?.iter().map(Value::as_f64).collect() };
    let mut faults = Vec::new();
    for (name, expected) in expected["scalars"].as_object().into_iter().flatten() {
        let expected = numbers(expected).expect("expected scalars are numbers");
        let Some(found) = numbers(&found[name]).filter(|found| found.len() == expected.len()) else {
            faults.push(format!("scalar {name} is missing or of wrong length"));
            continue;
        };
        let pairs = expected.into_iter().zip(found).enumerate();
        let wrong = pairs.filter(|(_, (expected, found))| !near(*expected, *found));
        faults
            .extend(wrong.map(|(step, (expected, found))| format!("{name}[{step}]: {expected} expected, not {found}")));
    }
    faults
}

/// All cases against their references, and against the reference device.
fn check(results: &Path) {
    compare(results, reference(), &TRANSCENDENTAL);
    judge(results, &names(reference()));
}

/// The bits of all cases but some against those of other results.
fn compare(results: &Path, others: &Path, without: &[&str]) {
    let cases = names(others);
    assert_eq!(names(results), cases);
    for case in cases.iter().filter(|case| !without.contains(&case.as_str())) {
        let (found, expected) = (results.join(case), others.join(case));
        assert_eq!(names(&found), names(&expected));
        for name in names(&expected) {
            let same = fs::read(found.join(&name)).expect("it was listed")
                == fs::read(expected.join(&name)).expect("it was listed");
            assert!(same, "{} has other bits than {}", found.join(&name).display(), expected.join(&name).display());
        }
    }
}

/// Cases against their references.
fn judge(results: &Path, cases: &[impl AsRef<str>]) {
    let Some(judge) = Judge::find() else { return };
    for case in cases.iter().map(AsRef::as_ref) {
        judge.check_fields(case, &results.join(case));
        judge.check_scalars(case, &results.join(case));
    }
}

#[test]
fn the_reference_device_gives_the_expected_results() {
    check(reference());
}

#[test]
fn one_thread_gives_the_expected_results() {
    check(&results("host-1", &["--devices", "host", "--threads", "1"]));
}

#[test]
fn several_threads_give_the_expected_results() {
    check(&results("host-3", &["--devices", "host", "--threads", "3"]));
}

#[test]
fn several_devices_give_the_bits_of_one_with_every_strategy() {
    let alone = results("host-alone", &["--devices", "host", "--threads", "2"]);
    for count in [2, 3, 4, 7] {
        for exchange in strategies() {
            let devices = format!("host:{count}");
            let found = results("host-several", &["--devices", &devices, "--threads", "1", "--exchange", &exchange]);
            compare(&found, reference(), &TRANSCENDENTAL);
            compare(&found, &alone, &[]);
        }
    }
}

#[test]
fn several_devices_with_opencl_ones_among_them_give_the_expected_results() {
    for (number, devices) in several_with_opencl().iter().enumerate() {
        let strategies = strategies();
        for turn in 0..2 {
            let exchange = &strategies[(2 * number + turn) % strategies.len()];
            let found = results("opencl-several", &["--devices", devices, "--exchange", exchange]);
            compare(&found, reference(), &TRANSCENDENTAL);
            judge(&found, &TRANSCENDENTAL);
        }
    }
}

/// Checks the OpenCL platform with `part` in its name.
fn check_opencl(tool: &str, part: &str) {
    let devices = format!("opencl:{part}");
    let found = polyhalo::devices::find(&devices, &[]).map_err(|error| error.to_string());
    if require::available(tool, found).is_some() {
        check(&results(tool, &["--devices", &devices]));
    }
}

#[test]
fn pocl_gives_the_expected_results() {
    check_opencl("pocl", "portable");
}

#[test]
fn intel_gives_the_expected_results() {
    check_opencl("intel", "intel");
}

#[test]
fn scalars_are_compared_by_the_rule() {
    let check = |tolerance: &str, scalars: &str, expected: &[&str]| {
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let stated = parse(&format!(r#"{{"tolerance": {tolerance}, "scalars": {{"dt": [100.0, -2.0]}}}}"#));
        let found = differences(&stated, &parse(scalars));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(found, part)| found.contains(part)), "{found:?}");
    };
    check(r#"{"scalars_rel": 0.01}"#, r#"{"dt": [101.0, -2.01]}"#, &[]);
    check(r#"{"scalars_rel": 0.01}"#, r#"{"dt": [101.5, -2.04]}"#, &["dt[0]", "dt[1]"]);
    check(r#"{"scalars_abs": 0.5}"#, r#"{"dt": [100.5, -2.75]}"#, &["dt[1]"]);
    check(r#"{"exact": true}"#, r#"{"dt": [100, -2.0]}"#, &[]);
    check(r#"{"exact": true}"#, r#"{"dt": [100.0, -2.0000001]}"#, &["dt[1]"]);
    check(r#"{"scalars_rel": 1.0}"#, r#"{"dt": [100.0]}"#, &["of wrong length"]);
    check(r#"{"scalars_rel": 1.0}"#, r#"{"dt": [100.0, null]}"#, &["of wrong length"]);
    check(r#"{"scalars_rel": 1.0}"#, r#"{"speed": [100.0, -2.0]}"#, &["missing"]);
}

#[test]
fn a_case_that_does_not_exist_is_answered_with_those_that_do() {
    let said = fails(run(example("cases", &["himeno"])), 2);
    assert!(said.contains("no case `himeno`") && said.contains("himeno19"), "{said}");
    let said = fails(run(example("cases", &["himeno19", "--devices", "abacus"])), 2);
    assert!(said.contains("`abacus` asks for `abacus`"), "{said}");
}
