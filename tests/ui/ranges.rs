use polyhalo::prelude::*;

#[stencil]
fn heat(u: &Field<f64>, dt: f64) -> f64 {
    u[HERE] + dt * (u[X] + u[-X] - 2.0 * u[HERE])
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    sim.step(|s| {
        s.update(&u, heat(&u, 0.5).over(Z));
        s.update(&u, heat(&u, 0.5).over(1..END - 1));
        s.update(&u, heat(&u, 0.5), Range::face(Z));
        s.update(&u, heat(&u, 0.5)).over(Range::face(Z));
    })?;
    Ok(())
}
