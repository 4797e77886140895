//! The copy bandwidth of a device, measured through the same trait that runs kernels: the yardstick of reports.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::backend::{BufferId, Device, DeviceKind, Place, QueueId};
use crate::error::Result;
use crate::geometry::Box3;
use crate::kernel::ScalarType;
use crate::layout::{Layout, Strides, WHOLE};

/// Cells of a row of the buffers that are copied.
const ROW: usize = 4096;

/// Copies that are timed, and the time after which no further one is started.
const COPIES: u32 = 9;
const ENOUGH_SECONDS: f64 = 0.3;

/// What [`measure`] found when it was asked about the device for the first time in the life of the program.
pub fn copy_bandwidth(device: &dyn Device) -> Result<Option<f64>> {
    static MEASURED: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());
    let name = format!("{} {}", device.info(), device.summary());
    // Held while measuring, so that measurements don't disturb each other.
    let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&bandwidth) = measured.get(&name) {
        return Ok(Some(bandwidth));
    }
    let bandwidth = measure(device)?;
    if let Some(bandwidth) = bandwidth {
        measured.insert(name, bandwidth);
    }
    Ok(bandwidth)
}

/// Bytes per second, read and written bytes counted, of the best of a few copies between two buffers that no cache
/// holds. `None` when there isn't room for them.
pub fn measure(device: &dyn Device) -> Result<Option<f64>> {
    let free = device.free_memory()?.map_or(u64::MAX, |free| free.bytes);
    let Some(bytes) = buffer_bytes(device.info().kind, free) else { return Ok(None) };
    let rows = bytes / (ROW * ScalarType::F64.bytes());
    let cells = Box3 { lo: [0; 3], hi: [ROW as i64, rows as i64, 1] };
    let layout = Layout::new(ScalarType::F64, WHOLE, cells, Strides { row: ROW, plane: ROW * rows })?;
    let from = device.alloc(&layout)?;
    let result = device.alloc(&layout).and_then(|to| {
        let seconds = best_copy(device, &layout, from, to);
        device.free(to);
        seconds
    });
    device.free(from);
    Ok(Some(2.0 * layout.bytes as f64 / result?))
}

/// The size of each buffer: larger than caches, smaller than a quarter of what is free.
fn buffer_bytes(kind: DeviceKind, free: u64) -> Option<usize> {
    let wish: u64 = match kind {
        DeviceKind::Cpu => 128 << 20,
        DeviceKind::Gpu => 512 << 20,
    };
    let row = (ROW * ScalarType::F64.bytes()) as u64;
    let bytes = wish.min(free / 4) / row * row;
    (bytes >= 1 << 20).then_some(bytes as usize)
}

/// The seconds of the fastest copy.
fn best_copy(device: &dyn Device, layout: &Layout, from: BufferId, to: BufferId) -> Result<f64> {
    let queue = QueueId::COMPUTE;
    let Some(region) = layout.region(&layout.cells) else { return Ok(f64::INFINITY) };
    let copy = || {
        let start = Instant::now();
        device.copy(queue, Place { buffer: from, region: &region }, Place { buffer: to, region: &region })?;
        device.finish(queue)?;
        Ok(start.elapsed().as_secs_f64())
    };
    // The first one also pays for what is made ready on first use, so it counts only when it has to.
    let first = copy()?;
    let (mut best, mut total) = (f64::INFINITY, first);
    for _ in 0..COPIES {
        if total >= ENOUGH_SECONDS {
            break;
        }
        let seconds = copy()?;
        best = best.min(seconds);
        total += seconds;
    }
    Ok(if best.is_finite() { best } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BACKENDS, OpenOptions};

    #[test]
    fn every_device_has_a_bandwidth_and_gives_its_memory_back() {
        for backend in BACKENDS {
            for info in backend.devices().devices {
                let device = backend.open_one(info.ordinal, &OpenOptions::default()).unwrap();
                let first = copy_bandwidth(&*device).unwrap();
                assert!(first.is_some_and(|bandwidth| bandwidth.is_finite() && bandwidth > 1e6), "{info}: {first:?}");
                assert_eq!(copy_bandwidth(&*device).unwrap(), first);
            }
        }
    }

    #[test]
    fn buffers_leave_room_for_the_fields() {
        assert_eq!(buffer_bytes(DeviceKind::Cpu, u64::MAX), Some(128 << 20));
        assert_eq!(buffer_bytes(DeviceKind::Gpu, 100 << 20), Some(25 << 20));
        assert_eq!(buffer_bytes(DeviceKind::Gpu, 3 << 20), None);
    }
}
