//! Every example and every case, on every number of subdomains with every strategy, against the reference device.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, thread};

use polyhalo::Exchange;
use polyhalo_bench::table::markdown;
use serde_json::{Value, json};

use crate::{Options, Outcome, Section};

/// The examples with sizes that the reference device has done in a moment: none is a multiple of a block.
const EXAMPLES: [(&str, &[&str]); 9] = [
    ("heat", &["--n", "37,21,30", "--steps", "40"]),
    ("wave", &["--n", "25,21,23", "--steps", "12"]),
    ("elastic", &["--n", "25,21,23", "--steps", "8"]),
    ("gray_scott", &["--n", "21,17,19", "--steps", "30"]),
    ("burgers", &["--n", "21,17,19", "--steps", "12"]),
    ("himeno", &["--n", "33,17,19", "--steps", "12"]),
    ("perona_malik", &["--n", "21,17,19", "--steps", "8"]),
    ("automaton", &["--n", "37,21,30", "--steps", "20"]),
    ("poisson", &["--n", "21,17,19", "--steps", "30"]),
];

/// Shapes of kernels and whether indices have 64 bits, of which others are taken for each number of subdomains and strategy.
const SHAPES: [(&str, &str); 5] =
    [("", "0"), ("march:32x4:5", "0"), ("point:32x4x2", "1"), ("march:16x8:64", "1"), ("point:64x4x1", "0")];

/// The case that calls a function whose last bits are the vendor's: its fields, of `f32`, may differ by this share of their
/// largest value, as the case itself says.
const TRANSCENDENTAL: (&str, f32) = ("perona_malik", 3e-6);

/// A program to be run, and how its result is judged.
struct Task {
    name: String,
    devices: String,
    exchange: Exchange,
    command: Command,
    /// Folders with the results of the cases: those that were found and those that must be found.
    compared: Option<[PathBuf; 2]>,
}

/// What became of it.
struct Verdict {
    name: String,
    devices: String,
    exchange: String,
    seconds: f64,
    /// Nothing if it is right.
    fault: Option<String>,
}

pub(crate) fn check(options: &Options) -> Outcome<Section> {
    let scratch = std::env::temp_dir().join(format!("polyhalo-gpu-check-{}", std::process::id()));
    let expected = scratch.join("reference");
    let mut reference = Command::new(options.programs.join("cases"));
    reference.args(["all", "--devices", "reference", "--dump"]).arg(&expected);
    let result = said(reference).and_then(|()| verdicts(options, &scratch, &expected));
    let removed = fs::remove_dir_all(&scratch);
    let verdicts = result?;
    removed?;
    let wrong: Vec<_> = verdicts.iter().filter(|verdict| verdict.fault.is_some()).collect();
    let mut text = format!(
        "## Results\n\n{} of {} runs have the results of the reference device: nine examples and ten cases with every \
         strategy on {} subdomains of a card.\n",
        verdicts.len() - wrong.len(),
        verdicts.len(),
        options.subdomains.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    );
    if !wrong.is_empty() {
        let row = |verdict: &&Verdict| {
            let fault = verdict.fault.clone().unwrap_or_default().replace(['\n', '|'], " ");
            vec![verdict.name.clone(), verdict.devices.clone(), verdict.exchange.clone(), fault]
        };
        let rows: Vec<_> = wrong.iter().map(row).collect();
        text += &format!("\n{}", markdown(&["program", "devices", "exchange", "fault"], &rows));
    }
    let json = |verdict: &Verdict| {
        json!({
            "program": verdict.name, "devices": verdict.devices, "exchange": verdict.exchange,
            "seconds": verdict.seconds, "fault": verdict.fault,
        })
    };
    let passed = wrong.is_empty();
    Ok(Section { name: "results", json: Value::Array(verdicts.iter().map(json).collect()), markdown: text, passed })
}

/// A small grid under NVIDIA's checker of memory accesses and its checker of races, where there is one.
pub(crate) fn sanitizer(options: &Options) -> Outcome<Section> {
    const TOOL: &str = "compute-sanitizer";
    let is_there = options.devices == "cuda" && Command::new(TOOL).arg("--version").output().is_ok();
    if !is_there {
        let markdown = format!("## Sanitizer\n\nNot run: `{TOOL}` is not there, or these aren't CUDA devices.\n");
        return Ok(Section { name: "sanitizer", json: Value::Null, markdown, passed: true });
    }
    let mut faults = Vec::new();
    for tool in ["memcheck", "initcheck", "racecheck"] {
        let mut command = Command::new(TOOL);
        command.args(["--tool", tool, "--error-exitcode", "9"]).arg(options.programs.join("heat"));
        command.args(["--n", "20,9,12", "--steps", "6", "--devices", "cuda:1x2", "--exchange", "peer-to-peer"]);
        command.args(["--shape", "march:16x4:3", "--json"]);
        if let Err(error) = said(command) {
            faults.push(format!("{tool}: {error}"));
        }
    }
    let passed = faults.is_empty();
    let verdict = if passed { "memcheck, initcheck and racecheck found nothing.".into() } else { faults.join("\n\n") };
    let markdown = format!("## Sanitizer\n\n{verdict}\n");
    Ok(Section { name: "sanitizer", json: json!({ "passed": passed, "faults": faults }), markdown, passed })
}

