use polyhalo::prelude::*;

#[stencil]
fn three(u: &Field<f64>) -> (f64, f64, Sum<f64>) {
    (u[X], u[Y], Sum(u[Z]))
}

#[stencil]
fn total(u: &Field<f64>) -> Sum<f64> {
    Sum(u[HERE])
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let (u, v) = (sim.field::<f64>("u")?, sim.field::<f32>("v")?);
    let (sum, whole) = (sim.scalar("sum", 0.0)?, sim.scalar("whole", 0)?);
    sim.step(|s| {
        s.update((&u, &v, &sum), three(&u));
        s.update((&u, &u, &u), three(&u));
        s.update(&u, total(&u));
        s.update(&whole, total(&u));
        s.update(u, total(&u));
    })?;
    Ok(())
}
