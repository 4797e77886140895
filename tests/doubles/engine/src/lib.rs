//! What the stand-ins for vendors' drivers have in common: virtual devices, their memory, streams, events and faults.
//!
//! A [`Machine`] has some devices. The vendor's crate gives its entry points to it: each begins with [`Machine::enter`], which
//! counts the call, answers the faults that a test asked for and, in a random order, lets some enqueued work run. What a
//! caller does wrong is an error as well as a line on standard error and in `POLYHALO_DOUBLE_LOG`.

mod capture;
mod copies;
mod events;
mod fault;
mod memory;
mod schedule;
mod settings;
mod streams;
mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use capture::CaptureMode;
pub use copies::{Block, Side};
pub use fault::{Failure, Kind, Outcome};
pub use memory::{Extent, Owner, Place, View};
pub use schedule::{Action, Touch, Work};
pub use settings::{Injection, Order, Pageable, Peers, Settings, Variables};
pub use symbols::without_symbols;

/// What the engine must know of the vendor.
#[derive(Clone, Copy, Debug)]
pub struct Vendor {
    /// Stands before messages.
    pub name: &'static str,
    /// Codes after which a device doesn't work any more, if a test injects them.
    pub sticky: &'static [i32],
}

/// Virtual devices with their memory and all that is enqueued.
pub struct Machine {
    settings: Settings,
    vendor: Vendor,
    state: Mutex<State>,
}

/// What changes.
struct State {
    memory: memory::Memory,
    schedule: schedule::Schedule,
    /// The last number that was given to a handle; none is given twice, so that old ones are noticed.
    last_handle: u64,
    streams: BTreeMap<u64, streams::Stream>,
    events: BTreeMap<u64, events::Event>,
    captures: BTreeMap<u64, capture::Capture>,
    graphs: BTreeMap<u64, capture::Graph>,
    /// What handles that are no longer valid were.
    gone: BTreeMap<u64, &'static str>,
    /// The error after which a device didn't work any more.
    lost: Vec<Option<Failure>>,
    calls: BTreeMap<&'static str, u64>,
    all_calls: u64,
    misuses: Vec<String>,
    call: &'static str,
}

impl Machine {
    /// A machine at rest.
    pub fn new(settings: Settings, vendor: Vendor) -> Self {
        let devices = settings.devices;
        let mut state = State {
            memory: memory::Memory::new(devices, settings.memory_bytes),
            schedule: schedule::Schedule::new(settings.order),
            last_handle: 0,
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            captures: BTreeMap::new(),
            graphs: BTreeMap::new(),
            gone: BTreeMap::new(),
            lost: vec![None; devices],
            calls: BTreeMap::new(),
            all_calls: 0,
            misuses: Vec::new(),
            call: "",
        };
        for device in 0..devices {
            state.streams.insert(streams::default_stream(device), streams::Stream::default_of(device));
        }
        Self { settings, vendor, state: Mutex::new(state) }
    }

    /// What the machine was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.settings.devices
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The beginning of every entry point: counts it, fails if a test wants it to or if the device is lost, and in a random
    /// order lets enqueued work run.
    pub fn enter(&self, call: &'static str, device: Option<usize>) -> Outcome<()> {
        let mut state = self.lock();
        state.call = call;
        state.all_calls += 1;
        let count = state.calls.entry(call).or_default();
        *count += 1;
        let (nth, nth_of_all) = (*count, state.all_calls);
        if let Some(code) = self.settings.injected(call, nth, nth_of_all) {
            let failure = Failure::new(Kind::Code(code), format!("{call}: call {nth} fails as the test asked"));
            if let Some(device) = device.filter(|_| self.vendor.sticky.contains(&code)) {
                state.lost[device].get_or_insert(failure.clone());
            }
            return Err(failure);
        }
        state.run_by_chance();
        state.report_faults(&self.settings, self.vendor);
        match device {
            Some(device) => state.working(device),
            None => Ok(()),
        }
    }

    /// Whether a test wants the call that was entered last to do nothing.
    fn skips(&self) -> bool {
        let state = self.lock();
        let nth = state.calls.get(state.call).copied().unwrap_or(0);
        self.settings.skips(state.call, nth)
    }

