//! Plans that exchange halos every few steps: what each device must have at the start so that it can do these steps alone,
//! found backwards from what it must have at their end. Planes that two devices need in between are computed by both.
//!
//! Planes beyond a face of Z that copy another device's planes can't be computed; they are exchanged in every step, only as
//! wide as one step reads.

use std::collections::{BTreeMap, BTreeSet};

use super::{Distributed, Emitter, Setting};
use crate::backend::QueueId;
use crate::demand::{Demands, Filling, Transfer, buffer_in, first_fill, owned_by_each, rotate};
use crate::depend;
use crate::distribute::{INCOMING, OUTGOING};
use crate::geometry::Box3;
use crate::layout::WHOLE;
use crate::plan::{Action, FieldId, Flow, Op, Plan, Purpose, Slot};
use crate::runs::{Run, Runs, common, hull, is_empty};

/// A plan whose runs do several steps each.
pub(super) fn distribute(plan: &Plan, setting: &Setting<'_>, steps: u32) -> Distributed {
    let unrolled = unroll(plan, steps);
    let needs = Needs::of(&unrolled, setting);
    let Needs { demands, start, parts, .. } = needs;
    let mut emitter = Emitter {
        setting,
        demands: &demands,
        plan: Plan { before: Vec::new(), ops: Vec::new(), ..unrolled.clone() },
        rows: BTreeMap::new(),
    };
    emitter.all_before(&unrolled);
    if setting.poisons {
        emitter.poison_all(&start);
    }
    emitter.transfer_all(&start, OUTGOING, INCOMING);
    for (number, op) in unrolled.ops.iter().enumerate() {
        emitter.transfer_all(&demands.ahead[number], OUTGOING, INCOMING);
        emitter.deep_op(op, &parts[number], &demands.fills[number]);
    }
    let mut plan = emitter.plan;
    depend::order(&mut plan);
    Distributed { plan, stored: demands.stored }
}

/// The plan of several steps in a row: slots have the names that they have at the start.
fn unroll(plan: &Plan, steps: u32) -> Plan {
    let mut buffers = BTreeMap::new();
    let mut ops = Vec::new();
    for step in 0..steps {
        for op in &plan.ops {
            let mut op = op.clone();
            rename(&mut op.action, &buffers, u64::from(step));
            ops.push(op);
        }
        rotate(&mut buffers, &plan.rotation);
    }
    let slots = plan.rotation.iter().map(|(to, _)| *to);
    let rotation = slots.map(|to| (to, buffer_in(&buffers, to))).filter(|(to, from)| to != from).collect();
    let from: BTreeMap<FieldId, FieldId> = plan.flows.iter().map(|flow| (flow.field, flow.from)).collect();
    let origin = |field: FieldId| (0..steps).fold(field, |field, _| from.get(&field).copied().unwrap_or(field));
    let flows = plan.flows.iter().map(|flow| Flow { from: origin(flow.field), ..flow.clone() }).collect();
    Plan {
        ops,
        rotation,
        flows,
        steps: u64::from(steps),
        points: plan.points * u64::from(steps),
        bytes: plan.bytes * u64::from(steps),
        ..plan.clone()
    }
}

/// Gives slots the names of their buffers, and functions of the step its number.
fn rename(action: &mut Action, buffers: &BTreeMap<Slot, Slot>, step: u64) {
    let renamed = |slot: &mut Slot| *slot = buffer_in(buffers, *slot);
    match action {
        Action::Launch { outputs, fields, .. } => outputs.iter_mut().chain(fields).for_each(renamed),
        Action::Copy { from, to, .. } => {
            renamed(from);
            renamed(to);
        }
        Action::Fold { rows, .. } => rows.iter_mut().for_each(|rows| renamed(&mut rows.slot)),
        Action::Probe { from, .. } | Action::Download { from, .. } => renamed(from),
        Action::Send { slot, .. } => renamed(slot),
        Action::Upload { to, .. } => renamed(to),
        Action::Compute { ahead, .. } => *ahead = step,
        Action::Record { .. } | Action::Barrier => {}
    }
}

/// What devices need beside their own planes, followed backwards.
struct Needs<'a> {
    setting: &'a Setting<'a>,
    /// For each device and buffer the planes that later operations read.
    later: Vec<BTreeMap<Slot, Runs>>,
    demands: Demands,
    /// For each device and buffer the planes of which only the cells are needed that no operation writes.
    frames: Vec<BTreeMap<Slot, Runs>>,
    /// What is exchanged when a run starts.
    start: BTreeSet<Transfer>,
    /// For each operation the planes that each device does.
    parts: Vec<BTreeMap<usize, Runs>>,
}

