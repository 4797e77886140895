//! The events of a device: which have yet to happen, and when the work before those that have ran.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::call::Called;
use super::lane::Moment;
use crate::backend::EventId;
use crate::clock::{self, Span};

/// So many spans are kept for those who ask later; older ones are forgotten.
const SPANS: usize = 1 << 18;

/// The events of a device.
#[derive(Default)]
pub(super) struct Moments {
    last: u64,
    /// Those that may not have happened yet.
    pending: BTreeMap<u64, Arc<Moment>>,
    /// The times of the last work before those that have happened, if the device traces.
    times: Option<BTreeMap<u64, [u64; 2]>>,
}

impl Moments {
    /// No event yet; with `traces` the times of those to come are kept.
    pub(super) fn new(traces: bool) -> Self {
        Self { times: traces.then(BTreeMap::new), ..Self::default() }
    }

    /// A new event; those that have happened are forgotten.
    pub(super) fn add(&mut self, moment: Moment) -> EventId {
        // In the order in which they were made: to look at all each time would take longer the more are under way.
        while let Some(oldest) = self.pending.first_entry()
            && oldest.get().has_happened()
        {
            let (number, moment) = oldest.remove_entry();
            self.keep_times(number, &moment);
        }
        self.last += 1;
        self.pending.insert(self.last, Arc::new(moment));
        EventId(self.last)
    }

    fn keep_times(&mut self, number: u64, moment: &Moment) {
        let Some(times) = &mut self.times else { return };
        if let Some(Ok(found)) = moment.work.as_ref().map(|work| work.times()) {
            times.insert(number, found);
        }
        while times.len() > SPANS {
            times.pop_first();
        }
    }

    /// Whether there is or was such an event.
    pub(super) fn knows(&self, event: EventId) -> bool {
        (1..=self.last).contains(&event.0)
    }

    /// The event, unless it has happened.
    pub(super) fn pending(&self, event: EventId) -> Option<Arc<Moment>> {
        self.pending.get(&event.0).cloned()
    }

    /// When the last work before an event ran, by the device's clock, if it has happened and the device traces.
    pub(super) fn times(&self, event: EventId) -> Option<Called<[u64; 2]>> {
        let times = self.times.as_ref()?;
        match self.pending.get(&event.0) {
            None => times.get(&event.0).copied().map(Ok),
            Some(moment) if moment.has_happened() => moment.work.as_ref().map(|work| work.times()),
            Some(_) => None,
        }
    }
}

/// What the device's clock showed at a time of [`clock::now`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    device: u64,
    host: Duration,
    /// How far the two may be apart.
    doubt: Duration,
}

/// From the clock of a device to [`clock::now`]. The clocks may run at different rates (some runtimes use one that the
/// system doesn't correct), so there is a reading from the start and a late one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alignment {
    first: Reading,
    last: Reading,
}

impl Reading {
    /// The best of some readings: `moment` gives what the device's clock shows at a time while it runs.
    pub(super) fn take(mut moment: impl FnMut() -> Called<u64>) -> Called<Self> {
        let mut best: Option<Self> = None;
        for _ in 0..8 {
            let before = clock::now();
            let device = moment()?;
            let doubt = (clock::now() - before) / 2;
            if best.is_none_or(|best| doubt < best.doubt) {
                best = Some(Self { device, host: before + doubt, doubt });
            }
        }
        Ok(best.expect("several readings"))
    }

    /// Host less device, in nanoseconds.
    fn offset(&self) -> f64 {
        self.host.as_nanos() as f64 - self.device as f64
    }
}

impl Alignment {
    /// Before there is a late reading the clocks are taken to run at one rate.
    pub(super) fn new(first: Reading) -> Self {
        Self { first, last: first }
    }

    /// Whether the late reading is so old that a new one is worth its time.
    pub(super) fn is_old(&self) -> bool {
        clock::now().saturating_sub(self.last.host) > Duration::from_secs(1)
    }

    /// Takes another late reading.
    pub(super) fn update(&mut self, last: Reading) {
        self.last = last;
    }

    /// The time of [`clock::now`] at which the device's clock showed this.
    fn host(&self, device: u64) -> Duration {
        let Self { first, last } = self;
        let run = last.device as f64 - first.device as f64;
        let share = if run > 0.0 { ((device as f64 - first.device as f64) / run).clamp(0.0, 1.0) } else { 0.0 };
        let offset = first.offset() + share * (last.offset() - first.offset());
        Duration::from_nanos((device as f64 + offset).max(0.0) as u64)
    }

    /// The same for a start and an end.
    pub(super) fn span(&self, [start, end]: [u64; 2]) -> Span {
        let start_at = self.host(start);
        Span { start: start_at, end: start_at + Duration::from_nanos(end.saturating_sub(start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_two_readings_follow_the_drift_between_the_clocks() {
        let reading = |device, host| Reading { device, host: Duration::from_nanos(host), doubt: Duration::ZERO };
        let mut alignment = Alignment::new(reading(1_000_000, 500));
        let host = |alignment: &Alignment, device| alignment.host(device).as_nanos();
        assert_eq!(host(&alignment, 1_000_000), 500);
        assert_eq!(host(&alignment, 1_002_000), 2500);
        // The device's clock loses 1000 of 10000.
        alignment.update(reading(1_009_000, 10_500));
        for (device, expected) in [(1_000_000, 500), (1_004_500, 5500), (1_009_000, 10_500), (1_010_000, 11_500)] {
            assert_eq!(host(&alignment, device), expected, "{device}");
        }
        let span = alignment.span([1_004_500, 1_004_700]);
        assert_eq!(span.end - span.start, Duration::from_nanos(200));
        assert_eq!(alignment.host(0), Duration::ZERO, "before the clock started");
    }

    #[test]
    fn the_reading_that_took_the_least_time_counts() {
        let mut count = 0;
        let reading = Reading::take(|| {
            count += 1;
            if count != 5 {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(count)
        });
        assert_eq!(reading.unwrap().device, 5);
        let failure = super::super::call::Failure { call: "clFinish", code: -5 };
        assert_eq!(Reading::take(|| Err(failure)), Err(failure));
    }
}
