//! Simulations: a grid, the devices that it lives on, its fields and the runs of its steps.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::{Device, DeviceKind, OpenClForm, OpenOptions, Place, QueueId, host::InstructionSet};
use crate::bandwidth::copy_bandwidth;
use crate::devices;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exchange::Exchange;
use crate::execute::{Memory, Program, allocate};
use crate::field::Field;
use crate::geometry::{Box3, Extent};
use crate::kernel::{self, ScalarType};
use crate::layout::{Layout, Strides};
use crate::partition::partition;
use crate::plan::{FieldId, Role};
use crate::report::{Progress, Report, per_second};
use crate::source::{Planes, Source};
use crate::step::{Stages, Step};

/// Bytes that are moved between host and devices at once when fields are filled and read.
const CHUNK_BYTES: usize = 64 << 20;

/// About how long devices step before the caller hears of it.
const PROGRESS_SECONDS: f64 = 0.1;

/// Steps that are enqueued at most before devices are waited for.
const MOST_STEPS_AHEAD: u64 = 256;

/// A grid with fields on devices.
#[derive(Clone)]
pub struct Simulation {
    pub(crate) shared: Arc<Shared>,
}

/// What handles of a simulation share.
pub(crate) struct Shared {
    /// Tells simulations apart.
    pub(crate) id: u64,
    pub(crate) extent: Extent,
    pub(crate) exchange: Exchange,
    pub(crate) devices: Vec<Box<dyn Device>>,
    /// What each device owns, in global coordinates.
    owned: Vec<Box3>,
    measures_bandwidth: bool,
    state: Mutex<State>,
}

/// What changes.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) fields: Vec<FieldFacts>,
    pub(crate) memory: Vec<Memory>,
    /// Set by the first field.
    strides: Vec<Strides>,
    steps: u64,
    /// Set when an operation has failed, with the steps that were finished before.
    stopped: Option<u64>,
}

/// What is known of a field beside its memory.
pub(crate) struct FieldFacts {
    pub(crate) name: String,
    pub(crate) ty: ScalarType,
    /// Where the two buffers may differ, in local coordinates of any device; of no meaning without a second one.
    differs: Box3,
}

/// A simulation in the making.
#[derive(Clone, Debug)]
pub struct Builder {
    cells: [usize; 3],
    devices: String,
    exchange: Exchange,
    options: OpenOptions,
    measures_bandwidth: bool,
}

impl Builder {
    /// The devices: `auto` (the default: a GPU if there is one that can run the program's kernels, else the host),
    /// `reference`, `host`, `opencl`, `opencl:PLATFORM` with a part of a platform's name.
    pub fn devices(mut self, spec: impl Into<String>) -> Self {
        self.devices = spec.into();
        self
    }

    /// How halos are exchanged between devices.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.exchange = exchange;
        self
    }

    /// The number of threads of a host device; by default one for each CPU that the process may use.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// The instruction set of native kernels; by default the best one of the CPU.
    pub fn instruction_set(mut self, set: InstructionSet) -> Self {
        self.options.instruction_set = Some(set);
        self
    }

    /// The form in which OpenCL devices get their kernels.
    pub fn opencl_form(mut self, form: OpenClForm) -> Self {
        self.options.opencl_form = form;
        self
    }

    /// Whether runs measure the copy bandwidth of the devices for their report (the default). It takes a fraction of
    /// a second, once.
    pub fn measure_bandwidth(mut self, measure: bool) -> Self {
        self.measures_bandwidth = measure;
        self
    }

    /// Opens the devices.
    pub fn build(self) -> Result<Simulation> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let extent = Extent::new(self.cells)?;
        let (backend, info) = devices::find(&self.devices, &kernel::registry())?;
        let device = backend.open(info.ordinal, &self.options)?;
        let devices = vec![device];
        let owned = partition(extent, &extent.whole(), devices.len(), [0; 2])?;
        let shared = Shared {
            id: COUNT.fetch_add(1, Ordering::Relaxed),
            extent,
            exchange: self.exchange,
            devices,
            owned,
            measures_bandwidth: self.measures_bandwidth,
            state: Mutex::default(),
        };
        Ok(Simulation { shared: Arc::new(shared) })
    }
}

