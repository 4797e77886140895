//! What the queues of several devices hold and what may run next: plain data that no thread and no clock touches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar};

use crate::backend::{EventId, QueueId};
use crate::clock::Span;
use crate::error::{Error, Result};

/// The times of so many operations are kept for each queue, the latest ones.
const KEPT_SPANS: usize = 1 << 18;

/// The low bits of an event are a number in its queue, the high ones the queue.
const NUMBER_BITS: u32 = 48;

/// A moment in a queue: when its entry of this number is finished. Entries are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) device: usize,
    pub(super) queue: usize,
    pub(super) number: u64,
}

impl Moment {
    /// The event as the device that has the queue names it.
    pub(super) fn event(self) -> EventId {
        EventId((self.queue as u64) << NUMBER_BITS | self.number)
    }
}

/// What stands in a queue.
#[derive(Debug)]
enum Entry<W> {
    /// What follows starts after a moment.
    Wait(Moment),
    Run(W),
}

/// Where threads meet that wait for a queue.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// The entries that are finished; changed only while the queues are locked.
    pub(super) finished: AtomicU64,
    pub(super) bell: Condvar,
}

/// Entries that were not done, because the first of them failed.
#[derive(Debug)]
struct Failure {
    first: u64,
    last: u64,
    reason: String,
}

#[derive(Debug)]
struct Queue<W> {
    id: QueueId,
    entries: VecDeque<Entry<W>>,
    /// Whether the entry before the first of `entries` is running.
    running: bool,
    issued: u64,
    finished: u64,
    /// What failed, until it is reported. Until then whatever follows is skipped.
    error: Option<Error>,
    failures: Vec<Failure>,
    spans: VecDeque<(u64, Span)>,
    /// The first moment that somebody sleeps for.
    wanted: Option<u64>,
    meeting: Arc<Meeting>,
}

#[derive(Debug)]
struct Device<W> {
    /// Its name in messages.
    name: String,
    queues: Vec<Queue<W>>,
    /// Whether an operation of one of its queues is running: it runs one at a time.
    busy: bool,
    /// The queue that is asked first for the next operation.
    next: usize,
}

/// The queues of devices that were opened together.
#[derive(Debug)]
pub(super) struct Queues<W> {
    devices: Vec<Device<W>>,
    /// Whom to wake once the lock on the queues is given back.
    awaited: Vec<Arc<Meeting>>,
}

impl<W> Queues<W> {
    pub(super) fn new(names: Vec<String>) -> Self {
        let device = |name| Device { name, queues: Vec::new(), busy: false, next: 0 };
        Self { devices: names.into_iter().map(device).collect(), awaited: Vec::new() }
    }

    /// The number of the queue in the tables of its device.
    pub(super) fn queue(&mut self, device: usize, id: QueueId) -> usize {
        let queues = &mut self.devices[device].queues;
        queues.iter().position(|queue| queue.id == id).unwrap_or_else(|| {
            queues.push(Queue {
                id,
                entries: VecDeque::new(),
                running: false,
                issued: 0,
                finished: 0,
                error: None,
                failures: Vec::new(),
                spans: VecDeque::new(),
                wanted: None,
                meeting: Arc::default(),
            });
            queues.len() - 1
        })
    }

    /// The moment after all that is in the queue.
    pub(super) fn end(&self, device: usize, queue: usize) -> Moment {
        Moment { device, queue, number: self.devices[device].queues[queue].issued }
    }

    /// The ends of all queues of a device.
    pub(super) fn ends(&self, device: usize) -> Vec<Moment> {
        (0..self.devices[device].queues.len()).map(|queue| self.end(device, queue)).collect()
    }

    /// The moment of an event that the device gave.
    pub(super) fn moment(&self, device: usize, event: EventId) -> Option<Moment> {
        let (queue, number) = ((event.0 >> NUMBER_BITS) as usize, event.0 & ((1 << NUMBER_BITS) - 1));
        let known = self.devices[device].queues.get(queue)?.issued;
        (number <= known).then_some(Moment { device, queue, number })
    }

    pub(super) fn is_reached(&self, moment: Moment) -> bool {
        self.devices[moment.device].queues[moment.queue].finished >= moment.number
    }

    /// Why what the moment stands for was not done, if it failed.
    pub(super) fn failure(&self, moment: Moment) -> Option<&str> {
        let failures = &self.devices[moment.device].queues[moment.queue].failures;
        let failure = failures.iter().find(|failure| (failure.first..=failure.last).contains(&moment.number));
        failure.map(|failure| failure.reason.as_str())
    }

    /// Makes what follows in the queue wait.
    pub(super) fn wait(&mut self, device: usize, queue: usize, moment: Moment) {
        self.push(device, queue, Entry::Wait(moment));
    }

    pub(super) fn enqueue(&mut self, device: usize, queue: usize, work: W) {
        self.push(device, queue, Entry::Run(work));
    }

