//! A driver without cards, for tests: it runs nothing, knows what it has given and who still works with it, and notes each
//! misuse. Its calls can be made to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use super::locked;
use crate::backend::gpu::driver::{
    Address, Architecture, Called, Card, Driver, End, Event, Failure, Function, Graph, Image, Kind, Module, Side,
    Stream, Uses,
};

/// The driver.
#[derive(Debug, Default)]
pub(super) struct Fake {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Work is done when it is enqueued, rather than when somebody waits for it.
    is_eager: bool,
    /// Recordings can't be made.
    lacks_capture: bool,
    calls: Vec<&'static str>,
    /// The call to fail: its number from now on among those of the name, and the kind of failure.
    failing: Option<(&'static str, u64, Kind)>,
    misuse: Vec<String>,
    last: usize,
    open: BTreeMap<u32, usize>,
    /// What was given and not given back, with its card.
    alive: BTreeMap<Handle, u32>,
    pinned: BTreeMap<usize, Vec<u8>>,
    streams: BTreeMap<usize, Queue>,
    events: BTreeMap<usize, Mark>,
    functions: BTreeMap<usize, (usize, String)>,
    graphs: BTreeMap<usize, BTreeSet<Handle>>,
    captures: BTreeMap<usize, Capture>,
    launches: Vec<(String, [u32; 3], [u32; 3])>,
    copies: Vec<(End, End, [usize; 3])>,
    /// What each launch after the other takes, in milliseconds; the first one again after the last.
    times: Vec<f32>,
    clock: f32,
}

/// Something that the driver gives and takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Handle {
    Memory(u64),
    Host(usize),
    Stream(usize),
    Event(usize),
    Module(usize),
    Graph(usize),
}

#[derive(Debug, Default)]
struct Queue {
    ops: Vec<Op>,
    done: usize,
    capture: Option<usize>,
}

#[derive(Debug)]
enum Op {
    Work(BTreeSet<Handle>, f32),
    After(usize, usize),
    Mark(usize),
}

#[derive(Debug, Default)]
struct Mark {
    timed: bool,
    /// The stream and the number of operations on it before.
    at: Option<(usize, usize)>,
    capture: Option<usize>,
    time: Option<f32>,
}

#[derive(Debug)]
struct Capture {
    origin: usize,
    thread: ThreadId,
    uses: BTreeSet<Handle>,
    is_valid: bool,
}

fn failure(call: &'static str, kind: Kind) -> Failure {
    Failure { call, code: 1, message: format!("FAKE_ERROR ({kind:?})"), kind }
}

impl State {
    fn misused(&mut self, call: &'static str, what: impl Into<String>) -> Failure {
        self.misuse.push(format!("{call}: {}", what.into()));
        failure(call, Kind::Other)
    }

