//! The changing state of a simulation: its fields and their memory, scalars, records, and the steps that were run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::{Device, Place, QueueId};
use crate::boundary::{Faces, Widths};
use crate::element::Element;
use crate::error::{Error, LastCheckpoint, Result};
use crate::execute::{Memory, Program, Tracing, World, allocate, shared_out, this_thread};
use crate::geometry::{Box3, Patches};
use crate::kernel::ScalarType;
use crate::layout::{Layout, ROWS, Strides};
use crate::plan::{FieldId, Flow, Role, ScalarId};
use crate::shape::{Shape, wider_each};
use crate::simulation::Shared;
use crate::source::Planes;

/// Bytes that are moved between host and devices at once when fields are filled and read.
const CHUNK_BYTES: usize = 64 << 20;

/// What changes.
#[derive(Default)]
pub(crate) struct State {
    /// The shapes of the fields.
    pub(crate) shapes: Vec<Shape>,
    pub(crate) fields: Vec<FieldFacts>,
    pub(crate) memory: Vec<Memory>,
    /// Groups of fields that recorded steps swap.
    swapped: Vec<BTreeSet<FieldId>>,
    /// Set by the first field.
    strides: Vec<Strides>,
    pub(crate) scalars: Vec<ScalarFacts>,
    /// The bits of the scalars.
    pub(crate) values: Vec<u64>,
    pub(crate) records: Vec<RecordFacts>,
    pub(crate) written: Vec<Vec<u64>>,
    /// How often each recorded step was run.
    pub(crate) counts: Vec<u64>,
    /// Steps that were run in all.
    pub(crate) steps: u64,
    /// A fingerprint of the steps that were recorded.
    pub(crate) program: u128,
    pub(crate) last_checkpoint: Option<LastCheckpoint>,
    /// Set when an operation has failed, with the steps that were finished before.
    stopped: Option<u64>,
}

/// What is known of a field beside its shape and its memory.
pub(crate) struct FieldFacts {
    /// The ghost and halo cells that it keeps on each device.
    pub(crate) ghosts: Vec<Widths>,
    /// Where the two buffers may differ, in global coordinates; of no meaning without a second one.
    differs: Patches,
    /// Whether it only keeps what kernels fold row by row.
    pub(crate) keeps_rows: bool,
}

/// What is known of a scalar beside its value.
pub(crate) struct ScalarFacts {
    pub(crate) name: String,
    pub(crate) ty: ScalarType,
}

/// What is known of a record beside its values.
pub(crate) struct RecordFacts {
    pub(crate) points: usize,
    pub(crate) ty: ScalarType,
}

/// The state with a note of the thread that steps, which must not ask for it again.
#[derive(Default)]
pub(crate) struct Guarded {
    state: Mutex<State>,
    /// The number of the thread that is inside a step, and of those that work for it; 0 for none.
    stepping: AtomicU64,
}

