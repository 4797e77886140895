//! Mistakes as compile errors at the user's own tokens.

use std::collections::BTreeSet;

use polyhalo_codegen::front::{Options, Refused};
use polyhalo_codegen::ir::{Field, Role};
use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, FnArg, ItemFn, Pat, PathArguments, PathSegment, TypeArray, parse_quote};

use crate::call::outer_function;
use crate::expand::facade;

/// Every mistake at its place, beside a stand-in for the function, so that rustc and rust-analyzer go on with the rest
/// of the file as if it had compiled.
pub(crate) fn function(function: &ItemFn, refused: &Refused, options: &Options) -> TokenStream {
    let (errors, stand_in) = (errors(refused), stand_in(function, options));
    quote!(#errors #stand_in)
}

/// Every mistake at its place.
pub(crate) fn errors(refused: &Refused) -> TokenStream {
    let errors = refused.diagnostics.iter().map(|diagnostic| {
        let (first, last) = refused.spans.of(diagnostic.place);
        error(first, last, &diagnostic.text())
    });
    quote!(#(#errors)*)
}

/// The function's name, parameters and result without its body.
pub(crate) fn stand_in(function: &ItemFn, options: &Options) -> TokenStream {
    let krate = facade(options);
    let body = quote!(#krate::__private::refused());
    let mut function = function.clone();
    // A second attribute was refused; left here, it would be carried out.
    function.attrs.retain(|attribute| attribute.path().segments.last().is_none_or(|last| last.ident != "stencil"));
    plain_parameters(&mut function);
    PlainTypes.visit_signature_mut(&mut function.sig);
    let stand_in = outer_function(&function, &krate, None, body);
    quote!(#[allow(unused_variables)] #stand_in)
}

/// Leaves each name once and no other patterns: rustc would repeat what was said about them.
fn plain_parameters(function: &mut ItemFn) {
    let mut names = BTreeSet::new();
    for input in &mut function.sig.inputs {
        let FnArg::Typed(input) = input else { continue };
        match &mut *input.pat {
            // `X` would be the constant, not a name.
            Pat::Ident(name)
                if !["X", "Y", "Z", "HERE"].iter().any(|offset| name.ident == offset)
                    && names.insert(name.ident.unraw().to_string()) =>
            {
                (name.by_ref, name.mutability, name.subpat) = (None, None, None);
            }
            other => *other = parse_quote!(_),
        }
    }
}

/// Completes types that rustc would complain of again.
struct PlainTypes;

impl VisitMut for PlainTypes {
    fn visit_path_segment_mut(&mut self, segment: &mut PathSegment) {
        let folds = Role::FOLDS.into_iter().filter_map(Role::type_name);
        let incomplete = Field::type_names().into_iter().chain(folds).any(|name| segment.ident == name)
            && segment.arguments.is_none();
        if incomplete {
            segment.arguments = PathArguments::AngleBracketed(parse_quote!(<f64>));
        }
        visit_mut::visit_path_segment_mut(self, segment);
    }

    fn visit_type_array_mut(&mut self, array: &mut TypeArray) {
        if !matches!(array.len, Expr::Lit(_) | Expr::Path(_)) {
            array.len = parse_quote!(1);
        }
        visit_mut::visit_type_array_mut(self, array);
    }
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
