//! What is enqueued, and which of it runs when.
//!
//! Work waits for other work that was enqueued before it, never for what comes later: there is always something that can run.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::State;
use crate::fault::{Failure, Kind, Outcome};
use crate::memory::View;
use crate::settings::Order;

/// What work does when it runs; a failure loses the device.
pub type Action = Arc<dyn Fn(&View<'_>) -> Outcome<()> + Send + Sync>;

/// Memory that work touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The first address.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Whether it may be written.
    pub writes: bool,
}

/// Something to do on a device.
#[derive(Clone)]
pub struct Work {
    /// For messages.
    pub name: String,
    /// The device that does it.
    pub device: usize,
    /// What it touches.
    pub touches: Vec<Touch>,
    /// What it does.
    pub action: Action,
}

impl Work {
    /// Work that does nothing.
    pub(crate) fn nothing(name: &str, device: usize) -> Task {
        let work = Self { name: name.into(), device, touches: Vec::new(), action: Arc::new(|_| Ok(())) };
        Task { work, is_exact: false }
    }
}

/// Work, and what is known of it.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) work: Work,
    /// Whether it touches all that it says, and nothing else: a kernel may leave out some of what it could reach.
    pub(crate) is_exact: bool,
}

impl Task {
    /// Whether both touch the same bytes for certain, and one of them writes there.
    fn races_with(&self, other: &Self) -> bool {
        let races = |one: &Touch, two: &Touch| {
            let overlap = one.address < two.address + two.bytes && two.address < one.address + one.bytes;
            overlap && (one.writes || two.writes)
        };
        let pair = |one: &Touch| other.work.touches.iter().any(|two| races(one, two));
        self.is_exact && other.is_exact && self.work.touches.iter().any(pair)
    }
}

/// When something happened, in nanoseconds; empty as long as it hasn't.
pub(crate) type Moment = Arc<OnceLock<u64>>;

pub(crate) struct Node {
    task: Task,
    /// Those that hadn't run when this was enqueued.
    waits: Vec<u64>,
    waits_left: usize,
    dependents: Vec<u64>,
    moment: Option<Moment>,
}

/// All that is enqueued and hasn't run.
pub(crate) struct Schedule {
    order: Order,
    chance: Chance,
    last: u64,
    nodes: BTreeMap<u64, Node>,
    /// Those that wait for nothing any more.
    ready: BTreeSet<u64>,
    start: Instant,
    /// Those that somebody has asked for in vain.
    pub(crate) asked: BTreeSet<u64>,
    /// Failures of work that are yet to be reported.
    pub(crate) faults: Vec<Failure>,
}

impl Schedule {
    pub(crate) fn new(order: Order) -> Self {
        let seed = if let Order::Random(seed) = order { seed } else { 0 };
        Self {
            order,
            chance: Chance::new(seed),
            last: 0,
            nodes: BTreeMap::new(),
            ready: BTreeSet::new(),
            start: Instant::now(),
            asked: BTreeSet::new(),
            faults: Vec::new(),
        }
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Whether that hasn't run yet.
    pub(crate) fn is_pending(&self, node: u64) -> bool {
        self.nodes.contains_key(&node)
    }

    /// Adds work that waits for others.
    fn add(&mut self, task: Task, waits: impl IntoIterator<Item = u64>, moment: Option<Moment>) -> u64 {
        self.last += 1;
        let number = self.last;
        let waits: BTreeSet<u64> = waits.into_iter().filter(|wait| self.nodes.contains_key(wait)).collect();
        for wait in &waits {
            self.nodes.get_mut(wait).expect("only pending ones are left").dependents.push(number);
        }
        if waits.is_empty() {
            self.ready.insert(number);
        }
        let (waits_left, waits) = (waits.len(), waits.into_iter().collect());
        self.nodes.insert(number, Node { task, waits, waits_left, dependents: Vec::new(), moment });
        number
    }

    /// Takes out what has run or never will.
    fn remove(&mut self, number: u64) -> Option<Node> {
        let node = self.nodes.remove(&number)?;
        self.ready.remove(&number);
        self.asked.remove(&number);
        for dependent in &node.dependents {
            if let Some(found) = self.nodes.get_mut(dependent) {
                found.waits_left -= 1;
                if found.waits_left == 0 {
                    self.ready.insert(*dependent);
                }
            }
        }
        Some(node)
    }

    /// Takes out work that never runs.
    pub(crate) fn drop_work(&mut self, is_dropped: impl Fn(&Work) -> bool) {
        let dropped: Vec<u64> =
            self.nodes.iter().filter(|(_, node)| is_dropped(&node.task.work)).map(|(id, _)| *id).collect();
        for number in dropped {
            self.remove(number);
        }
    }

    /// The name of enqueued work that uses some of these bytes.
    pub(crate) fn user(&self, address: u64, bytes: u64) -> Option<String> {
        let overlaps = |touch: &Touch| touch.address < address + bytes && address < touch.address + touch.bytes;
        let uses = |node: &&Node| node.task.work.touches.iter().any(overlaps);
        self.nodes.values().find(uses).map(|node| node.task.work.name.clone())
    }

    /// Enqueued work that touches the same as a task which doesn't wait for it.
    fn rival(&self, task: &Task, waits: &[u64]) -> Option<&str> {
        if !self.nodes.values().any(|node| node.task.races_with(task)) {
            return None;
        }
        let before = self.needed(waits);
        let rival = self.nodes.iter().find(|(number, node)| !before.contains(number) && node.task.races_with(task));
        rival.map(|(_, node)| node.task.work.name.as_str())
    }

    /// All that is enqueued on a device.
    pub(crate) fn of_device(&self, device: usize) -> Vec<u64> {
        self.nodes.iter().filter(|(_, node)| node.task.work.device == device).map(|(number, _)| *number).collect()
    }

    /// These with all that they wait for, as far as they haven't run.
    fn needed(&self, targets: &[u64]) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        let mut open: Vec<u64> = targets.to_vec();
        while let Some(number) = open.pop() {
            if let Some(node) = self.nodes.get(&number)
                && found.insert(number)
            {
                open.extend(&node.waits);
            }
        }
        found
    }

