//! Recordings: work that isn't done, but kept with its order, to be enqueued again and again as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use crate::fault::{Failure, Kind, Outcome};
use crate::schedule::{Task, Work};
use crate::{Machine, State};

/// Who must not make calls that could wait while a recording goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMode {
    /// No thread.
    Global,
    /// The thread that records.
    ThreadLocal,
    /// Everybody may.
    Relaxed,
}

/// A recording that goes on.
pub(crate) struct Capture {
    origin: u64,
    mode: CaptureMode,
    thread: ThreadId,
    nodes: Vec<GraphNode>,
    /// For each stream that is part of it, what its next work comes behind.
    frontiers: BTreeMap<u64, BTreeSet<usize>>,
    is_valid: bool,
}

/// Work of a graph.
#[derive(Clone)]
pub(crate) struct GraphNode {
    pub(crate) task: Task,
    /// The nodes before it that it comes behind.
    pub(crate) waits: Vec<usize>,
}

/// What was recorded.
pub(crate) struct Graph {
    nodes: Arc<Vec<GraphNode>>,
    /// Whether it can be enqueued.
    is_ready: bool,
    /// The end of when it was enqueued last: it isn't done twice at the same time.
    last: Option<u64>,
}

impl Capture {
    pub(crate) fn add(&mut self, stream: u64, task: Task) {
        let frontier = self.frontiers.entry(stream).or_default();
        let waits = std::mem::replace(frontier, BTreeSet::from([self.nodes.len()])).into_iter().collect();
        self.nodes.push(GraphNode { task, waits });
    }

    pub(crate) fn frontier(&self, stream: u64) -> BTreeSet<usize> {
        self.frontiers.get(&stream).cloned().unwrap_or_default()
    }

    /// Some work that the stream on which the recording began doesn't come behind.
    fn unjoined(&self) -> Option<&Work> {
        let mut joined = BTreeSet::new();
        let mut open: Vec<usize> = self.frontier(self.origin).into_iter().collect();
        while let Some(node) = open.pop() {
            if joined.insert(node) {
                open.extend(&self.nodes[node].waits);
            }
        }
        (0..self.nodes.len()).find(|node| !joined.contains(node)).map(|node| &self.nodes[node].task.work)
    }
}

impl Machine {
    /// Begins to record a stream.
    pub fn begin_capture(&self, stream: u64, mode: CaptureMode) -> Outcome<()> {
        self.with(|state| {
            if self.default_stream(state.stream(stream)?.device) == stream {
                return Err(Failure::misuse(Kind::CaptureUnsupported, "the default stream can't be recorded"));
            }
            let found = state.stream(stream)?;
            state.working(found.device)?;
            if found.capture.is_some() {
                return Err(Failure::misuse(Kind::IllegalState, "the stream is recorded already"));
            }
            let handle = state.handle(3);
            let capture = Capture {
                origin: stream,
                mode,
                thread: thread::current().id(),
                nodes: Vec::new(),
                frontiers: BTreeMap::from([(stream, BTreeSet::new())]),
                is_valid: true,
            };
            state.captures.insert(handle, capture);
            state.streams.get_mut(&stream).expect("it was there a moment ago").capture = Some(handle);
            Ok(())
        })
    }

    /// Ends the recording that began on a stream.
    pub fn end_capture(&self, stream: u64) -> Outcome<u64> {
        self.with(|state| {
            let Some(handle) = state.stream(stream)?.capture else {
                return Err(Failure::misuse(Kind::IllegalState, "the stream isn't recorded"));
            };
            let capture = &state.captures[&handle];
            if capture.origin != stream {
                state.invalidate(handle);
                return Err(Failure::misuse(Kind::CaptureUnmatched, "the recording began on another stream"));
            }
            if capture.mode != CaptureMode::Relaxed && capture.thread != thread::current().id() {
                return Err(Failure::misuse(Kind::CaptureWrongThread, "the recording was begun by another thread"));
            }
            let capture = state.close(handle);
            if !capture.is_valid {
                return Err(Failure::new(Kind::CaptureInvalidated, "a mistake made the recording worthless"));
            }
            if let Some(work) = capture.unjoined() {
                let message = format!("the recording ends while its first stream doesn't wait for `{}`", work.name);
                return Err(Failure::misuse(Kind::CaptureUnjoined, message));
            }
            let graph = state.handle(4);
            state.graphs.insert(graph, Graph { nodes: Arc::new(capture.nodes), is_ready: false, last: None });
            Ok(graph)
        })
    }

    /// Ends the recording that began on a stream and keeps nothing of it: a driver whose call fails has ended it all the same.
    pub fn abandon_capture(&self, stream: u64) {
        let mut state = self.lock();
        let found = state.streams.get(&stream).and_then(|found| found.capture);
        if let Some(handle) = found.filter(|handle| state.captures[handle].origin == stream) {
            state.close(handle);
        }
    }

