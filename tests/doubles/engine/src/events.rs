//! Events: moments in streams that others wait for.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fault::{Failure, Kind, Outcome};
use crate::schedule::{Moment, Work};
use crate::{Machine, State};

pub(crate) struct Event {
    pub(crate) device: usize,
    timed: bool,
    record: Option<Record>,
}

/// Where an event was recorded last.
#[derive(Clone)]
enum Record {
    /// Behind this work.
    Work(u64, Moment),
    /// In a recording, behind these of its nodes.
    Captured(u64, BTreeSet<usize>),
}

impl Machine {
    /// A new event.
    pub fn event(&self, device: usize, timed: bool) -> Outcome<u64> {
        self.with(|state| {
            let handle = state.handle(2);
            state.events.insert(handle, Event { device, timed, record: None });
            Ok(handle)
        })
    }

    /// Gives an event back; who waits for it goes on waiting.
    pub fn destroy_event(&self, event: u64) -> Outcome<()> {
        self.with(|state| {
            state.events.remove(&event).ok_or_else(|| state.unknown(event, "event"))?;
            state.gone.insert(event, "an event that was destroyed");
            Ok(())
        })
    }

    /// The device of an event.
    pub fn event_device(&self, event: u64) -> Outcome<usize> {
        self.with(|state| Ok(state.event(event)?.device))
    }

    /// Makes the event the moment after what is enqueued on a stream of its device.
    pub fn record(&self, event: u64, stream: u64) -> Outcome<()> {
        self.with(|state| {
            let (device, own) = (state.event(event)?.device, state.stream(stream)?);
            if own.device != device {
                let message = format!("an event of device {device} is recorded on a stream of device {}", own.device);
                return Err(Failure::misuse(Kind::InvalidHandle, message));
            }
            let record = match own.capture {
                Some(capture) => Record::Captured(capture, state.valid(capture)?.frontier(stream)),
                None => {
                    state.working(device)?;
                    let moment = Moment::default();
                    let work = Work::nothing("an event", device);
                    Record::Work(state.enqueue_now(stream, work, Vec::new(), Some(Arc::clone(&moment)))?, moment)
                }
            };
            state.events.get_mut(&event).expect("it was there a moment ago").record = Some(record);
            Ok(())
        })
    }

    /// What is enqueued on the stream from now on waits for the event, of whatever device. An event that was never recorded
    /// makes nobody wait.
    pub fn wait(&self, stream: u64, event: u64) -> Outcome<()> {
        if self.skips() {
            return Ok(());
        }
        self.with(|state| {
            let record = state.event(event)?.record.clone();
            let found = state.stream(stream)?;
            let (device, recording) = (found.device, found.capture);
            if let Some(capture) = recording {
                state.valid(capture)?;
            }
            match (recording, record) {
                (_, None) => Ok(()),
                (None, Some(Record::Work(node, _))) => {
                    state.working(device)?;
                    let work = Work::nothing("waiting for an event", device);
                    state.enqueue_now(stream, work, vec![node], None).map(drop)
                }
                (Some(capture), Some(Record::Work(..))) => {
                    state.invalidate(capture);
                    let message = "a recorded stream waits for an event outside of the recording";
                    Err(Failure::misuse(Kind::CaptureIsolation, message))
                }
                (_, Some(Record::Captured(of, _))) if !state.captures.contains_key(&of) => {
                    Err(Failure::misuse(Kind::CapturedEvent, "the event was part of a recording that has ended"))
                }
                (Some(capture), Some(Record::Captured(of, _))) if capture != of => {
                    state.invalidate(capture);
                    state.invalidate(of);
                    Err(Failure::misuse(
                        Kind::CaptureMerge,
                        "a recorded stream waits for an event of another recording",
                    ))
                }
                (_, Some(Record::Captured(of, after))) => state.join(of, stream, after),
            }
        })
    }

    /// Waits for an event.
    pub fn finish_event(&self, event: u64) -> Outcome<()> {
        if self.skips() {
            return Ok(());
        }
        self.with(|state| {
            if let Some(node) = state.happening(event, "waiting for an event")? {
                state.force(&[node])?;
            }
            state.working(state.event(event)?.device)
        })
    }

    /// Fails with [`Kind::NotReady`] unless an event has happened. Who asks often enough sees it happen.
    pub fn query_event(&self, event: u64) -> Outcome<()> {
        self.with(|state| {
            if let Some(node) = state.happening(event, "asking for an event")? {
                state.ask(&[node])?;
            }
            state.working(state.event(event)?.device)
        })
    }

    /// Milliseconds between two events of a device.
    pub fn elapsed(&self, from: u64, to: u64) -> Outcome<f32> {
        self.with(|state| {
            let (first, second) = (state.event(from)?.device, state.event(to)?.device);
            if first != second {
                return Err(Failure::misuse(Kind::InvalidHandle, "times are compared between events of two devices"));
            }
            let [from, to] = [from, to].map(|event| state.time(event));
            Ok((to? as f64 - from? as f64) as f32 / 1e6)
        })
    }
}

impl State {
    fn event(&self, event: u64) -> Outcome<&Event> {
        self.events.get(&event).ok_or_else(|| self.unknown(event, "event"))
    }

    /// The work that an event stands behind, `None` if it was never recorded.
    fn happening(&mut self, event: u64, what: &str) -> Outcome<Option<u64>> {
        match self.event(event)?.record.clone() {
            None => {
                self.refuse_while_recording(what)?;
                Ok(None)
            }
            Some(Record::Work(node, _)) => {
                self.refuse_while_recording(what)?;
                Ok(Some(node))
            }
            Some(Record::Captured(capture, _)) => {
                self.invalidate(capture);
                Err(Failure::misuse(Kind::CapturedEvent, format!("{what} that is part of a recording")))
            }
        }
    }

    fn time(&self, event: u64) -> Outcome<u64> {
        let found = self.event(event)?;
        let wrong = |message: &str| Err(Failure::misuse(Kind::InvalidHandle, message));
        match &found.record {
            _ if !found.timed => wrong("an event without times is asked for its time"),
            None => wrong("an event that was never recorded is asked for its time"),
            Some(Record::Captured(..)) => {
                Err(Failure::misuse(Kind::CapturedEvent, "an event that is part of a recording is asked for its time"))
            }
            Some(Record::Work(_, moment)) => {
                self.working(found.device)?;
                moment.get().copied().ok_or_else(|| Failure::new(Kind::NotReady, "not done yet"))
            }
        }
    }
}
