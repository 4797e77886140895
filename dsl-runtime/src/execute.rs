//! Runs plans: the only code that turns operations into calls of devices.

use crate::backend::{BufferId, Cells, Device, EventId, KernelId, Launch, Place, QueueId};
use crate::error::{Error, Result};
use crate::geometry::Box3;
use crate::kernel::{Role as Folding, ScalarType};
use crate::layout::{Layout, Region, Strides};
use crate::plan::{Action, Op, Operand, Plan, Role, Slot};
use crate::reduction;
use crate::scalar::Function;

/// The memory of a field: for each device a layout and a buffer in each slot.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) layouts: Vec<Layout>,
    pub(crate) current: Vec<BufferId>,
    /// No buffers until a step needs them.
    pub(crate) spare: Vec<BufferId>,
}

impl Memory {
    pub(crate) fn buffers(&self, role: Role) -> &[BufferId] {
        match role {
            Role::Current => &self.current,
            Role::Spare => &self.spare,
        }
    }

    pub(crate) fn buffers_mut(&mut self, role: Role) -> &mut Vec<BufferId> {
        match role {
            Role::Current => &mut self.current,
            Role::Spare => &mut self.spare,
        }
    }
}

/// What a step works on.
pub(crate) struct World<'a> {
    pub(crate) devices: &'a [Box<dyn Device>],
    pub(crate) fields: &'a mut [Memory],
    /// The bits of the scalars.
    pub(crate) scalars: &'a mut [u64],
    /// What each record holds so far.
    pub(crate) records: &'a mut [Vec<u64>],
    /// How often the step was run before.
    pub(crate) number: u64,
}

/// A plan made ready for the devices of a simulation.
pub(crate) struct Program {
    pub(crate) plan: Plan,
    /// The functions of scalars.
    functions: Vec<Function>,
    /// The id of each kernel of the plan on each device.
    kernels: Vec<Vec<KernelId>>,
    /// The global index of each device's local cell (0, 0, 0).
    origins: Vec<[i32; 3]>,
    /// Operations whose end another queue of the same device waits for.
    signals: Vec<bool>,
}

impl Program {
    /// Loads the kernels of a plan; `origins` are the global indices of the devices' local cells (0, 0, 0).
    pub(crate) fn new(
        plan: Plan,
        functions: Vec<Function>,
        devices: &[Box<dyn Device>],
        origins: Vec<[i32; 3]>,
    ) -> Result<Self> {
        let load = |&kernel: &&'static _| devices.iter().map(|device| device.load(kernel)).collect::<Result<Vec<_>>>();
        let kernels = plan.kernels.iter().map(load).collect::<Result<_>>()?;
        let mut signals = vec![false; plan.ops.len()];
        for op in &plan.ops {
            for after in &op.after {
                let before = &plan.ops[after.0];
                let apart = before.device == op.device && before.queue != op.queue;
                signals[after.0] |= apart && !before.action.is_on_host() && !op.action.is_on_host();
            }
        }
        Ok(Self { plan, functions, kernels, origins, signals })
    }

    /// Enqueues what is done before the first step.
    pub(crate) fn before(&self, world: &mut World<'_>) -> Result<()> {
        self.plan.before.iter().try_for_each(|op| self.perform(op, world))
    }

    /// Enqueues one step and turns the slots of the fields.
    pub(crate) fn step(&self, world: &mut World<'_>) -> Result<()> {
        let mut events: Vec<Option<EventId>> = vec![None; self.plan.ops.len()];
        for (number, op) in self.plan.ops.iter().enumerate() {
            self.wait_for_others(op, world.devices, &events)?;
            self.perform(op, world)?;
            if self.signals[number] {
                events[number] = Some(world.devices[op.device].signal(op.queue)?);
            }
        }
        self.rotate(world.fields);
        Ok(())
    }

    /// Waits for all queues of the plan, and reports what failed in them.
    pub(crate) fn finish(&self, devices: &[Box<dyn Device>]) -> Result<()> {
        let ops = self.plan.before.iter().chain(&self.plan.ops).filter(|op| !op.action.is_on_host());
        let mut queues: Vec<_> = ops.map(|op| (op.device, op.queue)).collect();
        queues.sort_unstable();
        queues.dedup();
        queues.into_iter().try_for_each(|(device, queue)| devices[device].finish(queue))
    }

