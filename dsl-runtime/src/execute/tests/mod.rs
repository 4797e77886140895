//! Plans made by hand, run on devices that write down what they are told and on reference devices.

mod cells;
mod faults;
mod orders;
mod places;
mod recordings;
mod traces;

use crate::backend::{BufferId, Device, QueueId};
use crate::error::Result;
use crate::execute::{Memory, Program, World};
use crate::plan::{Across, Action, FieldId, Lane, Op, OpId, Role, Slot};
use crate::testing::row;

/// The slots of the first field.
const CURRENT: Slot = Slot { field: FieldId(0), role: Role::Current };
const SPARE: Slot = Slot { field: FieldId(0), role: Role::Spare };

/// A field with buffers 1 and 2 on each device, which are notebooks.
fn data(devices: usize) -> Data {
    let field = Memory {
        layouts: vec![row(8); devices],
        current: vec![BufferId(1); devices],
        spare: vec![BufferId(2); devices],
    };
    Data { fields: vec![field], ..Data::default() }
}

/// What a program changes.
#[derive(Default)]
struct Data {
    fields: Vec<Memory>,
    scalars: Vec<u64>,
    records: Vec<Vec<u64>>,
}

impl Data {
    fn world<'a>(&'a mut self, devices: &'a [Box<dyn Device>]) -> World<'a> {
        let Self { fields, scalars, records } = self;
        World { devices, fields, scalars, records, number: 0, steps: 0, trace: None }
    }

    fn run(&mut self, devices: &[Box<dyn Device>], program: &Program, runs: u64) -> Result<()> {
        program.run(&mut self.world(devices), runs)
    }
}

/// An operation of lane 0 that waits for nothing.
fn op(action: Action, device: usize, queue: u32) -> Op {
    Op { action, device, lane: Lane(0), queue: QueueId(queue), after: Vec::new(), across: Vec::new() }
}

impl Op {
    fn by(self, lane: u32) -> Self {
        Self { lane: Lane(lane), ..self }
    }

    fn after(mut self, ops: impl IntoIterator<Item = usize>) -> Self {
        self.after.extend(ops.into_iter().map(OpId));
        self
    }

    fn across(mut self, runs: usize, ops: impl IntoIterator<Item = usize>) -> Self {
        self.across.extend(ops.into_iter().map(|op| Across { runs, op: OpId(op) }));
        self
    }
}
