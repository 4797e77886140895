//! How the origins of results and fields travel to OpenCL kernels.
//!
//! A host can't pass a pointer into the middle of a buffer, so with each buffer comes the index of its origin: 64 bits, an
//! argument of its own. A kernel of very many fields would then have more arguments than some devices take; its origins
//! come two in an argument instead, 32 bits each. The kernel extends their sign.

use crate::analyse::analyse;
use crate::ir::{Kernel, Type};
use crate::verify::Verified;

/// The bytes of arguments that every OpenCL device takes: the least that `CL_DEVICE_MAX_PARAMETER_SIZE` may be.
const BYTES: usize = 1024;
/// The number of arguments that a device has to take if it takes no more than these bytes.
const COUNT: usize = 128;

/// Whether the origins come in pairs, because a device might not take the arguments otherwise.
pub fn has_paired_origins(kernel: &Verified) -> bool {
    let (count, bytes) = with_whole_origins(kernel, analyse(kernel).uses_index);
    count > COUNT || bytes > BYTES
}

/// The number of arguments and their bytes when each origin is an argument of 64 bits.
fn with_whole_origins(kernel: &Kernel, uses_index: bool) -> (usize, usize) {
    let buffers = kernel.outputs.len() + kernel.fields.len();
    // What is smaller than 32 bits travels as such.
    let scalars: usize = kernel.params.iter().map(|param| param.ty.bytes().max(Type::U32.bytes())).sum();
    // The first point, the size of the box and the parity; the global index.
    let integers = if uses_index { 10 } else { 7 };
    let strides = 2;
    let count = 2 * buffers + kernel.params.len() + strides + integers;
    (count, 16 * buffers + scalars + 8 * strides + 4 * integers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::kernels_of_file;

    fn is_paired(fields: usize, scalars: &str, value: &str) -> bool {
        let text = format!("#[stencil]\nfn k(u: &[Field<f32>; {fields}], {scalars}) -> f32 {{ u[0][X] + {value} }}");
        let source = kernels_of_file(&text).expect("a file");
        has_paired_origins(&source.kernels[0].compile().expect("a kernel").kernel)
    }

    #[test]
    fn origins_are_paired_where_the_least_device_could_not_take_them_whole() {
        // 2 * 59 + 9 + 1 = 128 arguments with the result.
        assert!(!is_paired(58, "a: f32", "a"));
        assert!(is_paired(59, "a: f32", "a"));
        assert!(is_paired(58, "a: f32, b: bool", "a"));
        // 2 * 57 + 12 + 2 = 128 with the global index.
        assert!(!is_paired(56, "a: f32, b: f32, p: Point", "a + p.j as f32"));
        assert!(is_paired(57, "a: f32, b: f32, p: Point", "a + p.j as f32"));
        // An index that isn't used doesn't travel.
        assert!(!is_paired(57, "a: f32, b: f32, p: Point", "a"));
        // 16 * 53 + 44 = 892 bytes and 16.5 scalars of 8; 115 arguments and 13 scalars.
        assert!(!is_paired(52, &(0..13).map(|n| format!("s{n}: f64,")).collect::<String>(), "s0 as f32"));
        assert!(is_paired(52, &(0..14).map(|n| format!("s{n}: f64,")).collect::<String>(), "s0 as f32"));
    }
}
