//! Memory of the host: how much there is, how much is free, and blocks that are touched first by the threads that use
//! them.

use std::fs;
use std::io;
use std::path::Path;
use std::ptr::NonNull;

use crate::backend::FreeMemory;

/// The memory of the machine in bytes; 0 when the system doesn't tell.
pub fn total_memory() -> u64 {
    meminfo(Path::new("/"), "MemTotal:").unwrap_or(0)
}

/// What this process can still allocate: the least of the machine's available memory and the limits of its control
/// groups.
pub fn free_memory() -> Option<FreeMemory> {
    free_memory_under(Path::new("/"))
}

/// [`free_memory`] with another root folder, for tests.
fn free_memory_under(root: &Path) -> Option<FreeMemory> {
    let machine = meminfo(root, "MemAvailable:")
        .map(|bytes| FreeMemory { bytes, limit: "memory available on this machine".into() });
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_free(root, line));
    machine.into_iter().chain(limits).min_by_key(|free| free.bytes)
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(root: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The files of a version of control groups.
struct GroupFiles {
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// Cache that the kernel gives back before it refuses memory.
    reclaimable: &'static str,
}

const VERSION_1: GroupFiles = GroupFiles {
    mount: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

const VERSION_2: GroupFiles =
    GroupFiles { mount: "sys/fs/cgroup", limit: "memory.max", usage: "memory.current", reclaimable: "inactive_file" };

/// What the group in a line `number:controllers:path` of `/proc/self/cgroup`, and the groups above it, leave free.
fn group_free(root: &Path, line: &str) -> Option<FreeMemory> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let files = match controllers {
        "" => VERSION_2,
        _ if controllers.split(',').any(|controller| controller == "memory") => VERSION_1,
        _ => return None,
    };
    let mount = root.join(files.mount);
    // In a container the path may be the host's, which isn't visible: the mount itself is then the group.
    let inner = mount.join(path.trim_start_matches('/'));
    let start = if inner.is_dir() { inner } else { mount.clone() };
    let levels = start.ancestors().take_while(|level| level.starts_with(&mount)).map(Path::to_path_buf);
    levels.filter_map(|level| level_free(&level, &files)).min_by_key(|free| free.bytes)
}

fn level_free(level: &Path, files: &GroupFiles) -> Option<FreeMemory> {
    let number = |name: &str| fs::read_to_string(level.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(files.limit)?;
    let usage = number(files.usage)?;
    let stat = fs::read_to_string(level.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix(files.reclaimable)?.trim().parse::<u64>().ok());
    let held = usage.saturating_sub(cached.unwrap_or(0));
    Some(FreeMemory { bytes: limit.saturating_sub(held), limit: "limit of the process's control group".into() })
}

/// Zeroed memory, page aligned and staggered, given back on drop.
#[derive(Debug)]
pub(super) struct Block {
    base: NonNull<u8>,
    bytes: usize,
    mapping: Mapping,
}

// SAFETY: a block is plain memory that belongs to no thread; who may use it when is decided by the device that owns it.
unsafe impl Send for Block {}
// SAFETY: as above; a shared block gives out nothing but its address.
unsafe impl Sync for Block {}

impl Block {
    /// A block of `bytes` bytes; the `number` of the block staggers its start, so that equal cells of several fields
    /// don't share cache sets.
    pub(super) fn new(bytes: usize, number: u64) -> io::Result<Self> {
        // Pages and lines move both: 15 places of 4096 + 256 bytes.
        let stagger = (number % 15) as usize * 4352;
        let wanted = bytes.max(1).checked_add(stagger).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping::new(wanted)?;
        // SAFETY: the mapping has room for `stagger + bytes` bytes.
        let base = unsafe { mapping.start().add(stagger) };
        Ok(Self { base, bytes, mapping })
    }

    /// The first byte.
    pub(super) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The number of bytes.
    pub(super) fn bytes(&self) -> usize {
        debug_assert!(self.bytes <= self.mapping.bytes());
        self.bytes
    }
}

#[cfg(target_os = "linux")]
mod mapping {
    use std::io;
    use std::ptr::{NonNull, null_mut};

    const HUGE_PAGE: usize = 2 << 20;

    /// Anonymous pages that nothing has touched.
    #[derive(Debug)]
    pub(super) struct Mapping {
        start: NonNull<u8>,
        bytes: usize,
    }

    impl Mapping {
        pub(super) fn new(bytes: usize) -> io::Result<Self> {
            let huge = bytes >= 2 * HUGE_PAGE;
            let slack = if huge { HUGE_PAGE } else { 0 };
            let length = bytes.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no other memory.
            let start = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
            if huge {
                // Huge pages are a wish: where they aren't offered the call fails and nothing is lost.
                // SAFETY: the range is the mapping made above.
                unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_HUGEPAGE) };
            }
            Ok(Self { start, bytes: length })
        }

        /// The first byte that is used: at a huge page where there is room for one.
        pub(super) fn start(&self) -> NonNull<u8> {
            let skip = if self.bytes >= 3 * HUGE_PAGE { self.start.align_offset(HUGE_PAGE) } else { 0 };
            // SAFETY: such mappings were made longer by a huge page than asked for.
            unsafe { self.start.add(skip) }
        }

        pub(super) fn bytes(&self) -> usize {
            self.bytes
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: exactly what was mapped, and nothing refers to it any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod mapping {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    /// Zeroed memory of the allocator.
    #[derive(Debug)]
    pub(super) struct Mapping {
        start: NonNull<u8>,
        layout: Layout,
    }

    impl Mapping {
        pub(super) fn new(bytes: usize) -> io::Result<Self> {
            let layout = Layout::from_size_align(bytes, 4096).map_err(|_| io::ErrorKind::OutOfMemory)?;
            // SAFETY: the size isn't zero.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Self { start, layout })
        }

        pub(super) fn start(&self) -> NonNull<u8> {
            self.start
        }

        pub(super) fn bytes(&self) -> usize {
            self.layout.size()
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: exactly what was allocated, and nothing refers to it any more.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

use mapping::Mapping;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A made file system with the given files.
    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("polyhalo-memory-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn check(name: &str, files: &[(&str, &str)], expected: Option<u64>) {
        let root = tree(name, files);
        let free = free_memory_under(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(free.map(|free| free.bytes), expected, "{name}");
    }

    const AVAILABLE: (&str, &str) = ("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:    500 kB\n");

    #[test]
    fn without_groups_the_machine_decides() {
        check("machine", &[AVAILABLE], Some(500 << 10));
        check("nothing", &[("proc/other", "")], None);
    }

    #[test]
    fn the_tightest_group_above_the_process_decides() {
        let group = ("proc/self/cgroup", "0::/outer/inner\n");
        let inner =
            [("sys/fs/cgroup/outer/inner/memory.max", "max\n"), ("sys/fs/cgroup/outer/inner/memory.current", "7\n")];
        let outer = [
            ("sys/fs/cgroup/outer/memory.max", "100000\n"),
            ("sys/fs/cgroup/outer/memory.current", "70000\n"),
            ("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 20000\nactive_file 3\n"),
        ];
        check("v2", &[&[AVAILABLE, group], &inner[..], &outer[..]].concat(), Some(50_000));
    }

    #[test]
    fn the_first_version_of_groups_counts_and_an_invisible_path_means_the_mount() {
        let files = [
            AVAILABLE,
            ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"),
        ];
        check("v1", &files, Some(0));
    }

    #[test]
    fn blocks_are_zero_writable_and_staggered() {
        for bytes in [1, 4096, 100_000, (4 << 20) + 64, 9 << 20] {
            let blocks: Vec<_> = (0..3).map(|number| Block::new(bytes, number).unwrap()).collect();
            for block in &blocks {
                assert_eq!(block.bytes(), bytes);
                assert_eq!(block.base() as usize % 64, 0);
                // SAFETY: the block has `bytes` bytes and nothing else refers to it.
                let all = unsafe { std::slice::from_raw_parts_mut(block.base(), bytes) };
                assert!(all.iter().all(|&byte| byte == 0));
                all.fill(7);
            }
            let places: std::collections::BTreeSet<_> =
                blocks.iter().map(|block| block.base() as usize % 4096).collect();
            assert_eq!(places.len(), 3);
        }
    }

    #[test]
    fn memory_that_no_machine_has_is_an_error() {
        assert!(Block::new(usize::MAX - 5, 3).is_err());
        assert!(Block::new(1 << 60, 0).is_err());
    }
}
