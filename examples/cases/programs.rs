//! The ten programs. Formulas are those of the cases, in their indices i, j, k.

use std::f64::consts::PI;

use polyhalo::Result;
use polyhalo::prelude::*;

use crate::automaton::{life, population};
use crate::burgers::{burgers, fastest, lid};
use crate::diffusion::limited_diffusion;
use crate::elastic::elastic::{stress, velocity};
use crate::gray_scott::gray_scott;
use crate::heat::heat;
use crate::himeno::himeno;
use crate::perona_malik::perona_malik;
use crate::poisson::{relax, residual};
use crate::wave::wave;
use crate::{Options, Outcome};

type Run = fn(&Options) -> Result<Outcome>;

/// Every case.
pub(crate) const CASES: [(&str, Run); 10] = [
    ("heat7_varkappa", heat_case),
    ("wave25_source", wave_case),
    ("elastic_ssg", elastic_case),
    ("grayscott_periodic", gray_scott_case),
    ("burgers3d_cfl", burgers_case),
    ("himeno19", himeno_case),
    ("perona_malik", perona_malik_case),
    ("life3d_i32", life_case),
    ("rbgs_poisson", poisson_case),
    ("hdiff_limiter", diffusion_case),
];

/// Cells along i, j and k of most cases.
const GRID: [usize; 3] = [17, 19, 23];

/// A function of i, j and k as a function of the point.
fn ijk<T>(function: impl Fn(i64, i64, i64) -> T + Sync) -> impl Fn(Point) -> T + Sync {
    move |p: Point| function(p.k.into(), p.j.into(), p.i.into())
}

/// Whether a point is at least `margin` cells from every face of a grid.
fn inside([ni, nj, nk]: [usize; 3], margin: i64, i: i64, j: i64, k: i64) -> bool {
    let within = |index: i64, cells: usize| index >= margin && index < cells as i64 - margin;
    within(i, ni) && within(j, nj) && within(k, nk)
}

/// The non-negative remainder, as a number.
fn modulo(n: i64, m: i64) -> f64 {
    n.rem_euclid(m) as f64
}

fn heat_case(options: &Options) -> Result<Outcome> {
    let h = 1.0 / 22.0;
    let dt = h * h / (12.0 * 0.95);
    let waves = |wave: fn(f64) -> f64, i: i64, j: i64, k: i64| {
        wave(PI * i as f64 * h) * wave(PI * j as f64 * h) * wave(PI * k as f64 * h)
    };
    let sim = options.simulation(GRID)?;
    let u =
        sim.field_from("u", ijk(|i, j, k| if inside(GRID, 1, i, j, k) { waves(f64::sin, i, j, k) } else { 0.0 }))?;
    let kappa = sim.field_from("kappa", ijk(|i, j, k| 0.5 + 0.45 * waves(f64::sin, i, j, k)))?;
    let f = sim.field_from("f", ijk(|i, j, k| dt * (1.0 + waves(f64::cos, i, j, k))))?;
    let step = sim.step(|s| s.update(&u, heat(&u, &f, &kappa, dt / (2.0 * h * h))))?;
    sim.run(&step, 20)?;
    Ok(Outcome::default().field("u", &u))
}

fn wave_case(options: &Options) -> Result<Outcome> {
    const GRID: [usize; 3] = [22, 24, 26];
    let pulse = ijk(|i, j, k| {
        let [x, y, z] = [(i - 10) as f64, (j - 12) as f64, (k - 13) as f64];
        let value = 1.0 / (1.0 + 0.25 * (x * x + y * y + z * z));
        if inside(GRID, 4, i, j, k) { value as f32 } else { 0.0 }
    });
    let sponge = |index: i32, cells: usize| {
        let d = 0.max(8 - index).max(index - (cells as i32 - 9));
        (1.0 - 0.015 * f64::from(d * d) / 16.0) as f32
    };
    let sim = options.simulation(GRID)?;
    let p = sim.field_from("p", &pulse)?;
    let old = sim.field_from("old", &pulse)?;
    let v = sim.field_from("v", ijk(|i, j, k| (0.06 + 0.0025 * modulo(i + 2 * j + 3 * k, 9)) as f32))?;
    let x = sim.field_x("sponge x", |at: Point| sponge(at.i, GRID[2]))?;
    let y = sim.field_y("sponge y", |at: Point| sponge(at.j, GRID[1]))?;
    let z = sim.field_z("sponge z", |at: Point| sponge(at.k, GRID[0]))?;
    let (step, receiver) = sim.step_with(|s| {
        s.update(&old, wave(&p, &old, &v, &x, &y, &z));
        let amount = s.each_step(|n| {
            let a = 0.45 * (n as f64 - 6.0);
            ((1.0 - 2.0 * a * a) * (-a * a).exp()) as f32
        });
        s.inject(&old, [[14, 11, 12]], amount);
        s.swap(&p, &old);
        s.probe(&p, [[12, 15, 16]])
    })?;
    sim.run(&step, 20)?;
    let receiver = receiver.values()?;
    Ok(Outcome::default().field("p", &p).field("p_prev", &old).scalar("receiver", receiver.into_iter().map(f64::from)))
}

