use polyhalo::prelude::*;

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    let v = sim.field_from("v", 0.0)?;
    u.boundary("left", Boundary::Periodic)?;
    u.set(vec![0.0; 512])?;
    Ok(())
}
