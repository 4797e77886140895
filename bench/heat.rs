//! The heat step on the host device beside the same scheme as a plain loop in C, in one process and by turns.
//!
//! `cargo run --release -p polyhalo-bench --bin heat -- --help` lists the options; `README.md` says what is measured.

use std::error::Error;
use std::f64::consts::PI;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use polyhalo::backend::host::InstructionSet;
use polyhalo::backend::{Device, OpenOptions};
use polyhalo::bandwidth;
use polyhalo::devices;
use polyhalo::prelude::*;
use polyhalo_bench::c::{self, Loop};
use polyhalo_bench::cpus::{Mask, ping_pong};
use polyhalo_bench::quiet::{MOST_BY_OTHERS, Meter};
use polyhalo_bench::spread::Spread;
use polyhalo_bench::table::markdown;
use serde_json::{Value, json};

/// One explicit Euler step; the time step is folded into `f` and `beta`.
#[stencil]
fn heat(u: &Field<f64>, f: &Field<f64>, kappa: &Field<f64>, beta: f64) -> f64 {
    let flux = |d: Offset| (kappa[d] + kappa[HERE]) * (u[d] - u[HERE]);
    u[HERE] + f[HERE] + beta * (flux(X) + flux(-X) + flux(Y) + flux(-Y) + flux(Z) + flux(-Z))
}

/// Each field read once and the result written once, 8 bytes each.
const BYTES_PER_POINT: f64 = 32.0;

/// The points that a repetition updates, about: some tenths of a second on a few cores.
const POINTS_PER_REPETITION: f64 = 6e8;

/// How often a repetition is repeated when others disturb it.
const MOST_TRIES: usize = 4;

/// The coefficient of the step: dt / (2 h^2) with the largest stable dt.
const BETA: f64 = 1.0 / (24.0 * 0.95);

