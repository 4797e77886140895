//! A device that fails at a chosen call, and otherwise does what another one does.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::backend::{BufferId, Device, DeviceInfo, EventId, FreeMemory, KernelId, Launch, Place, QueueId, Staging};
use crate::clock::Span;
use crate::error::{Error, Result};
use crate::kernel::KernelDesc;
use crate::layout::Layout;
use crate::placement::Home;

/// The calls that can fail.
pub(crate) const KINDS: [&str; 17] = [
    "free_memory",
    "alloc",
    "write",
    "read",
    "copy",
    "load",
    "launch",
    "signal",
    "wait",
    "finish",
    "synchronize",
    "wait_for_peer",
    "copy_to_peer",
    "staging",
    "download",
    "upload",
    "span",
];

/// The calls of some devices together.
#[derive(Debug)]
pub(crate) struct Calls {
    counts: Mutex<BTreeMap<&'static str, usize>>,
    /// The call that fails, and the how manyeth of its kind, counted from 0.
    fault: Option<(&'static str, usize)>,
    /// Calls take a while, another one each time.
    dawdle: bool,
}

impl Calls {
    /// Calls of which none fails.
    pub(crate) fn sound() -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), fault: None, dawdle: false })
    }

    /// Calls of which none fails and that take different times.
    pub(crate) fn slow() -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), fault: None, dawdle: true })
    }

    /// Calls of which the `number`th of a kind fails.
    pub(crate) fn failing(call: &'static str, number: usize) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), fault: Some((call, number)), dawdle: false })
    }

    /// How often each call was made.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.counts.lock().unwrap().clone()
    }

    fn count(&self, device: &dyn Device, call: &'static str) -> Result<()> {
        let number = {
            let mut counts = self.counts.lock().unwrap();
            let count = counts.entry(call).or_default();
            *count += 1;
            *count - 1
        };
        if self.dawdle {
            thread::sleep(Duration::from_micros((number as u64).wrapping_mul(7919) % 61));
        }
        if self.fault == Some((call, number)) {
            return Err(Error::Driver {
                backend: device.info().backend,
                device: device.summary(),
                call: format!("{call} {number}"),
                message: "it was told to fail".into(),
            });
        }
        Ok(())
    }
}

/// A device whose calls are counted, and that reaches all others.
pub(crate) struct Faulty {
    inner: Box<dyn Device>,
    calls: Arc<Calls>,
}

impl Faulty {
    /// Devices that do what others do, unless a call fails.
    pub(crate) fn wrap(devices: Vec<Box<dyn Device>>, calls: &Arc<Calls>) -> Vec<Box<dyn Device>> {
        let wrap = |inner| Box::new(Self { inner, calls: Arc::clone(calls) }) as Box<dyn Device>;
        devices.into_iter().map(wrap).collect()
    }

    fn count(&self, call: &'static str) -> Result<()> {
        self.calls.count(&*self.inner, call)
    }
}

impl Device for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn home(&self) -> &Home {
        self.inner.home()
    }

    fn summary(&self) -> String {
        self.inner.summary()
    }

    fn free_memory(&self) -> Result<Option<FreeMemory>> {
        self.count("free_memory")?;
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

    fn reaches(&self, _: &dyn Device) -> Result<(), String> {
        Ok(())
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
        self.count("span")?;
        self.inner.span(event)
    }
}