    /// A queue runs its own operations in order; the others must be waited for. What the host does is finished when
    /// it is done, and reading on the host waits for the queue that is read from.
    fn wait_for_others(&self, op: &Op, devices: &[Box<dyn Device>], events: &[Option<EventId>]) -> Result<()> {
        for after in &op.after {
            let before = &self.plan.ops[after.0];
            if before.action.is_on_host() {
                continue;
            }
            if before.device != op.device || op.action.is_on_host() && before.queue != QueueId::COMPUTE {
                devices[before.device].finish(before.queue)?;
            } else if let (true, Some(event)) = (before.queue != op.queue, events[after.0]) {
                devices[op.device].wait(op.queue, event)?;
            }
        }
        Ok(())
    }

    fn perform(&self, op: &Op, world: &mut World<'_>) -> Result<()> {
        match &op.action {
            Action::Launch { .. } | Action::Copy { .. } => self.enqueue(op, world),
            Action::Fold { role, ty, rows, into } => {
                let bits = self.fold(*role, *ty, rows, world)?;
                world.scalars[into.0 as usize] = bits.map_err(|overflow| Error::SumTooLarge {
                    kernel: self.giver(rows),
                    ty: overflow.ty,
                    total: overflow.total,
                })?;
                Ok(())
            }
            Action::Compute { function, inputs, output } => {
                let bits: Vec<_> = inputs.iter().map(|input| world.scalars[input.0 as usize]).collect();
                world.scalars[output.0 as usize] = (self.functions[*function])(world.number, &bits);
                Ok(())
            }
            Action::Probe { from, cells, record } => {
                for &cell in cells {
                    let part = Box3 { lo: cell, hi: cell.map(|index| index + 1) };
                    let (buffer, region) = place(world.fields, *from, op.device, &part);
                    let mut cell = [0; 8];
                    let bytes = &mut cell[..region.bytes()];
                    world.devices[op.device].read(op.queue, Place { buffer, region: &region }, bytes)?;
                    world.records[*record].push(reduction::word(bytes));
                }
                Ok(())
            }
            Action::Record { from, record } => {
                world.records[*record].push(world.scalars[from.0 as usize]);
                Ok(())
            }
        }
    }

    /// The fold of what kernels left for each row of their boxes.
    fn fold(
        &self,
        role: Folding,
        ty: ScalarType,
        rows: &[(Slot, Box3)],
        world: &World<'_>,
    ) -> Result<Result<u64, reduction::Overflow>> {
        let mut fold = reduction::Fold::new(role, ty);
        for (part_number, (slot, part)) in rows.iter().enumerate() {
            fold.part(part_number);
            for (number, device) in world.devices.iter().enumerate() {
                let mut part = *part;
                (part.lo[0], part.hi[0]) = (0, 1);
                let (buffer, region) = place(world.fields, *slot, number, &part);
                let mut bytes = vec![0; region.bytes()];
                device.read(QueueId::COMPUTE, Place { buffer, region: &region }, &mut bytes)?;
                fold.add(&bytes, part.size()[1], [part.lo[1], part.lo[2]]);
            }
        }
        Ok(fold.result())
    }

    /// The name of the kernel that left such rows; these are fields that no other one writes.
    fn giver(&self, rows: &[(Slot, Box3)]) -> String {
        let mut launches = self.plan.ops.iter().filter_map(|op| match &op.action {
            Action::Launch { kernel, outputs, .. } => Some((*kernel, outputs)),
            _ => None,
        });
        let giver = launches.find(|(_, outputs)| rows.iter().any(|(slot, _)| outputs.contains(slot)));
        giver.map_or_else(String::new, |(kernel, _)| self.plan.kernels[kernel].name.into())
    }

