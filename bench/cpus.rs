//! The CPUs of this process, and how far apart two of them are.

use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A set of CPUs.
#[derive(Clone, Copy)]
pub struct Mask(libc::cpu_set_t);

impl Mask {
    /// The CPUs that the calling thread may run on.
    pub fn of_this_thread() -> io::Result<Self> {
        // SAFETY: all bits zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set has the size that is given.
        let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
        if result == 0 { Ok(Self(set)) } else { Err(io::Error::last_os_error()) }
    }

    /// One CPU.
    pub fn only(cpu: usize) -> Self {
        // SAFETY: all bits zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: a CPU beyond the set is ignored.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        Self(set)
    }

    /// Their numbers.
    pub fn cpus(&self) -> Vec<usize> {
        // SAFETY: the numbers lie within the set.
        (0..8 * size_of_val(&self.0)).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &self.0) }).collect()
    }

    /// Confines the calling thread to these CPUs.
    pub fn apply(&self) -> io::Result<()> {
        // SAFETY: the set has the size that is given, and the system only reads it.
        let result = unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), &raw const self.0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Round trips that are timed together.
const TRIPS: u32 = 100;

/// The time in which a cache line goes from the first of these CPUs to the second one and back: the least of some
/// tries. `None` when there is only one CPU.
pub fn ping_pong(cpus: &[usize]) -> Option<Duration> {
    let &[first, second, ..] = cpus else { return None };
    let line = AtomicU32::new(0);
    let spin_until = |value: u32| {
        while line.load(Ordering::Acquire) != value {
            spin_loop();
        }
    };
    let serve = || {
        Mask::only(second).apply().ok()?;
        for trip in 0..20 * TRIPS {
            spin_until(2 * trip + 1);
            line.store(2 * trip + 2, Ordering::Release);
        }
        Some(())
    };
    let play = || {
        Mask::only(first).apply().ok()?;
        let mut best = Duration::MAX;
        for round in 0..20 {
            let start = Instant::now();
            for trip in TRIPS * round..TRIPS * (round + 1) {
                line.store(2 * trip + 1, Ordering::Release);
                spin_until(2 * trip + 2);
            }
            best = best.min(start.elapsed());
        }
        Some(best / TRIPS)
    };
    // A thread that can't be pinned would leave the other one waiting, so both try before they play.
    let mine = [first, second].map(|cpu| thread::scope(|scope| scope.spawn(|| Mask::only(cpu).apply().is_ok()).join()));
    if !mine.iter().all(|tried| matches!(tried, Ok(true))) {
        return None;
    }
    thread::scope(|scope| {
        scope.spawn(serve);
        scope.spawn(play).join().ok().flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_confined_to_one_of_its_cpus() {
        let cpus = Mask::of_this_thread().unwrap().cpus();
        thread::scope(|scope| {
            scope.spawn(|| {
                Mask::only(cpus[0]).apply().unwrap();
                assert_eq!(Mask::of_this_thread().unwrap().cpus(), cpus[..1]);
            });
        });
        assert_eq!(Mask::of_this_thread().unwrap().cpus(), cpus);
    }

    #[test]
    fn a_line_takes_some_time_and_needs_two_cpus() {
        assert_eq!(ping_pong(&[0]), None);
        let cpus = Mask::of_this_thread().unwrap().cpus();
        assert_eq!(ping_pong(&cpus).is_some_and(|time| time > Duration::ZERO), cpus.len() > 1);
    }
}
