//! The first hour on a machine with GPUs, in a few minutes: is everything right, and how fast is it?
//!
//! `bench/gpu-check.sh` runs it; `README.md` says what is measured. Nothing here knows a vendor: `--devices host` runs it too.

mod check;
mod heat;
mod transfers;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use polyhalo::Exchange;
use polyhalo::devices::{self, inventory};
use serde_json::{Value, json};

type Outcome<T> = std::result::Result<T, Box<dyn Error>>;

/// Check and measure a kind of device.
#[derive(Parser)]
struct Options {
    /// The kind of device, such as cuda, hip or host.
    #[arg(long, value_name = "BACKEND", default_value = "cuda")]
    devices: String,
    /// The folder with the example programs.
    #[arg(long, value_name = "DIR", default_value = "target/release/examples")]
    programs: PathBuf,
    /// Points along each axis of the heat equation.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "512,768")]
    n: Vec<usize>,
    /// Points along each axis of the grid on which recorded steps are compared with others.
    #[arg(long, value_name = "N", default_value = "256")]
    graphs: usize,
    /// Subdomains on a card.
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,2,4")]
    subdomains: Vec<usize>,
    /// The largest transfer.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    largest: usize,
    /// Repetitions of each measurement.
    #[arg(long, value_name = "R", default_value = "5")]
    reps: usize,
    /// Programs that run at the same time while results are checked.
    #[arg(long, value_name = "P", default_value = "8")]
    parallel: usize,
    /// What the machine is, to be kept with the results.
    #[arg(long, value_name = "TEXT", default_value = "")]
    machine: String,
    /// Where to write `NAME.json` and `NAME.md`.
    #[arg(long, value_name = "NAME", default_value = "gpu-check")]
    out: PathBuf,
}

impl Options {
    /// Every number of subdomains on one card, with the description of the devices, and every strategy for several of them.
    fn ways(&self) -> Vec<(usize, String, Exchange)> {
        let strategies = Exchange::ALL.into_iter().filter(|exchange| *exchange != Exchange::Auto);
        let ways = self.subdomains.iter().flat_map(|&count| strategies.clone().map(move |exchange| (count, exchange)));
        // A single one exchanges nothing.
        let ways = ways.filter(|&(count, exchange)| count > 1 || exchange == Exchange::Synchronous);
        ways.map(|(count, exchange)| (count, format!("{}:1x{count}", self.devices), exchange)).collect()
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What a part of the program has found: for machines and for people.
struct Section {
    name: &'static str,
    json: Value,
    markdown: String,
    /// Whether everything was right.
    passed: bool,
}

/// A part of the program, by the name of its section.
type Part = (&'static str, fn(&Options) -> Outcome<Section>);

/// Runs every part, even if one before failed, and writes what was found after each.
fn run(options: &Options) -> Outcome<bool> {
    let start = Instant::now();
    // Without a device everything else would only say so again and again.
    devices::find(&options.devices, &[])?;
    let parts: [Part; 6] = [
        ("results", check::check),
        ("sanitizer", check::sanitizer),
        ("heat", heat::sizes),
        ("strategies", heat::strategies),
        ("graphs", heat::graphs),
        ("transfers", transfers::transfers),
    ];
    let mut found: Vec<Section> = Vec::new();
    for (name, part) in parts {
        eprintln!("{name} ..");
        let section = part(options).unwrap_or_else(|error| Section {
            name,
            json: json!({ "error": error.to_string() }),
            markdown: format!("## {name}\n\nNOT MEASURED: {error}\n"),
            passed: false,
        });
        println!("{}", section.markdown);
        found.push(section);
        write(options, &found, start.elapsed().as_secs_f64())?;
    }
    let failed: Vec<_> = found.iter().filter(|section| !section.passed).map(|section| section.name).collect();
    match failed.as_slice() {
        [] => println!("everything passed in {:.0} s", start.elapsed().as_secs_f64()),
        failed => println!("FAILED: {}", failed.join(", ")),
    }
    Ok(failed.is_empty())
}

fn write(options: &Options, found: &[Section], seconds: f64) -> Outcome<()> {
    let devices = described(&options.devices);
    let mut all = json!({
        "version": env!("CARGO_PKG_VERSION"), "machine": options.machine, "devices": devices, "seconds": seconds,
    });
    let mut text = format!("# `{}` devices, checked and measured\n\n", options.devices);
    if !options.machine.is_empty() {
        text += &format!("{}\n\n", options.machine);
    }
    text += &format!("```text\n{devices}\n```\n");
    for section in found {
        all[section.name] = section.json.clone();
        text += &format!("\n{}", section.markdown);
    }
    save(&options.out.with_extension("json"), &format!("{all:#}\n"))?;
    save(&options.out.with_extension("md"), &text)
}

/// The devices of a back end, with the version of the driver and what else is to be known.
fn described(backend: &str) -> String {
    let inventory = inventory();
    let listing = inventory.backends.iter().find(|(name, _)| *name == backend).map(|(_, listing)| listing);
    let devices = listing.into_iter().flat_map(|listing| &listing.devices);
    let lines: Vec<_> = devices.map(|device| format!("{device}: {}", device.notes.join(", "))).collect();
    lines.join("\n")
}

fn save(path: &Path, text: &str) -> Outcome<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}
