//! What the attribute leaves in the user's program for a module.

use polyhalo_codegen::Diagnostic;
use polyhalo_codegen::front::{self, ModuleItem, ModuleKernel, Options, Refused};
use proc_macro2::{LineColumn, TokenStream};
use quote::{ToTokens, quote};
use syn::{AttrStyle, Item, ItemMod, UseTree, parse_quote};

use crate::{expand, lints, refuse};

/// The whole expansion of an annotated module: its kernels are replaced, what only they can use is gone, and the rest
/// is left. Without options, which could not be read, every kernel is refused.
pub(crate) fn module(item: &ItemMod, options: Option<&Options>) -> TokenStream {
    let parts = match front::module(item, options.unwrap_or(&Options::default())) {
        Ok(parts) => parts,
        Err(refused) => {
            let errors = refuse::errors(&refused);
            return quote!(#errors #item);
        }
    };
    let mut refused = Vec::new();
    let mut kernel = |kernel: &ModuleKernel| {
        let known = kernel.options.as_ref().filter(|_| options.is_some());
        let expanded = known.map(|options| expand::function(&kernel.function, &kernel.helpers, options));
        match expanded {
            Some(Ok(expanded)) => return expanded,
            Some(Err(wrong)) => refused.push(wrong),
            None => {}
        }
        refuse::stand_in(&kernel.function, known.unwrap_or(&Options::default()))
    };
    let kernels: Vec<Option<TokenStream>> = (parts.items.iter())
        .map(|item| match item {
            ModuleItem::Kernel(item) => Some(kernel(item)),
            ModuleItem::Other(_) => None,
        })
        .collect();
    let refused = front::merge(refused.into_iter().chain(parts.mistakes));
    let errors = refuse::errors(&refused);
    let mut content = used(item);
    for (item, kernel) in parts.items.iter().zip(kernels) {
        match item {
            ModuleItem::Kernel(_) => content.extend(kernel),
            ModuleItem::Other(item) => {
                if matches!(**item, Item::Fn(_) | Item::Const(_)) {
                    content.extend(lints::of_a_kernel());
                }
                left(item, &refused).to_tokens(&mut content);
            }
        }
    }
    // What a refused kernel would have used is no mistake of its own.
    let unused = (!refused.diagnostics.is_empty()).then(|| quote!(#[allow(unused)]));
    let ItemMod { attrs, vis, unsafety, mod_token, ident, .. } = item;
    let attrs = attrs.iter().cloned().map(|mut attribute| {
        attribute.style = AttrStyle::Outer;
        attribute
    });
    quote! {
        #errors
        #unused
        #(#attrs)*
        #vis #unsafety #mod_token #ident {
            #content
        }
    }
}

/// What stays of an item: of a function in which mistakes were found only the signature, so that rustc doesn't repeat them.
fn left(item: &Item, refused: &Refused) -> Item {
    let mut item = item.clone();
    if let Item::Fn(function) = &mut item {
        let braces = function.block.brace_token.span;
        let at = |place: LineColumn| (place.line, place.column);
        let inside = at(braces.open().start())..at(braces.close().end());
        let is_inside = |diagnostic: &Diagnostic| {
            inside.contains(&(diagnostic.place.line as usize, diagnostic.place.column as usize))
        };
        if refused.diagnostics.iter().any(is_inside) {
            *function.block = parse_quote!({ ::core::unreachable!() });
        }
    }
    item
}

/// A use of the attribute's name where the module imports it by name: with the attributes gone, nothing else uses it.
fn used(item: &ItemMod) -> TokenStream {
    fn names_it(tree: &UseTree) -> bool {
        match tree {
            UseTree::Path(path) => names_it(&path.tree),
            UseTree::Group(group) => group.items.iter().any(names_it),
            UseTree::Name(name) => name.ident == "stencil",
            UseTree::Rename(_) | UseTree::Glob(_) => false,
        }
    }
    let mut items = item.content.iter().flat_map(|(_, items)| items);
    if items.any(|item| matches!(item, Item::Use(import) if names_it(&import.tree))) {
        quote!(
            #[allow(unused_imports)]
            use stencil as _;
        )
    } else {
        TokenStream::new()
    }
}
