//! Ten stencils that people really run, each on a small grid of awkward sizes: their final fields and scalars are written to
//! files, to be compared with references.
//!
//! `cargo run --release --example cases -- NAME --devices SPEC --dump DIR` writes every final field as raw little-endian
//! numbers `DIR/FIELD.bin` and the scalars of every step to `DIR/scalars.json`. Arrays are a[i][j][k] with k fastest: their
//! k runs along X here, their j along Y and their i along Z.

mod diffusion;
mod programs;

#[path = "../common/mod.rs"]
mod common;

#[path = "../kernels/automaton.rs"]
mod automaton;
#[path = "../kernels/burgers.rs"]
mod burgers;
#[path = "../kernels/elastic.rs"]
mod elastic;
#[path = "../kernels/gray_scott.rs"]
mod gray_scott;
#[path = "../kernels/heat.rs"]
mod heat;
#[path = "../kernels/himeno.rs"]
mod himeno;
#[path = "../kernels/perona_malik.rs"]
mod perona_malik;
#[path = "../kernels/poisson.rs"]
mod poisson;
#[path = "../kernels/wave.rs"]
mod wave;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use common::{Devices, exit, make_folder, print_line};
use polyhalo::prelude::*;
use polyhalo::{Element, Error};
use programs::CASES;
use serde_json::{Map, json};

/// Run a case and write its fields and scalars.
#[derive(Parser)]
struct Options {
    /// The case; `all` runs every one into a folder of its own.
    name: String,
    #[command(flatten)]
    devices: Devices,
    /// The folder for the results; it is made if need be.
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
}

/// What writes a field to a file.
type Writer = Box<dyn Fn(&Path) -> Result<()>>;

/// The results of a case.
#[derive(Default)]
struct Outcome {
    fields: Vec<(&'static str, Writer)>,
    scalars: Vec<(&'static str, Vec<f64>)>,
}

impl Outcome {
    /// With the final values of a field.
    fn field<T: Element>(mut self, name: &'static str, field: &Field<T>) -> Self {
        let field = field.clone();
        self.fields.push((name, Box::new(move |path| field.save_raw(path))));
        self
    }

    /// With a scalar of every step.
    fn scalar(mut self, name: &'static str, values: impl IntoIterator<Item = f64>) -> Self {
        self.scalars.push((name, values.into_iter().collect()));
        self
    }

    fn write(&self, folder: &Path) -> Result<()> {
        make_folder(folder)?;
        for (name, write) in &self.fields {
            write(&folder.join(format!("{name}.bin")))?;
        }
        let scalars: Map<_, _> =
            self.scalars.iter().map(|(name, values)| ((*name).to_owned(), json!(values))).collect();
        let path = folder.join("scalars.json");
        std::fs::write(&path, format!("{}\n", json!(scalars)))
            .map_err(|error| Error::Write { path, reason: error.to_string() })
    }
}

impl Options {
    /// A simulation on the grid of a case: `[i, j, k]` are its cells along Z, Y and X.
    fn simulation(&self, [i, j, k]: [usize; 3]) -> Result<Simulation> {
        self.devices.build(Simulation::on([k, j, i]).measure_bandwidth(false))
    }

    /// Whether there is such a case.
    fn run(&self) -> Result<bool> {
        let chosen: Vec<_> = CASES.iter().filter(|case| self.name == "all" || self.name == case.0).collect();
        for (name, run) in &chosen {
            let outcome = run(self)?;
            print_line(&format_args!("{name}: {} fields, {} scalars", outcome.fields.len(), outcome.scalars.len()))?;
            if let Some(folder) = &self.dump {
                outcome.write(&if self.name == "all" { folder.join(name) } else { folder.clone() })?;
            }
        }
        Ok(!chosen.is_empty())
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = options.run();
    if let Ok(false) = outcome {
        let names = CASES.map(|case| case.0).join(", ");
        eprintln!("error: there is no case `{}`: it is all or one of {names}", options.name);
        return ExitCode::from(2);
    }
    exit(outcome)
}
