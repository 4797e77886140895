//! Whether the machine is quiet: how much of it other processes used while something was measured.

use std::fs;
use std::time::Instant;

/// More than this share of one CPU in other hands spoils a measurement.
pub const MOST_BY_OTHERS: f64 = 0.12;

/// A measurement in progress.
pub struct Meter {
    start: Instant,
    busy: f64,
    own: f64,
}

impl Meter {
    /// Starts one.
    pub fn start() -> Self {
        Self { busy: busy_seconds(), own: own_seconds(), start: Instant::now() }
    }

    /// The seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// How many CPUs others have used on average since the start: other processes, and the host of a virtual machine.
    pub fn by_others(&self) -> f64 {
        let seconds = self.seconds();
        let (busy, own) = (busy_seconds() - self.busy, own_seconds() - self.own);
        ((busy - own) / seconds).max(0.0)
    }
}

/// The seconds that all CPUs together have been busy or taken away since the system started.
fn busy_seconds() -> f64 {
    // SAFETY: the call reads a constant of the system.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    busy_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()) / ticks_per_second
}

/// All columns of the first line but idle time, and the time of guests, which is counted twice.
fn busy_ticks(stat: &str) -> f64 {
    let columns = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let numbers = columns.map(|column| column.parse().unwrap_or(0.0)).enumerate();
    numbers.filter(|(column, _)| *column < 8 && ![3, 4].contains(column)).map(|(_, ticks): (_, f64)| ticks).sum()
}

/// The CPU seconds of all threads of this process.
fn own_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system writes into the structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_guests_are_left_out() {
        assert_eq!(busy_ticks("cpu  1 20 300 5000 60000 7 80 900 11 13\ncpu0 1 1\n"), 1308.0);
        assert_eq!(busy_ticks(""), 0.0);
    }

    #[test]
    fn own_work_counts_as_own() {
        let before = own_seconds();
        let mut sum = 0_u64;
        while own_seconds() < before + 0.01 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0 && Meter::start().by_others() >= 0.0);
    }
}