/// Ends the note of the stepping thread, even when a closure of the user panics.
struct Stepping<'a>(&'a AtomicU64);

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Guarded {
    /// The state, unless this thread is inside a step.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, State>> {
        if self.stepping.load(Ordering::Relaxed) == this_thread() {
            return Err(Error::InsideStep);
        }
        // A failed operation is recorded in the state itself.
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// An error if an earlier failure left the fields undefined.
    pub(crate) fn check(&self) -> Result<()> {
        let stopped = |steps| Err(Error::Stopped { steps, checkpoint: self.last_checkpoint.clone() });
        self.stopped.map_or(Ok(()), stopped)
    }

    /// The names of fields and scalars by number, for plans.
    pub(crate) fn names(&self) -> (Vec<String>, Vec<String>) {
        let fields = self.shapes.iter().map(|shape| shape.name.clone()).collect();
        (fields, self.scalars.iter().map(|scalar| scalar.name.clone()).collect())
    }

    /// Takes note that fields were to be moved together, and that one stayed behind.
    fn or_stop(&mut self, moved: Result<()>) -> Result<()> {
        if moved.is_err() {
            self.stopped = Some(self.steps);
        }
        moved
    }

    /// Takes over the numbers of another simulation that has the same fields, steps, scalars and records.
    pub(crate) fn follow_numbers(&mut self, other: &Self) {
        let facts = |facts: &ScalarFacts| ScalarFacts { name: facts.name.clone(), ty: facts.ty };
        self.scalars = other.scalars.iter().map(facts).collect();
        self.values.clone_from(&other.values);
        let facts = |facts: &RecordFacts| RecordFacts { points: facts.points, ty: facts.ty };
        self.records = other.records.iter().map(facts).collect();
        self.written.clone_from(&other.written);
        self.counts.clone_from(&other.counts);
        self.steps = other.steps;
    }

    /// Takes note that two fields are swapped.
    fn join(&mut self, one: FieldId, other: FieldId) {
        let mut group = BTreeSet::from([one, other]);
        self.swapped.retain(|known| {
            let apart = known.is_disjoint(&group);
            if !apart {
                group.extend(known);
            }
            apart
        });
        self.swapped.push(group);
    }

    /// Takes note of what a step left in the buffers of fields.
    fn follow(&mut self, flows: &[Flow]) {
        let before: Vec<_> = flows.iter().map(|flow| self.fields[flow.from.0 as usize].differs.clone()).collect();
        for (flow, before) in flows.iter().zip(before) {
            let number = flow.field.0 as usize;
            self.fields[number].differs = if flow.presumes.is_some() {
                flow.leaves.clone()
            } else if flow.from != flow.field {
                // Only the first buffers were exchanged.
                everywhere()
            } else {
                let mut differs = before;
                differs.add_all(&flow.leaves);
                differs
            };
        }
    }
}

