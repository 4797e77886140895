//! When work runs: at once, as late as possible, or by chance.

use std::collections::BTreeSet;

use polyhalo_double_engine::{Block, Kind, Machine, Order, Pageable, Settings, Side};

use crate::bench::{ORDERS, copy, kind, machine, map, numbers, with, zeroes};

/// One device computes and another one reads; `waits` is whether it waits for that.
fn handed_over(machine: &Machine, waits: bool) -> Vec<u64> {
    let (from, to) = (zeroes(machine, 0, 4), zeroes(machine, 1, 4));
    let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(1, false).unwrap());
    machine.enqueue(first, map(0, from, 4, |value| value + 7)).unwrap();
    machine.enter("record", Some(0)).unwrap();
    let event = machine.event(0, false).unwrap();
    machine.record(event, first).unwrap();
    if waits {
        machine.wait(second, event).unwrap();
    }
    copy(machine, second, from, to, 4).unwrap();
    numbers(machine, 1, to, 4)
}

/// A buffer is read by one stream, then written by another one.
fn overwritten(machine: &Machine, waits: bool) -> Vec<u64> {
    let (from, to) = (zeroes(machine, 0, 4), zeroes(machine, 0, 4));
    let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(0, false).unwrap());
    copy(machine, first, from, to, 4).unwrap();
    if waits {
        let event = machine.event(0, false).unwrap();
        machine.record(event, first).unwrap();
        machine.wait(second, event).unwrap();
    }
    machine.enter("enqueue", Some(0)).unwrap();
    machine.enqueue(second, map(0, from, 4, |_| 9)).unwrap();
    numbers(machine, 0, to, 4)
}

/// The host reads pinned memory after a copy to it.
fn read_by_the_host(machine: &Machine, waits: bool) -> Vec<u64> {
    let (from, pinned) = (zeroes(machine, 0, 4), machine.alloc_host(32).unwrap());
    let stream = machine.stream(0, false).unwrap();
    copy(machine, stream, from, pinned, 4).unwrap();
    if waits {
        machine.finish_stream(stream).unwrap();
    }
    machine.enter("read", Some(0)).unwrap();
    // SAFETY: the memory is there, and no other thread uses the machine.
    (0..4).map(|index| unsafe { (pinned as *const u64).add(index).read() }).collect()
}

#[test]
fn a_double_shows_each_missing_wait_in_lazy_order_only() {
    let check = |program: fn(&Machine, bool) -> Vec<u64>, expected: [u64; 4]| {
        for order in ORDERS {
            assert_eq!(program(&machine(order), true), expected, "{order:?}");
        }
        assert_eq!(program(&machine(Order::Eager), false), expected);
        assert_ne!(program(&machine(Order::Lazy), false), expected);
        let by_chance = (0..40).filter(|seed| program(&machine(Order::Random(*seed)), false) != expected).count();
        assert!((1..40).contains(&by_chance), "{by_chance} of 40 seeds show it");
    };
    check(handed_over, [7; 4]);
    check(overwritten, [0; 4]);
    check(read_by_the_host, [0; 4]);
}

#[test]
fn a_double_runs_in_a_different_order_for_each_seed_and_the_same_for_the_same() {
    let program = |seed: u64| {
        let machine = machine(Order::Random(seed));
        let start = zeroes(&machine, 0, 1);
        let steps: [fn(u64) -> u64; 4] = [|v| v * 10 + 1, |v| v * 10 + 2, |v| v * 10 + 3, |v| v * 10 + 4];
        for step in steps {
            machine.enter("enqueue", Some(0)).unwrap();
            machine.enqueue(machine.stream(0, false).unwrap(), map(0, start, 1, step)).unwrap();
        }
        numbers(&machine, 0, start, 1)[0]
    };
    let found: BTreeSet<u64> = (0..60).map(program).collect();
    assert!(found.len() > 10, "{found:?}");
    assert!((0..20).all(|seed| program(seed) == program(seed)));
}

