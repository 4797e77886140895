//! A step with much in it, for tests that need one: fields of several footprints and extents, boundaries of several kinds,
//! folds that later stages use, colours, swaps, sources and receivers.

use polyhalo::prelude::*;
use polyhalo_tests::steps::kernels::{broad, cube, lopsided, relax, star, totals};

/// Cells: a prime along Z, so that no number of devices divides them.
pub(crate) const CELLS: [usize; 3] = [6, 5, 11];

/// The step, and all that it changes.
pub(crate) struct Busy {
    /// The simulation.
    pub(crate) sim: Simulation,
    /// The step.
    pub(crate) step: Step,
    fields: Vec<Field<f64>>,
    scalars: Vec<Scalar<f64>>,
    records: Vec<Record<f64>>,
}

/// A small number without a pattern.
fn first(seed: i32) -> impl Fn(Point) -> f64 + Sync {
    move |p: Point| f64::from((p.i * 7 + p.j * 13 + p.k * 29 + seed * 31) % 17) * 0.125 - 1.0
}

impl Busy {
    /// The step on a simulation of [`CELLS`].
    pub(crate) fn new(sim: Simulation) -> Result<Self> {
        let [nx, ny, nz] = CELLS;
        let u = sim.field_from("u", first(1))?;
        let v = sim.field_from("v", first(2))?;
        let w = sim.field_from("w", first(3))?;
        let old = sim.field_from("old", first(4))?;
        let tall = sim.staggered("tall", [nx, ny, nz + 1], first(5))?;
        let low = sim.staggered("low", [nx + 1, ny, nz - 1], first(6))?;
        for field in [&u, &w, &old] {
            field.boundary(FACES, Boundary::Periodic)?;
        }
        v.boundary([X, -X, Z], Boundary::Even)?;
        v.boundary([Y, -Y, -Z], Boundary::Constant(0.25))?;
        tall.boundary(FACES, Boundary::Clamp)?;
        low.boundary(FACES, Boundary::Odd)?;
        let along = (sim.field_x("x", first(7))?, sim.field_y("y", first(8))?, sim.field_z("z", first(9))?);
        let planes = (sim.field_xy("xy", first(10))?, sim.field_xz("xz", first(11))?, sim.field_yz("yz", first(12))?);
        let rest = sim.scalar("rest", 0.0)?;
        let (step, (scalars, records)) = sim.step_with(|s| {
            let amount = s.each_step(|step| 0.125 * step as f64);
            s.inject(&u, Points::weighted([([1, 2, 0], 1.0), ([3, 3, nz - 1], -0.5), ([2, 2, 5], 0.25)]), &amount);
            s.update(&old, star::<f64, 8>(&u, 0.0078125));
            s.update((&u, &rest), relax(&u, &v).over(Range::widest().red()));
            s.update((&u, &rest), relax(&u, &v).over(Range::widest().black()));
            s.update((&v, &tall), lopsided(&w, &tall));
            let (sum, most, least) = s.reduce(totals(&v));
            let share = s.compute((&sum, &most, &least), |(sum, most, least)| (sum + most - least) / 1024.0);
            s.update(&w, star::<f64, 1>(&old, &share));
            s.update(&low, cube(&low));
            let (x, y, z) = &along;
            let (xy, xz, yz) = &planes;
            s.update(&tall, broad(&v, x, y, z, xy, xz, yz));
            s.swap(&u, &old);
            let heard = s.probe(&u, [[0, 0, 0], [5, 4, 10], [2, 1, 5]]);
            let kept = s.record(&share);
            ([rest, sum, most, least, share], [heard, kept])
        })?;
        let fields = vec![u, v, w, old, tall, low];
        Ok(Self { sim, step, fields, scalars: scalars.to_vec(), records: records.into() })
    }

    /// A field by its name.
    pub(crate) fn field(&self, name: &str) -> &Field<f64> {
        self.fields.iter().find(|field| field.name() == name).expect("it is one of the step's")
    }

    /// The bits of everything.
    pub(crate) fn bits(&self) -> Result<Vec<u64>> {
        let mut bits = Vec::new();
        for field in &self.fields {
            bits.extend(field.read()?.iter().map(|value| value.to_bits()));
        }
        for scalar in &self.scalars {
            bits.push(scalar.get()?.to_bits());
        }
        for record in &self.records {
            bits.extend(record.read()?.iter().map(|value| value.to_bits()));
        }
        Ok(bits)
    }

    /// The bits after some steps on one device.
    pub(crate) fn after(steps: u64) -> Vec<u64> {
        let busy = Self::new(polyhalo_tests::steps::devices()[0].on(CELLS)).unwrap();
        busy.sim.run(&busy.step, steps).unwrap();
        busy.bits().unwrap()
    }
}
