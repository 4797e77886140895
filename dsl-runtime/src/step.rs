//! Steps: stages that are recorded once and then run as often as wished.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::backend::Device;
use crate::boundary::Widths;
use crate::call::{self, Call, Folds, New, Target, Targets};
use crate::distribute::{Distributed, Setting, distribute};
use crate::element::{Element, Primitive};
use crate::error::{Error, Result};
use crate::exchange::{Exchange, Recipe};
use crate::execute::{Program, shared_out};
use crate::explain::Explanation;
use crate::field::Field;
use crate::geometry::Box3;
use crate::halo::{ghosts, widest_range};
use crate::kernel::{KernelDesc, ScalarType};
use crate::partition::Split;
use crate::persist;
use crate::plan::{FieldId, Plan, ScalarId};
use crate::price::{Rates, seconds_per_step};
use crate::record::{Points, Record};
use crate::runs::Run;
use crate::scalar::{Function, Inputs, IntoArgument, Scalar};
use crate::schedule::{self, Output, Stage, Update};
use crate::shape::{Shape, wider_each};
use crate::simulation::Shared;
use crate::traffic::Traffic;

/// The stages of a step while it is being recorded.
///
/// Stages run in the order in which they are recorded, and each sees all that the earlier ones wrote. A mistake is
/// reported by [`Simulation::step`](crate::simulation::Simulation::step).
pub struct Stages {
    shared: Arc<Shared>,
    stages: Vec<Stage>,
    functions: Vec<Function>,
    /// How many fields keep rows of each type so far.
    rows: Vec<(ScalarType, usize)>,
    /// The first mistake; later stages are then ignored.
    fault: Option<Error>,
}

