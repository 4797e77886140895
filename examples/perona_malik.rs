//! Anisotropic diffusion (Perona and Malik 1990), du/dt = div(exp(-|grad u|^2/kappa^2) grad u): noise is smoothed away, edges
//! stay sharp.
//!
//! Explicit steps with the flow from each of six neighbours, and no flow through the faces (`Boundary::Clamp`). The volume is
//! made up: a bright ball, a dark one and a bar, all of them noisy. There are two pictures, `perona_malik-before.png` and
//! `perona_malik.png`, with the same colours for the same values.
//!
//! `cargo run --release --example perona_malik`

mod common;
#[path = "kernels/perona_malik.rs"]
mod kernel;

use std::process::ExitCode;

use clap::Parser;
use common::noise::noise;
use common::{Cells, Outcome, Pass, RunOptions, positive};
use kernel::perona_malik;
use polyhalo::prelude::*;

/// Smooth a noisy volume and keep its edges.
#[derive(Parser)]
struct Options {
    /// Points along each axis: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "96")]
    n: Cells,
    /// Steps: the more, the smoother.
    #[arg(long, value_name = "S", default_value_t = 20)]
    steps: u64,
    /// The difference between neighbours from which on it is an edge.
    #[arg(long, value_name = "K", default_value_t = 25.0, value_parser = positive::<f32>)]
    kappa: f32,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("perona_malik", options.steps, |pass| solve(options.n, options.kappa, pass))
}

/// The volume without noise; x, y and z run from 0 to 1.
fn shapes([x, y, z]: [f64; 3]) -> f64 {
    let in_ball =
        |at: [f64; 3], radius: f64| (x - at[0]).powi(2) + (y - at[1]).powi(2) + (z - at[2]).powi(2) < radius * radius;
    let in_bar = (0.68..0.86).contains(&x) && (0.12..0.88).contains(&y);
    match () {
        _ if in_ball([0.36, 0.64, 0.5], 0.24) => 200.0,
        _ if in_ball([0.34, 0.22, 0.5], 0.14) => 40.0,
        _ if in_bar => 160.0,
        _ => 100.0,
    }
}

fn solve(n: Cells, kappa: f32, pass: &Pass<'_>) -> Result<Outcome> {
    let h = n.spacing();
    let picture = Picture::of(Plane::Z(n.middle()[2])).range(0.0, 240.0);

    let sim = pass.build(Simulation::on(n.0).spacing([h; 3]))?;
    let u = sim.field_from("u", |at: Point| {
        let clean = shapes([at.i, at.j, at.k].map(|index| f64::from(index) * h));
        (clean + 50.0 * (noise(1, at) - 0.5)) as f32
    })?;
    u.boundary(FACES, Boundary::Clamp)?;
    let step = sim.step(|s| s.update(&u, perona_malik(&u, kappa, 0.1)))?;
    pass.another_picture(&u, picture, "before")?;
    let report = pass.start(&sim, &step).finish()?;
    Ok(Outcome::new(report, &u, picture))
}