#[test]
fn a_double_runs_a_stream_in_order_and_only_what_is_needed() {
    let machine = machine(Order::Lazy);
    let (one, other) = (zeroes(&machine, 0, 1), zeroes(&machine, 0, 1));
    let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(0, false).unwrap());
    machine.enqueue(first, map(0, one, 1, |value| value + 3)).unwrap();
    machine.enqueue(first, map(0, one, 1, |value| value * 5)).unwrap();
    machine.enqueue(second, map(0, other, 1, |value| value + 1)).unwrap();
    machine.finish_stream(first).unwrap();
    // SAFETY: both lie in real memory, and no other thread uses the machine.
    let read = |start: u64| unsafe { (start as *const u64).read() };
    assert_eq!((read(one), read(other)), (15, 0));
    machine.finish_device(0).unwrap();
    assert_eq!(read(other), 1);
}

#[test]
fn a_double_keeps_waits_when_an_event_is_recorded_again_and_ignores_events_never_recorded() {
    let machine = machine(Order::Lazy);
    let start = zeroes(&machine, 0, 1);
    let [first, second, third] = [(); 3].map(|()| machine.stream(0, false).unwrap());
    let event = machine.event(0, false).unwrap();
    machine.wait(third, event).unwrap();
    machine.finish_event(event).unwrap();
    machine.enqueue(first, map(0, start, 1, |value| value + 1)).unwrap();
    machine.record(event, first).unwrap();
    machine.wait(second, event).unwrap();
    machine.enqueue(third, map(0, start, 1, |value| value * 100)).unwrap();
    machine.record(event, third).unwrap();
    machine.enqueue(second, map(0, start, 1, |value| value * 10)).unwrap();
    machine.destroy_event(event).unwrap();
    machine.finish_stream(second).unwrap();
    // SAFETY: it lies in real memory, and no other thread uses the machine.
    assert_eq!(unsafe { (start as *const u64).read() }, 10, "the third stream's work isn't waited for");
}

#[test]
fn a_double_gets_on_when_it_is_asked_again_and_again() {
    for order in ORDERS {
        let machine = machine(order);
        let start = zeroes(&machine, 0, 1);
        let stream = machine.stream(0, false).unwrap();
        machine.enqueue(stream, map(0, start, 1, |value| value + 1)).unwrap();
        let (from, to) = (machine.event(0, true).unwrap(), machine.event(0, true).unwrap());
        machine.record(from, stream).unwrap();
        machine.enqueue(stream, map(0, start, 1, |value| value + 1)).unwrap();
        machine.record(to, stream).unwrap();
        if order == Order::Lazy {
            assert_eq!(kind(machine.elapsed(from, to)), Kind::NotReady);
            assert_eq!(kind(machine.query_event(to)), Kind::NotReady);
        }
        let asked = (0..1000).position(|_| machine.query_event(to).is_ok());
        assert!(asked.is_some(), "{order:?}");
        assert!(machine.elapsed(from, to).unwrap() >= 0.0);
        assert!((0..1000).any(|_| machine.query_stream(stream).is_ok()), "{order:?}");
    }
}

#[test]
fn a_double_takes_ordinary_memory_at_the_call_and_waits_for_copies_to_it() {
    for order in ORDERS {
        let machine = machine(order);
        let start = zeroes(&machine, 0, 4);
        let stream = machine.stream(0, false).unwrap();
        let mut numbers = [1_u64, 2, 3, 4];
        let host = Block::line(numbers.as_mut_ptr() as u64, Side::Host);
        let device = Block::line(start, Side::Device(0));
        // SAFETY: the array is as long as the copies.
        unsafe { machine.copy(stream, host, device, [32, 1, 1], false) }.unwrap();
        numbers.fill(0);
        // SAFETY: as above.
        unsafe { machine.copy(stream, device, host, [32, 1, 1], false) }.unwrap();
        assert_eq!(std::hint::black_box(numbers), [1, 2, 3, 4], "{order:?}");
    }
}

