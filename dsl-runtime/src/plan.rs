//! A plan: what is done in one step, as plain data. The same plan is printed, tested and run.
//!
//! A plan names the memory of a field by *slots*: each field has a slot for its current values and one for the next
//! ones. Which buffer is in which slot changes at the end of a step, as the plan's rotation says; the plan itself
//! stays the same from step to step.

use std::fmt;

use crate::backend::QueueId;
use crate::geometry::{Box3, Patches};
use crate::kernel::{self, KernelDesc, ScalarType};

/// A field of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub u32);

/// The place of one buffer of a field, on every device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The field.
    pub field: FieldId,
    /// Whether it holds the current values at the start of a step or is free for the next ones.
    pub role: Role,
}

/// What a slot is for at the start of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The values of the field.
    Current,
    /// Room for the next values.
    Spare,
}

impl FieldId {
    /// The slot of the field's values at the start of a step.
    pub fn current(self) -> Slot {
        Slot { field: self, role: Role::Current }
    }

    /// The slot for the field's next values.
    pub fn spare(self) -> Slot {
        Slot { field: self, role: Role::Spare }
    }
}

/// A host thread that issues operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u32);

/// The number of an operation in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub usize);

/// A number of a simulation that its steps compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScalarId(pub u32);

/// A scalar argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The bits of a number.
    Bits(u64),
    /// The value of a scalar when the launch is issued.
    Scalar(ScalarId),
}

/// Why a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It updates points of the grid.
    Update,
    /// It fills ghost cells beyond a face.
    Boundary,
    /// It adds to a point.
    Source,
    /// It makes halo cells worthless that are about to be exchanged, so that a read of an old value shows.
    Poison,
}

/// Host memory through which cells travel between two devices, by its number in [`Plan::stagings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StagingId(pub usize);

/// Host memory that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagingDesc {
    /// The device that allocates it, by its number in the simulation.
    pub device: usize,
    /// Its size.
    pub bytes: usize,
}

/// What a launch left of a result that is folded: a value for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The device.
    pub device: usize,
    /// The slot.
    pub slot: Slot,
    /// The cells along Y and Z, in the coordinates of the device.
    pub cells: Box3,
    /// Which part of the result it is ([`kernel::Role::parts`]).
    pub number: usize,
}

/// Something that is done. Boxes and points are in the local coordinates of the device's subdomain.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A kernel over a box.
    Launch {
        /// The kernel, by its number in [`Plan::kernels`].
        kernel: usize,
        /// Where the results go; for what is folded the field that keeps a value for each row.
        outputs: Vec<Slot>,
        /// The fields that are read.
        fields: Vec<Slot>,
        /// The scalars.
        scalars: Vec<Operand>,
        /// The points to update.
        range: Box3,
        /// Which of them: all, or those whose indices add up to an even (0) or an odd (1) number.
        parity: Option<u8>,
        /// How far all fields are read from where the kernel says.
        shift: [i64; 3],
        /// What it is for.
        purpose: Purpose,
    },
    /// A copy of cells to another device without the host.
    Send {
        /// The slot, on both devices.
        slot: Slot,
        /// The cells, in the coordinates of the device that has them.
        part: Box3,
        /// The other device.
        to: usize,
        /// The cells there, in its coordinates.
        into: Box3,
    },
    /// A copy of cells to host memory.
    Download {
        /// The slot.
        from: Slot,
        /// The cells.
        part: Box3,
        /// Where they go; they fill it.
        to: StagingId,
    },
    /// A copy of cells from host memory.
    Upload {
        /// Where they come from; they are all that is there.
        from: StagingId,
        /// The slot.
        to: Slot,
        /// The cells.
        part: Box3,
    },
    /// The host thread waits until all that it has issued in this step is finished, and for the barriers of all other
    /// threads.
    Barrier,
    /// A copy of a box between two slots of a field.
    Copy {
        /// The slot that is read.
        from: Slot,
        /// The slot that is written.
        to: Slot,
        /// The cells.
        part: Box3,
    },
    /// The host folds what kernels have folded row by row.
    Fold {
        /// How.
        role: kernel::Role,
        /// The type of the result.
        ty: ScalarType,
        /// Where the rows are, in the order in which they are folded.
        rows: Vec<Rows>,
        /// The result.
        into: ScalarId,
    },
    /// The host calls a function of scalars.
    Compute {
        /// The function, by its number in the step.
        function: usize,
        /// Its arguments.
        inputs: Vec<ScalarId>,
        /// The result.
        output: ScalarId,
        /// The steps of this plan that come before: a plan may do several at once.
        ahead: u64,
    },
    /// Cells are written down.
    Probe {
        /// The field.
        from: Slot,
        /// The cells, each with the device that owns it and in the coordinates of that device.
        cells: Vec<(usize, [i64; 3])>,
        /// The record, by its number in the simulation.
        record: usize,
    },
    /// A scalar is written down.
    Record {
        /// The scalar.
        from: ScalarId,
        /// The record, by its number in the simulation.
        record: usize,
    },
}