impl Simulation {
    /// A simulation on a grid with these numbers of cells along X, Y and Z.
    pub fn on(cells: [usize; 3]) -> Builder {
        Builder {
            cells,
            devices: "auto".into(),
            exchange: Exchange::default(),
            options: OpenOptions::default(),
            measures_bandwidth: true,
        }
    }

    /// Cells along X, Y and Z.
    pub fn cells(&self) -> [usize; 3] {
        self.shared.extent.cells()
    }

    /// The devices in words, such as `host (2 threads, AVX-512)`.
    pub fn devices(&self) -> Vec<String> {
        self.shared.devices.iter().map(|device| device.summary()).collect()
    }

    /// Whether a device is a GPU.
    pub fn uses_gpu(&self) -> bool {
        self.shared.devices.iter().any(|device| device.info().kind == DeviceKind::Gpu)
    }

    /// The exchange strategy.
    pub fn exchange(&self) -> Exchange {
        self.shared.exchange
    }

    /// A field of zeros.
    pub fn field<T: Element>(&self, name: &str) -> Result<Field<T>> {
        let id = self.shared.add_field(name, T::TYPE)?;
        Ok(Field::new(Arc::clone(&self.shared), id, name))
    }

    /// A field with values from a function of the point, an array of shape (nz, ny, nx), or a `.npy` file.
    pub fn field_from<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<Field<T>> {
        let planes = source.open(name, self.shared.extent)?;
        let field = self.field(name)?;
        self.shared.fill(field.reference().id, &planes)?;
        Ok(field)
    }

    /// Records a step: `record` lists its stages. Kernels are built and memory is reserved; nothing runs yet.
    pub fn step<R>(&self, record: impl FnOnce(&mut Stages) -> R) -> Result<Step> {
        let mut stages = Stages::new(&self.shared);
        record(&mut stages);
        Step::new(&self.shared, stages.finish()?)
    }

    /// Runs a step `steps` times.
    pub fn run(&self, step: &Step, steps: u64) -> Result<Report> {
        self.run_with(step, steps, |_| ControlFlow::Continue(()))
    }

