//! From the plan of one device to that of several: every operation on each device's own planes, and the exchange of halos
//! between them, in the way that a strategy says.
//!
//! A stage whose new values are read by other devices is cut into *boundary* planes, which these need, and the *interior*.
//! Strategies that overlap launch the boundary first, on a queue of its own with the outgoing copies behind it, and the
//! interior beside them; incoming copies have a third queue. Which operation waits for which is not said here: it follows from
//! what they touch ([`crate::depend`]).

mod deep;

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::QueueId;
use crate::boundary;
use crate::demand::{Demands, Transfer, demands, owned_by_each};
use crate::depend;
use crate::exchange::Recipe;
use crate::geometry::Box3;
use crate::kernel::{KernelDesc, ScalarType};
use crate::layout::{ROWS, WHOLE};
use crate::partition::Split;
use crate::plan::{Action, FieldId, Lane, Op, Operand, Plan, Purpose, Rows, Slot, StagingDesc, StagingId};
use crate::runs::{Run, Runs, common, hull, is_empty};
use crate::shape::Shape;

/// The queue for boundary planes and for what goes out.
pub const OUTGOING: QueueId = QueueId(1);

/// The queue for what comes in.
pub const INCOMING: QueueId = QueueId(2);

/// What the distribution of a plan depends on.
pub struct Setting<'a> {
    /// The fields.
    pub shapes: &'a [Shape],
    /// Which planes belong to which device.
    pub split: &'a Split,
    /// How halos are exchanged.
    pub recipe: Recipe,
    /// Whether one device can copy to another one without the host.
    pub reaches: &'a dyn Fn(usize, usize) -> bool,
    /// Whether halo cells are made worthless before they are exchanged.
    pub poisons: bool,
}

/// A plan for several devices.
#[derive(Clone, Debug)]
pub struct Distributed {
    /// The plan.
    pub plan: Plan,
    /// For each device the planes of each field that it stores, in global coordinates; fields without an axis along Z are
    /// left out.
    pub stored: Vec<BTreeMap<FieldId, Run>>,
}

/// The plan of all devices from that of one that has the whole grid.
pub fn distribute(plan: Plan, setting: &Setting<'_>) -> Distributed {
    if setting.split.parts() == 1 {
        let mut plan = plan;
        depend::order(&mut plan);
        return Distributed { plan, stored: owned_by_each(setting.shapes, setting.split) };
    }
    if setting.recipe.steps > 1 {
        return deep::distribute(&plan, setting, setting.recipe.steps);
    }
    let mut demands = demands(&plan, setting.shapes, setting.split);
    share_rooms(&mut demands, &plan.rotation);
    let mut emitter = Emitter {
        setting,
        demands: &demands,
        plan: Plan { before: Vec::new(), ops: Vec::new(), ..plan.clone() },
        rows: BTreeMap::new(),
    };
    emitter.all_before(&plan);
    for (number, op) in plan.ops.iter().enumerate() {
        emitter.transfer_beside(&demands.ahead[number]);
        emitter.op(op, &demands.fills[number], &demands.after[number]);
    }
    if setting.recipe.meets && !emitter.plan.ops.is_empty() {
        emitter.barrier();
    }
    let mut plan = emitter.plan;
    depend::order(&mut plan);
    Distributed { plan, stored: demands.stored }
}

/// Fields that come to have each other's buffers store the same planes.
fn share_rooms(demands: &mut Demands, rotation: &[(Slot, Slot)]) {
    for stored in &mut demands.stored {
        for _ in 0..rotation.len() {
            for (to, from) in rotation {
                let [Some(&one), Some(&other)] = [to, from].map(|slot| stored.get(&slot.field)) else { continue };
                stored.insert(to.field, hull(one, other));
            }
        }
    }
}

/// Writes the plan.
struct Emitter<'a> {
    setting: &'a Setting<'a>,
    demands: &'a Demands,
    plan: Plan,
    /// The launches that wrote each field of rows last.
    rows: BTreeMap<Slot, Vec<(usize, Box3)>>,
}

