//! Simulations: a grid, the devices that it lives on, its fields and the runs of its steps.

use std::env;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::{
    Affinity, Device, DeviceKind, GpuOptions, Helpers, OpenClForm, OpenOptions, Order, host::InstructionSet,
};
use crate::bandwidth::copy_bandwidth;
use crate::boundary::Faces;
use crate::devices;
use crate::element::{Element, Primitive};
use crate::error::{Error, Result};
use crate::exchange::Exchange;
use crate::execute::{Issue, Trace};
use crate::field::{Axes, Field, FieldX, FieldXY, FieldXZ, FieldY, FieldYZ, FieldZ};
use crate::geometry::Extent;
use crate::kernel;
use crate::partition::{Division, Split, partition};
use crate::placement::Home;
use crate::report::{Progress, Report};
use crate::run::Run;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::source::Source;
use crate::state::Guarded;
use crate::step::{Stages, Step};
use crate::verify::Shadow;

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
    /// Which planes each device owns.
    pub(crate) split: Split,
    /// The distance between cells along X, Y and Z, for output.
    pub(crate) spacing: [f64; 3],
    /// Where cell (0, 0, 0) lies, for output.
    pub(crate) corner: [f64; 3],
    measures_bandwidth: bool,
    /// Whether halo cells are made worthless before they are exchanged.
    pub(crate) paranoid: bool,
    /// The simulation on the reference device that checks every step.
    pub(crate) shadow: Option<Shadow>,
    /// Who issues what devices do.
    pub(crate) issue: Issue,
    /// Whether devices may record runs.
    pub(crate) records: bool,
    /// What devices did and when, if somebody wants to know.
    pub(crate) trace: Option<Trace>,
    pub(crate) guarded: Guarded,
}

/// A simulation in the making.
#[derive(Clone, Debug)]
pub struct Builder {
    cells: [usize; 3],
    devices: String,
    exchange: Exchange,
    options: OpenOptions,
    spacing: [f64; 3],
    corner: [f64; 3],
    measures_bandwidth: bool,
    division: Division,
    paranoid: bool,
    verify: bool,
    records: bool,
}

impl Builder {
    /// The devices: `auto` (the default: a GPU if there is one that can run the program's kernels, else the host),
    /// `reference`, `host`, `opencl`, `opencl:PLATFORM` with a part of a platform's name; each but `auto` with a count, as
    /// in `host:4` and `opencl:pocl:2`, and several of these joined by `+` ([`devices`] has it all).
    pub fn devices(mut self, spec: impl Into<String>) -> Self {
        self.devices = spec.into();
        self
    }

