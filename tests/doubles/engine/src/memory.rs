//! The memory of the devices and pinned memory of the host: real memory at addresses that are used once.
//!
//! Each owner has a range of addresses of its own that can't be touched until it is given out. Between two allocations there is
//! a page that nobody may touch, and what was freed can't be touched any more. Fresh memory holds no zeroes, but not-a-numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::fault::{Failure, Kind, Outcome};
use crate::settings::Peers;
use crate::{Machine, schedule};

/// Addresses of each owner: more than a test ever allocates, as none is used twice.
const ARENA_BYTES: u64 = 1 << 38;

const PAGE: u64 = 4096;

/// Drivers give addresses that are multiples of this.
const ALIGNMENT: u64 = 256;

/// All ones: not a number, whatever the width.
const FRESH: u8 = 0xFF;

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A device's.
    Device(usize),
    /// The host's, given out as pinned memory.
    Pinned,
    /// The host's, pinned later.
    Registered,
}

impl Owner {
    /// Whether it is memory of the host.
    pub fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Registered)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => write!(f, "device {device}"),
            Self::Pinned | Self::Registered => f.write_str("pinned memory of the host"),
        }
    }
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory that the machine gave out, or pinned.
    Known {
        /// Whose.
        owner: Owner,
        /// The first address of the allocation.
        start: u64,
        /// Its size.
        bytes: u64,
        /// How far in the address lies.
        offset: u64,
    },
    /// Memory that was given back.
    Freed(Owner),
    /// A gap between allocations, or what was never given out.
    Gap(Owner),
    /// Ordinary memory of the host, or nothing.
    Unknown,
}

/// Memory that may be touched around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
}

#[derive(Clone, Copy)]
struct Allocation {
    bytes: u64,
    owner: Owner,
}

struct Arena {
    start: u64,
    next: u64,
    owner: Owner,
}

impl Arena {
    fn new(owner: Owner) -> Self {
        // SAFETY: the system chooses where; nothing that exists is touched.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                ARENA_BYTES as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert!(start != libc::MAP_FAILED, "no addresses for {owner}: {}", std::io::Error::last_os_error());
        Self { start: start as u64, next: start as u64 + PAGE, owner }
    }

    fn end(&self) -> u64 {
        self.start + ARENA_BYTES
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and the machine with all its work is gone.
        unsafe { libc::munmap(self.start as *mut libc::c_void, ARENA_BYTES as usize) };
    }
}

/// All memory of a machine.
pub(crate) struct Memory {
    /// The devices', then the host's.
    arenas: Vec<Arena>,
    live: BTreeMap<u64, Allocation>,
    freed: BTreeMap<u64, Allocation>,
    used: Vec<u64>,
    limit: u64,
    /// Who may reach whom.
    peers: BTreeSet<(usize, usize)>,
}

impl Memory {
    pub(crate) fn new(devices: usize, limit: u64) -> Self {
        let owners = (0..devices).map(Owner::Device).chain([Owner::Pinned]);
        Self {
            arenas: owners.map(Arena::new).collect(),
            live: BTreeMap::new(),
            freed: BTreeMap::new(),
            used: vec![0; devices],
            limit,
            peers: BTreeSet::new(),
        }
    }

    fn arena(&mut self, owner: Owner) -> &mut Arena {
        let last = self.arenas.len() - 1;
        &mut self.arenas[if let Owner::Device(device) = owner { device } else { last }]
    }

