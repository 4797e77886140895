//! The lints of Clippy that don't judge kernels.
//!
//! They are those whose advice the language refuses, and those that take the notation of the field for a mistake. Every
//! other lint stays: its advice holds in a kernel too. An attribute of the user's own comes after these and wins.

use proc_macro2::TokenStream;
use quote::quote;

/// For a kernel as the user wrote it, and for what it shares with others in a module.
pub(crate) fn of_a_kernel() -> TokenStream {
    quote! {
        #[allow(
            // A kernel has as many parameters as the equation has fields.
            clippy::too_many_arguments,
            // `0 * X + j * Y` and `-1 * X` name offsets as a table of them does, and `-1.0 * a` stands in formulas.
            clippy::erasing_op,
            clippy::identity_op,
            clippy::neg_multiply,
            // Coefficients are copied as they are published; `f32` rounds them as it should.
            clippy::excessive_precision,
            // `for n in 1..5 { sum += C[n] * (u[n * X] + u[-n * X]) }`: the index is an offset too.
            clippy::needless_range_loop,
            // A kernel can't call `contains`, `is_multiple_of`, `div_ceil`, `saturating_sub`, `matches!`, `swap`, `partial_cmp`.
            clippy::manual_range_contains,
            clippy::manual_is_multiple_of,
            clippy::manual_div_ceil,
            clippy::implicit_saturating_sub,
            clippy::match_like_matches_macro,
            clippy::manual_swap,
            clippy::neg_cmp_op_on_partial_ord
        )]
    }
}

/// For the function that the user calls in a step.
pub(crate) fn of_a_call() -> TokenStream {
    quote!(#[allow(clippy::too_many_arguments)])
}
