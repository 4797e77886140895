//! What is known of a kernel before any vendor's compiler has seen it, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use polyhalo_codegen::analyse;
use polyhalo_codegen::emit::text::{Walk, gpu_forms};
use polyhalo_codegen::front::{Compiled, SourceKernel};
use polyhalo_codegen::ir::{Axis, Output};
use polyhalo_codegen::offline::Usage;
use polyhalo_codegen::verify::Verified;
use serde_json::{Value, json};

/// Parameters, halos with the lines that ask for them, and costs.
pub(super) fn summary(file: &Path, source: &SourceKernel, compiled: &Compiled) -> String {
    let kernel = &compiled.kernel;
    let analysis = analyse(kernel);
    let instance = if source.instance.is_empty() { String::new() } else { format!(" with {}", source.instance) };
    let mut text = format!("stencil {}{instance} ({}:{})\n", kernel.name, file.display(), source.line);
    let mut line = |args: std::fmt::Arguments<'_>| writeln!(text, "{args}").expect("a string takes everything");
    for (id, field) in kernel.fields.enumerate() {
        let footprint = &analysis.footprints[id.index()];
        let points = match footprint.reads.len() {
            0 => "never read".to_owned(),
            1 => "read at 1 point".to_owned(),
            points => format!("read at {points} points"),
        };
        line(format_args!("  field  {}: {}, {points}", field.name, field.ty));
        for axis in Axis::ALL {
            for (sign, side) in [(-1, '-'), (1, '+')] {
                let reach = footprint.reach(axis, sign);
                if let Some((offset, place)) = reach.because {
                    line(format_args!(
                        "           halo {} on {side}{} because of {}[{offset}] in line {}",
                        reach.cells,
                        axis.name(),
                        field.name,
                        place.line
                    ));
                }
            }
        }
    }
    for param in kernel.params.iter() {
        line(format_args!("  scalar {}: {}", param.name, param.ty));
    }
    for output in results(kernel) {
        line(format_args!("  result {}", output.ty));
    }
    line(format_args!(
        "  per point: {}, {}, {} flops ({} operations), at least {} bytes, {:.3} flops/byte",
        count(analysis.loads, "load"),
        count(analysis.stores, "store"),
        analysis.flops,
        analysis.operations,
        analysis.bytes,
        analysis.intensity()
    ));
    if analysis.uses_index {
        line(format_args!("  uses the global index of its point"));
    }
    if !analysis.vendor_functions.is_empty() {
        let names: Vec<&str> = analysis.vendor_functions.iter().map(|function| function.name()).collect();
        line(format_args!("  {}: targets agree only within their vendors' error", names.join(", ")));
    }
    if kernel.contract {
        line(format_args!(
            "  multiply and add may be fused (#[stencil(contract)]): results may differ between targets"
        ));
    }
    text
}

/// `1 load`, `2 loads`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// What the caller gets: the sum of the upper halves of a wide one is no result of its own.
fn results(kernel: &Verified) -> Vec<&Output> {
    let mut outputs = kernel.outputs.iter();
    let mut results = Vec::new();
    while let Some(output) = outputs.next() {
        results.push(output);
        if output.has_halves() {
            outputs.next();
        }
    }
    results
}

/// The bytes that a point stores; a fold stores none for a point.
pub(super) fn stored_bytes(kernel: &Verified) -> usize {
    kernel.outputs.iter().filter(|output| !output.role.is_fold()).map(|output| output.ty.bytes()).sum()
}

/// The same facts, and the forms in which the kernel stands in CUDA C and HIP.
pub(super) fn facts(source: &SourceKernel, compiled: &Compiled) -> Value {
    let kernel = &compiled.kernel;
    let analysis = analyse(kernel);
    let field = |(id, field): (_, &polyhalo_codegen::ir::Field)| {
        let footprint = &analysis.footprints[polyhalo_codegen::ir::Id::index(id)];
        let halo = Axis::ALL.map(|axis| [-1, 1].map(|sign| footprint.reach(axis, sign).cells));
        let reads: Vec<[i32; 3]> = footprint.reads.keys().map(|offset| offset.0).collect();
        json!({ "name": field.name, "type": field.ty.to_string(), "kind": field.type_name(), "reads": reads, "halo": halo })
    };
    let form = |form: polyhalo_codegen::emit::text::GpuForm| {
        let walk = match form.walk {
            Walk::Point => "point",
            Walk::March => "march",
            Walk::Row => "row",
        };
        json!({ "entry": form.entry, "walk": walk, "index_bits": if form.narrow { 32 } else { 64 } })
    };
    let scalar = |param: &polyhalo_codegen::ir::Param| json!({ "name": param.name, "type": param.ty.to_string() });
    let result = |output: &Output| json!({ "type": output.ty.to_string(), "is_fold": output.role.is_fold() });
    let functions: Vec<&str> = analysis.vendor_functions.iter().map(|function| function.name()).collect();
    json!({
        "name": kernel.name,
        "function": source.function_name(),
        "instance": source.instance,
        "line": source.line,
        "fields": kernel.fields.enumerate().map(field).collect::<Vec<_>>(),
        "scalars": kernel.params.iter().map(scalar).collect::<Vec<_>>(),
        "results": results(kernel).into_iter().map(result).collect::<Vec<_>>(),
        "loads": analysis.loads,
        "stores": analysis.stores,
        "flops": analysis.flops,
        "operations": analysis.operations,
        "bytes": analysis.bytes,
        "flops_per_byte": analysis.intensity(),
        "uses_index": analysis.uses_index,
        "folds": analysis.folds,
        "vendor_functions": functions,
        "fused": kernel.contract,
        "forms": gpu_forms(kernel).into_iter().map(form).collect::<Vec<_>>(),
    })
}

/// What one kernel of a compiled text uses; `null` where the tools don't tell.
pub(super) fn usage(used: &Usage, stored_bytes: usize) -> Value {
    let traffic = |traffic: polyhalo_codegen::offline::Traffic| {
        json!({
            "loads": traffic.loads,
            "loaded_bytes": traffic.loaded_bytes,
            "stores": traffic.stores,
            "stored_bytes": traffic.stored_bytes,
        })
    };
    let (loads, bytes) = used.per_point(stored_bytes);
    json!({
        "kernel": used.kernel,
        "registers": used.registers,
        "scalar_registers": used.scalar_registers,
        "spill_bytes": used.spill_bytes,
        "local_bytes": used.local_bytes,
        "shared_bytes": used.shared_bytes,
        "lanes": used.lanes,
        "waves": used.waves,
        "whole": traffic(used.traffic),
        "in_loop": used.in_loop.map(traffic),
        "loads_per_point": loads,
        "loaded_bytes_per_point": bytes,
    })
}
