//! Burgers' equation for three velocities, du/dt + (u . grad) u = nu laplacian(u), with upwind differences and time steps as
//! long as the fastest point allows.
//!
//! A maximum over the grid gives the speed of that point, a closure on the host the time step, and the next stage takes it: the
//! program of the devices is not stopped for that. The lid of the box moves to and fro as a function of the time, which is
//! the sum of all steps so far. The picture is u in a vertical plane, after fronts have formed; the lid is its upper edge.
//!
//! `cargo run --release --example burgers`

mod common;
#[path = "kernels/burgers.rs"]
mod kernel;

use std::f64::consts::PI;
use std::process::ExitCode;

use clap::Parser;
use common::{Cells, Outcome, Pass, RunOptions, positive};
use kernel::{burgers, fastest, lid};
use polyhalo::prelude::*;

/// Solve Burgers' equation in a box with a moving lid.
#[derive(Parser)]
struct Options {
    /// Points along each axis: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "96")]
    n: Cells,
    /// Time steps.
    #[arg(long, value_name = "S", default_value_t = 180)]
    steps: u64,
    /// The viscosity.
    #[arg(long, value_name = "NU", default_value_t = 0.0005, value_parser = positive::<f64>)]
    nu: f64,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("burgers", options.steps, |pass| solve(options.n, options.nu, pass))
}

/// The part of the longest stable time step that is taken.
const COURANT: f64 = 0.4;

fn solve(n: Cells, nu: f64, pass: &Pass<'_>) -> Result<Outcome> {
    let h = n.spacing();
    let at = |Point { i, j, k }| [i, j, k].map(|index| PI * (f64::from(index) * h));

    let sim = pass.build(Simulation::on(n.0).spacing([h; 3]))?;
    let u = sim.field_from("u", |point| {
        let [x, y, z] = at(point);
        if n.on_boundary(point) { 0.0 } else { (2.0 * x).sin() * y.sin() * (2.0 * z).cos() }
    })?;
    let v = sim.field::<f64>("v")?;
    let w = sim.field_from("w", |point| {
        let [x, y, z] = at(point);
        if n.on_boundary(point) { 0.0 } else { 0.5 * x.sin() * y.sin() * z.sin() }
    })?;
    let velocity = [u, v, w];
    let time = sim.scalar("time", 0.0)?;
    let (step, steps) = sim.step_with(|s| {
        let fastest = s.reduce(fastest(&velocity, h, h, h));
        let dt = s.compute(&fastest, move |fastest| COURANT / (fastest + 6.0 * nu / (h * h)));
        s.update(&velocity, burgers(&velocity, h, h, h, nu, &dt));
        s.assign(&time, (&time, &dt), |(time, dt)| time + dt);
        let speed = s.compute(&time, |time| (4.0 * PI * time).sin());
        s.update(&velocity[0], lid(speed).over(Range::face(Z)));
        s.record(&dt)
    })?;
    let report = pass.start(&sim, &step).finish()?;

    let dt = steps.values()?;
    let (least, most) = dt.iter().fold((f64::MAX, 0.0_f64), |(least, most), &dt| (least.min(dt), most.max(dt)));
    let said = match dt.is_empty() {
        true => "no time step was taken".to_owned(),
        false => format!("time {:.4} reached in steps from {least:.3e} to {most:.3e}", time.get()?),
    };
    let [u, v, w] = &velocity;
    let picture = Picture::of(Plane::Y(n.middle()[1])).map(ColourMap::Diverging).range(-1.0, 1.0);
    Ok(Outcome::new(report, u, picture).with([v, w]).series("dt", dt).line(said))
}
