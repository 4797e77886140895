//! The reference device: the user's function as rustc compiled it, one point at a time on one thread, in safe code.
//!
//! Everything else is held against it.

mod memory;
mod point;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use memory::{Cell, Memory};
pub use point::{PointArgs, Results, View};

use super::{
    Backend, BufferId, Cells, Device, DeviceInfo, DeviceKind, EventId, FreeMemory, KernelId, Launch, Listing,
    OpenOptions, Place, QueueId, host, panic_message,
};
use crate::error::{Error, Result};
use crate::kernel::{KernelDesc, OutputDesc};
use crate::layout::{Layout, Region};
use crate::reduction::words;
use point::Folded;

/// The back end with the reference device.
pub struct Reference;

impl Backend for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn devices(&self) -> Listing {
        let info = DeviceInfo {
            backend: self.name(),
            ordinal: 0,
            name: "one thread, one point at a time".into(),
            platform: String::new(),
            notes: Vec::new(),
            kind: DeviceKind::Cpu,
            pci: None,
            fp64: true,
            units: 1,
            memory_bytes: host::total_memory(),
        };
        Listing { devices: vec![info], absent: Vec::new() }
    }

    fn open(&self, ordinals: &[u32], _: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
        let open = |&ordinal: &u32| -> Result<Box<dyn Device>> {
            let info = super::listed(self, ordinal)?;
            Ok(Box::new(ReferenceDevice { info, state: Mutex::default() }))
        };
        ordinals.iter().map(open).collect()
    }
}

struct ReferenceDevice {
    info: DeviceInfo,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    buffers: BTreeMap<BufferId, Memory>,
    last_buffer: u64,
    kernels: Vec<&'static KernelDesc>,
}

impl ReferenceDevice {
    fn state(&self) -> MutexGuard<'_, State> {
        // Kernels run outside of any invariant of the state, so a poisoned lock holds nothing broken.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn misuse(&self, call: &str, message: impl Into<String>) -> Error {
        Error::Driver { backend: "reference", device: self.summary(), call: call.into(), message: message.into() }
    }

    fn no_buffer(&self, call: &str, buffer: BufferId) -> Error {
        self.misuse(call, format!("there is no buffer {}", buffer.0))
    }

    /// The memory of a buffer, if `region` lies in it and has `bytes` bytes.
    fn checked<'a>(&self, state: &'a mut State, call: &str, place: Place<'_>, bytes: usize) -> Result<&'a mut Memory> {
        let memory = state.buffers.get_mut(&place.buffer).ok_or_else(|| self.no_buffer(call, place.buffer))?;
        if place.region.bytes() != bytes || !memory.holds(place.region) {
            return Err(self.misuse(call, format!("the box {:?} doesn't fit the buffer or the data", place.region)));
        }
        Ok(memory)
    }
}