fn elastic_case(options: &Options) -> Result<Outcome> {
    let sim = options.simulation(GRID)?;
    let lambda = sim.field_from("lambda", ijk(|i, j, k| 1.0 + modulo(i + j + k, 3) / 16.0))?;
    let mu = sim.field_from("mu", ijk(|i, j, k| 0.5 + modulo(i + 2 * j + k, 4) / 32.0))?;
    let rho = sim.field_from("rho", ijk(|i, j, k| 1.0 + modulo(2 * i + j + 3 * k, 5) / 40.0))?;
    let pressure = ijk(|i, j, k| {
        let [x, y, z] = [i as f64 - 8.0, j as f64 - 9.0, k as f64 - 10.5];
        if inside(GRID, 2, i, j, k) { (1.0 + 0.15 * (x * x + y * y + z * z)).powi(-2) } else { 0.0 }
    });
    // The x of the case is Z here, its z is X.
    let v = [sim.field("vz")?, sim.field("vy")?, sim.field("vx")?];
    let s = [
        sim.field_from("szz", &pressure)?,
        sim.field_from("syy", &pressure)?,
        sim.field_from("sxx", &pressure)?,
        sim.field("syz")?,
        sim.field("sxz")?,
        sim.field("sxy")?,
    ];
    let step = sim.step(|stages| {
        stages.update(&v, velocity(&v, &s, &rho, 0.2).over(Range::interior(2)));
        stages.update(&s, stress(&s, &v, &lambda, &mu, 0.2).over(Range::interior(2)));
    })?;
    sim.run(&step, 10)?;
    let names = ["szz", "syy", "sxx", "syz", "sxz", "sxy"];
    let outcome = names.into_iter().zip(&s).fold(Outcome::default(), |outcome, (name, s)| outcome.field(name, s));
    Ok(outcome.field("vz", &v[0]).field("vy", &v[1]).field("vx", &v[2]))
}

fn gray_scott_case(options: &Options) -> Result<Outcome> {
    let boxed = |i, j, k| (6..=10).contains(&i) && (7..=12).contains(&j) && (8..=14).contains(&k);
    let noise = |i, j, k| modulo(3 * i + 5 * j + 7 * k, 11) / 1100.0;
    let sim = options.simulation(GRID)?;
    let u = sim.field_from("u", ijk(|i, j, k| if boxed(i, j, k) { 0.25 } else { 1.0 } - noise(i, j, k)))?;
    let v = sim.field_from("v", ijk(|i, j, k| if boxed(i, j, k) { 0.33 } else { 0.0 } + noise(i, j, k)))?;
    u.boundary(FACES, Boundary::Periodic)?;
    v.boundary(FACES, Boundary::Periodic)?;
    let step = sim.step(|s| s.update((&u, &v), gray_scott(&u, &v, 0.02, 0.048, 1.0)))?;
    sim.run(&step, 20)?;
    Ok(Outcome::default().field("u", &u).field("v", &v))
}