impl Stages {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), stages: Vec::new(), functions: Vec::new(), rows: Vec::new(), fault: None }
    }

    /// Updates fields with the results of a call, over all points at which all reads are defined or over the call's own
    /// range; other points keep their value. A [`Scalar`] among the targets takes a fold over these points.
    pub fn update<T>(&mut self, targets: impl Targets<T>, call: Call<T>) {
        let targets = targets.targets();
        self.try_to(|stages| stages.record_update(&targets, &call));
    }

    /// Folds values over all points at which all reads are defined, or over the call's own range, and gives the scalar that
    /// takes the result, or a tuple or an array of such.
    pub fn reduce<T: Folds>(&mut self, call: Call<T>) -> T::Scalars {
        let (scalars, targets) = T::scalars(&mut |ty| self.new_scalar(ty));
        self.try_to(|stages| stages.record_update(&targets, &call));
        scalars
    }

    /// Gives a scalar the value of a function of others: none `()`, one, a tuple or an array of them.
    pub fn assign<T: Primitive, I: Inputs>(
        &mut self,
        scalar: &Scalar<T>,
        inputs: I,
        function: impl Fn(I::Values) -> T + Send + Sync + 'static,
    ) {
        self.record_function(scalar, &inputs, Arc::new(move |_, bits| function(I::values(bits)).to_word()));
    }

    /// The value of a function of other scalars, as a new scalar.
    pub fn compute<T: Primitive, I: Inputs>(
        &mut self,
        inputs: I,
        function: impl Fn(I::Values) -> T + Send + Sync + 'static,
    ) -> Scalar<T> {
        let scalar = self.scalar();
        self.assign(&scalar, inputs, function);
        scalar
    }

    /// A scalar that changes every step: the value of a function of the number of steps of this kind that were run
    /// before, 0 in the first one.
    pub fn each_step<T: Primitive>(&mut self, function: impl Fn(u64) -> T + Send + Sync + 'static) -> Scalar<T> {
        let scalar = self.scalar();
        self.record_function(&scalar, &(), Arc::new(move |step, _| function(step).to_word()));
        scalar
    }

    /// Exchanges the values of two fields, without a copy: `swap(&new, &old)` ends a step of a scheme with two time
    /// levels.
    pub fn swap<T: Element>(&mut self, one: &Field<T>, other: &Field<T>) {
        let (one, other) = (one.reference(), other.reference());
        self.try_to(|stages| {
            for field in [&one, &other] {
                stages.own("field", field.simulation, &field.name)?;
            }
            let cells = |field: FieldId, stages: &Self| -> Result<_> {
                Ok(stages.shared.state()?.shapes[field.0 as usize].cells)
            };
            let (cells, others) = (cells(one.id, stages)?, cells(other.id, stages)?);
            if cells != others {
                let names = [&one, &other].map(|field| field.name.to_string());
                return Err(Error::SwapOfUnlike { fields: names, cells: [cells, others] });
            }
            if one.id != other.id {
                stages.stages.push(Stage::Swap(one.id, other.id));
            }
            Ok(())
        });
    }

    /// Adds an amount at points of a field: a number, or a scalar such as one of [`each_step`](Self::each_step).
    pub fn inject<T: Element>(&mut self, field: &Field<T>, points: impl Into<Points>, amount: impl IntoArgument<T>) {
        let (reference, points, amount) = (field.reference(), points.into(), amount.into_argument().erased);
        let cells = field.cells();
        self.try_to(|stages| {
            stages.own("field", reference.simulation, &reference.name)?;
            let Some(weights) = points.weights.iter().map(|&weight| T::rounded(weight)).collect::<Option<Vec<T>>>()
            else {
                return Err(Error::NoAmounts { field: (*reference.name).into(), ty: T::TYPE });
            };
            let amount = amount.operand(stages.shared.id)?;
            let points = inside(&reference.name, &points.at, cells)?;
            let points = points.into_iter().zip(weights).map(|(point, weight)| (point, weight.to_word())).collect();
            stages.stages.push(Stage::Inject { field: reference.id, points, amount });
            Ok(())
        });
    }

    /// Writes down the values of a field at points, one row for each step.
    pub fn probe<T: Element>(&mut self, field: &Field<T>, points: impl Into<Points>) -> Record<T> {
        let (reference, points) = (field.reference(), points.into());
        let cells = field.cells();
        self.record_values(points.at.len(), |stages, record| {
            stages.own("field", reference.simulation, &reference.name)?;
            let points = inside(&reference.name, &points.at, cells)?;
            stages.stages.push(Stage::Probe { field: reference.id, points, record });
            Ok(())
        })
    }

    /// Writes down the value of a scalar, once for each step.
    pub fn record<T: Element>(&mut self, scalar: &Scalar<T>) -> Record<T> {
        let reference = scalar.reference();
        self.record_values(1, |stages, record| {
            stages.own("scalar", reference.simulation, &reference.name)?;
            stages.stages.push(Stage::Record { scalar: reference.id, record });
            Ok(())
        })
    }

    fn record_values<T: Element>(
        &mut self,
        points: usize,
        act: impl FnOnce(&mut Self, usize) -> Result<()>,
    ) -> Record<T> {
        let mut made = 0;
        self.try_to(|stages| {
            made = stages.shared.add_record(points, T::TYPE)?;
            act(stages, made)
        });
        Record::new(Arc::clone(&self.shared), made)
    }

    fn record_function<T: Primitive>(&mut self, output: &Scalar<T>, inputs: &impl Inputs, function: Function) {
        let output = output.reference();
        let inputs = inputs.scalars();
        self.try_to(|stages| {
            for scalar in inputs.iter().chain([&output]) {
                stages.own("scalar", scalar.simulation, &scalar.name)?;
            }
            let inputs = inputs.iter().map(|scalar| scalar.id).collect();
            stages.stages.push(Stage::Compute { function: stages.functions.len(), inputs, output: output.id });
            stages.functions.push(function);
            Ok(())
        });
    }

    fn record_update<T>(&mut self, targets: &[Target], call: &Call<T>) -> Result<()> {
        let kernel = call.kernel;
        call::check(kernel, &call.fields, &call.scalars, targets, self.shared.id)?;
        let fields: Vec<_> = call.fields.iter().map(|field| field.id).collect();
        let scalars = call.scalars.iter().map(|scalar| scalar.operand(self.shared.id)).collect::<Result<_>>()?;
        let (boxes, parity) = self.boxes(call, targets)?;
        let outputs = targets.iter().zip(kernel.results()).map(|(target, (_, output))| {
            Ok(match target {
                Target::Field(field) => Output::Field(field.id),
                Target::Scalar(scalar, _) => {
                    let count = boxes.len() * output.role.parts(output.ty);
                    let rows = (0..count).map(|_| self.rows_of(output.stored())).collect::<Result<_>>()?;
                    Output::Fold { scalar: scalar.id, rows }
                }
            })
        });
        let outputs = outputs.collect::<Result<_>>()?;
        self.stages.push(Stage::Update(Update { kernel, fields, scalars, outputs, boxes, parity }));
        Ok(())
    }

    /// The points of a call as boxes, and their colour.
    fn boxes<T>(&self, call: &Call<T>, targets: &[Target]) -> Result<(Vec<Box3>, Option<u8>)> {
        let state = self.shared.state()?;
        let shape = |field: FieldId| &state.shapes[field.0 as usize];
        let read: Vec<_> = call.fields.iter().map(|field| shape(field.id)).collect();
        let written: Vec<_> = (targets.iter())
            .filter_map(|target| match target {
                Target::Field(field) => Some(shape(field.id)),
                Target::Scalar(..) => None,
            })
            .collect();
        // Where nothing is written, the fields that are read tell the points.
        let whole = self.shared.extent.whole();
        let tells: Vec<&Shape> = if written.is_empty() {
            read.iter().copied().filter(|shape| shape.axes == [true; 3]).collect()
        } else {
            written
        };
        let domain = match tells.split_first() {
            None => whole,
            Some((first, others)) => {
                others.iter().fold(first.whole(), |common, shape| common.intersection(&shape.whole()))
            }
        };
        let updated = tells.first().map_or("grid", |shape| &shape.name);
        call.ranges.iter().try_for_each(|range| range.check(call.kernel.name, updated))?;
        let explicit = call.ranges.iter().all(|range| !range.asks_for_widest());
        let widest = match widest_range(call.kernel, &read, &domain) {
            // Not asked for.
            Err(_) if explicit => domain,
            other => other?,
        };
        let parity = call.ranges.first().and_then(|range| range.colour());
        if call.ranges.iter().any(|range| range.colour() != parity) {
            return Err(Error::RangesDiffer { kernel: call.kernel.name.into() });
        }
        let mut boxes: Vec<Box3> = Vec::new();
        for range in &call.ranges {
            let part = range.resolve(&domain, &widest)?;
            if boxes.iter().any(|other| !other.intersection(&part).is_empty()) {
                return Err(Error::RangesOverlap { kernel: call.kernel.name.into() });
            }
            ghosts(call.kernel, &read, &part)?;
            boxes.push(part);
        }
        Ok((boxes, parity))
    }

    /// A field for the folds of rows that no other stage of this step uses.
    fn rows_of(&mut self, stored: ScalarType) -> Result<FieldId> {
        let known = self.rows.iter().position(|(ty, _)| *ty == stored);
        let known = known.unwrap_or_else(|| {
            self.rows.push((stored, 0));
            self.rows.len() - 1
        });
        let field = self.shared.rows_field(stored, self.rows[known].1)?;
        self.rows[known].1 += 1;
        Ok(field)
    }

    fn own(&self, what: &'static str, simulation: u64, name: &str) -> Result<()> {
        if simulation == self.shared.id { Ok(()) } else { Err(Error::Foreign { what, name: name.into() }) }
    }

    fn scalar<T: Primitive>(&mut self) -> Scalar<T> {
        let New { shared, id, name } = self.new_scalar(T::TYPE);
        Scalar::new(shared, id, &name)
    }

    fn new_scalar(&mut self, ty: ScalarType) -> New {
        let shared = Arc::clone(&self.shared);
        match shared.add_scalar(None, ty, 0) {
            Ok((id, name)) => New { shared, id, name },
            Err(fault) => {
                self.fault.get_or_insert(fault);
                New { shared, id: ScalarId(0), name: String::new() }
            }
        }
    }

    fn try_to(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) {
        if self.fault.is_none()
            && let Err(fault) = act(self)
        {
            self.fault = Some(fault);
        }
    }
}

