//! Copies.

use std::ffi::c_void;

use polyhalo_double_engine::{Block, Kind, Machine, Outcome, Owner, Place, Side};

use super::{call, codes, numbered, streams::own, wrong};

/// HIP's words for where the ends of a copy lie.
const HOST_TO_HOST: u32 = 0;
const HOST_TO_DEVICE: u32 = 1;
const DEVICE_TO_HOST: u32 = 2;
const DEVICE_TO_DEVICE: u32 = 3;
const DEFAULT: u32 = 4;

/// The device that an address is on; the one of the thread if it isn't on any, so that the engine says what is wrong.
fn on_a_device(machine: &Machine, current: usize, address: u64) -> Side {
    match machine.place(address) {
        Place::Known { owner: Owner::Device(device), .. } => Side::Device(device),
        _ => Side::Device(current),
    }
}

/// Where the ends are expected to lie.
fn sides(machine: &Machine, current: usize, kind: u32, from: u64, to: u64) -> Outcome<[Side; 2]> {
    let device = |address| on_a_device(machine, current, address);
    match kind {
        HOST_TO_HOST => Ok([Side::Host, Side::Host]),
        HOST_TO_DEVICE => Ok([Side::Host, device(to)]),
        DEVICE_TO_HOST => Ok([device(from), Side::Host]),
        DEVICE_TO_DEVICE => Ok([device(from), device(to)]),
        DEFAULT => Ok([from, to].map(|address| match device(address) {
            Side::Device(device) if matches!(machine.place(address), Place::Known { owner: Owner::Device(_), .. }) => {
                Side::Device(device)
            }
            _ => Side::Any,
        })),
        _ => Err(wrong(21, format!("copies have no direction {kind}"))),
    }
}

/// Copies a box. Between two devices the one of the thread must have access to the other's memory: AMD documents nothing else
/// for copies that aren't called peer copies.
///
/// # Safety
/// Ordinary memory of the host at either end is the caller's until the call returns.
unsafe fn copy(
    machine: &Machine,
    device: usize,
    stream: u64,
    [from, to]: [Block; 2],
    shape: [u64; 3],
    waits: bool,
) -> Outcome<()> {
    let stream = own(machine, device, stream)?;
    for end in [from, to] {
        if let Side::Device(other) = end.side
            && other != device
            && !machine.reaches(device, other)
        {
            let message = format!("device {device} copies from or to device {other} without access to its memory");
            return Err(machine.misuse(Kind::InvalidValue, message));
        }
    }
    // SAFETY: the caller's promise.
    unsafe { machine.copy(stream, from, to, shape, waits) }
}

/// Copies bytes that lie together.
///
/// # Safety
/// As for [`copy`].
unsafe fn line(name: &'static str, [from, to]: [u64; 2], bytes: usize, kind: u32, stream: u64, waits: bool) -> i32 {
    call(name, |machine, device| {
        let [source, target] = sides(machine, device, kind, from, to)?;
        let ends = [Block::line(from, source), Block::line(to, target)];
        // SAFETY: the caller's promise.
        unsafe { copy(machine, device, stream, ends, [bytes as u64, 1, 1], waits) }
    })
}

/// Copies and waits.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpy(to: u64, from: u64, bytes: usize, kind: u32) -> i32 {
    // SAFETY: the caller has the memory.
    unsafe { line("hipMemcpy", [from, to], bytes, kind, 0, true) }
}

/// Copies.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyAsync(to: u64, from: u64, bytes: usize, kind: u32, stream: u64) -> i32 {
    // SAFETY: the caller has the memory.
    unsafe { line("hipMemcpyAsync", [from, to], bytes, kind, stream, false) }
}

/// Copies to a device.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyHtoDAsync(to: u64, from: u64, bytes: usize, stream: u64) -> i32 {
    // SAFETY: the caller has the memory.
    unsafe { line("hipMemcpyHtoDAsync", [from, to], bytes, HOST_TO_DEVICE, stream, false) }
}

/// Copies from a device.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyDtoHAsync(to: u64, from: u64, bytes: usize, stream: u64) -> i32 {
    // SAFETY: the caller has the memory.
    unsafe { line("hipMemcpyDtoHAsync", [from, to], bytes, DEVICE_TO_HOST, stream, false) }
}

/// Copies on a device.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyDtoDAsync(to: u64, from: u64, bytes: usize, stream: u64) -> i32 {
    // SAFETY: the caller has the memory.
    unsafe { line("hipMemcpyDtoDAsync", [from, to], bytes, DEVICE_TO_DEVICE, stream, false) }
}

/// Copies rows.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpy2DAsync(
    to: u64,
    to_pitch: usize,
    from: u64,
    from_pitch: usize,
    bytes: usize,
    rows: usize,
    kind: u32,
    stream: u64,
) -> i32 {
    call("hipMemcpy2DAsync", |machine, device| {
        if bytes > to_pitch.min(from_pitch) {
            let message = format!("rows of {bytes} bytes don't fit pitches of {from_pitch} and {to_pitch}");
            return Err(wrong(codes::INVALID_PITCH, message));
        }
        let [source, target] = sides(machine, device, kind, from, to)?;
        let block = |address, pitch: usize, side| Block { address, row_pitch: pitch as u64, plane_pitch: 0, side };
        let ends = [block(from, from_pitch, source), block(to, to_pitch, target)];
        // SAFETY: the caller has the memory.
        unsafe { copy(machine, device, stream, ends, [bytes as u64, rows as u64, 1], false) }
    })
}