    fn alloc(&mut self, owner: Owner, bytes: u64) -> Outcome<u64> {
        if bytes == 0 {
            return Err(Failure::misuse(Kind::InvalidValue, "an allocation of no bytes"));
        }
        let full = || Failure::new(Kind::OutOfMemory, format!("no room for {bytes} bytes in {owner}"));
        if let Owner::Device(device) = owner
            && bytes > self.limit - self.used[device]
        {
            return Err(full());
        }
        let arena = self.arena(owner);
        let room = bytes.div_ceil(PAGE) * PAGE;
        if room > arena.end() - arena.next - PAGE {
            return Err(full());
        }
        let pages = arena.next;
        // SAFETY: the pages lie in the arena, and nobody has them yet.
        let failed =
            unsafe { libc::mprotect(pages as *mut libc::c_void, room as usize, libc::PROT_READ | libc::PROT_WRITE) };
        if failed != 0 {
            return Err(full());
        }
        arena.next += room + PAGE;
        // As near to the page behind as alignment allows, so that what leaves the allocation is noticed.
        let start = pages + (room - bytes.div_ceil(ALIGNMENT) * ALIGNMENT);
        // SAFETY: the bytes lie in the pages that can be written since a moment ago.
        unsafe { std::ptr::write_bytes(start as *mut u8, FRESH, bytes as usize) };
        self.live.insert(start, Allocation { bytes, owner });
        if let Owner::Device(device) = owner {
            self.used[device] += bytes;
        }
        Ok(start)
    }

    fn free(&mut self, start: u64) {
        let Some(allocation) = self.live.remove(&start) else { return };
        if allocation.owner != Owner::Registered {
            let first = start / PAGE * PAGE;
            let room = (start + allocation.bytes).div_ceil(PAGE) * PAGE - first;
            // SAFETY: the pages are this allocation's alone.
            unsafe {
                libc::madvise(first as *mut libc::c_void, room as usize, libc::MADV_DONTNEED);
                libc::mprotect(first as *mut libc::c_void, room as usize, libc::PROT_NONE);
            }
            self.freed.insert(start, allocation);
        }
        if let Owner::Device(device) = allocation.owner {
            self.used[device] -= allocation.bytes;
        }
    }

    /// Frees all that a device has.
    pub(crate) fn forget(&mut self, device: usize) {
        let own = |(_, allocation): &(&u64, &Allocation)| allocation.owner == Owner::Device(device);
        let starts: Vec<u64> = self.live.iter().filter(own).map(|(start, _)| *start).collect();
        starts.into_iter().for_each(|start| self.free(start));
        self.peers.retain(|(from, to)| *from != device && *to != device);
    }

    /// What lies at an address.
    pub(crate) fn place(&self, address: u64) -> Place {
        let at = |table: &BTreeMap<u64, Allocation>| {
            let (start, found) = table.range(..=address).next_back()?;
            (address < start + found.bytes).then_some((*start, *found))
        };
        if let Some((start, Allocation { bytes, owner })) = at(&self.live) {
            return Place::Known { owner, start, bytes, offset: address - start };
        }
        if let Some((_, allocation)) = at(&self.freed) {
            return Place::Freed(allocation.owner);
        }
        let arena = self.arenas.iter().find(|arena| (arena.start..arena.end()).contains(&address));
        arena.map_or(Place::Unknown, |arena| Place::Gap(arena.owner))
    }

    /// The owner of `bytes` at an address, `None` for ordinary memory of the host. What leaves its allocation or was freed is a
    /// mistake.
    pub(crate) fn owner(&self, address: u64, bytes: u64) -> Outcome<Option<Owner>> {
        let wrong = |message: String| Err(Failure::misuse(Kind::InvalidValue, message));
        if address == 0 {
            return wrong("a null pointer".into());
        }
        let Some(end) = address.checked_add(bytes) else {
            return wrong(format!("{bytes} bytes at {address:#x} go beyond all addresses"));
        };
        match self.place(address) {
            Place::Known { owner, start, bytes: size, .. } if end > start + size => wrong(format!(
                "{bytes} bytes at {address:#x} go {} bytes beyond their allocation on {owner}",
                end - start - size
            )),
            Place::Known { owner, .. } => Ok(Some(owner)),
            Place::Freed(owner) => wrong(format!("{address:#x} was freed ({owner})")),
            Place::Gap(owner) => wrong(format!("{address:#x} is no memory that was given out ({owner})")),
            Place::Unknown => match self.live.range(address..end).next() {
                Some((start, _)) => {
                    wrong(format!("{bytes} bytes at {address:#x} reach into the allocation at {start:#x}"))
                }
                None => Ok(None),
            },
        }
    }

