//! What every example shares: options, the run on the chosen devices and the one that it is compared with, and what is shown
//! in the end.

#![allow(dead_code, reason = "each example uses a part of it")]

mod difference;
pub(crate) mod noise;
mod outcome;
pub(crate) mod ricker;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use polyhalo::prelude::*;
use polyhalo::{Builder, Error, Run};

pub(crate) use outcome::{Outcome, Values};

/// Which devices a program runs on.
#[derive(Args, Clone, Debug)]
pub(crate) struct Devices {
    /// Where to run: auto, reference, host, opencl, opencl:PLATFORM (part of a platform's name).
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    devices: String,
    /// Threads of a host device; all CPUs this process may use if not given.
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
}

impl Devices {
    /// A simulation on these devices.
    pub(crate) fn build(&self, builder: Builder) -> Result<Simulation> {
        let builder = builder.devices(&self.devices);
        match self.threads {
            Some(threads) => builder.threads(threads).build(),
            None => builder.build(),
        }
    }
}

/// Options of every example.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    devices: Devices,
    /// How halos travel between devices: synchronous, streamed, threaded, peer-to-peer or auto.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    exchange: String,
    /// Run on the reference device too and compare; exit code 1 if the results differ too much.
    #[arg(long)]
    verify: bool,
    /// Write the result as a NumPy array with axes (z, y, x).
    #[arg(long, value_name = "FILE.npy")]
    save: Option<PathBuf>,
    /// Write a picture of the middle plane; without --json there is always one.
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// One JSON object on standard output instead of text.
    #[arg(long)]
    json: bool,
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

/// A number greater than 0.
pub(crate) fn positive<T: FromStr + PartialOrd + Default>(text: &str) -> Result<T, String> {
    let number = text.trim().parse().ok().filter(|number| *number > T::default());
    number.ok_or_else(|| "a number greater than 0 is needed, as in `0.01`".to_owned())
}

impl Cells {
    /// The distance between cells if the longest axis has length 1.
    pub(crate) fn spacing(self) -> f64 {
        1.0 / (self.0.into_iter().max().unwrap_or(2).max(2) - 1) as f64
    }

    /// The cell in the middle.
    pub(crate) fn middle(self) -> [usize; 3] {
        self.0.map(|cells| cells / 2)
    }

    /// Whether a point lies on the outermost cells.
    pub(crate) fn on_boundary(self, point: Point) -> bool {
        let index = [point.i, point.j, point.k];
        index.iter().zip(self.0).any(|(&index, cells)| index == 0 || index as usize + 1 == cells)
    }
}

/// One run of an example: the one that was asked for, or the one on the reference device that it is compared with.
pub(crate) struct Pass<'a> {
    options: &'a RunOptions,
    name: &'a str,
    devices: &'a Devices,
    steps: u64,
    /// Whether it is there only to be compared with, and must write nothing.
    pub(crate) is_check: bool,
}

impl Pass<'_> {
    /// A simulation on the devices of this run.
    pub(crate) fn build(&self, builder: Builder) -> Result<Simulation> {
        let builder = builder.exchange(self.options.exchange.parse()?);
        self.devices.build(builder.measure_bandwidth(!self.is_check))
    }

    /// All steps, with a bar on the terminal.
    pub(crate) fn start<'a>(&self, sim: &'a Simulation, step: &'a Step) -> Run<'a> {
        sim.start(step, self.steps).bar()
    }

    /// Where the picture of the result goes: nowhere if there is none.
    fn picture_path(&self) -> Option<PathBuf> {
        let default = || (!self.options.json).then(|| format!("{}.png", self.name).into());
        self.options.png.clone().or_else(default).filter(|_| !self.is_check)
    }

    /// Writes another picture beside that of the result, if there is one: `NAME-WHAT.png`.
    pub(crate) fn another_picture(&self, field: &dyn Values, picture: impl Into<Picture>, what: &str) -> Result<()> {
        let Some(path) = self.picture_path() else { return Ok(()) };
        let stem = path.file_stem().unwrap_or(self.name.as_ref()).to_string_lossy();
        field.picture(&path.with_file_name(format!("{stem}-{what}.png")), picture.into())
    }
}

impl RunOptions {
    /// Runs an example, with `--verify` also on the reference, and shows what came out. The exit code is 0, 1 if a result is
    /// wrong, 2 after an error, which is printed in one paragraph.
    pub(crate) fn example(&self, name: &str, steps: u64, solve: impl Fn(&Pass<'_>) -> Result<Outcome>) -> ExitCode {
        exit(self.run(name, steps, solve))
    }

    fn run(&self, name: &str, steps: u64, solve: impl Fn(&Pass<'_>) -> Result<Outcome>) -> Result<bool> {
        let asked = Pass { options: self, name, devices: &self.devices, steps, is_check: false };
        let outcome = solve(&asked)?;
        let difference = match self.verify {
            true => {
                let devices = Devices { devices: "reference".into(), threads: None };
                let check = Pass { devices: &devices, steps: outcome.report.steps, is_check: true, ..asked };
                Some(outcome.difference(&solve(&check)?)?)
            }
            false => None,
        };
        if let Some(file) = &self.save {
            outcome.field().save(file)?;
        }
        let picture = asked.picture_path();
        if let Some(file) = &picture {
            outcome.field().picture(file, outcome.picture)?;
        }
        if self.json {
            print_line(&outcome.json(difference)?)?;
        } else {
            print_line(&outcome.report)?;
            outcome.lines.iter().try_for_each(print_line)?;
            difference.iter().try_for_each(print_line)?;
            picture.iter().try_for_each(|file| print_line(&format_args!("a picture in {}", file.display())))?;
        }
        Ok(outcome.is_right && difference.is_none_or(|difference| difference.close))
    }
}

/// Ends a program: 0, 1 if a result is wrong, 2 after an error, which is printed in one paragraph.
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

/// Makes a folder for results, unless it is there.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| Error::Write { path: path.into(), reason: error.to_string() })
}
