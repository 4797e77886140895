//! The attribute `#[stencil]`: compiles an annotated function for every target while the user's program is built.
//!
//! The work is done by `polyhalo-codegen`; here its mistakes are put at the user's own tokens and its results into the
//! program. Use it through the crate `polyhalo`, which documents it.

mod compile;
mod expand;
mod refuse;

use polyhalo_codegen::front::Options;
use proc_macro2::TokenStream;
use quote::quote;

/// Compiles a function into a stencil kernel.
///
/// The function computes the new value of one point, or a tuple or an array of such, from fields read at constant offsets,
/// scalars and the global indices of the point. Outside, the same name takes the simulation's fields and the scalars, but
/// not the point, and returns a call to be placed in a step. The options are `contract` (multiply and add may be
/// fused) and `crate = path` (where `polyhalo` is, if renamed).
#[proc_macro_attribute]
pub fn stencil(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    stencil_tokens(options.into(), item.into()).into()
}

fn stencil_tokens(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => return no_function(&error, item),
    };
    match syn::parse2(options) {
        Ok(options) => expand::function(&function, &options),
        Err(error) => {
            let stand_in = refuse::stand_in(&function, &Options::default());
            let error = error.to_compile_error();
            quote!(#error #stand_in)
        }
    }
}

/// The attribute stands on something else: said at its first token, and the item is left as it was.
fn no_function(error: &syn::Error, item: TokenStream) -> TokenStream {
    if syn::parse2::<syn::Item>(item.clone()).is_err() {
        return error.to_compile_error();
    }
    let message = "#[stencil] stands on a function\n  = help: write `#[stencil] fn name(u: &Field<f64>) -> f64 { .. }`";
    let first = item.clone().into_iter().next();
    let span = first.map_or_else(proc_macro2::Span::call_site, |token| token.span());
    let error = syn::Error::new(span, message).to_compile_error();
    quote!(#error #item)
}
