//! Line 1. Same bits, however devices and their queues come to do their work: what must be done before something else is so in
//! every order, not only in those that happen.

use polyhalo::backend::Order;
use polyhalo_tests::steps::device::{COUNTS, STRATEGIES, hosts};

use crate::busy::{Busy, CELLS};

const STEPS: u64 = 5;

/// Orders drawn at random.
const SEEDS: u64 = 20;

#[test]
fn results_are_the_same_in_every_order_of_operations_with_every_strategy() {
    let expected = Busy::after(STEPS);
    let orders = [Order::Eager, Order::Lazy].into_iter().chain((1..=SEEDS).map(Order::Random));
    for (number, order) in orders.enumerate() {
        for (turn, exchange) in STRATEGIES.into_iter().enumerate() {
            let devices = hosts(COUNTS[1 + (number + turn) % 4]).exchange(exchange).order(order);
            let busy = Busy::new(devices.on(CELLS)).unwrap();
            busy.sim.run(&busy.step, STEPS).unwrap();
            assert!(busy.bits().unwrap() == expected, "{devices}");
        }
    }
}

#[test]
fn results_are_the_same_on_all_devices() {
    let expected = Busy::after(STEPS);
    for devices in crate::devices_for(CELLS) {
        let busy = Busy::new(devices.on(CELLS)).unwrap();
        // Parts of a run that are no multiple of what a strategy does at once.
        for steps in [0, 1, STEPS - 1] {
            busy.sim.run(&busy.step, steps).unwrap();
        }
        assert!(busy.bits().unwrap() == expected, "{devices}");
    }
}
