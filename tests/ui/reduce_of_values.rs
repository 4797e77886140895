use polyhalo::prelude::*;

#[stencil]
fn heat(u: &Field<f64>, dt: f64) -> f64 {
    u[HERE] + dt * (u[X] + u[-X] - 2.0 * u[HERE])
}

#[stencil]
fn three(u: &Field<f64>) -> (f64, f64, Sum<f64>) {
    (u[X], u[Y], Sum(u[Z]))
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    sim.step(|s| {
        let a = s.reduce(heat(&u, 0.5));
        let b = s.reduce(three(&u));
    })?;
    Ok(())
}
