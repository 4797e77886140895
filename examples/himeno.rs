//! Himeno's benchmark (RIKEN): point-Jacobi iterations for a pressure equation in curvilinear coordinates, 19 points, 14 fields.
//!
//! The inputs are the published ones: all coefficients constant, p = i^2/(imax-1)^2 along the benchmark's first axis, which is
//! Z here. One kernel gives the new pressure and folds the squares of the residual into `gosa`. For the published
//! size (64x64x128, so `--n 128,64,64` here) and 64 iterations, the last gosa must be 2.395185e-3 within a thousandth (the
//! benchmark adds it up in single precision); otherwise the exit code is 1. The picture is p in a plane through Z: a front that moves in from above.
//!
//! `cargo run --release --example himeno`

mod common;
#[path = "kernels/himeno.rs"]
mod kernel;

use std::process::ExitCode;

use clap::Parser;
use common::{Cells, Outcome, Pass, RunOptions};
use kernel::himeno;
use polyhalo::prelude::*;

/// Run Himeno's benchmark.
#[derive(Parser)]
struct Options {
    /// Points along each axis: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "128,64,64")]
    n: Cells,
    /// Iterations.
    #[arg(long, value_name = "S", default_value_t = 64)]
    steps: u64,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("himeno", options.steps, |pass| solve(options.n, pass))
}

/// The grid, the iterations and the last gosa that were published.
const PUBLISHED: ([usize; 3], u64, f64) = ([128, 64, 64], 64, 2.395185e-3);
/// The floating-point operations that the benchmark counts for a point.
const FLOPS: f64 = 34.0;

fn solve(n: Cells, pass: &Pass<'_>) -> Result<Outcome> {
    let last = n.0[2].max(2) - 1;

    let sim = pass.build(Simulation::on(n.0))?;
    let constant = |name, value: f32| sim.field_from(name, move |_: Point| value);
    let p = sim.field_from("p", |at: Point| (f64::from(at.k).powi(2) / (last * last) as f64) as f32)?;
    let a = [constant("a0", 1.0)?, constant("a1", 1.0)?, constant("a2", 1.0)?, constant("a3", 1.0 / 6.0)?];
    let b = [constant("b0", 0.0)?, constant("b1", 0.0)?, constant("b2", 0.0)?];
    let c = [constant("c0", 1.0)?, constant("c1", 1.0)?, constant("c2", 1.0)?];
    let (bnd, wrk) = (constant("bnd", 1.0)?, constant("wrk", 0.0)?);
    let gosa = sim.scalar("gosa", 0.0)?;
    let (step, gosas) = sim.step_with(|s| {
        s.update((&p, &gosa), himeno(&p, &a, &b, &c, &bnd, &wrk, 0.8));
        s.record(&gosa)
    })?;
    let report = pass.start(&sim, &step).finish()?;

    let (grid, iterations, published) = PUBLISHED;
    let found = gosa.get()?;
    let is_published_size = report.grid == grid && report.steps == iterations;
    let agrees = (found / published - 1.0).abs() <= 1e-3;
    let verdict = match (is_published_size, agrees) {
        (true, true) => format!(", {published:e} was published"),
        (true, false) => format!(", but {published:e} was published: this is WRONG"),
        (false, _) => String::new(),
    };
    let said = format!("gosa {found:.6e}{verdict}; {:.2} Gflop/s", FLOPS * report.points_per_second() / 1e9);
    let outcome = Outcome::new(report, &p, Plane::Y(n.middle()[1])).series("gosa", gosas.values()?).line(said);
    Ok(outcome.check(!is_published_size || agrees))
}
