//! What a step of the host device costs besides its update: filling ghost cells, and folding.
//!
//! `cargo run --release -p polyhalo-bench --bin parts -- --help` lists the options; `README.md` says what is measured.

use std::error::Error;
use std::time::Instant;

use clap::Parser;
use polyhalo::prelude::*;
use polyhalo_bench::kernels::gray_scott::gray_scott;
use polyhalo_bench::kernels::poisson::{relax, residual};
use polyhalo_bench::spread::Spread;
use polyhalo_bench::table::markdown;

/// Measure the parts of steps on the host device, on cubes.
#[derive(Parser)]
struct Options {
    /// Points along each axis.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128,256")]
    n: Vec<usize>,
    /// Threads; all CPUs that this process may use if not given.
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// Repetitions.
    #[arg(long, value_name = "R", default_value = "9")]
    reps: usize,
}

/// About how long a repetition takes.
const SECONDS: f64 = 0.1;

type Outcome<T> = std::result::Result<T, Box<dyn Error>>;

/// A simulation with a step, and what the step is.
type Variant = (&'static str, Simulation, Step);

fn main() -> Outcome<()> {
    let options = Options::parse();
    let mut rows = Vec::new();
    for &n in &options.n {
        let build = || {
            let builder = Simulation::on([n; 3]).devices("host").measure_bandwidth(false);
            options.threads.map_or(builder.clone(), |threads| builder.threads(threads)).build()
        };
        measure("gray_scott", n, options.reps, &gray_scotts(build)?, &mut rows)?;
        measure("relax", n, options.reps, &relaxations(build)?, &mut rows)?;
    }
    print!("{}", markdown(&["kernel", "n", "besides the update", "ms a step", "to the first"], &rows));
    Ok(())
}

/// Runs all variants by turns; the first one is what the others are compared with.
fn measure(kernel: &str, n: usize, reps: usize, variants: &[Variant], rows: &mut Vec<Vec<String>>) -> Outcome<()> {
    let seconds = |(_, sim, step): &Variant, steps: u64| -> Outcome<f64> {
        let start = Instant::now();
        sim.run(step, steps)?;
        Ok(start.elapsed().as_secs_f64() / steps as f64)
    };
    let mut steps = 1;
    for variant in variants {
        steps = ((SECONDS / seconds(variant, 3)?) as u64).max(1);
    }
    let mut times = vec![Vec::new(); variants.len()];
    for _ in 0..reps.max(1) {
        for (variant, times) in variants.iter().zip(&mut times) {
            times.push(seconds(variant, steps)?);
        }
    }
    for ((name, ..), own) in variants.iter().zip(&times) {
        let ratios = own.iter().zip(&times[0]).map(|(own, first)| own / first);
        let cells = [
            kernel.to_owned(),
            n.to_string(),
            (*name).to_owned(),
            Spread::of(own.iter().map(|seconds| seconds * 1e3)).text(2),
            Spread::of(ratios).text(2),
        ];
        rows.push(cells.to_vec());
    }
    Ok(())
}

fn gray_scotts(build: impl Fn() -> polyhalo::Result<Simulation>) -> Outcome<Vec<Variant>> {
    let none: &[Offset] = &[];
    let variant = |name, faces: &[Offset], boundary: Boundary<f64>| -> Outcome<Variant> {
        let sim = build()?;
        let u = sim.field_from("u", |at: Point| 1.0 - 0.001 * f64::from((at.i + 2 * at.j + 3 * at.k) % 11))?;
        let v = sim.field_from("v", |at: Point| 0.001 * f64::from((3 * at.i + 2 * at.j + at.k) % 7))?;
        for face in faces {
            u.boundary([*face, -*face], boundary)?;
            v.boundary([*face, -*face], boundary)?;
        }
        let step = sim.step(|s| s.update((&u, &v), gray_scott(&u, &v, 0.02, 0.048, 1.0)))?;
        Ok((name, sim, step))
    };
    Ok(vec![
        variant("nothing", none, Boundary::Fixed)?,
        variant("periodic along X", &[X], Boundary::Periodic)?,
        variant("periodic along Y", &[Y], Boundary::Periodic)?,
        variant("periodic along Z", &[Z], Boundary::Periodic)?,
        variant("periodic", &[X, Y, Z], Boundary::Periodic)?,
        variant("clamped", &[X, Y, Z], Boundary::Clamp)?,
        variant("a constant", &[X, Y, Z], Boundary::Constant(0.5))?,
    ])
}

fn relaxations(build: impl Fn() -> polyhalo::Result<Simulation>) -> Outcome<Vec<Variant>> {
    let variant = |name, folds: bool, coloured: bool| -> Outcome<Variant> {
        let sim = build()?;
        let u = sim.field_from("u", |at: Point| f64::from((at.i + 2 * at.j + 3 * at.k) % 11))?;
        let f = sim.field_from("f", |at: Point| f64::from((3 * at.i + 2 * at.j + at.k) % 7))?;
        let next = sim.field::<f64>("next")?;
        let step = sim.step(|s| {
            if coloured {
                s.update(&u, relax(&u, &f, 1.0, 1.0, 1.0, 1.2).over(Range::widest().red()));
                s.update(&u, relax(&u, &f, 1.0, 1.0, 1.0, 1.2).over(Range::widest().black()));
            } else {
                s.update(&next, relax(&u, &f, 1.0, 1.0, 1.0, 1.2));
            }
            if folds {
                s.reduce(residual(&u, &f, 1.0, 1.0, 1.0));
            }
        })?;
        Ok((name, sim, step))
    };
    Ok(vec![
        variant("nothing", false, false)?,
        variant("a sum and a largest value", true, false)?,
        variant("every second point, twice", false, true)?,
    ])
}
