use polyhalo::prelude::*;

#[stencil]
fn kernel(u: &Field<f64>, a: f64) -> f64 {
    u[0] * a
}

// The stencil above is wrong, and still its name, parameters and result are known here: the only other error is the text.
fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).devices("reference").build()?;
    let u = sim.field_from("u", |_: Point| 0.0)?;
    let step = sim.step(|s| s.update(&u, kernel(&u, "text")))?;
    sim.run(&step, 1)?;
    Ok(())
}
