use polyhalo::prelude::*;

#[stencil]
fn total(u: &Field<f64>) -> Sum<f64> {
    Sum(u[HERE])
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    let dt = sim.scalar("dt", 0.5)?;
    sim.step(|s| {
        let sum = s.reduce(total(&u));
        let a = s.compute(sum, |sum| 2.0 * sum);
        let b = s.compute((&dt, 0.5), |(dt, half)| dt * half);
        let c = 2.0 * dt;
        s.update(&dt, 0.5);
    })?;
    Ok(())
}
