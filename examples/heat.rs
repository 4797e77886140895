//! The 3-D heat equation with variable conductivity, du/dt = div(kappa grad u) + f, in conservative 7-point form.
//!
//! The scheme, the initial values and the fixed boundary are those of the paper that this project started from:
//! h = 1/(n-1), dt = h^2 / (12 * 0.95), kappa = 0.5 + 0.45 sin(pi x) sin(pi y) sin(pi z), f = 1 + cos(pi x) cos(pi y)
//! cos(pi z), u = sin(pi x) sin(pi y) sin(pi z), exactly 0 on the boundary.
//!
//! `cargo run --release --example heat -- --help` lists the options.

mod common;

use std::f64::consts::PI;
use std::process::ExitCode;

use clap::Parser;
use common::{Cells, RunOptions, add_verification, difference, exit, print_line, progress_bar, sum};
use polyhalo::prelude::*;
use serde_json::json;

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
    #[command(flatten)]
    run: RunOptions,
}

/// The discrete problem on a grid.
struct Problem {
    n: [usize; 3],
    /// The grid spacing, that of the longest axis.
    h: f64,
    dt: f64,
    beta: f64,
}

const KAPPA_MAX: f64 = 0.95;

impl Problem {
    fn new(n: [usize; 3]) -> Problem {
        let h = 1.0 / (n.into_iter().max().unwrap_or(2).max(2) - 1) as f64;
        let dt = h * h / (12.0 * KAPPA_MAX);
        Problem { n, h, dt, beta: dt / h / h / 2.0 }
    }

    fn position(&self, point: Point) -> [f64; 3] {
        [point.i, point.j, point.k].map(|index| PI * (f64::from(index) * self.h))
    }

    fn product(&self, point: Point, wave: fn(f64) -> f64) -> f64 {
        let [x, y, z] = self.position(point);
        wave(x) * wave(y) * wave(z)
    }

    fn initial(&self, point: Point) -> f64 {
        let index = [point.i, point.j, point.k];
        let on_boundary = index.iter().zip(self.n).any(|(&index, n)| index == 0 || index as usize + 1 == n);
        if on_boundary { 0.0 } else { self.product(point, f64::sin) }
    }

    fn source(&self, point: Point) -> f64 {
        self.dt * (1.0 + self.product(point, f64::cos))
    }

    fn conductivity(&self, point: Point) -> f64 {
        0.5 + 0.45 * self.product(point, f64::sin)
    }

    /// Runs `steps` steps on `devices`; gives the report and the solution.
    fn solve(&self, devices: &str, options: &RunOptions, steps: u64) -> Result<(Report, Field<f64>)> {
        let sim = options.simulation(self.n, devices)?;
        let u = sim.field_from("u", |point: Point| self.initial(point))?;
        let kappa = sim.field_from("kappa", |point: Point| self.conductivity(point))?;
        let f = sim.field_from("f", |point: Point| self.source(point))?;
        let step = sim.step(|s| s.update(&u, heat(&u, &f, &kappa, self.beta)))?;
        let bar = progress_bar(steps);
        let report = sim.run_with(&step, steps, |progress| {
            bar.set_position(progress.done);
            std::ops::ControlFlow::Continue(())
        })?;
        bar.finish_and_clear();
        Ok((report, u))
    }
}

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

/// Whether the result is right, as far as it was asked to be verified.
fn run(options: &Options) -> Result<bool> {
    let problem = Problem::new(options.n.0);
    let steps = options.run.steps.unwrap_or(100);
    let (report, u) = problem.solve(&options.run.devices, &options.run, steps)?;
    let values = u.read()?;
    let verified = match options.run.verify {
        true => {
            let (_, reference) = problem.solve("reference", &options.run, steps)?;
            Some(difference(values.iter(), reference.read()?.iter()))
        }
        false => None,
    };
    let [nx, ny, nz] = problem.n;
    let picture = options.run.save(&u, Plane::Z(nz / 2), "heat.png")?;
    if options.run.json {
        let mut object = options.run.json_of(&report);
        object["sum"] = json!(sum(values.iter()));
        object["center"] = json!(values[[nz / 2, ny / 2, nx / 2]]);
        print_line(&add_verification(object, verified))?;
    } else {
        print_line(&report)?;
        if let Some(verified) = verified {
            print_line(&verified)?;
        }
        if let Some(picture) = picture {
            print_line(&format_args!("middle plane in {}", picture.display()))?;
        }
    }
    Ok(verified.is_none_or(|verified| verified.close))
}
