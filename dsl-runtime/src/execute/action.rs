//! One operation as a call of a device, or as work of the host.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{Common, Program};
use crate::backend::{BufferId, Cells, Device, Launch, Place, QueueId};
use crate::error::Error;
use crate::geometry::Box3;
use crate::kernel::{Role as Folding, ScalarType};
use crate::layout::Region;
use crate::plan::{Action, Op, Operand, Rows, Slot};
use crate::reduction;

/// What went wrong in an operation.
pub(super) struct Failure {
    /// The device and the call, if it was one.
    call: Option<(usize, &'static str)>,
    source: Box<Error>,
}

impl From<Error> for Failure {
    fn from(source: Error) -> Self {
        Self { call: None, source: Box::new(source) }
    }
}

impl Failure {
    /// Makes an error of a device's call known as such.
    pub(super) fn of(device: usize, call: &'static str) -> impl FnOnce(Error) -> Self {
        move |source| Self { call: Some((device, call)), source: Box::new(source) }
    }

    /// The error with the step in which it was noticed.
    pub(super) fn in_step(self, devices: &[Box<dyn Device>], step: u64) -> Error {
        match self.call {
            Some((number, call)) => Error::InStep {
                step,
                device: devices[number].summary(),
                number,
                call,
                checkpoint: None,
                source: self.source,
            },
            None => *self.source,
        }
    }
}

/// Lists that are made for each operation, in memory that is used again.
#[derive(Default)]
pub(super) struct Scratch {
    outputs: Vec<Cells>,
    fields: Vec<Cells>,
    scalars: Vec<u64>,
    bytes: Vec<u8>,
}

/// Where an operation of some run finds its memory.
struct Where<'a> {
    program: &'a Program,
    common: &'a Common<'a>,
    run: u64,
}

impl Where<'_> {
    fn buffer(&self, slot: Slot, device: usize) -> BufferId {
        let origin = self.program.rotation.origin(slot, self.run);
        self.common.fields[origin.field.0 as usize].buffers(origin.role)[device]
    }

    fn place(&self, slot: Slot, device: usize, part: &Box3) -> (BufferId, Region) {
        let layout = &self.common.fields[slot.field.0 as usize].layouts[device];
        let region = layout.region(part).expect("plans name only cells that are stored");
        (self.buffer(slot, device), region)
    }

    fn cells(&self, slot: Slot, device: usize, shift: [i64; 3]) -> Cells {
        let layout = &self.common.fields[slot.field.0 as usize].layouts[device];
        Cells { buffer: self.buffer(slot, device), origin: layout.shifted_origin(shift) }
    }

    fn read(&self, device: usize, queue: QueueId, slot: Slot, part: &Box3, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let (buffer, region) = self.place(slot, device, part);
        bytes.clear();
        bytes.resize(region.bytes(), 0);
        let read = self.common.devices[device].read(queue, Place { buffer, region: &region }, bytes);
        read.map_err(Failure::of(device, "read"))
    }
}

impl Program {
    /// Does what the host does itself; barriers are left to the threads. Enqueues everything else.
    pub(super) fn perform(&self, op: &Op, common: &Common<'_>, run: u64, scratch: &mut Scratch) -> Result<(), Failure> {
        let place = Where { program: self, common, run };
        let device = &*common.devices[op.device];
        match &op.action {
            Action::Launch { .. } => self.launch(op, &place, scratch),
            Action::Copy { from, to, part } => {
                let (from, source) = place.place(*from, op.device, part);
                let (to, target) = place.place(*to, op.device, part);
                let (from, to) = (Place { buffer: from, region: &source }, Place { buffer: to, region: &target });
                device.copy(op.queue, from, to).map_err(Failure::of(op.device, "copy"))
            }
            Action::Send { slot, part, to, into } => {
                let (from, source) = place.place(*slot, op.device, part);
                let (buffer, target) = place.place(*slot, *to, into);
                let (from, target) = (Place { buffer: from, region: &source }, Place { buffer, region: &target });
                let sent = device.copy_to_peer(op.queue, from, &*common.devices[*to], target);
                sent.map_err(Failure::of(op.device, "copy_to_peer"))
            }
            Action::Download { from, part, to } => {
                let (buffer, region) = place.place(*from, op.device, part);
                let read = device.download(op.queue, Place { buffer, region: &region }, &self.stagings[to.0], 0);
                read.map_err(Failure::of(op.device, "download"))
            }
            Action::Upload { from, to, part } => {
                let (buffer, region) = place.place(*to, op.device, part);
                let written = device.upload(op.queue, &self.stagings[from.0], 0, Place { buffer, region: &region });
                written.map_err(Failure::of(op.device, "upload"))
            }
            Action::Barrier => Ok(()),
            Action::Fold { role, ty, rows, into } => {
                let bits = self.fold(*role, *ty, rows, &place, &mut scratch.bytes)?;
                common.scalars[into.0 as usize].store(bits, Ordering::Relaxed);
                Ok(())
            }
            Action::Compute { function, inputs, output, ahead } => {
                let values = &mut scratch.scalars;
                values.clear();
                values.extend(inputs.iter().map(|input| common.scalars[input.0 as usize].load(Ordering::Relaxed)));
                let number = common.number + run * self.plan.steps + ahead;
                let bits = self.functions[*function](number, values);
                common.scalars[output.0 as usize].store(bits, Ordering::Relaxed);
                Ok(())
            }
            Action::Probe { from, cells, record } => {
                for &(device, cell) in cells {
                    let part = Box3 { lo: cell, hi: cell.map(|index| index + 1) };
                    place.read(device, op.queue, *from, &part, &mut scratch.bytes)?;
                    push(common, *record, reduction::word(&scratch.bytes));
                }
                Ok(())
            }
            Action::Record { from, record } => {
                push(common, *record, common.scalars[from.0 as usize].load(Ordering::Relaxed));
                Ok(())
            }
        }
    }

