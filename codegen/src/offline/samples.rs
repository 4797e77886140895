//! Small sources for this module's tests: the 7-point heat step in each language.

/// What all dialects of C share; they differ in how a point is found and in what marks a kernel.
macro_rules! heat {
    ($head:literal, $pointer:literal, $point:literal) => {
        concat!(
            $head,
            " void heat(",
            $pointer,
            "const double* u, ",
            $pointer,
            "double* v, double b, int nx, int ny, int nz) {\n",
            $point,
            "  if (i >= nx - 1 || j >= ny - 1 || k >= nz - 1) return;\n",
            "  int z = nx * ny, c = k * z + j * nx + i;\n",
            "  v[c] = u[c] + b * (u[c + 1] + u[c - 1] + u[c + nx] + u[c - nx] + u[c + z] + u[c - z] - 6.0 * u[c]);\n",
            "}\n"
        )
    };
}

/// CUDA C.
pub(crate) const CUDA: &str = heat!(
    "extern \"C\" __global__",
    "",
    "  int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y + 1, k = blockIdx.z + 1;\n"
);

/// HIP without its headers.
pub(crate) const HIP: &str = heat!(
    "extern \"C\" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256)))",
    "",
    "  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x() + 1;\n  \
     int j = __builtin_amdgcn_workgroup_id_y() + 1, k = __builtin_amdgcn_workgroup_id_z() + 1;\n"
);

/// OpenCL C 1.2.
pub(crate) const OPENCL: &str = heat!(
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF\n__kernel",
    "__global ",
    "  int i = get_global_id(0) + 1, j = get_global_id(1) + 1, k = get_global_id(2) + 1;\n"
);

/// PTX for Volta: `v = b * u`, one point per thread.
pub(crate) const PTX: &str = "\
.version 6.3
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 u, .param .u64 v, .param .f64 b)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<7>;
    .reg .f64 %fd<4>;
    ld.param.u64 %rd1, [u];
    ld.param.u64 %rd2, [v];
    ld.param.f64 %fd1, [b];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd5, %r1, 8;
    add.s64 %rd6, %rd3, %rd5;
    ld.global.f64 %fd2, [%rd6];
    mul.rn.f64 %fd3, %fd2, %fd1;
    add.s64 %rd6, %rd4, %rd5;
    st.global.f64 [%rd6], %fd3;
    ret;
}
";

/// A SPIR-V 1.0 module with one kernel, `nothing`, which does nothing.
pub(crate) const SPIRV: [u32; 31] = [
    0x0723_0203,
    0x0001_0000,
    0,
    5,
    0,
    // OpCapability Addresses, OpCapability Kernel, OpMemoryModel Physical64 OpenCL
    2 << 16 | 17,
    4,
    2 << 16 | 17,
    6,
    3 << 16 | 14,
    2,
    2,
    // OpEntryPoint Kernel %1 "nothing"
    5 << 16 | 15,
    6,
    1,
    u32::from_le_bytes(*b"noth"),
    u32::from_le_bytes(*b"ing\0"),
    // %2 = OpTypeVoid, %3 = OpTypeFunction %2
    2 << 16 | 19,
    2,
    3 << 16 | 33,
    3,
    2,
    // %1 = OpFunction %2 None %3, %4 = OpLabel, OpReturn, OpFunctionEnd
    5 << 16 | 54,
    2,
    1,
    0,
    3,
    2 << 16 | 248,
    4,
    1 << 16 | 253,
    1 << 16 | 56,
];
