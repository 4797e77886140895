//! Host memory through which boxes travel between devices that can't reach each other.

use std::alloc::{alloc, dealloc, handle_alloc_error};
use std::any::Any;
use std::fmt;

use super::affinity::Pinned;
use super::numa;
use crate::placement::Home;

/// A run of host memory. It is allocated once for a plan and used again in every step; who may touch it when is said by
/// the plan's dependencies.
pub struct Staging {
    start: *mut u8,
    bytes: usize,
    /// Why it may not lie where it should.
    note: Option<String>,
    /// Frees the memory when it is dropped.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the address alone gives no access; back ends that use it rely on the plan's dependencies, and say so.
unsafe impl Send for Staging {}
// SAFETY: as above.
unsafe impl Sync for Staging {}

impl Staging {
    /// Memory of the allocator, zeroed: what a device without pinned memory uses. It lies on the device's NUMA node, where
    /// that is known and has room.
    pub fn pageable(bytes: usize, home: &Home) -> Self {
        let (pages, note) = Pages::at(bytes, home);
        Self { start: pages.start, bytes, note, _owner: Box::new(pages) }
    }

    /// Memory that `owner` frees when it is dropped.
    ///
    /// # Safety
    /// `bytes` bytes from `start` are valid for reading and writing from any thread as long as `owner` lives.
    pub unsafe fn owned(start: *mut u8, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { start, bytes, note: None, _owner: owner }
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
        write!(f, "Staging of {} bytes", self.bytes)?;
        self.note.as_ref().map_or(Ok(()), |note| write!(f, " ({note})"))
    }
}

/// Whole pages of the allocator.
struct Pages {
    start: *mut u8,
    layout: std::alloc::Layout,
    /// Whether they have a wish for a node, which their next user mustn't inherit.
    is_bound: bool,
}

// SAFETY: plain memory that belongs to no thread; nothing is read or written through this type once it is made.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed pages that were touched first by a thread at home; why they may not lie there.
    fn at(bytes: usize, home: &Home) -> (Self, Option<String>) {
        let page = numa::page_bytes();
        let rounded = bytes.max(1).checked_next_multiple_of(page);
        let layout = rounded.and_then(|bytes| std::alloc::Layout::from_size_align(bytes, page).ok());
        let layout = layout.expect("a buffer of the device was as large");
        // SAFETY: the size isn't 0.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let bound = home.node.map(|node| numa::prefer(start, layout.size(), node));
        let note = match (&bound, home.node) {
            (Some(Err(error)), Some(node)) => Some(format!("not bound to node {node}: {error}")),
            _ => None,
        };
        let _near = Pinned::among(&home.cpus);
        // SAFETY: the memory has that size and nobody else knows it.
        unsafe { start.write_bytes(0, layout.size()) };
        (Self { start, layout, is_bound: bound.is_some_and(|bound| bound.is_ok()) }, note)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.is_bound {
            let _ = numa::forget(self.start, self.layout.size());
        }
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.start, self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pageable_memory_is_zero_and_whole_wherever_it_should_lie() {
        for node in [None, Some(0), Some(1000), Some(1 << 40)] {
            let home = Home { node, cpus: vec![0], note: None };
            for bytes in [0, 1, 4096, 4097, 1 << 20] {
                let staging = Staging::pageable(bytes, &home);
                // SAFETY: nothing else uses the memory.
                let part = unsafe { &mut *staging.part(0, bytes).unwrap() };
                assert!(part.iter().all(|&byte| byte == 0));
                part.fill(7);
                assert!(staging.part(0, bytes + 1).is_none());
                let refused = format!("{staging:?}").contains("not bound to node");
                assert!(!refused || node.is_some(), "{staging:?}");
                if node == Some(1 << 40) {
                    assert!(refused, "there is no such node, and {staging:?}");
                }
            }
        }
    }
}
