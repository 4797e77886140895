//! Signs and groupings that a careless printer of expressions gets wrong.

use polyhalo::prelude::*;

/// Nested negation, and operators that are not associative.
#[stencil]
#[allow(clippy::nonminimal_bool, clippy::neg_cmp_op_on_partial_ord, reason = "the nested `!` are the test")]
pub fn signs(u: &Field<f64>, a: f64, b: f64) -> f64 {
    let negated = -(-(-u[X])) - -(-(u[Y] - a));
    let outer = -u[Z].abs() - (-u[-Z]).abs();
    let differences = a - (b - (u[X] - (u[-X] - a))) - (b + u[HERE]) - (u[Y] - a - b);
    let quotients = a / (b / u[X]) / (u[Y] / a / b) * (u[Z] / (a * b)) / -b;
    let sums = (a + (b + u[X])) + ((u[Y] + a) + -(b + u[Z]));
    let between = !(!(a < b) || !(b < u[HERE] && (u[X] < a || !(a == b))));
    let chosen = if !between && (a < b) != (b < u[HERE]) { -negated } else { negated };
    chosen * -(outer * -differences) - -quotients * (sums - (-a - -b))
}