    /// The call fails if it is the one.
    fn called(&mut self, call: &'static str) -> Called<()> {
        self.calls.push(call);
        match &mut self.failing {
            Some((name, left, kind)) if *name == call || *name == "*" => {
                *left -= 1;
                let kind = *kind;
                if *left == 0 {
                    self.failing = None;
                    return Err(failure(call, kind));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn card(&mut self, call: &'static str, card: u32) -> Called<()> {
        if self.open.contains_key(&card) { Ok(()) } else { Err(self.misused(call, format!("card {card} isn't open"))) }
    }

    fn known(&mut self, call: &'static str, card: u32, handle: Handle) -> Called<()> {
        self.card(call, card)?;
        match self.alive.get(&handle) {
            Some(&owner) if owner == card => Ok(()),
            found => {
                let what = format!("{handle:?} on card {card}, which is of {found:?}");
                Err(self.misused(call, what))
            }
        }
    }

    fn give(&mut self, card: u32, handle: impl FnOnce(usize) -> Handle) -> usize {
        self.last += 1;
        self.alive.insert(handle(self.last), card);
        self.last
    }

    /// A handle comes back, even if the call fails: a test that counts what is left counts what nobody gave back.
    fn take(&mut self, call: &'static str, card: u32, handle: Handle) -> Called<()> {
        let called = self.called(call);
        self.known(call, card, handle)?;
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            let queue = &self.streams[&stream];
            let uses =
                queue.ops[queue.done..].iter().any(|op| matches!(op, Op::Work(used, _) if used.contains(&handle)));
            if uses || (handle == Handle::Stream(stream) && queue.done < queue.ops.len()) {
                self.misused(call, format!("{handle:?} is in use on stream {stream}"));
            }
        }
        self.alive.remove(&handle);
        called
    }

    fn enqueue(&mut self, call: &'static str, card: u32, stream: Stream, op: Op) -> Called<()> {
        self.known(call, card, Handle::Stream(stream.0))?;
        let capture = self.streams[&stream.0].capture;
        match (capture, op) {
            (Some(capture), Op::Work(used, _)) => {
                let capture = self.captures.get_mut(&capture).expect("it is being made");
                if !capture.is_valid {
                    return Err(failure(call, Kind::Other));
                }
                capture.uses.extend(used);
            }
            (Some(_), Op::After(..) | Op::Mark(_)) => {}
            (None, op) => {
                let queue = self.streams.get_mut(&stream.0).expect("it is known");
                queue.ops.push(op);
                if self.is_eager {
                    self.run(stream.0, usize::MAX);
                }
            }
        }
        Ok(())
    }

    /// Does the first operations of a stream.
    fn run(&mut self, stream: usize, count: usize) {
        while let Some(queue) = self.streams.get_mut(&stream)
            && queue.done < queue.ops.len().min(count)
        {
            let place = queue.done;
            queue.done += 1;
            match queue.ops[place] {
                Op::Work(_, time) => self.clock += time,
                Op::After(other, count) => self.run(other, count),
                Op::Mark(event) => {
                    let time = self.clock;
                    if let Some(mark) = self.events.get_mut(&event).filter(|mark| mark.at == Some((stream, place + 1)))
                    {
                        mark.time = Some(time);
                    }
                }
            }
        }
    }

    /// Waiting on the host is no business of who records.
    fn waits(&mut self, call: &'static str) -> Called<()> {
        let here = thread::current().id();
        if self.captures.values().any(|capture| capture.thread == here) {
            return Err(self.misused(call, "this thread records"));
        }
        Ok(())
    }

    fn at(&mut self, call: &'static str, event: Event) -> Called<Option<(usize, usize)>> {
        let mark = &self.events[&event.0];
        if mark.capture.is_some() {
            return Err(self.misused(call, "the event is part of a recording"));
        }
        Ok(mark.at)
    }

    fn used(&mut self, call: &'static str, end: End, shape: [usize; 3]) -> Called<Handle> {
        let [bytes, rows, planes] = shape;
        let last = end.address + ((planes - 1) * end.plane_pitch + (rows - 1) * end.row_pitch + bytes) as u64;
        let card = match end.side {
            Side::Card(card) => card,
            // Pageable memory has no handle.
            Side::Host => {
                let pinned = self.pinned.iter().find(|(start, bytes)| {
                    (**start as u64..=(**start + bytes.len()) as u64).contains(&end.address) && !bytes.is_empty()
                });
                return Ok(Handle::Host(pinned.map_or(0, |(start, _)| *start)));
            }
        };
        let found = self.alive.iter().filter_map(|(handle, owner)| match handle {
            Handle::Memory(start) if *start <= end.address && *owner == card => Some((*start, *handle)),
            _ => None,
        });
        match found.max_by_key(|(start, _)| *start) {
            Some((start, handle)) if last <= start + SPACING => Ok(handle),
            _ => Err(self.misused(call, format!("{end:?} is nowhere"))),
        }
    }
}

/// From one allocation to the next, so that each has an end.
const SPACING: u64 = 1 << 32;

impl Fake {
    /// A driver for the rest of the process.
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::default())
    }

    /// Work is done when it is enqueued.
    pub(super) fn eager() -> &'static Self {
        let fake = Self::new();
        locked(&fake.state).is_eager = true;
        fake
    }

    /// Recordings can't be made from now on.
    pub(super) fn lack_capture(&self) {
        locked(&self.state).lacks_capture = true;
    }

    /// What the next launches take, again and again.
    pub(super) fn take_times(&self, times: &[f32]) {
        locked(&self.state).times = times.to_vec();
    }

    /// The `number`th call of that name from now on fails (`*` for any).
    pub(super) fn fail(&self, name: &'static str, number: u64, kind: Kind) {
        locked(&self.state).failing = Some((name, number, kind));
    }

    /// How often something was called.
    pub(super) fn count(&self, call: &str) -> usize {
        locked(&self.state).calls.iter().filter(|made| **made == call).count()
    }

    /// All calls so far.
    pub(super) fn calls(&self) -> u64 {
        locked(&self.state).calls.len() as u64
    }

    /// The kernels that were launched or recorded since the last time, with their grids and blocks.
    pub(super) fn launches(&self) -> Vec<(String, [u32; 3], [u32; 3])> {
        std::mem::take(&mut locked(&self.state).launches)
    }