impl<'a> Needs<'a> {
    fn of(plan: &Plan, setting: &'a Setting<'a>) -> Self {
        let devices = setting.split.parts();
        let mut needs = Self {
            setting,
            later: vec![BTreeMap::new(); devices],
            frames: vec![BTreeMap::new(); devices],
            demands: Demands {
                ahead: vec![BTreeSet::new(); plan.ops.len()],
                fills_before: vec![BTreeMap::new(); plan.before.len()],
                fills: vec![BTreeMap::new(); plan.ops.len()],
                stored: owned_by_each(setting.shapes, setting.split),
                wrapped: vec![BTreeMap::new(); devices],
                ..Demands::default()
            },
            start: BTreeSet::new(),
            parts: vec![BTreeMap::new(); plan.ops.len()],
        };
        for number in (0..plan.ops.len()).rev() {
            needs.go_back(plan, number);
        }
        needs.begin(plan);
        needs
    }

    fn owned(&self, device: usize, slot: Slot) -> Run {
        self.setting.split.owned(device, &self.setting.shapes[slot.field.0 as usize])
    }

    /// A device reads planes of a buffer.
    fn need(&mut self, device: usize, slot: Slot, planes: Run) {
        if !self.setting.shapes[slot.field.0 as usize].axes[2] || is_empty(planes) {
            return;
        }
        let owned = Runs::from(self.owned(device, slot));
        let stored = self.demands.stored[device].entry(slot.field).or_insert(planes);
        *stored = hull(*stored, planes);
        let later = self.later[device].entry(slot).or_default();
        owned.missing_of(planes).into_iter().for_each(|run| later.add(run));
    }

    /// The planes of a range that a device does: its own, and those of which others of its operations need the results.
    fn part(&self, device: usize, range: Run, written: &[Slot]) -> Runs {
        let own = self.setting.split.part(device, &Box3 { lo: [0, 0, range.0], hi: [1, 1, range.1] });
        let later = written.iter().filter_map(|slot| self.later[device].get(slot));
        let later = later.flat_map(|runs| runs.common(range).collect::<Vec<_>>());
        later.chain([own.planes()]).collect()
    }

    /// Whether all cells of these planes outside of a range are the same in all steps, in all buffers that come to be in the
    /// slot: whatever writes them writes cells of the range.
    fn frame_is_steady(&self, plan: &Plan, slot: Slot, range: &Box3) -> bool {
        let mut slots = BTreeSet::from([slot]);
        for _ in 0..plan.rotation.len() {
            for (to, from) in &plan.rotation {
                if slots.contains(to) || slots.contains(from) {
                    slots.extend([*to, *from]);
                }
            }
        }
        let flat = |part: &Box3| Box3 { lo: [part.lo[0], part.lo[1], 0], hi: [part.hi[0], part.hi[1], 1] };
        plan.ops.iter().all(|op| {
            let within = match &op.action {
                Action::Launch { range: other, .. } => flat(range).contains(&flat(other)),
                Action::Copy { part, .. } => flat(range).contains(&flat(part)),
                _ => true,
            };
            within || !written(&op.action).iter().any(|slot| slots.contains(slot))
        })
    }

    fn go_back(&mut self, plan: &Plan, number: usize) {
        let devices = 0..self.setting.split.parts();
        match &plan.ops[number].action {
            Action::Launch { kernel, outputs, fields, range, parity, purpose: Purpose::Update, .. } => {
                let kernel = plan.kernels[*kernel];
                for device in devices {
                    let part = self.part(device, range.planes(), outputs);
                    for (output, slot) in kernel.outputs.iter().zip(outputs) {
                        // Poison would not stop at the frame.
                        let replaces = output.axes() == WHOLE && parity.is_none() && !self.setting.poisons;
                        if replaces && self.frame_is_steady(plan, *slot, range) {
                            // What was there before doesn't matter, but for the cells that no stage updates.
                            let later = self.later[device].entry(*slot).or_default();
                            let frames = self.frames[device].entry(*slot).or_default();
                            for &run in part.runs() {
                                later.common(run).for_each(|run| frames.add(run));
                            }
                            part.runs().iter().for_each(|&run| later.remove(run));
                        }
                        let stored = self.demands.stored[device].entry(slot.field).or_default();
                        part.runs().iter().for_each(|&run| *stored = hull(*stored, run));
                    }
                    for (parameter, slot) in kernel.fields.iter().zip(fields) {
                        for &planes in part.runs() {
                            let read = parameter.footprint(&range.in_planes(planes));
                            if parameter.axes[2] && !read.is_empty() {
                                self.need(device, *slot, read.planes());
                            }
                        }
                    }
                    self.parts[number].insert(device, part);
                }
            }
            Action::Launch { purpose: Purpose::Boundary, .. } => {
                let Some(filling) = Filling::of(&plan.ops[number], plan, self.setting.shapes) else { return };
                let first = first_fill(&plan.ops, number, filling.slot);
                for device in devices {
                    let (fills, moved) = self.fill(device, &filling);
                    self.demands.fills[number].insert(device, fills);
                    self.demands.ahead[first].extend(moved);
                }
            }
            Action::Launch { outputs, range, purpose: Purpose::Source | Purpose::Poison, .. } => {
                for device in devices {
                    let part = self.part(device, range.planes(), outputs);
                    self.parts[number].insert(device, part);
                }
            }
            Action::Copy { from, to, part } => {
                for device in devices {
                    let planes = self.part(device, part.planes(), &[*to]);
                    planes.runs().iter().for_each(|&run| self.need(device, *from, run));
                    self.parts[number].insert(device, planes);
                }
            }
            _ => {}
        }
    }