impl Device for ReferenceDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn summary(&self) -> String {
        "reference (1 thread)".into()
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        Ok(host::free_memory())
    }

    fn alloc(&self, layout: &Layout) -> Result<BufferId> {
        let memory = Memory::new(*layout).map_err(|error| Error::System {
            call: format!("reserving {} bytes of memory", layout.bytes),
            source: io::Error::new(io::ErrorKind::OutOfMemory, error),
        })?;
        let mut state = self.state();
        state.last_buffer += 1;
        let buffer = BufferId(state.last_buffer);
        state.buffers.insert(buffer, memory);
        Ok(buffer)
    }

    fn free(&self, buffer: BufferId) {
        self.state().buffers.remove(&buffer);
    }

    fn write(&self, _: QueueId, to: Place<'_>, data: &[u8]) -> Result<()> {
        self.checked(&mut self.state(), "write", to, data.len())?.put(to.region, data);
        Ok(())
    }

    fn read(&self, _: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()> {
        let rows = self.checked(&mut self.state(), "read", from, data.len())?.get(from.region);
        data.copy_from_slice(&rows);
        Ok(())
    }

    fn copy(&self, _: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        let mut state = self.state();
        let bytes = from.region.bytes();
        let one_plane = |region: &Region, plane: usize| Region {
            offset: region.offset + plane * region.plane_pitch,
            planes: 1,
            ..*region
        };
        self.checked(&mut state, "copy", from, bytes)?;
        self.checked(&mut state, "copy", to, bytes)?;
        if !from.region.same_shape(to.region) {
            return Err(self.misuse("copy", "the boxes have different shapes"));
        }
        // Plane by plane, so that copying needs little memory of its own.
        for plane in 0..from.region.planes {
            let rows = match state.buffers.get(&from.buffer) {
                Some(memory) => memory.get(&one_plane(from.region, plane)),
                None => return Err(self.no_buffer("copy", from.buffer)),
            };
            if let Some(memory) = state.buffers.get_mut(&to.buffer) {
                memory.put(&one_plane(to.region, plane), &rows);
            }
        }
        Ok(())
    }

    fn load(&self, kernel: &'static KernelDesc) -> Result<KernelId> {
        let kernels = &mut self.state().kernels;
        let known = kernels.iter().position(|&other| std::ptr::eq(other, kernel));
        let number = known.unwrap_or_else(|| {
            kernels.push(kernel);
            kernels.len() - 1
        });
        Ok(KernelId(number as u32))
    }

    fn launch(&self, _: QueueId, launch: &Launch<'_>) -> Result<()> {
        let mut state = self.state();
        let kernel = *(state.kernels.get(launch.kernel.0 as usize))
            .ok_or_else(|| self.misuse("launch", format!("there is no kernel {}", launch.kernel.0)))?;
        let layout = |buffer| state.buffers.get(&buffer).map(|memory| memory.layout);
        launch.check(kernel, layout).map_err(|message| self.misuse("launch", message))?;
        // Buffers leave the map while the kernel runs: one may be a result and a field.
        let mut buffers: Vec<_> = launch.outputs.iter().chain(launch.fields).map(|cells| cells.buffer).collect();
        buffers.sort_unstable();
        buffers.dedup();
        let mut memories: Vec<_> = buffers.iter().filter_map(|buffer| state.buffers.remove(buffer)).collect();
        let numbers =
            |all: &[Cells]| all.iter().filter_map(|cells| buffers.binary_search(&cells.buffer).ok()).collect();
        let (fields, outputs): (Vec<_>, Vec<_>) = (numbers(launch.fields), numbers(launch.outputs));
        let result = run(kernel, &mut memories, (&fields, &outputs), launch);
        state.buffers.extend(buffers.into_iter().zip(memories));
        result.map_err(|(local, message)| {
            let [i, j, k] = point::global(launch.global, local);
            let place = format!("`{}` at point ({i}, {j}, {k})", kernel.name);
            Error::Panicked { device: self.summary(), place, message: explained(message) }
        })
    }

    fn signal(&self, _: QueueId) -> Result<EventId> {
        // Operations are finished when their call returns, so every event has happened.
        Ok(EventId(0))
    }

    fn wait(&self, _: QueueId, _: EventId) -> Result<()> {
        Ok(())
    }

    fn finish(&self, _: QueueId) -> Result<()> {
        Ok(())
    }

    fn synchronize(&self, _: EventId) -> Result<()> {
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Calls the kernel at every point of the range and stores what it folds for each row; a panic is returned with its point
/// and message. `fields` and `outputs` are numbers of memories.
fn run(
    kernel: &KernelDesc,
    memories: &mut [Memory],
    (fields, outputs): (&[usize], &[usize]),
    launch: &Launch<'_>,
) -> Result<(), ([i64; 3], String)> {
    let fold = |output: &OutputDesc| {
        words(output.role, output.ty).map(|words| Folded { role: output.role, ty: output.ty, words })
    };
    let mut folded: Vec<_> = kernel.outputs.iter().map(fold).collect();
    let is_updated = |[x, y, z]: [i64; 3]| launch.parity.is_none_or(|parity| (x + y + z) & 1 == i64::from(parity));
    let mut local = launch.range.lo;
    let points = AssertUnwindSafe(|| {
        let Launch { range, scalars, global, shift, .. } = *launch;
        for (z, y) in (range.lo[2]..range.hi[2]).flat_map(|z| (range.lo[1]..range.hi[1]).map(move |y| (z, y))) {
            folded.iter_mut().flatten().for_each(|folded| folded.words.restart());
            for x in range.lo[0]..range.hi[0] {
                local = [x, y, z];
                if is_updated(local) {
                    let folded = &mut folded;
                    let mut at = PointArgs { memories, fields, outputs, folded, scalars, global, local, shift };
                    (kernel.reference)(&mut at);
                }
            }
            for (folded, &output) in folded.iter().zip(outputs) {
                if let (Some(folded), Some(index)) = (folded, memories[output].layout.index(local)) {
                    memories[output].set(index, folded.words.row());
                }
            }
        }
    });
    catch_unwind(points).map_err(|panic| (local, panic_message(panic.as_ref())))
}

/// The message of a panic; where rustc's checks of integers raised it, with what other devices do there.
fn explained(message: String) -> String {
    let others = match message.as_str() {
        "attempt to divide by zero" | "attempt to calculate the remainder with a divisor of zero" => "give 0 there",
        _ if message.starts_with("index out of bounds") => "read the last element of a table there",
        _ if message.starts_with("attempt to ") && message.ends_with(" with overflow") => "wrap around there",
        _ => return message,
    };
    format!("{message}; the other devices {others}")
}
