//! Devices that only write down what they are told.

use std::any::Any;
use std::sync::{Arc, Mutex};

use crate::backend::{
    BufferId, Device, DeviceInfo, DeviceKind, EventId, FreeMemory, KernelId, Launch, Place, QueueId, RecordingId,
    allowed_cpus,
};
use crate::clock::{Span, now};
use crate::error::{Error, Result};
use crate::geometry::Extent;
use crate::kernel::{KernelDesc, ScalarType};
use crate::layout::{Layout, Strides, WHOLE};
use crate::placement::Home;

/// The number of a device, and the CPUs on which the thread that issued an operation for it might run.
type Mask = (usize, Vec<usize>);

/// What some notebooks were told, each note with the number of the device in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    told: Arc<Mutex<Vec<String>>>,
    masks: Arc<Mutex<Vec<Mask>>>,
}

impl Notes {
    /// All notes so far, which are forgotten.
    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap())
    }

    /// One for each operation so far.
    pub(crate) fn masks(&self) -> Vec<Mask> {
        self.masks.lock().unwrap().clone()
    }
}

struct Notebook {
    number: usize,
    info: DeviceInfo,
    home: Home,
    notes: Notes,
    /// For each event the span of the last operation before it.
    spans: Mutex<Vec<Span>>,
    last: Mutex<Span>,
}

impl Notebook {
    /// The first event of the device.
    fn first_event(&self) -> u64 {
        100 * (self.number as u64 + 1)
    }

    fn note(&self, text: String) {
        self.notes.told.lock().unwrap().push(format!("{} {text}", self.number));
    }

    fn work(&self, text: String) -> Result<()> {
        let mut last = self.last.lock().unwrap();
        let start = now();
        self.note(text);
        self.notes.masks.lock().unwrap().push((self.number, allowed_cpus()));
        *last = Span { start, end: now() };
        Ok(())
    }
}

impl Device for Notebook {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn home(&self) -> &Home {
        &self.home
    }

    fn summary(&self) -> String {
        "notebook".into()
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        Ok(Some(FreeMemory { bytes: 1000, limit: "made up".into() }))
    }

    fn alloc(&self, layout: &Layout) -> Result<BufferId> {
        if self.number == 1 && layout.bytes == 448 {
            return Err(Error::Stopped { steps: 0, checkpoint: None });
        }
        self.note("alloc".into());
        Ok(BufferId(7))
    }

    fn free(&self, _: BufferId) {
        self.note("free".into());
    }

    fn write(&self, queue: QueueId, to: Place<'_>, _: &[u8]) -> Result<()> {
        self.work(format!("write {} on {}", to.buffer.0, queue.0))
    }

    fn read(&self, queue: QueueId, from: Place<'_>, _: &mut [u8]) -> Result<()> {
        self.work(format!("read {} on {}", from.buffer.0, queue.0))
    }

    fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        self.work(format!("copy {} to {} on {}", from.buffer.0, to.buffer.0, queue.0))
    }

    fn load(&self, _: &'static KernelDesc) -> Result<KernelId> {
        Ok(KernelId(0))
    }

    fn launch(&self, queue: QueueId, launch: &Launch<'_>) -> Result<()> {
        self.work(format!("launch with {:?} on {}", launch.scalars, queue.0))
    }

    fn signal(&self, queue: QueueId) -> Result<EventId> {
        let mut spans = self.spans.lock().unwrap();
        spans.push(*self.last.lock().unwrap());
        let event = self.first_event() + spans.len() as u64 - 1;
        self.note(format!("signal {event} on {}", queue.0));
        Ok(EventId(event))
    }

    fn wait(&self, queue: QueueId, event: EventId) -> Result<()> {
        self.note(format!("wait on {} for {}", queue.0, event.0));
        Ok(())
    }

    fn finish(&self, queue: QueueId) -> Result<()> {
        self.note(format!("finish {}", queue.0));
        Ok(())
    }

    fn synchronize(&self, event: EventId) -> Result<()> {
        self.note(format!("synchronize {}", event.0));
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn awaits(&self, other: &dyn Device) -> bool {
        // The first two share a driver.
        self.number < 2 && other.as_any().downcast_ref::<Self>().is_some_and(|other| other.number < 2)
    }

    fn wait_for_peer(&self, queue: QueueId, _: &dyn Device, event: EventId) -> Result<()> {
        self.note(format!("wait on {} for peer's {}", queue.0, event.0));
        Ok(())
    }

    fn reaches(&self, other: &dyn Device) -> Result<(), String> {
        if self.awaits(other) { Ok(()) } else { Err("it is another notebook".into()) }
    }

    fn copy_to_peer(&self, queue: QueueId, from: Place<'_>, other: &dyn Device, to: Place<'_>) -> Result<()> {
        let other = other.as_any().downcast_ref::<Self>().map_or(0, |other| other.number);
        self.work(format!("send {} to {other}'s {} on {}", from.buffer.0, to.buffer.0, queue.0))
    }

    fn record(&self, queue: QueueId) -> Result<bool> {
        let can = self.number < 2;
        if can {
            self.note(format!("record on {}", queue.0));
        }
        Ok(can)
    }

    fn recorded(&self, queue: QueueId) -> Result<RecordingId> {
        self.note(format!("recorded on {}", queue.0));
        Ok(RecordingId(5))
    }

    fn replay(&self, queue: QueueId, recording: RecordingId) -> Result<()> {
        self.work(format!("replay {} on {}", recording.0, queue.0))
    }

    fn forget(&self, recording: RecordingId) {
        self.note(format!("forget {}", recording.0));
    }

    fn span(&self, event: EventId) -> Result<Option<Span>> {
        let number = event.0.checked_sub(self.first_event());
        Ok(number.and_then(|number| self.spans.lock().unwrap().get(number as usize).copied()))
    }
}

/// So many devices, and what they are told.
pub(crate) fn notebooks(count: usize) -> (Vec<Box<dyn Device>>, Notes) {
    notebooks_at(vec![Home::ANYWHERE; count])
}

/// A device for each home, and what they are told.
pub(crate) fn notebooks_at(homes: Vec<Home>) -> (Vec<Box<dyn Device>>, Notes) {
    let notes = Notes::default();
    let info = DeviceInfo {
        backend: "notebook",
        ordinal: 0,
        name: String::new(),
        platform: String::new(),
        notes: Vec::new(),
        kind: DeviceKind::Cpu,
        pci: None,
        fp64: true,
        units: 1,
        memory_bytes: 1000,
    };
    let device = |(number, home)| -> Box<dyn Device> {
        let (spans, last) = Default::default();
        Box::new(Notebook { number, info: info.clone(), home, notes: notes.clone(), spans, last })
    };
    (homes.into_iter().enumerate().map(device).collect(), notes)
}

/// The layout of a row of cells.
pub(crate) fn row(cells: usize) -> Layout {
    let whole = Extent::new([cells, 1, 1]).unwrap().whole();
    Layout::new(ScalarType::F64, WHOLE, whole, Strides::for_cells(whole.size(), 8).unwrap()).unwrap()
}