    /// How halos are exchanged between devices.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.exchange = exchange;
        self
    }

    /// The number of threads of each host device; by default the CPUs that the process may use are shared out among them.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// The threads that serve the queues of host devices; by default none for a single device, one for each of several.
    pub fn helpers(mut self, helpers: Helpers) -> Self {
        self.options.helpers = helpers;
        self
    }

    /// When operations of host devices run. All orders give the same results; those other than
    /// [`Eager`](Order::Eager) are slow and show missing dependencies.
    pub fn order(mut self, order: Order) -> Self {
        self.options.order = order;
        self
    }

    /// Which CPUs the threads of a device keep to; by default those near it.
    pub fn affinity(mut self, affinity: Affinity) -> Self {
        self.options.affinity = affinity;
        self
    }

    /// How the planes of the grid are shared out among devices; near-equally by default.
    pub fn division(mut self, division: Division) -> Self {
        self.division = division;
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

    /// How kernels are laid out on CUDA and HIP devices; by default as was found best for each kernel by measuring once.
    pub fn gpu(mut self, options: GpuOptions) -> Self {
        self.options.gpu = options;
        self
    }

    /// Whether steps that repeat are recorded by devices that can and enqueued as a whole, as CUDA graphs (the default). It
    /// is not done where the host has work of its own in a step, or is to wait.
    pub fn graphs(mut self, graphs: bool) -> Self {
        self.records = graphs;
        self
    }

    /// The distance between neighbouring cells along X, Y and Z in files for other programs; 1 by default.
    pub fn spacing(mut self, spacing: [f64; 3]) -> Self {
        self.spacing = spacing;
        self
    }

    /// Where cell (0, 0, 0) lies in files for other programs; at (0, 0, 0) by default.
    pub fn origin(mut self, corner: [f64; 3]) -> Self {
        self.corner = corner;
        self
    }

    /// Whether runs measure the copy bandwidth of the devices for their report (the default). It takes a fraction of
    /// a second, once.
    pub fn measure_bandwidth(mut self, measure: bool) -> Self {
        self.measures_bandwidth = measure;
        self
    }

    /// Whether runs note what is done when, for [`Simulation::write_trace`]; not by default, because it takes time.
    pub fn trace(mut self, trace: bool) -> Self {
        self.options.trace = trace;
        self
    }

    /// Whether every step is done on the reference device too, from the same values, and compared bit for bit: the first
    /// difference ends the run with [`Error::Differs`]. It is slow, and functions of scalars are called twice.
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Whether halo cells are made worthless before they are exchanged - NaN, or a number that is seldom met - and all fields
    /// are searched for such values after every step: an old halo cell that was read ends the run with
    /// [`Error::Poisoned`]. Fields that hold NaNs already aren't searched, nor are those of types of one byte.
    pub fn paranoid(mut self, paranoid: bool) -> Self {
        self.paranoid = paranoid;
        self
    }

    /// Opens the devices. The environment has the last word: `POLYHALO_DEVICES` and `POLYHALO_EXCHANGE` replace what the
    /// program says, `POLYHALO_VERIFY=1` and `POLYHALO_PARANOID=1` ask for checked runs ([`verify`](Self::verify),
    /// [`paranoid`](Self::paranoid)); `polyhalo verify` sets them. `POLYHALO_TUNE`, `POLYHALO_SHAPE`, `POLYHALO_WIDE=1` and
    /// `POLYHALO_GRAPHS=0` are for kernels on GPUs ([`gpu`](Self::gpu), [`graphs`](Self::graphs)).
    pub fn build(self) -> Result<Simulation> {
        self.overridden(|name| env::var(name).ok())?.build_as_said()
    }

    /// The same with what the environment asks for.
    pub(crate) fn overridden(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(devices) = variable("POLYHALO_DEVICES") {
            self.devices = devices;
        }
        if let Some(exchange) = variable("POLYHALO_EXCHANGE") {
            self.exchange = exchange.parse().map_err(|error| in_variable("POLYHALO_EXCHANGE", error))?;
        }
        if let Some(tune) = variable("POLYHALO_TUNE") {
            self.options.gpu.tune = tune.parse().map_err(|error| in_variable("POLYHALO_TUNE", error))?;
        }
        if let Some(shape) = variable("POLYHALO_SHAPE") {
            self.options.gpu.shape = Some(shape.parse().map_err(|error| in_variable("POLYHALO_SHAPE", error))?);
        }
        let is_no = |value: &String| ["0", "no", "off", "false"].contains(&value.to_ascii_lowercase().as_str());
        self.records &= variable("POLYHALO_GRAPHS").is_none_or(|value| !is_no(&value));
        let is_set = |name: &str| variable(name).is_some_and(|value| !is_no(&value));
        self.options.gpu.wide |= is_set("POLYHALO_WIDE");
        self.verify |= is_set("POLYHALO_VERIFY");
        self.paranoid |= is_set("POLYHALO_PARANOID");
        Ok(self)
    }

    fn build_as_said(self) -> Result<Simulation> {
        let devices = devices::find(&self.devices, &kernel::registry())?.open(&self.options)?;
        self.build_on(devices)
    }

    /// The same for a simulation on a single device whose steps aren't checked.
    fn unchecked(self) -> Self {
        Self { verify: false, paranoid: false, division: Division::Even, options: OpenOptions::default(), ..self }
    }

    /// A simulation on devices that the caller has opened, the lowest planes on the first; the description of
    /// [`devices`](Self::devices) doesn't count.
    pub fn build_on(self, devices: Vec<Box<dyn Device>>) -> Result<Simulation> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let extent = Extent::new(self.cells)?;
        let shares = shares(&self.division, &devices)?;
        let owned = partition(extent, &shares)?;
        // Work that is put off is done by whoever waits for it, so there must be nobody else.
        let issue = if self.options.order == Order::Eager { Issue::Lanes } else { Issue::InOrder };
        let trace = self.options.trace.then(|| Trace::new(&devices));
        let shadow = if self.verify {
            let reference = Self { devices: "reference".into(), ..self.clone().unchecked() }.build_as_said()?;
            Some(Shadow { shared: reference.shared })
        } else {
            None
        };
        let shared = Shared {
            id: COUNT.fetch_add(1, Ordering::Relaxed),
            extent,
            exchange: self.exchange,
            devices,
            split: Split::of(&owned),
            spacing: self.spacing,
            corner: self.corner,
            measures_bandwidth: self.measures_bandwidth,
            paranoid: self.paranoid,
            shadow,
            issue,
            records: self.records,
            trace,
            guarded: Guarded::default(),
        };
        Ok(Simulation { shared: Arc::new(shared) })
    }
}

