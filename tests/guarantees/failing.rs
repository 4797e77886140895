//! A device that fails at a chosen call and otherwise does what another one does.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use polyhalo::backend::{BufferId, Device, DeviceInfo, EventId, FreeMemory, KernelId, Launch, Place, QueueId, Staging};
use polyhalo::kernel::KernelDesc;
use polyhalo::{Error, Result};
use polyhalo_runtime::clock::Span;
use polyhalo_runtime::layout::Layout;

/// The calls of a device: how many there were, and which one fails, counted from 0.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: Mutex<BTreeMap<&'static str, usize>>,
    fault: Option<(&'static str, usize)>,
}

impl Calls {
    /// Calls of which none fails.
    pub(crate) fn sound() -> Arc<Self> {
        Arc::default()
    }

    /// Calls of which one fails.
    pub(crate) fn failing(call: &'static str, number: usize) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), fault: Some((call, number)) })
    }

    /// How many there were.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.counts.lock().unwrap().clone()
    }
}

/// The device.
pub(crate) struct Failing {
    inner: Box<dyn Device>,
    calls: Arc<Calls>,
}

impl Failing {
    /// Another device with its calls counted.
    pub(crate) fn wrap(inner: Box<dyn Device>, calls: &Arc<Calls>) -> Box<dyn Device> {
        Box::new(Self { inner, calls: Arc::clone(calls) })
    }

    fn count(&self, call: &'static str) -> Result<()> {
        let number = {
            let mut counts = self.calls.counts.lock().unwrap();
            let count = counts.entry(call).or_default();
            *count += 1;
            *count - 1
        };
        if self.calls.fault != Some((call, number)) {
            return Ok(());
        }
        let (backend, device) = (self.info().backend, self.summary());
        Err(Error::Driver { backend, device, call: call.into(), message: format!("call {number} was told to fail") })
    }
}

impl Device for Failing {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn summary(&self) -> String {
        format!("failing {}", self.inner.summary())
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        self.inner.free_memory()
    }

    fn alloc(&self, layout: &Layout) -> Result<BufferId> {
        self.count("alloc")?;
        self.inner.alloc(layout)
    }

    fn free(&self, buffer: BufferId) {
        self.inner.free(buffer);
    }

    fn write(&self, queue: QueueId, to: Place<'_>, data: &[u8]) -> Result<()> {
        self.count("write")?;
        self.inner.write(queue, to, data)
    }

    fn read(&self, queue: QueueId, from: Place<'_>, data: &mut [u8]) -> Result<()> {
        self.count("read")?;
        self.inner.read(queue, from, data)
    }

    fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
        self.count("copy")?;
        self.inner.copy(queue, from, to)
    }

    fn load(&self, kernel: &'static KernelDesc) -> Result<KernelId> {
        self.count("load")?;
        self.inner.load(kernel)
    }

    fn launch(&self, queue: QueueId, launch: &Launch<'_>) -> Result<()> {
        self.count("launch")?;
        self.inner.launch(queue, launch)
    }

    fn signal(&self, queue: QueueId) -> Result<EventId> {
        self.count("signal")?;
        self.inner.signal(queue)
    }

    fn wait(&self, queue: QueueId, event: EventId) -> Result<()> {
        self.count("wait")?;
        self.inner.wait(queue, event)
    }

    fn finish(&self, queue: QueueId) -> Result<()> {
        self.count("finish")?;
        self.inner.finish(queue)
    }

    fn synchronize(&self, event: EventId) -> Result<()> {
        self.count("synchronize")?;
        self.inner.synchronize(event)
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn awaits(&self, other: &dyn Device) -> bool {
        self.inner.awaits(other)
    }

    fn wait_for_peer(&self, queue: QueueId, other: &dyn Device, event: EventId) -> Result<()> {
        self.count("wait_for_peer")?;
        self.inner.wait_for_peer(queue, other, event)
    }

    fn reaches(&self, other: &dyn Device) -> std::result::Result<(), String> {
        self.inner.reaches(other)
    }

    fn copy_to_peer(&self, queue: QueueId, from: Place<'_>, other: &dyn Device, to: Place<'_>) -> Result<()> {
        self.count("copy_to_peer")?;
        self.inner.copy_to_peer(queue, from, other, to)
    }

    fn staging(&self, bytes: usize) -> Result<Arc<Staging>> {
        self.count("staging")?;
        self.inner.staging(bytes)
    }

    fn download(&self, queue: QueueId, from: Place<'_>, to: &Arc<Staging>, at: usize) -> Result<()> {
        self.count("download")?;
        self.inner.download(queue, from, to, at)
    }

    fn upload(&self, queue: QueueId, from: &Arc<Staging>, at: usize, to: Place<'_>) -> Result<()> {
        self.count("upload")?;
        self.inner.upload(queue, from, at, to)
    }

    fn span(&self, event: EventId) -> Result<Option<Span>> {
        self.inner.span(event)
    }
}
