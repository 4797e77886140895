//! Parameters that nothing reads.

use polyhalo::prelude::*;

/// The neighbour's value; one field and one scalar are passed for nothing.
#[stencil]
pub fn idle(u: &Field<f64>, _spare: &Field<f32>, _unit: f64) -> f64 {
    u[Z]
}