    /// The next to run of those that are needed.
    fn next(&mut self, needed: &BTreeSet<u64>) -> Option<u64> {
        match self.order {
            Order::Eager => self.ready.iter().find(|number| needed.contains(number)).copied(),
            // What was enqueued last first: two that don't wait for each other run in the unexpected order.
            Order::Lazy => self.ready.iter().rev().find(|number| needed.contains(number)).copied(),
            Order::Random(_) => {
                // Now and then something that nobody has asked for comes between.
                let any = self.chance.below(4) == 0;
                let ready: Vec<u64> =
                    self.ready.iter().filter(|number| any || needed.contains(number)).copied().collect();
                self.chance.one(&ready)
            }
        }
    }
}

impl State {
    /// Enqueues work behind others; in eager order it runs at once.
    pub(crate) fn enqueue_behind(&mut self, task: Task, waits: Vec<u64>, moment: Option<Moment>) -> Outcome<u64> {
        if let Some(rival) = self.schedule.rival(&task, &waits) {
            let message = format!(
                "`{}` and enqueued work ({rival}) touch the same memory, and don't wait for each other",
                task.work.name
            );
            return Err(Failure::misuse(Kind::InvalidValue, message));
        }
        let number = self.schedule.add(task, waits, moment);
        if self.schedule.order == Order::Eager {
            self.force(&[number])?;
        }
        Ok(number)
    }

    /// Runs these and what they wait for, and nothing else that isn't ready by chance.
    pub(crate) fn force(&mut self, targets: &[u64]) -> Outcome<()> {
        let needed = self.schedule.needed(targets);
        while targets.iter().any(|target| self.schedule.is_pending(*target)) {
            let Some(next) = self.schedule.next(&needed) else {
                let message = "what is waited for can never happen";
                return Err(Failure::misuse(Kind::LaunchFailed, message));
            };
            self.run(next);
        }
        Ok(())
    }

    /// Runs one that is ready, whatever it is needed for, so that a caller who asks again and again gets on.
    pub(crate) fn advance(&mut self, target: u64) {
        let needed = self.schedule.needed(&[target]);
        if let Some(next) = self.schedule.next(&needed) {
            self.run(next);
        }
    }

    /// In a random order, runs some of what is ready.
    pub(crate) fn run_by_chance(&mut self) {
        if !matches!(self.schedule.order, Order::Random(_)) {
            return;
        }
        while self.schedule.chance.wants_more() && !self.schedule.ready.is_empty() {
            let ready: Vec<u64> = self.schedule.ready.iter().copied().collect();
            if let Some(next) = self.schedule.chance.one(&ready) {
                self.run(next);
            }
        }
    }

    fn run(&mut self, number: u64) {
        let Some(node) = self.schedule.remove(number) else { return };
        let device = node.task.work.device;
        if self.lost[device].is_none()
            && let Err(failure) = self.result(&node.task.work)
        {
            self.schedule.faults.push(failure.clone());
            self.lost[device] = Some(failure);
        }
        if let Some(moment) = node.moment {
            let now = u64::try_from(self.schedule.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            moment.get_or_init(|| now);
        }
    }

    fn result(&self, work: &Work) -> Outcome<()> {
        let failed = |kind: Kind, message: String| Failure::misuse(kind, format!("`{}` failed: {message}", work.name));
        for touch in &work.touches {
            if let Err(failure) = self.memory.owner(touch.address, touch.bytes) {
                return Err(failed(Kind::IllegalAddress, failure.message));
            }
        }
        let view = View { memory: &self.memory, device: work.device };
        match catch_unwind(AssertUnwindSafe(|| (work.action)(&view))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(failed(failure.kind, failure.message)),
            Err(_) => Err(failed(Kind::LaunchFailed, "a panic".into())),
        }
    }
}

/// Numbers by chance, the same for the same seed.
struct Chance {
    state: u64,
    /// How likely work runs early, of 16.
    eagerness: u64,
}

impl Chance {
    fn new(seed: u64) -> Self {
        let mut chance = Self { state: seed, eagerness: 0 };
        // Some seeds are nearly eager, others nearly lazy.
        chance.eagerness = chance.below(14) + 1;
        chance
    }

    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn wants_more(&mut self) -> bool {
        self.below(16) < self.eagerness
    }

    fn one(&mut self, of: &[u64]) -> Option<u64> {
        match of.len() {
            0 => None,
            count => Some(of[self.below(count as u64) as usize]),
        }
    }
}
