//! OpenCL C and SPIR-V, through the runtime's devices.

use polyhalo_codegen::emit::text::{entry_point, rows_entry_point};
use polyhalo_codegen::emit::{Emitter, OpenClC, SpirV, has_paired_origins};
use polyhalo_codegen::ir::{Binary, ExprKind, Function, Type};
use polyhalo_codegen::offline::require::available;
use polyhalo_codegen::{Verified, analyse};
use polyhalo_runtime::Result;
use polyhalo_runtime::backend::host::BoxArgs;
use polyhalo_runtime::backend::opencl::{Facts, OpenCl};
use polyhalo_runtime::backend::reference::PointArgs;
use polyhalo_runtime::backend::{
    Backend, BufferId, Cells, Device, DeviceKind, Launch, OpenClForm, OpenOptions, Place, QueueId,
};
use polyhalo_runtime::kernel::{DeviceCode, FieldDesc, HostCode, KernelDesc, ParamDesc, Read, ScalarType};
use polyhalo_runtime::layout::{Layout, Region};

use super::case::{GLOBAL, Values, description, scalar_type};
use super::{Case, cases, none_failed};

/// The platforms that tests/install can provide, by the words of `POLYHALO_REQUIRE`.
const PLATFORMS: [(&str, &str); 2] = [("pocl", "Portable Computing Language"), ("intel", "Intel")];

/// Runs all kernels on every OpenCL device, in each form that it takes, with both entry points.
///
/// # Panics
/// When a platform is required and missing, a kernel does not build, a result is not the interpreter's, or anything else
/// is touched.
pub fn check(kernels: &[Verified]) {
    let all = OpenCl.facts();
    for (tool, platform) in PLATFORMS {
        let is_there = all.iter().any(|facts| facts.info.platform.contains(platform));
        let reason = || format!("no OpenCL platform is called `{platform}`: {}", OpenCl.devices().absent.join("; "));
        let _ = available(tool, is_there.then_some(()).ok_or_else(reason));
    }
    let failures: Vec<String> = all.iter().flat_map(|facts| failures(facts, kernels)).collect();
    none_failed(&failures);
}

/// What goes wrong on a device.
fn failures(facts: &Facts, kernels: &[Verified]) -> Vec<String> {
    let forms = [(facts.takes_source, OpenClForm::Source), (facts.takes_spirv, OpenClForm::SpirV)];
    let mut failures = Vec::new();
    for (_, opencl_form) in forms.into_iter().filter(|(is_taken, _)| *is_taken) {
        let options = OpenOptions { opencl_form, ..OpenOptions::default() };
        let device = match OpenCl.open_one(facts.info.ordinal, &options) {
            Ok(device) => device,
            Err(error) => {
                failures.push(format!("{}: {error}", facts.info));
                continue;
            }
        };
        let kernels = kernels.iter().filter(|kernel| is_exact(facts, kernel));
        failures.extend(
            kernels.flat_map(|kernel| [Entry::Usual, Entry::Other].map(|entry| (kernel, entry))).filter_map(
                |(kernel, entry)| {
                    let failure = failure(device.as_ref(), kernel, entry)?;
                    Some(format!("{} with the {entry:?} entry point: {failure}", device.summary()))
                },
            ),
        );
    }
    failures
}

/// Whether the device promises every bit of the kernel. CPUs have kept more than they promise.
fn is_exact(facts: &Facts, kernel: &Verified) -> bool {
    let sums = kernel.outputs.iter().any(|output| description(output).stored() == ScalarType::F64);
    let doubles = sums || kernel.exprs.iter().any(|expr| expr.ty == Type::F64);
    let rounded = kernel
        .exprs
        .iter()
        .filter(|expr| expr.ty == Type::F32)
        .any(|expr| matches!(expr.kind, ExprKind::Binary(Binary::Div, ..) | ExprKind::Call(Function::Sqrt, _)));
    (facts.info.fp64 || !doubles) && (facts.rounds_f32_division || facts.info.kind == DeviceKind::Cpu || !rounded)
}

/// Which of the two entry points a device is made to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// The one that it chooses.
    Usual,
    /// The other one, over work items that were meant for the first.
    Other,
}

/// What goes wrong with a kernel.
fn failure(device: &dyn Device, kernel: &Verified, entry: Entry) -> Option<String> {
    let desc = descriptor(kernel, entry);
    // Rows are folded by one entry point only, and a point that is computed twice must not read what it wrote.
    let runs = |case: &Case<'_>| entry == Entry::Usual || !(desc.folds() || case.is_in_place());
    cases(kernel).iter().filter(|case| runs(case)).find_map(|case| {
        let found = match run(device, desc, case) {
            Ok(found) => found,
            Err(error) => return Some(format!("{error}\n{case}")),
        };
        // Items for rows are numbered along Y and Z. Where they compute points, they are taken for X and Y, and reach a
        // corner of the box only. Items for points reach every row, which some compute again, as no axis is longer than
        // the one before.
        let are_rows = device.summary().contains("row per work-item");
        let is_corner = entry == Entry::Other && are_rows;
        let [_, ny, nz] = case.range.size().map(|points| points as i64);
        let lo = case.range.lo;
        let corner = |cell: [i64; 3]| cell[0] < lo[0] + ny && cell[1] < lo[1] + nz && cell[2] == lo[2];
        let wrong = case.difference(&found, |cell| !is_corner || corner(cell));
        wrong.map(|wrong| format!("{wrong}\n{case}"))
    })
}

