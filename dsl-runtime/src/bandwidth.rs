//! The copy bandwidth of devices, measured through the same trait that runs kernels: the yardstick of reports.

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

/// What [`measure`] found when it was asked about these devices for the first time in the life of the program.
pub fn copy_bandwidth(devices: &[&dyn Device]) -> Result<Option<f64>> {
    static MEASURED: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());
    let names = devices.iter().map(|device| format!("{} {}", device.info(), device.summary()));
    let name = names.collect::<Vec<_>>().join(" + ");
    // Held while measuring, so that measurements don't disturb each other.
    let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&bandwidth) = measured.get(&name) {
        return Ok(Some(bandwidth));
    }
    let bandwidth = measure(devices)?;
    if let Some(bandwidth) = bandwidth {
        measured.insert(name, bandwidth);
    }
    Ok(bandwidth)
}

/// Bytes per second of all devices together, read and written bytes counted, of the best of a few copies between two
/// buffers of each that no cache holds: devices that share a memory share its bandwidth. `None` when there isn't room for them.
pub fn measure(devices: &[&dyn Device]) -> Result<Option<f64>> {
    let mut copies = Vec::new();
    for device in devices {
        let free = device.free_memory()?.map_or(u64::MAX, |free| free.bytes);
        let Some(bytes) = buffer_bytes(device.info().kind, free, devices.len()) else { return Ok(None) };
        copies.push(Pair::new(*device, bytes)?);
    }
    let bytes: usize = copies.iter().map(|copy| 2 * copy.layout.bytes).sum();
    Ok(Some(bytes as f64 / best_copy(&copies)?))
}

/// Two buffers of a device that are copied, given back in the end.
struct Pair<'a> {
    device: &'a dyn Device,
    layout: Layout,
    from: BufferId,
    to: Option<BufferId>,
}

impl<'a> Pair<'a> {
    fn new(device: &'a dyn Device, bytes: usize) -> Result<Self> {
        let rows = bytes / (ROW * ScalarType::F64.bytes());
        let cells = Box3 { lo: [0; 3], hi: [ROW as i64, rows as i64, 1] };
        let layout = Layout::new(ScalarType::F64, WHOLE, cells, Strides { row: ROW, plane: ROW * rows })?;
        let from = device.alloc(&layout)?;
        let mut pair = Self { device, layout, from, to: None };
        pair.to = Some(device.alloc(&layout)?);
        Ok(pair)
    }

    fn copy(&self) -> Result<()> {
        let (Some(region), Some(to)) = (self.layout.region(&self.layout.cells), self.to) else { return Ok(()) };
        let queue = QueueId::COMPUTE;
        self.device.copy(queue, Place { buffer: self.from, region: &region }, Place { buffer: to, region: &region })?;
        self.device.finish(queue)
    }
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        self.to.into_iter().chain([self.from]).for_each(|buffer| self.device.free(buffer));
    }
}

/// The size of each buffer: larger than caches, and with those of `devices` devices that may share a memory smaller than a
/// quarter of what is free.
fn buffer_bytes(kind: DeviceKind, free: u64, devices: usize) -> Option<usize> {
    let wish: u64 = match kind {
        // Processors share the caches too.
        DeviceKind::Cpu => ((128 << 20) / devices.max(1) as u64).max(8 << 20),
        DeviceKind::Gpu => 512 << 20,
    };
    let row = (ROW * ScalarType::F64.bytes()) as u64;
    let bytes = wish.min(free / 4 / devices.max(1) as u64) / row * row;
    (bytes >= 1 << 20).then_some(bytes as usize)
}

/// The seconds of the fastest copy of all at once.
fn best_copy(pairs: &[Pair<'_>]) -> Result<f64> {
    let copy = || {
        let start = Instant::now();
        match pairs {
            [pair] => pair.copy()?,
            pairs => std::thread::scope(|scope| {
                let threads: Vec<_> = pairs.iter().map(|pair| scope.spawn(|| pair.copy())).collect();
                let joined = threads.into_iter().map(|thread| thread.join().expect("devices don't panic"));
                joined.collect::<Result<Vec<_>>>().map(drop)
            })?,
        }
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
    use crate::backend::host::Host;
    use crate::backend::{BACKENDS, Backend, OpenOptions};

    #[test]
    fn every_device_has_a_bandwidth_and_gives_its_memory_back() {
        for backend in BACKENDS {
            for info in backend.devices().devices {
                let device = backend.open_one(info.ordinal, &OpenOptions::default()).unwrap();
                let first = copy_bandwidth(&[&*device]).unwrap();
                assert!(first.is_some_and(|bandwidth| bandwidth.is_finite() && bandwidth > 1e6), "{info}: {first:?}");
                assert_eq!(copy_bandwidth(&[&*device]).unwrap(), first);
            }
        }
    }

    #[test]
    fn devices_together_have_no_more_than_the_memory_that_they_share() {
        let devices = Host.open(&[0; 4], &OpenOptions::default()).unwrap();
        let devices: Vec<_> = devices.iter().map(|device| &**device).collect();
        assert!(measure(&devices).unwrap().is_some_and(|bandwidth| bandwidth.is_finite() && bandwidth > 1e6));
    }

    #[test]
    fn buffers_leave_room_for_the_fields() {
        assert_eq!(buffer_bytes(DeviceKind::Cpu, u64::MAX, 1), Some(128 << 20));
        assert_eq!(buffer_bytes(DeviceKind::Gpu, 200 << 20, 2), Some(25 << 20));
        assert_eq!(buffer_bytes(DeviceKind::Gpu, 3 << 20, 1), None);
    }
}
