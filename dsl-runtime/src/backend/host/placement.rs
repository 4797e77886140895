//! Which CPUs the threads of each device run on.

use std::fmt;

use super::split::share;
use crate::backend::Affinity;
use crate::placement::{Home, Near, Sys, list_cpus};

/// The CPUs of the threads of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// One for each thread.
    pub(super) cpus: Vec<usize>,
    /// All CPUs of the device, of which some may have no thread.
    pub(super) own: Vec<usize>,
    /// Whether the threads stay on them; otherwise they are only counted.
    pub(super) pinned: bool,
    /// Whether threads, of this device or of others, have to share a CPU.
    pub(super) crowded: bool,
}

impl Placement {
    /// The threads of a single device, which has all CPUs.
    #[cfg(test)]
    pub(super) fn of_one(cpus: &[usize], threads: usize) -> Self {
        Self::of_devices(cpus, 1, Some(threads), Affinity::Near).swap_remove(0)
    }

    /// The CPUs shared out among `devices` devices, to each a run of about equally many; with fewer CPUs than devices
    /// some have the same one. A device has as many threads as CPUs, or `threads`, which take its CPUs in turn.
    pub(super) fn of_devices(cpus: &[usize], devices: usize, threads: Option<usize>, affinity: Affinity) -> Vec<Self> {
        let runs: Vec<_> = (0..devices).map(|device| run(cpus, devices, device)).collect();
        let all: usize = runs.iter().map(|run| threads.unwrap_or(run.len())).sum();
        let pinned = match affinity {
            Affinity::Near | Affinity::Far => true,
            Affinity::None => false,
        };
        let place = |run: &[usize]| Self {
            cpus: run.iter().copied().cycle().take(threads.unwrap_or(run.len())).collect(),
            own: run.to_vec(),
            pinned,
            crowded: all > cpus.len(),
        };
        runs.into_iter().map(place).collect()
    }

    /// How many threads there are, in words.
    pub(super) fn threads(&self) -> String {
        let count = self.cpus.len();
        format!("{count} thread{}", if count == 1 { "" } else { "s" })
    }

    /// Where threads that issue operations stay: on the device's own CPUs, or on that of its first thread if they do the
    /// work of that thread themselves.
    pub(super) fn home(&self, affinity: Affinity, sys: &Sys, allowed: &[usize], issuer_works: bool) -> Home {
        let near = Near::of_cpus(&self.own, sys);
        let home = Home::new(&near, affinity, sys, allowed);
        match self.cpu(0) {
            Some(first) if issuer_works && home.cpus == near.cpus => Home { cpus: vec![first], ..home },
            Some(_) | None => home,
        }
    }

    /// The CPU that a thread is to stay on.
    pub(super) fn cpu(&self, thread: usize) -> Option<usize> {
        self.pinned.then(|| self.cpus[thread])
    }
}

/// The CPUs of one of several devices.
fn run(cpus: &[usize], devices: usize, device: usize) -> &[usize] {
    if devices > cpus.len() {
        let cpu = device * cpus.len() / devices;
        return &cpus[cpu..=cpu];
    }
    let (first, end) = share(0, cpus.len(), devices, device);
    &cpus[first as usize..end as usize]
}

/// The number of threads and, if they stay there, their CPUs: `2 threads on CPUs 2-3`.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.threads())?;
        if !self.pinned {
            return Ok(());
        }
        let cpus = list_cpus(&self.cpus);
        let several = cpus.contains(['-', ',']);
        write!(f, " on CPU{} {cpus}", if several { "s" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn check(cpus: &[usize], devices: usize, threads: Option<usize>, expected: &[&str]) {
        let found = Placement::of_devices(cpus, devices, threads, Affinity::Near);
        assert_eq!(found.iter().map(Placement::to_string).collect::<Vec<_>>(), expected);
        let all: usize = found.iter().map(|place| place.cpus.len()).sum();
        assert!(found.iter().all(|place| place.crowded == (all > cpus.len())));
    }

    #[test]
    fn cpus_are_shared_out_in_runs_of_about_equally_many() {
        check(&[0, 1], 1, None, &["2 threads on CPUs 0-1"]);
        check(&[0, 1], 2, None, &["1 thread on CPU 0", "1 thread on CPU 1"]);
        check(
            &[2, 3, 5, 8, 9, 10, 11],
            3,
            None,
            &["3 threads on CPUs 2-3, 5", "2 threads on CPUs 8-9", "2 threads on CPUs 10-11"],
        );
        check(&[4], 1, None, &["1 thread on CPU 4"]);
    }

    #[test]
    fn devices_without_a_cpu_of_their_own_share_one() {
        let [a, b] = ["1 thread on CPU 4", "1 thread on CPU 6"];
        check(&[4, 6], 3, None, &[a, a, b]);
        check(&[4, 6], 5, None, &[a, a, a, b, b]);
    }

    #[test]
    fn threads_take_the_cpus_of_their_device_in_turn() {
        check(&[0, 1, 2, 3], 2, Some(1), &["1 thread on CPU 0", "1 thread on CPU 2"]);
        check(&[0, 1, 2, 3], 2, Some(3), &["3 threads on CPUs 0-1", "3 threads on CPUs 2-3"]);
        check(&[0, 1], 1, Some(1), &["1 thread on CPU 0"]);
        assert_eq!(Placement::of_one(&[3, 7], 3).cpus, [3, 7, 3]);
    }

    #[test]
    fn threads_that_are_not_pinned_have_no_cpu() {
        let found = Placement::of_devices(&[0, 1], 2, None, Affinity::None);
        assert_eq!(found[1].to_string(), "1 thread");
        assert_eq!([found[1].cpu(0), Placement::of_one(&[5], 1).cpu(0)], [None, Some(5)]);
    }

    #[test]
    fn who_issues_stays_where_the_device_works_unless_that_is_not_wished() {
        let folder = Folder::new("host-home");
        for (node, cpus) in [(0, "0-3"), (1, "4-7")] {
            let path = folder.path(&format!("devices/system/node/node{node}"));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("cpulist"), cpus).unwrap();
        }
        let (sys, allowed) = (Sys::new(folder.path("")), [0, 1, 2, 3, 4, 5, 6, 7]);
        let check = |affinity, issuer_works, expected: [&str; 2]| {
            let places = Placement::of_devices(&allowed, 2, None, affinity);
            let homes = places.iter().map(|place| place.home(affinity, &sys, &allowed, issuer_works).to_string());
            assert_eq!(homes.collect::<Vec<_>>(), expected, "{affinity:?}");
        };
        let [low, high] = ["CPUs 0-3, memory of node 0", "CPUs 4-7, memory of node 1"];
        check(Affinity::Near, false, [low, high]);
        check(Affinity::Near, true, ["CPU 0, memory of node 0", "CPU 4, memory of node 1"]);
        for issuer_works in [false, true] {
            check(Affinity::Far, issuer_works, [high, low]);
            check(Affinity::None, issuer_works, ["anywhere"; 2]);
        }
        // One device that has all CPUs has no far ones.
        let home = Placement::of_one(&allowed, 8).home(Affinity::Far, &sys, &allowed, false);
        assert_eq!((home.cpus.as_slice(), home.note.is_some()), (&allowed[..], true));
    }
}