    /// Runs a step `steps` times and calls `watch` about ten times a second, between two steps, and after the last
    /// one. `watch` may read fields; when it breaks, the run ends. Its time isn't the run's.
    pub fn run_with(
        &self,
        step: &Step,
        steps: u64,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Report> {
        let (shared, program) = (&self.shared, step.program());
        if step.simulation() != shared.id {
            return Err(Error::Foreign { what: "the step of", name: step.kernels().join(", ") });
        }
        shared.prepare(program, steps)?;
        let (mut done, mut elapsed, mut ahead) = (0, Duration::ZERO, 1);
        while done < steps {
            let count = steps.min(done + ahead) - done;
            let time = shared.advance(program, count)?;
            done += count;
            elapsed += time;
            let each = time.as_secs_f64() / count as f64;
            ahead = ((PROGRESS_SECONDS / each) as u64).clamp(1, MOST_STEPS_AHEAD);
            let points_per_second = per_second(program.plan.points() * done, elapsed.as_secs_f64());
            if watch(Progress { done, steps, elapsed, points_per_second }).is_break() {
                break;
            }
        }
        Ok(Report {
            kernels: step.kernels(),
            grid: self.cells(),
            steps: done,
            devices: self.devices(),
            exchange: shared.exchange,
            seconds: elapsed.as_secs_f64(),
            points: program.plan.points() * done,
            bytes: program.plan.bytes() * done,
            copy_bandwidth: if done > 0 { shared.copy_bandwidth()? } else { None },
        })
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Simulation {} on {}", self.shared.extent, self.devices().join(" + "))
    }
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // No user's code runs while the lock is held, and a failed operation is recorded in the state itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The global index of the first cell that each device owns.
    pub(crate) fn origins(&self) -> Vec<[i32; 3]> {
        // An extent numbers its cells with an `i32`.
        self.owned.iter().map(|owned| owned.lo.map(|lo| lo as i32)).collect()
    }

    fn add_field(&self, name: &str, ty: ScalarType) -> Result<FieldId> {
        let mut state = self.state();
        if state.fields.iter().any(|field| field.name == name) {
            return Err(Error::DuplicateField { name: name.into() });
        }
        let local = |owned: &Box3| owned.shifted(owned.lo.map(|lo| -lo));
        if state.strides.is_empty() {
            let strides = |owned: &Box3| Strides::for_first(ty, owned.size());
            state.strides = self.owned.iter().map(strides).collect::<Result<_>>()?;
        }
        let places = self.owned.iter().zip(&state.strides);
        let layouts: Vec<_> =
            places.map(|(owned, &strides)| Layout::new(ty, local(owned), strides)).collect::<Result<_>>()?;
        let current = allocate(&self.devices, &layouts, &format!("field `{name}`"))?;
        state.memory.push(Memory { layouts, current, spare: Vec::new() });
        state.fields.push(FieldFacts { name: name.into(), ty, differs: Box3::EMPTY });
        Ok(FieldId(state.fields.len() as u32 - 1))
    }

    /// Makes sure that these fields have a second buffer.
    pub(crate) fn double(&self, fields: &[FieldId]) -> Result<()> {
        let mut state = self.state();
        for &field in fields {
            let number = field.0 as usize;
            if state.memory[number].spare.is_empty() {
                let what = format!("the second buffer of field `{}`", state.fields[number].name);
                let memory = &mut state.memory[number];
                memory.spare = allocate(&self.devices, &memory.layouts, &what)?;
                // It holds zeros: nothing in it may be taken for a value of the field.
                let stored = memory.layouts.iter().map(|layout| layout.cells);
                state.fields[number].differs = stored.fold(Box3::EMPTY, |all, cells| all.hull(&cells));
            }
        }
        Ok(())
    }

    /// Replaces the values of a field.
    pub(crate) fn fill<T: Element>(&self, field: FieldId, planes: &impl Planes<T>) -> Result<()> {
        let (whole, number) = (self.extent.whole(), field.0 as usize);
        for part in self.chunks(&whole, size_of::<T>()) {
            let bytes = planes.bytes(part.lo[2] as usize..part.hi[2] as usize);
            let state = self.state();
            let mut rest = bytes.as_slice();
            self.each_device(&state.memory[number], &part, |device, place, count| {
                let (own, others) = rest.split_at(count);
                rest = others;
                device.write(QueueId::COMPUTE, place, own)
            })?;
        }
        let mut state = self.state();
        let stored = state.memory[number].layouts.iter().fold(Box3::EMPTY, |all, layout| all.hull(&layout.cells));
        state.fields[number].differs = stored;
        Ok(())
    }

    /// The bytes of a box of a field, rows after rows.
    pub(crate) fn read(&self, field: FieldId, part: &Box3) -> Result<Vec<u8>> {
        let state = self.state();
        state.check()?;
        let memory = &state.memory[field.0 as usize];
        let cell = state.fields[field.0 as usize].ty.bytes();
        let mut bytes = vec![0; part.points() as usize * cell];
        let mut rest = bytes.as_mut_slice();
        for part in self.chunks(part, cell) {
            self.each_device(memory, &part, |device, place, count| {
                let (own, others) = std::mem::take(&mut rest).split_at_mut(count);
                rest = others;
                device.read(QueueId::COMPUTE, place, own)
            })?;
        }
        Ok(bytes)
    }

    /// Runs of planes of a box, small enough to be moved at once.
    fn chunks(&self, part: &Box3, cell: usize) -> impl Iterator<Item = Box3> + use<> {
        let part = *part;
        let [nx, ny, _] = part.size();
        let planes = (CHUNK_BYTES / (nx * ny * cell).max(1)).max(1);
        (part.lo[2]..part.hi[2]).step_by(planes).map(move |lo| {
            let mut chunk = part;
            (chunk.lo[2], chunk.hi[2]) = (lo, part.hi[2].min(lo + planes as i64));
            chunk
        })
    }

    /// Calls `act` for each device that owns cells of a box, with their place in the current buffer and their number
    /// of bytes, in the order of the cells.
    fn each_device(
        &self,
        memory: &Memory,
        part: &Box3,
        mut act: impl FnMut(&dyn Device, Place<'_>, usize) -> Result<()>,
    ) -> Result<()> {
        let buffers = memory.buffers(Role::Current);
        for (number, owned) in self.owned.iter().enumerate() {
            let local = owned.intersection(part).shifted(owned.lo.map(|lo| -lo));
            if local.is_empty() {
                continue;
            }
            let region = memory.layouts[number].region(&local).expect("a device stores what it owns");
            act(&*self.devices[number], Place { buffer: buffers[number], region: &region }, region.bytes())?;
        }
        Ok(())
    }

    /// Makes what a plan presumes about second buffers true, and waits until it is.
    fn prepare(&self, program: &Program, steps: u64) -> Result<()> {
        let mut state = self.state();
        state.check()?;
        if steps == 0 {
            return Ok(());
        }
        for flow in &program.plan.flows {
            let number = flow.field.0 as usize;
            let differs = state.fields[number].differs;
            let Some(presumes) = flow.presumes.filter(|presumes| !presumes.contains(&differs)) else { continue };
            debug_assert!(state.memory[number].spare.len() == self.devices.len(), "{presumes}");
            let memory = &state.memory[number];
            for (device, layout) in memory.layouts.iter().enumerate() {
                let part = layout.cells.intersection(&differs);
                let region = layout.region(&part).expect("an intersection lies in both boxes");
                let place = |role: Role| Place { buffer: memory.buffers(role)[device], region: &region };
                self.devices[device].copy(QueueId::COMPUTE, place(Role::Current), place(Role::Spare))?;
            }
            state.fields[number].differs = Box3::EMPTY;
        }
        self.devices.iter().try_for_each(|device| device.finish(QueueId::COMPUTE))
    }

    /// Does `count` steps and waits for their end.
    fn advance(&self, program: &Program, count: u64) -> Result<Duration> {
        let mut state = self.state();
        state.check()?;
        let start = Instant::now();
        let State { memory, fields, .. } = &mut *state;
        let steps = (0..count).try_for_each(|_| program.step(&self.devices, memory));
        let result = steps.and_then(|()| program.finish(&self.devices));
        let time = start.elapsed();
        if let Err(error) = result {
            state.stopped = Some(state.steps);
            return Err(error);
        }
        for flow in &program.plan.flows {
            let differs = &mut fields[flow.field.0 as usize].differs;
            *differs = if flow.presumes.is_some() { flow.leaves } else { differs.hull(&flow.leaves) };
        }
        state.steps += count;
        Ok(time)
    }

    /// Of all devices together; `None` when one can't be measured.
    fn copy_bandwidth(&self) -> Result<Option<f64>> {
        if !self.measures_bandwidth {
            return Ok(None);
        }
        let each: Result<Option<Vec<f64>>> = self.devices.iter().map(|device| copy_bandwidth(&**device)).collect();
        Ok(each?.map(|each| each.iter().sum()))
    }
}

impl State {
    /// An error if an earlier failure left the fields undefined.
    fn check(&self) -> Result<()> {
        self.stopped.map_or(Ok(()), |steps| Err(Error::Stopped { steps }))
    }
}