fn burgers_case(options: &Options) -> Result<Outcome> {
    const NU: f64 = 0.01;
    let [hx, hy, hz] = [1.0 / 16.0, 1.0 / 18.0, 1.0 / 22.0];
    let at = |i: i64, j: i64, k: i64| [i as f64 * hx, j as f64 * hy, k as f64 * hz];
    let sim = options.simulation(GRID)?;
    let u = sim.field_from(
        "u",
        ijk(|i, j, k| {
            let [x, y, z] = at(i, j, k);
            (2.0 * PI * x).sin() * (PI * y).cos() + 0.3 * z
        }),
    )?;
    let v = sim.field_from(
        "v",
        ijk(|i, j, k| {
            let [x, y, z] = at(i, j, k);
            0.8 * (PI * x).cos() * (2.0 * PI * z).sin() - 0.2 * y
        }),
    )?;
    let w = sim.field_from(
        "w",
        ijk(|i, j, k| {
            let [x, y, _] = at(i, j, k);
            0.6 * (PI * y).sin() * (2.0 * PI * x).cos() + 0.1
        }),
    )?;
    // The x of the case is Z here, its z is X.
    let velocity = [w, v, u];
    let u = &velocity[2];
    let (step, records) = sim.step_with(|s| {
        let speed = s.each_step(|n| 1.0 + 0.15 * n as f64);
        s.update(u, lid(speed).over(Range::face(X)));
        let fastest = s.reduce(fastest(&velocity, hz, hy, hx));
        let viscous = 2.0 * NU * (1.0 / (hx * hx) + 1.0 / (hy * hy) + 1.0 / (hz * hz));
        let dt = s.compute(&fastest, move |fastest| 0.4 / (fastest + viscous));
        s.update(&velocity, burgers(&velocity, hz, hy, hx, NU, &dt));
        (s.record(&dt), s.record(&fastest))
    })?;
    sim.run(&step, 12)?;
    let [w, v, u] = &velocity;
    let outcome = Outcome::default().field("u", u).field("v", v).field("w", w);
    Ok(outcome.scalar("dt", records.0.values()?).scalar("max_speed", records.1.values()?))
}

fn himeno_case(options: &Options) -> Result<Outcome> {
    let sim = options.simulation(GRID)?;
    let field =
        |name: &str, value: fn(i64, i64, i64) -> f64| sim.field_from(name, ijk(move |i, j, k| value(i, j, k) as f32));
    let p =
        field("p", |i, j, k| (i * i) as f64 / 256.0 + modulo(3 * i + 5 * j + 7 * k + 2 * i * j + j * k, 11) / 64.0)?;
    let a = [
        field("a0", |i, j, k| 1.0 + modulo(i + 2 * j + 3 * k, 7) / 128.0)?,
        field("a1", |i, j, k| 1.0 + modulo(2 * i + 3 * j + k, 5) / 128.0)?,
        field("a2", |i, j, k| 1.0 + modulo(3 * i + j + 2 * k, 9) / 256.0)?,
        field("a3", |i, j, k| 1.0 / 6.0 - modulo(i + j + 2 * k, 4) / 512.0)?,
    ];
    let b = [
        field("b0", |i, j, k| (modulo(i + j + k, 5) - 2.0) / 64.0)?,
        field("b1", |i, j, k| (modulo(i + 2 * j + k, 5) - 2.0) / 64.0)?,
        field("b2", |i, j, k| (modulo(2 * i + j + k, 5) - 2.0) / 64.0)?,
    ];
    let c = [
        field("c0", |i, j, k| 1.0 - modulo(i + 3 * j + 2 * k, 5) / 128.0)?,
        field("c1", |i, j, k| 1.0 - modulo(3 * i + 2 * j + k, 7) / 256.0)?,
        field("c2", |i, j, k| 1.0 - modulo(2 * i + j + 3 * k, 3) / 128.0)?,
    ];
    let w = field("w", |i, j, k| (modulo(5 * i + 3 * j + 7 * k, 11) - 5.0) / 512.0)?;
    let bnd = field("bnd", |i, j, k| {
        let solid = (5..=8).contains(&i) && (6..=9).contains(&j) && (7..=11).contains(&k);
        if solid { 0.0 } else { 1.0 }
    })?;
    let gosa = sim.scalar("gosa", 0.0)?;
    let (step, gosa) = sim.step_with(|s| {
        s.update((&p, &gosa), himeno(&p, &a, &b, &c, &bnd, &w, 0.8));
        s.record(&gosa)
    })?;
    sim.run(&step, 12)?;
    Ok(Outcome::default().field("p", &p).scalar("gosa", gosa.values()?))
}

