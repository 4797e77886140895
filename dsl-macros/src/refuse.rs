//! Mistakes as compile errors at the user's own tokens.

use polyhalo_codegen::front::{Options, Refused};
use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ItemFn;

use crate::expand::{facade, outer_function};

/// Every mistake at its place, beside a stand-in for the function, so that rustc and rust-analyzer go on with the rest
/// of the file as if it had compiled.
pub(crate) fn function(function: &ItemFn, refused: &Refused, options: &Options) -> TokenStream {
    let errors = refused.diagnostics.iter().map(|diagnostic| {
        let (first, last) = refused.spans.of(diagnostic.place);
        error(first, last, &diagnostic.text())
    });
    let stand_in = stand_in(function, options);
    quote!(#(#errors)* #stand_in)
}

/// The function's name, parameters and result without its body.
pub(crate) fn stand_in(function: &ItemFn, options: &Options) -> TokenStream {
    let krate = facade(options);
    let body = quote!(#krate::__private::refused());
    let stand_in = outer_function(function, &krate, body);
    quote!(#[allow(unused_variables, unused_mut)] #stand_in)
}

/// `::core::compile_error!{ "message" }` whose first token lies at `first` and last at `last`: rustc underlines all between.
pub(crate) fn error(first: Span, last: Span, message: &str) -> TokenStream {
    let punct = |c, spacing| {
        let mut punct = Punct::new(c, spacing);
        punct.set_span(first);
        TokenTree::Punct(punct)
    };
    let ident = |name| TokenTree::Ident(Ident::new(name, first));
    let mut text = proc_macro2::Literal::string(message);
    text.set_span(last);
    let mut group = Group::new(Delimiter::Brace, TokenStream::from(TokenTree::Literal(text)));
    group.set_span(last);
    TokenStream::from_iter([
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        ident("core"),
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        ident("compile_error"),
        punct('!', Spacing::Alone),
        TokenTree::Group(group),
    ])
}
