//! The stencils that are measured: each as a step of a simulation and as a plain loop, from the same values.

use std::f64::consts::PI;

use clap::ValueEnum;
use polyhalo::prelude::*;
use polyhalo::{Element, Result};

use crate::c::{Loops, Plain};
use crate::kernels::elastic::elastic::{stress, velocity};
use crate::kernels::heat::heat;
use crate::kernels::himeno::himeno;
use crate::kernels::wave::wave;

/// A stencil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// The heat equation with variable conductivity: 7 points, `f64`.
    Heat,
    /// Acoustic waves of 8th order with a sponge: 25 points, `f32`.
    Wave,
    /// Himeno's benchmark: 19 points and 13 arrays, `f32`, with the sum of squares of the residual.
    Himeno,
    /// Elastic waves on a staggered grid: nine fields in place in two stages, `f64`.
    Elastic,
}

/// Compares the results of both.
type Differs = Box<dyn Fn(&Plain<'_>) -> Result<Difference>>;

/// A case on a grid, both ways.
pub struct Pair<'c> {
    /// The step of the simulation.
    pub step: Step,
    /// The plain loop.
    pub plain: Plain<'c>,
    /// How far the results are apart.
    differs: Differs,
}

/// How far results are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// Values of fields whose bits differ.
    pub values: usize,
    /// The relative difference of the sums.
    pub sum: f64,
}

impl Difference {
    /// Sums are added up in another order, in double precision.
    const MOST_OF_A_SUM: f64 = 1e-9;

    /// Whether both have computed the same.
    pub fn is_none(&self) -> bool {
        self.values == 0 && self.sum <= Self::MOST_OF_A_SUM
    }
}

impl Case {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heat => "heat",
            Self::Wave => "wave",
            Self::Himeno => "himeno",
            Self::Elastic => "elastic",
        }
    }

    /// The points next to a face that aren't updated.
    pub fn margin(self) -> usize {
        match self {
            Self::Heat | Self::Himeno => 1,
            Self::Elastic => 2,
            Self::Wave => 4,
        }
    }

    /// The least traffic of a point in bytes: each field read once and each result written once, by each stage.
    pub fn bytes_per_point(self) -> f64 {
        match self {
            Self::Heat => 32.0,
            Self::Wave => 16.0,
            Self::Himeno => 56.0,
            // 10 fields read and 3 written, then 11 read and 6 written.
            Self::Elastic => 240.0,
        }
    }

    /// Prepares both ways. `None` when there isn't enough memory for the plain loop.
    pub fn pair<'c>(self, sim: &Simulation, code: &'c Loops, n: usize, threads: usize) -> Result<Option<Pair<'c>>> {
        match self {
            Self::Heat => heat_pair(sim, code, n, threads),
            Self::Wave => wave_pair(sim, code, n, threads),
            Self::Himeno => himeno_pair(sim, code, n, threads),
            Self::Elastic => elastic_pair(sim, code, n, threads),
        }
    }
}

impl Pair<'_> {
    /// How far the results are apart now.
    pub fn difference(&self) -> Result<Difference> {
        (self.differs)(&self.plain)
    }
}

/// Adds the values of fields to a plain loop.
fn push<'f, T: Element>(plain: &mut Plain<'_>, fields: impl IntoIterator<Item = &'f Field<T>>) -> Result<bool> {
    for field in fields {
        if !plain.push(field.read()?.as_slice().expect("fields are read in order")) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The values whose bits differ between a field and an array of a plain loop.
fn differing<T: Element>(field: &Field<T>, plain: &Plain<'_>, array: usize) -> Result<usize> {
    let found = field.read()?;
    let pairs = found.iter().zip(plain.values::<T>(array));
    Ok(pairs.filter(|(found, expected)| found.to_word() != expected.to_word()).count())
}

fn heat_pair<'c>(sim: &Simulation, code: &'c Loops, n: usize, threads: usize) -> Result<Option<Pair<'c>>> {
    /// dt / (2 h^2) with the largest stable dt.
    const BETA: f64 = 1.0 / (24.0 * 0.95);
    let h = 1.0 / (n - 1) as f64;
    let dt = h * h / (12.0 * 0.95);
    let product = |wave: fn(f64) -> f64, point: Point| {
        [point.i, point.j, point.k].into_iter().map(|index| wave(PI * f64::from(index) * h)).product::<f64>()
    };
    let inside = |index: i32| index > 0 && (index as usize) < n - 1;
    let initial = |at: Point| if [at.i, at.j, at.k].into_iter().all(inside) { product(f64::sin, at) } else { 0.0 };
    let u = sim.field_from("u", initial)?;
    let f = sim.field_from("f", |at: Point| dt * (1.0 + product(f64::cos, at)))?;
    let kappa = sim.field_from("kappa", |at: Point| 0.5 + 0.45 * product(f64::sin, at))?;
    let step = sim.step(|s| s.update(&u, heat(&u, &f, &kappa, BETA)))?;
    let mut plain = Plain::new(code, "heat", n, threads, &[BETA]);
    if !push(&mut plain, [&u, &f, &kappa, &u])? {
        return Ok(None);
    }
    plain.swap(0, 3);
    let differs = move |plain: &Plain<'_>| Ok(Difference { values: differing(&u, plain, 0)?, sum: 0.0 });
    Ok(Some(Pair { step, plain, differs: Box::new(differs) }))
}

