//! The facts and the code of a kernel as a constant of the program.

use polyhalo_codegen::emit::has_paired_origins;
use polyhalo_codegen::emit::text::{Walk, entry_point, gpu_forms, rows_entry_point};
use polyhalo_codegen::{Verified, analyse, ir};
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::ItemFn;

use crate::compile::Code;

/// The constant and its entry in the registry.
pub(crate) fn descriptor(function: &ItemFn, krate: &syn::Path, kernel: &Verified, code: &Code) -> TokenStream {
    let private = quote!(#krate::__private);
    let analysis = analyse(kernel);
    let name = &kernel.name;
    let line = Literal::u32_unsuffixed(u32::try_from(function.sig.fn_token.span.start().line).unwrap_or(0));
    let fields = kernel.fields.enumerate().map(|(id, field)| {
        let (name, ty, [x, y, z]) = (&field.name, scalar_type(&private, field.ty), field.axes);
        let reads = analysis.footprints[id.index()].reads.iter().map(|(offset, place)| {
            let [x, y, z] = offset.0.map(Literal::i32_unsuffixed);
            let line = Literal::u32_unsuffixed(place.line);
            quote!(#private::Read { offset: [#x, #y, #z], line: #line })
        });
        quote!(#private::FieldDesc { name: #name, ty: #ty, axes: [#x, #y, #z], reads: &[#(#reads),*] })
    });
    let params = kernel.params.iter().map(|param| {
        let (name, ty) = (&param.name, scalar_type(&private, param.ty));
        quote!(#private::ParamDesc { name: #name, ty: #ty })
    });
    let outputs = kernel.outputs.iter().map(|output| {
        let (ty, role) = (scalar_type(&private, output.ty), role(&private, output.role));
        quote!(#private::OutputDesc { ty: #ty, role: #role })
    });
    let [loads, flops, bytes] = [analysis.loads, analysis.flops, analysis.bytes].map(Literal::usize_unsuffixed);
    let (contract, uses_index) = (kernel.contract, analysis.uses_index);
    let vendor_functions = analysis.vendor_functions.iter().map(|function| function.name());
    let Code { cuda, hip, opencl, .. } = code;
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
    let paired_origins = has_paired_origins(kernel);
    let gpu = gpu_forms(kernel).into_iter().map(|form| {
        let (entry, narrow) = (form.entry, form.narrow);
        let walk = match form.walk {
            Walk::Point => quote!(Point),
            Walk::March => quote!(March),
            Walk::Row => quote!(Row),
        };
        quote!(#private::GpuForm { entry: #entry, walk: #private::Walk::#walk, narrow: #narrow })
    });
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
                paired_origins: #paired_origins,
                gpu: &[#(#gpu),*],
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

fn role(private: &TokenStream, role: ir::Role) -> TokenStream {
    let name = match role {
        ir::Role::Value => quote!(Value),
        ir::Role::Sum => quote!(Sum),
        ir::Role::Max => quote!(Max),
        ir::Role::Min => quote!(Min),
    };
    quote!(#private::Role::#name)
}
