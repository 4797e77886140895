//! Who issues which operation after which waits: a plan prepared for the threads that issue it.

use std::collections::{BTreeMap, BTreeSet};

use super::Issue;
use crate::backend::QueueId;
use crate::plan::{Action, Op, Operand, ScalarId};

/// A queue of a device of the simulation.
pub(super) type Queue = (usize, QueueId);

/// The operations of a run of a plan, in the hands of those who issue them.
#[derive(Debug)]
pub(super) struct Script {
    /// For each thread what it issues, in order; at least one.
    pub(super) lanes: Vec<Vec<Entry>>,
    /// How many operations have events that others wait for.
    pub(super) events: usize,
    /// How many runs back an operation looks at most.
    pub(super) reach: u64,
    /// All queues.
    pub(super) queues: Vec<Queue>,
}

/// An operation as a thread issues it.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its number in the plan.
    pub(super) op: usize,
    pub(super) waits: Vec<Wait>,
    /// Where its event is kept, if another operation waits for that.
    pub(super) event: Option<usize>,
    /// Whether another thread waits until it is issued.
    pub(super) is_awaited: bool,
    /// For a barrier.
    pub(super) meeting: Meeting,
}

/// What a barrier waits for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Meeting {
    /// Queues to which the thread has issued something since its last barrier.
    pub(super) queues: Vec<Queue>,
    /// The barriers of the other threads.
    pub(super) others: Vec<Moment>,
}

/// When an operation is issued: the thread and the place among its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) lane: usize,
    pub(super) place: usize,
}

/// What a thread does before it issues an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// How many runs ago the other operation was issued; there is nothing to wait for in the first runs.
    pub(super) runs: u64,
    /// When it is issued, if another thread does that.
    pub(super) issued: Option<Moment>,
    /// What is done once it is issued.
    pub(super) then: Then,
}

/// How an operation that is issued is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Not at all: it is finished, or runs in the same queue, or is waited for by reading.
    Nothing,
    /// The queue waits for the event.
    Queue { event: usize },
    /// The queue waits for the event of another device.
    Peer { device: usize, event: usize },
    /// The thread waits for the event.
    Block { device: usize, event: usize },
}

impl Script {
    /// `awaits` tells whether queues of the first device can wait for events of the second one.
    ///
    /// # Panics
    /// When threads have different numbers of barriers.
    pub(super) fn new(ops: &[Op], issue: Issue, awaits: impl Fn(usize, usize) -> bool) -> Self {
        let mut numbers: Vec<_> = ops.iter().map(|op| op.lane).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lane_of = |op: &Op| match issue {
            Issue::Lanes => numbers.binary_search(&op.lane).expect("the lanes of all operations are known"),
            Issue::InOrder => 0,
        };
        let count = match issue {
            Issue::Lanes => numbers.len().max(1),
            Issue::InOrder => 1,
        };
        let mut lengths = vec![0; count];
        let mut moment = |op: &Op| {
            let lane = lane_of(op);
            lengths[lane] += 1;
            Moment { lane, place: lengths[lane] - 1 }
        };
        let moments: Vec<_> = ops.iter().map(&mut moment).collect();
        let mut building = Building { ops, moments: &moments, events: BTreeMap::new(), awaited: BTreeSet::new() };
        let waits: Vec<_> = (0..ops.len()).map(|op| building.waits(op, &awaits)).collect();
        let meetings = building.meetings(count);
        let Building { events, awaited, .. } = building;
        let mut lanes: Vec<Vec<Entry>> = (0..count).map(|_| Vec::new()).collect();
        for (op, (waits, meeting)) in waits.into_iter().zip(meetings).enumerate() {
            let event = events.get(&op).copied();
            let entry = Entry { op, waits, event, is_awaited: awaited.contains(&op), meeting };
            lanes[moments[op].lane].push(entry);
        }
        let reach = ops.iter().flat_map(|op| &op.across).map(|across| across.runs as u64).max().unwrap_or(0);
        Self { lanes, events: events.len(), reach, queues: queues(ops) }
    }
}

/// The queues that operations are issued to.
fn queues<'a>(ops: impl IntoIterator<Item = &'a Op>) -> Vec<Queue> {
    let on_device = ops.into_iter().filter(|op| !op.action.is_on_host());
    let queues: BTreeSet<_> = on_device.map(|op| (op.device, op.queue)).collect();
    queues.into_iter().collect()
}

struct Building<'a> {
    ops: &'a [Op],
    moments: &'a [Moment],
    /// The number of the event of each operation that has one.
    events: BTreeMap<usize, usize>,
    /// Operations that another thread waits for.
    awaited: BTreeSet<usize>,
}