fn wave_pair<'c>(sim: &Simulation, code: &'c Loops, n: usize, threads: usize) -> Result<Option<Pair<'c>>> {
    let middle = n as f64 / 2.0;
    let pulse = |at: Point| {
        let square: f64 = [at.i, at.j, at.k].into_iter().map(|index| (f64::from(index) - middle).powi(2)).sum();
        (1.0 / (1.0 + 0.05 * square)) as f32
    };
    let sponge = |index: i32| {
        let depth = 0.max(20 - index).max(index - (n as i32 - 21));
        (1.0 - 0.0002 * f64::from(depth * depth)) as f32
    };
    let p = sim.field_from("p", pulse)?;
    let old = sim.field_from("old", pulse)?;
    let v = sim.field_from("v", |at: Point| (0.06 + 0.0025 * f64::from((at.i + 2 * at.j + 3 * at.k) % 9)) as f32)?;
    let x = sim.field_x("sponge x", |at: Point| sponge(at.i))?;
    let y = sim.field_y("sponge y", |at: Point| sponge(at.j))?;
    let z = sim.field_z("sponge z", |at: Point| sponge(at.k))?;
    let step = sim.step(|s| {
        s.update(&old, wave(&p, &old, &v, &x, &y, &z));
        s.swap(&p, &old);
    })?;
    let mut plain = Plain::new(code, "wave", n, threads, &[]);
    let sponge: Vec<f32> = (0..n).map(|index| sponge(index as i32)).collect();
    if !push(&mut plain, [&p, &old, &v])? || !(0..3).all(|_| plain.push(&sponge)) {
        return Ok(None);
    }
    plain.swap(0, 1);
    let differs = move |plain: &Plain<'_>| {
        Ok(Difference { values: differing(&p, plain, 0)? + differing(&old, plain, 1)?, sum: 0.0 })
    };
    Ok(Some(Pair { step, plain, differs: Box::new(differs) }))
}

fn himeno_pair<'c>(sim: &Simulation, code: &'c Loops, n: usize, threads: usize) -> Result<Option<Pair<'c>>> {
    const OMEGA: f32 = 0.8;
    let everywhere = |name: &str, value: f32| sim.field_from(name, move |_: Point| value);
    // The coefficients of the benchmark.
    let a = [everywhere("a0", 1.0)?, everywhere("a1", 1.0)?, everywhere("a2", 1.0)?, everywhere("a3", 1.0 / 6.0)?];
    let b = [everywhere("b0", 0.0)?, everywhere("b1", 0.0)?, everywhere("b2", 0.0)?];
    let c = [everywhere("c0", 1.0)?, everywhere("c1", 1.0)?, everywhere("c2", 1.0)?];
    let (bnd, wrk) = (everywhere("bnd", 1.0)?, everywhere("wrk", 0.0)?);
    let p = sim.field_from("p", |at: Point| (at.k * at.k) as f32 / ((n - 1) * (n - 1)) as f32)?;
    let gosa = sim.scalar("gosa", 0.0_f64)?;
    let step = sim.step(|s| s.update((&p, &gosa), himeno(&p, &a, &b, &c, &bnd, &wrk, OMEGA)))?;
    let mut plain = Plain::new(code, "himeno", n, threads, &[f64::from(OMEGA)]);
    let arrays = [&p].into_iter().chain(&a).chain(&b).chain(&c).chain([&bnd, &wrk, &p]);
    if !push(&mut plain, arrays)? {
        return Ok(None);
    }
    plain.swap(0, 13);
    let differs = move |plain: &Plain<'_>| {
        let sum = (gosa.get()? - plain.result).abs() / plain.result.abs().max(f64::MIN_POSITIVE);
        Ok(Difference { values: differing(&p, plain, 0)?, sum })
    };
    Ok(Some(Pair { step, plain, differs: Box::new(differs) }))
}

fn elastic_pair<'c>(sim: &Simulation, code: &'c Loops, n: usize, threads: usize) -> Result<Option<Pair<'c>>> {
    const DT: f64 = 0.2;
    let middle = n as f64 / 2.0;
    let pressure = |at: Point| {
        let square: f64 = [at.i, at.j, at.k].into_iter().map(|index| (f64::from(index) - middle).powi(2)).sum();
        (1.0 + 0.15 * square).powi(-2)
    };
    let lambda = sim.field_from("lambda", |at: Point| 1.0 + f64::from((at.i + at.j + at.k) % 3) / 16.0)?;
    let mu = sim.field_from("mu", |at: Point| 0.5 + f64::from((at.i + 2 * at.j + at.k) % 4) / 32.0)?;
    let rho = sim.field_from("rho", |at: Point| 1.0 + f64::from((2 * at.i + at.j + 3 * at.k) % 5) / 40.0)?;
    let v = [sim.field("vx")?, sim.field("vy")?, sim.field("vz")?];
    let s = [
        sim.field_from("sxx", pressure)?,
        sim.field_from("syy", pressure)?,
        sim.field_from("szz", pressure)?,
        sim.field("sxy")?,
        sim.field("sxz")?,
        sim.field("syz")?,
    ];
    let step = sim.step(|stages| {
        stages.update(&v, velocity(&v, &s, &rho, DT).over(Range::interior(2)));
        stages.update(&s, stress(&s, &v, &lambda, &mu, DT).over(Range::interior(2)));
    })?;
    let mut plain = Plain::new(code, "elastic", n, threads, &[DT]);
    if !push(&mut plain, v.iter().chain(&s).chain([&lambda, &mu, &rho]))? {
        return Ok(None);
    }
    let differs = move |plain: &Plain<'_>| {
        let fields = v.iter().chain(&s).enumerate();
        let values = fields.map(|(array, field)| differing(field, plain, array)).sum::<Result<usize>>()?;
        Ok(Difference { values, sum: 0.0 })
    };
    Ok(Some(Pair { step, plain, differs: Box::new(differs) }))
}