fn perona_malik_case(options: &Options) -> Result<Outcome> {
    let sim = options.simulation(GRID)?;
    let image = |i: i64, j: i64, k: i64| {
        let ball = (i - 8).pow(2) + (j - 9).pow(2) + (k - 11).pow(2) < 36;
        40.0 + 35.0 * f64::from(ball) + 0.75 * (modulo(7 * i + 13 * j + 29 * k + 3 * i * j + 5 * j * k, 17) - 8.0)
    };
    let u = sim.field_from("u", ijk(|i, j, k| image(i, j, k) as f32))?;
    u.boundary(FACES, Boundary::Clamp)?;
    let step = sim.step(|s| s.update(&u, perona_malik(&u, 15.0, 0.1)))?;
    sim.run(&step, 8)?;
    Ok(Outcome::default().field("u", &u))
}

fn life_case(options: &Options) -> Result<Outcome> {
    let sim = options.simulation(GRID)?;
    let start = |i, j, k| 73 * i + 151 * j + 283 * k + 7 * i * j + 11 * j * k + 5 * k * i;
    let age = sim.field_from("age", ijk(|i, j, k| i32::from(start(i, j, k).rem_euclid(10) < 3)))?;
    age.boundary(FACES, Boundary::Periodic)?;
    let (step, living) = sim.step_with(|s| {
        s.update(&age, life(&age));
        let living = s.reduce(population(&age));
        s.record(&living)
    })?;
    sim.run(&step, 12)?;
    let living = living.values()?.into_iter().map(|living| living as f64);
    Ok(Outcome::default().field("age", &age).scalar("population", living))
}

fn poisson_case(options: &Options) -> Result<Outcome> {
    let [hx, hy, hz] = [1.0 / 16.0, 1.0 / 18.0, 1.0 / 22.0];
    let at = |i: i64, j: i64, k: i64| [i as f64 * hx, j as f64 * hy, k as f64 * hz];
    let sim = options.simulation(GRID)?;
    let f = sim.field_from(
        "f",
        ijk(|i, j, k| {
            let [x, y, z] = at(i, j, k);
            20.0 * (PI * x).sin() * (2.0 * PI * y).sin() * (PI * z).cos() + modulo(i + 3 * j + 5 * k, 7) - 3.0
        }),
    )?;
    let u = sim.field_from(
        "u",
        ijk(|i, j, k| {
            let [x, y, z] = at(i, j, k);
            if inside(GRID, 1, i, j, k) { 0.0 } else { x + y * y - z * z }
        }),
    )?;
    // The x of the case is Z here, its z is X.
    let [rx, ry, rz] = [hz, hy, hx].map(|h| 1.0 / (h * h));
    let interior = GRID.iter().map(|cells| cells - 2).product::<usize>() as f64;
    let (step, (norm, most)) = sim.step_with(|s| {
        for colour in [Range::widest().red(), Range::widest().black()] {
            s.update(&u, relax(&u, &f, rx, ry, rz, 1.4).over(colour));
        }
        let (squares, most) = s.reduce(residual(&u, &f, rx, ry, rz));
        let norm = s.compute(&squares, move |squares: f64| (squares / interior).sqrt());
        (s.record(&norm), s.record(&most))
    })?;
    sim.run(&step, 10)?;
    Ok(Outcome::default().field("u", &u).scalar("residual_l2", norm.values()?).scalar("residual_max", most.values()?))
}

fn diffusion_case(options: &Options) -> Result<Outcome> {
    let sim = options.simulation(GRID)?;
    let start = |i: i64, j: i64, k: i64| {
        let [x, y, z] = [i as f64 / 17.0, j as f64 / 19.0, k as f64 / 23.0];
        let smooth = 2.0 + (PI * (x + 1.5 * y)).cos() + (2.0 * PI * (x + 1.5 * y) + z).sin();
        5.0 + 2.0 * smooth + modulo(7 * i + 11 * j + 5 * k, 13) / 40.0
    };
    let a = sim.field_from("a", ijk(start))?;
    let c = sim.field_from("c", ijk(|i, j, k| 0.025 + 0.005 * modulo(i + j + 2 * k, 4)))?;
    let step = sim.step(|s| s.update(&a, limited_diffusion(&a, &c)))?;
    sim.run(&step, 8)?;
    Ok(Outcome::default().field("a", &a))
}