/// Everything, several programs at a time.
fn verdicts(options: &Options, scratch: &Path, expected: &Path) -> Outcome<Vec<Verdict>> {
    let tasks: Vec<_> = tasks(options, scratch, expected).into_iter().map(|task| Mutex::new(Some(task))).collect();
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..options.parallel.max(1) {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let task = task.lock().ok().and_then(|mut task| task.take());
                    let verdict = task.map(judge);
                    if let (Some(verdict), Ok(mut verdicts)) = (verdict, verdicts.lock()) {
                        verdicts.push(verdict);
                    }
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().map_err(|_| "a thread panicked")?;
    if verdicts.len() == tasks.len() { Ok(verdicts) } else { Err("not every program was run".into()) }
}

fn tasks(options: &Options, scratch: &Path, expected: &Path) -> Vec<Task> {
    let mut tasks = Vec::new();
    for ((count, devices, exchange), (shape, wide)) in options.ways().into_iter().zip(SHAPES.into_iter().cycle()) {
        let command = |name: &str, arguments: &[&str]| {
            let mut command = Command::new(options.programs.join(name));
            command.env("POLYHALO_SHAPE", shape).env("POLYHALO_WIDE", wide);
            command.args(arguments).args(["--devices", &devices, "--exchange", &exchange.to_string()]);
            command
        };
        let task = |name: &str, command, compared| Task {
            name: name.into(),
            devices: devices.clone(),
            exchange,
            command,
            compared,
        };
        for (name, arguments) in EXAMPLES {
            tasks.push(task(name, command(name, &[arguments, &["--verify", "--json"]].concat()), None));
        }
        let folder = scratch.join(format!("{count}-{exchange}").replace(':', "-"));
        let mut cases = command("cases", &["all"]);
        cases.arg("--dump").arg(&folder);
        tasks.push(task("cases", cases, Some([folder, expected.to_owned()])));
    }
    tasks
}

fn judge(task: Task) -> Verdict {
    let start = Instant::now();
    let Task { name, devices, exchange, command, compared } = task;
    let result = said(command).and_then(|()| match &compared {
        Some([found, expected]) => alike(found, expected),
        None => Ok(()),
    });
    let (exchange, seconds) = (exchange.to_string(), start.elapsed().as_secs_f64());
    Verdict { name, devices, exchange, seconds, fault: result.err().map(|error| error.to_string()) }
}

/// An error with what a program said, unless it ended well.
fn said(mut command: Command) -> Outcome<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} ({})", text.trim(), output.status).into())
}

/// An error that names the first file of the results that differs.
fn alike(found: &Path, expected: &Path) -> Outcome<()> {
    let mut cases = 0;
    for case in fs::read_dir(expected)? {
        let case = case?.file_name();
        for file in fs::read_dir(expected.join(&case))? {
            let place = Path::new(&case).join(file?.file_name());
            let [one, other] = [found, expected].map(|folder| fs::read(folder.join(&place)));
            let (one, other) = (one?, other?);
            let is_field = place.extension().is_some_and(|extension| extension == "bin");
            let right = match case == TRANSCENDENTAL.0 {
                true => !is_field || is_close(&one, &other, TRANSCENDENTAL.1),
                false => one == other,
            };
            if !right {
                return Err(format!("{} differs from the reference device's", place.display()).into());
            }
        }
        cases += 1;
    }
    if cases == 10 { Ok(()) } else { Err(format!("{cases} cases were compared, and there are ten").into()) }
}

/// Whether two fields of `f32` differ by no more than a share of the largest value.
fn is_close(one: &[u8], other: &[u8], tolerance: f32) -> bool {
    let values = |bytes: &[u8]| -> Vec<f32> {
        let (values, _) = bytes.as_chunks();
        values.iter().map(|value| f32::from_le_bytes(*value)).collect()
    };
    let (one, other) = (values(one), values(other));
    let largest = other.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= tolerance * largest;
    one.len() == other.len() && one.iter().zip(&other).all(near)
}

#[cfg(test)]
mod tests {
    use super::is_close;

    #[test]
    fn fields_are_close_if_every_value_is() {
        let bytes = |values: [f32; 2]| values.map(f32::to_le_bytes).concat();
        let expected = bytes([1.0, -200.0]);
        assert!(is_close(&bytes([1.0005, -200.0]), &expected, 3e-6));
        assert!(!is_close(&bytes([1.001, -200.0]), &expected, 3e-6));
        assert!(!is_close(&bytes([1.0, f32::NAN]), &expected, 3e-6));
        assert!(!is_close(&expected[..4], &expected, 3e-6));
    }
}