impl Emitter<'_> {
    fn devices(&self) -> std::ops::Range<usize> {
        0..self.setting.split.parts()
    }

    fn lane(&self, device: usize) -> Lane {
        Lane(if self.setting.recipe.threads { device as u32 } else { 0 })
    }

    /// A box in the coordinates of a device.
    fn local(&self, device: usize, part: &Box3) -> Box3 {
        part.shifted([0, 0, -self.setting.split.start(device)])
    }

    fn push(&mut self, device: usize, queue: QueueId, action: Action) {
        let lane = if action.is_on_host() { Lane(0) } else { self.lane(device) };
        self.plan.ops.push(Op { action, device, lane, queue, after: Vec::new(), across: Vec::new() });
    }

    /// What is done before the first step, by one thread.
    fn all_before(&mut self, plan: &Plan) {
        self.transfer_all(&self.demands.before, QueueId::COMPUTE, QueueId::COMPUTE);
        for (number, op) in plan.before.iter().enumerate() {
            self.op(op, &self.demands.fills_before[number], &BTreeSet::new());
        }
        self.plan.before = std::mem::take(&mut self.plan.ops);
        self.plan.before.iter_mut().for_each(|op| op.lane = Lane(0));
    }

    fn op(&mut self, op: &Op, fills: &BTreeMap<usize, Runs>, transfers: &BTreeSet<Transfer>) {
        match &op.action {
            Action::Launch { range, purpose: Purpose::Update, .. } => self.update(&op.action, range, transfers),
            Action::Launch { range, purpose: Purpose::Boundary, .. } => self.fill(&op.action, range, fills),
            Action::Launch { range, purpose: Purpose::Source | Purpose::Poison, .. } => {
                self.spread(range, transfers, |range| Self::launch_over(&op.action, range));
            }
            Action::Copy { from, to, part } => {
                let (from, to) = (*from, *to);
                self.spread(part, transfers, |part| Action::Copy { from, to, part });
            }
            Action::Fold { role, ty, rows, into } => {
                let mut all = Vec::new();
                for &Rows { slot, number, .. } in rows {
                    let mut parts = self.rows.remove(&slot).unwrap_or_default();
                    // Planes are folded in the order of the whole grid.
                    parts.sort_by_key(|(device, part)| self.setting.split.start(*device) + part.lo[2]);
                    all.extend(parts.into_iter().map(|(device, cells)| Rows { device, slot, cells, number }));
                }
                let rows = all;
                self.push(0, QueueId::COMPUTE, Action::Fold { role: *role, ty: *ty, rows, into: *into });
            }
            Action::Probe { from, cells, record } => {
                let own = |&(_, mut cell): &(usize, [i64; 3])| {
                    let device = self.setting.split.owner(cell[2]);
                    cell[2] -= self.setting.split.start(device);
                    (device, cell)
                };
                let cells = cells.iter().map(own).collect();
                self.push(0, QueueId::COMPUTE, Action::Probe { from: *from, cells, record: *record });
            }
            Action::Compute { .. } | Action::Record { .. } => self.push(0, QueueId::COMPUTE, op.action.clone()),
            Action::Send { .. } | Action::Download { .. } | Action::Upload { .. } | Action::Barrier => {
                unreachable!("one device exchanges nothing")
            }
        }
    }

    /// A launch over another range.
    fn launch_over(launch: &Action, over: Box3) -> Action {
        let mut launch = launch.clone();
        if let Action::Launch { range, .. } = &mut launch {
            *range = over;
        }
        launch
    }

    /// Launches of an update: boundary planes, what goes out, the interior, what comes in.
    fn update(&mut self, launch: &Action, range: &Box3, transfers: &BTreeSet<Transfer>) {
        let overlaps = self.setting.recipe.overlaps;
        let mut interiors = Vec::new();
        for device in self.devices() {
            let own = self.setting.split.part(device, range);
            if own.is_empty() {
                continue;
            }
            let mut interior = Runs::from(own.planes());
            if overlaps {
                for &planes in self.boundary(launch, device, &own, transfers).runs() {
                    self.launch(launch, device, OUTGOING, &own.in_planes(planes));
                    interior.remove(planes);
                }
            }
            interiors.extend(interior.runs().iter().map(|&planes| (device, own.in_planes(planes))));
        }
        if overlaps {
            self.poison(launch, range);
            let incoming = self.send(transfers, OUTGOING);
            for (device, part) in interiors {
                self.launch(launch, device, QueueId::COMPUTE, &part);
            }
            self.receive(incoming, INCOMING);
        } else {
            for (device, part) in interiors {
                self.launch(launch, device, QueueId::COMPUTE, &part);
            }
            self.poison(launch, range);
            self.transfer_in_phases(transfers);
        }
    }

    /// The planes of a device's part of an update that come first: those that others need, and those that read halo cells
    /// which the exchange of this very update replaces, since it writes in place.
    fn boundary(&self, launch: &Action, device: usize, own: &Box3, transfers: &BTreeSet<Transfer>) -> Runs {
        let Action::Launch { kernel, outputs, fields, .. } = launch else { unreachable!("updates are launches") };
        let all = own.planes();
        let outgoing = transfers.iter().filter(|transfer| transfer.from == device);
        let mut boundary: Runs = outgoing.map(|transfer| common(transfer.planes, all)).collect();
        if transfers.is_empty() && !self.setting.poisons {
            return boundary;
        }
        for (parameter, slot) in self.plan.kernels[*kernel].fields.iter().zip(fields) {
            if outputs.contains(slot) {
                let (first, last) = self.setting.split.owned(device, &self.setting.shapes[slot.field.0 as usize]);
                let read = parameter.footprint(own);
                let (below, above) = (read.lo[2] - own.lo[2], read.hi[2] - own.hi[2]);
                boundary.add(common(all, (i64::MIN, first - below)));
                boundary.add(common(all, (last - above, i64::MAX)));
            }
        }
        boundary
    }

    fn launch(&mut self, launch: &Action, device: usize, queue: QueueId, whole: &Box3) {
        let part = self.local(device, whole);
        let Action::Launch { kernel, outputs, .. } = launch else { unreachable!("only launches are launched") };
        for (output, slot) in self.plan.kernels[*kernel].outputs.iter().zip(outputs) {
            // What two devices compute is folded once.
            let owned = self.setting.split.part(device, whole);
            if output.axes() == ROWS && !owned.is_empty() {
                let owned = self.local(device, &owned);
                self.rows.entry(*slot).or_default().push((device, owned));
            }
        }
        self.push(device, queue, Self::launch_over(launch, part));
    }

    /// Fills ghost cells on every device that stores such: beyond faces of X and Y in all its planes, beyond those of Z in the
    /// planes that it doesn't get from another device.
    fn fill(&mut self, launch: &Action, range: &Box3, fills: &BTreeMap<usize, Runs>) {
        let Action::Launch { outputs, .. } = launch else { unreachable!("fills are launches") };
        let field = outputs[0].field;
        let shape = &self.setting.shapes[field.0 as usize];
        let nz = shape.cells[2] as i64;
        let inside = !shape.axes[2] || !is_empty(common(range.planes(), (0, nz)));
        for device in self.devices() {
            let planes: Runs = match (inside, self.demands.stored[device].get(&field)) {
                (true, Some(&stored)) => {
                    let wrapped = self.demands.wrapped[device].get(&field);
                    let wrapped = wrapped.into_iter().flat_map(|runs| runs.runs().iter().copied());
                    wrapped.chain([common(stored, (0, nz))]).collect()
                }
                (true, None) => range.planes().into(),
                (false, _) => fills.get(&device).cloned().unwrap_or_default(),
            };
            for &planes in planes.runs() {
                let part = range.in_planes(planes);
                // A field without an axis along Z is whole on every device and has no first plane.
                let part = if shape.axes[2] { self.local(device, &part) } else { part };
                self.push(device, QueueId::COMPUTE, Self::launch_over(launch, part));
            }
        }
    }

    /// An operation over each device's own part of a box, and the exchange of what it wrote.
    fn spread(&mut self, part: &Box3, transfers: &BTreeSet<Transfer>, action: impl Fn(Box3) -> Action) {
        for device in self.devices() {
            let own = self.setting.split.part(device, part);
            if !own.is_empty() {
                let local = self.local(device, &own);
                self.push(device, QueueId::COMPUTE, action(local));
            }
        }
        self.transfer_beside(transfers);
    }

    /// All transfers after an operation that isn't cut.
    fn transfer_beside(&mut self, transfers: &BTreeSet<Transfer>) {
        if self.setting.recipe.overlaps {
            self.transfer_all(transfers, OUTGOING, INCOMING);
        } else {
            self.transfer_in_phases(transfers);
        }
    }

    /// All transfers, and nothing else meanwhile.
    fn transfer_in_phases(&mut self, transfers: &BTreeSet<Transfer>) {
        if transfers.is_empty() {
            return;
        }
        self.barrier();
        let incoming = self.send(transfers, QueueId::COMPUTE);
        self.barrier();
        if !incoming.is_empty() {
            self.receive(incoming, QueueId::COMPUTE);
            self.barrier();
        }
    }

    fn transfer_all(&mut self, transfers: &BTreeSet<Transfer>, outgoing: QueueId, incoming: QueueId) {
        let staged = self.send(transfers, outgoing);
        self.receive(staged, incoming);
    }

    /// Starts transfers on the devices that have the cells; gives those that went to host memory.
    fn send(&mut self, transfers: &BTreeSet<Transfer>, queue: QueueId) -> Vec<(StagingId, Transfer)> {
        let mut staged = Vec::new();
        for &transfer in transfers {
            let Transfer { slot, from, to, .. } = transfer;
            let (part, into) = self.boxes(&transfer);
            let source = self.local(from, &part);
            if self.setting.recipe.direct && (self.setting.reaches)(from, to) {
                let into = self.local(to, &into);
                self.push(from, queue, Action::Send { slot, part: source, to, into });
            } else {
                let bytes = part.points() as usize * self.setting.shapes[slot.field.0 as usize].ty.bytes();
                let staging = StagingId(self.plan.stagings.len());
                self.plan.stagings.push(StagingDesc { device: from, bytes });
                self.push(from, queue, Action::Download { from: slot, part: source, to: staging });
                staged.push((staging, transfer));
            }
        }
        staged
    }

    fn receive(&mut self, staged: Vec<(StagingId, Transfer)>, queue: QueueId) {
        for (staging, transfer) in staged {
            let into = self.local(transfer.to, &self.boxes(&transfer).1);
            self.push(transfer.to, queue, Action::Upload { from: staging, to: transfer.slot, part: into });
        }
    }

    /// The cells of a transfer where they come from and where they go, in global coordinates.
    fn boxes(&self, transfer: &Transfer) -> (Box3, Box3) {
        let part = self.setting.shapes[transfer.slot.field.0 as usize].whole().in_planes(transfer.planes);
        (part, part.shifted([0, 0, transfer.moved]))
    }

    /// Makes the copies worthless that other devices have of what a launch has written.
    fn poison(&mut self, launch: &Action, range: &Box3) {
        let (true, Action::Launch { kernel, outputs, .. }) = (self.setting.poisons, launch) else { return };
        let kernel = self.plan.kernels[*kernel];
        for (output, &slot) in kernel.outputs.iter().zip(outputs) {
            if output.axes() == WHOLE {
                self.poison_halos(slot, range.planes());
            }
        }
    }

    /// Makes these planes of a slot worthless wherever they are stored beside a device's own.
    fn poison_halos(&mut self, slot: Slot, within: Run) {
        let shape = &self.setting.shapes[slot.field.0 as usize];
        for device in self.devices() {
            let Some(&stored) = self.demands.stored[device].get(&slot.field) else { continue };
            for planes in Runs::from(self.setting.split.owned(device, shape)).missing_of(common(stored, within)) {
                let action = Action::Launch {
                    kernel: self.kernel(boundary::constant(shape.ty)),
                    outputs: vec![slot],
                    fields: Vec::new(),
                    scalars: vec![Operand::Bits(poison(shape.ty))],
                    range: self.local(device, &shape.whole().in_planes(planes)),
                    parity: None,
                    shift: [0; 3],
                    purpose: Purpose::Poison,
                };
                self.push(device, INCOMING, action);
            }
        }
    }

    fn kernel(&mut self, kernel: &'static KernelDesc) -> usize {
        let kernels = &mut self.plan.kernels;
        kernels.iter().position(|&other| std::ptr::eq(other, kernel)).unwrap_or_else(|| {
            kernels.push(kernel);
            kernels.len() - 1
        })
    }

    /// All threads wait for all that was issued.
    fn barrier(&mut self) {
        let lanes: BTreeSet<Lane> = self.devices().map(|device| self.lane(device)).collect();
        for lane in lanes {
            self.push(lane.0 as usize, QueueId::COMPUTE, Action::Barrier);
            if let Some(op) = self.plan.ops.last_mut() {
                op.lane = lane;
            }
        }
    }
}

/// The bits of a value that no exchange should leave anywhere: a NaN with a payload of its own, or a number that is seldom met.
pub fn poison(ty: ScalarType) -> u64 {
    match ty {
        ScalarType::F64 => 0x7ff8_dead_0bad_f00d,
        ScalarType::F32 => 0x7fc0_dead,
        ScalarType::I64 | ScalarType::U64 => 0x5afe_dead_0bad_f00d,
        ScalarType::I32 | ScalarType::U32 => 0x5afe_dead,
        ScalarType::I8 | ScalarType::U8 => 0x5d,
        ScalarType::Bool => 1,
    }
}

#[cfg(test)]
mod tests;
