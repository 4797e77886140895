//! Gray-Scott (Pearson 1993): two substances that react and diffuse and grow into patterns,
//! du/dt = Du laplacian(u) - u v^2 + F (1 - u), dv/dt = Dv laplacian(v) + u v^2 - (F + k) v.
//!
//! A 7-point Laplacian, explicit Euler steps, periodic in all directions; both fields are updated by one kernel. At first v is
//! there in a few small cubes of noise only. The picture is v in the middle plane; other values of `--feed` and `--kill`
//! give spots, worms or nothing at all.
//!
//! `cargo run --release --example gray_scott`; with `--checkpoint FILE` a run that ends, by itself or by Ctrl-C, can be
//! continued with `--restore FILE`, bit for bit, on the same or other devices.

mod common;
#[path = "kernels/gray_scott.rs"]
mod kernel;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use common::noise::noise;
use common::{Cells, Outcome, Pass, RunOptions};
use kernel::gray_scott;
use polyhalo::prelude::*;

/// Grow patterns from two substances that react and diffuse.
#[derive(Parser)]
struct Options {
    /// Points along each axis: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "64")]
    n: Cells,
    /// Time steps, of length 1.
    #[arg(long, value_name = "S", default_value_t = 2000)]
    steps: u64,
    /// F: how fast u is fed in and everything is washed out.
    #[arg(long, value_name = "F", default_value_t = 0.03)]
    feed: f64,
    /// k: how fast v decays.
    #[arg(long, value_name = "K", default_value_t = 0.06)]
    kill: f64,
    /// Write the state to this file every 500 steps and at the end, also when Ctrl-C ends the run.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from the state in this file.
    #[arg(long, value_name = "FILE")]
    restore: Option<PathBuf>,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("gray_scott", options.steps, |pass| solve(&options, pass))
}

fn solve(options: &Options, pass: &Pass<'_>) -> Result<Outcome> {
    let n = options.n;
    // About one cube of 4x4x4 cells in ten holds v.
    let is_seed = |Point { i, j, k }| noise(1, Point { i: i / 4, j: j / 4, k: k / 4 }) < 0.1;

    let sim = pass.build(Simulation::on(n.0))?;
    let u = sim.field_from("u", |at| if is_seed(at) { 0.5 } else { 1.0 })?;
    let v = sim.field_from("v", |at| if is_seed(at) { 0.25 + 0.1 * noise(2, at) } else { 0.0 })?;
    u.boundary(FACES, Boundary::Periodic)?;
    v.boundary(FACES, Boundary::Periodic)?;
    let step = sim.step(|s| s.update((&u, &v), gray_scott(&u, &v, options.feed, options.kill, 1.0)))?;

    if let Some(file) = &options.restore {
        sim.restore(file)?;
    }
    let mut run = pass.start(&sim, &step);
    if let Some(file) = options.checkpoint.as_ref().filter(|_| !pass.is_check) {
        Interrupt::install()?;
        run = run.checkpoint(file, 500);
    }
    let report = run.finish()?;
    Ok(Outcome::new(report, &v, Picture::of(Plane::Z(n.middle()[2])).range(0.0, 0.4)).with([&u]))
}
