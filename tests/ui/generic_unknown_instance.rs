use polyhalo::prelude::*;

#[stencil(T = f32 | f64, R = 1 | 2)]
fn kernel<T, const R: usize>(u: &Field<T>) -> T {
    u[R as i32 * X]
}

fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    let n = sim.field::<i32>("n")?;
    sim.step(|s| {
        s.update(&u, kernel::<f64, 8>(&u));
        s.update(&n, kernel::<_, 2>(&n));
    })?;
    Ok(())
}