    fn enqueue(&self, op: &Op, world: &World<'_>) -> Result<()> {
        let (device, fields) = (&*world.devices[op.device], &*world.fields);
        match &op.action {
            Action::Launch { kernel, outputs, fields: inputs, scalars, range, parity, shift, .. } => {
                let Some(strides) = strides(outputs, fields, op.device) else { return Ok(()) };
                let (outputs, inputs) =
                    (cells(fields, outputs, op.device, [0; 3]), cells(fields, inputs, op.device, *shift));
                let scalars: Vec<_> = scalars.iter().map(|scalar| bits(*scalar, world.scalars)).collect();
                let origin = self.origins[op.device];
                // Parities are those of global indices.
                let corner = origin.iter().sum::<i32>().rem_euclid(2) as u8;
                let launch = Launch {
                    kernel: self.kernels[*kernel][op.device],
                    outputs: &outputs,
                    fields: &inputs,
                    shift: *shift,
                    scalars: &scalars,
                    strides,
                    global: origin,
                    range: *range,
                    parity: parity.map(|parity| (parity + corner) % 2),
                };
                device.launch(op.queue, &launch)
            }
            Action::Copy { from, to, part } => {
                let (from, source) = place(fields, *from, op.device, part);
                let (to, target) = place(fields, *to, op.device, part);
                let from = Place { buffer: from, region: &source };
                device.copy(op.queue, from, Place { buffer: to, region: &target })
            }
            Action::Fold { .. } | Action::Compute { .. } | Action::Probe { .. } | Action::Record { .. } => {
                unreachable!("the host does it")
            }
        }
    }

    fn rotate(&self, fields: &mut [Memory]) {
        let rotation = &self.plan.rotation;
        let taken: Vec<_> = rotation
            .iter()
            .map(|(_, from)| std::mem::take(fields[from.field.0 as usize].buffers_mut(from.role)))
            .collect();
        for ((to, _), buffers) in rotation.iter().zip(taken) {
            *fields[to.field.0 as usize].buffers_mut(to.role) = buffers;
        }
    }
}

fn bits(operand: Operand, scalars: &[u64]) -> u64 {
    match operand {
        Operand::Bits(bits) => bits,
        Operand::Scalar(scalar) => scalars[scalar.0 as usize],
    }
}

fn strides(outputs: &[Slot], fields: &[Memory], device: usize) -> Option<Strides> {
    let slot = outputs.first()?;
    Some(fields[slot.field.0 as usize].layouts[device].strides)
}

fn cells(fields: &[Memory], slots: &[Slot], device: usize, shift: [i64; 3]) -> Vec<Cells> {
    let cells = |slot: &Slot| {
        let memory = &fields[slot.field.0 as usize];
        let layout = &memory.layouts[device];
        Cells { buffer: memory.buffers(slot.role)[device], origin: layout.shifted_origin(shift) }
    };
    slots.iter().map(cells).collect()
}

fn place(fields: &[Memory], slot: Slot, device: usize, part: &Box3) -> (BufferId, Region) {
    let memory = &fields[slot.field.0 as usize];
    let region = memory.layouts[device].region(part).expect("plans name only cells that are stored");
    (memory.buffers(slot.role)[device], region)
}

/// Memory for `layouts`, one on each device, unless a device hasn't that much free; `what` says what it is for.
pub(crate) fn allocate(devices: &[Box<dyn Device>], layouts: &[Layout], what: &str) -> Result<Vec<BufferId>> {
    for (device, layout) in devices.iter().zip(layouts) {
        check_memory(&**device, layout.bytes as u64, what)?;
    }
    let mut buffers = Vec::with_capacity(layouts.len());
    for (device, layout) in devices.iter().zip(layouts) {
        match device.alloc(layout) {
            Ok(buffer) => buffers.push(buffer),
            Err(error) => {
                devices.iter().zip(buffers).for_each(|(device, buffer)| device.free(buffer));
                return Err(error);
            }
        }
    }
    Ok(buffers)
}

