//! The attribute `#[stencil]`: compiles an annotated function for every target while the user's program is built.
//!
//! The work is done by `polyhalo-codegen`; here its mistakes are put at the user's own tokens and its results into the
//! program. Use it through the crate `polyhalo`, which documents it.

mod compile;
mod expand;
mod refuse;

use proc_macro2::TokenStream;

/// Compiles a function into a stencil kernel.
///
/// The function computes the new value of one point from fields read at constant offsets. Outside, the same name takes the
/// simulation's fields and returns a call to be placed in a step. The options are `contract` (multiply and add may be
/// fused) and `crate = path` (where `polyhalo` is, if renamed).
#[proc_macro_attribute]
pub fn stencil(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    stencil_tokens(options.into(), item.into()).into()
}

fn stencil_tokens(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = match syn::parse2(options) {
        Ok(options) => options,
        Err(error) => return refuse::with_item(error.to_compile_error(), item),
    };
    match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) => expand::function(&function, &options),
        Err(_) if syn::parse2::<syn::Item>(item.clone()).is_ok() => {
            let message =
                "#[stencil] stands on a function\n  = help: write `#[stencil] fn name(u: &Field<f64>) -> f64 { .. }`";
            let first = item.clone().into_iter().next();
            let span = first.map_or_else(proc_macro2::Span::call_site, |token| token.span());
            refuse::with_item(syn::Error::new(span, message).to_compile_error(), item)
        }
        Err(error) => error.to_compile_error(),
    }
}
