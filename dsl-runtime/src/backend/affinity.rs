//! The CPUs that this process may use, and threads that stay on some of them. The mask of a thread is narrowed, never
//! widened.

use std::cell::Cell;

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    /// A set of CPUs as the system stores it: one bit each.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) struct Mask(Vec<u64>);

    impl Mask {
        /// The CPUs that the calling thread may run on.
        pub(super) fn of_this_thread() -> io::Result<Self> {
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

        pub(super) fn only(cpu: usize) -> Self {
            let mut mask = vec![0; (cpu / 64 + 1).max(16)];
            mask[cpu / 64] = 1 << (cpu % 64);
            Self(mask)
        }

        pub(super) fn cpus(&self) -> Vec<usize> {
            (0..self.0.len() * 64).filter(|&cpu| self.holds(cpu)).collect()
        }

        fn holds(&self, cpu: usize) -> bool {
            self.0.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
        }

        /// Those of the CPUs that are in it.
        pub(super) fn among(&self, cpus: &[usize]) -> Self {
            let mut mask = vec![0; self.0.len()];
            cpus.iter().filter(|&&cpu| self.holds(cpu)).for_each(|cpu| mask[cpu / 64] |= 1 << (cpu % 64));
            Self(mask)
        }

        pub(super) fn is_empty(&self) -> bool {
            self.0.iter().all(|word| *word == 0)
        }

        /// Confines the calling thread.
        pub(super) fn apply(&self) -> io::Result<()> {
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
    pub(super) struct Mask;

    impl Mask {
        pub(super) fn of_this_thread() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn only(_: usize) -> Self {
            Self
        }

        pub(super) fn cpus(&self) -> Vec<usize> {
            (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
        }

        /// The same, so that nobody tries to narrow it.
        pub(super) fn among(&self, _: &[usize]) -> Self {
            Self
        }

        pub(super) fn is_empty(&self) -> bool {
            false
        }

        pub(super) fn apply(&self) -> io::Result<()> {
            Ok(())
        }
    }
}

use system::Mask;

thread_local!(
    /// The one CPU to which this module has confined the thread.
    static HELD: Cell<Option<usize>> = const { Cell::new(None) }
);

/// The CPUs that the calling thread may run on; at least one.
pub fn allowed_cpus() -> Vec<usize> {
    let cpus = Mask::of_this_thread().map(|mask| mask.cpus()).unwrap_or_default();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Confines the calling thread to a CPU for good. Where that isn't allowed the thread runs where it may.
pub(crate) fn pin(cpu: usize) {
    let is_pinned = Mask::only(cpu).apply().is_ok();
    HELD.set(is_pinned.then_some(cpu));
}

/// The calling thread stays on some CPUs until this is dropped, and then may run where it could before.
pub(crate) struct Pinned {
    before: Option<(Mask, Option<usize>)>,
}

impl Pinned {
    /// To one CPU. It costs nothing where the thread was confined to it already.
    pub(crate) fn to(cpu: usize) -> Self {
        Self::among(&[cpu])
    }

    /// To those of the CPUs on which it may run; where that are none, or all, nothing changes.
    pub(crate) fn among(cpus: &[usize]) -> Self {
        let is_held = HELD.get().is_some_and(|held| cpus == [held]);
        if cpus.is_empty() || is_held {
            return Self { before: None };
        }
        let confine = |before: Mask| {
            let mask = before.among(cpus);
            let is_confined = !mask.is_empty() && mask != before && mask.apply().is_ok();
            let only = || if let [only] = mask.cpus()[..] { Some(only) } else { None };
            is_confined.then(|| (before, HELD.replace(only())))
        };
        Self { before: Mask::of_this_thread().ok().and_then(confine) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some((before, held)) = &self.before {
            let _ = before.apply();
            HELD.set(*held);
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

    #[test]
    fn pins_are_nested_and_stay_within_each_other() {
        let before = allowed_cpus();
        let (first, last) = (before[0], before[before.len() - 1]);
        let outer = Pinned::among(&[last, 4000]);
        assert_eq!(allowed_cpus(), [last]);
        for inner in [first, last] {
            let _inner = Pinned::to(inner);
            assert_eq!(allowed_cpus(), [last]);
        }
        assert_eq!(allowed_cpus(), [last]);
        drop(outer);
        assert_eq!(allowed_cpus(), before);
        for all in [Pinned::among(&before), Pinned::among(&[])] {
            assert_eq!(allowed_cpus(), before);
            let inner = Pinned::to(first);
            assert_eq!(allowed_cpus(), [first]);
            drop(inner);
            drop(all);
        }
        assert_eq!(allowed_cpus(), before);
    }
}