impl Shared {
    /// The state, unless this thread is inside a step.
    pub(crate) fn state(&self) -> Result<MutexGuard<'_, State>> {
        self.guarded.lock()
    }

    /// The cells of a field that a device owns, in global coordinates. Where there are none the box still starts where
    /// local coordinates do.
    pub(crate) fn part_of(&self, shape: &Shape, device: usize) -> Box3 {
        let mut part = shape.whole();
        if shape.axes[2] {
            let owned = self.split.owned(device, shape);
            part.lo[2] = self.split.start(device);
            part.hi[2] = owned.1.max(part.lo[2]);
        }
        part
    }

    /// A box in the coordinates of a device.
    fn local(&self, shape: &Shape, device: usize, part: &Box3) -> Box3 {
        if shape.axes[2] { part.shifted([0, 0, -self.split.start(device)]) } else { *part }
    }

    /// A field of zeros.
    pub(crate) fn add_field(&self, shape: Shape, keeps_rows: bool) -> Result<FieldId> {
        let mut state = self.state()?;
        // What keeps rows has names of its own.
        let mut alike = state.shapes.iter().zip(&state.fields).filter(|(_, facts)| facts.keeps_rows == keeps_rows);
        if alike.any(|(other, _)| other.name == shape.name) {
            return Err(Error::DuplicateField { name: shape.name });
        }
        if state.strides.is_empty() {
            let strides = Strides::for_first(shape.ty, self.extent.cells())?;
            state.strides = vec![strides; self.devices.len()];
        }
        let ghosts = vec![Widths::default(); self.devices.len()];
        let cells = self.stored(&shape, &ghosts);
        self.make_room(&mut state, &shape, &cells)?;
        let layouts = layouts(&shape, &cells, &state.strides)?;
        let current = allocate(&self.devices, &layouts, &format!("field `{}`", shape.name))?;
        state.memory.push(Memory { layouts, current, spare: Vec::new() });
        state.shapes.push(shape);
        state.fields.push(FieldFacts { ghosts, differs: Patches::default(), keeps_rows });
        Ok(FieldId(state.fields.len() as u32 - 1))
    }

    /// The field that keeps the folds of rows for number `number` of those of its type in a step.
    pub(crate) fn rows_field(&self, stored: ScalarType, number: usize) -> Result<FieldId> {
        let [_, y, z] = self.most_cells()?;
        let name = format!("rows {number} of {stored} ({y}x{z})");
        let known = {
            let state = self.state()?;
            let mut all = state.shapes.iter().zip(&state.fields);
            all.position(|(shape, facts)| facts.keeps_rows && shape.name == name)
        };
        match known {
            Some(known) => Ok(FieldId(known as u32)),
            None => {
                let shape = Shape { name, ty: stored, axes: ROWS, cells: [1, y, z], faces: Faces::default() };
                self.add_field(shape, true)
            }
        }
    }

    /// The cells along each axis of the largest field, at least those of the grid.
    fn most_cells(&self) -> Result<[usize; 3]> {
        let state = self.state()?;
        let whole = state.shapes.iter().filter(|shape| shape.axes == [true; 3]).map(|shape| shape.cells);
        Ok(whole.fold(self.extent.cells(), |most, cells| std::array::from_fn(|axis| most[axis].max(cells[axis]))))
    }

    /// The stored cells of a field on each device, in local coordinates.
    fn stored(&self, shape: &Shape, ghosts: &[Widths]) -> Vec<Box3> {
        let local = |device: usize| {
            let part = self.part_of(shape, device);
            crate::shape::grown(&self.local(shape, device, &part), &ghosts[device])
        };
        (0..self.devices.len()).map(local).collect()
    }

    /// Makes rows and planes of all fields long enough for one more with these cells on each device.
    fn make_room(&self, state: &mut State, shape: &Shape, cells: &[Box3]) -> Result<()> {
        let fits = |(cells, strides): (&Box3, &Strides)| {
            let [x, y, _] = cells.size();
            let steps = strides.steps(shape.axes);
            let along_y = if shape.axes[1] { steps[1] } else { usize::MAX };
            let next_of_x = along_y.min(if shape.axes[2] && !shape.axes[1] { steps[2] } else { usize::MAX });
            let x_fits = !shape.axes[0] || x <= next_of_x;
            let y_fits = !(shape.axes[1] && shape.axes[2]) || y.saturating_mul(steps[1]) <= steps[2];
            x_fits && y_fits
        };
        if cells.iter().zip(&state.strides).all(fits) {
            return Ok(());
        }
        let wanted: Vec<_> = cells
            .iter()
            .enumerate()
            .map(|(device, cells)| {
                let [x, y, _] = cells.size();
                let strides = state.strides[device];
                let first = state.shapes.first().map_or(shape.ty, |first| first.ty);
                let x = if shape.axes[0] { x } else { 1 };
                let y = if shape.axes[1] { y } else { 1 };
                Strides::for_first(first, [strides.row.max(x), strides.rows().max(y), 1])
            })
            .collect::<Result<_>>()?;
        state.strides = wanted;
        let fields = 0..state.fields.len();
        let moved =
            fields.into_iter().try_for_each(|field| self.move_field(state, field, state.fields[field].ghosts.clone()));
        state.or_stop(moved)
    }

    /// Gives fields room for ghost cells. Those that some step swaps, now or earlier, take over each other's memory and so
    /// have the same room; `swapped` has the groups of a new step.
    pub(crate) fn surround(
        &self,
        needed: &BTreeMap<FieldId, Vec<Widths>>,
        swapped: &BTreeMap<FieldId, FieldId>,
    ) -> Result<()> {
        let mut state = self.state()?;
        swapped.iter().for_each(|(one, other)| state.join(*one, *other));
        let mut wanted: Vec<Vec<Widths>> = state.fields.iter().map(|facts| facts.ghosts.clone()).collect();
        for (field, widths) in needed {
            let known = &mut wanted[field.0 as usize];
            *known = wider_each(known, widths);
        }
        for group in &state.swapped {
            let none = vec![Widths::default(); self.devices.len()];
            let most = group.iter().fold(none, |most, field| wider_each(&most, &wanted[field.0 as usize]));
            group.iter().for_each(|field| wanted[field.0 as usize].clone_from(&most));
        }
        for (number, ghosts) in wanted.into_iter().enumerate() {
            if ghosts != state.fields[number].ghosts {
                let shape = state.shapes[number].clone();
                let cells = self.stored(&shape, &ghosts);
                self.make_room(&mut state, &shape, &cells)?;
                let moved = self.move_field(&mut state, number, ghosts);
                state.or_stop(moved)?;
            }
        }
        Ok(())
    }

    /// Puts a field into memory with these ghost cells and the strides of the simulation.
    fn move_field(&self, state: &mut State, number: usize, ghosts: Vec<Widths>) -> Result<()> {
        let State { shapes, fields, memory, strides, .. } = state;
        let (shape, memory) = (&shapes[number], &mut memory[number]);
        let cells = self.stored(shape, &ghosts);
        let layouts = layouts(shape, &cells, strides)?;
        if layouts == memory.layouts {
            fields[number].ghosts = ghosts;
            return Ok(());
        }
        for role in [Role::Current, Role::Spare] {
            if memory.buffers(role).is_empty() {
                continue;
            }
            let new = allocate(&self.devices, &layouts, &format!("field `{}` with ghost cells", shape.name))?;
            for (device, buffer) in new.iter().enumerate() {
                let part = memory.layouts[device].cells.intersection(&layouts[device].cells);
                let region = |layout: &Layout| layout.region(&part).expect("both layouts store what they share");
                let (from, to) = (region(&memory.layouts[device]), region(&layouts[device]));
                let from = Place { buffer: memory.buffers(role)[device], region: &from };
                self.devices[device].copy(QueueId::COMPUTE, from, Place { buffer: *buffer, region: &to })?;
                self.devices[device].finish(QueueId::COMPUTE)?;
                self.devices[device].free(from.buffer);
            }
            *memory.buffers_mut(role) = new;
        }
        memory.layouts = layouts;
        fields[number].ghosts = ghosts;
        Ok(())
    }

    /// Makes sure that these fields have a second buffer.
    pub(crate) fn double(&self, fields: &[FieldId]) -> Result<()> {
        let mut state = self.state()?;
        for &field in fields {
            let number = field.0 as usize;
            if state.memory[number].spare.is_empty() {
                let what = format!("the second buffer of field `{}`", state.shapes[number].name);
                let memory = &mut state.memory[number];
                memory.spare = allocate(&self.devices, &memory.layouts, &what)?;
                // It holds zeros: nothing in it may be taken for a value of the field.
                state.fields[number].differs = everywhere();
            }
        }
        Ok(())
    }

    /// Replaces the values of a field.
    pub(crate) fn fill<T: Element>(&self, field: FieldId, planes: &impl Planes<T>) -> Result<()> {
        let number = field.0 as usize;
        let shape = self.state()?.shapes[number].clone();
        for part in chunks(&shape.whole(), size_of::<T>()) {
            let bytes = planes.bytes(part.lo[2] as usize..part.hi[2] as usize);
            self.write(field, &part, &bytes)?;
        }
        Ok(())
    }

    /// Replaces a box of a field by bytes, rows after rows.
    pub(crate) fn write(&self, field: FieldId, part: &Box3, bytes: &[u8]) -> Result<()> {
        let mut state = self.state()?;
        let number = field.0 as usize;
        let mut rest = bytes;
        self.each_device(&state, number, part, |device, place, count| {
            // What doesn't extend along Z is whole on every device.
            let (own, others) = if state.shapes[number].axes[2] { rest.split_at(count) } else { (bytes, rest) };
            rest = others;
            device.write(QueueId::COMPUTE, place, own)
        })?;
        state.fields[number].differs = everywhere();
        Ok(())
    }

    /// The bytes of a box of a field, rows after rows.
    pub(crate) fn read(&self, field: FieldId, part: &Box3) -> Result<Vec<u8>> {
        let state = self.state()?;
        state.check()?;
        let number = field.0 as usize;
        let cell = state.shapes[number].ty.bytes();
        let mut bytes = vec![0; part.points() as usize * cell];
        let mut rest = bytes.as_mut_slice();
        for part in chunks(part, cell) {
            self.each_device(&state, number, &part, |device, place, count| {
                if rest.is_empty() {
                    // A device before has the same.
                    return Ok(());
                }
                let (own, others) = std::mem::take(&mut rest).split_at_mut(count);
                rest = others;
                device.read(QueueId::COMPUTE, place, own)
            })?;
        }
        Ok(bytes)
    }

    /// Calls `act` for each device that owns cells of a box, with their place in the current buffer and their number
    /// of bytes, in the order of the cells.
    fn each_device(
        &self,
        state: &State,
        field: usize,
        part: &Box3,
        mut act: impl FnMut(&dyn Device, Place<'_>, usize) -> Result<()>,
    ) -> Result<()> {
        let memory = &state.memory[field];
        let buffers = memory.buffers(Role::Current);
        for (number, device) in self.devices.iter().enumerate() {
            let shape = &state.shapes[field];
            let local = self.local(shape, number, &self.part_of(shape, number).intersection(part));
            if local.is_empty() {
                continue;
            }
            let region = memory.layouts[number].region(&local).expect("a device stores what it owns");
            act(&**device, Place { buffer: buffers[number], region: &region }, region.bytes())?;
        }
        Ok(())
    }

    /// A scalar with a value.
    pub(crate) fn add_scalar(&self, name: Option<&str>, ty: ScalarType, bits: u64) -> Result<(ScalarId, String)> {
        let mut state = self.state()?;
        let number = state.scalars.len();
        let name = match name {
            Some(name) if state.scalars.iter().any(|other| other.name == name) => {
                return Err(Error::DuplicateScalar { name: name.into() });
            }
            Some(name) => name.to_owned(),
            None => format!("scalar {number}"),
        };
        state.scalars.push(ScalarFacts { name: name.clone(), ty });
        state.values.push(bits);
        Ok((ScalarId(number as u32), name))
    }

    /// The bits of a scalar.
    pub(crate) fn scalar(&self, scalar: ScalarId) -> Result<u64> {
        let state = self.state()?;
        state.check()?;
        Ok(state.values[scalar.0 as usize])
    }

    /// Replaces the bits of a scalar.
    pub(crate) fn set_scalar(&self, scalar: ScalarId, bits: u64) -> Result<()> {
        self.state()?.values[scalar.0 as usize] = bits;
        Ok(())
    }

    /// A record of values at some points.
    pub(crate) fn add_record(&self, points: usize, ty: ScalarType) -> Result<usize> {
        let mut state = self.state()?;
        state.records.push(RecordFacts { points, ty });
        state.written.push(Vec::new());
        Ok(state.records.len() - 1)
    }

    /// The number of points of a record, and the bits of what it holds.
    pub(crate) fn record(&self, record: usize) -> Result<(usize, Vec<u64>)> {
        let state = self.state()?;
        Ok((state.records[record].points, state.written[record].clone()))
    }

    /// Empties a record.
    pub(crate) fn clear_record(&self, record: usize) -> Result<()> {
        self.state()?.written[record].clear();
        Ok(())
    }

    /// Does `steps` steps and waits for the end; the step is the simulation's number `number`. `programs` are those of
    /// [`Step::programs`](crate::step::Step::programs). Gives the time that the devices took.
    pub(crate) fn advance_all(&self, programs: &[Program], number: usize, steps: u64) -> Result<Duration> {
        shared_out(programs, steps).map(|(program, runs)| self.run(program, number, runs)).sum()
    }

    /// Runs a program `runs` times and waits for the end.
    fn run(&self, program: &Program, number: usize, runs: u64) -> Result<Duration> {
        if runs == 0 {
            return Ok(Duration::ZERO);
        }
        let mut state = self.state()?;
        state.check()?;
        self.prepare(&mut state, program)?;
        let done = state.steps;
        // Should a closure panic, the fields are undefined.
        state.stopped = Some(done);
        self.guarded.stepping.store(this_thread(), Ordering::Relaxed);
        let stepping = Stepping(&self.guarded.stepping);
        let start = std::time::Instant::now();
        let result = self.steps(&mut state, program, number, runs);
        let time = start.elapsed();
        drop(stepping);
        result.map_err(|error| match error {
            Error::InStep { step, device, number, call, source, .. } => {
                Error::InStep { step, device, number, call, source, checkpoint: state.last_checkpoint.clone() }
            }
            other => other,
        })?;
        state.stopped = None;
        state.follow(&program.plan.flows);
        let steps = runs * program.plan.steps;
        state.steps += steps;
        state.counts[number] += steps;
        Ok(time)
    }

    fn steps(&self, state: &mut State, program: &Program, number: usize, runs: u64) -> Result<()> {
        let names = self.trace.as_ref().map(|_| state.names());
        let tracing = self.trace.as_ref().zip(names.as_ref());
        let trace = tracing.map(|(trace, (fields, scalars))| Tracing { trace, fields, scalars });
        let State { memory, values, written, counts, steps, .. } = state;
        let mut world = World {
            devices: &self.devices,
            fields: memory,
            scalars: values,
            records: written,
            number: counts[number],
            steps: *steps,
            trace,
        };
        program.run(&mut world, runs)
    }

    /// Makes what a plan presumes about second buffers true.
    fn prepare(&self, state: &mut State, program: &Program) -> Result<()> {
        for flow in &program.plan.flows {
            let number = flow.field.0 as usize;
            let differs = &state.fields[number].differs;
            let Some(presumes) = flow.presumes.as_ref().filter(|presumes| !presumes.contains_all(differs)) else {
                continue;
            };
            let memory = &state.memory[number];
            debug_assert!(memory.spare.len() == self.devices.len(), "{presumes:?}");
            for (device, layout) in memory.layouts.iter().enumerate() {
                for part in differs.minus(&Patches::default()) {
                    let part = layout.cells.intersection(&self.local(&state.shapes[number], device, &part));
                    let region = layout.region(&part).expect("an intersection lies in both boxes");
                    let place = |role: Role| Place { buffer: memory.buffers(role)[device], region: &region };
                    self.devices[device].copy(QueueId::COMPUTE, place(Role::Current), place(Role::Spare))?;
                }
            }
            state.fields[number].differs = Patches::default();
        }
        self.devices.iter().try_for_each(|device| device.finish(QueueId::COMPUTE))
    }
}

/// All cells that any device may store.
fn everywhere() -> Patches {
    /// Far beyond every extent, and far from the ends of the numbers.
    const FAR: i64 = 1 << 40;
    [Box3 { lo: [-FAR; 3], hi: [FAR; 3] }].into_iter().collect()
}

/// The layouts of a field on each device.
fn layouts(shape: &Shape, cells: &[Box3], strides: &[Strides]) -> Result<Vec<Layout>> {
    let each = cells.iter().zip(strides);
    each.map(|(cells, &strides)| Layout::new(shape.ty, shape.axes, *cells, strides)).collect()
}

/// Runs of planes of a box, small enough to be moved at once.
pub(crate) fn chunks(part: &Box3, cell: usize) -> impl Iterator<Item = Box3> + use<> {
    let part = *part;
    let [nx, ny, _] = part.size();
    let planes = (CHUNK_BYTES / (nx * ny * cell).max(1)).max(1);
    (part.lo[2]..part.hi[2]).step_by(planes).map(move |lo| {
        let mut chunk = part;
        (chunk.lo[2], chunk.hi[2]) = (lo, part.hi[2].min(lo + planes as i64));
        chunk
    })
}
