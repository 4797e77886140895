//! What the attribute leaves in the user's program for a function.

use polyhalo_codegen::front::{Compiled, Instance, Options, Refused, compile_instances, instances};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, GenericParam, Item, ItemFn, parse_quote, parse_quote_spanned};

use crate::call::{call, outer_function};
use crate::compile::{Code, compile_all};
use crate::descriptor::descriptor;
use crate::reference::{point, reference};
use crate::refuse;

/// The whole expansion of an annotated function. `helpers` are the items of its module that it uses.
pub(crate) fn function(function: &ItemFn, helpers: &[Item], options: &Options) -> Result<TokenStream, Refused> {
    let instances = instances(function, helpers, options)?;
    let compiled = compile_instances(&instances, options)?;
    let krate = facade(options);
    let code = match compile_all(&compiled) {
        Ok(code) => code,
        Err(log) => {
            let span = function.sig.ident.span();
            let (error, stand_in) = (refuse::error(span, span, &log), refuse::stand_in(function, options));
            return Ok(quote!(#error #stand_in));
        }
    };
    let kernels: Vec<TokenStream> = instances
        .iter()
        .zip(&compiled)
        .zip(&code)
        .map(|((instance, compiled), code)| kernel(instance, compiled, code, &krate))
        .collect();
    let parameters = &compiled[0].parameters;
    if let [kernel] = &kernels[..]
        && instances[0].arguments.is_empty()
    {
        let (tracked, call) = (tracked(), call(&krate, parameters, &function.sig, &quote!(&__POLYHALO_KERNEL)));
        return Ok(outer_function(function, &krate, None, quote!(#kernel #tracked #call)));
    }
    Ok(generic(function, &krate, &instances, &kernels, |chosen| call(&krate, parameters, &function.sig, chosen)))
}

/// The path of the facade.
pub(crate) fn facade(options: &Options) -> syn::Path {
    options.krate.clone().unwrap_or_else(|| parse_quote!(::polyhalo))
}

/// The items of one kernel, the last of which is the constant `__POLYHALO_KERNEL`.
fn kernel(instance: &Instance, compiled: &Compiled, code: &Code, krate: &syn::Path) -> TokenStream {
    let function = &instance.function;
    let reference = reference(instance, krate);
    let point = point(function, krate, &compiled.parameters);
    let native = native(code, krate);
    let descriptor = descriptor(function, krate, &compiled.kernel, code);
    quote!(#reference #point #native #descriptor)
}

/// The emitted Rust for the host device.
fn native(code: &Code, krate: &syn::Path) -> TokenStream {
    let native: TokenStream = code.native.parse().expect("the native emitter writes Rust");
    quote! {
        #[allow(unsafe_code, unused, clippy::all, clippy::pedantic)]
        mod __polyhalo_native {
            use #krate::__private::{
                Accumulator, BoxArgs, HostCode, Largest, Least, Total, prefetch, store, store_alternate,
            };
            #native
        }
    }
}

/// Cargo rebuilds when these are set or changed, so that PTX and code objects follow the compilers.
fn tracked() -> TokenStream {
    let tracked = ["POLYHALO_NVRTC", "POLYHALO_CLANG", "POLYHALO_CACHE"];
    let tracked = tracked.map(|name| {
        quote!(
            const _: Option<&str> = option_env!(#name);
        )
    });
    quote!(#(#tracked)*)
}

/// The function under its generic name, which finds its kernel by a hidden trait.
fn generic(
    function: &ItemFn,
    krate: &syn::Path,
    instances: &[Instance],
    kernels: &[TokenStream],
    call: impl FnOnce(&TokenStream) -> TokenStream,
) -> TokenStream {
    let private = quote!(#krate::__private);
    let name = function.sig.ident.unraw();
    // rustc shows the name where an instance is missing, so it is one to be read.
    let span = function.sig.ident.span();
    let instances_trait = Ident::new(&format!("instance_of_{name}"), span);
    let names: Vec<&Ident> = instances[0].arguments.iter().map(|(name, _)| name).collect();
    let declared = function.sig.generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(ty) => {
            let ident = &ty.ident;
            Some(quote!(#ident))
        }
        GenericParam::Const(constant) => {
            let (ident, ty) = (&constant.ident, &constant.ty);
            Some(quote!(const #ident: #ty))
        }
    });
    let asked: Vec<String> = names.iter().map(|name| name.unraw()).map(|name| format!("{name} = {{{name}}}")).collect();
    let message = format!("the stencil `{name}` has no instance with {}", asked.join(", "));
    let all: Vec<String> = instances.iter().map(|instance| format!("`{}`", instance.describe())).collect();
    let note = format!("its instances are {}; the list in its attribute `#[stencil(..)]` names them", all.join(", "));
    let cfgs: Vec<&Attribute> = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    let implemented = instances.iter().zip(kernels).map(|(instance, kernel)| {
        let values = instance.arguments.iter().map(|(_, value)| value);
        quote! {
            #(#cfgs)*
            const _: () = {
                #kernel
                // rustc would list them all, in its own words.
                #[diagnostic::do_not_recommend]
                impl #instances_trait<#(#values),*> for () {
                    fn kernel() -> &'static #private::KernelDesc {
                        &__POLYHALO_KERNEL
                    }
                }
            };
        }
    });
    let chosen = quote!(<() as #instances_trait<#(#names),*>>::kernel());
    let bound = parse_quote_spanned!(span=> (): #instances_trait<#(#names),*>);
    let (vis, tracked, call) = (&function.vis, tracked(), call(&chosen));
    let outer = outer_function(function, krate, Some(bound), quote!(#tracked #call));
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, unreachable_pub)]
        #[diagnostic::on_unimplemented(message = #message, label = "there is no such instance", note = #note)]
        #vis trait #instances_trait<#(#declared),*> {
            fn kernel() -> &'static #private::KernelDesc;
        }
        #(#implemented)*
        #outer
    }
}

/// The name of the copy of the user's function.
pub(crate) fn reference_name() -> Ident {
    format_ident!("__polyhalo_reference")
}
