//! Elastic waves in velocity and stress on a staggered grid (Virieux), of 4th order in space.

use polyhalo::prelude::*;

/// The scheme: nine fields that are updated in place, velocities first and then stresses from the new velocities.
#[stencil]
pub mod elastic {
    use polyhalo::prelude::*;

    /// The derivative half a cell further along `e`.
    fn forward(a: &Field<f64>, e: Offset) -> f64 {
        9.0 / 8.0 * (a[e] - a[HERE]) - 1.0 / 24.0 * (a[2 * e] - a[-e])
    }

    /// The derivative half a cell back along `e`.
    fn backward(a: &Field<f64>, e: Offset) -> f64 {
        9.0 / 8.0 * (a[HERE] - a[-e]) - 1.0 / 24.0 * (a[e] - a[-2 * e])
    }

    /// The shear modulus half a cell further along `d` and `e`: the harmonic mean of four.
    fn shear(mu: &Field<f64>, d: Offset, e: Offset) -> f64 {
        4.0 / (1.0 / mu[HERE] + 1.0 / mu[d] + 1.0 / mu[e] + 1.0 / mu[d + e])
    }

    /// New velocities (vx, vy, vz). `s` holds the stresses xx, yy, zz, xy, xz, yz.
    #[stencil]
    pub fn velocity(v: &[Field<f64>; 3], s: &[Field<f64>; 6], rho: &Field<f64>, dt: f64) -> [f64; 3] {
        let [xx, yy, zz, xy, xz, yz] = s;
        let light = |e: Offset| 2.0 / (rho[HERE] + rho[e]);
        [
            v[0][HERE] + dt * light(X) * (forward(xx, X) + backward(xy, Y) + backward(xz, Z)),
            v[1][HERE] + dt * light(Y) * (backward(xy, X) + forward(yy, Y) + backward(yz, Z)),
            v[2][HERE] + dt * light(Z) * (backward(xz, X) + backward(yz, Y) + forward(zz, Z)),
        ]
    }

    /// New stresses xx, yy, zz, xy, xz, yz.
    #[stencil]
    pub fn stress(s: &[Field<f64>; 6], v: &[Field<f64>; 3], lambda: &Field<f64>, mu: &Field<f64>, dt: f64) -> [f64; 6] {
        let [vx, vy, vz] = v;
        let (exx, eyy, ezz) = (backward(vx, X), backward(vy, Y), backward(vz, Z));
        let trace = lambda[HERE] * (exx + eyy + ezz);
        [
            s[0][HERE] + dt * (trace + 2.0 * mu[HERE] * exx),
            s[1][HERE] + dt * (trace + 2.0 * mu[HERE] * eyy),
            s[2][HERE] + dt * (trace + 2.0 * mu[HERE] * ezz),
            s[3][HERE] + dt * shear(mu, X, Y) * (forward(vx, Y) + forward(vy, X)),
            s[4][HERE] + dt * shear(mu, X, Z) * (forward(vx, Z) + forward(vz, X)),
            s[5][HERE] + dt * shear(mu, Y, Z) * (forward(vy, Z) + forward(vz, Y)),
        ]
    }
}
