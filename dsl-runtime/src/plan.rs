//! A plan: what is done in one step, as plain data. The same plan is printed, tested and run.
//!
//! A plan names the memory of a field by *slots*: each field has a slot for its current values and one for the next
//! ones. Which buffer is in which slot changes at the end of a step, as the plan's rotation says; the plan itself
//! stays the same from step to step.

use std::fmt;

use crate::backend::QueueId;
use crate::geometry::Box3;
use crate::kernel::KernelDesc;

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

/// Something that a device does. Boxes are in the local coordinates of the device's subdomain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A kernel over a box.
    Launch {
        /// The kernel, by its number in [`Plan::kernels`].
        kernel: usize,
        /// Where the results go.
        outputs: Vec<Slot>,
        /// The fields that are read.
        fields: Vec<Slot>,
        /// The bits of the scalars.
        scalars: Vec<u64>,
        /// The points to update.
        range: Box3,
    },
    /// A copy of a box between two slots of a field.
    Copy {
        /// The slot that is read.
        from: Slot,
        /// The slot that is written.
        to: Slot,
        /// The cells.
        part: Box3,
    },
}

impl Action {
    /// The slots that are read.
    pub fn reads(&self) -> &[Slot] {
        match self {
            Self::Launch { fields, .. } => fields,
            Self::Copy { from, .. } => std::slice::from_ref(from),
        }
    }

    /// The slots that are written.
    pub fn writes(&self) -> &[Slot] {
        match self {
            Self::Launch { outputs, .. } => outputs,
            Self::Copy { to, .. } => std::slice::from_ref(to),
        }
    }
}

/// An operation: what, where, issued by whom, after what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// What is done.
    pub action: Action,
    /// The device, by its number in the simulation.
    pub device: usize,
    /// The host thread that issues it.
    pub lane: Lane,
    /// The queue of the device.
    pub queue: QueueId,
    /// The operations that must be finished before; all of them come earlier in the plan.
    pub after: Vec<OpId>,
}

/// What a plan presumes and leaves about a field that it updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The field.
    pub field: FieldId,
    /// For a double-buffered field: the plan is right if the two buffers are alike outside of this box when a step
    /// starts.
    pub presumes: Option<Box3>,
    /// The cells in which the buffers differ more after a step: for a double-buffered field all of them, for another
    /// one those that it added.
    pub leaves: Box3,
}

/// All that is done in one step.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The kernels.
    pub kernels: Vec<&'static KernelDesc>,
    /// The operations, in an order in which each lane can issue its own.
    pub ops: Vec<Op>,
    /// After a step, the first slot of each pair gets the buffer that the second one had.
    pub rotation: Vec<(Slot, Slot)>,
    /// The fields that are updated.
    pub flows: Vec<Flow>,
}

impl Plan {
    /// Points that one step updates: every point of every launch counts.
    pub fn points(&self) -> u64 {
        self.launches().map(|(_, range)| range.points()).sum()
    }

    /// The least memory traffic of one step by the kernels' own count: each field read once, each result written once.
    pub fn bytes(&self) -> u64 {
        self.launches().map(|(kernel, range)| range.points() * u64::from(kernel.bytes)).sum()
    }

    fn launches(&self) -> impl Iterator<Item = (&'static KernelDesc, &Box3)> {
        self.ops.iter().filter_map(|op| match &op.action {
            Action::Launch { kernel, range, .. } => Some((self.kernels[*kernel], range)),
            Action::Copy { .. } => None,
        })
    }

    /// The plan with the names of the fields, for people.
    pub fn named<'a>(&'a self, names: &'a [String]) -> impl fmt::Display + 'a {
        Named { plan: self, names }
    }
}

struct Named<'a> {
    plan: &'a Plan,
    names: &'a [String],
}

impl Named<'_> {
    fn slot(&self, slot: &Slot) -> String {
        let name = self.names.get(slot.field.0 as usize).map_or("?", String::as_str);
        match slot.role {
            Role::Current => name.to_owned(),
            Role::Spare => format!("{name}'"),
        }
    }

    fn slots(&self, slots: &[Slot]) -> String {
        slots.iter().map(|slot| self.slot(slot)).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, op) in self.plan.ops.iter().enumerate() {
            write!(f, "{number:>3}  device {} queue {}  ", op.device, op.queue.0)?;
            match &op.action {
                Action::Launch { kernel, outputs, fields, range, .. } => {
                    let kernel = self.plan.kernels[*kernel].name;
                    let (outputs, fields) = (self.slots(outputs), self.slots(fields));
                    write!(f, "{outputs} = {kernel}({fields}) over {range}, {} points", range.points())?;
                }
                Action::Copy { from, to, part } => {
                    write!(f, "{} = {} over {part}, {} points", self.slot(to), self.slot(from), part.points())?;
                }
            }
            if !op.after.is_empty() {
                let after: Vec<_> = op.after.iter().map(|op| op.0.to_string()).collect();
                write!(f, "  after {}", after.join(", "))?;
            }
            writeln!(f)?;
        }
        let rotated: Vec<_> =
            self.plan.rotation.iter().map(|(to, from)| format!("{} <- {}", self.slot(to), self.slot(from))).collect();
        if !rotated.is_empty() {
            writeln!(f, "  then {}", rotated.join(", "))?;
        }
        Ok(())
    }
}
