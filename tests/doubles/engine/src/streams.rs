//! Streams: work of one device, one after the other.

use std::collections::BTreeSet;

use crate::capture::GraphNode;
use crate::fault::{Failure, Kind, Outcome};
use crate::schedule::{Moment, Task, Work};
use crate::settings::Order;
use crate::{Machine, State};

pub(crate) struct Stream {
    pub(crate) device: usize,
    /// Whether it and the default stream wait for each other.
    blocking: bool,
    is_default: bool,
    /// What was enqueued last.
    last: Option<u64>,
    /// The recording that it is part of.
    pub(crate) capture: Option<u64>,
}

/// The number of a device's default stream.
pub(crate) fn default_stream(device: usize) -> u64 {
    0x5EED_0DEF_0000_0000 | (device as u64) << 4
}

impl Stream {
    pub(crate) fn default_of(device: usize) -> Self {
        Self { device, blocking: true, is_default: true, last: None, capture: None }
    }
}

impl Machine {
    /// The stream of a device that is meant where a caller names none. It and the blocking ones wait for each other.
    pub fn default_stream(&self, device: usize) -> u64 {
        default_stream(device)
    }

    /// A new stream.
    pub fn stream(&self, device: usize, blocking: bool) -> Outcome<u64> {
        self.with(|state| {
            let handle = state.handle(1);
            state.streams.insert(handle, Stream { blocking, is_default: false, ..Stream::default_of(device) });
            Ok(handle)
        })
    }

    /// Gives a stream back; what it still has to do is done.
    pub fn destroy_stream(&self, stream: u64) -> Outcome<()> {
        self.with(|state| {
            let found = state.stream(stream)?;
            if found.is_default {
                return Err(Failure::misuse(Kind::InvalidHandle, "the default stream can't be destroyed"));
            }
            if let Some(capture) = found.capture {
                state.invalidate(capture);
                return Err(Failure::misuse(Kind::CaptureUnsupported, "a stream is destroyed while it is recorded"));
            }
            state.streams.remove(&stream);
            state.gone.insert(stream, "a stream that was destroyed");
            Ok(())
        })
    }

    /// The device of a stream.
    pub fn stream_device(&self, stream: u64) -> Outcome<usize> {
        self.with(|state| Ok(state.stream(stream)?.device))
    }

    /// Enqueues work on a stream of the device that does it.
    pub fn enqueue(&self, stream: u64, work: Work) -> Outcome<()> {
        self.with(|state| state.enqueue(stream, Task { work, is_exact: false }).map(drop))
    }

    /// Waits until a stream is empty.
    pub fn finish_stream(&self, stream: u64) -> Outcome<()> {
        self.with(|state| {
            let device = state.settled(stream, "waiting for a stream")?;
            let targets = state.behind(stream)?;
            state.force(&targets)?;
            state.working(device)
        })
    }

    /// Fails with [`Kind::NotReady`] unless a stream is empty. Who asks often enough sees it become so.
    pub fn query_stream(&self, stream: u64) -> Outcome<()> {
        self.with(|state| {
            let device = state.settled(stream, "asking whether a stream is empty")?;
            let targets = state.behind(stream)?;
            state.ask(&targets)?;
            state.working(device)
        })
    }

    /// Waits until a device has nothing left to do.
    pub fn finish_device(&self, device: usize) -> Outcome<()> {
        self.with(|state| {
            let recorded = state.streams.values().find(|stream| stream.device == device && stream.capture.is_some());
            if let Some(capture) = recorded.and_then(|stream| stream.capture) {
                state.invalidate(capture);
                return Err(Failure::misuse(
                    Kind::CaptureUnsupported,
                    "waiting for a device while one of its streams is recorded",
                ));
            }
            state.refuse_while_recording("waiting for a device")?;
            let targets = state.schedule.of_device(device);
            state.force(&targets)?;
            state.working(device)
        })
    }
}

impl State {
    pub(crate) fn stream(&self, stream: u64) -> Outcome<&Stream> {
        self.streams.get(&stream).ok_or_else(|| self.unknown(stream, "stream"))
    }

    /// The failure for a handle that isn't what it is used as.
    pub(crate) fn unknown(&self, handle: u64, what: &str) -> Failure {
        let known = [
            (self.streams.contains_key(&handle), "a stream"),
            (self.events.contains_key(&handle), "an event"),
            (self.graphs.contains_key(&handle), "a graph"),
        ];
        let is = self.gone.get(&handle).copied().or_else(|| known.iter().find(|(is, _)| *is).map(|(_, name)| *name));
        let message = format!("{handle:#x} is no {what}, but {}", is.unwrap_or("nothing that was given out"));
        Failure::misuse(Kind::InvalidHandle, message)
    }