/// An error if the device hasn't `needed` bytes free.
pub(crate) fn check_memory(device: &dyn Device, needed: u64, what: &str) -> Result<()> {
    match device.free_memory()? {
        Some(free) if free.bytes < needed => Err(Error::OutOfMemory {
            device: device.summary(),
            what: what.into(),
            needed,
            free: free.bytes,
            limit: free.limit,
        }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::backend::{DeviceInfo, DeviceKind, FreeMemory, QueueId};
    use crate::geometry::Extent;
    use crate::kernel::{KernelDesc, ScalarType};
    use crate::layout::{Strides, WHOLE};
    use crate::plan::{FieldId, Lane, OpId};

    /// A device that only writes down what it is told.
    struct Notebook {
        number: usize,
        info: DeviceInfo,
        notes: Arc<Mutex<Vec<String>>>,
    }

    impl Notebook {
        fn note(&self, text: String) {
            self.notes.lock().unwrap().push(format!("{} {text}", self.number));
        }
    }

    impl Device for Notebook {
        fn info(&self) -> &DeviceInfo {
            &self.info
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

        fn write(&self, _: QueueId, _: Place<'_>, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn read(&self, _: QueueId, _: Place<'_>, _: &mut [u8]) -> Result<()> {
            Ok(())
        }

        fn copy(&self, queue: QueueId, from: Place<'_>, to: Place<'_>) -> Result<()> {
            self.note(format!("copy {} to {} on {}", from.buffer.0, to.buffer.0, queue.0));
            Ok(())
        }

        fn load(&self, _: &'static KernelDesc) -> Result<KernelId> {
            Ok(KernelId(0))
        }

        fn launch(&self, _: QueueId, _: &Launch<'_>) -> Result<()> {
            Ok(())
        }

        fn signal(&self, queue: QueueId) -> Result<EventId> {
            self.note(format!("signal on {}", queue.0));
            Ok(EventId(40 + u64::from(queue.0)))
        }

        fn wait(&self, queue: QueueId, event: EventId) -> Result<()> {
            self.note(format!("wait on {} for {}", queue.0, event.0));
            Ok(())
        }

        fn finish(&self, queue: QueueId) -> Result<()> {
            self.note(format!("finish {}", queue.0));
            Ok(())
        }
    }

    type Notes = Arc<Mutex<Vec<String>>>;

    fn notebooks() -> (Vec<Box<dyn Device>>, Notes) {
        let notes = Notes::default();
        let info = DeviceInfo {
            backend: "notebook",
            ordinal: 0,
            name: String::new(),
            platform: String::new(),
            notes: Vec::new(),
            kind: DeviceKind::Cpu,
            fp64: true,
            units: 1,
            memory_bytes: 1000,
        };
        let device =
            |number| Box::new(Notebook { number, info: info.clone(), notes: Arc::clone(&notes) }) as Box<dyn Device>;
        ((0..2).map(device).collect(), notes)
    }

    fn layout(cells: usize) -> Layout {
        let whole = Extent::new([cells, 1, 1]).unwrap().whole();
        Layout::new(ScalarType::F64, WHOLE, whole, Strides::for_cells(whole.size(), 8).unwrap()).unwrap()
    }

    #[test]
    fn only_other_queues_are_waited_for_and_slots_turn_after_the_step() {
        let (devices, notes) = notebooks();
        let field = FieldId(0);
        let (current, spare) = (field.current(), field.spare());
        let part = layout(8).cells;
        let copy = |from, to, device, queue, after: &[usize]| Op {
            action: Action::Copy { from, to, part },
            device,
            lane: Lane(0),
            queue: QueueId(queue),
            after: after.iter().map(|&number| OpId(number)).collect(),
        };
        let ops = vec![
            copy(current, spare, 0, 0, &[]),
            copy(current, spare, 0, 0, &[0]),
            copy(spare, current, 0, 1, &[1]),
            copy(spare, current, 1, 0, &[2]),
        ];
        let plan = Plan { ops, rotation: vec![(current, spare), (spare, current)], ..Plan::default() };
        let program = Program::new(plan, Vec::new(), &devices, vec![[0; 3]; 2]).unwrap();
        let layouts = vec![layout(8); 2];
        let mut fields = [Memory { layouts, current: vec![BufferId(1); 2], spare: vec![BufferId(2); 2] }];
        let mut world = World { devices: &devices, fields: &mut fields, scalars: &mut [], records: &mut [], number: 0 };
        program.step(&mut world).unwrap();
        program.finish(&devices).unwrap();
        assert_eq!(
            *notes.lock().unwrap(),
            [
                "0 copy 1 to 2 on 0",
                "0 copy 1 to 2 on 0",
                "0 signal on 0",
                "0 wait on 1 for 40",
                "0 copy 2 to 1 on 1",
                "0 finish 1",
                "1 copy 2 to 1 on 0",
                "0 finish 0",
                "0 finish 1",
                "1 finish 0"
            ]
        );
        assert_eq!((fields[0].current[0], fields[0].spare[0]), (BufferId(2), BufferId(1)));
    }

    #[test]
    fn memory_is_checked_before_any_is_taken_and_given_back_when_a_device_refuses() {
        let (devices, notes) = notebooks();
        let error = allocate(&devices, &[layout(8), layout(1000)], "field `u`").unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { needed: 8000, free: 1000, .. }), "{error}");
        assert!(notes.lock().unwrap().is_empty());
        assert!(allocate(&devices, &[layout(8), layout(56)], "field `u`").is_err());
        assert_eq!(*notes.lock().unwrap(), ["0 alloc", "0 free"]);
    }
}
