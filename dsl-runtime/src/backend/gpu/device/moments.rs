//! The events of a device: which have yet to happen, and when the work before those that have ran.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::card::{OpenCard, OwnEvent};
use super::lane::{ENOUGH, Lane, Moment, Work};
use crate::backend::EventId;
use crate::backend::gpu::driver::Called;
use crate::clock::{self, Span};

/// So many spans are kept for those who ask later; older ones are forgotten.
const SPANS: usize = 1 << 18;

/// The events of a device.
#[derive(Debug, Default)]
pub(super) struct Moments {
    last: u64,
    /// Those that may not have happened yet.
    pending: BTreeMap<u64, Arc<Moment>>,
    /// Those that are part of a recording, and never happen by themselves.
    recorded: BTreeMap<u64, Arc<Moment>>,
    /// When the last work before those that have happened ran, if the device traces.
    spans: BTreeMap<u64, Span>,
}

impl Moments {
    /// A new event; those that have happened are forgotten, after `span` has told when their work ran.
    pub(super) fn add(&mut self, moment: Moment, span: impl Fn(&Work) -> Called<Span>) -> EventId {
        // In the order in which they were made: to look at all each time would take longer the more are under way.
        let is_done = |oldest: &Moment, count| oldest.is_past() || (count > ENOUGH && oldest.has_happened());
        while let count = self.pending.len()
            && let Some(oldest) = self.pending.first_entry()
            && is_done(oldest.get(), count)
        {
            let (number, moment) = oldest.remove_entry();
            // A trace with a gap is no reason to stop.
            if let Some(Ok(span)) = moment.work.as_deref().map(&span) {
                self.spans.insert(number, span);
            }
            while self.spans.len() > SPANS {
                self.spans.pop_first();
            }
        }
        self.last += 1;
        match moment.recording() {
            Some(_) => {
                let is_forgotten = |moment: &Moment| moment.recording().is_none_or(|made| made.is_forgotten());
                self.recorded.retain(|_, moment| !is_forgotten(moment));
                self.recorded.insert(self.last, Arc::new(moment));
            }
            None => drop(self.pending.insert(self.last, Arc::new(moment))),
        }
        EventId(self.last)
    }

    /// Whether there is or was such an event.
    pub(super) fn knows(&self, event: EventId) -> bool {
        (1..=self.last).contains(&event.0)
    }

    /// The event, unless it has happened.
    pub(super) fn pending(&self, event: EventId) -> Option<Arc<Moment>> {
        self.pending.get(&event.0).or_else(|| self.recorded.get(&event.0)).cloned()
    }

    /// When the last work before an event ran, if it has happened and the device traces.
    pub(super) fn span(&self, event: EventId, span: impl Fn(&Work) -> Called<Span>) -> Option<Called<Span>> {
        match self.pending.get(&event.0) {
            None => self.spans.get(&event.0).copied().map(Ok),
            Some(moment) if moment.has_happened() => moment.work.as_deref().map(span),
            Some(_) => None,
        }
    }
}

/// An event of a card and the time of [`clock::now`] at which it happened. The times of other events are counted from it.
///
/// A driver gives them in milliseconds as `f32`, so that those far away are coarse: after a second there is a new one.
#[derive(Debug)]
pub(super) struct Beat {
    event: OwnEvent,
    host: Duration,
}

impl Beat {
    /// The best of some, on an idle lane.
    pub(super) fn take(card: &Arc<OpenCard>, lane: &Lane) -> Called<Self> {
        let mut best: Option<(Duration, Self)> = None;
        for _ in 0..8 {
            let event = card.event(true)?;
            let before = clock::now();
            event.record(lane.stream())?;
            event.finish()?;
            let doubt = (clock::now() - before) / 2;
            if best.as_ref().is_none_or(|(least, _)| doubt < *least) {
                best = Some((doubt, Self { event, host: before + doubt }));
            }
        }
        Ok(best.expect("several were taken").1)
    }

    /// Whether it is so long ago that a new one is worth its time.
    pub(super) fn is_old(&self) -> bool {
        clock::now().saturating_sub(self.host) > Duration::from_secs(1)
    }

    /// When an operation ran.
    pub(super) fn span(&self, work: &Work) -> Called<Span> {
        let [start, length] = work.since(&self.event)?;
        Ok(span(self.host, start, length))
    }
}

/// The time that is `start` milliseconds, which may be negative, after a time of the host, and lasts `length`.
fn span(host: Duration, start: f32, length: f32) -> Span {
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
    let start = seconds(host.as_secs_f64() + f64::from(start) / 1e3);
    Span { start, end: start + seconds(f64::from(length) / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_a_beat_in_both_directions() {
        let millis = Duration::from_millis;
        let check = |start, length, expected: [u64; 2]| {
            let found = span(millis(2000), start, length);
            for (found, expected) in [(found.start, expected[0]), (found.end, expected[1])] {
                let apart = found.abs_diff(millis(expected));
                assert!(apart < Duration::from_nanos(100), "{found:?} instead of {expected} ms");
            }
        };
        check(0.0, 0.0, [2000, 2000]);
        check(500.0, 20.0, [2500, 2520]);
        check(-500.0, 20.0, [1500, 1520]);
        // Before the program began, and what no driver should say.
        check(-3000.0, 5.0, [0, 5]);
        check(f32::NAN, -1.0, [0, 0]);
    }
}
