//! Recordings: what is in them, in which order it is done, and what makes them worthless.

use polyhalo_double_engine::{CaptureMode, Kind, Machine, Order};

use crate::bench::{ORDERS, copy, kind, machine, map, numbers, zeroes};

const RELAXED: CaptureMode = CaptureMode::Relaxed;

/// Records on one device what then goes over to the other one and comes back.
fn round_trip(machine: &Machine, starts: [u64; 2]) -> u64 {
    let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(1, false).unwrap());
    let (out, back) = (machine.event(0, false).unwrap(), machine.event(1, false).unwrap());
    machine.begin_capture(first, RELAXED).unwrap();
    machine.enqueue(first, map(0, starts[0], 4, |value| value + 1)).unwrap();
    machine.record(out, first).unwrap();
    machine.wait(second, out).unwrap();
    copy(machine, second, starts[0], starts[1], 4).unwrap();
    machine.enqueue(second, map(1, starts[1], 4, |value| value * 2)).unwrap();
    machine.record(back, second).unwrap();
    machine.wait(first, back).unwrap();
    copy(machine, first, starts[1], starts[0], 4).unwrap();
    let graph = machine.end_capture(first).unwrap();
    assert_eq!(machine.graph_nodes(graph).unwrap(), 4);
    let ready = machine.instantiate(graph).unwrap();
    machine.destroy_graph(graph, false).unwrap();
    assert_eq!(machine.is_captured(second).unwrap(), None);
    ready
}

#[test]
fn a_double_does_what_was_recorded_as_often_as_asked() {
    for order in ORDERS.into_iter().chain((10..30).map(Order::Random)) {
        let machine = machine(order);
        let starts = [zeroes(&machine, 0, 4), zeroes(&machine, 1, 4)];
        let ready = round_trip(&machine, starts);
        assert_eq!(numbers(&machine, 0, starts[0], 4), [0; 4], "nothing is done while it is recorded");
        // On different streams: a graph isn't done twice at the same time.
        for _ in 0..3 {
            machine.enter("launch", Some(0)).unwrap();
            machine.launch_graph(ready, machine.stream(0, false).unwrap()).unwrap();
        }
        assert_eq!(numbers(&machine, 0, starts[0], 4), [14; 4], "{order:?}");
        machine.destroy_graph(ready, true).unwrap();
        assert_eq!(kind(machine.launch_graph(ready, machine.default_stream(0))), Kind::InvalidHandle);
    }
}

#[test]
fn a_double_runs_branches_of_a_graph_in_any_order() {
    let program = |order: Order| {
        let machine = machine(order);
        let start = zeroes(&machine, 0, 1);
        let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(0, false).unwrap());
        let [fork, join] = [(); 2].map(|()| machine.event(0, false).unwrap());
        machine.begin_capture(first, CaptureMode::Global).unwrap();
        machine.record(fork, first).unwrap();
        machine.wait(second, fork).unwrap();
        machine.enqueue(first, map(0, start, 1, |value| value * 10 + 1)).unwrap();
        machine.enqueue(second, map(0, start, 1, |value| value * 10 + 2)).unwrap();
        machine.record(join, second).unwrap();
        machine.wait(first, join).unwrap();
        let ready = machine.instantiate(machine.end_capture(first).unwrap()).unwrap();
        machine.launch_graph(ready, first).unwrap();
        numbers(&machine, 0, start, 1)[0]
    };
    assert_eq!((program(Order::Eager), program(Order::Lazy)), (12, 21));
    let found: Vec<u64> = (0..20).map(|seed| program(Order::Random(seed))).collect();
    assert!(found.contains(&12) && found.contains(&21), "{found:?}");
}

#[test]
fn a_double_refuses_what_cannot_be_recorded_and_the_recording_with_it() {
    let check = |mistake: &dyn Fn(&Machine, u64) -> Kind, expected: Kind| {
        let machine = machine(Order::Eager);
        let start = zeroes(&machine, 0, 1);
        let stream = machine.stream(0, false).unwrap();
        machine.begin_capture(stream, CaptureMode::ThreadLocal).unwrap();
        machine.enqueue(stream, map(0, start, 1, |value| value + 1)).unwrap();
        assert_eq!(mistake(&machine, stream), expected);
        assert!(!machine.misuses().is_empty(), "{expected:?}");
        assert_eq!(machine.is_captured(stream).unwrap(), Some(false), "{expected:?}");
        assert_eq!(kind(machine.enqueue(stream, map(0, start, 1, |value| value))), Kind::CaptureInvalidated);
        assert_eq!(kind(machine.end_capture(stream)), Kind::CaptureInvalidated, "{expected:?}");
        machine.enqueue(stream, map(0, start, 1, |value| value + 4)).unwrap();
        assert_eq!(numbers(&machine, 0, start, 1), [4], "the stream works as before");
    };
    let recorded = |machine: &Machine, stream: u64| {
        let event = machine.event(0, true).unwrap();
        machine.record(event, stream).unwrap();
        event
    };
    check(&|machine, stream| kind(machine.finish_stream(stream)), Kind::CaptureUnsupported);
    check(&|machine, stream| kind(machine.query_stream(stream)), Kind::CaptureUnsupported);
    check(&|machine, stream| kind(machine.destroy_stream(stream)), Kind::CaptureUnsupported);
    check(&|machine, _| kind(machine.finish_device(0)), Kind::CaptureUnsupported);
    check(&|machine, _| kind(machine.alloc(0, 8)), Kind::CaptureUnsupported);
    check(&|machine, stream| kind(machine.query_event(recorded(machine, stream))), Kind::CapturedEvent);
    check(&|machine, stream| kind(machine.finish_event(recorded(machine, stream))), Kind::CapturedEvent);
    check(
        &|machine, stream| {
            let (other, event) = (machine.stream(0, false).unwrap(), machine.event(0, false).unwrap());
            machine.record(event, other).unwrap();
            kind(machine.wait(stream, event))
        },
        Kind::CaptureIsolation,
    );
    check(
        &|machine, stream| {
            let (other, event) = (machine.stream(1, false).unwrap(), machine.event(1, false).unwrap());
            machine.begin_capture(other, RELAXED).unwrap();
            machine.record(event, other).unwrap();
            kind(machine.wait(stream, event))
        },
        Kind::CaptureMerge,
    );
    check(
        &|machine, stream| {
            let (other, event) = (machine.stream(1, false).unwrap(), recorded(machine, stream));
            machine.wait(other, event).unwrap();
            kind(machine.end_capture(other))
        },
        Kind::CaptureUnmatched,
    );
    check(
        &|machine, stream| kind(machine.wait(machine.default_stream(0), recorded(machine, stream))),
        Kind::CaptureImplicit,
    );
    check(
        &|machine, stream| {
            let mut numbers = [0_u64; 1];
            kind(copy(machine, stream, zeroed(machine), numbers.as_mut_ptr() as u64, 1))
        },
        Kind::CaptureUnsupported,
    );
}

