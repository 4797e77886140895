//! Elastic waves from an explosion, in velocity and stress on a staggered grid (Virieux 1986), of 4th order in space:
//! rho dv/dt = div(sigma), d(sigma)/dt = lambda div(v) + mu (grad v + transposed).
//!
//! Nine fields: three velocities, updated from six stresses, which are then updated from the new velocities. An explosion
//! adds the same amount to the three normal stresses, so it sends out pressure waves only; where these meet the softer layer
//! on top, shear waves, which are slower, split off. The picture is the vertical velocity in a vertical plane.
//!
//! `cargo run --release --example elastic`

mod common;
#[path = "kernels/elastic.rs"]
mod kernel;

use std::process::ExitCode;

use clap::Parser;
use common::ricker::ricker;
use common::{Cells, Outcome, Pass, RunOptions};
use kernel::elastic::{stress, velocity};
use polyhalo::prelude::*;

/// Propagate elastic waves from an explosion.
#[derive(Parser)]
struct Options {
    /// Points along each axis, 10 m apart: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "96")]
    n: Cells,
    /// Time steps.
    #[arg(long, value_name = "S", default_value_t = 140)]
    steps: u64,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("elastic", options.steps, |pass| solve(options.n, pass))
}

/// The distance between points, in metres.
const H: f64 = 10.0;
/// The time step, in seconds: a little less than the scheme allows, dt < 6/7 h / (sqrt(3) vp).
const DT: f64 = 0.45 * H / ROCK.vp;
/// The peak frequency of the source, in hertz.
const FREQUENCY: f64 = 16.0;

/// A material: the speeds of pressure and shear waves in metres per second, the density in kilograms per cubic metre.
struct Material {
    vp: f64,
    vs: f64,
    rho: f64,
}

const ROCK: Material = Material { vp: 3500.0, vs: 2000.0, rho: 2300.0 };
const SEDIMENT: Material = Material { vp: 2200.0, vs: 1200.0, rho: 2000.0 };

impl Material {
    /// Lamé's second parameter, the shear modulus.
    fn mu(&self) -> f64 {
        self.rho * self.vs * self.vs
    }

    /// Lamé's first parameter.
    fn lambda(&self) -> f64 {
        self.rho * self.vp * self.vp - 2.0 * self.mu()
    }
}

fn solve(n: Cells, pass: &Pass<'_>) -> Result<Outcome> {
    let [_, middle, height] = n.middle();
    let material = |at: Point| if (at.k as usize) < 2 * n.0[2] / 3 { ROCK } else { SEDIMENT };

    let sim = pass.build(Simulation::on(n.0).spacing([H; 3]))?;
    let rho = sim.field_from("rho", |at| material(at).rho)?;
    let lambda = sim.field_from("lambda", |at| material(at).lambda())?;
    let mu = sim.field_from("mu", |at| material(at).mu())?;
    let zeros = |name| sim.field::<f64>(name);
    let v = [zeros("vx")?, zeros("vy")?, zeros("vz")?];
    let s = [zeros("sxx")?, zeros("syy")?, zeros("szz")?, zeros("sxy")?, zeros("sxz")?, zeros("syz")?];
    let step = sim.step(|stages| {
        stages.update(&v, velocity(&v, &s, &rho, DT / H));
        stages.update(&s, stress(&s, &v, &lambda, &mu, DT / H));
        let push = stages.each_step(|n| 1e6 * ricker(FREQUENCY, n as f64 * DT));
        for normal in &s[..3] {
            stages.inject(normal, [n.0[0] / 2, middle, height], &push);
        }
    })?;
    let report = pass.start(&sim, &step).finish()?;
    let picture = Picture::of(Plane::Y(middle)).map(ColourMap::Diverging);
    Ok(Outcome::new(report, &v[2], picture).with(&v[..2]).with(&s))
}
