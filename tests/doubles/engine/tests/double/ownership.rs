//! Whose memory and handles are used: what is someone else's, gone or too short is a mistake that is reported.

use polyhalo_double_engine::{Block, Kind, Machine, Order, Owner, Peers, Place, Settings, Side};

use crate::bench::{copy, kind, machine, map, with, zeroes};

/// Checks that a mistake is answered and reported, each in its own machine.
fn check(expected: Kind, words: &str, mistake: impl FnOnce(&Machine) -> Kind) {
    let machine = machine(Order::Lazy);
    assert_eq!(mistake(&machine), expected, "{words}");
    let found = machine.misuses();
    assert!(found.last().is_some_and(|line| line.contains(words)), "expected `{words}` in {found:?}");
}

fn copied(machine: &Machine, stream: u64, from: (u64, Side), to: (u64, Side), bytes: u64) -> Kind {
    // SAFETY: the copies are refused.
    kind(unsafe { machine.copy(stream, Block::line(from.0, from.1), Block::line(to.0, to.1), [bytes, 1, 1], false) })
}

#[test]
fn a_double_refuses_memory_of_another_owner() {
    let ends = |machine: &Machine| (zeroes(machine, 0, 4), zeroes(machine, 1, 4), machine.alloc_host(32).unwrap());
    check(Kind::InvalidValue, "is used as memory of device 0, but is device 1's", |machine| {
        let (own, other, _) = ends(machine);
        copied(machine, machine.default_stream(0), (other, Side::Device(0)), (own, Side::Device(0)), 32)
    });
    check(Kind::WrongSide, "is used as memory of device 0, but is pinned memory of the host's", |machine| {
        let (own, _, pinned) = ends(machine);
        copied(machine, machine.default_stream(0), (pinned, Side::Device(0)), (own, Side::Device(0)), 32)
    });
    check(Kind::WrongSide, "is used as memory of the host, but is device 0's", |machine| {
        let (own, _, pinned) = ends(machine);
        copied(machine, machine.default_stream(0), (own, Side::Host), (pinned, Side::Host), 32)
    });
    check(Kind::WrongSide, "but is ordinary memory of the host's", |machine| {
        let numbers = [0_u64; 4];
        let from = (numbers.as_ptr() as u64, Side::Device(0));
        copied(machine, machine.default_stream(0), from, (ends(machine).0, Side::Device(0)), 32)
    });
    check(Kind::InvalidValue, "on a stream of device 0", |machine| {
        let (_, other, pinned) = ends(machine);
        copied(machine, machine.default_stream(0), (other, Side::Device(1)), (pinned, Side::Host), 32)
    });
    check(Kind::InvalidHandle, "is for device 1, but its stream is device 0's", |machine| {
        let (_, other, _) = ends(machine);
        kind(machine.enqueue(machine.default_stream(0), map(1, other, 4, |value| value)))
    });
    check(Kind::WrongSide, "is used as memory of device 0", |machine| {
        kind(machine.fill(machine.default_stream(0), ends(machine).2, &[0], 32, 1, 0))
    });
}

#[test]
fn a_double_refuses_ranges_that_leave_their_allocation() {
    check(Kind::InvalidValue, "go 8 bytes beyond their allocation", |machine| {
        let (from, to) = (zeroes(machine, 0, 4), zeroes(machine, 0, 5));
        kind(copy(machine, machine.default_stream(0), from, to, 5))
    });
    check(Kind::InvalidValue, "is no memory that was given out", |machine| {
        let from = zeroes(machine, 0, 512);
        kind(copy(machine, machine.default_stream(0), from + 4096, from, 1))
    });
    check(Kind::InvalidValue, "a null pointer", |machine| {
        kind(copy(machine, machine.default_stream(0), 0, zeroes(machine, 0, 1), 1))
    });
    check(Kind::InvalidValue, "go 16 bytes beyond", |machine| {
        let from = zeroes(machine, 0, 8);
        kind(machine.fill(machine.default_stream(0), from, &[1, 2], 8, 3, 32))
    });
    check(Kind::InvalidValue, "overlap", |machine| {
        let (from, to) = (zeroes(machine, 0, 8), zeroes(machine, 0, 8));
        let block = |address| Block { address, row_pitch: 8, plane_pitch: 0, side: Side::Any };
        // SAFETY: the copy is refused.
        kind(unsafe { machine.copy(machine.default_stream(0), block(from), block(to), [16, 2, 1], false) })
    });
}

#[test]
fn a_double_refuses_to_free_what_is_not_there_or_in_use() {
    check(Kind::InvalidValue, "is freed twice", |machine| {
        let start = zeroes(machine, 0, 4);
        machine.free(0, start).unwrap();
        kind(machine.free(0, start))
    });
    check(Kind::InvalidValue, "but was never given out", |machine| kind(machine.free(0, 4096)));
    check(Kind::InvalidValue, "begins 8 bytes before it", |machine| kind(machine.free(0, zeroes(machine, 0, 4) + 8)));
    check(Kind::InvalidValue, "as memory of device 1, but belongs to device 0", |machine| {
        kind(machine.free(1, zeroes(machine, 0, 4)))
    });
    check(Kind::InvalidValue, "as pinned memory, but belongs to device 0", |machine| {
        kind(machine.free_host(zeroes(machine, 0, 4)))
    });
    check(Kind::InvalidValue, "is freed while enqueued work (map) uses it", |machine| {
        let start = zeroes(machine, 0, 4);
        machine.enqueue(machine.stream(0, false).unwrap(), map(0, start, 4, |value| value)).unwrap();
        kind(machine.free(0, start))
    });
    check(Kind::InvalidValue, "is freed while enqueued work", |machine| {
        let (start, pinned) = (zeroes(machine, 0, 4), machine.alloc_host(32).unwrap());
        copy(machine, machine.default_stream(0), start, pinned, 4).unwrap();
        kind(machine.free_host(pinned))
    });
    check(Kind::InvalidValue, "was freed", |machine| {
        let start = zeroes(machine, 0, 4);
        machine.free(0, start).unwrap();
        kind(copy(machine, machine.default_stream(0), start, zeroes(machine, 0, 4), 4))
    });
}