/// `hipPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pitched {
    address: u64,
    pitch: usize,
    width: usize,
    rows: usize,
}

/// `hipMemcpy3DParms`.
#[repr(C)]
struct Copy3D {
    from_array: *mut c_void,
    from_place: [usize; 3],
    from: Pitched,
    to_array: *mut c_void,
    to_place: [usize; 3],
    to: Pitched,
    extent: [usize; 3],
    kind: u32,
}

/// An end of a copy of a box that begins at a place (byte, row, plane) of it.
fn end(pitched: Pitched, [x, y, z]: [usize; 3], [bytes, rows, planes]: [usize; 3], side: Side) -> Outcome<Block> {
    let Pitched { address, pitch, rows: of_a_plane, .. } = pitched;
    if bytes > pitch || (planes > 1 && rows > of_a_plane) {
        let box_ = format!("{bytes} bytes of {rows} rows of {planes} planes");
        return Err(wrong(codes::INVALID_PITCH, format!("{box_} don't fit a pitch of {pitch} and {of_a_plane} rows")));
    }
    let plane = pitch * of_a_plane;
    let address = address + (x + y * pitch + z * plane) as u64;
    Ok(Block { address, row_pitch: pitch as u64, plane_pitch: plane as u64, side })
}

/// Copies a box.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpy3DAsync(given: *const Copy3D, stream: u64) -> i32 {
    call("hipMemcpy3DAsync", |machine, device| {
        // SAFETY: the caller gives a null pointer or a description.
        let given =
            unsafe { given.as_ref() }.ok_or_else(|| wrong(codes::INVALID_VALUE, "a copy without a description"))?;
        let Copy3D { from, to, from_place, to_place, extent, kind, .. } = *given;
        if !given.from_array.is_null() || !given.to_array.is_null() {
            return Err(wrong(codes::INVALID_VALUE, "the double has no arrays"));
        }
        let [source, target] = sides(machine, device, kind, from.address, to.address)?;
        let ends = [end(from, from_place, extent, source)?, end(to, to_place, extent, target)?];
        // SAFETY: the caller has the memory.
        unsafe { copy(machine, device, stream, ends, extent.map(|size| size as u64), false) }
    })
}

/// `hipMemcpy3DPeerParms`.
#[repr(C)]
struct PeerCopy3D {
    from_array: *mut c_void,
    from_place: [usize; 3],
    from: Pitched,
    from_device: i32,
    to_array: *mut c_void,
    to_place: [usize; 3],
    to: Pitched,
    to_device: i32,
    extent: [usize; 3],
}

/// Copies a box from a device to another one, by way of the host if they can't reach each other.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpy3DPeerAsync(given: *const PeerCopy3D, stream: u64) -> i32 {
    call("hipMemcpy3DPeerAsync", |machine, device| {
        // SAFETY: the caller gives a null pointer or a description.
        let given =
            unsafe { given.as_ref() }.ok_or_else(|| wrong(codes::INVALID_VALUE, "a copy without a description"))?;
        if !given.from_array.is_null() || !given.to_array.is_null() {
            return Err(wrong(codes::INVALID_VALUE, "the double has no arrays"));
        }
        let side = |number| numbered(number).map(Side::Device);
        let from = end(given.from, given.from_place, given.extent, side(given.from_device)?)?;
        let to = end(given.to, given.to_place, given.extent, side(given.to_device)?)?;
        // SAFETY: both ends are memory of devices, or the engine refuses them.
        unsafe { machine.copy(own(machine, device, stream)?, from, to, given.extent.map(|size| size as u64), false) }
    })
}

/// Copies from a device to another one, by way of the host if they can't reach each other.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyPeerAsync(
    to: u64,
    to_device: i32,
    from: u64,
    from_device: i32,
    bytes: usize,
    stream: u64,
) -> i32 {
    call("hipMemcpyPeerAsync", |machine, device| {
        let side = |number| numbered(number).map(Side::Device);
        let (from, to) = (Block::line(from, side(from_device)?), Block::line(to, side(to_device)?));
        // SAFETY: both ends are memory of devices, or the engine refuses them.
        unsafe { machine.copy(own(machine, device, stream)?, from, to, [bytes as u64, 1, 1], false) }
    })
}

/// Copies from a device to another one and waits.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemcpyPeer(to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize) -> i32 {
    call("hipMemcpyPeer", |machine, device| {
        let side = |number| numbered(number).map(Side::Device);
        let (from, to) = (Block::line(from, side(from_device)?), Block::line(to, side(to_device)?));
        // SAFETY: both ends are memory of devices, or the engine refuses them.
        unsafe { machine.copy(own(machine, device, 0)?, from, to, [bytes as u64, 1, 1], true) }
    })
}