impl Action {
    /// Whether the host does it by itself once the operations before are finished.
    pub fn is_on_host(&self) -> bool {
        match self {
            Self::Fold { .. } | Self::Compute { .. } | Self::Probe { .. } | Self::Record { .. } => true,
            Self::Barrier => true,
            Self::Launch { .. }
            | Self::Copy { .. }
            | Self::Send { .. }
            | Self::Download { .. }
            | Self::Upload { .. } => false,
        }
    }
}

/// An operation: what, where, issued by whom, after what.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// What is done.
    pub action: Action,
    /// The device, by its number in the simulation; 0 for what the host does.
    pub device: usize,
    /// The host thread that issues it.
    pub lane: Lane,
    /// The queue of the device.
    pub queue: QueueId,
    /// The operations that must be finished before; all of them come earlier in the plan.
    pub after: Vec<OpId>,
    /// Operations of earlier runs of the plan that must be finished before, where they were run.
    pub across: Vec<Across>,
}

/// An operation of an earlier run of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Across {
    /// How many runs ago; at least 1.
    pub runs: usize,
    /// Which.
    pub op: OpId,
}

/// What a plan presumes and leaves about a field that it updates or moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The field.
    pub field: FieldId,
    /// The field whose buffers it has after a step; itself unless fields were swapped.
    pub from: FieldId,
    /// For a field that the step needs two buffers of: the plan is right if the two are alike outside of these cells
    /// when a step starts.
    pub presumes: Option<Patches>,
    /// The cells in which the buffers may differ after a step: for a field with a presumption all of them, for another
    /// one those that the step added.
    pub leaves: Patches,
}

/// All that is done in one step, or in a few.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kernels.
    pub kernels: Vec<&'static KernelDesc>,
    /// What is done once before the first of several steps: the ghost cells of fields that no step changes are filled.
    pub before: Vec<Op>,
    /// The operations of a run, in an order in which one thread could issue all of them, and each lane can issue its own.
    pub ops: Vec<Op>,
    /// The steps that a run does; 1 except for plans that exchange halos every few steps.
    pub steps: u64,
    /// Points that a run updates: every point of every stage counts, once even where two devices compute it.
    pub points: u64,
    /// The least memory traffic of a run by the kernels' own count: each field read once, each result written once.
    pub bytes: u64,
    /// Host memory for transfers.
    pub stagings: Vec<StagingDesc>,
    /// After a step, the first slot of each pair gets the buffer that the second one had.
    pub rotation: Vec<(Slot, Slot)>,
    /// The fields that are updated or moved.
    pub flows: Vec<Flow>,
}

impl Default for Plan {
    /// A plan that does nothing in one step.
    fn default() -> Self {
        Self {
            kernels: Vec::new(),
            before: Vec::new(),
            ops: Vec::new(),
            steps: 1,
            points: 0,
            bytes: 0,
            stagings: Vec::new(),
            rotation: Vec::new(),
            flows: Vec::new(),
        }
    }
}

impl Plan {
    /// The plan with the names of fields and scalars, for people.
    pub fn named<'a>(&'a self, fields: &'a [String], scalars: &'a [String]) -> impl fmt::Display + 'a {
        Named { plan: self, fields, scalars }
    }
}

struct Named<'a> {
    plan: &'a Plan,
    fields: &'a [String],
    scalars: &'a [String],
}

