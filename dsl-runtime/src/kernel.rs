//! What the macro leaves in the program for each kernel: finished code for every target plus the facts about it.
//!
//! Everything here is a constant. [`registry`] lists the kernels of the whole program.

use std::fmt;

use crate::backend::host::BoxArgs;
use crate::backend::reference::PointArgs;
use crate::geometry::Box3;
use crate::layout::{ROWS, WHOLE};

/// The type of a value that a kernel reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScalarType {
    /// IEEE binary64.
    F64,
    /// IEEE binary32.
    F32,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 8-bit signed integer.
    I8,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit unsigned integer.
    U32,
    /// 8-bit unsigned integer.
    U8,
    /// Truth values; a cell is a byte that is 0 or 1.
    Bool,
}

impl ScalarType {
    /// Every type.
    pub const ALL: [Self; 9] =
        [Self::F64, Self::F32, Self::I64, Self::I32, Self::I8, Self::U64, Self::U32, Self::U8, Self::Bool];

    /// The size of one value.
    pub const fn bytes(self) -> usize {
        match self {
            ScalarType::F64 | ScalarType::I64 | ScalarType::U64 => 8,
            ScalarType::F32 | ScalarType::I32 | ScalarType::U32 => 4,
            ScalarType::I8 | ScalarType::U8 | ScalarType::Bool => 1,
        }
    }

    /// The name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::F64 => "f64",
            ScalarType::F32 => "f32",
            ScalarType::I64 => "i64",
            ScalarType::I32 => "i32",
            ScalarType::I8 => "i8",
            ScalarType::U64 => "u64",
            ScalarType::U32 => "u32",
            ScalarType::U8 => "u8",
            ScalarType::Bool => "bool",
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One read of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The displacement from the point being updated, in cells along (X, Y, Z).
    pub offset: [i32; 3],
    /// The line of the source that asks for it first.
    pub line: u32,
}

/// A field parameter of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct FieldDesc {
    /// The user's name.
    pub name: &'static str,
    /// The type of a cell.
    pub ty: ScalarType,
    /// Along which axes (X, Y, Z) it extends; the kernel never reads at a displacement along the others.
    pub axes: [bool; 3],
    /// Every displacement that is read; empty when the parameter is unused.
    pub reads: &'static [Read],
}

impl FieldDesc {
    /// Cells read below and above the point: (X, Y, Z) by (low, high).
    pub fn halo(&self) -> [[u32; 2]; 3] {
        let mut halo = [[0; 2]; 3];
        for read in self.reads {
            for (sides, cells) in halo.iter_mut().zip(read.offset) {
                let side = &mut sides[usize::from(cells > 0)];
                *side = cells.unsigned_abs().max(*side);
            }
        }
        halo
    }

    /// The cells that are read while the points of `range` are updated; empty when the parameter is unused.
    pub fn footprint(&self, range: &Box3) -> Box3 {
        if self.reads.is_empty() || range.is_empty() {
            return Box3::EMPTY;
        }
        let reach = |axis: usize| self.reads.iter().map(move |read| i64::from(read.offset[axis]));
        Box3 {
            lo: std::array::from_fn(|axis| range.lo[axis].saturating_add(reach(axis).min().unwrap_or(0))),
            hi: std::array::from_fn(|axis| range.hi[axis].saturating_add(reach(axis).max().unwrap_or(0))),
        }
    }
}

/// What becomes of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is the new value of a field at the point.
    Value,
    /// It is added up over all points.
    Sum,
    /// The largest over all points is kept.
    Max,
    /// The least over all points is kept.
    Min,
}

/// A result of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputDesc {
    /// Its type.
    pub ty: ScalarType,
    /// What becomes of it.
    pub role: Role,
}

impl OutputDesc {
    /// A new value of a field of type `ty`.
    pub const fn value(ty: ScalarType) -> Self {
        Self { ty, role: Role::Value }
    }

