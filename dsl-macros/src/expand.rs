//! What the attribute leaves in the user's program.

use polyhalo_codegen::emit::text::{entry_point, rows_entry_point};
use polyhalo_codegen::front::{Options, Parameter, ParameterKind, compile as front};
use polyhalo_codegen::ir::{self, Field, Id};
use polyhalo_codegen::{Verified, analyse};
use proc_macro2::{Literal, Span, TokenStream};
use quote::quote;
use syn::visit_mut::{VisitMut, visit_type_path_mut};
use syn::{FnArg, Ident, ItemFn, PathArguments, ReturnType, Signature, Type, TypePath, parse_quote};

use crate::compile::{Compiled, compile};
use crate::refuse;

/// The whole expansion of an annotated function.
pub(crate) fn function(function: &ItemFn, options: &Options) -> TokenStream {
    let compiled = match front(function, options) {
        Ok(compiled) => compiled,
        Err(refused) => return refuse::function(function, &refused, options),
    };
    let code = match compile(&compiled.kernel) {
        Ok(code) => code,
        Err(log) => return refuse::error(function.sig.ident.span(), function.sig.ident.span(), &log),
    };
    let krate = facade(options);
    let reference = reference(function, &krate);
    let point = point(function, &krate, &compiled.parameters);
    let native = native(&code, &krate);
    let descriptor = descriptor(function, &krate, &compiled.kernel, &code);
    let call = call(&krate, &compiled.parameters, &function.sig);
    // cargo rebuilds when these are set or changed, so that PTX and code objects follow the compilers.
    let tracked = ["POLYHALO_NVRTC", "POLYHALO_CLANG", "POLYHALO_CACHE"];
    let tracked = tracked.map(|name| {
        quote!(
            const _: Option<&str> = option_env!(#name);
        )
    });
    outer_function(
        function,
        &krate,
        quote! {
            #reference
            #point
            #native
            #descriptor
            #(#tracked)*
            #call
        },
    )
}

/// The path of the facade.
pub(crate) fn facade(options: &Options) -> syn::Path {
    options.krate.clone().unwrap_or_else(|| parse_quote!(::polyhalo))
}

/// The function under the user's name: the signature as written, but for the point, which isn't passed, and the result,
/// which is a call to be placed in a step.
pub(crate) fn outer_function(function: &ItemFn, krate: &syn::Path, body: TokenStream) -> TokenStream {
    let ItemFn { attrs, vis, sig, .. } = function;
    let (ident, generics) = (&sig.ident, &sig.generics);
    let inputs = sig.inputs.iter().filter(|input| !is_point(input));
    let result = match &sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    quote! {
        #(#attrs)*
        #[must_use = "a call computes nothing by itself; place it in a step with `update`"]
        #vis fn #ident #generics (#(#inputs),*) -> #krate::Call<#result> {
            #body
        }
    }
}

/// Whether a parameter is the point that is updated. It is asked of a refused function too, so it looks at names only.
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

/// The user's function as it stands, over views of one point: the oracle of everything else.
fn reference(function: &ItemFn, krate: &syn::Path) -> TokenStream {
    let mut inner = function.clone();
    // Only what steers lints belongs to the copy; documentation and `#[cfg]` stay with the name outside.
    let lints = ["allow", "expect", "warn", "deny", "forbid"];
    inner.attrs.retain(|attribute| lints.iter().any(|lint| attribute.path().is_ident(lint)));
    inner.vis = syn::Visibility::Inherited;
    inner.sig.ident = Ident::new("__polyhalo_reference", Span::call_site());
    for input in &mut inner.sig.inputs {
        if let FnArg::Typed(input) = input {
            FieldsToViews { krate }.visit_type_mut(&mut input.ty);
        }
    }
    let block = &inner.block;
    let sig = &inner.sig;
    quote! {
        // The copy's block is the user's inside another; and a view has a lifetime that a field has not.
        #[allow(unused_braces, elided_lifetimes_in_paths)]
        #[inline]
        #sig {
            #[allow(unused_imports)]
            use #krate::__private::View as Field;
            #block
        }
    }
}

/// `Field<T>` in a signature becomes the view's full path, `View<'_, T>`.
struct FieldsToViews<'a> {
    krate: &'a syn::Path,
}

