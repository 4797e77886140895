//! Loads and stores: where an address may point, and what is wrong with one.

use std::collections::BTreeMap;

use crate::lanes::{LANES, Lanes, Slot};
use crate::syntax::Table;

/// Addresses from `start` up to, but without, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
}

impl Extent {
    fn holds(self, address: u64, bytes: u64) -> bool {
        address >= self.start && address.checked_add(bytes).is_some_and(|end| end <= self.end)
    }
}

/// The memory that kernels may touch.
///
/// # Safety
/// An extent that was handed out stays readable, and writable if that was asked for, by ordinary loads and stores at its
/// addresses until the run ends, and nothing else writes what the kernel touches meanwhile.
pub unsafe trait Memory {
    /// The allocation around `address`, of which `bytes` from there on are about to be read, or written if `write`. An error
    /// says why that must not happen.
    fn reach(&self, address: u64, bytes: usize, write: bool) -> Result<Extent, String>;
}

/// How often each thread loaded from each address: `[thread, address]`, where threads are numbered along x first, through
/// all blocks in turn.
pub type Loads = BTreeMap<[u64; 2], u32>;

/// Where the memory of a thread itself lies: no CPU of today has such addresses.
pub(crate) const WINDOW: u64 = 0x7000_0000_0000_0000;

/// The tables of a module, at addresses that don't change.
#[derive(Debug)]
pub(crate) struct Tables {
    words: Vec<[u64; 2]>,
    /// Names, with the first byte of each.
    places: BTreeMap<String, usize>,
}

impl Tables {
    pub(crate) fn new(tables: &[Table]) -> Result<Tables, String> {
        let mut bytes = Vec::new();
        let mut places = BTreeMap::new();
        for Table { name, alignment, bytes: values } in tables {
            if *alignment > 16 {
                return Err(format!("the table `{name}` wants to lie at multiples of {alignment}"));
            }
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            places.insert(name.clone(), bytes.len());
            bytes.extend_from_slice(values);
        }
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        let word = |eight: &[u8]| u64::from_ne_bytes(eight.try_into().expect("chunks have eight bytes"));
        let words = bytes.chunks_exact(16).map(|chunk| [word(&chunk[..8]), word(&chunk[8..])]).collect();
        Ok(Tables { words, places })
    }

    /// The address of a table.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        let place = self.places.get(name)?;
        Some(self.words.as_ptr().expose_provenance() as u64 + *place as u64)
    }

    fn extent(&self) -> Extent {
        let start = self.words.as_ptr().expose_provenance() as u64;
        Extent { start, end: start + size_of_val(self.words.as_slice()) as u64 }
    }
}

/// Which memory an access means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// That of the device, and tables.
    Global,
    /// That of the thread.
    Local,
    /// Either.
    Any,
}

/// A load or a store.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) run: Run,
    pub(crate) space: Space,
    /// The register with the address.
    pub(crate) address: Slot,
    /// The register that is loaded or stored.
    pub(crate) value: Slot,
    /// What is added to the address.
    pub(crate) offset: i64,
    /// What the address must be a multiple of.
    pub(crate) alignment: u64,
    /// The number among the accesses of the kernel.
    pub(crate) site: usize,
    pub(crate) bytes: usize,
    pub(crate) is_store: bool,
}

/// # Safety
/// The slots lie in the memory of the lanes, each with room for its type.
pub(crate) type Run = unsafe fn(&Access, &Lanes, &mut View<'_>) -> Result<(), Trouble>;

/// Why an access failed.
pub(crate) struct Trouble {
    pub(crate) lane: usize,
    pub(crate) address: u64,
    pub(crate) reason: String,
}

/// All memory that a run sees.
pub(crate) struct View<'r> {
    pub(crate) memory: &'r dyn Memory,
    pub(crate) tables: Extent,
    /// For each access the allocation that it met last.
    pub(crate) met: Vec<Extent>,
    /// The memory of the threads themselves, one after the other.
    pub(crate) local: *mut u8,
    /// Of each thread.
    pub(crate) local_bytes: usize,
}