    fn push(&mut self, device: usize, queue: usize, entry: Entry<W>) {
        let place = &mut self.devices[device].queues[queue];
        place.issued += 1;
        place.entries.push_back(entry);
        self.settle_queue(device, queue);
    }

    /// Enters an operation that the calling thread runs now. The queue must be empty.
    pub(super) fn start(&mut self, device: usize, queue: usize) {
        let place = &mut self.devices[device].queues[queue];
        debug_assert!(place.entries.is_empty() && !place.running);
        place.issued += 1;
        place.running = true;
    }

    /// The first operation of the queue, if it may run now.
    fn is_ready(&self, device: usize, queue: usize) -> bool {
        let place = &self.devices[device].queues[queue];
        !place.running && matches!(place.entries.front(), Some(Entry::Run(_)))
    }

    /// The queues of a device with an operation that may run now; the queue whose turn it is comes first.
    pub(super) fn ready(&self, device: usize) -> impl Iterator<Item = usize> {
        let place = &self.devices[device];
        let count = if place.busy { 0 } else { place.queues.len() };
        (0..count).map(move |queue| (queue + place.next) % count).filter(move |&queue| self.is_ready(device, queue))
    }

    /// The number of devices.
    pub(super) fn devices(&self) -> usize {
        self.devices.len()
    }

    /// The number that the first entry of the queue has.
    pub(super) fn first(&self, device: usize, queue: usize) -> u64 {
        self.devices[device].queues[queue].finished + 1
    }

    /// Takes an operation to run it; the queue must be ready.
    pub(super) fn take(&mut self, device: usize, queue: usize) -> W {
        let device = &mut self.devices[device];
        let place = &mut device.queues[queue];
        let Some(Entry::Run(work)) = place.entries.pop_front() else { unreachable!("the queue is ready") };
        (device.busy, device.next, place.running) = (true, queue + 1, true);
        work
    }

    /// Enters the end of the operation that was running.
    pub(super) fn complete(&mut self, device: usize, queue: usize, result: Result<()>, span: Option<Span>) {
        self.devices[device].busy = false;
        let place = &mut self.devices[device].queues[queue];
        place.running = false;
        let number = place.finished + 1;
        if let Some(span) = span {
            if place.spans.len() == KEPT_SPANS {
                place.spans.pop_front();
            }
            place.spans.push_back((number, span));
        }
        self.advance(device, queue, result.err());
        self.settle();
    }

    /// The first entry of the queue is finished, or has failed.
    fn advance(&mut self, device: usize, queue: usize, error: Option<Error>) {
        let place = &mut self.devices[device].queues[queue];
        place.finished += 1;
        place.meeting.finished.store(place.finished, Ordering::Release);
        if let Some(error) = error {
            let (number, reason) = (place.finished, error.to_string());
            place.failures.push(Failure { first: number, last: number, reason });
            place.error = Some(error);
        }
        if place.wanted.is_some_and(|wanted| place.finished >= wanted) {
            place.wanted = None;
            self.awaited.push(Arc::clone(&place.meeting));
        }
    }