#[test]
fn a_double_refuses_handles_that_are_foreign_or_gone() {
    check(Kind::InvalidHandle, "a stream that was destroyed", |machine| {
        let stream = machine.stream(0, false).unwrap();
        machine.destroy_stream(stream).unwrap();
        kind(machine.finish_stream(stream))
    });
    check(Kind::InvalidHandle, "is no event, but a stream", |machine| {
        kind(machine.query_event(machine.stream(0, false).unwrap()))
    });
    check(Kind::InvalidHandle, "an event that was destroyed", |machine| {
        let event = machine.event(0, false).unwrap();
        machine.destroy_event(event).unwrap();
        kind(machine.wait(machine.default_stream(0), event))
    });
    check(Kind::InvalidHandle, "an event of device 1 is recorded on a stream of device 0", |machine| {
        kind(machine.record(machine.event(1, false).unwrap(), machine.default_stream(0)))
    });
    check(Kind::InvalidHandle, "nothing that was given out", |machine| kind(machine.finish_stream(77)));
    check(Kind::InvalidHandle, "without times", |machine| {
        let event = machine.event(0, false).unwrap();
        machine.record(event, machine.default_stream(0)).unwrap();
        kind(machine.elapsed(event, event))
    });
    check(Kind::InvalidHandle, "never recorded", |machine| {
        let event = machine.event(0, true).unwrap();
        kind(machine.elapsed(event, event))
    });
}

#[test]
fn a_double_knows_what_lies_where() {
    let machine = machine(Order::Eager);
    let (start, pinned) = (machine.alloc(1, 100).unwrap(), machine.alloc_host(50).unwrap());
    let known = |owner, start, bytes, offset| Place::Known { owner, start, bytes, offset };
    assert_eq!(machine.place(start + 99), known(Owner::Device(1), start, 100, 99));
    assert_eq!(machine.place(start + 4096), Place::Gap(Owner::Device(1)));
    assert_eq!(machine.place(pinned), known(Owner::Pinned, pinned, 50, 0));
    assert_eq!(start % 256, 0);
    let mut own = vec![0_u64; 8];
    let address = own.as_mut_ptr() as u64;
    assert_eq!(machine.place(address), Place::Unknown);
    machine.register_host(address, 64).unwrap();
    assert_eq!(machine.place(address + 8), known(Owner::Registered, address, 64, 8));
    assert_eq!(kind(machine.register_host(address + 8, 8)), Kind::HostRegistered);
    machine.unregister_host(address).unwrap();
    assert_eq!(kind(machine.unregister_host(address)), Kind::HostNotRegistered);
    machine.free(1, start).unwrap();
    assert_eq!(machine.place(start), Place::Freed(Owner::Device(1)));
    let later = machine.alloc(1, 100).unwrap();
    assert_ne!(later, start, "an address isn't given out twice");
    // SAFETY: it is real memory that nobody else uses.
    assert_eq!(unsafe { (later as *const u64).read() }, u64::MAX, "fresh memory holds no zeroes");
    assert_eq!(machine.touches([later + 4, 12, address]).len(), 1);
}

#[test]
fn a_double_has_no_more_memory_than_it_was_given() {
    let machine = with(Settings { memory_bytes: 1000, ..Settings::default() });
    let first = machine.alloc(0, 600).unwrap();
    assert_eq!(machine.memory(0), [400, 1000]);
    assert_eq!(kind(machine.alloc(0, 401)), Kind::OutOfMemory);
    machine.alloc(1, 1000).unwrap();
    machine.free(0, first).unwrap();
    assert_eq!(machine.memory(0), [1000, 1000]);
    assert_eq!(machine.misuses(), [""; 0], "too little room is nobody's mistake");
    assert_eq!(kind(machine.alloc(0, 0)), Kind::InvalidValue);
}

#[test]
fn a_double_lets_kernels_reach_a_peer_only_if_that_is_enabled() {
    let machine = machine(Order::Eager);
    let other = zeroes(&machine, 1, 1);
    let stream = machine.stream(0, false).unwrap();
    machine.enable_peer(0, 1).unwrap();
    assert_eq!(kind(machine.enable_peer(0, 1)), Kind::PeerEnabled);
    assert_eq!(kind(machine.enable_peer(0, 0)), Kind::InvalidDevice);
    machine.enqueue(stream, map(0, other, 1, |value| value + 1)).unwrap();
    machine.finish_stream(stream).unwrap();
    machine.disable_peer(0, 1).unwrap();
    assert_eq!(kind(machine.disable_peer(0, 1)), Kind::PeerNotEnabled);
    machine.enqueue(stream, map(0, other, 1, |value| value + 1)).unwrap();
    assert_eq!(kind(machine.finish_stream(stream)), Kind::IllegalAddress);
    assert!(machine.misuses().last().is_some_and(|line| line.contains("without access to its peer")));

    let alone = with(Settings { peers: Peers::None, ..Settings::default() });
    assert!(!alone.can_reach(0, 1));
    assert_eq!(kind(alone.enable_peer(0, 1)), Kind::PeerUnsupported);
}
