//! The caches of the processor, as the system describes them.

use std::fs;
use std::path::Path;

/// What a launch may count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caches {
    /// Bytes of the second level that each thread has to itself.
    pub(super) own_bytes: usize,
    /// Bytes of the last level of all threads together.
    pub(super) last_bytes: usize,
}

/// One level of the caches of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    number: u32,
    bytes: usize,
    /// CPUs that use it together.
    sharers: usize,
}

/// What is assumed where the system doesn't tell.
const USUAL: [Level; 2] =
    [Level { number: 2, bytes: 512 << 10, sharers: 1 }, Level { number: 3, bytes: 16 << 20, sharers: 8 }];

impl Caches {
    /// What `threads` threads have of the caches of as many CPUs as there are threads in all devices.
    pub(super) fn of_threads(threads: usize, all: usize) -> Self {
        Self::of_levels(&levels(Path::new("/sys/devices/system/cpu/cpu0/cache")), all).share(threads, all)
    }

    /// Devices that share a last level find no more of it than they would leave to each other.
    fn share(self, threads: usize, all: usize) -> Self {
        Self { last_bytes: (self.last_bytes as u128 * threads as u128 / all.max(1) as u128) as usize, ..self }
    }

    fn of_levels(levels: &[Level], threads: usize) -> Self {
        let levels = if levels.is_empty() { &USUAL } else { levels };
        let nearest = |level: &&Level| level.number.abs_diff(2);
        let own = levels.iter().min_by_key(nearest).unwrap_or(&USUAL[0]);
        let last = levels.iter().max_by_key(|level| level.number).unwrap_or(&USUAL[1]);
        Self { own_bytes: own.bytes / own.sharers, last_bytes: last.bytes * threads.div_ceil(last.sharers) }
    }
}

/// The levels that hold data, from the folder of a CPU; none where there is no such folder.
fn levels(folder: &Path) -> Vec<Level> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| level(&entry.path())).collect()
}

fn level(folder: &Path) -> Option<Level> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned());
    if text("type")? == "Instruction" {
        return None;
    }
    let sharers = text("shared_cpu_list").and_then(|list| count(&list)).unwrap_or(1).max(1);
    let bytes = bytes(&text("size")?).filter(|&bytes| bytes > 0)?;
    Some(Level { number: text("level")?.parse().ok()?, bytes, sharers })
}

/// The bytes that `48K` or `32M` stands for.
fn bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// The number of CPUs in a list such as `0-3,8,10-11`.
fn count(list: &str) -> Option<usize> {
    let run = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        last.checked_sub(first).map(|more| more + 1)
    };
    list.split(',').map(run).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    const LEVELS: [Level; 3] = [
        Level { number: 1, bytes: 48 << 10, sharers: 2 },
        Level { number: 2, bytes: 1 << 20, sharers: 2 },
        Level { number: 3, bytes: 32 << 20, sharers: 16 },
    ];

    #[test]
    fn threads_share_what_their_cpus_share() {
        let check = |levels: &[Level], threads, own_bytes, last_bytes| {
            assert_eq!(Caches::of_levels(levels, threads), Caches { own_bytes, last_bytes });
        };
        check(&LEVELS, 1, 512 << 10, 32 << 20);
        check(&LEVELS, 17, 512 << 10, 64 << 20);
        check(&LEVELS[..2], 4, 512 << 10, 2 << 20);
        check(&LEVELS[..1], 2, 24 << 10, 48 << 10);
        check(&[], 9, 512 << 10, 32 << 20);
        let all = Caches::of_levels(&LEVELS, 4);
        assert_eq!(all.share(4, 4), all);
        assert_eq!(all.share(1, 4), Caches { own_bytes: 512 << 10, last_bytes: 8 << 20 });
    }

    #[test]
    fn the_system_is_understood() {
        let folder = Folder::new("caches");
        let root = folder.path("cache");
        for (index, [level, kind, size, cpus]) in [
            ["1", "Data", "48K", "0-1"],
            ["1", "Instruction", "32K", "0-1"],
            ["2", "Unified", "1024K", "0,8"],
            ["3", "Unified", "32M", "0-3,8-11"],
            ["4", "Unified", "unknown", "0"],
        ]
        .into_iter()
        .enumerate()
        {
            let index = root.join(format!("index{index}"));
            fs::create_dir_all(&index).unwrap();
            for (file, text) in [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", cpus)] {
                fs::write(index.join(file), format!("{text}\n")).unwrap();
            }
        }
        fs::write(root.join("uevent"), "").unwrap();
        let mut found = levels(&root);
        found.sort_by_key(|level| level.number);
        let [first, second, third] = LEVELS;
        assert_eq!(found, [first, second, Level { sharers: 8, ..third }]);
        assert_eq!(levels(&folder.path("nothing")), []);
    }

    #[test]
    fn sizes_and_lists_are_read_or_refused() {
        assert_eq!(
            ["64", "64K", "2M", "1G", "", "K", "3T"].map(bytes),
            [Some(64), Some(64 << 10), Some(2 << 20), Some(1 << 30), None, None, None]
        );
        assert_eq!(
            ["0", "0-1", "0-3,8,10-11", "", "1-", "3-1"].map(count),
            [Some(1), Some(2), Some(7), None, None, None]
        );
    }

    #[test]
    fn this_machine_has_caches() {
        let caches = Caches::of_threads(1, 1);
        assert!(caches.own_bytes >= 4 << 10 && caches.last_bytes >= caches.own_bytes, "{caches:?}");
    }
}