    fn launch(&self, op: &Op, place: &Where<'_>, scratch: &mut Scratch) -> Result<(), Failure> {
        let Action::Launch { kernel, outputs, fields, scalars, range, parity, shift, .. } = &op.action else {
            unreachable!("the caller has looked")
        };
        let common = place.common;
        let Some(first) = outputs.first() else { return Ok(()) };
        let strides = common.fields[first.field.0 as usize].layouts[op.device].strides;
        scratch.outputs.clear();
        scratch.outputs.extend(outputs.iter().map(|slot| place.cells(*slot, op.device, [0; 3])));
        scratch.fields.clear();
        scratch.fields.extend(fields.iter().map(|slot| place.cells(*slot, op.device, *shift)));
        scratch.scalars.clear();
        scratch.scalars.extend(scalars.iter().map(|operand| match operand {
            Operand::Bits(bits) => *bits,
            Operand::Scalar(scalar) => common.scalars[scalar.0 as usize].load(Ordering::Relaxed),
        }));
        let origin = self.origins[op.device];
        // Parities are those of global indices.
        let corner = origin.iter().sum::<i32>().rem_euclid(2) as u8;
        let launch = Launch {
            kernel: self.kernels[*kernel][op.device],
            outputs: &scratch.outputs,
            fields: &scratch.fields,
            shift: *shift,
            scalars: &scratch.scalars,
            strides,
            global: origin,
            range: *range,
            parity: parity.map(|parity| (parity + corner) % 2),
        };
        common.devices[op.device].launch(op.queue, &launch).map_err(Failure::of(op.device, "launch"))
    }

    /// The fold of what kernels left for each row of their boxes.
    fn fold(
        &self,
        role: Folding,
        ty: ScalarType,
        rows: &[Rows],
        place: &Where<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<u64, Failure> {
        let mut fold = reduction::Fold::new(role, ty);
        for &Rows { device, slot, cells: mut part, number } in rows {
            fold.part(number);
            (part.lo[0], part.hi[0]) = (0, 1);
            place.read(device, QueueId::COMPUTE, slot, &part, bytes)?;
            let [_, y, z] = std::array::from_fn(|axis| part.lo[axis] + i64::from(self.origins[device][axis]));
            fold.add(bytes, part.size()[1], [y, z]);
        }
        let too_large = |overflow: reduction::Overflow| Error::SumTooLarge {
            kernel: self.giver(rows),
            ty: overflow.ty,
            total: overflow.total,
        };
        Ok(fold.result().map_err(too_large)?)
    }

    /// The name of the kernel that left such rows; these are fields that no other one writes.
    fn giver(&self, rows: &[Rows]) -> String {
        let mut launches = self.plan.ops.iter().filter_map(|op| match &op.action {
            Action::Launch { kernel, outputs, .. } => Some((*kernel, outputs)),
            _ => None,
        });
        let giver = launches.find(|(_, outputs)| rows.iter().any(|rows| outputs.contains(&rows.slot)));
        giver.map_or_else(String::new, |(kernel, _)| self.plan.kernels[kernel].name.into())
    }
}

fn push(common: &Common<'_>, record: usize, word: u64) {
    // A record is a list of words, whole after any panic.
    common.records[record].lock().unwrap_or_else(PoisonError::into_inner).push(word);
}