    /// Along which axes (X, Y, Z) what is stored of it extends.
    pub fn axes(&self) -> [bool; 3] {
        if self.role == Role::Value { WHOLE } else { ROWS }
    }

    /// The type of what a kernel stores of it: for each point, or for each row if it is folded.
    pub fn stored(&self) -> ScalarType {
        self.role.stored(self.ty)
    }
}

/// A scalar parameter of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct ParamDesc {
    /// The user's name.
    pub name: &'static str,
    /// Its type.
    pub ty: ScalarType,
}

/// A form of a kernel in CUDA C and HIP, and so in PTX and code objects. All forms take the same arguments and give the same
/// bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuForm {
    /// The name of the kernel.
    pub entry: &'static str,
    /// Which points a thread computes.
    pub walk: Walk,
    /// Whether indices of cells have 32 bits; 64 otherwise.
    pub narrow: bool,
}

/// Which points a thread of a GPU computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Walk {
    /// One: thread (i, j, k) that of the box.
    Point,
    /// A column of points along Z, in registers whatever it needs again for the next one: thread (i, j) of the `k`th layer of
    /// blocks every point (i, j, ..) of the `k`th part of the box along Z, of which there are as many as the grid has
    /// layers of blocks. A block has one thread along Z. All parts but the last have the same number of planes, the quotient
    /// rounded up.
    March,
    /// A row along X, where results are folded: thread (j, k) that of the box, as the first two coordinates.
    Row,
}

/// Finished code for the GPU targets.
///
/// All of it takes the same arguments: the buffers of the results and of the fields; in OpenCL C and SPIR-V for each of
/// them the index of local cell (0, 0, 0), 64 bits, or for each two of them a pair of such indices with a sign, 32 bits
/// each, where [`paired_origins`](Self::paired_origins) says so; the scalars, of which those of 8 bits and truth values travel as 32 bits; the strides between
/// rows and planes, 64 bits; the first point and the number of points along X, Y and Z, 32 bits each; the parity, 32
/// bits: -1 for all points, 0 or 1 for those whose local indices add up to an even or an odd number; and, only where
/// [`KernelDesc::uses_index`] says so, the global index of local cell (0, 0, 0) along X, Y and Z, 32 bits each.
///
/// A kernel that folds values has the form with a row per work item only, in every target; what it stores for a row
/// goes to cell (y, z) of a buffer that extends along Y and Z.
#[derive(Clone, Copy, Debug)]
pub struct DeviceCode {
    /// The name of the kernel that computes a point per work item or thread, in every target.
    pub entry: &'static str,
    /// The name of the kernel that computes a row per work item: in OpenCL C and SPIR-V, and, where the kernel folds
    /// values, in every target.
    pub rows_entry: &'static str,
    /// Whether the indices of local cell (0, 0, 0) come in pairs, in OpenCL C and SPIR-V: with so many fields not every
    /// device would take the arguments otherwise.
    pub paired_origins: bool,
    /// The kernels of the CUDA C, the HIP and what was compiled from them.
    pub gpu: &'static [GpuForm],
    /// CUDA C.
    pub cuda: &'static str,
    /// PTX from NVRTC, when a library was found at build time.
    pub ptx: Option<&'static str>,
    /// HIP.
    pub hip: &'static str,
    /// AMDGPU code objects by architecture, when clang was found at build time.
    pub hip_objects: &'static [(&'static str, &'static [u8])],
    /// OpenCL C 1.2.
    pub opencl: &'static str,
    /// SPIR-V 1.0, little-endian words.
    pub spirv: &'static [u8],
}

