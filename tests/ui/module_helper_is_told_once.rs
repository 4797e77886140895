use polyhalo::prelude::*;

#[stencil]
mod kernels {
    use polyhalo::prelude::*;

    fn second(u: &Field<f64>, d: Offset) -> f64 {
        u[d] - 2 * u[HERE] + u[-d]
    }

    #[stencil]
    pub fn along(u: &Field<f64>) -> f64 {
        second(u, X)
    }

    #[stencil]
    pub fn across(u: &Field<f64>, v: &Field<f64>) -> f64 {
        second(u, Y) + second(v, Z) + v[1]
    }

    #[stencil]
    pub fn right(u: &Field<f64>) -> f64 {
        u[X]
    }
}

// The kernels are known here all the same.
fn main() -> Result<()> {
    let sim = Simulation::on([8, 8, 8]).build()?;
    let u = sim.field::<f64>("u")?;
    sim.step(|s| s.update(&u, kernels::along(&u)))?;
    sim.step(|s| s.update(&u, kernels::right(&u)))?;
    Ok(())
}
