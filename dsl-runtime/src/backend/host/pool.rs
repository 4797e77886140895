//! A pool of threads that run one piece of work together, each pinned to a CPU of its own if that is wished.
//!
//! The calling thread takes part as number 0 and is pinned meanwhile. Between pieces of work the others spin for a
//! moment and then sleep.

use std::hint::spin_loop;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::placement::Placement;
use crate::backend::affinity::{Pinned, pin};
use crate::backend::panic_message;

/// Tries before an idle thread sleeps: some tens of microseconds.
const SPINS: u32 = 2000;

/// Tries, each giving way to other threads, before the calling thread sleeps while it waits for the last of the others.
const YIELDS: u32 = 2000;

/// The threads.
pub(super) struct Pool {
    place: Placement,
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    turn: Mutex<()>,
}

struct Shared {
    /// The work of the current round; valid from the start of the round until `running` is 0.
    work: AtomicPtr<Work<'static>>,
    round: AtomicUsize,
    running: AtomicUsize,
    stop: AtomicBool,
    spins: u32,
    sleep: Mutex<Sleep>,
    start: Condvar,
    end: Condvar,
}

#[derive(Default)]
struct Sleep {
    workers: usize,
    caller: bool,
    panic: Option<String>,
}

struct Work<'a>(&'a (dyn Fn(usize) + Sync));

impl Pool {
    /// A pool of as many threads as the placement has CPUs, at least one.
    pub(super) fn new(place: Placement) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            work: AtomicPtr::new(null_mut()),
            round: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            // A thread that spins on a CPU that another one needs only delays it.
            spins: if place.crowded { 0 } else { SPINS },
            sleep: Mutex::default(),
            start: Condvar::new(),
            end: Condvar::new(),
        });
        let mut pool = Self { place, shared, workers: Vec::new(), turn: Mutex::new(()) };
        for number in 1..pool.threads() {
            let (shared, cpu) = (Arc::clone(&pool.shared), pool.place.cpu(number));
            let name = format!("polyhalo-{number}");
            pool.workers.push(thread::Builder::new().name(name).spawn(move || serve(&shared, number, cpu))?);
        }
        Ok(pool)
    }

    /// The number of threads.
    pub(super) fn threads(&self) -> usize {
        self.place.cpus.len()
    }

    /// Where the threads run.
    pub(super) fn place(&self) -> &Placement {
        &self.place
    }

    /// Calls `work` with every number below [`Self::threads`], each on its own thread, and waits for all. A panic is
    /// returned as its message.
    pub(super) fn run(&self, work: &(dyn Fn(usize) + Sync)) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let _pinned = self.place.cpu(0).map(Pinned::to);
        let shared = &*self.shared;
        if self.workers.is_empty() {
            return attempt(work, 0).map_or(Ok(()), Err);
        }
        let work = Work(work);
        shared.begin(&work, self.workers.len());
        let own = attempt(work.0, 0);
        let others = shared.wait_for_all();
        own.or(others).map_or(Ok(()), Err)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.announce();
        for worker in self.workers.drain(..) {
            // Workers catch panics, so joining can't fail; and if it did there would be nothing left to do.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn sleep(&self) -> MutexGuard<'_, Sleep> {
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a round. The work must live until [`Self::wait_for_all`] has returned.
    fn begin(&self, work: &Work<'_>, workers: usize) {
        self.running.store(workers, Ordering::Relaxed);
        self.work.store(std::ptr::from_ref(work).cast_mut().cast(), Ordering::Relaxed);
        self.announce();
    }

    fn announce(&self) {
        let sleep = self.sleep();
        self.round.fetch_add(1, Ordering::Release);
        if sleep.workers > 0 {
            self.start.notify_all();
        }
    }

    /// Waits for the end of the round, and gives the message of a panic in it.
    fn wait_for_all(&self) -> Option<String> {
        let running = || self.running.load(Ordering::Acquire) > 0;
        for _ in 0..self.spins {
            if !running() {
                break;
            }
            spin_loop();
        }
        for _ in 0..YIELDS {
            if !running() {
                break;
            }
            thread::yield_now();
        }
        let mut sleep = self.sleep();
        sleep.caller = true;
        while running() {
            sleep = self.end.wait(sleep).unwrap_or_else(PoisonError::into_inner);
        }
        sleep.caller = false;
        sleep.panic.take()
    }

    /// Waits for a round after `seen`; `None` when there will be no more.
    fn next_round(&self, seen: usize) -> Option<usize> {
        let started = || Some(self.round.load(Ordering::Acquire)).filter(|&round| round != seen);
        for _ in 0..self.spins {
            if started().is_some() {
                break;
            }
            spin_loop();
        }
        let round = started().unwrap_or_else(|| {
            let mut sleep = self.sleep();
            sleep.workers += 1;
            loop {
                if let Some(round) = started() {
                    sleep.workers -= 1;
                    return round;
                }
                sleep = self.start.wait(sleep).unwrap_or_else(PoisonError::into_inner);
            }
        });
        (!self.stop.load(Ordering::Relaxed)).then_some(round)
    }
}

