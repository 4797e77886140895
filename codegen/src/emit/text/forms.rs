//! The forms in which a kernel stands in CUDA C and HIP.

use super::{entry_point, rows_entry_point};
use crate::verify::Verified;

/// A form of a kernel. All take the same arguments and give the same bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuForm {
    /// The name of the kernel.
    pub entry: String,
    /// Which points a thread computes.
    pub walk: Walk,
    /// Whether indices of cells have 32 bits; 64 otherwise.
    pub narrow: bool,
}

/// Which points a thread computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Walk {
    /// One.
    Point,
    /// A part of a column along Z.
    March,
    /// A row along X, where results are folded.
    Row,
}

/// The forms of a kernel, in the order in which they stand in the source.
pub fn gpu_forms(kernel: &Verified) -> Vec<GpuForm> {
    let folds = kernel.outputs.iter().any(|output| output.role.is_fold());
    if folds {
        vec![GpuForm { entry: rows_entry_point(&kernel.name), walk: Walk::Row, narrow: false }]
    } else {
        vec![GpuForm { entry: entry_point(&kernel.name), walk: Walk::Point, narrow: false }]
    }
}
