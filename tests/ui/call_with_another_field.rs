use polyhalo::prelude::*;

#[stencil]
fn heat(u: &Field<f64>, dt: f64) -> f64 {
    u[HERE] + dt * (u[X] + u[-X] - 2.0 * u[HERE])
}

#[stencil]
fn damp(u: &Field<f64>, sponge: &FieldX<f64>) -> f64 {
    u[HERE] * sponge[HERE]
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    let narrow = sim.field::<f32>("narrow")?;
    let sponge = sim.field_y("sponge", |_: Point| 1.0)?;
    sim.step(|s| {
        s.update(&u, heat(&narrow, 0.5));
        s.update(&u, heat(u, 0.5));
        s.update(&u, damp(&u, &u));
        s.update(&u, damp(&u, &sponge));
    })?;
    Ok(())
}