/// An error with the name of the variable whose value it is about.
fn in_variable(name: &str, error: Error) -> Error {
    let source = io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
    Error::System { call: format!("reading the variable {name}"), source }
}

impl Simulation {
    /// A simulation on a grid with these numbers of cells along X, Y and Z.
    pub fn on(cells: [usize; 3]) -> Builder {
        Builder {
            cells,
            devices: "auto".into(),
            exchange: Exchange::default(),
            options: OpenOptions::default(),
            spacing: [1.0; 3],
            corner: [0.0; 3],
            measures_bandwidth: true,
            division: Division::Even,
            paranoid: false,
            verify: false,
            records: true,
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

    /// Where the threads that work for each device stay while steps run, and what is to be said about it.
    pub fn placement(&self) -> Vec<Home> {
        self.shared.devices.iter().map(|device| device.home().clone()).collect()
    }

    /// How each kernel is laid out on the first device that has something to say about it: its name and words such as
    /// `march:32x8:32 (40 registers, embedded PTX)`. What is chosen by measuring is known after the first run.
    pub fn shapes(&self) -> Vec<(&'static str, String)> {
        let shapes = self.shared.devices.iter().map(|device| device.shapes());
        shapes.into_iter().find(|shapes| !shapes.is_empty()).unwrap_or_default()
    }

    /// Steps that were run so far, those before a checkpoint that was restored included.
    pub fn steps(&self) -> Result<u64> {
        Ok(self.shared.state()?.steps)
    }

    /// Whether a device is a GPU.
    pub fn uses_gpu(&self) -> bool {
        self.shared.devices.iter().any(|device| device.info().kind == DeviceKind::Gpu)
    }

    /// Writes what all runs so far did when as a trace in JSON, which Chrome (`chrome://tracing`) and Perfetto show: a row for
    /// each queue of a device and one for each thread that tells the devices what to do. The simulation must have been
    /// built with [`Builder::trace`].
    pub fn write_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let not_asked = || Error::Write {
            path: path.into(),
            reason: "nothing was traced: build the simulation with `.trace(true)`".into(),
        };
        self.shared.trace.as_ref().ok_or_else(not_asked)?.write(path)
    }

    /// The exchange strategy.
    pub fn exchange(&self) -> Exchange {
        self.shared.exchange
    }

    /// A field of zeros.
    pub fn field<T: Element>(&self, name: &str) -> Result<Field<T>> {
        self.add(name, self.cells())
    }

    /// A field with values from a function of the point, an array of shape (nz, ny, nx), or a `.npy` file.
    pub fn field_from<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<Field<T>> {
        self.filled(name, self.cells(), source)
    }

    /// A field on a grid of its own, of which cell (i, j, k) belongs to point (i, j, k) of the simulation's grid: staggered
    /// fields have a cell more or less along some axes.
    pub fn staggered<T: Element, S: Source<T>>(&self, name: &str, cells: [usize; 3], source: S) -> Result<Field<T>> {
        self.filled(name, cells, source)
    }

    /// A field that extends along X only, for kernels to read. The source is a function of the point or an array of
    /// shape (nx).
    pub fn field_x<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<FieldX<T>> {
        self.filled(name, self.cells(), source)
    }

    /// A field that extends along Y only, for kernels to read.
    pub fn field_y<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<FieldY<T>> {
        self.filled(name, self.cells(), source)
    }

    /// A field that extends along Z only, for kernels to read.
    pub fn field_z<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<FieldZ<T>> {
        self.filled(name, self.cells(), source)
    }

    /// A field that extends along X and Y only, for kernels to read. The source is a function of the point or an array of
    /// shape (ny, nx).
    pub fn field_xy<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<FieldXY<T>> {
        self.filled(name, self.cells(), source)
    }

    /// A field that extends along X and Z only, for kernels to read.
    pub fn field_xz<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<FieldXZ<T>> {
        self.filled(name, self.cells(), source)
    }

    /// A field that extends along Y and Z only, for kernels to read.
    pub fn field_yz<T: Element, S: Source<T>>(&self, name: &str, source: S) -> Result<FieldYZ<T>> {
        self.filled(name, self.cells(), source)
    }

    fn add<T: Element, A: Axes>(&self, name: &str, cells: [usize; 3]) -> Result<Field<T, A>> {
        let cells = std::array::from_fn(|axis| if A::AXES[axis] { cells[axis] } else { 1 });
        let extent = Extent::new(cells)?;
        let shape = Shape { name: name.into(), ty: T::TYPE, axes: A::AXES, cells, faces: Faces::default() };
        let id = self.shared.add_field(shape, false)?;
        Ok(Field::new(Arc::clone(&self.shared), id, name, extent))
    }

    fn filled<T: Element, A: Axes, S: Source<T>>(
        &self,
        name: &str,
        cells: [usize; 3],
        source: S,
    ) -> Result<Field<T, A>> {
        // The source is opened first: where it doesn't fit there is no field.
        let extent = Extent::new(std::array::from_fn(|axis| if A::AXES[axis] { cells[axis] } else { 1 }))?;
        let planes = source.open(name, extent)?;
        let field = self.add(name, cells)?;
        self.shared.fill(field.reference().id, &planes)?;
        Ok(field)
    }

    /// A number that steps compute and take, with a first value.
    pub fn scalar<T: Primitive>(&self, name: &str, value: T) -> Result<Scalar<T>> {
        let (id, name) = self.shared.add_scalar(Some(name), T::TYPE, value.to_word())?;
        Ok(Scalar::new(Arc::clone(&self.shared), id, &name))
    }

    /// Records a step: `record` lists its stages. Kernels are built and memory is reserved; nothing runs yet.
    pub fn step<R>(&self, record: impl FnOnce(&mut Stages) -> R) -> Result<Step> {
        Ok(self.step_with(record)?.0)
    }

    /// Records a step and gives what `record` gives too, such as the records of probes.
    pub fn step_with<R>(&self, record: impl FnOnce(&mut Stages) -> R) -> Result<(Step, R)> {
        let mut stages = Stages::new(&self.shared);
        let made = record(&mut stages);
        Ok((Step::new(stages)?, made))
    }

    /// Runs a step `steps` times.
    pub fn run(&self, step: &Step, steps: u64) -> Result<Report> {
        self.start(step, steps).finish()
    }

    /// Runs a step `steps` times and calls `watch` about ten times a second, between two steps, and after the last
    /// one. `watch` may read fields; when it breaks, the run ends. Its time isn't the run's.
    pub fn run_with(&self, step: &Step, steps: u64, watch: impl FnMut(Progress) -> ControlFlow<()>) -> Result<Report> {
        self.start(step, steps).watch(watch).finish()
    }

    /// A run of a step, `steps` times, to which a progress bar, functions that are called on the way and checkpoints can be
    /// added before [`finish`](Run::finish) does it.
    pub fn start<'a>(&'a self, step: &'a Step, steps: u64) -> Run<'a> {
        Run::new(self, step, steps)
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Simulation {} on {}", self.shared.extent, self.devices().join(" + "))
    }
}

/// The share of each device in the planes.
fn shares(division: &Division, devices: &[Box<dyn Device>]) -> Result<Vec<f64>> {
    let asked = || division.to_string();
    match division {
        Division::Even => Ok(vec![1.0; devices.len()]),
        Division::Shares(shares) if shares.len() == devices.len() => Ok(shares.clone()),
        Division::Shares(shares) => Err(Error::Division {
            asked: asked(),
            reason: format!("these are {} numbers, and there are {} devices", shares.len(), devices.len()),
        }),
        Division::Measured => {
            let each: Result<Option<Vec<f64>>> = devices.iter().map(|device| copy_bandwidth(&[&**device])).collect();
            let reason = "a device has too little memory free to be measured: give numbers".into();
            each?.ok_or_else(|| Error::Division { asked: asked(), reason })
        }
    }
}

impl Shared {
    /// The global index of the first cell that each device owns.
    pub(crate) fn origins(&self) -> Vec<[i32; 3]> {
        // An extent numbers its cells with an `i32`.
        (0..self.split.parts()).map(|part| [0, 0, self.split.start(part) as i32]).collect()
    }

    /// Of all devices together; `None` when one can't be measured.
    pub(crate) fn copy_bandwidth(&self) -> Result<Option<f64>> {
        if !self.measures_bandwidth {
            return Ok(None);
        }
        let devices: Vec<_> = self.devices.iter().map(|device| &**device).collect();
        copy_bandwidth(&devices)
    }
}
