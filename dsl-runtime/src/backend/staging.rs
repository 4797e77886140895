//! Host memory through which boxes travel between devices that can't reach each other.

use std::any::Any;
use std::fmt;

/// A run of host memory. It is allocated once for a plan and used again in every step; who may touch it when is said by
/// the plan's dependencies.
pub struct Staging {
    start: *mut u8,
    bytes: usize,
    /// Frees the memory when it is dropped.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the address alone gives no access; back ends that use it rely on the plan's dependencies, and say so.
unsafe impl Send for Staging {}
// SAFETY: as above.
unsafe impl Sync for Staging {}

impl Staging {
    /// Memory of the allocator, zeroed: what a device without pinned memory uses.
    pub fn pageable(bytes: usize) -> Self {
        let mut memory = vec![0_u8; bytes].into_boxed_slice();
        let start = memory.as_mut_ptr();
        Self { start, bytes, _owner: Box::new(memory) }
    }

    /// Memory that `owner` frees when it is dropped.
    ///
    /// # Safety
    /// `bytes` bytes from `start` are valid for reading and writing from any thread as long as `owner` lives.
    pub unsafe fn owned(start: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { start, bytes, _owner: owner }
    }

    /// The first byte.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// `bytes` bytes from `at` on, if there are so many.
    pub fn part(&self, at: usize, bytes: usize) -> Option<*mut [u8]> {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        // SAFETY: the bytes lie in the memory.
        inside.then(|| std::ptr::slice_from_raw_parts_mut(unsafe { self.start.add(at) }, bytes))
    }

    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Staging of {} bytes", self.bytes)
    }
}