impl<'r> View<'r> {
    pub(crate) fn new(memory: &'r dyn Memory, tables: &Tables, sites: usize) -> View<'r> {
        View {
            memory,
            tables: tables.extent(),
            met: vec![Extent::default(); sites],
            local: std::ptr::null_mut(),
            local_bytes: 0,
        }
    }

    /// The memory behind one address.
    fn pointer(&mut self, access: &Access, address: u64, lane: usize) -> Result<*mut u8, String> {
        let bytes = access.bytes as u64;
        if address & (access.alignment - 1) != 0 {
            return Err(format!("the address is no multiple of {}", access.alignment));
        }
        let window = Extent { start: WINDOW, end: WINDOW + self.local_bytes as u64 };
        let is_local = access.space != Space::Global && window.holds(address, bytes);
        if is_local {
            let place = lane * self.local_bytes + (address - WINDOW) as usize;
            return Ok(self.local.wrapping_add(place));
        }
        if access.space == Space::Local {
            return Err("the address lies outside the memory of the thread".to_owned());
        }
        if !self.met[access.site].holds(address, bytes) {
            self.met[access.site] = self.reach(access, address)?;
        }
        Ok(pointer(address))
    }

    fn reach(&self, access: &Access, address: u64) -> Result<Extent, String> {
        let bytes = access.bytes as u64;
        if self.tables.holds(address, bytes) {
            return if access.is_store { Err("tables are not written".to_owned()) } else { Ok(self.tables) };
        }
        let extent = self.memory.reach(address, access.bytes, access.is_store)?;
        if extent.holds(address, bytes) {
            Ok(extent)
        } else {
            Err(format!("only {:#x} to {:#x} may be touched", extent.start, extent.end))
        }
    }
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Calls `f` with a pointer to the memory of each lane, once it is known to be accessible.
///
/// # Safety
/// The slot of the address has room for all lanes.
#[inline(always)]
unsafe fn each<M>(
    access: &Access,
    lanes: &Lanes,
    view: &mut View<'_>,
    f: impl Fn(*mut M, usize),
) -> Result<(), Trouble> {
    let addresses = lanes.at::<u64>(access.address);
    // SAFETY: the slot has room for all lanes, says the caller.
    let address = |lane: usize| unsafe { addresses.add(lane).read() }.wrapping_add_signed(access.offset);
    if lanes.mask == !0 && access.space == Space::Global {
        let (first, met) = (address(0), view.met[access.site]);
        let bytes = size_of::<M>() as u64;
        let is_aligned = first & (access.alignment - 1) == 0;
        // Neighbours in a row: the usual case, and vector instructions serve it.
        let astray =
            (0..LANES).fold(0, |astray, lane| astray | (address(lane) ^ first.wrapping_add(lane as u64 * bytes)));
        if astray == 0 && is_aligned && access.alignment == bytes && met.holds(first, LANES as u64 * bytes) {
            let start = pointer(first).cast::<M>();
            for lane in 0..LANES {
                f(start.wrapping_add(lane), lane);
            }
            return Ok(());
        }
    }
    let mut rest = lanes.mask;
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        let address = address(lane);
        let is_usual = access.space == Space::Global && address & (access.alignment - 1) == 0;
        let found = if is_usual && view.met[access.site].holds(address, size_of::<M>() as u64) {
            pointer(address)
        } else {
            view.pointer(access, address, lane).map_err(|reason| Trouble { lane, address, reason })?
        };
        f(found.cast(), lane);
    }
    Ok(())
}

/// A load of `M` that fills a register of `R`.
macro_rules! load {
    ($M:ty => $R:ty) => {{
        unsafe fn run(access: &Access, lanes: &Lanes, view: &mut View<'_>) -> Result<(), Trouble> {
            let value = lanes.at::<$R>(access.value);
            // SAFETY: `each` passes pointers to memory that `Memory` let this load have; the slots have room for all lanes.
            unsafe { each::<$M>(access, lanes, view, |from, lane| value.add(lane).write(from.read() as $R)) }
        }
        Some(run as Run)
    }};
}

/// A store of `M`, the lowest bytes of a register of `R`.
macro_rules! store {
    ($R:ty => $M:ty) => {{
        unsafe fn run(access: &Access, lanes: &Lanes, view: &mut View<'_>) -> Result<(), Trouble> {
            let value = lanes.at::<$R>(access.value);
            // SAFETY: `each` passes pointers to memory that `Memory` let this store have; the slots have room for all lanes.
            unsafe { each::<$M>(access, lanes, view, |to, lane| to.write(value.add(lane).read() as $M)) }
        }
        Some(run as Run)
    }};
}

/// What loads so many bytes into a register of so many bytes, with the sign or with zeros in front.
pub(crate) fn load(bytes: usize, is_signed: bool, register: usize) -> Option<Run> {
    match (bytes, is_signed, register) {
        (1, false, 2) => load!(u8 => u16),
        (1, false, 4) => load!(u8 => u32),
        (1, false, 8) => load!(u8 => u64),
        (1, true, 2) => load!(i8 => u16),
        (1, true, 4) => load!(i8 => u32),
        (1, true, 8) => load!(i8 => u64),
        (2, _, 2) => load!(u16 => u16),
        (2, false, 4) => load!(u16 => u32),
        (2, false, 8) => load!(u16 => u64),
        (2, true, 4) => load!(i16 => u32),
        (2, true, 8) => load!(i16 => u64),
        (4, _, 4) => load!(u32 => u32),
        (4, false, 8) => load!(u32 => u64),
        (4, true, 8) => load!(i32 => u64),
        (8, _, 8) => load!(u64 => u64),
        _ => None,
    }
}

/// What stores the lowest bytes of a register.
pub(crate) fn store(register: usize, bytes: usize) -> Option<Run> {
    match (register, bytes) {
        (2, 1) => store!(u16 => u8),
        (4, 1) => store!(u32 => u8),
        (8, 1) => store!(u64 => u8),
        (2, 2) => store!(u16 => u16),
        (4, 2) => store!(u32 => u16),
        (8, 2) => store!(u64 => u16),
        (4, 4) => store!(u32 => u32),
        (8, 4) => store!(u64 => u32),
        (8, 8) => store!(u64 => u64),
        _ => None,
    }
}