impl Named<'_> {
    fn slot(&self, slot: &Slot) -> String {
        let name = self.fields.get(slot.field.0 as usize).map_or("?", String::as_str);
        match slot.role {
            Role::Current => name.to_owned(),
            Role::Spare => format!("{name}'"),
        }
    }

    fn scalar(&self, scalar: &ScalarId) -> &str {
        self.scalars.get(scalar.0 as usize).map_or("?", String::as_str)
    }

    fn list<T>(&self, items: &[T], name: impl Fn(&T) -> String) -> String {
        items.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    fn action(&self, action: &Action, lane: Lane) -> String {
        match action {
            Action::Launch { kernel, outputs, fields, scalars, range, parity, purpose, .. } => {
                let outputs = self.list(outputs, |slot| self.slot(slot));
                let points = range.points_of(*parity);
                let colour = match parity {
                    None => "",
                    Some(0) => " (even points)",
                    Some(_) => " (odd points)",
                };
                match purpose {
                    Purpose::Update => {
                        let mut arguments: Vec<_> = fields.iter().map(|slot| self.slot(slot)).collect();
                        arguments.extend(scalars.iter().filter_map(|scalar| match scalar {
                            Operand::Scalar(scalar) => Some(self.scalar(scalar).to_owned()),
                            Operand::Bits(_) => None,
                        }));
                        let kernel = self.plan.kernels[*kernel].name;
                        format!("{outputs} = {kernel}({}) over {range}{colour}, {points} points", arguments.join(", "))
                    }
                    Purpose::Boundary => format!("{outputs} beyond its boundary: {range}, {points} points"),
                    Purpose::Source => format!("{outputs} += a source at {:?}", range.lo),
                    Purpose::Poison => format!("{outputs} = poison over {range}, {points} points"),
                }
            }
            Action::Copy { from, to, part } => {
                format!("{} = {} over {part}, {} points", self.slot(to), self.slot(from), part.points())
            }
            Action::Send { slot, part, to, into } => {
                format!("{} to device {to}: {part} to {into}, {} points", self.slot(slot), part.points())
            }
            Action::Download { from, part, to } => {
                format!("staging {} = {} over {part}, {} points", to.0, self.slot(from), part.points())
            }
            Action::Upload { from, to, part } => {
                format!("{} = staging {} over {part}, {} points", self.slot(to), from.0, part.points())
            }
            Action::Barrier => format!("thread {} waits for its work and the other threads", lane.0),
            Action::Fold { role, rows, into, .. } => {
                let mut slots: Vec<_> = rows.iter().map(|rows| rows.slot).collect();
                slots.dedup();
                let rows = self.list(&slots, |slot| self.slot(slot));
                let word = match role {
                    kernel::Role::Sum => "sum",
                    kernel::Role::Max => "largest",
                    kernel::Role::Min => "least",
                    kernel::Role::Value => "value",
                };
                format!("{} = {word} of {rows}", self.scalar(into))
            }
            Action::Compute { inputs, output, .. } => {
                let inputs = self.list(inputs, |scalar| self.scalar(scalar).to_owned());
                format!("{} = a function of ({inputs})", self.scalar(output))
            }
            Action::Probe { from, cells, .. } => {
                format!("{} is written down at {} points", self.slot(from), cells.len())
            }
            Action::Record { from, .. } => format!("{} is written down", self.scalar(from)),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, ops: &[Op]) -> fmt::Result {
        for (number, op) in ops.iter().enumerate() {
            if op.action.is_on_host() {
                write!(f, "{number:>3}  host              {}", self.action(&op.action, op.lane))?;
            } else {
                write!(
                    f,
                    "{number:>3}  device {} queue {}  {}",
                    op.device,
                    op.queue.0,
                    self.action(&op.action, op.lane)
                )?;
            }
            if !op.after.is_empty() {
                let after: Vec<_> = op.after.iter().map(|op| op.0.to_string()).collect();
                write!(f, "  after {}", after.join(", "))?;
            }
            for Across { runs, op } in &op.across {
                write!(f, "  after {} of {runs} before", op.0)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.plan.before.is_empty() {
            writeln!(f, "  once, before the first step")?;
            self.write(f, &self.plan.before)?;
            writeln!(f, "  in each step")?;
        }
        self.write(f, &self.plan.ops)?;
        let rotation = &self.plan.rotation;
        if !rotation.is_empty() {
            let rotated = self.list(rotation, |(to, from)| format!("{} <- {}", self.slot(to), self.slot(from)));
            writeln!(f, "  then {rotated}")?;
        }
        Ok(())
    }
}
