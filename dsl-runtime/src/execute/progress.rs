//! How far the threads of a batch are, and waiting for each other.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread that waits keeps its CPU before it sleeps, where there is a CPU for each.
const PATIENCE: Duration = Duration::from_micros(20);

/// How many operations a thread has issued since the start of the batch. On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Progress {
    issued: AtomicU64,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Progress {
    /// Tells those who wait that `count` operations are issued.
    pub(super) fn publish(&self, count: u64) {
        self.issued.store(count, Ordering::Release);
        // Either this thread sees the sleeper, or the sleeper sees the count.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    /// Makes all who wait look again.
    pub(super) fn wake(&self) {
        // Whoever looked before is asleep once the lock is free.
        drop(self.lock());
        self.bell.notify_all();
    }

    /// Waits until `count` operations are issued, and gives whether they are: otherwise `stop` was set.
    pub(super) fn wait(&self, count: u64, stop: &AtomicBool, has_cpu: bool) -> bool {
        let reached = || self.issued.load(Ordering::Acquire) >= count;
        if reached() || has_cpu && spin(&reached) {
            return true;
        }
        let mut guard = self.lock();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !reached() && !stop.load(Ordering::Acquire) {
            guard = self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        reached()
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // It guards nothing that a panic could break.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks again and again for a short time.
fn spin(reached: &impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        for _ in 0..32 {
            if reached() {
                return true;
            }
            spin_loop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_oversleeps() {
        let (progress, stop) = ([(); 3].map(|()| Progress::default()), AtomicBool::new(false));
        let last = 2000;
        std::thread::scope(|scope| {
            for own in 0..3 {
                let (progress, stop) = (&progress, &stop);
                scope.spawn(move || {
                    for count in 1..=last {
                        progress[own].publish(count);
                        assert!(progress[(own + 1) % 3].wait(count, stop, count % 2 == 0));
                    }
                });
            }
        });
        assert!(progress.iter().all(|progress| progress.issued.load(Ordering::Relaxed) == last));
    }

    #[test]
    fn those_who_wait_leave_when_all_is_stopped() {
        let (progress, stop) = (Progress::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let sleepers = [false, true].map(|has_cpu| {
                let (progress, stop) = (&progress, &stop);
                scope.spawn(move || progress.wait(1, stop, has_cpu))
            });
            stop.store(true, Ordering::Release);
            progress.wake();
            assert!(sleepers.into_iter().all(|sleeper| !sleeper.join().unwrap()));
        });
    }
}