/// The life of a worker.
fn serve(shared: &Shared, number: usize, cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        pin(cpu);
    }
    let mut seen = 0;
    while let Some(round) = shared.next_round(seen) {
        seen = round;
        // SAFETY: `run` keeps the work alive until every worker has counted itself out of the round below.
        let work = unsafe { &*shared.work.load(Ordering::Relaxed) };
        let panic = attempt(work.0, number);
        if panic.is_some() {
            shared.sleep().panic = panic;
        }
        if shared.running.fetch_sub(1, Ordering::AcqRel) == 1 && shared.sleep().caller {
            shared.end.notify_one();
        }
    }
}

/// Does one thread's part, and gives the message of a panic.
fn attempt(work: &(dyn Fn(usize) + Sync), number: usize) -> Option<String> {
    catch_unwind(AssertUnwindSafe(|| work(number))).err().map(|panic| panic_message(panic.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::allowed_cpus;

    fn pools() -> Vec<Pool> {
        [1, 2, 3, 7].into_iter().map(pool).collect()
    }

    fn pool(threads: usize) -> Pool {
        Pool::new(Placement::of_one(&allowed_cpus(), threads)).unwrap()
    }

    #[test]
    fn every_number_is_called_once_per_round() {
        for pool in pools() {
            let calls: Vec<_> = (0..pool.threads()).map(|_| AtomicUsize::new(0)).collect();
            for round in 1..=300 {
                if round % 100 == 0 {
                    // Long enough for idle threads to fall asleep.
                    thread::sleep(std::time::Duration::from_millis(5));
                }
                pool.run(&|number| {
                    calls[number].fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
                assert!(calls.iter().all(|count| count.load(Ordering::Relaxed) == round));
            }
        }
    }

    #[test]
    fn a_panic_on_any_thread_is_an_error_and_the_pool_goes_on() {
        for pool in pools() {
            for bad in 0..pool.threads() {
                let result = pool.run(&|number| assert!(number != bad, "thread {number} broke"));
                assert_eq!(result, Err(format!("thread {bad} broke")));
                assert_eq!(pool.run(&|_| ()), Ok(()));
            }
        }
    }

    #[test]
    fn rounds_from_several_threads_do_not_mix() {
        let pool = pool(3);
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let own = AtomicUsize::new(0);
                        pool.run(&|number| {
                            if number == 0 {
                                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                                inside.fetch_sub(1, Ordering::SeqCst);
                            }
                            own.fetch_add(1, Ordering::Relaxed);
                        })
                        .unwrap();
                        assert_eq!(own.into_inner(), 3);
                    }
                });
            }
        });
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_stay_on_one_cpu_while_they_work() {
        for pool in pools() {
            pool.run(&|number| assert_eq!(allowed_cpus(), [pool.place.cpus[number]])).unwrap();
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_run_anywhere_when_nobody_pins_them() {
        let allowed = allowed_cpus();
        let place = Placement { pinned: false, ..Placement::of_one(&allowed, 2) };
        Pool::new(place).unwrap().run(&|_| assert_eq!(allowed_cpus(), allowed)).unwrap();
    }
}
