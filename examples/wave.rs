//! Acoustic waves in two layers of rock, d2p/dt2 = c^2 laplacian(p) + s, of 8th order in space and 2nd in time.
//!
//! A source near the top, a Ricker wavelet, injects pressure at a point. The update writes the new pressure over the one
//! before the last, and a swap makes it the present one: no value is copied. Sponges along X, Y and Z, fields of one axis
//! each, absorb what leaves (Cerjan and others, 1985). The picture is a vertical plane: the wave is shorter in the slow upper
//! layer, and part of it comes back from the boundary between the two.
//!
//! `cargo run --release --example wave`; `--receivers FILE.npy` saves what a line of receivers at the height of the source
//! hears, in an array (steps, receivers), and `--snapshots FOLDER` writes the whole field every so many steps, for ParaView.

mod common;
#[path = "kernels/wave.rs"]
mod kernel;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use common::ricker::ricker;
use common::{Cells, Outcome, Pass, RunOptions, make_folder};
use kernel::wave;
use polyhalo::prelude::*;

/// Propagate acoustic waves from a point source.
#[derive(Parser)]
struct Options {
    /// Points along each axis, 10 m apart: N, or NX,NY,NZ.
    #[arg(long, value_name = "N", default_value = "128")]
    n: Cells,
    /// Time steps.
    #[arg(long, value_name = "S", default_value_t = 230)]
    steps: u64,
    /// Write what the receivers hear as a NumPy array with axes (step, x).
    #[arg(long, value_name = "FILE.npy")]
    receivers: Option<PathBuf>,
    /// Write the pressure into this folder, in files that ParaView opens; it is made if need be.
    #[arg(long, value_name = "FOLDER")]
    snapshots: Option<PathBuf>,
    /// Steps from one snapshot to the next.
    #[arg(long, value_name = "K", default_value_t = 20)]
    every: u64,
    #[command(flatten)]
    run: RunOptions,
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.run.example("wave", options.steps, |pass| solve(&options, pass))
}

/// The distance between points, in metres.
const H: f64 = 10.0;
/// The speeds of sound in the lower and the upper layer, in metres per second.
const SPEED: [f64; 2] = [2600.0, 1600.0];
/// The time step, in seconds: a little less than the scheme allows, c dt/h < 0.453.
const DT: f64 = 0.44 * H / SPEED[0];
/// The peak frequency of the source, in hertz.
const FREQUENCY: f64 = 15.0;

/// The factor on values at a distance from the nearest end of an axis, 1 from 20 cells on.
fn sponge(index: i32, cells: usize) -> f32 {
    let depth = (20 - index.min(cells as i32 - 1 - index)).max(0);
    (-(0.015 * f64::from(depth)).powi(2)).exp() as f32
}

fn solve(options: &Options, pass: &Pass<'_>) -> Result<Outcome> {
    let [nx, ny, nz] = options.n.0;
    let top = 3 * nz / 4;

    let sim = pass.build(Simulation::on([nx, ny, nz]).spacing([H; 3]))?;
    let p = sim.field::<f32>("p")?;
    let old = sim.field::<f32>("old")?;
    let v = sim.field_from("v", |at: Point| {
        let speed = SPEED[usize::from(at.k as usize >= nz / 2)];
        (speed * DT / H).powi(2) as f32
    })?;
    let sponge_x = sim.field_x("sponge x", |at: Point| sponge(at.i, nx))?;
    let sponge_y = sim.field_y("sponge y", |at: Point| sponge(at.j, ny))?;
    let sponge_z = sim.field_z("sponge z", |at: Point| sponge(at.k, nz))?;
    let (step, receivers) = sim.step_with(|s| {
        s.update(&old, wave(&p, &old, &v, &sponge_x, &sponge_y, &sponge_z));
        let source = s.each_step(|n| ricker(FREQUENCY, n as f64 * DT) as f32);
        s.inject(&old, [nx / 2, ny / 2, top], source);
        s.swap(&p, &old);
        s.probe(&p, (0..nx).map(|x| [x, ny / 2, top]).collect::<Vec<_>>())
    })?;

    let mut run = pass.start(&sim, &step);
    if let Some(folder) = options.snapshots.as_deref().filter(|_| !pass.is_check) {
        make_folder(folder)?;
        run = run.every(options.every, |progress| snapshot(folder, progress.done, &sim, &p));
    }
    let report = run.finish()?;
    if let Some(file) = options.receivers.as_ref().filter(|_| !pass.is_check) {
        receivers.save(file)?;
    }
    let heard = receivers.read()?.into_iter().map(f64::from).collect();
    let picture = Picture::of(Plane::Y(ny / 2)).map(ColourMap::Diverging).range(-0.04, 0.04);
    Ok(Outcome::new(report, &p, picture).with([&old]).series("receivers", heard))
}

fn snapshot(folder: &Path, step: u64, sim: &Simulation, p: &Field<f32>) -> Result<()> {
    sim.save_vti(folder.join(format!("p-{step:06}.vti")), &[p])
}
