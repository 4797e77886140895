//! The memory of fields on the devices of a simulation.

use crate::backend::{BufferId, Device, DeviceKind};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::plan::Role;

/// The memory of a field: for each device a layout and a buffer in each slot.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) layouts: Vec<Layout>,
    pub(crate) current: Vec<BufferId>,
    /// No buffers until a step needs them.
    pub(crate) spare: Vec<BufferId>,
}

impl Memory {
    pub(crate) fn buffers(&self, role: Role) -> &[BufferId] {
        match role {
            Role::Current => &self.current,
            Role::Spare => &self.spare,
        }
    }

    pub(crate) fn buffers_mut(&mut self, role: Role) -> &mut Vec<BufferId> {
        match role {
            Role::Current => &mut self.current,
            Role::Spare => &mut self.spare,
        }
    }
}

/// Memory for `layouts`, one on each device, unless a device hasn't that much free; `what` says what it is for.
pub(crate) fn allocate(devices: &[Box<dyn Device>], layouts: &[Layout], what: &str) -> Result<Vec<BufferId>> {
    // Processors share the memory of the host.
    let is_cpu = |device: &dyn Device| device.info().kind == DeviceKind::Cpu;
    let each = || devices.iter().map(|device| &**device).zip(layouts.iter().map(|layout| layout.bytes as u64));
    let of_host: u64 = each().filter(|(device, _)| is_cpu(*device)).map(|(_, bytes)| bytes).sum();
    each().try_for_each(|(device, bytes)| check_memory(device, if is_cpu(device) { of_host } else { bytes }, what))?;
    let mut buffers = Vec::with_capacity(layouts.len());
    for (device, layout) in devices.iter().zip(layouts) {
        match device.alloc(layout) {
            Ok(buffer) => buffers.push(buffer),
            Err(error) => {
                devices.iter().zip(buffers).for_each(|(device, buffer)| device.free(buffer));
                return Err(error);
            }
        }
    }
    Ok(buffers)
}

/// An error if the device hasn't `needed` bytes free.
fn check_memory(device: &dyn Device, needed: u64, what: &str) -> Result<()> {
    match device.free_memory()? {
        Some(free) if free.bytes < needed => Err(Error::OutOfMemory {
            device: device.summary(),
            what: what.into(),
            needed,
            free: free.bytes,
            limit: free.limit,
        }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{notebooks, row};

    #[test]
    fn memory_is_checked_before_any_is_taken_and_given_back_when_a_device_refuses() {
        let (devices, notes) = notebooks(2);
        let error = allocate(&devices, &[row(8), row(1000)], "field `u`").unwrap_err();
        // These are processors, which share one memory.
        assert!(matches!(error, Error::OutOfMemory { needed: 8064, free: 1000, .. }), "{error}");
        let error = allocate(&devices, &[row(72), row(72)], "field `u`").unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { needed: 1152, free: 1000, .. }), "{error}");
        assert!(notes.taken().is_empty());
        assert!(allocate(&devices, &[row(8), row(56)], "field `u`").is_err());
        assert_eq!(notes.taken(), ["0 alloc", "0 free"]);
    }
}