impl Building<'_> {
    fn waits(&mut self, number: usize, awaits: &impl Fn(usize, usize) -> bool) -> Vec<Wait> {
        let op = &self.ops[number];
        let same = op.after.iter().map(|after| (0, after.0));
        let earlier = op.across.iter().map(|across| (across.runs as u64, across.op.0));
        let needed: Vec<_> = same.chain(earlier).collect();
        let own = self.moments[number].lane;
        let mut waits = Vec::new();
        for &(runs, before) in &needed {
            // Whoever met at a barrier is behind it when all have come.
            if let Action::Barrier = self.ops[before].action {
                for other in self.meeting(before) {
                    self.wait_until_issued(own, runs, other, &mut waits);
                }
            }
            match self.how(&self.ops[before], op, awaits) {
                How::Issued => self.wait_until_issued(own, runs, before, &mut waits),
                how if needed.iter().any(|&later| self.covers(later, (runs, before), how, op, awaits)) => {}
                how => {
                    let events = self.events.len();
                    let event = *self.events.entry(before).or_insert(events);
                    let device = self.ops[before].device;
                    let then = match how {
                        How::Issued => Then::Nothing,
                        How::Queue => Then::Queue { event },
                        How::Peer => Then::Peer { device, event },
                        How::Block => Then::Block { device, event },
                    };
                    let issued = self.moment_of_other(own, before);
                    waits.push(Wait { runs, issued, then });
                }
            }
        }
        waits
    }

    fn wait_until_issued(&mut self, own: usize, runs: u64, before: usize, waits: &mut Vec<Wait>) {
        let issued = self.moment_of_other(own, before);
        let wait = Wait { runs, issued, then: Then::Nothing };
        if issued.is_some() && !waits.contains(&wait) {
            waits.push(wait);
        }
    }

    /// When an operation is issued, if another thread does it.
    fn moment_of_other(&mut self, own: usize, before: usize) -> Option<Moment> {
        let moment = Some(self.moments[before]).filter(|moment| moment.lane != own);
        if moment.is_some() {
            self.awaited.insert(before);
        }
        moment
    }

    /// Whether `later` is waited for in the same way and comes after `earlier` in the same queue, by the same thread.
    fn covers(
        &self,
        later: (u64, usize),
        earlier: (u64, usize),
        how: How,
        op: &Op,
        awaits: &impl Fn(usize, usize) -> bool,
    ) -> bool {
        let [before, after] = [earlier.1, later.1].map(|number| &self.ops[number]);
        let comes_later = (earlier.0, later.1) > (later.0, earlier.1);
        let in_same_queue = (before.device, before.queue) == (after.device, after.queue);
        let by_same_thread = self.moments[earlier.1].lane == self.moments[later.1].lane;
        comes_later && in_same_queue && by_same_thread && self.how(after, op, awaits) == how
    }

    fn how(&self, before: &Op, op: &Op, awaits: &impl Fn(usize, usize) -> bool) -> How {
        if before.action.is_on_host() {
            How::Issued
        } else if op.action.is_on_host() {
            let needs_no_event = reads_through(&op.action, op.queue, before) || only_replaces(&op.action, before);
            if needs_no_event { How::Issued } else { How::Block }
        } else if before.device != op.device {
            if awaits(op.device, before.device) { How::Peer } else { How::Block }
        } else if before.queue != op.queue {
            How::Queue
        } else {
            How::Issued
        }
    }

    /// The barriers of all threads that meet at a barrier, in the order of the threads.
    fn meeting(&self, barrier: usize) -> Vec<usize> {
        let barriers = self.barriers();
        let own = &barriers[&self.moments[barrier].lane];
        let turn = own.iter().position(|&other| other == barrier).expect("it is one of them");
        barriers.values().map(|all| all[turn]).collect()
    }

    /// The barriers of each thread.
    fn barriers(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut barriers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, op) in self.ops.iter().enumerate() {
            let own = barriers.entry(self.moments[number].lane).or_default();
            if let Action::Barrier = op.action {
                own.push(number);
            }
        }
        barriers
    }

    /// What each operation waits for if it is a barrier.
    fn meetings(&mut self, lanes: usize) -> Vec<Meeting> {
        let barriers = self.barriers();
        let counts: BTreeSet<_> = barriers.values().map(Vec::len).collect();
        assert!(counts.len() <= 1, "threads with {counts:?} barriers don't meet");
        let mut since = vec![0; lanes];
        let mut meetings = Vec::with_capacity(self.ops.len());
        for (number, op) in self.ops.iter().enumerate() {
            let mut meeting = Meeting::default();
            if let Action::Barrier = op.action {
                let own = self.moments[number].lane;
                let issued = (since[own]..number).filter(|&other| self.moments[other].lane == own);
                meeting.queues = queues(issued.map(|other| &self.ops[other]));
                since[own] = number;
                let others = self.meeting(number).into_iter().filter(|&other| other != number);
                let others: Vec<_> = others.collect();
                self.awaited.extend(&others);
                meeting.others = others.into_iter().map(|other| self.moments[other]).collect();
            }
            meetings.push(meeting);
        }
        meetings
    }
}

/// How an operation is waited for before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Issued,
    Queue,
    Peer,
    Block,
}

/// Whether what the host does begins with reading from the queue in which `before` runs, and so waits for it.
fn reads_through(action: &Action, queue: QueueId, before: &Op) -> bool {
    match action {
        Action::Fold { rows, .. } => {
            before.queue == QueueId::COMPUTE && rows.iter().any(|rows| rows.device == before.device)
        }
        Action::Probe { cells, .. } => {
            before.queue == queue && cells.iter().any(|(device, _)| *device == before.device)
        }
        Action::Launch { .. }
        | Action::Send { .. }
        | Action::Download { .. }
        | Action::Upload { .. }
        | Action::Barrier
        | Action::Copy { .. }
        | Action::Compute { .. }
        | Action::Record { .. } => false,
    }
}

/// Whether what the host does only replaces a scalar that a launch has taken over when it was issued.
fn only_replaces(action: &Action, before: &Op) -> bool {
    let Action::Launch { scalars, outputs, .. } = &before.action else { return false };
    let takes = |scalar: &ScalarId| scalars.contains(&Operand::Scalar(*scalar));
    match action {
        Action::Fold { rows, into, .. } => takes(into) && !rows.iter().any(|rows| outputs.contains(&rows.slot)),
        Action::Compute { output, .. } => takes(output),
        Action::Launch { .. }
        | Action::Send { .. }
        | Action::Download { .. }
        | Action::Upload { .. }
        | Action::Barrier
        | Action::Copy { .. }
        | Action::Probe { .. }
        | Action::Record { .. } => false,
    }
}