    /// Whether `device` may touch memory of `owner`.
    fn may_reach(&self, device: usize, owner: Owner) -> bool {
        match owner {
            Owner::Device(other) => other == device || self.peers.contains(&(device, other)),
            Owner::Pinned | Owner::Registered => true,
        }
    }

    fn reach(&self, device: usize, address: u64, bytes: u64, write: bool) -> Result<Extent, String> {
        let what = if write { "write" } else { "read" };
        let Some(end) = address.checked_add(bytes) else {
            return Err(format!("{what} of {bytes} bytes at {address:#x}, beyond all addresses"));
        };
        match self.place(address) {
            Place::Known { owner, .. } if !self.may_reach(device, owner) => {
                Err(format!("{what} at {address:#x} of {owner} by device {device} without access to its peer"))
            }
            Place::Known { owner, start, bytes: size, .. } if end > start + size => {
                Err(format!("{what} of {bytes} bytes at {address:#x} beyond its allocation on {owner}"))
            }
            Place::Known { start, bytes, .. } => Ok(Extent { start, end: start + bytes }),
            Place::Freed(owner) => Err(format!("{what} at {address:#x}, which was freed ({owner})")),
            Place::Gap(owner) => Err(format!("{what} at {address:#x}, between allocations of {owner}")),
            Place::Unknown => Err(format!("{what} at {address:#x}, which no device can reach")),
        }
    }
}

/// The memory as work on a device sees it while it runs.
pub struct View<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) device: usize,
}

impl View<'_> {
    /// The device that does the work.
    pub fn device(&self) -> usize {
        self.device
    }

    /// The memory around an address that the device may touch, if `bytes` there belong to it.
    pub fn reach(&self, address: u64, bytes: usize, write: bool) -> Result<Extent, String> {
        self.memory.reach(self.device, address, bytes as u64, write)
    }

    /// What lies at an address.
    pub fn place(&self, address: u64) -> Place {
        self.memory.place(address)
    }
}

impl Machine {
    /// Memory on a device.
    pub fn alloc(&self, device: usize, bytes: u64) -> Outcome<u64> {
        self.with(|state| {
            state.refuse_while_recording("an allocation")?;
            state.memory.alloc(Owner::Device(device), bytes)
        })
    }

    /// Gives memory of a device back, which no enqueued work may use.
    pub fn free(&self, device: usize, address: u64) -> Outcome<()> {
        self.free_of(address, |owner| owner == Owner::Device(device), &format!("memory of device {device}"))
    }

    /// Pinned memory of the host.
    pub fn alloc_host(&self, bytes: u64) -> Outcome<u64> {
        self.with(|state| {
            state.refuse_while_recording("an allocation")?;
            state.memory.alloc(Owner::Pinned, bytes)
        })
    }

    /// Gives pinned memory of the host back.
    pub fn free_host(&self, address: u64) -> Outcome<()> {
        self.free_of(address, |owner| owner == Owner::Pinned, "pinned memory")
    }

    fn free_of(&self, address: u64, is_right: impl Fn(Owner) -> bool, expected: &str) -> Outcome<()> {
        self.with(|state| {
            state.refuse_while_recording("giving memory back")?;
            let wrong = |message: String| Err(Failure::misuse(Kind::InvalidValue, message));
            match state.memory.place(address) {
                Place::Known { owner, .. } if !is_right(owner) => {
                    wrong(format!("{address:#x} is freed as {expected}, but belongs to {owner}"))
                }
                Place::Known { offset, .. } if offset != 0 => {
                    wrong(format!("{address:#x} is freed, but its allocation begins {offset} bytes before it"))
                }
                Place::Known { start, bytes, .. } => {
                    if let Some(name) = state.schedule.user(start, bytes, &state.lost) {
                        return wrong(format!("{address:#x} is freed while enqueued work ({name}) uses it"));
                    }
                    state.memory.free(start);
                    Ok(())
                }
                Place::Freed(_) => wrong(format!("{address:#x} is freed twice")),
                Place::Gap(_) | Place::Unknown => wrong(format!("{address:#x} is freed, but was never given out")),
            }
        })
    }

