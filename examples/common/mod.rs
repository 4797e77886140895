//! What every example shares: options, the progress bar, the report, saving and verification.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use polyhalo::prelude::*;
use polyhalo::{Element, Error};
use serde_json::{Value, json};

/// Options of every example.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// Number of time steps; each example has its own number if not given.
    #[arg(long, value_name = "S")]
    pub(crate) steps: Option<u64>,
    /// Where to run: auto, reference, host, opencl, opencl:PLATFORM (part of a platform's name).
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    pub(crate) devices: String,
    /// How halos travel between devices: synchronous, streamed, threaded, peer-to-peer or auto.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) exchange: String,
    /// Threads of a host device; all CPUs this process may use if not given.
    #[arg(long, value_name = "T")]
    pub(crate) threads: Option<usize>,
    /// Run on the reference device too and compare; exit code 1 if the results differ too much.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Write the result as a NumPy array with axes (z, y, x).
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) save: Option<PathBuf>,
    /// Write a picture of the middle plane; without --json there is always one.
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// One JSON object on standard output instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Points along X, Y and Z: `N` or `NX,NY,NZ` on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells(pub(crate) [usize; 3]);

impl FromStr for Cells {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<usize>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok(&[n]) => Ok(Cells([n; 3])),
            Ok(&[nx, ny, nz]) => Ok(Cells([nx, ny, nz])),
            Ok(_) | Err(_) => Err("one number or three are needed, as in `256` or `128,64,32`".to_owned()),
        }
    }
}

impl RunOptions {
    /// A simulation on a grid, on `devices`.
    pub(crate) fn simulation(&self, cells: [usize; 3], devices: &str) -> Result<Simulation> {
        let builder = Simulation::on(cells).devices(devices).exchange(self.exchange.parse()?);
        match self.threads {
            Some(threads) => builder.threads(threads).build(),
            None => builder.build(),
        }
    }

    /// Writes the files that were asked for; without `--json` also a picture of that name. Gives the picture's path.
    pub(crate) fn save<T: Element>(&self, field: &Field<T>, plane: Plane, name: &str) -> Result<Option<PathBuf>> {
        if let Some(file) = &self.save {
            field.save(file)?;
        }
        let picture = self.png.clone().or_else(|| (!self.json).then(|| name.into()));
        if let Some(file) = &picture {
            field.save_png(file, plane)?;
        }
        Ok(picture)
    }

    /// What is told of every run.
    pub(crate) fn json_of(&self, report: &Report) -> Value {
        let [nx, ny, nz] = report.grid;
        let n = if nx == ny && ny == nz { json!(nx) } else { json!(report.grid) };
        json!({
            "n": n,
            "grid": report.grid,
            "steps": report.steps,
            "devices": report.devices,
            "exchange": report.exchange.name(),
            "seconds": report.seconds,
            "points": report.points,
            "points_per_second": report.points_per_second(),
            "effective_bandwidth": report.effective_bandwidth(),
            "copy_bandwidth": report.copy_bandwidth,
        })
    }
}

/// Adds the outcome of `--verify` to an object.
pub(crate) fn add_verification(mut object: Value, difference: Option<Difference>) -> Value {
    if let Some(difference) = difference {
        object["max_abs_diff"] = json!(difference.max_abs);
        object["bits_equal"] = json!(difference.bits_equal);
        object["within_tolerance"] = json!(difference.close);
    }
    object
}

/// Ends an example: 0, 1 if a verification failed, 2 after an error, which is printed in one paragraph.
pub(crate) fn exit(outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// A line on standard output. A reader that has seen enough ends the program quietly; other failures are errors.
pub(crate) fn print_line(line: &impl fmt::Display) -> Result<()> {
    let written = writeln!(std::io::stdout(), "{line}");
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.map_err(|error| Error::Write { path: "standard output".into(), reason: error.to_string() }),
    }
}

/// A bar on the terminal that follows a run; draws nothing elsewhere.
pub(crate) fn progress_bar(steps: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {eta} left").expect("the template is right");
    ProgressBar::new(steps).with_style(style)
}

/// How two results differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// The largest absolute difference; not a number when one of two values is.
    pub(crate) max_abs: f64,
    /// Whether all bits are equal.
    pub(crate) bits_equal: bool,
    /// Whether every pair fulfils the paper's criterion |a - b| <= 1e-6 + 1e-5 |b|.
    pub(crate) close: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.bits_equal { "all bits equal" } else { "not all bits equal" };
        let criterion = if self.close { "fulfilled" } else { "NOT fulfilled" };
        let max = self.max_abs;
        write!(f, "against the reference: largest difference {max:e}, {bits}, |a-b| <= 1e-6 + 1e-5|b| {criterion}")
    }
}

/// Compares values with those of the reference.
pub(crate) fn difference<'a>(
    values: impl ExactSizeIterator<Item = &'a f64>,
    reference: impl ExactSizeIterator<Item = &'a f64>,
) -> Difference {
    let alike = values.len() == reference.len();
    let mut difference = Difference { max_abs: 0.0, bits_equal: alike, close: alike };
    for (a, b) in values.zip(reference) {
        let apart = (a - b).abs();
        if apart.is_nan() || apart > difference.max_abs {
            difference.max_abs = apart;
        }
        difference.bits_equal &= a.to_bits() == b.to_bits();
        difference.close &= apart <= 1e-6 + 1e-5 * b.abs() || a.to_bits() == b.to_bits();
    }
    difference
}

/// The sum of all values, compensated (Neumaier): the error does not grow with the number of points.
pub(crate) fn sum<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for &value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}
