//! Random steps, kernels and texts for as long as wished; the tests run the same for a moment.
//!
//! `cargo run --release -p polyhalo-tests --bin fuzz -- --minutes 10 --seed 1 --devices host,pocl,host:3,drawn` stops at the first
//! failure, with the seed of it and the smallest part that shows it.

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use polyhalo::Exchange;
use polyhalo_codegen::random::{Limits, kernel};
use polyhalo_tests::agreement::{check_host, check_opencl};
use polyhalo_tests::soup;
use polyhalo_tests::steps::check;
use polyhalo_tests::steps::device::{self, Device, STRATEGIES};

/// Random steps, kernels and texts until the time is over or something is wrong.
#[derive(Parser)]
struct Options {
    /// How long, in minutes.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The seed of the first round; each round takes the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The devices for steps: reference, host (with 1, 2 and 5 threads), pocl, intel, or any that polyhalo knows, such as
    /// host:3 or opencl:NAME+host; `drawn` and `drawn-opencl` are others for each story, several in most.
    #[arg(long, value_delimiter = ',', default_value = "reference,host,pocl,intel,drawn,drawn-opencl")]
    devices: Vec<String>,
    /// How devices that were named exchange halos, one after the other from story to story; all strategies if not given.
    #[arg(long, value_delimiter = ',')]
    exchange: Vec<Exchange>,
    /// What is random: steps, kernels, texts.
    #[arg(long, value_delimiter = ',', default_value = "steps,kernels,texts")]
    what: Vec<String>,
    /// Only this many rounds, for a failure that is known.
    #[arg(long)]
    rounds: Option<u64>,
}

/// Kernels are compiled together, which takes a while: so many, once in so many rounds.
const KERNELS: u64 = 12;
const ROUNDS_FOR_KERNELS: u64 = 60;
/// Texts in a round.
const TEXTS: u64 = 20;

/// The devices with these names, and for each kind of drawn ones the terms that they are drawn from.
fn devices(names: &[String]) -> Result<(Vec<Device>, Vec<Vec<String>>), String> {
    let (mut devices, mut drawn) = (Vec::new(), Vec::new());
    for name in names {
        match name.as_str() {
            "reference" => devices.extend(device::devices().into_iter().take(1)),
            "host" => devices.extend(device::devices().into_iter().skip(1)),
            "pocl" => devices.extend(device::opencl("pocl", "portable")),
            "intel" => devices.extend(device::opencl("intel", "intel")),
            "drawn" => drawn.push(Vec::new()),
            "drawn-opencl" => drawn.extend(Some(device::opencl_terms()).filter(|terms| !terms.is_empty())),
            other => devices.push(Device::find(other)?),
        }
    }
    Ok((devices, drawn))
}

/// The devices with the strategy of a round.
fn with_exchange(devices: &[Device], strategies: &[Exchange], seed: u64) -> Vec<Device> {
    let strategy = strategies[(seed % strategies.len() as u64) as usize];
    devices.iter().cloned().map(|device| device.exchange(strategy)).collect()
}

fn main() -> ExitCode {
    let options = Options::parse();
    let (devices, drawn) = match devices(&options.devices) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let strategies = if options.exchange.is_empty() { STRATEGIES.to_vec() } else { options.exchange.clone() };
    let chosen = |what: &str| options.what.iter().any(|chosen| chosen == what);
    let kernels = soup::kernels();
    let (start, limit) = (Instant::now(), Duration::from_secs_f64(60.0 * options.minutes.clamp(0.0, 1e6)));
    let mut round = 0;
    while options.rounds.map_or(start.elapsed() < limit, |rounds| round < rounds) {
        let seed = options.seed.wrapping_add(round);
        let outcome = catch_unwind(|| {
            if chosen("steps") {
                check::check(seed, &with_exchange(&devices, &strategies, seed));
                drawn.iter().for_each(|terms| check::check_drawn(seed, terms));
            }
            if chosen("texts") {
                for text in 0..TEXTS {
                    soup::check(seed.wrapping_mul(TEXTS).wrapping_add(text), &kernels);
                }
            }
            if chosen("kernels") && round % ROUNDS_FOR_KERNELS == 0 {
                let seeds = (0..KERNELS).map(|number| seed.wrapping_mul(KERNELS).wrapping_add(number));
                let kernels: Vec<_> =
                    seeds.map(|seed| kernel(&format!("random_{seed}"), seed, Limits::default())).collect();
                check_host(&kernels);
                check_opencl(&kernels);
            }
        });
        if outcome.is_err() {
            // The panic has said what is wrong.
            eprintln!("failed in round {round}: --seed {seed} --rounds 1 shows it again");
            return ExitCode::FAILURE;
        }
        round += 1;
    }
    println!("{round} rounds from seed {} in {:.0} s: nothing is wrong", options.seed, start.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
