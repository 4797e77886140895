//! Staging memory that the driver likes: a buffer of the context that stays mapped for its whole life.

use std::sync::Arc;

use super::call::{Called, DeviceId, Memory, Queue};
use super::shared::Platform;
use crate::backend::Staging;

/// A mapped buffer.
struct Mapped {
    start: *mut u8,
    memory: Memory,
    // A queue of its own: the memory may live longer than the device.
    queue: Queue,
    _platform: Arc<Platform>,
}

// SAFETY: the address isn't used through this type; OpenCL objects belong to no thread.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the staging memory is being dropped, and commands that use it hold a reference to it.
        let unmapped = unsafe { self.queue.unmap(&self.memory, self.start) };
        // A failure means a leak; OpenCL keeps the buffer until the command has ended.
        let _ = unmapped.and_then(|_| self.queue.finish());
    }
}

/// Zeroed memory of the host for transfers; the calling thread touches it first.
pub(super) fn pinned(platform: &Arc<Platform>, device: DeviceId, bytes: usize) -> Called<Staging> {
    let queue = platform.context.queue(device, false)?;
    let memory = platform.context.host_memory(bytes)?;
    let start = queue.map(&memory, bytes)?;
    let owner = Mapped { start, memory, queue, _platform: platform.clone() };
    // SAFETY: the mapping has `bytes` bytes, which the host may use until they are unmapped, when the owner is dropped.
    unsafe {
        start.write_bytes(0, bytes);
        Ok(Staging::owned(start, bytes, Box::new(owner)))
    }
}