/// Points of a field as cells, if they are.
fn inside(field: &str, points: &[[usize; 3]], cells: [usize; 3]) -> Result<Vec<[i64; 3]>> {
    let outside = |at: &&[usize; 3]| (0..3).any(|axis| at[axis] >= cells[axis]);
    match points.iter().find(outside) {
        Some(&at) => Err(Error::OutsideGrid { field: field.into(), at, extent: cells }),
        None => Ok(points.iter().map(|at| at.map(|index| index as i64)).collect()),
    }
}

/// A recorded step. It is a handle: clones are the same step.
#[derive(Clone)]
pub struct Step {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    /// Its number in the simulation.
    number: usize,
    stages: Vec<Stage>,
    /// How halos are exchanged.
    exchange: Exchange,
    /// Those that do most steps in a run first; the last one does single steps.
    programs: Vec<Program>,
    /// What a run of each moves between devices.
    traffic: Vec<Traffic>,
    /// The program for the reference device, where runs are checked.
    check: Option<Program>,
}

impl Step {
    pub(crate) fn new(stages: Stages) -> Result<Self> {
        let Stages { shared, stages, functions, fault, .. } = stages;
        if let Some(fault) = fault {
            return Err(fault);
        }
        for stage in &stages {
            if let Stage::Update(update) = stage {
                shared.devices.iter().try_for_each(|device| check_types(&**device, update.kernel))?;
            }
        }
        let shapes = shared.state()?.shapes.clone();
        let ghosts = schedule::ghosts(&stages, &shapes)?;
        let plan = schedule::plan(&stages, &shapes, &ghosts);
        let (exchange, made) = plans(&shared, &plan, &shapes);
        let ready = Ready { stages: &stages, shapes: &shapes, ghosts: &ghosts, functions: &functions };
        let programs = ready.programs(&shared, made)?;
        let traffic = programs.iter().map(|program| Traffic::of(&program.plan, &shapes)).collect();
        let check = match &shared.shadow {
            Some(shadow) => {
                shadow.take_shape(&shared)?;
                let made = distributed(&shadow.shared, &plan, &shapes, Recipe::default());
                ready.programs(&shadow.shared, vec![made])?.pop()
            }
            None => None,
        };
        let number = {
            let mut state = shared.state()?;
            state.counts.push(0);
            state.program = persist::program(state.program, &stages, &shapes);
            state.counts.len() - 1
        };
        Ok(Self { inner: Arc::new(Inner { shared, number, stages, exchange, programs, traffic, check }) })
    }

