//! The user's function as it stands: the oracle of all other code.

use polyhalo_codegen::front::{Instance, Parameter, ParameterKind};
use polyhalo_codegen::ir::{Field, Id};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::visit_mut::{VisitMut, visit_type_path_mut};
use syn::{ItemFn, PathArguments, ReturnType, TypePath, parse_quote};

use crate::expand::reference_name;
use crate::lints;

/// The function over views of one point. In an instance, style is not judged: what is superfluous with these values may be
/// needed with others.
pub(crate) fn reference(instance: &Instance, krate: &syn::Path) -> TokenStream {
    let function = &instance.function;
    let mut inner = function.clone();
    // Only what steers lints belongs to the copy; documentation and `#[cfg]` stay with the name outside.
    let lints = ["allow", "expect", "warn", "deny", "forbid"];
    inner.attrs.retain(|attribute| lints.iter().any(|lint| attribute.path().is_ident(lint)));
    inner.sig.ident = reference_name();
    FieldsToViews { krate }.visit_signature_mut(&mut inner.sig);
    FieldsToViews { krate }.visit_block_mut(&mut inner.block);
    let ItemFn { attrs, sig, block, .. } = &inner;
    let style = (!instance.arguments.is_empty()).then(|| quote!(#[allow(clippy::all)]));
    let lints = lints::of_a_kernel();
    let names = Field::type_names().map(|name| format_ident!("{name}"));
    quote! {
        #lints
        #(#attrs)*
        // The copy's block is the user's inside another; and a view has a lifetime that a field has not.
        #[allow(unused_braces, elided_lifetimes_in_paths)]
        #style
        #[inline]
        #sig {
            #[allow(unused_imports)]
            use #krate::__private::{#(View as #names),*};
            #block
        }
    }
}

/// `Field<T>` becomes the view's full path, `View<'_, T>`.
struct FieldsToViews<'a> {
    krate: &'a syn::Path,
}

impl VisitMut for FieldsToViews<'_> {
    fn visit_type_path_mut(&mut self, path: &mut TypePath) {
        if let Some(last) = path.path.segments.last()
            && Field::type_names().iter().any(|name| last.ident == name)
        {
            let krate = self.krate;
            let arguments = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => arguments.args.iter().collect::<Vec<_>>(),
                PathArguments::None | PathArguments::Parenthesized(_) => Vec::new(),
            };
            *path = parse_quote!(#krate::__private::View<'_ #(, #arguments)*>);
        }
        visit_type_path_mut(self, path);
    }
}

/// Runs the reference function at the point that the reference device stands at.
pub(crate) fn point(function: &ItemFn, krate: &syn::Path, parameters: &[Parameter]) -> TokenStream {
    let field = |id: &Id<Field>| {
        let index = id.index();
        quote!(at.field(#index))
    };
    let arguments = parameters.iter().map(|parameter| match &parameter.kind {
        ParameterKind::Field(id) => {
            let field = field(id);
            quote!(&#field)
        }
        ParameterKind::Fields(ids) => {
            let fields = ids.iter().map(field);
            quote!(&[#(#fields),*])
        }
        ParameterKind::Scalar(id) => {
            let index = id.index();
            quote!(at.scalar(#index))
        }
        ParameterKind::Point => quote!(at.point()),
    });
    let ReturnType::Type(_, ty) = &function.sig.output else { unreachable!("the front end asks for a result") };
    let name = reference_name();
    quote! {
        fn __polyhalo_point(at: &mut #krate::__private::PointArgs<'_>) {
            let values: #ty = #name(#(#arguments),*);
            at.store(0, values);
        }
    }
}
