//! Acoustic waves: d2p/dt2 = v laplacian(p), of 8th order in space and 2nd in time, with a sponge and a point source.

use polyhalo::prelude::*;

/// One time step of the wave equation: the values two steps after `old`. `v` is (c dt / h)^2, and the sponges fall from 1
/// towards the faces.
#[stencil]
pub fn wave(
    p: &Field<f32>,
    old: &Field<f32>,
    v: &Field<f32>,
    sponge_x: &FieldX<f32>,
    sponge_y: &FieldY<f32>,
    sponge_z: &FieldZ<f32>,
) -> f32 {
    const C: [f32; 5] = [-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];
    let mut laplacian = 3.0 * C[0] * p[HERE];
    for r in 1..=4 {
        let around = p[r * X] + p[-r * X] + p[r * Y] + p[-r * Y] + p[r * Z] + p[-r * Z];
        laplacian += C[r as usize] * around;
    }
    let sponge = sponge_x[HERE] * sponge_y[HERE] * sponge_z[HERE];
    (2.0 * p[HERE] - old[HERE] + v[HERE] * laplacian) * sponge
}