    /// What the step will do: halos with the lines that ask for them, the plan, memory. Nothing runs.
    pub fn explain(&self) -> Explanation {
        Explanation::new(&self.inner.shared, &self.inner.stages, self.inner.exchange, &self.inner.programs[0].plan)
    }

    /// Does steps, checked if the simulation asks for it, and gives the time that the devices took.
    pub(crate) fn advance(&self, steps: u64) -> Result<Duration> {
        let Inner { shared, number, programs, check, .. } = &*self.inner;
        if shared.shadow.is_some() || shared.paranoid {
            shared.advance_checked(programs, check.as_ref(), *number, steps)
        } else {
            shared.advance_all(programs, *number, steps)
        }
    }

    /// The steps that devices have done by recordings so far.
    pub(crate) fn replayed(&self) -> u64 {
        self.inner.programs.iter().map(Program::replayed).sum()
    }

    /// What is exchanged between devices in so many steps.
    pub(crate) fn traffic(&self, steps: u64) -> Traffic {
        let mut all = Traffic::default();
        for ((_, runs), traffic) in shared_out(&self.inner.programs, steps).zip(&self.inner.traffic) {
            all += traffic.times(runs);
        }
        all
    }

    /// The plan of a single step.
    pub(crate) fn plan(&self) -> &Plan {
        &self.inner.programs[self.inner.programs.len() - 1].plan
    }

    /// How halos are exchanged.
    pub(crate) fn exchange(&self) -> Exchange {
        self.inner.exchange
    }

    pub(crate) fn simulation(&self) -> u64 {
        self.inner.shared.id
    }

    /// The names of the kernels that update points, each once.
    pub(crate) fn kernels(&self) -> Vec<&'static str> {
        let kernels = self.plan().kernels.iter().filter(|kernel| !kernel.is_own());
        kernels.map(|kernel| kernel.name).collect()
    }
}

/// A step that was recorded, ready to be done by a simulation.
struct Ready<'a> {
    stages: &'a [Stage],
    shapes: &'a [Shape],
    ghosts: &'a BTreeMap<FieldId, Widths>,
    functions: &'a [Function],
}

impl Ready<'_> {
    /// The programs of plans, in a simulation that then has the memory for all of them.
    fn programs(&self, shared: &Shared, made: Vec<Distributed>) -> Result<Vec<Program>> {
        let stored = made.iter().map(|made| &made.stored);
        let widths = stored.map(|stored| widths(self.shapes, &shared.split, self.ghosts, stored)).reduce(widest);
        let program = |Distributed { plan, .. }| {
            let (devices, functions) = (&shared.devices, self.functions.to_vec());
            let program = Program::new(plan, functions, devices, shared.origins(), shared.issue)?;
            Ok(if shared.records { program.recorded(devices) } else { program })
        };
        let programs = made.into_iter().map(program).collect::<Result<_>>()?;
        shared.surround(&widths.unwrap_or_default(), &schedule::groups(self.stages))?;
        shared.double(&schedule::double_buffered(self.stages))?;
        Ok(programs)
    }
}

