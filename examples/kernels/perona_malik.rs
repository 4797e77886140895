//! Anisotropic diffusion (Perona and Malik 1990): an image is smoothed, its edges are kept.

use polyhalo::prelude::*;

/// One step: what flows from the six neighbours falls off with the square of the difference.
#[stencil]
pub fn perona_malik(u: &Field<f32>, kappa: f32, gamma: f32) -> f32 {
    let flow = |e: Offset| {
        let d = u[e] - u[HERE];
        let ratio = d / kappa;
        (-(ratio * ratio)).exp() * d
    };
    u[HERE] + gamma * (flow(X) + flow(-X) + flow(Y) + flow(-Y) + flow(Z) + flow(-Z))
}
