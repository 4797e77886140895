//! The function under the user's name: the fields and scalars as written, and as the result a call to be placed in a step.

use polyhalo_codegen::front::{Parameter, ParameterKind};
use polyhalo_codegen::ir;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{
    FnArg, Generics, Ident, ItemFn, ReturnType, Signature, Type, TypeParam, WherePredicate, parse_quote,
    parse_quote_spanned,
};

use crate::lints;

/// The whole function around a body. Scalars may be whatever becomes an argument, and the point isn't passed. `bound` is
/// what a generic function asks for beside what the user wrote.
pub(crate) fn outer_function(
    function: &ItemFn,
    krate: &syn::Path,
    bound: Option<WherePredicate>,
    body: TokenStream,
) -> TokenStream {
    let ItemFn { attrs, vis, sig, .. } = function;
    let ident = &sig.ident;
    let generics = bounded(&sig.generics, krate, bound);
    let inputs =
        sig.inputs.iter().filter(|input| !is_point(input)).map(|input| outer_parameter(input, krate, &generics));
    let result = match &sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    let clause = &generics.where_clause;
    let lints = lints::of_a_call();
    quote! {
        #lints
        #(#attrs)*
        #[must_use = "a call computes nothing by itself; place it in a step with `update`"]
        #vis fn #ident #generics (#(#inputs),*) -> #krate::__private::Call<#result> #clause {
            #body
        }
    }
}

/// The generic parameters with what fields ask of their types, where the user has bounds already, and `bound`.
fn bounded(generics: &Generics, krate: &syn::Path, bound: Option<WherePredicate>) -> Generics {
    let in_clause = |ty: &Ident| {
        generics.where_clause.iter().flat_map(|clause| &clause.predicates).any(
            |predicate| matches!(predicate, WherePredicate::Type(bounds) if bounds.bounded_ty == parse_quote!(#ty)),
        )
    };
    let mut bounded = generics.clone();
    let mut predicates: Vec<WherePredicate> = Vec::new();
    for TypeParam { ident, colon_token, bounds, .. } in bounded.type_params_mut() {
        if in_clause(ident) {
            predicates.push(parse_quote!(#ident: #krate::__private::Element));
        } else {
            colon_token.get_or_insert_default();
            bounds.push(parse_quote!(#krate::__private::Element));
        }
    }
    predicates.extend(bound);
    if !predicates.is_empty() {
        bounded.make_where_clause().predicates.extend(predicates);
    }
    bounded
}

/// Looked at by names only: it is asked of a refused function too.
fn outer_parameter(input: &FnArg, krate: &syn::Path, generics: &Generics) -> FnArg {
    let mut input = input.clone();
    if let FnArg::Typed(input) = &mut input
        && is_scalar(&input.ty, generics)
    {
        let ty = &input.ty;
        // With the span of the type, so that rustc shows it.
        let (span, krate) = (ty.span(), at(krate, ty.span()));
        *input.ty = parse_quote_spanned!(span=> impl #krate::__private::IntoArgument<#ty>);
    }
    input
}

/// A path at another place.
fn at(path: &syn::Path, span: Span) -> TokenStream {
    let respanned = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    path.to_token_stream().into_iter().map(respanned).collect()
}

/// Whether a type is one of numbers or truth values.
fn is_scalar(ty: &Type, generics: &Generics) -> bool {
    match ty {
        Type::Paren(inner) => is_scalar(&inner.elem, generics),
        Type::Group(inner) => is_scalar(&inner.elem, generics),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let known = || ir::Type::ALL.iter().any(|ty| last.ident == ty.name());
            let parameter = || path.path.segments.len() == 1 && generics.type_params().any(|ty| ty.ident == last.ident);
            last.arguments.is_none() && (known() || parameter())
        }),
        _ => false,
    }
}

/// Whether a parameter is the point that is updated.
fn is_point(input: &FnArg) -> bool {
    fn named_point(ty: &Type) -> bool {
        match ty {
            Type::Paren(inner) => named_point(&inner.elem),
            Type::Group(inner) => named_point(&inner.elem),
            Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Point"),
            _ => false,
        }
    }
    matches!(input, FnArg::Typed(input) if named_point(&input.ty))
}

/// The body: a call of `kernel`. All instances of a function have the same parameters but for the lengths of arrays.
pub(crate) fn call(
    krate: &syn::Path,
    parameters: &[Parameter],
    signature: &Signature,
    kernel: &TokenStream,
) -> TokenStream {
    let private = quote!(#krate::__private);
    let inputs = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => Some(input),
        FnArg::Receiver(_) => None,
    });
    let (mut fields, mut scalars) = (Vec::new(), Vec::new());
    for (parameter, input) in parameters.iter().zip(inputs) {
        let (name, ty) = (&input.pat, &input.ty);
        match &parameter.kind {
            ParameterKind::Field(_) => fields.push(quote!(.chain([#name.reference()]))),
            ParameterKind::Fields(_) => fields.push(quote!(.chain(#name.iter().map(|field| field.reference())))),
            ParameterKind::Scalar(_) => scalars.push(quote!(#private::argument::<#ty>(#name))),
            ParameterKind::Point => {}
        }
    }
    quote! {
        #private::Call::new(
            #kernel,
            ::core::iter::empty() #(#fields)* .collect(),
            ::std::vec![#(#scalars),*],
        )
    }
}
