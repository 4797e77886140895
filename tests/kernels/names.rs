//! Names that mean something else in the languages of the targets, or can't be written there.

use polyhalo::prelude::*;

/// The kernel is called as a type of C; its fields, scalars and variables as keywords, functions, types and the names
/// that emitters use themselves.
#[stencil]
pub fn double(
    global: &Field<f64>,
    kernel: &Field<f64>,
    κ: &Field<f64>,
    sy: &Field<f64>,
    args: &Field<f64>,
    float: f64,
    r#type: bool,
) -> f64 {
    let out = float * 0.5;
    let get_global_id = |float4: f64| float4 * out;
    let i = global[X] - global[-X];
    let c = get_global_id(kernel[Y] - i);
    let i = i * float;
    let int = if r#type { κ[HERE] } else { -κ[-Z] };
    let c = c + args[HERE] * sy[HERE];
    let λt = get_global_id(int);
    i + c + int + λt
}
