//! Devices: how many there are, what they can do, which one a thread uses, and which can reach each other.

use std::ffi::{c_char, c_void};

use polyhalo_double_engine::Kind;

use super::{
    CURRENT, NO_DEVICE, VERSION, architecture, call, call_without_device, codes, give, machine, numbered, wrong,
};

/// What every device claims.
pub(super) const BLOCK_THREADS: u32 = 1024;
pub(super) const BLOCK: [u32; 3] = [1024, 1024, 1024];
pub(super) const GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
const UNITS: i32 = 8;
const WARP: i32 = 64;

/// Starts the driver.
#[unsafe(no_mangle)]
extern "C" fn hipInit(flags: u32) -> i32 {
    call_without_device("hipInit", |machine| match (flags, machine.devices()) {
        (0, 1..) => Ok(()),
        (0, _) => Err(polyhalo_double_engine::Failure::new(Kind::InvalidDevice, "there is no device")),
        _ => Err(wrong(codes::INVALID_VALUE, format!("hipInit has no flags {flags}"))),
    })
}

/// As HIP writes it: 6.3 is 60300000 and the number of a build.
fn version() -> i32 {
    let (major, minor) = machine().settings().driver.unwrap_or(VERSION);
    i32::try_from(major * 10_000_000 + minor * 100_000 + 42_134).unwrap_or(i32::MAX)
}

/// The version of the driver.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDriverGetVersion(place: *mut i32) -> i32 {
    // SAFETY: the caller gives a place.
    call_without_device("hipDriverGetVersion", |_| unsafe { give(place, version()) })
}

/// The version of the library.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipRuntimeGetVersion(place: *mut i32) -> i32 {
    // SAFETY: the caller gives a place.
    call_without_device("hipRuntimeGetVersion", |_| unsafe { give(place, version()) })
}

/// The number of devices; none is an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDeviceCount(place: *mut i32) -> i32 {
    call_without_device("hipGetDeviceCount", |machine| {
        // SAFETY: the caller gives a place.
        unsafe { give(place, i32::try_from(machine.devices()).unwrap_or(i32::MAX)) }?;
        match machine.devices() {
            0 => Err(polyhalo_double_engine::Failure::new(Kind::Code(NO_DEVICE), "there is no device")),
            _ => Ok(()),
        }
    })
}

/// The handle of a device: its number.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGet(place: *mut i32, number: i32) -> i32 {
    call_without_device("hipDeviceGet", |_| {
        numbered(number)?;
        // SAFETY: the caller gives a place.
        unsafe { give(place, number) }
    })
}

/// A property of a device.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGetAttribute(place: *mut i32, attribute: u32, number: i32) -> i32 {
    call_without_device("hipDeviceGetAttribute", |_| {
        let device = numbered(number)?;
        let size = |of: u32| i32::try_from(of).unwrap_or(i32::MAX);
        let value = match attribute {
            // Asynchronous copies beside kernels.
            2 => 2,
            // Mapped memory of the host, several kernels at once.
            3 | 8 => 1,
            // Kilohertz.
            5 => 1_700_000,
            // Bytes of the second cache.
            19 => 8 << 20,
            // 9.0: the major and minor number of an architecture.
            23 => 9,
            61 => 0,
            26..=28 => size(BLOCK[attribute as usize - 26]),
            29..=31 => size(GRID[attribute as usize - 29]),
            // What is on one bus with others, or in the host's memory.
            15..=18 | 62 => 0,
            56 => size(BLOCK_THREADS),
            57 => 2048,
            59 => 4096,
            60 => 1_600_000,
            63 | 10015 => UNITS,
            67 => i32::try_from(device).unwrap_or(0) + 0xC1,
            68 | 69 => 0,
            71 | 72 => 65536,
            74 | 76 => 64 << 10,
            78 | 85 => 1,
            87 => WARP,
            _ => return Err(wrong(codes::INVALID_VALUE, format!("the double knows no attribute {attribute}"))),
        };
        // SAFETY: the caller gives a place.
        unsafe { give(place, value) }
    })
}

fn name(device: usize) -> String {
    format!("HIP double {device}")
}

/// Copies a text with its end to a place of so many bytes.
///
/// # Safety
/// The place is null or has so many bytes.
unsafe fn give_text(place: *mut c_char, room: i32, text: &str) -> polyhalo_double_engine::Outcome<()> {
    let room = usize::try_from(room).unwrap_or(0);
    if place.is_null() || room <= text.len() {
        return Err(wrong(codes::INVALID_VALUE, format!("no room for `{text}` in {room} bytes")));
    }
    // SAFETY: the text and its end fit the place.
    unsafe {
        place.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}

/// The name of a device.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGetName(place: *mut c_char, room: i32, number: i32) -> i32 {
    // SAFETY: the caller's promise.
    call_without_device("hipDeviceGetName", |_| unsafe { give_text(place, room, &name(numbered(number)?)) })
}

/// Bytes of a device's memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceTotalMem(place: *mut usize, number: i32) -> i32 {
    // SAFETY: the caller gives a place.
    call_without_device("hipDeviceTotalMem", |machine| unsafe {
        give(place, machine.memory(numbered(number)?)[1] as usize)
    })
}