#[test]
fn a_double_lets_the_default_stream_and_blocking_ones_wait_for_each_other() {
    let machine = machine(Order::Lazy);
    let start = zeroes(&machine, 0, 1);
    let (blocking, default) = (machine.stream(0, true).unwrap(), machine.default_stream(0));
    machine.enqueue(blocking, map(0, start, 1, |value| value + 2)).unwrap();
    machine.enqueue(default, map(0, start, 1, |value| value * 10)).unwrap();
    machine.enqueue(blocking, map(0, start, 1, |value| value + 3)).unwrap();
    assert_eq!(numbers(&machine, 0, start, 1), [23]);
}

#[test]
fn a_double_copies_boxes_with_any_pitch() {
    for order in ORDERS {
        let machine = machine(order);
        let (from, to) = (zeroes(&machine, 0, 64), zeroes(&machine, 1, 64));
        machine.enqueue(machine.default_stream(0), map(0, from, 64, |_| 5)).unwrap();
        machine.finish_device(0).unwrap();
        let source = Block { address: from + 8, row_pitch: 32, plane_pitch: 128, side: Side::Device(0) };
        let target = Block { address: to, row_pitch: 16, plane_pitch: 48, side: Side::Device(1) };
        let stream = machine.stream(1, false).unwrap();
        // SAFETY: the boxes lie in memory of the machine.
        unsafe { machine.copy(stream, source, target, [16, 2, 2], false) }.unwrap();
        let expected = [5, 5, 5, 5, 0, 0, 5, 5, 5, 5, 0, 0];
        assert_eq!(numbers(&machine, 1, to, 12), expected, "{order:?}");
    }
}

#[test]
fn a_double_serves_several_threads() {
    for order in ORDERS {
        let machine = machine(order);
        let starts = [zeroes(&machine, 0, 1), zeroes(&machine, 1, 1)];
        std::thread::scope(|scope| {
            for (device, start) in starts.into_iter().enumerate() {
                let machine = &machine;
                scope.spawn(move || {
                    let stream = machine.stream(device, false).unwrap();
                    for _ in 0..200 {
                        machine.enter("enqueue", Some(device)).unwrap();
                        machine.enqueue(stream, map(device, start, 1, |value| value + 1)).unwrap();
                    }
                    machine.finish_stream(stream).unwrap();
                });
            }
        });
        assert_eq!((numbers(&machine, 0, starts[0], 1), numbers(&machine, 1, starts[1], 1)), (vec![200], vec![200]));
    }
}

#[test]
fn a_double_refuses_copies_that_race() {
    let program = |order: Order, waits: bool| {
        let machine = machine(order);
        let (start, pinned) = (zeroes(&machine, 0, 8), machine.alloc_host(64).unwrap());
        let (first, second) = (machine.stream(0, false).unwrap(), machine.stream(0, false).unwrap());
        copy(&machine, first, start, pinned, 4).unwrap();
        // What doesn't overlap, or is only read, may be done at the same time.
        copy(&machine, second, start, pinned + 32, 4).unwrap();
        if waits {
            let event = machine.event(0, false).unwrap();
            machine.record(event, first).unwrap();
            machine.wait(second, event).unwrap();
        }
        copy(&machine, second, pinned + 24, start + 56, 1)
    };
    program(Order::Lazy, true).unwrap();
    assert_eq!(kind(program(Order::Lazy, false)), Kind::InvalidValue);
}

#[test]
fn a_double_touches_ordinary_memory_at_the_call_or_as_late_as_it_may() {
    let check = |pageable: Pageable, sent: u64, received: u64| {
        let machine = with(Settings { order: Order::Lazy, pageable, ..Settings::default() });
        let (start, stream) = (zeroes(&machine, 0, 1), machine.stream(0, false).unwrap());
        let (mut source, mut target) = (5_u64, 1_u64);
        let [from, to] = [&raw mut source, &raw mut target];
        copy(&machine, stream, from as u64, start, 1).unwrap();
        // SAFETY: this thread alone uses both numbers, and the machine only within its calls.
        unsafe { from.write_volatile(8) };
        copy(&machine, stream, start, to as u64, 1).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { to.read_volatile() }, received, "{pageable:?}");
        machine.finish_stream(stream).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { to.read_volatile() }, sent, "{pageable:?}");
    };
    check(Pageable::AtOnce, 5, 5);
    check(Pageable::Late, 8, 1);
}
