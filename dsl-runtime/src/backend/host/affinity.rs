//! The CPUs that this process may use, and threads that stay on one of them. The mask of a thread is narrowed, never
//! widened.

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    /// A set of CPUs as the system stores it: one bit each.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(in crate::backend::host) struct Mask(Vec<u64>);

    impl Mask {
        /// The CPUs that the calling thread may run on.
        pub(in crate::backend::host) fn of_this_thread() -> io::Result<Self> {
            // The system refuses a mask that is shorter than its own: machines with many CPUs need a longer one.
            for words in [16_usize, 128, 1024] {
                let mut mask = vec![0_u64; words];
                // SAFETY: the buffer has the size that is given, and the system writes no further.
                let result = unsafe { libc::sched_getaffinity(0, words * 8, mask.as_mut_ptr().cast()) };
                if result == 0 {
                    return Ok(Self(mask));
                }
            }
            Err(io::Error::last_os_error())
        }

        pub(in crate::backend::host) fn only(cpu: usize) -> Self {
            let mut mask = vec![0; (cpu / 64 + 1).max(16)];
            mask[cpu / 64] = 1 << (cpu % 64);
            Self(mask)
        }

        pub(in crate::backend::host) fn cpus(&self) -> Vec<usize> {
            (0..self.0.len() * 64).filter(|&cpu| self.holds(cpu)).collect()
        }

        pub(in crate::backend::host) fn holds(&self, cpu: usize) -> bool {
            self.0.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
        }

        pub(in crate::backend::host) fn count(&self) -> u32 {
            self.0.iter().map(|word| word.count_ones()).sum()
        }

        /// Confines the calling thread.
        pub(in crate::backend::host) fn apply(&self) -> io::Result<()> {
            // SAFETY: the buffer has the size that is given, and the system only reads it.
            let result = unsafe { libc::sched_setaffinity(0, self.0.len() * 8, self.0.as_ptr().cast()) };
            if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    /// Other systems decide for themselves where a thread runs.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(in crate::backend::host) struct Mask;

    impl Mask {
        pub(in crate::backend::host) fn of_this_thread() -> io::Result<Self> {
            Ok(Self)
        }

        pub(in crate::backend::host) fn only(_: usize) -> Self {
            Self
        }

        pub(in crate::backend::host) fn cpus(&self) -> Vec<usize> {
            (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
        }

        pub(in crate::backend::host) fn holds(&self, _: usize) -> bool {
            true
        }

        /// One, so that nobody tries to narrow it.
        pub(in crate::backend::host) fn count(&self) -> u32 {
            1
        }

        pub(in crate::backend::host) fn apply(&self) -> io::Result<()> {
            Ok(())
        }
    }
}

use system::Mask;

/// The CPUs that the calling thread may run on; at least one.
pub(super) fn allowed_cpus() -> Vec<usize> {
    let cpus = Mask::of_this_thread().map(|mask| mask.cpus()).unwrap_or_default();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Confines the calling thread to a CPU for good. Where that isn't allowed the thread runs where it may.
pub(super) fn pin(cpu: usize) {
    let _ = Mask::only(cpu).apply();
}

/// The calling thread stays on a CPU until this is dropped, and then may run where it could before.
pub(super) struct Pinned {
    before: Option<Mask>,
}

impl Pinned {
    pub(super) fn to(cpu: usize) -> Self {
        let before = Mask::of_this_thread().ok().filter(|before| before.holds(cpu) && before.count() > 1);
        Self { before: before.filter(|_| Mask::only(cpu).apply().is_ok()) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = before.apply();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_gets_its_mask_back() {
        let before = allowed_cpus();
        for &cpu in &before {
            let pinned = Pinned::to(cpu);
            assert_eq!(allowed_cpus(), [cpu]);
            drop(pinned);
            assert_eq!(allowed_cpus(), before);
        }
    }

    #[test]
    fn a_cpu_outside_the_mask_changes_nothing() {
        let before = allowed_cpus();
        let outside = (0..4096).find(|cpu| !before.contains(cpu)).unwrap();
        let pinned = Pinned::to(outside);
        assert_eq!(allowed_cpus(), before);
        drop(pinned);
        assert_eq!(allowed_cpus(), before);
    }
}
