//! Poisson's equation, laplacian(u) = f with u = 0 on the boundary, by red-black successive over-relaxation.
//!
//! A sweep updates the red points (indices with an even sum) from black ones and then the black points from red ones, in
//! place. The relaxation factor is the best one for a cube, 2 / (1 + sin(pi h)). Every tenth sweep the program looks at the
//! largest residual, and stops when it is small enough. The source is a pair of opposite charges, of density 1 at most; the
//! picture is u in the plane of both.
//!
//! `cargo run --release --example poisson`

mod common;
#[path = "kernels/poisson.rs"]
mod kernel;

use std::f64::consts::PI;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Parser;
use common::{Cells, Outcome, Pass, RunOptions, positive};
use kernel::{relax, residual};
use polyhalo::prelude::*;

/// Solve Poisson's equation for two opposite charges.
#[derive(Parser)]
struct Options {
    /// Points along each axis: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "96")]
    n: Cells,
    /// Sweeps at most.
    #[arg(long, value_name = "S", default_value_t = 1000)]
    steps: u64,
    /// The largest residual that is small enough.
    #[arg(long, value_name = "R", default_value_t = 1e-6, value_parser = positive::<f64>)]
    tolerance: f64,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("poisson", options.steps, |pass| solve(options.n, options.tolerance, pass))
}

fn solve(n: Cells, tolerance: f64, pass: &Pass<'_>) -> Result<Outcome> {
    let h = n.spacing();
    let r = 1.0 / (h * h);
    let omega = 2.0 / (1.0 + (PI * h).sin());
    let charge = |point: Point, at: [f64; 3]| {
        let apart = [point.i, point.j, point.k].into_iter().zip(at).map(|(index, at)| f64::from(index) * h - at);
        (-apart.map(|apart| apart * apart).sum::<f64>() / 0.005).exp()
    };

    let sim = pass.build(Simulation::on(n.0).spacing([h; 3]))?;
    let u = sim.field::<f64>("u")?;
    let f = sim.field_from("f", |at| charge(at, [0.3, 0.4, 0.5]) - charge(at, [0.7, 0.6, 0.5]))?;
    let (step, (last, residuals)) = sim.step_with(|s| {
        s.update(&u, relax(&u, &f, r, r, r, omega).over(Range::widest().red()));
        s.update(&u, relax(&u, &f, r, r, r, omega).over(Range::widest().black()));
        let (_, largest) = s.reduce(residual(&u, &f, r, r, r));
        let record = s.record(&largest);
        (largest, record)
    })?;
    let is_solved =
        |residual: f64| if residual <= tolerance { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let run = pass.start(&sim, &step).every(10, |_| last.get().map(is_solved));
    let report = run.finish()?;

    let residuals = residuals.values()?;
    let said = match residuals.last() {
        None => "no sweep was done".to_owned(),
        Some(last) if *last <= tolerance => format!("largest residual {last:.2e} after {} sweeps", report.steps),
        Some(last) => {
            format!("largest residual {last:.2e}: not solved yet, it takes more than {} sweeps", report.steps)
        }
    };
    let picture = Picture::of(Plane::Z(n.middle()[2])).map(ColourMap::Diverging);
    Ok(Outcome::new(report, &u, picture).series("residual", residuals).line(said))
}
