//! PTX as NVRTC makes it from CUDA C, executed by the stand-in: every form of a kernel, for several GPUs.

use polyhalo_codegen::Verified;
use polyhalo_codegen::emit::text::{GpuForm, Walk, gpu_forms};
use polyhalo_codegen::emit::{CudaC, Emitter};
use polyhalo_codegen::ir::{Exactness, ExprKind, Type, Value};
use polyhalo_codegen::offline::nvrtc::{self, Nvrtc};
use polyhalo_codegen::offline::require::{available, built};
use polyhalo_double_ptx::{Extent, Kernel, Memory, Module};

use super::case::GLOBAL;
use super::{Case, cases, none_failed};

/// The architectures that PTX is made for.
const ARCHITECTURES: [u32; 3] = [70, 80, 90];

/// Shapes of blocks, of which each case gets one; the last are for marches, which take one thread along Z.
const BLOCKS: [[u32; 3]; 4] = [[32, 4, 2], [64, 1, 1], [7, 3, 2], [16, 2, 1]];

/// Runs the PTX of all kernels whose bits are the same everywhere.
///
/// # Panics
/// When NVRTC or the stand-in refuses a kernel, a result is not the interpreter's, or anything but the results is touched.
pub fn check(kernels: &[Verified]) {
    let Some(nvrtc) = available("nvrtc", nvrtc::find()) else { return };
    let failures: Vec<String> = kernels.iter().filter_map(|kernel| failure(&nvrtc, kernel)).collect();
    none_failed(&failures);
}

/// What goes wrong with a kernel.
fn failure(nvrtc: &Nvrtc, kernel: &Verified) -> Option<String> {
    let source = CudaC.emit(kernel).readable();
    ARCHITECTURES.iter().find_map(|arch| {
        let name = format!("{}.cu", kernel.name);
        let ptx = built(&name, nvrtc.ptx(&source, &name, *arch, kernel.contract));
        let module = match Module::parse(&ptx) {
            Ok(module) => module,
            Err(error) => return Some(format!("{name} for compute_{arch}: {error}:\n{ptx}")),
        };
        if !is_exact(kernel) {
            return None;
        }
        gpu_forms(kernel).iter().find_map(|form| {
            let code = module.kernel(&form.entry).unwrap_or_else(|| panic!("{name} holds no `{}`:\n{ptx}", form.entry));
            cases(kernel).iter().enumerate().find_map(|(number, case)| {
                let wrong = match run(code, form, case, number) {
                    Ok(found) => case.difference(&found, |_| true)?,
                    Err(fault) => fault,
                };
                Some(format!("`{}` for compute_{arch}: {wrong}\n{case}\n{ptx}", form.entry))
            })
        })
    })
}

/// Whether every bit of the kernel is laid down.
fn is_exact(kernel: &Verified) -> bool {
    let is_vendors = |kind: &ExprKind| match kind {
        ExprKind::Call(function, _) => function.exactness() == Exactness::Vendor,
        _ => false,
    };
    !kernel.contract && !kernel.exprs.iter().any(|expr| is_vendors(&expr.kind))
}

/// The bytes of all memories after a run.
fn run(code: &Kernel, form: &GpuForm, case: &Case<'_>, number: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut memories: Vec<Allocation> = case.memory.iter().map(|values| Allocation::new(&values.bytes())).collect();
    for output in &case.of_output {
        memories[*output].is_written = true;
    }
    let origin = |memory: usize, shift: [i64; 3]| {
        let layout = &case.memory[memory].layout;
        memories[memory].extent.start.wrapping_add(layout.shifted_origin(shift).wrapping_mul(layout.ty.bytes()) as u64)
    };
    let mut arguments: Vec<u64> = case.of_output.iter().map(|output| origin(*output, [0; 3])).collect();
    arguments.extend(case.of_field.iter().map(|field| origin(*field, case.shift)));
    arguments.extend(case.scalars.iter().map(argument));
    arguments.extend([case.strides.row as u64, case.strides.plane as u64]);
    let size = case.range.size();
    arguments.extend(case.range.lo.map(|cell| cell as u64));
    arguments.extend(size.map(|points| points as u64));
    arguments.push(case.parity.map_or(u64::MAX, u64::from));
    if polyhalo_codegen::analyse(case.kernel).uses_index {
        arguments.extend(GLOBAL.map(|index| i64::from(index).cast_unsigned()));
    }
    if arguments.len() != code.params.len() {
        return Err(format!("{} arguments for {} parameters", arguments.len(), code.params.len()));
    }
    let mut bytes = vec![0; code.param_bytes()];
    for (argument, param) in arguments.iter().zip(&code.params) {
        bytes[param.offset..][..param.bytes].copy_from_slice(&argument.to_le_bytes()[..param.bytes]);
    }
    let (grid, block) = shape(form.walk, size, number);
    code.run(grid, block, &bytes, &Allocations(&memories)).map_err(|fault| fault.to_string())?;
    Ok(memories.iter().map(Allocation::bytes).collect())
}

/// The bits of a scalar as kernels get it: small ones as 32 bits.
fn argument(scalar: &Value) -> u64 {
    match scalar.ty() {
        Type::I8 => u64::from(i32::from((scalar.bits() as u8).cast_signed()).cast_unsigned()),
        _ => scalar.bits(),
    }
}

/// Blocks, and threads of each.
fn shape(walk: Walk, size: [usize; 3], number: usize) -> ([u32; 3], [u32; 3]) {
    let [x, y, z] = size.map(|points| u32::try_from(points).expect("grids of tests are small"));
    let block = BLOCKS[number % BLOCKS.len()];
    match walk {
        Walk::Point => ([x.div_ceil(block[0]), y.div_ceil(block[1]), z.div_ceil(block[2])], block),
        Walk::March => ([x.div_ceil(block[0]), y.div_ceil(block[1]), 1 + number as u32 % 3], [block[0], block[1], 1]),
        Walk::Row => ([y.div_ceil(block[1]), z.div_ceil(block[2]), 1], [block[1], block[2], 1]),
    }
}

/// Memory of a stand-in's device.
struct Allocation {
    extent: Extent,
    is_written: bool,
    /// Owns the bytes, which are read and written through `extent`.
    words: Vec<u64>,
    bytes: usize,
}

impl Allocation {
    fn new(bytes: &[u8]) -> Allocation {
        let mut words: Vec<u64> = vec![0; bytes.len().div_ceil(8)];
        let start = words.as_mut_ptr();
        // SAFETY: the words have room for the bytes, which lie elsewhere.
        unsafe { start.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        let start = start.expose_provenance() as u64;
        let extent = Extent { start, end: start + bytes.len() as u64 };
        Allocation { extent, is_written: false, words, bytes: bytes.len() }
    }

    fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).take(self.bytes).collect()
    }
}

/// All memories of a case, of which only results may be written.
struct Allocations<'m>(&'m [Allocation]);

// SAFETY: the bytes live as long as the allocations, and nothing else touches them during a run.
unsafe impl Memory for Allocations<'_> {
    fn reach(&self, address: u64, _: usize, write: bool) -> Result<Extent, String> {
        let holds = |allocation: &&Allocation| (allocation.extent.start..allocation.extent.end).contains(&address);
        let found = self.0.iter().find(holds).ok_or("no memory is there")?;
        if write && !found.is_written { Err("a field is written".to_owned()) } else { Ok(found.extent) }
    }
}
