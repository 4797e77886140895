use polyhalo::prelude::*;

#[stencil]
fn heat(u: &Field<f64>, dt: f64) -> f64 {
    u[HERE] + dt * (u[X] + u[-X] - 2.0 * u[HERE])
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    let (narrow, whole) = (sim.scalar("narrow", 0.5_f32)?, 3_usize);
    sim.step(|s| {
        s.update(&u, heat(&u, "x"));
        s.update(&u, heat(&u, 1));
        s.update(&u, heat(&u, &0.5));
        s.update(&u, heat(&u, whole));
        s.update(&u, heat(&u, &narrow));
    })?;
    Ok(())
}