/// The bytes of all memories after a run.
fn run(device: &dyn Device, desc: &'static KernelDesc, case: &Case<'_>) -> Result<Vec<Vec<u8>>> {
    let kernel = device.load(desc)?;
    let memories = case.memory.iter().map(|values| upload(device, values)).collect::<Result<Vec<_>>>()?;
    let cells = |number: &usize, shift: [i64; 3]| Cells {
        buffer: memories[*number],
        origin: case.memory[*number].layout.shifted_origin(shift),
    };
    let launch = Launch {
        kernel,
        outputs: &case.of_output.iter().map(|number| cells(number, [0; 3])).collect::<Vec<_>>(),
        fields: &case.of_field.iter().map(|number| cells(number, case.shift)).collect::<Vec<_>>(),
        shift: case.shift,
        scalars: &case.scalar_bits(),
        strides: case.strides,
        range: case.range,
        global: GLOBAL,
        parity: case.parity,
    };
    device.launch(QueueId::COMPUTE, &launch)?;
    let layouts = case.memory.iter().map(|values| &values.layout);
    let found = memories.iter().zip(layouts).map(|(buffer, layout)| download(device, *buffer, layout)).collect();
    memories.iter().for_each(|buffer| device.free(*buffer));
    found
}

fn upload(device: &dyn Device, values: &Values) -> Result<BufferId> {
    let buffer = device.alloc(&values.layout)?;
    let region = Region::run(0, values.layout.bytes);
    device.write(QueueId::COMPUTE, Place { buffer, region: &region }, &values.bytes())?;
    Ok(buffer)
}

fn download(device: &dyn Device, buffer: BufferId, layout: &Layout) -> Result<Vec<u8>> {
    let mut bytes = vec![0; layout.bytes];
    device.read(QueueId::COMPUTE, Place { buffer, region: &Region::run(0, layout.bytes) }, &mut bytes)?;
    Ok(bytes)
}

/// A descriptor as the macro would leave it, without code for the CPU.
fn descriptor(kernel: &Verified, entry: Entry) -> &'static KernelDesc {
    fn point(_: &mut PointArgs<'_>) {
        unreachable!("only OpenCL devices get this kernel");
    }
    unsafe fn rows(_: &BoxArgs<'_>) {
        unreachable!("only OpenCL devices get this kernel");
    }
    let analysis = analyse(kernel);
    let fields = kernel.fields.iter().zip(&analysis.footprints).map(|(field, footprint)| {
        let reads = footprint.reads.iter().map(|(offset, place)| Read { offset: offset.0, line: place.line });
        let (name, reads) = (leaked(&field.name), reads.collect::<Vec<_>>().leak());
        FieldDesc { name, ty: scalar_type(field.ty), axes: field.axes, reads }
    });
    let params = kernel.params.iter().map(|param| ParamDesc { name: leaked(&param.name), ty: scalar_type(param.ty) });
    let outputs = kernel.outputs.iter().map(description);
    let [points, rows_entry] = [entry_point(&kernel.name), rows_entry_point(&kernel.name)].map(|name| leaked(&name));
    let (entry, rows_entry) = match entry {
        Entry::Usual => (points, rows_entry),
        Entry::Other => (rows_entry, points),
    };
    let count = |number: usize| u32::try_from(number).expect("kernels are small");
    Box::leak(Box::new(KernelDesc {
        name: leaked(&kernel.name),
        module: module_path!(),
        file: file!(),
        line: line!(),
        fields: fields.collect::<Vec<_>>().leak(),
        params: params.collect::<Vec<_>>().leak(),
        outputs: outputs.collect::<Vec<_>>().leak(),
        loads: count(analysis.loads),
        flops: count(analysis.flops),
        bytes: count(analysis.bytes),
        contract: kernel.contract,
        uses_index: analysis.uses_index,
        vendor_functions: &[],
        reference: point,
        host: HostCode { baseline: rows, avx2: None, avx512: None },
        code: DeviceCode {
            entry,
            rows_entry,
            paired_origins: has_paired_origins(kernel),
            gpu: &[],
            cuda: "",
            ptx: None,
            hip: "",
            hip_objects: &[],
            opencl: leaked(&OpenClC.emit(kernel).readable()),
            spirv: SpirV.emit(kernel).bytes().leak(),
        },
    }))
}

fn leaked(text: &str) -> &'static str {
    text.to_owned().leak()
}
