//! A 3-D automaton, a relative of Conway's Life: a cell with 6 or 7 of its 26 neighbours alive comes to life, one with 4 to 9
//! lives on and ages, others die.
//!
//! Whole numbers only: each cell holds its age, periodic in all directions. A sum over the grid counts the living after each
//! step, and is recorded. The picture is a plane of ages at the end; `--json` gives the population of every step.
//!
//! `cargo run --release --example automaton`

mod common;
#[path = "kernels/automaton.rs"]
mod kernel;

use std::process::ExitCode;

use clap::Parser;
use common::noise::noise;
use common::{Cells, Outcome, Pass, RunOptions};
use kernel::{life, population};
use polyhalo::prelude::*;

/// Let cells live, age and die.
#[derive(Parser)]
struct Options {
    /// Points along each axis: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "128")]
    n: Cells,
    /// Generations.
    #[arg(long, value_name = "S", default_value_t = 100)]
    steps: u64,
    /// The part of the cells that live at first.
    #[arg(long, value_name = "PART", default_value_t = 0.2)]
    living: f64,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("automaton", options.steps, |pass| solve(options.n, options.living, pass))
}

fn solve(n: Cells, living: f64, pass: &Pass<'_>) -> Result<Outcome> {
    let sim = pass.build(Simulation::on(n.0))?;
    let age = sim.field_from("age", |at| i32::from(noise(1, at) < living))?;
    age.boundary(FACES, Boundary::Periodic)?;
    let (step, populations) = sim.step_with(|s| {
        s.update(&age, life(&age));
        let population = s.reduce(population(&age));
        s.record(&population)
    })?;
    let report = pass.start(&sim, &step).finish()?;

    let populations = populations.values()?;
    // About ten of them.
    let shown: Vec<_> = populations.iter().step_by(populations.len().div_ceil(10).max(1)).map(i64::to_string).collect();
    let said = format!("population over time: {}", shown.join(", "));
    let series = populations.into_iter().map(|living| living as f64).collect();
    Ok(Outcome::new(report, &age, Plane::Z(n.middle()[2])).series("population", series).line(said))
}