/// The address of a device on the bus.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGetPCIBusId(place: *mut c_char, room: i32, number: i32) -> i32 {
    call_without_device("hipDeviceGetPCIBusId", |_| {
        let text = format!("0000:{:02x}:00.0", numbered(number)? + 0xC1);
        // SAFETY: the caller's promise.
        unsafe { give_text(place, room, &text) }
    })
}

/// Writes properties: `size` bytes of which those at the given offsets are not zero.
///
/// # Safety
/// The place is null or has so many bytes.
unsafe fn properties(
    place: *mut c_void,
    number: i32,
    size: usize,
    at: &Offsets,
) -> polyhalo_double_engine::Outcome<()> {
    let device = numbered(number)?;
    if place.is_null() {
        return Err(wrong(codes::INVALID_VALUE, "no place for properties"));
    }
    let mut bytes = vec![0_u8; size];
    let mut set = |offset: usize, value: &[u8]| bytes[offset..offset + value.len()].copy_from_slice(value);
    set(0, name(device).as_bytes());
    set(at.memory, &machine().memory(device)[1].to_le_bytes());
    set(at.warp, &WARP.to_le_bytes());
    set(at.block_threads, &BLOCK_THREADS.to_le_bytes());
    for (axis, threads) in BLOCK.iter().enumerate() {
        set(at.block_threads + 4 + 4 * axis, &threads.to_le_bytes());
    }
    for (axis, blocks) in GRID.iter().enumerate() {
        set(at.block_threads + 16 + 4 * axis, &blocks.to_le_bytes());
    }
    set(at.units, &UNITS.to_le_bytes());
    set(at.architecture, architecture().as_bytes());
    // SAFETY: the caller's promise.
    unsafe { place.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), size) };
    Ok(())
}

/// Where properties lie in the structure of a version.
struct Offsets {
    memory: usize,
    warp: usize,
    block_threads: usize,
    units: usize,
    architecture: usize,
}

/// The properties of a device as HIP 6 has them.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDevicePropertiesR0600(place: *mut c_void, number: i32) -> i32 {
    const AT: Offsets = Offsets { memory: 288, warp: 308, block_threads: 320, units: 388, architecture: 1160 };
    // SAFETY: the caller gives a place for HIP 6's structure.
    call_without_device("hipGetDevicePropertiesR0600", |_| unsafe { properties(place, number, 1472, &AT) })
}

/// The properties of a device as HIP 5 has them.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDeviceProperties(place: *mut c_void, number: i32) -> i32 {
    const AT: Offsets = Offsets { memory: 256, warp: 276, block_threads: 280, units: 336, architecture: 396 };
    // SAFETY: the caller gives a place for HIP 5's structure.
    call_without_device("hipGetDeviceProperties", |_| unsafe { properties(place, number, 792, &AT) })
}

/// Makes a device that of this thread.
#[unsafe(no_mangle)]
extern "C" fn hipSetDevice(number: i32) -> i32 {
    call_without_device("hipSetDevice", |_| {
        CURRENT.set(numbered(number)?);
        Ok(())
    })
}

/// The device of this thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDevice(place: *mut i32) -> i32 {
    call_without_device("hipGetDevice", |_| {
        let device = super::current()?;
        // SAFETY: the caller gives a place.
        unsafe { give(place, i32::try_from(device).unwrap_or(i32::MAX)) }
    })
}

/// Waits for all that the device does.
#[unsafe(no_mangle)]
extern "C" fn hipDeviceSynchronize() -> i32 {
    call("hipDeviceSynchronize", |machine, device| machine.finish_device(device))
}

/// Makes a device as good as new.
#[unsafe(no_mangle)]
extern "C" fn hipDeviceReset() -> i32 {
    call_without_device("hipDeviceReset", |machine| {
        machine.reset(super::current()?);
        Ok(())
    })
}

/// Whether a device can reach the memory of another one.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceCanAccessPeer(place: *mut i32, number: i32, peer: i32) -> i32 {
    call_without_device("hipDeviceCanAccessPeer", |machine| {
        let can = machine.can_reach(numbered(number)?, numbered(peer)?);
        // SAFETY: the caller gives a place.
        unsafe { give(place, can.into()) }
    })
}

/// Lets the device of this thread reach the memory of another one.
#[unsafe(no_mangle)]
extern "C" fn hipDeviceEnablePeerAccess(peer: i32, flags: u32) -> i32 {
    call("hipDeviceEnablePeerAccess", |machine, device| {
        if flags != 0 {
            return Err(wrong(codes::INVALID_VALUE, format!("peer access has no flags {flags}")));
        }
        machine.enable_peer(device, numbered(peer)?)
    })
}

/// The end of access to a peer.
#[unsafe(no_mangle)]
extern "C" fn hipDeviceDisablePeerAccess(peer: i32) -> i32 {
    call("hipDeviceDisablePeerAccess", |machine, device| machine.disable_peer(device, numbered(peer)?))
}