impl VisitMut for FieldsToViews<'_> {
    fn visit_type_path_mut(&mut self, path: &mut TypePath) {
        if let Some(last) = path.path.segments.last()
            && last.ident == "Field"
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
fn point(function: &ItemFn, krate: &syn::Path, parameters: &[Parameter]) -> TokenStream {
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
    quote! {
        fn __polyhalo_point(at: &mut #krate::__private::PointArgs<'_>) {
            let values: #ty = __polyhalo_reference(#(#arguments),*);
            at.store(0, values);
        }
    }
}

/// The emitted Rust for the host device.
fn native(code: &Compiled, krate: &syn::Path) -> TokenStream {
    let native: TokenStream = code.native.parse().expect("the native emitter writes Rust");
    quote! {
        #[allow(unsafe_code, unused, clippy::all, clippy::pedantic)]
        mod __polyhalo_native {
            use #krate::__private::{BoxArgs, HostCode, prefetch, store};
            #native
        }
    }
}

/// The facts and the code as a constant, and its entry in the registry.
fn descriptor(function: &ItemFn, krate: &syn::Path, kernel: &Verified, code: &Compiled) -> TokenStream {
    let private = quote!(#krate::__private);
    let analysis = analyse(kernel);
    let name = &kernel.name;
    let line = Literal::u32_unsuffixed(u32::try_from(function.sig.fn_token.span.start().line).unwrap_or(0));
    let fields = kernel.fields.enumerate().map(|(id, field)| {
        let (name, ty) = (&field.name, scalar_type(&private, field.ty));
        let reads = analysis.footprints[id.index()].reads.iter().map(|(offset, place)| {
            let [x, y, z] = offset.0.map(Literal::i32_unsuffixed);
            let line = Literal::u32_unsuffixed(place.line);
            quote!(#private::Read { offset: [#x, #y, #z], line: #line })
        });
        quote!(#private::FieldDesc { name: #name, ty: #ty, reads: &[#(#reads),*] })
    });
    let params = kernel.params.iter().map(|param| {
        let (name, ty) = (&param.name, scalar_type(&private, param.ty));
        quote!(#private::ParamDesc { name: #name, ty: #ty })
    });
    let outputs = kernel.outputs.iter().map(|output| scalar_type(&private, output.ty));
    let [loads, flops, bytes] = [analysis.loads, analysis.flops, analysis.bytes].map(Literal::usize_unsuffixed);
    let (contract, uses_index) = (kernel.contract, analysis.uses_index);
    let vendor_functions = analysis.vendor_functions.iter().map(|function| function.name());
    let Compiled { cuda, hip, opencl, .. } = code;
    let ptx = match &code.ptx {
        Some(ptx) => quote!(Some(#ptx)),
        None => quote!(None),
    };
    let objects = code.hip_objects.iter().map(|(arch, object)| {
        let object = Literal::byte_string(object);
        quote!((#arch, #object))
    });
    let spirv = Literal::byte_string(&code.spirv);
    let (entry, rows_entry) = (entry_point(name), rows_entry_point(name));
    quote! {
        static __POLYHALO_KERNEL: #private::KernelDesc = #private::KernelDesc {
            name: #name,
            module: module_path!(),
            file: file!(),
            line: #line,
            fields: &[#(#fields),*],
            params: &[#(#params),*],
            outputs: &[#(#outputs),*],
            loads: #loads,
            flops: #flops,
            bytes: #bytes,
            contract: #contract,
            uses_index: #uses_index,
            vendor_functions: &[#(#vendor_functions),*],
            reference: __polyhalo_point,
            host: __polyhalo_native::CODE,
            code: #private::DeviceCode {
                entry: #entry,
                rows_entry: #rows_entry,
                cuda: #cuda,
                ptx: #ptx,
                hip: #hip,
                hip_objects: &[#(#objects),*],
                opencl: #opencl,
                spirv: #spirv,
            },
        };
        #private::inventory::submit! { #private::Registered(&__POLYHALO_KERNEL) }
    }
}

fn scalar_type(private: &TokenStream, ty: ir::Type) -> TokenStream {
    let name = match ty {
        ir::Type::F64 => quote!(F64),
        ir::Type::F32 => quote!(F32),
        ir::Type::I64 => quote!(I64),
        ir::Type::I32 => quote!(I32),
        ir::Type::I8 => quote!(I8),
        ir::Type::U64 => quote!(U64),
        ir::Type::U32 => quote!(U32),
        ir::Type::U8 => quote!(U8),
        ir::Type::Bool => quote!(Bool),
    };
    quote!(#private::ScalarType::#name)
}

/// The body of the outer function.
fn call(krate: &syn::Path, parameters: &[Parameter], signature: &Signature) -> TokenStream {
    let names = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => Some(&input.pat),
        FnArg::Receiver(_) => None,
    });
    let (mut fields, mut scalars) = (Vec::new(), Vec::new());
    for (parameter, name) in parameters.iter().zip(names) {
        match &parameter.kind {
            ParameterKind::Field(_) => fields.push(quote!(#name.reference())),
            ParameterKind::Fields(ids) => {
                let numbers = (0..ids.len()).map(Literal::usize_unsuffixed);
                fields.extend(numbers.map(|number| quote!(#name[#number].reference())));
            }
            ParameterKind::Scalar(_) => scalars.push(quote!(#krate::__private::Argument::from(#name))),
            ParameterKind::Point => {}
        }
    }
    quote!(#krate::Call::new(&__POLYHALO_KERNEL, vec![#(#fields),*], vec![#(#scalars),*]))
}
