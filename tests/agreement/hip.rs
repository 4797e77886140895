//! HIP, compiled for the CPU by the double of AMD's driver: every form of a kernel, in both orders of its threads.

use std::ffi::c_void;

use polyhalo_codegen::Verified;
use polyhalo_codegen::analyse;
use polyhalo_codegen::emit::text::{GpuForm, Walk, gpu_forms};
use polyhalo_codegen::emit::{Emitter, HipC};
use polyhalo_codegen::ir::Type;
use polyhalo_double_hip::executor::{Kernel, Launch, Loaded, Range, compile, load};

use super::case::{GLOBAL, Values};
use super::{Case, cases, none_failed};

/// What the kernels are compiled for; the double takes any name.
const ARCHITECTURE: &str = "gfx90c:xnack-";

/// Runs all kernels.
///
/// # Panics
/// When the source of a kernel is refused, a result is not the interpreter's, anything else is touched, or a thread does what
/// C++ gives no meaning.
pub fn check(kernels: &[Verified]) {
    none_failed(&kernels.iter().filter_map(failure).collect::<Vec<_>>());
}

/// What goes wrong with a kernel.
fn failure(kernel: &Verified) -> Option<String> {
    let source = HipC.emit(kernel).readable();
    let image = match compile(&source, ARCHITECTURE) {
        Ok(image) => image,
        Err(refused) => return Some(format!("{}\n{source}", refused.log)),
    };
    let loaded = load(&image).unwrap_or_else(|reason| panic!("the double loads what it made: {reason:?}"));
    let forms = gpu_forms(kernel);
    assert_eq!(loaded.kernels.len(), forms.len(), "a form for each kernel of\n{source}");
    let uses_index = analyse(kernel).uses_index;
    let runs = forms.iter().flat_map(|form| [false, true].map(|backwards| (form, backwards)));
    runs.flat_map(|run| cases(kernel).into_iter().map(move |case| (run, case))).find_map(|((form, backwards), case)| {
        let how = || format!("HIP form {form:?}, backwards {backwards}");
        match run(loaded, form, &case, uses_index, backwards) {
            Ok(found) => case.difference(&found, |_| true).map(|wrong| format!("{}: {wrong}\n{case}", how())),
            Err(fault) => Some(format!("{}: {fault}\n{case}", how())),
        }
    })
}

/// The bytes of all memories after a run, or what a thread did that it must not do.
fn run(
    loaded: &'static Loaded,
    form: &GpuForm,
    case: &Case<'_>,
    uses_index: bool,
    backwards: bool,
) -> Result<Vec<Vec<u8>>, String> {
    let kernel: &Kernel = loaded.kernel(&form.entry).ok_or_else(|| format!("no kernel is called `{}`", form.entry))?;
    // In words, so that every value is aligned.
    let mut memories: Vec<Vec<u64>> = case.memory.iter().map(words).collect();
    let mut ranges: Vec<Range> = Vec::new();
    let starts: Vec<usize> = memories.iter_mut().map(|memory| memory.as_mut_ptr() as usize).collect();
    for (start, values) in starts.iter().zip(&case.memory) {
        ranges.push(Range { lo: *start, hi: start + values.layout.bytes });
    }
    let reach = |address: usize, bytes: usize, _: bool| {
        let holds = |range: &&Range| range.lo <= address && address + bytes <= range.hi;
        ranges
            .iter()
            .find(holds)
            .copied()
            .ok_or_else(|| format!("{bytes} bytes at {address:#x} are not in {ranges:x?}"))
    };
    let origin = |number: usize, shift: [i64; 3]| {
        let layout = &case.memory[number].layout;
        // The origin of a field is moved, perhaps out of its memory.
        starts[number].wrapping_add(layout.shifted_origin(shift).wrapping_mul(layout.ty.bytes())) as u64
    };
    let word = |value: i64| value as u64;
    let extent = |value: usize| i64::try_from(value).expect("grids of tests are small");
    let mut arguments: Vec<u64> = case.of_output.iter().map(|output| origin(*output, [0; 3])).collect();
    arguments.extend(case.of_field.iter().map(|field| origin(*field, case.shift)));
    arguments.extend(case.scalars.iter().map(|scalar| match scalar.ty() {
        Type::I8 => word(i64::from(scalar.bits() as i8)),
        _ => scalar.bits(),
    }));
    arguments.extend([case.strides.row, case.strides.plane].map(|stride| word(extent(stride))));
    arguments.extend(case.range.lo.map(word));
    arguments.extend(case.range.size().map(|size| word(extent(size))));
    arguments.push(word(case.parity.map_or(-1, i64::from)));
    if uses_index {
        arguments.extend(GLOBAL.map(|index| word(i64::from(index))));
    }
    let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect();

    let size = case.range.size().map(|points| u32::try_from(points).expect("grids of tests are small"));
    let [block, threads] = match form.walk {
        Walk::Point => [[13, 3, 2], size],
        Walk::March => [[13, 3, 1], [size[0], size[1], size[2].min(2)]],
        Walk::Row => [[3, 2, 1], [size[1], size[2], 1]],
    };
    let grid = [0, 1, 2].map(|axis| threads[axis].div_ceil(block[axis]));
    let launch = Launch { grid, block, backwards, reach: &reach };
    // SAFETY: an argument is a word, which holds values of any size in its low bytes; memories are reached only; nothing
    // else uses these.
    unsafe { kernel.run(&launch, &pointers) }.map_err(|fault| fault.to_string())?;
    pointers.clear();
    let bytes = memories
        .iter()
        .zip(&case.memory)
        .map(|(memory, values)| memory.iter().flat_map(|word| word.to_le_bytes()).take(values.layout.bytes).collect());
    Ok(bytes.collect())
}

fn words(values: &Values) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    values.bytes().chunks(8).map(word).collect()
}