/// A kernel for one box of points on the CPU.
///
/// # Safety
/// See [`BoxArgs`]: every point of the box and its footprint must lie inside the buffers, and what is written is read by no
/// other point.
pub type HostKernel = unsafe fn(&BoxArgs<'_>);

/// The native kernel, once per instruction set.
#[derive(Clone, Copy)]
pub struct HostCode {
    /// For any CPU of the architecture.
    pub baseline: HostKernel,
    /// For x86-64 with AVX2.
    pub avx2: Option<HostKernel>,
    /// For x86-64 with AVX-512 (F, VL, DQ, BW).
    pub avx512: Option<HostKernel>,
}

/// A compiled kernel.
pub struct KernelDesc {
    /// The function's name.
    pub name: &'static str,
    /// The module that defines it.
    pub module: &'static str,
    /// The file that defines it, as the compiler was given it.
    pub file: &'static str,
    /// The line of the function.
    pub line: u32,
    /// Field parameters in order.
    pub fields: &'static [FieldDesc],
    /// Scalar parameters in order.
    pub params: &'static [ParamDesc],
    /// The results in order, where a sum of 64-bit integers stands twice ([`Role::parts`]).
    pub outputs: &'static [OutputDesc],
    /// Distinct (field, offset) pairs read per point.
    pub loads: u32,
    /// Arithmetic operations per point.
    pub flops: u32,
    /// The least memory traffic per point: each field read once, each result written once.
    pub bytes: u32,
    /// Whether multiply and add may be fused (`#[stencil(contract)]`).
    pub contract: bool,
    /// Whether the values depend on where in the grid the point is.
    pub uses_index: bool,
    /// The functions in it that agree between devices only to the vendors' units in the last place, such as `exp`.
    pub vendor_functions: &'static [&'static str],
    /// The function as the user wrote it, for one point.
    pub reference: fn(&mut PointArgs<'_>),
    /// Native code.
    pub host: HostCode,
    /// Code for GPUs.
    pub code: DeviceCode,
}

impl KernelDesc {
    /// The results of the function, each with the number of its first output; see [`Role::parts`].
    pub fn results(&self) -> impl Iterator<Item = (usize, OutputDesc)> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let (number, output) = (next, *self.outputs.get(next)?);
            next += output.role.parts(output.ty);
            Some((number, output))
        })
    }

    /// Whether a result is folded over all points.
    pub fn folds(&self) -> bool {
        self.outputs.iter().any(|output| output.role != Role::Value)
    }

    /// The types of everything that it reads, is given and stores, some more than once.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> {
        let fields = self.fields.iter().map(|field| field.ty);
        let outputs = self.outputs.iter().flat_map(|output| [output.ty, output.stored()]);
        fields.chain(self.params.iter().map(|param| param.ty)).chain(outputs)
    }

    /// Whether it is one of the runtime's own, which fill boundaries for example.
    pub fn is_own(&self) -> bool {
        self.module.starts_with("polyhalo_runtime::")
    }
}

impl fmt::Debug for KernelDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{} ({}:{})", self.module, self.name, self.file, self.line)
    }
}

/// A kernel of the program's registry; the macro submits one per kernel.
pub struct Registered(pub &'static KernelDesc);

inventory::collect!(Registered);

/// Every kernel of the program, by module and name; the runtime's own aren't the program's.
pub fn registry() -> Vec<&'static KernelDesc> {
    listed(inventory::iter::<Registered>.into_iter().map(|registered| registered.0))
}

fn listed(all: impl Iterator<Item = &'static KernelDesc>) -> Vec<&'static KernelDesc> {
    let mut kernels: Vec<_> = all.filter(|kernel| !kernel.is_own()).collect();
    kernels.sort_by_key(|kernel| (kernel.module, kernel.name));
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AVERAGE, HEAT};

    #[test]
    fn the_runtimes_own_kernels_are_not_the_programs() {
        static OWN: KernelDesc = KernelDesc { module: "polyhalo_runtime::boundary", ..HEAT };
        let listed = listed([&HEAT, &OWN, &AVERAGE].into_iter());
        assert_eq!(listed.iter().map(|kernel| kernel.name).collect::<Vec<_>>(), ["average", "heat"]);
    }
}
