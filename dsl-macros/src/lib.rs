//! The attribute `#[stencil]`: compiles an annotated function for every target while the user's program is built.
//!
//! The work is done by `polyhalo-codegen`; here its mistakes are put at the user's own tokens and its results into the
//! program. Use it through the crate `polyhalo`, which documents it.

mod call;
mod compile;
mod descriptor;
mod expand;
mod lints;
mod module;
mod reference;
mod refuse;
#[cfg(test)]
mod tests;

use polyhalo_codegen::front::Options;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Item;

/// Compiles a function, or the annotated functions of a module, into stencil kernels.
///
/// The function computes the new value of one point, or a tuple or an array of such, from fields read at constant offsets,
/// scalars and the global indices of the point. Outside, the same name takes the simulation's fields and the scalars, but
/// not the point, and returns a call to be placed in a step.
///
/// A generic function lists what it is compiled for, `#[stencil(T = f32 | f64)]`, `#[stencil(R = 1 | 2 | 4)]` for a
/// `const R: usize`; several lists give all combinations. Outside it is as generic as it is written.
///
/// In an annotated module the functions that carry the attribute are kernels. What they use of the module, constants and
/// functions, also over fields, is compiled into them. Functions over fields exist inside kernels only.
///
/// Further options are `contract` (multiply and add may be fused) and `crate = path` (where `polyhalo` is, if renamed).
/// Those of a module hold for its kernels too.
#[proc_macro_attribute]
pub fn stencil(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    stencil_tokens(options.into(), item.into()).into()
}

fn stencil_tokens(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = syn::parse2::<Options>(options);
    let unread = options.as_ref().err().map(syn::Error::to_compile_error);
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(function)) => {
            let expanded = match &options {
                Ok(options) => expand::function(&function, &[], options)
                    .unwrap_or_else(|refused| refuse::function(&function, &refused, options)),
                Err(_) => refuse::stand_in(&function, &Options::default()),
            };
            quote!(#unread #expanded)
        }
        Ok(Item::Mod(item)) => {
            let expanded = module::module(&item, options.as_ref().ok());
            quote!(#unread #expanded)
        }
        Ok(_) => neither(item),
        Err(error) => error.to_compile_error(),
    }
}

/// The attribute stands on something else: said at its first token, and the item is left as it was.
fn neither(item: TokenStream) -> TokenStream {
    let message = "#[stencil] stands on a function or a module\n  \
                   = help: write `#[stencil] fn name(u: &Field<f64>) -> f64 { .. }`";
    let first = item.clone().into_iter().next();
    let span = first.map_or_else(proc_macro2::Span::call_site, |token| token.span());
    let error = syn::Error::new(span, message).to_compile_error();
    quote!(#error #item)
}
