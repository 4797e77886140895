//! What was run when, for the viewers of Chrome and Perfetto: a process for each device with a row for each queue, and
//! one for the host with a row for each thread that issues operations.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Common, Program};
use crate::backend::{Device, EventId, QueueId};
use crate::clock::Span;
use crate::error::Result;
use crate::files;
use crate::kernel;
use crate::plan::{Action, FieldId, Lane, Op, Plan, Purpose, Role, ScalarId, Slot};

/// What happened so far. Spans of devices are there if the devices were opened to trace.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The devices in words.
    devices: Vec<String>,
    records: Mutex<Vec<Record>>,
}

/// The recorder of a batch of runs, with the names of fields and scalars.
#[derive(Clone, Copy)]
pub(crate) struct Tracing<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) fields: &'a [String],
    pub(crate) scalars: &'a [String],
}

/// What a thread notes about an operation.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) run: u64,
    pub(super) op: usize,
    /// Waiting included.
    pub(super) issue: Span,
    /// The moment after it, for what runs on a device.
    pub(super) event: Option<EventId>,
}

/// A bar of the picture.
#[derive(Debug)]
struct Record {
    row: Row,
    span: Span,
    step: u64,
    facts: Arc<Facts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Queue(usize, QueueId),
    Thread(Lane),
}

/// What is the same in every run.
#[derive(Debug)]
struct Facts {
    name: String,
    points: u64,
    bytes: u64,
}

impl Trace {
    /// An empty trace of what these devices do.
    pub(crate) fn new(devices: &[Box<dyn Device>]) -> Self {
        Self { devices: devices.iter().map(|device| device.summary()).collect(), records: Mutex::default() }
    }

    /// Writes everything as trace events in JSON.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        files::replace(path, |file| self.write_to(file))
    }

    fn write_to(&self, file: &mut impl Write) -> io::Result<()> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let host = self.devices.len();
        let place = |row: Row| match row {
            Row::Queue(device, queue) => (device, queue.0),
            Row::Thread(lane) => (host, lane.0),
        };
        write!(file, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let mut separator = "\n";
        let names = self.devices.iter().enumerate().map(|(number, device)| format!("device {number}: {device}"));
        for (process, name) in names.chain(["host".into()]).enumerate() {
            let name = Quoted(&name);
            write!(
                file,
                "{separator}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"tid\":0,\"args\":{{\"name\":{name}}}}}"
            )?;
            separator = ",\n";
        }
        for row in records.iter().map(|record| record.row).collect::<BTreeSet<_>>() {
            let (process, thread) = place(row);
            let name = match row {
                Row::Queue(_, queue) => format!("queue {}", queue.0),
                Row::Thread(lane) => format!("thread {}", lane.0),
            };
            let name = Quoted(&name);
            write!(
                file,
                ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":{name}}}}}"
            )?;
        }
        for Record { row, span, step, facts } in &*records {
            let (process, thread) = place(*row);
            let Facts { name, points, bytes } = &**facts;
            let (name, start) = (Quoted(name), Micros(span.start));
            let duration = Micros(span.end.saturating_sub(span.start));
            write!(
                file,
                ",\n{{\"ph\":\"X\",\"name\":{name},\"pid\":{process},\"tid\":{thread},\"ts\":{start},\"dur\":{duration},\
                 \"args\":{{\"step\":{step},\"points\":{points},\"bytes\":{bytes}}}}}"
            )?;
        }
        write!(file, "\n]}}\n")
    }
}

