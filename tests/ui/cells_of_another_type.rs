use polyhalo::prelude::*;

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let n = sim.field::<usize>("n")?;
    Ok(())
}