    /// The copies since the last time.
    pub(super) fn copies(&self) -> Vec<(End, End, [usize; 3])> {
        std::mem::take(&mut locked(&self.state).copies)
    }

    /// Everything that wasn't given back.
    pub(super) fn alive(&self) -> Vec<String> {
        let state = locked(&self.state);
        let open = state.open.iter().map(|(card, count)| format!("card {card} is open {count} times"));
        open.chain(state.alive.keys().map(|handle| format!("{handle:?}"))).collect()
    }

    /// Everything that was done wrong.
    pub(super) fn misuse(&self) -> Vec<String> {
        locked(&self.state).misuse.clone()
    }
}

impl Driver for Fake {
    fn backend(&self) -> &'static str {
        "cuda"
    }

    fn version(&self) -> String {
        "fake 1.0".into()
    }

    fn ptx(&self) -> Option<(u32, u32)> {
        Some((8, 0))
    }

    fn cards(&self) -> Called<Vec<Called<Card>>> {
        locked(&self.state).called("cards")?;
        let card = |ordinal| Card {
            ordinal,
            name: format!("fake {ordinal}"),
            architecture: Architecture::Sm(9, 0),
            memory_bytes: SPACING,
            units: 4,
            warp: 32,
            block_threads: 1024,
            grid: [i32::MAX as u32, 65535, 65535],
            pci: None,
        };
        Ok(vec![Ok(card(0)), Ok(card(1)), Err(failure("cards", Kind::Other)), Ok(card(3))])
    }

    fn open(&self, card: u32) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("open")?;
        *state.open.entry(card).or_default() += 1;
        Ok(())
    }

    fn close(&self, card: u32) -> Called<()> {
        let mut state = locked(&self.state);
        let called = state.called("close");
        state.card("close", card)?;
        let count = state.open.get_mut(&card).expect("it is open");
        *count -= 1;
        if *count == 0 {
            state.open.remove(&card);
            let left: Vec<_> =
                state.alive.iter().filter(|(_, owner)| **owner == card).map(|(handle, _)| *handle).collect();
            for handle in left {
                state.misused("close", format!("{handle:?} is left"));
            }
        }
        called
    }

    fn memory(&self, card: u32) -> Called<[u64; 2]> {
        let mut state = locked(&self.state);
        state.called("memory")?;
        state.card("memory", card)?;
        Ok([SPACING, SPACING])
    }

    fn alloc(&self, card: u32, bytes: usize) -> Called<Address> {
        let mut state = locked(&self.state);
        state.called("alloc")?;
        state.card("alloc", card)?;
        if bytes as u64 > SPACING {
            return Err(failure("alloc", Kind::OutOfMemory));
        }
        state.last += 1;
        let address = state.last as u64 * SPACING;
        state.alive.insert(Handle::Memory(address), card);
        Ok(Address(address))
    }

    fn free(&self, card: u32, address: Address) -> Called<()> {
        locked(&self.state).take("free", card, Handle::Memory(address.0))
    }

    fn zero(&self, card: u32, stream: Stream, address: Address, _: usize) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("zero")?;
        let handle = Handle::Memory(address.0);
        state.known("zero", card, handle)?;
        state.enqueue("zero", card, stream, Op::Work([handle].into(), 0.0))
    }

    fn alloc_host(&self, card: u32, bytes: usize) -> Called<*mut u8> {
        let mut state = locked(&self.state);
        state.called("alloc_host")?;
        state.card("alloc_host", card)?;
        let mut memory = vec![0xaa_u8; bytes];
        let start = memory.as_mut_ptr();
        state.pinned.insert(start as usize, memory);
        state.alive.insert(Handle::Host(start as usize), card);
        Ok(start)
    }

    fn free_host(&self, card: u32, start: *mut u8) -> Called<()> {
        let mut state = locked(&self.state);
        let taken = state.take("free_host", card, Handle::Host(start as usize));
        state.pinned.remove(&(start as usize));
        taken
    }

    fn stream(&self, card: u32) -> Called<Stream> {
        let mut state = locked(&self.state);
        state.called("stream")?;
        state.card("stream", card)?;
        let number = state.give(card, Handle::Stream);
        state.streams.insert(number, Queue::default());
        Ok(Stream(number))
    }

    fn destroy_stream(&self, card: u32, stream: Stream) -> Called<()> {
        let mut state = locked(&self.state);
        let taken = state.take("destroy_stream", card, Handle::Stream(stream.0));
        if let Some(Queue { capture: Some(_), .. }) = state.streams.remove(&stream.0) {
            state.misused("destroy_stream", "it is being recorded");
        }
        taken
    }

    fn finish_stream(&self, card: u32, stream: Stream) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("finish_stream")?;
        state.known("finish_stream", card, Handle::Stream(stream.0))?;
        state.waits("finish_stream")?;
        if state.streams[&stream.0].capture.is_some() {
            return Err(state.misused("finish_stream", "it is being recorded"));
        }
        state.run(stream.0, usize::MAX);
        Ok(())
    }

    fn event(&self, card: u32, timed: bool) -> Called<Event> {
        let mut state = locked(&self.state);
        state.called("event")?;
        state.card("event", card)?;
        let number = state.give(card, Handle::Event);
        state.events.insert(number, Mark { timed, ..Mark::default() });
        Ok(Event(number))
    }

    fn destroy_event(&self, card: u32, event: Event) -> Called<()> {
        let mut state = locked(&self.state);
        let taken = state.take("destroy_event", card, Handle::Event(event.0));
        state.events.remove(&event.0);
        taken
    }

    fn record(&self, card: u32, event: Event, stream: Stream) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("record")?;
        state.known("record", card, Handle::Event(event.0))?;
        state.known("record", card, Handle::Stream(stream.0))?;
        let queue = &state.streams[&stream.0];
        let (capture, at) = (queue.capture, (stream.0, queue.ops.len() + 1));
        if capture.is_some_and(|capture| !state.captures[&capture].is_valid) {
            return Err(failure("record", Kind::Other));
        }
        let mark = state.events.get_mut(&event.0).expect("it is known");
        *mark = Mark { timed: mark.timed, at: Some(at), capture, time: None };
        state.enqueue("record", card, stream, Op::Mark(event.0))
    }

    fn finish_event(&self, card: u32, event: Event) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("finish_event")?;
        state.known("finish_event", card, Handle::Event(event.0))?;
        state.waits("finish_event")?;
        if let Some((stream, number)) = state.at("finish_event", event)? {
            state.run(stream, number);
        }
        Ok(())
    }

    fn has_happened(&self, card: u32, event: Event) -> Called<bool> {
        let mut state = locked(&self.state);
        state.called("has_happened")?;
        state.known("has_happened", card, Handle::Event(event.0))?;
        state.waits("has_happened")?;
        let at = state.at("has_happened", event)?;
        Ok(at.is_none_or(|(stream, number)| state.streams.get(&stream).is_none_or(|queue| queue.done >= number)))
    }

    fn elapsed(&self, card: u32, from: Event, to: Event) -> Called<f32> {
        let mut state = locked(&self.state);
        state.called("elapsed")?;
        let mut times = [0.0; 2];
        for (event, found) in [from, to].into_iter().zip(&mut times) {
            state.known("elapsed", card, Handle::Event(event.0))?;
            let Mark { timed, time, .. } = state.events[&event.0];
            match time.filter(|_| timed) {
                Some(time) => *found = time,
                None => return Err(state.misused("elapsed", "the event has no time")),
            }
        }
        Ok(times[1] - times[0])
    }

    fn wait(&self, card: u32, stream: Stream, event: Event) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("wait")?;
        state.known("wait", card, Handle::Stream(stream.0))?;
        let owner = state.alive.get(&Handle::Event(event.0)).copied().unwrap_or(card);
        state.known("wait", owner, Handle::Event(event.0))?;
        let (at, capture) = (state.events[&event.0].at, state.events[&event.0].capture);
        let own = state.streams[&stream.0].capture;
        match (capture, own) {
            (None, None) => {
                let Some((other, number)) = at else { return Ok(()) };
                state.enqueue("wait", card, stream, Op::After(other, number))
            }
            (Some(capture), None) => {
                if !state.captures.get(&capture).is_some_and(|capture| capture.is_valid) {
                    return Err(state.misused("wait", "the event is part of a recording that has ended"));
                }
                state.streams.get_mut(&stream.0).expect("it is known").capture = Some(capture);
                Ok(())
            }
            (Some(capture), Some(own)) if capture == own => Ok(()),
            // As real drivers do.
            (_, Some(own)) => {
                state.captures.get_mut(&own).expect("it is being made").is_valid = false;
                Err(failure("wait", Kind::Other))
            }
        }
    }

    unsafe fn copy(&self, card: u32, stream: Stream, from: End, to: End, shape: [usize; 3]) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("copy")?;
        let used = [state.used("copy", from, shape)?, state.used("copy", to, shape)?].into();
        state.enqueue("copy", card, stream, Op::Work(used, 0.0))?;
        state.copies.push((from, to, shape));
        Ok(())
    }

    fn reaches(&self, card: u32, peer: u32) -> Called<bool> {
        let mut state = locked(&self.state);
        state.called("reaches")?;
        Ok(card != 3 && peer != 3)
    }

    fn enable_peer(&self, card: u32, peer: u32) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("enable_peer")?;
        state.card("enable_peer", card)?;
        state.card("enable_peer", peer)
    }

    fn load(&self, card: u32, _: Image<'_>) -> Called<Module> {
        let mut state = locked(&self.state);
        state.called("load")?;
        state.card("load", card)?;
        Ok(Module(state.give(card, Handle::Module)))
    }

    fn unload(&self, card: u32, module: Module) -> Called<()> {
        locked(&self.state).take("unload", card, Handle::Module(module.0))
    }

    fn function(&self, card: u32, module: Module, name: &str) -> Called<Function> {
        let mut state = locked(&self.state);
        state.called("function")?;
        state.known("function", card, Handle::Module(module.0))?;
        state.last += 1;
        let number = state.last;
        state.functions.insert(number, (module.0, name.into()));
        Ok(Function(number))
    }

    fn uses(&self, _: u32, _: Function) -> Called<Uses> {
        locked(&self.state).called("uses")?;
        Ok(Uses { registers: 40, local_bytes: 0, block_threads: 256 })
    }

    unsafe fn launch(
        &self,
        card: u32,
        stream: Stream,
        function: Function,
        grid: [u32; 3],
        block: [u32; 3],
        arguments: &mut [*mut c_void],
    ) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("launch")?;
        assert!(arguments.iter().all(|argument| argument.is_aligned() && !argument.is_null()));
        let (module, name) = state.functions[&function.0].clone();
        let time = state.times.first().copied().unwrap_or(1.0);
        if !state.times.is_empty() {
            state.times.rotate_left(1);
        }
        state.enqueue("launch", card, stream, Op::Work([Handle::Module(module)].into(), time))?;
        state.launches.push((name, grid, block));
        Ok(())
    }

    fn begin_capture(&self, card: u32, stream: Stream) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("begin_capture")?;
        if state.lacks_capture {
            return Err(failure("begin_capture", Kind::Unsupported));
        }
        state.known("begin_capture", card, Handle::Stream(stream.0))?;
        state.last += 1;
        let number = state.last;
        let (origin, thread) = (stream.0, thread::current().id());
        state.captures.insert(number, Capture { origin, thread, uses: BTreeSet::new(), is_valid: true });
        state.streams.get_mut(&stream.0).expect("it is known").capture = Some(number);
        Ok(())
    }

    fn end_capture(&self, card: u32, stream: Stream) -> Called<Graph> {
        let mut state = locked(&self.state);
        let called = state.called("end_capture");
        state.known("end_capture", card, Handle::Stream(stream.0))?;
        let Some(number) = state.streams[&stream.0].capture else {
            return Err(state.misused("end_capture", "nothing is being recorded"));
        };
        state.streams.values_mut().filter(|queue| queue.capture == Some(number)).for_each(|queue| queue.capture = None);
        let Capture { origin, is_valid, uses, .. } = state.captures.remove(&number).expect("it is being made");
        called?;
        if origin != stream.0 {
            return Err(state.misused("end_capture", "the recording didn't begin here"));
        }
        if !is_valid {
            return Err(failure("end_capture", Kind::Other));
        }
        let graph = state.give(card, Handle::Graph);
        state.graphs.insert(graph, uses);
        Ok(Graph(graph))
    }

    fn launch_graph(&self, card: u32, stream: Stream, graph: Graph) -> Called<()> {
        let mut state = locked(&self.state);
        state.called("launch_graph")?;
        let handle = Handle::Graph(graph.0);
        state.known("launch_graph", card, handle)?;
        let mut used = state.graphs[&graph.0].clone();
        used.insert(handle);
        for used in &used {
            if *used != Handle::Host(0) && !state.alive.contains_key(used) {
                let what = format!("{used:?} of the recording is gone");
                return Err(state.misused("launch_graph", what));
            }
        }
        state.enqueue("launch_graph", card, stream, Op::Work(used, 0.0))
    }

    fn destroy_graph(&self, card: u32, graph: Graph) -> Called<()> {
        let mut state = locked(&self.state);
        state.graphs.remove(&graph.0);
        state.take("destroy_graph", card, Handle::Graph(graph.0))
    }
}