impl Tracing<'_> {
    /// Keeps what was noted in a batch that is finished; `ops` are those of which the notes speak.
    pub(super) fn keep(&self, program: &Program, ops: &[Op], common: &Common<'_>, mut notes: Vec<Note>) -> Result<()> {
        let facts: Vec<_> = ops.iter().map(|op| Arc::new(self.facts(&program.plan, op, common))).collect();
        notes.sort_by_key(|note| note.issue.start);
        let mut records = Vec::with_capacity(2 * notes.len());
        for Note { run, op: number, issue, event } in notes {
            let (op, step) = (&ops[number], common.step(&program.plan, run));
            let record = |row, span| Record { row, span, step, facts: Arc::clone(&facts[number]) };
            records.push(record(Row::Thread(op.lane), issue));
            let span = event.map_or(Ok(None), |event| common.devices[op.device].span(event))?;
            records.extend(span.map(|span| record(Row::Queue(op.device, op.queue), span)));
        }
        self.trace.records.lock().unwrap_or_else(PoisonError::into_inner).append(&mut records);
        Ok(())
    }

    fn facts(&self, plan: &Plan, op: &Op, common: &Common<'_>) -> Facts {
        let moved = |slot: &Slot, part: &crate::geometry::Box3| {
            let layout = &common.fields[slot.field.0 as usize].layouts[op.device];
            let points = layout.along(part).points();
            (points, points * layout.ty.bytes() as u64)
        };
        let (points, bytes) = match &op.action {
            Action::Launch { kernel, range, parity, .. } => {
                let points = range.points_of(*parity);
                (points, points * u64::from(plan.kernels[*kernel].bytes))
            }
            Action::Copy { from: slot, part, .. }
            | Action::Send { slot, part, .. }
            | Action::Download { from: slot, part, .. }
            | Action::Upload { to: slot, part, .. } => moved(slot, part),
            Action::Fold { ty, rows, .. } => {
                let points: u64 = rows.iter().map(|rows| (rows.cells.size()[1] * rows.cells.size()[2]) as u64).sum();
                (points, points * ty.bytes() as u64)
            }
            Action::Probe { from, cells, .. } => {
                let layout = common.fields[from.field.0 as usize].layouts.first();
                (cells.len() as u64, cells.len() as u64 * layout.map_or(0, |layout| layout.ty.bytes() as u64))
            }
            Action::Barrier | Action::Compute { .. } | Action::Record { .. } => (0, 0),
        };
        Facts { name: self.words(plan, op), points, bytes }
    }

    /// The operation in words, the same ones for alike operations: viewers add up the times of what has one name.
    fn words(&self, plan: &Plan, op: &Op) -> String {
        match &op.action {
            Action::Launch { kernel, outputs, purpose, .. } => {
                let outputs: Vec<_> = outputs.iter().map(|slot| self.slot(*slot)).collect();
                let outputs = outputs.join(", ");
                match purpose {
                    Purpose::Update => format!("{outputs} = {}", plan.kernels[*kernel].name),
                    Purpose::Boundary => format!("{outputs} beyond its boundary"),
                    Purpose::Source => format!("{outputs} += a source"),
                    Purpose::Poison => format!("{outputs} = poison"),
                }
            }
            Action::Copy { from, to, .. } => format!("{} = {}", self.slot(*to), self.slot(*from)),
            Action::Send { slot, to, .. } => format!("{} to device {to}", self.slot(*slot)),
            Action::Download { from, .. } => format!("{} to the host", self.slot(*from)),
            Action::Upload { to, .. } => format!("{} from the host", self.slot(*to)),
            Action::Barrier => "barrier".into(),
            Action::Fold { role, into, .. } => {
                let word = match role {
                    kernel::Role::Sum => "sum",
                    kernel::Role::Max => "largest",
                    kernel::Role::Min => "least",
                    kernel::Role::Value => "value",
                };
                format!("{} = {word}", self.scalar(*into))
            }
            Action::Compute { output, .. } => format!("{} = a function", self.scalar(*output)),
            Action::Probe { from, .. } => format!("{} is written down", self.slot(*from)),
            Action::Record { from, .. } => format!("{} is written down", self.scalar(*from)),
        }
    }

    fn slot(&self, Slot { field: FieldId(number), role }: Slot) -> String {
        let name = self.fields.get(number as usize).map_or("?", String::as_str);
        match role {
            Role::Current => name.to_owned(),
            Role::Spare => format!("{name}'"),
        }
    }

    fn scalar(&self, ScalarId(number): ScalarId) -> &str {
        self.scalars.get(number as usize).map_or("?", String::as_str)
    }
}

/// Microseconds, with the nanoseconds as decimals.
struct Micros(Duration);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanoseconds = self.0.as_nanos();
        write!(f, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
    }
}

/// A string of JSON.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"")?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                control if u32::from(control) < 0x20 => write!(f, "\\u{:04x}", u32::from(control))?,
                other => write!(f, "{other}")?,
            }
        }
        write!(f, "\"")
    }
}