    /// Pins memory of the host that the caller has.
    pub fn register_host(&self, address: u64, bytes: u64) -> Outcome<()> {
        self.with(|state| {
            state.refuse_while_recording("pinning memory")?;
            if address == 0 || bytes == 0 {
                return Err(Failure::misuse(Kind::InvalidValue, "no memory to pin"));
            }
            if !matches!(state.memory.owner(address, bytes), Ok(None)) {
                return Err(Failure::misuse(
                    Kind::HostRegistered,
                    format!("{address:#x} is pinned already, or no memory of the host"),
                ));
            }
            state.memory.live.insert(address, Allocation { bytes, owner: Owner::Registered });
            Ok(())
        })
    }

    /// The end of [`register_host`](Self::register_host).
    pub fn unregister_host(&self, address: u64) -> Outcome<()> {
        self.with(|state| match state.memory.live.get(&address) {
            Some(Allocation { bytes, owner: Owner::Registered }) => {
                if let Some(name) = state.schedule.user(address, *bytes, &state.lost) {
                    let message = format!("{address:#x} is no longer pinned while enqueued work ({name}) uses it");
                    return Err(Failure::misuse(Kind::InvalidValue, message));
                }
                state.memory.free(address);
                Ok(())
            }
            _ => Err(Failure::misuse(Kind::HostNotRegistered, format!("{address:#x} isn't pinned"))),
        })
    }

    /// Bytes of a device that are free, and all.
    pub fn memory(&self, device: usize) -> [u64; 2] {
        let state = self.lock();
        [state.memory.limit - state.memory.used[device], state.memory.limit]
    }

    /// What lies at an address.
    pub fn place(&self, address: u64) -> Place {
        self.lock().memory.place(address)
    }

    /// The owner of `bytes` at an address, `None` for ordinary memory of the host; a range that leaves its allocation, a freed
    /// one and a null pointer are mistakes.
    pub fn owner(&self, address: u64, bytes: u64) -> Outcome<Option<Owner>> {
        self.with(|state| state.memory.owner(address, bytes))
    }

    /// What a kernel may touch by these arguments: all of each allocation that one of them points into.
    pub fn touches(&self, arguments: impl IntoIterator<Item = u64>) -> Vec<schedule::Touch> {
        let state = self.lock();
        let allocation = |address: u64| match state.memory.place(address) {
            Place::Known { start, bytes, .. } => Some(schedule::Touch { address: start, bytes, writes: true }),
            _ => None,
        };
        arguments.into_iter().filter_map(allocation).collect()
    }

    /// Whether a device can reach the memory of another one, once that is enabled.
    pub fn can_reach(&self, device: usize, peer: usize) -> bool {
        device != peer && self.settings.peers == Peers::All
    }

    /// Whether a device may reach the memory of another one now.
    pub fn reaches(&self, device: usize, peer: usize) -> bool {
        self.lock().memory.may_reach(device, Owner::Device(peer))
    }

    /// Lets a device reach the memory of another one.
    pub fn enable_peer(&self, device: usize, peer: usize) -> Outcome<()> {
        if device == peer {
            return Err(self.misuse(Kind::InvalidDevice, format!("device {device} is no peer of itself")));
        }
        if !self.can_reach(device, peer) {
            return Err(Failure::new(Kind::PeerUnsupported, format!("device {device} can't reach device {peer}")));
        }
        match self.lock().memory.peers.insert((device, peer)) {
            true => Ok(()),
            false => Err(Failure::new(Kind::PeerEnabled, format!("device {device} reaches device {peer} already"))),
        }
    }

    /// The end of [`enable_peer`](Self::enable_peer).
    pub fn disable_peer(&self, device: usize, peer: usize) -> Outcome<()> {
        match self.lock().memory.peers.remove(&(device, peer)) {
            true => Ok(()),
            false => Err(Failure::new(Kind::PeerNotEnabled, format!("device {device} doesn't reach device {peer}"))),
        }
    }
}
