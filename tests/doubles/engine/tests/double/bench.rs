//! A machine with some work for it.

use std::sync::Arc;

use polyhalo_double_engine::{Block, Failure, Kind, Machine, Order, Outcome, Settings, Side, Touch, Vendor, Work};

pub(crate) const ORDERS: [Order; 4] = [Order::Eager, Order::Lazy, Order::Random(1), Order::Random(2)];

pub(crate) fn machine(order: Order) -> Machine {
    with(Settings { order, ..Settings::default() })
}

pub(crate) fn with(settings: Settings) -> Machine {
    Machine::new(settings, Vendor { name: "test", sticky: &[719, 46] })
}

/// A device's `count` numbers, all 0.
pub(crate) fn zeroes(machine: &Machine, device: usize, count: u64) -> u64 {
    let start = machine.alloc(device, count * 8).unwrap();
    machine.fill(machine.default_stream(device), start, &[0], count * 8, 1, 0).unwrap();
    machine.finish_device(device).unwrap();
    start
}

/// Work on numbers: each is replaced by what `step` makes of it.
pub(crate) fn map(device: usize, start: u64, count: u64, step: fn(u64) -> u64) -> Work {
    let action = move |view: &polyhalo_double_engine::View<'_>| {
        let reached = view.reach(start, count as usize * 8, true);
        let extent = reached.map_err(|message| Failure::new(Kind::IllegalAddress, message))?;
        assert!(extent.start <= start && start + count * 8 <= extent.end);
        for index in 0..count {
            let place = (start + index * 8) as *mut u64;
            // SAFETY: the extent that was reached holds the number.
            unsafe { place.write_unaligned(step(place.read_unaligned())) };
        }
        Ok(())
    };
    let touches = vec![Touch { address: start, bytes: count * 8, writes: true }];
    Work { name: "map".into(), device, touches, action: Arc::new(action) }
}

/// A copy of numbers between wherever they lie.
pub(crate) fn copy(machine: &Machine, stream: u64, from: u64, to: u64, count: u64) -> Outcome<()> {
    // SAFETY: tests only copy memory that the machine gave out.
    unsafe { machine.copy(stream, Block::line(from, Side::Any), Block::line(to, Side::Any), [count * 8, 1, 1], false) }
}

/// The numbers on a device, once it has nothing left to do.
pub(crate) fn numbers(machine: &Machine, device: usize, start: u64, count: usize) -> Vec<u64> {
    machine.finish_device(device).unwrap();
    let mut found = vec![0_u64; count];
    let to = Block::line(found.as_mut_ptr() as u64, Side::Host);
    let stream = machine.default_stream(device);
    // SAFETY: the vector is as long as the copy.
    unsafe { machine.copy(stream, Block::line(start, Side::Device(device)), to, [count as u64 * 8, 1, 1], true) }
        .unwrap();
    found
}

pub(crate) fn kind<T: std::fmt::Debug>(outcome: Outcome<T>) -> Kind {
    outcome.expect_err("this is a mistake").kind
}