    /// Planes beyond a face that a device needs: those that it fills itself, and those that it gets from others.
    fn fill(&mut self, device: usize, filling: &Filling) -> (Runs, Vec<Transfer>) {
        let Filling { slot, planes, source, copied } = *filling;
        let wanted: Vec<Run> = self.later[device].get(&slot).into_iter().flat_map(|runs| runs.common(planes)).collect();
        if let Some(later) = self.later[device].get_mut(&slot) {
            later.remove(planes);
        }
        let (mut fills, mut moved) = (Runs::default(), Vec::new());
        for run in wanted {
            match source {
                Some(shift) if copied => {
                    for from in 0..self.setting.split.parts() {
                        let planes = common((run.0 + shift, run.1 + shift), self.owned(from, slot));
                        if is_empty(planes) {
                            continue;
                        }
                        if from == device {
                            fills.add((planes.0 - shift, planes.1 - shift));
                        } else {
                            moved.push(Transfer { slot, from, to: device, planes, moved: -shift });
                            let wrapped = self.demands.wrapped[device].entry(slot.field).or_default();
                            wrapped.add((planes.0 - shift, planes.1 - shift));
                        }
                    }
                }
                Some(shift) => {
                    fills.add(run);
                    self.need(device, slot, (run.0 + shift, run.1 + shift));
                }
                None => fills.add(run),
            }
        }
        (fills, moved)
    }

    /// What is needed at the start comes from the owners: of fields that no step changes once, of others in every run.
    fn begin(&mut self, plan: &Plan) {
        for (number, op) in plan.before.iter().enumerate().rev() {
            let Some(filling) = Filling::of(op, plan, self.setting.shapes) else { continue };
            for device in 0..self.setting.split.parts() {
                let (fills, moved) = self.fill(device, &filling);
                self.demands.fills_before[number].insert(device, fills);
                self.demands.before.extend(moved);
            }
        }
        let changed: BTreeSet<Slot> = plan.ops.iter().flat_map(|op| written(&op.action)).collect();
        let moves = |slot: &Slot| plan.rotation.iter().any(|(_, from)| from == slot);
        for to in 0..self.setting.split.parts() {
            for (slot, runs) in &self.frames[to] {
                self.demands.before.extend(self.transfers(to, *slot, runs));
            }
            for (slot, runs) in &self.later[to] {
                let transfers = self.transfers(to, *slot, runs);
                if changed.contains(slot) || moves(slot) {
                    self.start.extend(transfers);
                } else {
                    self.demands.before.extend(transfers);
                }
            }
        }
    }

    /// What brings planes of other devices to one.
    fn transfers(&self, to: usize, slot: Slot, planes: &Runs) -> Vec<Transfer> {
        let others = (0..self.setting.split.parts()).filter(|&from| from != to);
        others
            .flat_map(|from| {
                let owned = planes.common(self.owned(from, slot));
                owned.map(move |planes| Transfer { slot, from, to, planes, moved: 0 })
            })
            .collect()
    }
}

fn written(action: &Action) -> Vec<Slot> {
    match action {
        Action::Launch { outputs, purpose: Purpose::Update | Purpose::Source, .. } => outputs.clone(),
        Action::Copy { to, .. } => vec![*to],
        _ => Vec::new(),
    }
}

impl Emitter<'_> {
    /// Makes all halo planes worthless of buffers of which some are exchanged.
    fn poison_all(&mut self, start: &BTreeSet<Transfer>) {
        let slots: BTreeSet<Slot> = start.iter().map(|transfer| transfer.slot).collect();
        for slot in slots {
            let cells = self.setting.shapes[slot.field.0 as usize].cells[2];
            self.poison_halos(slot, (0, cells as i64));
        }
    }

    fn deep_op(&mut self, op: &Op, parts: &BTreeMap<usize, Runs>, fills: &BTreeMap<usize, Runs>) {
        let each = |part: &Box3| -> Vec<(usize, Box3)> {
            let runs = parts.iter().flat_map(|(device, runs)| runs.runs().iter().map(|&run| (*device, run)));
            runs.map(|(device, run)| (device, part.in_planes(run))).filter(|(_, part)| !part.is_empty()).collect()
        };
        match &op.action {
            Action::Launch { range, purpose: Purpose::Update, .. } => {
                for (device, part) in each(range) {
                    self.launch(&op.action, device, QueueId::COMPUTE, &part);
                }
            }
            Action::Launch { range, purpose: Purpose::Source | Purpose::Poison, .. } => {
                for (device, part) in each(range) {
                    let part = self.local(device, &part);
                    self.push(device, QueueId::COMPUTE, Self::launch_over(&op.action, part));
                }
            }
            Action::Copy { from, to, part } => {
                for (device, part) in each(part) {
                    let part = self.local(device, &part);
                    self.push(device, QueueId::COMPUTE, Action::Copy { from: *from, to: *to, part });
                }
            }
            _ => self.op(op, fills, &BTreeSet::new()),
        }
    }
}
