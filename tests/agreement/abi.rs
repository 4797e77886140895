//! How the tests call a library of native kernels; compiled into both.

/// One call of a native kernel: the runtime's `BoxArgs` in a form whose layout is fixed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The number of the kernel in the library.
    pub(crate) kernel: usize,
    /// 0 for the baseline, 1 for AVX2, 2 for AVX-512.
    pub(crate) version: usize,
    /// The addresses of the origins of the results.
    pub(crate) outputs: *const *mut u8,
    /// The number of results.
    pub(crate) output_count: usize,
    /// The addresses of the origins of the fields.
    pub(crate) fields: *const *const u8,
    /// The number of fields.
    pub(crate) field_count: usize,
    /// The bits of the scalars.
    pub(crate) scalars: *const u64,
    /// The number of scalars.
    pub(crate) scalar_count: usize,
    /// Cells from a row to the next.
    pub(crate) sy: isize,
    /// Cells from a plane to the next.
    pub(crate) sz: isize,
    /// The first point.
    pub(crate) lo: [isize; 3],
    /// Points along each axis.
    pub(crate) size: [usize; 3],
    /// The points that are updated: all (-1), or those whose indices add up to an even (0) or odd (1) number.
    pub(crate) parity: i32,
    /// The global index of local cell (0, 0, 0).
    pub(crate) global: [i32; 3],
    /// Cells to prefetch ahead, 0 for none.
    pub(crate) ahead: isize,
    /// Whether to store past the caches.
    pub(crate) stream: bool,
}