    /// Passes waits for what has happened, and skips what follows a failure, until nothing changes any more.
    fn settle(&mut self) {
        loop {
            let mut changed = false;
            for device in 0..self.devices.len() {
                for queue in 0..self.devices[device].queues.len() {
                    changed |= self.settle_queue(device, queue);
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn settle_queue(&mut self, device: usize, queue: usize) -> bool {
        let mut changed = false;
        loop {
            let place = &mut self.devices[device].queues[queue];
            if place.running {
                return changed;
            }
            let failing = place.error.is_some();
            let error = match place.entries.front() {
                None => return changed,
                Some(_) if failing => {
                    let number = place.finished + 1;
                    place.failures.iter_mut().last().into_iter().for_each(|failure| failure.last = number);
                    None
                }
                Some(Entry::Run(_)) => return changed,
                Some(&Entry::Wait(moment)) => {
                    if !self.is_reached(moment) {
                        return changed;
                    }
                    let reason = self.failure(moment).map(|reason| format!("what it waits for failed: {reason}"));
                    reason.map(|message| Error::Driver {
                        backend: "host",
                        device: self.devices[device].name.clone(),
                        call: "wait".into(),
                        message,
                    })
                }
            };
            self.devices[device].queues[queue].entries.pop_front();
            self.advance(device, queue, error);
            changed = true;
        }
    }

    /// What failed in the queue up to a moment that is reached, once; the queue then goes on.
    pub(super) fn report(&mut self, moment: Moment) -> Result<()> {
        let place = &mut self.devices[moment.device].queues[moment.queue];
        if place.failures.last().is_none_or(|failure| failure.first > moment.number) {
            return Ok(());
        }
        let Some(error) = place.error.take() else { return Ok(()) };
        // Everything behind the failure was skipped, so the queue is empty. Moments from now on are those of an entry
        // that did not fail.
        place.issued += 1;
        self.advance(moment.device, moment.queue, None);
        Err(error)
    }

    /// When the last operation up to the moment ran.
    pub(super) fn span(&self, moment: Moment) -> Option<Span> {
        if !self.is_reached(moment) || self.failure(moment).is_some() {
            return None;
        }
        let spans = &self.devices[moment.device].queues[moment.queue].spans;
        let after = spans.partition_point(|(number, _)| *number <= moment.number);
        after.checked_sub(1).map(|last| spans[last].1)
    }

    /// Where to wait for a moment; with `asleep` the caller is told when it is reached.
    pub(super) fn meeting(&mut self, moment: Moment, asleep: bool) -> Arc<Meeting> {
        let place = &mut self.devices[moment.device].queues[moment.queue];
        if asleep {
            place.wanted = Some(place.wanted.map_or(moment.number, |wanted| wanted.min(moment.number)));
        }
        Arc::clone(&place.meeting)
    }

    /// Those who wait for what has happened since the last call.
    pub(super) fn awaited(&mut self) -> Vec<Arc<Meeting>> {
        std::mem::take(&mut self.awaited)
    }

    /// All that must be finished for the moment to be reached: how far in which queue.
    pub(super) fn needs(&self, moment: Moment) -> BTreeMap<(usize, usize), u64> {
        let mut needs = BTreeMap::new();
        let mut open = vec![moment];
        while let Some(moment) = open.pop() {
            let known = needs.entry((moment.device, moment.queue)).or_insert(0);
            if self.is_reached(moment) || *known >= moment.number {
                continue;
            }
            *known = moment.number;
            let place = &self.devices[moment.device].queues[moment.queue];
            let ahead = moment.number - place.finished - u64::from(place.running);
            let waits = place.entries.iter().take(ahead as usize).filter_map(|entry| match entry {
                Entry::Wait(other) => Some(*other),
                Entry::Run(_) => None,
            });
            open.extend(waits);
        }
        needs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two devices; the queues of each are numbered as they are used.
    fn queues() -> Queues<&'static str> {
        let mut queues = Queues::new(vec!["first".into(), "second".into()]);
        for device in [0, 1] {
            assert_eq!([7, 0].map(|id| queues.queue(device, QueueId(id))), [0, 1]);
        }
        queues
    }

    /// Runs what may run on the device until nothing may, and tells what.
    fn run(queues: &mut Queues<&'static str>, device: usize) -> Vec<&'static str> {
        let mut done = Vec::new();
        while let Some(queue) = { queues.ready(device).next() } {
            done.push(queues.take(device, queue));
            assert_eq!(queues.ready(device).count(), 0, "a device does one thing at a time");
            queues.complete(device, queue, Ok(()), None);
        }
        done
    }

    #[test]
    fn queues_of_a_device_take_turns_and_each_keeps_its_order() {
        let mut queues = queues();
        ["a", "b", "c"].into_iter().for_each(|work| queues.enqueue(0, 0, work));
        ["x", "y"].into_iter().for_each(|work| queues.enqueue(0, 1, work));
        queues.enqueue(1, 0, "other");
        assert_eq!(run(&mut queues, 0), ["a", "x", "b", "y", "c"]);
        assert!(queues.ends(0).into_iter().all(|end| queues.is_reached(end)));
        assert!(!queues.is_reached(queues.end(1, 0)));
    }

    #[test]
    fn waits_hold_a_queue_and_pass_on_through_queues_without_operations() {
        let mut queues = queues();
        queues.enqueue(0, 0, "a");
        queues.wait(1, 1, queues.end(0, 0));
        queues.wait(1, 0, queues.end(1, 1));
        queues.enqueue(1, 0, "b");
        let end = queues.end(1, 0);
        assert_eq!(queues.needs(end), BTreeMap::from([((0, 0), 1), ((1, 0), 2), ((1, 1), 1)]));
        assert_eq!(run(&mut queues, 1), [""; 0]);
        assert_eq!(run(&mut queues, 0), ["a"]);
        assert_eq!(run(&mut queues, 1), ["b"]);
        assert!(queues.is_reached(end));
    }

    #[test]
    fn events_name_moments_that_have_been_issued() {
        let mut queues = queues();
        queues.enqueue(1, 1, "a");
        let end = queues.end(1, 1);
        assert_eq!(queues.moment(1, end.event()), Some(end));
        assert_eq!(queues.moment(0, end.event()), None);
        assert_eq!(queues.moment(1, Moment { number: 2, ..end }.event()), None);
        assert_eq!(queues.moment(1, Moment { queue: 2, number: 0, ..end }.event()), None);
    }

    #[test]
    fn sleepers_are_woken_when_the_first_moment_that_they_want_is_reached() {
        let mut queues = queues();
        ["a", "b", "c"].into_iter().for_each(|work| queues.enqueue(0, 0, work));
        for number in [3, 2] {
            queues.meeting(Moment { device: 0, queue: 0, number }, true);
        }
        for woken in [0, 1, 0] {
            queues.take(0, 0);
            queues.complete(0, 0, Ok(()), None);
            assert_eq!(queues.awaited().len(), woken);
        }
    }
}
