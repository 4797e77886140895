//! The 3-D heat equation with variable conductivity, du/dt = div(kappa grad u) + f, in conservative 7-point form.
//!
//! The scheme, the initial values and the fixed boundary are those of the paper that this project started from:
//! h = 1/(n-1), dt = h^2 / (12 * 0.95), kappa = 0.5 + 0.45 sin(pi x) sin(pi y) sin(pi z), f = 1 + cos(pi x) cos(pi y)
//! cos(pi z), u = sin(pi x) sin(pi y) sin(pi z), exactly 0 on the boundary. The picture is the middle plane of u: warm in the
//! middle, with an edge that the source lifts in two corners.
//!
//! `cargo run --release --example heat -- --help` lists the options.

mod common;

use std::f64::consts::PI;
use std::process::ExitCode;

use clap::Parser;
use common::{Cells, Outcome, Pass, RunOptions};
use polyhalo::prelude::*;

/// One explicit Euler step; the time step is folded into `f` and `beta` = dt / (2 h^2).
#[stencil]
fn heat(u: &Field<f64>, f: &Field<f64>, kappa: &Field<f64>, beta: f64) -> f64 {
    let flux = |d: Offset| (kappa[d] + kappa[HERE]) * (u[d] - u[HERE]);
    u[HERE] + f[HERE] + beta * (flux(X) + flux(-X) + flux(Y) + flux(-Y) + flux(Z) + flux(-Z))
}

/// Solve the 3-D heat equation with variable conductivity.
#[derive(Parser)]
struct Options {
    /// Points along each axis: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "256")]
    n: Cells,
    /// Time steps.
    #[arg(long, value_name = "S", default_value_t = 100)]
    steps: u64,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("heat", options.steps, |pass| solve(options.n, pass))
}

const KAPPA_MAX: f64 = 0.95;

fn solve(n: Cells, pass: &Pass<'_>) -> Result<Outcome> {
    let h = n.spacing();
    let dt = h * h / (12.0 * KAPPA_MAX);
    let product = |wave: fn(f64) -> f64| {
        move |Point { i, j, k }| [i, j, k].map(|index| wave(PI * (f64::from(index) * h))).iter().product::<f64>()
    };
    let (sines, cosines) = (product(f64::sin), product(f64::cos));

    let sim = pass.build(Simulation::on(n.0).spacing([h; 3]))?;
    let u = sim.field_from("u", |point| if n.on_boundary(point) { 0.0 } else { sines(point) })?;
    let kappa = sim.field_from("kappa", |point| 0.5 + 0.45 * sines(point))?;
    let f = sim.field_from("f", |point| dt * (1.0 + cosines(point)))?;
    let step = sim.step(|s| s.update(&u, heat(&u, &f, &kappa, dt / h / h / 2.0)))?;
    let report = pass.start(&sim, &step).finish()?;
    Ok(Outcome::new(report, &u, Plane::Z(n.middle()[2])))
}
