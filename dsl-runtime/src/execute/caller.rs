//! For whom a thread works: a lane of a step counts as the thread that runs the step.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });

/// A number for the calling thread, other than 0, that only threads have which work for it.
pub(crate) fn this_thread() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(COUNT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// From now on the calling thread counts as the one with that number.
pub(super) fn work_for(other: u64) {
    NUMBER.with(|number| number.set(other));
}
