//! Puts types in the place of names, and takes lifetimes away.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{ExprPath, GenericArgument, Ident, ItemFn, Lifetime, Type, TypePath, TypeReference};

/// The substitution; [`VisitMut`] carries it out. The new tokens get the spans of the old ones, so that mistakes are
/// shown where the user wrote the name.
#[derive(Clone, Default)]
pub(super) struct Substitute {
    /// What names of types stand for.
    pub(super) types: BTreeMap<String, Type>,
    /// Lifetimes that are left to inference.
    pub(super) lifetimes: BTreeSet<String>,
}

impl Substitute {
    fn is_dropped(&self, lifetime: &Lifetime) -> bool {
        self.lifetimes.contains(&lifetime.ident.to_string())
    }
}

impl VisitMut for Substitute {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::Path(TypePath { qself: None, path, .. }) = &*ty
            && let Some(name) = path.get_ident()
            && let Some(meant) = self.types.get(&name.unraw().to_string())
        {
            *ty = respanned(meant, name.span());
            return;
        }
        visit_mut::visit_type_mut(self, ty);
    }

    /// `T::EPSILON`. A single name is a value, not a type.
    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        if path.qself.is_none() && path.path.leading_colon.is_none() && path.path.segments.len() > 1 {
            let first = &mut path.path.segments[0].ident;
            if let Some(Type::Path(meant)) = self.types.get(&first.unraw().to_string())
                && let Some(meant) = meant.path.get_ident()
            {
                *first = Ident::new(&meant.to_string(), first.span());
            }
        }
        visit_mut::visit_expr_path_mut(self, path);
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.as_ref().is_some_and(|lifetime| self.is_dropped(lifetime)) {
            reference.lifetime = None;
        }
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_generic_argument_mut(&mut self, argument: &mut GenericArgument) {
        if let GenericArgument::Lifetime(lifetime) = argument
            && self.is_dropped(lifetime)
        {
            *lifetime = Lifetime::new("'_", lifetime.span());
        }
        visit_mut::visit_generic_argument_mut(self, argument);
    }

    /// The generic parameters of a nested function hide those around it.
    fn visit_item_fn_mut(&mut self, function: &mut ItemFn) {
        let around = self.clone();
        for parameter in function.sig.generics.type_params() {
            self.types.remove(&parameter.ident.unraw().to_string());
        }
        for parameter in function.sig.generics.lifetimes() {
            self.lifetimes.remove(&parameter.lifetime.ident.to_string());
        }
        visit_mut::visit_item_fn_mut(self, function);
        *self = around;
    }
}

/// The same type at another place.
fn respanned(ty: &Type, span: Span) -> Type {
    struct Respan(Span);
    impl VisitMut for Respan {
        fn visit_ident_mut(&mut self, ident: &mut Ident) {
            ident.set_span(self.0);
        }
    }
    let mut ty = ty.clone();
    Respan(span).visit_type_mut(&mut ty);
    ty
}