/// Compare the host device with a plain C loop: the heat step on cubes.
#[derive(Parser)]
struct Options {
    /// Points along each axis.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128,256,512")]
    n: Vec<usize>,
    /// Threads of both; all CPUs that this process may use if not given.
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// Repetitions of both.
    #[arg(long, value_name = "R", default_value = "7")]
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

/// Whether all results had the bits of the C loop.
fn run(options: &Options) -> Outcome<bool> {
    let cpus = Mask::of_this_thread()?.cpus();
    let threads = options.threads.unwrap_or(cpus.len());
    let sets = instruction_sets(&options.instruction_set)?;
    if let Some(n) = options.n.iter().find(|&&n| n < 3) {
        return Err(format!("--n {n}: without points inside there is nothing to measure; take at least 3").into());
    }
    if options.reps == 0 || threads == 0 {
        return Err("--reps and --threads must be at least 1".into());
    }
    let folder = std::env::current_exe()?.with_file_name("bench-heat");
    let code = Loop::new(&folder)?;
    let (backend, info) = devices::find("host", &[])?;
    println!("{}, {threads} threads; C: {} with {}\n", info.name, code.compiler, c::FLAGS.join(" "));
    let mut rows = Vec::new();
    for &n in &options.n {
        for &set in &sets {
            let wish = OpenOptions { threads: Some(threads), instruction_set: Some(set), ..OpenOptions::default() };
            let copier = backend.open(info.ordinal, &wish)?;
            rows.push(Row::measure(n, set, threads, options.reps, &code, &*copier, &cpus)?);
        }
    }
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    print!("{}", markdown(&HEAD, &cells));
    if let Some(file) = &options.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        let all = json!({ "cpu": info.name, "compiler": code.compiler, "flags": c::FLAGS, "rows": rows });
        std::fs::write(file, format!("{all:#}\n")).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    for row in rows.iter().filter(|row| !row.bits_equal) {
        eprintln!("n = {}, {}: the results differ from those of the C loop", row.n, row.set);
    }
    Ok(rows.iter().all(|row| row.bits_equal))
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

/// All that was measured of one grid with one instruction set.
struct Row {
    n: usize,
    set: InstructionSet,
    threads: usize,
    steps: u64,
    bits_equal: bool,
    repetitions: Vec<Repetition>,
}

const HEAD: [&str; 10] = [
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
    fn measure(
        n: usize,
        set: InstructionSet,
        threads: usize,
        repetitions: usize,
        code: &Loop,
        copier: &dyn Device,
        cpus: &[usize],
    ) -> Outcome<Self> {
        let points = (n - 2).pow(3) as f64;
        let steps = (POINTS_PER_REPETITION / points).ceil().max(1.0) as u64;
        let sim = Simulation::on([n; 3]).devices("host").threads(threads).instruction_set(set);
        let sim = sim.measure_bandwidth(false).build()?;
        let fields = fields(&sim, n)?;
        let [u, f, kappa] = &fields;
        let step = sim.step(|s| s.update(u, heat(u, f, kappa, BETA)))?;
        let mut plain = code.heat(n, threads, BETA).ok_or("there isn't enough memory for the fields of the C loop")?;
        for (number, field) in fields.iter().enumerate() {
            plain.fill(number, field.read()?.as_slice().ok_or("the values of a field aren't in order")?);
        }
        // Both go the same way, so that their results can be compared at the end. The first time counts for neither.
        plain.run(steps);
        sim.run(&step, steps)?;
        let mut row = Self { n, set, threads, steps, bits_equal: true, repetitions: Vec::new() };
        while row.repetitions.len() < repetitions {
            for tries in 1..=MOST_TRIES {
                let ping_pong_ns = ping_pong(cpus).map(|time| time.as_nanos() as f64);
                let copy_bandwidth = bandwidth::measure(copier)?;
                let meter = Meter::start();
                plain.run(steps);
                let c_seconds = meter.seconds();
                let report = sim.run(&step, steps)?;
                let by_others = meter.by_others();
                if by_others <= MOST_BY_OTHERS || tries == MOST_TRIES {
                    row.repetitions.push(Repetition {
                        ping_pong_ns,
                        copy_bandwidth,
                        c_points_per_second: points * steps as f64 / c_seconds,
                        points_per_second: report.points_per_second(),
                        by_others,
                    });
                    break;
                }
            }
        }
        let found = u.read()?;
        row.bits_equal = found.iter().map(|value| value.to_bits()).eq(plain.solution().iter().map(|v| v.to_bits()));
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
        let effective = |rep: &Repetition| BYTES_PER_POINT * rep.points_per_second;
        let disturbed = self.repetitions.iter().filter(|rep| rep.by_others > MOST_BY_OTHERS).count();
        vec![
            self.n.to_string(),
            self.set.to_string(),
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
            "n": self.n,
            "instruction_set": self.set.to_string(),
            "threads": self.threads,
            "steps": self.steps,
            "bits_equal": self.bits_equal,
            "repetitions": self.repetitions.iter().map(repetition).collect::<Vec<_>>(),
        })
    }
}

/// u, f and kappa of the example `heat`.
fn fields(sim: &Simulation, n: usize) -> Outcome<[Field<f64>; 3]> {
    let h = 1.0 / (n - 1) as f64;
    let dt = h * h / (12.0 * 0.95);
    let table = |wave: fn(f64) -> f64| (0..n).map(|index| wave(PI * index as f64 * h)).collect::<Vec<_>>();
    let (sine, cosine) = (table(f64::sin), table(f64::cos));
    let product = |table: &[f64], point: Point| {
        [point.i, point.j, point.k].into_iter().map(|index| table[index as usize]).product::<f64>()
    };
    let on_boundary = |point: Point| {
        let at_end = |index: i32| index == 0 || index as usize == n - 1;
        at_end(point.i) || at_end(point.j) || at_end(point.k)
    };
    let initial = |point: Point| if on_boundary(point) { 0.0 } else { product(&sine, point) };
    Ok([
        sim.field_from("u", initial)?,
        sim.field_from("f", |point: Point| dt * (1.0 + product(&cosine, point)))?,
        sim.field_from("kappa", |point: Point| 0.5 + 0.45 * product(&sine, point))?,
    ])
}
