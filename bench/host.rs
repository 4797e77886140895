//! Stencils on the host device beside the same schemes as plain loops in C, in one process and by turns.
//!
//! `cargo run --release -p polyhalo-bench -- --help` lists the options; `README.md` says what is measured.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use polyhalo::backend::host::{Host, InstructionSet};
use polyhalo::backend::{Backend, Device, OpenOptions};
use polyhalo::bandwidth;
use polyhalo::prelude::*;
use polyhalo_bench::c::{self, Loops};
use polyhalo_bench::cases::{Case, Difference};
use polyhalo_bench::cpus::{Mask, ping_pong};
use polyhalo_bench::quiet::{MOST_BY_OTHERS, Meter};
use polyhalo_bench::spread::Spread;
use polyhalo_bench::table::markdown;
use serde_json::{Value, json};

/// About how long the plain loop runs in a repetition: short, so that others seldom disturb one.
const SECONDS: f64 = 0.2;

/// How often a repetition is repeated when others disturb it.
const MOST_TRIES: usize = 4;

/// Compare the host device with plain C loops, on cubes.
#[derive(Parser)]
struct Options {
    /// Stencils; all if not given.
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    case: Vec<Case>,
    /// Points along each axis.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128,256")]
    n: Vec<usize>,
    /// Threads of both; all CPUs that this process may use if not given.
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// Repetitions of both.
    #[arg(long, value_name = "R", default_value = "9")]
    reps: usize,
    /// Instruction sets of the host device: baseline, avx2, avx512; the best one of the CPU if not given.
    #[arg(long, value_name = "SET", value_delimiter = ',')]
    instruction_set: Vec<String>,
    /// Write all measurements as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

type Outcome<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether all results were those of the C loops.
fn run(options: &Options) -> Outcome<bool> {
    let cpus = Mask::of_this_thread()?.cpus();
    let threads = options.threads.unwrap_or(cpus.len());
    let sets = instruction_sets(&options.instruction_set)?;
    let cases = if options.case.is_empty() { Case::value_variants() } else { &options.case };
    let least = cases.iter().map(|case| 2 * case.margin() + 1).max().unwrap_or(1);
    if let Some(n) = options.n.iter().find(|&&n| n < least) {
        return Err(format!("--n {n}: without points inside there is nothing to measure; take at least {least}").into());
    }
    if options.reps == 0 || threads == 0 {
        return Err("--reps and --threads must be at least 1".into());
    }
    let folder = std::env::current_exe()?.with_file_name("bench-plain");
    let code = Loops::new(&folder)?;
    let processor = Host.devices().devices[0].name.clone();
    println!("{}, {threads} threads; C: {} with {}\n", processor, code.compiler, c::FLAGS.join(" "));
    let mut rows = Vec::new();
    for &case in cases {
        for &n in &options.n {
            for &set in &sets {
                let wish = OpenOptions { threads: Some(threads), instruction_set: Some(set), ..OpenOptions::default() };
                let copier = Host.open_one(0, &wish)?;
                let what = Subject { case, n, set, threads };
                rows.push(Row::measure(what, options.reps, &code, &*copier, &cpus)?);
            }
        }
    }
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    print!("{}", markdown(&HEAD, &cells));
    if let Some(file) = &options.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        let all = json!({ "cpu": processor, "compiler": code.compiler, "flags": c::FLAGS, "rows": rows });
        std::fs::write(file, format!("{all:#}\n")).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    for Row { what: Subject { case, n, set, .. }, difference, .. } in &rows {
        if !difference.is_none() {
            let Difference { values, sum } = difference;
            let name = case.name();
            eprintln!(
                "{name}, n = {n}, {set}: {values} values differ from those of the C loop; sums are {sum:e} apart"
            );
        }
    }
    Ok(rows.iter().all(|row| row.difference.is_none()))
}

fn instruction_sets(names: &[String]) -> Outcome<Vec<InstructionSet>> {
    if names.is_empty() {
        return Ok(vec![InstructionSet::best()]);
    }
    let known = "an instruction set is baseline, avx2 or avx512";
    let set = |name: &String| InstructionSet::named(name).ok_or_else(|| format!("`{name}`: {known}").into());
    names.iter().map(set).collect()
}

/// One repetition of both.
struct Repetition {
    /// The round trip of a cache line between the first two CPUs.
    ping_pong_ns: Option<f64>,
    copy_bandwidth: Option<f64>,
    c_points_per_second: f64,
    points_per_second: f64,
    /// CPUs in other hands meanwhile.
    by_others: f64,
}

/// What is measured.
#[derive(Clone, Copy)]
struct Subject {
    case: Case,
    n: usize,
    set: InstructionSet,
    threads: usize,
}

/// All that was measured of it.
struct Row {
    what: Subject,
    /// Of a repetition.
    steps: u64,
    difference: Difference,
    repetitions: Vec<Repetition>,
}

const HEAD: [&str; 11] = [
    "case",
    "n",
    "kernel",
    "C GPts/s",
    "polyhalo GPts/s",
    "ratio",
    "effective GB/s",
    "copy GB/s",
    "share",
    "ping-pong ns",
    "disturbed",
];

impl Row {
    fn measure(what: Subject, repetitions: usize, code: &Loops, copier: &dyn Device, cpus: &[usize]) -> Outcome<Self> {
        let Subject { case, n, set, threads } = what;
        let sim = Simulation::on([n; 3]).devices("host").threads(threads).instruction_set(set);
        let sim = sim.measure_bandwidth(false).build()?;
        let mut pair =
            case.pair(&sim, code, n, threads)?.ok_or("there isn't enough memory for the fields of the C loop")?;
        // Both go the same way, so that their results can be compared at the end. The first times count for neither.
        pair.plain.run(2);
        let meter = Meter::start();
        pair.plain.run(2);
        let steps = (SECONDS / (meter.seconds() / 2.0)).ceil().max(1.0) as u64;
        sim.run(&pair.step, 4)?;
        let points = (n - 2 * case.margin()).pow(3) as f64 * steps as f64;
        let mut row = Self { what, steps, difference: Difference::default(), repetitions: Vec::new() };
        while row.repetitions.len() < repetitions {
            for tries in 1..=MOST_TRIES {
                let ping_pong_ns = ping_pong(cpus).map(|time| time.as_nanos() as f64);
                let copy_bandwidth = bandwidth::measure(&[copier])?;
                let meter = Meter::start();
                pair.plain.run(steps);
                let c_seconds = meter.seconds();
                sim.run(&pair.step, steps)?;
                let seconds = meter.seconds() - c_seconds;
                let by_others = meter.by_others();
                if by_others <= MOST_BY_OTHERS || tries == MOST_TRIES {
                    row.repetitions.push(Repetition {
                        ping_pong_ns,
                        copy_bandwidth,
                        c_points_per_second: points / c_seconds,
                        points_per_second: points / seconds,
                        by_others,
                    });
                    break;
                }
            }
        }
        row.difference = pair.difference()?;
        Ok(row)
    }