    /// Whether a stream is recorded, and whether the recording is still worth something.
    pub fn is_captured(&self, stream: u64) -> Outcome<Option<bool>> {
        self.with(|state| Ok(state.stream(stream)?.capture.map(|capture| state.captures[&capture].is_valid)))
    }

    /// Makes what was recorded ready to be enqueued.
    pub fn instantiate(&self, graph: u64) -> Outcome<u64> {
        self.with(|state| {
            let nodes = Arc::clone(&state.graph(graph, false)?.nodes);
            let handle = state.handle(5);
            state.graphs.insert(handle, Graph { nodes, is_ready: true, last: None });
            Ok(handle)
        })
    }

    /// How many pieces of work a graph has.
    pub fn graph_nodes(&self, graph: u64) -> Outcome<usize> {
        self.with(|state| Ok(state.graph(graph, false)?.nodes.len()))
    }

    /// Enqueues what was recorded.
    pub fn launch_graph(&self, ready: u64, stream: u64) -> Outcome<()> {
        self.with(|state| {
            let graph = state.graph(ready, true)?;
            let (nodes, before) = (Arc::clone(&graph.nodes), graph.last);
            let found = state.stream(stream)?;
            let device = found.device;
            if let Some(capture) = found.capture {
                state.invalidate(capture);
                return Err(Failure::misuse(
                    Kind::CaptureUnsupported,
                    "a graph is enqueued on a stream that is recorded",
                ));
            }
            state.working(device)?;
            for work in nodes.iter().map(|node| &node.task.work) {
                state.working(work.device)?;
                for touch in &work.touches {
                    state.memory.owner(touch.address, touch.bytes)?;
                }
            }
            let end = state.enqueue_graph(stream, &nodes, before)?;
            state.graphs.get_mut(&ready).expect("it was there a moment ago").last = Some(end);
            Ok(())
        })
    }

    /// Gives a recording back, ready to be enqueued or not.
    pub fn destroy_graph(&self, graph: u64, is_ready: bool) -> Outcome<()> {
        self.with(|state| {
            state.graph(graph, is_ready)?;
            state.graphs.remove(&graph);
            state.gone.insert(graph, "a graph that was destroyed");
            Ok(())
        })
    }
}

impl State {
    /// Ends a recording: its streams work as before.
    fn close(&mut self, handle: u64) -> Capture {
        for stream in self.streams.values_mut().filter(|stream| stream.capture == Some(handle)) {
            stream.capture = None;
        }
        self.captures.remove(&handle).expect("a recorded stream has its recording")
    }

    fn graph(&self, graph: u64, is_ready: bool) -> Outcome<&Graph> {
        let what = if is_ready { "graph that was made ready" } else { "graph" };
        self.graphs.get(&graph).filter(|found| found.is_ready == is_ready).ok_or_else(|| self.unknown(graph, what))
    }

    /// A recording that no mistake has made worthless.
    pub(crate) fn valid(&mut self, capture: u64) -> Outcome<&mut Capture> {
        let found = self.captures.get_mut(&capture).filter(|capture| capture.is_valid);
        found.ok_or_else(|| Failure::new(Kind::CaptureInvalidated, "an earlier mistake made the recording worthless"))
    }

    pub(crate) fn invalidate(&mut self, capture: u64) {
        if let Some(found) = self.captures.get_mut(&capture) {
            found.is_valid = false;
        }
    }

    /// Makes a stream part of a recording, or part of it behind more.
    pub(crate) fn join(&mut self, capture: u64, stream: u64, after: BTreeSet<usize>) -> Outcome<()> {
        if crate::streams::default_stream(self.stream(stream)?.device) == stream {
            self.invalidate(capture);
            return Err(Failure::misuse(Kind::CaptureImplicit, "the default stream waits for an event of a recording"));
        }
        self.valid(capture)?.frontiers.entry(stream).or_default().extend(after);
        self.streams.get_mut(&stream).expect("it was there a moment ago").capture = Some(capture);
        Ok(())
    }

    /// Fails if a recording goes on that a call like this could make wait.
    pub(crate) fn refuse_while_recording(&mut self, what: &str) -> Outcome<()> {
        let thread = thread::current().id();
        let mut refused = false;
        for capture in self.captures.values_mut() {
            let holds = match capture.mode {
                CaptureMode::Global => true,
                CaptureMode::ThreadLocal => capture.thread == thread,
                CaptureMode::Relaxed => false,
            };
            if holds {
                capture.is_valid = false;
                refused = true;
            }
        }
        match refused {
            true => Err(Failure::misuse(Kind::CaptureUnsupported, format!("{what} while a stream is recorded"))),
            false => Ok(()),
        }
    }
}