    /// Says that the caller did something wrong, and returns the failure to answer with.
    pub fn misuse(&self, kind: Kind, message: impl Into<String>) -> Failure {
        let failure = Failure::misuse(kind, message);
        self.report(&failure);
        failure.again()
    }

    /// Reports what the vendor's crate found wrong, unless it was reported already.
    pub fn report(&self, failure: &Failure) {
        if failure.misuse {
            self.lock().report(&self.settings, self.vendor, failure);
        }
    }

    /// Runs `action` on the state; what the caller did wrong is reported.
    fn with<T>(&self, action: impl FnOnce(&mut State) -> Outcome<T>) -> Outcome<T> {
        let mut state = self.lock();
        let outcome = action(&mut state).map_err(|failure| {
            if failure.misuse {
                state.report(&self.settings, self.vendor, &failure);
            }
            failure.again()
        });
        state.report_faults(&self.settings, self.vendor);
        outcome
    }

    /// All that was done wrong so far.
    pub fn misuses(&self) -> Vec<String> {
        self.lock().misuses.clone()
    }

    /// How often each entry point was called.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.lock().calls.clone()
    }

    /// The failure after which a device doesn't work any more, if there was one.
    pub fn lost(&self, device: usize) -> Option<Failure> {
        self.lock().lost[device].clone().map(Failure::again)
    }

    /// Makes a device as good as new: its memory, streams, events and work are gone, and so is its fault.
    pub fn reset(&self, device: usize) {
        let mut state = self.lock();
        let state = &mut *state;
        state.schedule.drop_work(|work| work.device == device);
        state.memory.forget(device);
        let gone: BTreeSet<u64> =
            state.streams.iter().filter(|(_, stream)| stream.device == device).map(|(id, _)| *id).collect();
        state.streams.retain(|id, _| !gone.contains(id));
        state.gone.extend(gone.into_iter().map(|id| (id, "a stream of a device that was reset")));
        let gone: BTreeSet<u64> =
            state.events.iter().filter(|(_, event)| event.device == device).map(|(id, _)| *id).collect();
        state.events.retain(|id, _| !gone.contains(id));
        state.gone.extend(gone.into_iter().map(|id| (id, "an event of a device that was reset")));
        state.streams.insert(streams::default_stream(device), streams::Stream::default_of(device));
        state.lost[device] = None;
    }

    /// Writes how often each entry point was called to the end of the file that the test named.
    pub fn write_counts(&self) {
        let Some(path) = &self.settings.count else { return };
        // A thread that holds the lock at the end of the program doesn't give it back.
        let Ok(state) = self.state.try_lock() else { return };
        let lines: String = state.calls.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
        append(path, &lines);
    }

    /// Writes the counts when the program ends. One machine of a library can do so.
    pub fn count_until_exit(&'static self) {
        static COUNTED: OnceLock<&'static Machine> = OnceLock::new();
        extern "C" fn write() {
            if let Some(machine) = COUNTED.get() {
                machine.write_counts();
            }
        }
        if self.settings.count.is_some() && COUNTED.set(self).is_ok() {
            // SAFETY: the function takes and returns nothing, and lives as long as the library.
            unsafe { libc::atexit(write) };
        }
    }
}

impl State {
    /// A handle that was never given before. It points to nothing.
    fn handle(&mut self, kind: u64) -> u64 {
        self.last_handle += 1;
        0x5EED_0000_0000_0000 | (kind << 40) | (self.last_handle << 4)
    }

    /// Fails if the device is lost.
    fn working(&self, device: usize) -> Outcome<()> {
        self.lost[device].clone().map_or(Ok(()), |failure| Err(failure.again()))
    }

    /// Reports work that failed since.
    fn report_faults(&mut self, settings: &Settings, vendor: Vendor) {
        for failure in std::mem::take(&mut self.schedule.faults) {
            self.report(settings, vendor, &failure);
        }
    }

    fn report(&mut self, settings: &Settings, vendor: Vendor, failure: &Failure) {
        let line = format!("{} double: {}: {}", vendor.name, self.call, failure.message);
        eprintln!("{line}");
        if let Some(path) = &settings.log {
            append(path, &format!("{line}\n"));
        }
        self.misuses.push(line);
    }
}

/// Adds to a file at once, as several libraries and programs may write to it.
fn append(path: &std::path::Path, text: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
        eprintln!("{}: {error}", path.display());
    }
}
