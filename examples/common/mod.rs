//! What every example shares: options, the run on the chosen devices and the one that it is compared with, and what is shown
//! in the end.

#![allow(dead_code, reason = "each example uses a part of it")]

mod difference;
pub(crate) mod noise;
mod outcome;
pub(crate) mod ricker;

use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use polyhalo::backend::{GpuOptions, Tune};
use polyhalo::prelude::*;
use polyhalo::{Builder, Error, Run};

pub(crate) use outcome::{Outcome, Values};

/// Which devices a program runs on, and how they work together.
#[derive(Args, Clone, Debug)]
pub(crate) struct Devices {
    /// Where to run: auto, reference, host, opencl, opencl:PLATFORM (part of a platform's name), cuda, hip; several with a
    /// count or a plus, as in host:4, opencl:pocl:2, cuda:1x4 (four subdomains on one GPU) and host:1+cuda:1.
    #[arg(long, value_name = "SPEC", default_value = "auto")]
    devices: String,
    /// Threads of each host device; if not given, the CPUs that this process may use are shared out among them.
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// How halos travel between devices: synchronous, streamed, threaded, peer-to-peer, neighbour, deep:STEPS (every
    /// so many steps) or auto.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    exchange: String,
    /// How planes are shared out among devices: even, measured (by speed), or a number for each device, as in 3,1.
    #[arg(long, value_name = "SHARES", default_value = "even")]
    split: String,
    /// Threads that do what host devices are told while others go on: auto (none for one device, one for each of
    /// several), devices (one for each), or a number; with 0 whoever tells a device does it.
    #[arg(long, value_name = "N", default_value = "auto")]
    helpers: String,
    /// The CPUs of the threads that work for a device: near it, far from it (to compare), or none in particular.
    #[arg(long, value_name = "WHERE", default_value = "near")]
    affinity: String,
    /// Measure how kernels are best laid out on a GPU, even where that is known already.
    #[arg(long)]
    tune: bool,
    /// Lay all kernels out on a GPU like this: point:XxYxZ or march:XxY:PLANES, with the threads of a block.
    #[arg(long, value_name = "SHAPE")]
    shape: Option<String>,
    /// Enqueue every operation by itself, rather than steps as a whole where a GPU can record them.
    #[arg(long)]
    no_graphs: bool,
    /// Make halo cells worthless before they are exchanged, and look for such values after every step.
    #[arg(long)]
    paranoid: bool,
}

impl Devices {
    /// The reference device.
    fn reference() -> Self {
        let auto = || "auto".to_owned();
        Self {
            devices: "reference".into(),
            threads: None,
            exchange: auto(),
            split: "even".into(),
            helpers: auto(),
            affinity: "near".into(),
            tune: false,
            shape: None,
            no_graphs: false,
            paranoid: false,
        }
    }

    /// A simulation on these devices. What is to be said about where their threads run goes to standard error.
    pub(crate) fn build(&self, builder: Builder) -> Result<Simulation> {
        let builder = builder.devices(&self.devices).exchange(self.exchange.parse()?).division(self.split.parse()?);
        let builder = builder.helpers(self.helpers.parse()?).affinity(self.affinity.parse()?).paranoid(self.paranoid);
        let tune = if self.tune { Tune::Again } else { Tune::default() };
        let shape = self.shape.as_deref().map(str::parse).transpose()?;
        let builder = builder.gpu(GpuOptions { tune, shape, ..GpuOptions::default() }).graphs(!self.no_graphs);
        let builder = if let Some(threads) = self.threads { builder.threads(threads) } else { builder };
        let sim = builder.build()?;
        for (device, home) in sim.devices().iter().zip(sim.placement()) {
            if let Some(note) = home.note {
                eprintln!("note: {device}: {note}");
            }
        }
        Ok(sim)
    }
}

/// Options of every example.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    devices: Devices,
    /// Run on the reference device too and compare; exit code 1 if the results differ too much.
    #[arg(long)]
    verify: bool,
    /// Write the result as a NumPy array with axes (z, y, x).
    #[arg(long, value_name = "FILE.npy")]
    save: Option<PathBuf>,
    /// Write a picture of the middle plane; without --json there is always one.
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Write what was done when as a trace for Chrome (chrome://tracing) and Perfetto; it takes time.
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
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
    /// The simulation that is traced.
    traced: RefCell<Option<Simulation>>,
    /// Whether it is there only to be compared with, and must write nothing.
    pub(crate) is_check: bool,
}

impl Pass<'_> {
    /// A simulation on the devices of this run.
    pub(crate) fn build(&self, builder: Builder) -> Result<Simulation> {
        let traces = self.options.trace.is_some() && !self.is_check;
        let sim = self.devices.build(builder.measure_bandwidth(!self.is_check).trace(traces))?;
        if traces {
            self.traced.replace(Some(sim.clone()));
        }
        Ok(sim)
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
        let traced = RefCell::default();
        let asked = Pass { options: self, name, devices: &self.devices, steps, traced, is_check: false };
        let outcome = solve(&asked)?;
        if let (Some(file), Some(sim)) = (&self.trace, asked.traced.take()) {
            sim.write_trace(file)?;
        }
        let difference = match self.verify {
            true => {
                let (devices, traced) = (Devices::reference(), RefCell::default());
                let check = Pass { devices: &devices, steps: outcome.report.steps, traced, is_check: true, ..asked };
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