/// The plan of a step for the devices of a simulation.
fn distributed(shared: &Shared, plan: &Plan, shapes: &[Shape], recipe: Recipe) -> Distributed {
    let setting = Setting {
        shapes,
        split: &shared.split,
        recipe,
        reaches: &|from, to| shared.devices[from].reaches(&*shared.devices[to]).is_ok(),
        poisons: shared.paranoid,
    };
    distribute(plan.clone(), &setting)
}

/// The plans of a step with the strategy that was asked for, or with the cheapest: if it does several steps in a run, one
/// for single steps too.
fn plans(shared: &Shared, plan: &Plan, shapes: &[Shape]) -> (Exchange, Vec<Distributed>) {
    let made = |exchange: Exchange| distributed(shared, plan, shapes, exchange.recipe().unwrap_or_default());
    if shared.devices.len() == 1 {
        return (shared.exchange, vec![made(shared.exchange)]);
    }
    match shared.exchange {
        Exchange::Deep(_) => (shared.exchange, vec![made(shared.exchange), made(Exchange::Neighbour)]),
        Exchange::Auto => {
            let rates: Vec<_> =
                shared.devices.iter().map(|device| Rates::of(device.info(), shared.devices.len())).collect();
            let priced = Exchange::ONE_STEP.map(|exchange| {
                let made = made(exchange);
                (seconds_per_step(&made.plan, shapes, &rates), exchange, made)
            });
            let cheapest = priced.into_iter().min_by(|(one, ..), (other, ..)| one.total_cmp(other));
            let (_, exchange, made) = cheapest.expect("there are strategies");
            (exchange, vec![made])
        }
        asked => (asked, vec![made(asked)]),
    }
}

/// The larger widths of two.
fn widest(
    mut one: BTreeMap<FieldId, Vec<Widths>>,
    other: BTreeMap<FieldId, Vec<Widths>>,
) -> BTreeMap<FieldId, Vec<Widths>> {
    for (field, other) in other {
        match one.entry(field) {
            Entry::Vacant(entry) => {
                entry.insert(other);
            }
            Entry::Occupied(mut entry) => *entry.get_mut() = wider_each(entry.get(), &other),
        }
    }
    one
}

/// The ghost and halo cells that each device keeps of each field: beyond the faces of the grid those that boundaries
/// fill, inside it the planes that it stores beside its own.
pub(crate) fn widths(
    shapes: &[Shape],
    split: &Split,
    ghosts: &BTreeMap<FieldId, Widths>,
    stored: &[BTreeMap<FieldId, Run>],
) -> BTreeMap<FieldId, Vec<Widths>> {
    let fields = ghosts.keys().chain(stored.iter().flat_map(BTreeMap::keys)).collect::<BTreeSet<_>>();
    let of = |field: FieldId| {
        let shape = &shapes[field.0 as usize];
        let each = stored.iter().enumerate().map(|(device, stored)| {
            let mut widths = ghosts.get(&field).copied().unwrap_or_default();
            if let (Some(&(lo, hi)), true) = (stored.get(&field), split.parts() > 1) {
                let first = split.start(device);
                let last = split.owned(device, shape).1.max(first);
                let cells = |cells: i64| u32::try_from(cells.max(0)).unwrap_or(u32::MAX);
                widths[2] = [cells(first - lo), cells(hi - last)];
            }
            widths
        });
        each.collect()
    };
    fields.into_iter().map(|&field| (field, of(field))).collect()
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Step of {}", self.kernels().join(", "))
    }
}

/// An error if the kernel computes in a type that the device lacks.
fn check_types(device: &dyn Device, kernel: &KernelDesc) -> Result<()> {
    if device.info().fp64 || kernel.types().all(|ty| ty != ScalarType::F64) {
        return Ok(());
    }
    Err(Error::Unsupported {
        device: device.summary(),
        kernel: kernel.name.into(),
        reason:
            "it computes in double precision (f64; sums of floats are added up in it), which the device lacks: write \
                 the kernel for f32 or use the host"
                .into(),
    })
}