/// Memory of the first device, found without an allocation, which a recording forbids.
fn zeroed(machine: &Machine) -> u64 {
    std::thread::scope(|scope| scope.spawn(|| machine.alloc(0, 8).unwrap()).join().unwrap())
}

#[test]
fn a_double_refuses_an_end_that_leaves_work_behind_or_comes_from_elsewhere() {
    let machine = machine(Order::Lazy);
    let start = zeroes(&machine, 1, 1);
    let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(1, false).unwrap());
    let event = machine.event(0, false).unwrap();
    assert_eq!(kind(machine.end_capture(first)), Kind::IllegalState);
    assert_eq!(kind(machine.begin_capture(machine.default_stream(0), RELAXED)), Kind::CaptureUnsupported);
    machine.begin_capture(first, CaptureMode::Global).unwrap();
    assert_eq!(kind(machine.begin_capture(first, RELAXED)), Kind::IllegalState);
    machine.record(event, first).unwrap();
    machine.wait(second, event).unwrap();
    machine.enqueue(second, map(1, start, 1, |value| value + 1)).unwrap();
    let elsewhere = std::thread::scope(|scope| scope.spawn(|| machine.end_capture(first)).join().unwrap());
    assert_eq!(kind(elsewhere), Kind::CaptureWrongThread);
    assert_eq!(kind(machine.end_capture(first)), Kind::CaptureUnjoined);
    assert_eq!(kind(machine.query_event(event)), Kind::CapturedEvent);
    assert_eq!(kind(machine.wait(second, event)), Kind::CapturedEvent);
    assert_eq!(numbers(&machine, 1, start, 1), [0]);
}

#[test]
fn a_double_ends_a_recording_whose_end_fails() {
    let machine = machine(Order::Lazy);
    let starts = [zeroes(&machine, 0, 1), zeroes(&machine, 1, 1)];
    let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(1, false).unwrap());
    let event = machine.event(0, false).unwrap();
    machine.begin_capture(first, CaptureMode::Global).unwrap();
    machine.enqueue(first, map(0, starts[0], 1, |value| value + 1)).unwrap();
    machine.record(event, first).unwrap();
    machine.wait(second, event).unwrap();
    machine.abandon_capture(second);
    assert_eq!(machine.is_captured(first).unwrap(), Some(true), "it began on another stream");
    machine.abandon_capture(first);
    assert_eq!([first, second].map(|stream| machine.is_captured(stream).unwrap()), [None; 2]);
    machine.enqueue(first, map(0, starts[0], 1, |value| value + 4)).unwrap();
    machine.enqueue(second, map(1, starts[1], 1, |value| value + 8)).unwrap();
    assert_eq!([numbers(&machine, 0, starts[0], 1), numbers(&machine, 1, starts[1], 1)], [[4], [8]]);
    machine.abandon_capture(first);
    assert_eq!(machine.misuses(), [""; 0]);
}

#[test]
fn a_double_lets_other_threads_alone_unless_the_recording_is_for_all() {
    let check = |mode: CaptureMode, here: bool, elsewhere: bool| {
        for (by_another, is_allowed) in [(false, here), (true, elsewhere)] {
            let machine = machine(Order::Eager);
            machine.begin_capture(machine.stream(0, false).unwrap(), mode).unwrap();
            let alloc = || machine.alloc(1, 8).is_ok();
            let found =
                if by_another { std::thread::scope(|scope| scope.spawn(alloc).join().unwrap()) } else { alloc() };
            assert_eq!(found, is_allowed, "{mode:?}, by another thread: {by_another}");
        }
    };
    check(CaptureMode::Global, false, false);
    check(CaptureMode::ThreadLocal, false, true);
    check(CaptureMode::Relaxed, true, true);
}

#[test]
fn a_double_refuses_a_graph_whose_memory_was_freed() {
    let machine = machine(Order::Lazy);
    let starts = [zeroes(&machine, 0, 4), zeroes(&machine, 1, 4)];
    let ready = round_trip(&machine, starts);
    machine.launch_graph(ready, machine.default_stream(0)).unwrap();
    assert_eq!(kind(machine.free(1, starts[1])), Kind::InvalidValue);
    machine.finish_device(0).unwrap();
    machine.free(1, starts[1]).unwrap();
    assert_eq!(kind(machine.launch_graph(ready, machine.default_stream(0))), Kind::InvalidValue);
}