    fn spread(&self, figure: impl Fn(&Repetition) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.repetitions.iter().filter_map(figure).collect();
        (!values.is_empty()).then(|| Spread::of(values))
    }

    fn cells(&self) -> Vec<String> {
        let text = |decimals: usize, figure: &dyn Fn(&Repetition) -> Option<f64>| {
            self.spread(figure).map_or_else(|| "-".to_owned(), |spread| spread.text(decimals))
        };
        let effective = |rep: &Repetition| self.what.case.bytes_per_point() * rep.points_per_second;
        let disturbed = self.repetitions.iter().filter(|rep| rep.by_others > MOST_BY_OTHERS).count();
        vec![
            self.what.case.name().to_owned(),
            self.what.n.to_string(),
            self.what.set.to_string(),
            text(2, &|rep| Some(rep.c_points_per_second / 1e9)),
            text(2, &|rep| Some(rep.points_per_second / 1e9)),
            text(2, &|rep| Some(rep.points_per_second / rep.c_points_per_second)),
            text(1, &|rep| Some(effective(rep) / 1e9)),
            text(1, &|rep| Some(rep.copy_bandwidth? / 1e9)),
            text(2, &|rep| Some(effective(rep) / rep.copy_bandwidth?)),
            text(0, &|rep| rep.ping_pong_ns),
            format!("{disturbed} of {}", self.repetitions.len()),
        ]
    }

    fn json(&self) -> Value {
        let repetition = |rep: &Repetition| {
            json!({
                "ping_pong_ns": rep.ping_pong_ns,
                "copy_bandwidth": rep.copy_bandwidth,
                "c_points_per_second": rep.c_points_per_second,
                "points_per_second": rep.points_per_second,
                "by_others": rep.by_others,
            })
        };
        json!({
            "case": self.what.case.name(),
            "n": self.what.n,
            "instruction_set": self.what.set.to_string(),
            "threads": self.what.threads,
            "steps": self.steps,
            "differing_values": self.difference.values,
            "difference_of_sums": self.difference.sum,
            "repetitions": self.repetitions.iter().map(repetition).collect::<Vec<_>>(),
        })
    }
}