    /// The device of a stream that isn't recorded, as its state is asked for.
    fn settled(&mut self, stream: u64, what: &str) -> Outcome<usize> {
        let found = self.stream(stream)?;
        let device = found.device;
        if let Some(capture) = found.capture {
            self.valid(capture)?;
            self.invalidate(capture);
            return Err(Failure::misuse(Kind::CaptureUnsupported, format!("{what} while it is recorded")));
        }
        self.refuse_while_recording(what)?;
        Ok(device)
    }

    /// What new work on a stream must wait for, as far as it hasn't run.
    fn behind(&mut self, stream: u64) -> Outcome<Vec<u64>> {
        let found = self.stream(stream)?;
        let (device, own) = (found.device, found.last);
        let others = |other: &&Stream| {
            other.device == device
                && (if found.is_default { other.blocking } else { found.blocking && other.is_default })
        };
        let mut captures = BTreeSet::new();
        let mut waits: Vec<u64> = own.into_iter().collect();
        for other in self.streams.values().filter(others) {
            captures.extend(other.capture);
            waits.extend(other.last);
        }
        if let Some(capture) = captures.first() {
            self.invalidate(*capture);
            return Err(Failure::misuse(
                Kind::CaptureImplicit,
                "the default stream would wait for a stream that is recorded",
            ));
        }
        waits.retain(|node| self.schedule.is_pending(*node));
        Ok(waits)
    }

    /// Enqueues work; says which it became, unless it was recorded.
    pub(crate) fn enqueue(&mut self, stream: u64, task: Task) -> Outcome<Option<u64>> {
        let work = &task.work;
        let found = self.stream(stream)?;
        if work.device != found.device {
            let message =
                format!("`{}` is for device {}, but its stream is device {}'s", work.name, work.device, found.device);
            return Err(Failure::misuse(Kind::InvalidHandle, message));
        }
        let capture = found.capture;
        self.working(work.device)?;
        for touch in &work.touches {
            self.memory.owner(touch.address, touch.bytes)?;
        }
        match capture {
            Some(capture) => {
                self.valid(capture)?.add(stream, task);
                Ok(None)
            }
            None => self.enqueue_now(stream, task, Vec::new(), None).map(Some),
        }
    }

    /// Enqueues work on a stream that isn't recorded, behind others too.
    pub(crate) fn enqueue_now(
        &mut self,
        stream: u64,
        task: Task,
        also: Vec<u64>,
        moment: Option<Moment>,
    ) -> Outcome<u64> {
        let waits = self.behind(stream)?.into_iter().chain(also).collect();
        let number = self.enqueue_behind(task, waits, moment)?;
        if let Some(found) = self.streams.get_mut(&stream) {
            found.last = Some(number);
        }
        Ok(number)
    }

    /// Enqueues the work of a graph, each behind what it was recorded behind; the stream goes on when all is done.
    pub(crate) fn enqueue_graph(&mut self, stream: u64, nodes: &[GraphNode], also: Option<u64>) -> Outcome<u64> {
        let before: Vec<u64> = self.behind(stream)?.into_iter().chain(also).collect();
        let mut numbers: Vec<u64> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let waits = match node.waits.is_empty() {
                true => before.clone(),
                false => node.waits.iter().map(|wait| numbers[*wait]).collect(),
            };
            numbers.push(self.enqueue_behind(node.task.clone(), waits, None)?);
        }
        let device = self.stream(stream)?.device;
        self.enqueue_now(stream, Work::nothing("the end of a graph", device), numbers, None)
    }

    /// Fails with [`Kind::NotReady`] unless these have run. In a lazy order the second one who asks makes them run.
    pub(crate) fn ask(&mut self, targets: &[u64]) -> Outcome<()> {
        let pending: Vec<u64> = targets.iter().copied().filter(|node| self.schedule.is_pending(*node)).collect();
        match self.schedule.order() {
            Order::Eager => {}
            Order::Lazy => {
                if pending.iter().all(|node| !self.schedule.asked.insert(*node)) {
                    self.force(&pending)?;
                }
            }
            Order::Random(_) => pending.iter().for_each(|node| self.advance(*node)),
        }
        match targets.iter().any(|node| self.schedule.is_pending(*node)) {
            true => Err(Failure::new(Kind::NotReady, "not done yet")),
            false => Ok(()),
        }
    }
}
