//! Wishes for the NUMA node on which memory lies.

use std::io;

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    /// More nodes than any system has.
    const MOST_NODES: usize = 1 << 16;

    pub(super) fn page_bytes() -> Option<usize> {
        // SAFETY: the call only asks.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
    }

    /// Sets the policy of whole pages that aren't touched yet, with one node or none.
    pub(super) fn bind(start: *mut u8, bytes: usize, policy: libc::c_int, node: Option<usize>) -> io::Result<()> {
        if node.is_some_and(|node| node >= MOST_NODES) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut mask = vec![0_u64; node.map_or(0, |node| node / 64 + 1)];
        node.into_iter().for_each(|node| mask[node / 64] = 1 << (node % 64));
        // The system looks at one bit less than it is told.
        let bits = if mask.is_empty() { 0 } else { mask.len() * 64 + 1 };
        let flags = 0_usize;
        // SAFETY: a policy changes where pages come from and nothing that a program can see; the mask has so many bits.
        let result = unsafe { libc::syscall(libc::SYS_mbind, start, bytes, policy, mask.as_ptr(), bits, flags) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) use libc::{MPOL_DEFAULT, MPOL_PREFERRED};
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    pub(super) fn page_bytes() -> Option<usize> {
        None
    }

    pub(super) fn bind(_: *mut u8, _: usize, _: i32, _: Option<usize>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) const MPOL_DEFAULT: i32 = 0;
    pub(super) const MPOL_PREFERRED: i32 = 1;
}

/// The size of a page; a guess where the system doesn't tell.
pub(super) fn page_bytes() -> usize {
    system::page_bytes().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

/// Pages that are touched first from now on come from the node, or from another one when it has no room. The memory
/// consists of whole pages.
pub(super) fn prefer(start: *mut u8, bytes: usize, node: usize) -> io::Result<()> {
    system::bind(start, bytes, system::MPOL_PREFERRED, Some(node))
}

/// As if [`prefer`] had never been called.
pub(super) fn forget(start: *mut u8, bytes: usize) -> io::Result<()> {
    system::bind(start, bytes, system::MPOL_DEFAULT, None)
}
