//! Operations of a queue as data, so that they can run later and on another thread.
//!
//! Whoever makes one has checked it: the rows and cells lie in memory that the operation itself keeps alive. Which
//! operations may run at the same time is not checked: that no cell is written while another operation uses it is what
//! the dependencies of a plan say, through the order of a queue and its waits.

use std::any::Any;
use std::sync::Arc;

use super::processor::{Address, Processor};
use crate::error::Result;
use crate::geometry::Box3;
use crate::kernel::KernelDesc;
use crate::layout::{Region, Strides};

/// What an operation uses and must not lose.
pub(super) type Held = Arc<dyn Any + Send + Sync>;

/// One operation.
pub(super) enum Work {
    Launch(Launching),
    Copy(Copying),
}

/// A kernel over a box, with addresses for buffers.
pub(super) struct Launching {
    pub(super) kernel: &'static KernelDesc,
    pub(super) outputs: Vec<Address<u8>>,
    pub(super) fields: Vec<Address<u8>>,
    pub(super) scalars: Vec<u64>,
    pub(super) strides: Strides,
    pub(super) global: [i32; 3],
    pub(super) range: Box3,
    pub(super) parity: Option<u8>,
    /// Whether lines of results may be in a cache when they are written, or are written in part: memory past the caches is
    /// for lines that are written whole and weren't read.
    pub(super) partly: bool,
    pub(super) _held: Vec<Held>,
}

/// A copy between rows of the same shape.
pub(super) struct Copying {
    pub(super) from: Rows,
    pub(super) to: Rows,
    /// Whether the rows don't overlap.
    pub(super) apart: bool,
}

/// Rows somewhere in memory.
pub(super) struct Rows {
    pub(super) address: Address<u8>,
    pub(super) region: Region,
    pub(super) _held: Held,
}

impl Work {
    /// Does it, with the threads of a device.
    pub(super) fn run(&self, processor: &Processor) -> Result<()> {
        match self {
            // SAFETY: the launch was checked when it was issued, its memory is held, and the plan's dependencies keep
            // others away (see the head of this file).
            Self::Launch(launch) => unsafe { processor.launch(launch) },
            Self::Copy(Copying { from, to, apart }) => {
                // SAFETY: as above; `apart` was found from the regions.
                unsafe { processor.copy_rows(from.address, &from.region, to.address, &to.region, *apart) }
            }
        }
    }
}
