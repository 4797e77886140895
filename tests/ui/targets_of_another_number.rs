use polyhalo::prelude::*;

#[stencil]
fn three(u: &Field<f64>) -> (f64, f64, Sum<f64>) {
    (u[X], u[Y], Sum(u[Z]))
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let (u, v) = (sim.field::<f64>("u")?, sim.field::<f64>("v")?);
    sim.step(|s| {
        s.update((&u, &v), three(&u));
        s.update(&u, three(&u));
    })?;
    Ok(())
}
