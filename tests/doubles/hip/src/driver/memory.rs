//! Memory of devices and pinned memory of the host.

use polyhalo_double_engine::{Kind, Machine, Outcome, Owner, Place};

use super::{call, give, streams::own};

/// Memory on the device of this thread. Of no bytes it is nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMalloc(place: *mut u64, bytes: usize) -> i32 {
    call("hipMalloc", |machine, device| {
        let address = if bytes == 0 { 0 } else { machine.alloc(device, bytes as u64)? };
        // SAFETY: the caller gives a place.
        unsafe { give(place, address) }
    })
}

/// Gives memory of any device back.
#[unsafe(no_mangle)]
extern "C" fn hipFree(address: u64) -> i32 {
    call("hipFree", |machine, device| match machine.place(address) {
        _ if address == 0 => Ok(()),
        Place::Known { owner: Owner::Device(owner), .. } => machine.free(owner, address),
        _ => machine.free(device, address),
    })
}

/// Bytes of the device that are free, and all.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipMemGetInfo(free: *mut usize, all: *mut usize) -> i32 {
    call("hipMemGetInfo", |machine, device| {
        let memory = machine.memory(device).map(|bytes| bytes as usize);
        // SAFETY: the caller gives places.
        unsafe {
            give(free, memory[0])?;
            give(all, memory[1])
        }
    })
}

/// Pinned memory of the host; every device reaches it, whatever the flags.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostMalloc(place: *mut u64, bytes: usize, _flags: u32) -> i32 {
    call("hipHostMalloc", |machine, _| {
        let address = if bytes == 0 { 0 } else { machine.alloc_host(bytes as u64)? };
        // SAFETY: the caller gives a place.
        unsafe { give(place, address) }
    })
}

/// Gives pinned memory back.
#[unsafe(no_mangle)]
extern "C" fn hipHostFree(address: u64) -> i32 {
    call("hipHostFree", |machine, _| if address == 0 { Ok(()) } else { machine.free_host(address) })
}

/// Pins memory of the caller's.
#[unsafe(no_mangle)]
extern "C" fn hipHostRegister(address: u64, bytes: usize, _flags: u32) -> i32 {
    call("hipHostRegister", |machine, _| machine.register_host(address, bytes as u64))
}

/// The end of that.
#[unsafe(no_mangle)]
extern "C" fn hipHostUnregister(address: u64) -> i32 {
    call("hipHostUnregister", |machine, _| machine.unregister_host(address))
}

/// Where a device sees pinned memory: where the host does.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipHostGetDevicePointer(place: *mut u64, address: u64, _flags: u32) -> i32 {
    call("hipHostGetDevicePointer", |machine, _| match machine.place(address) {
        // SAFETY: the caller gives a place.
        Place::Known { owner: Owner::Pinned | Owner::Registered, .. } => unsafe { give(place, address) },
        _ => Err(machine.misuse(Kind::InvalidValue, format!("{address:#x} isn't pinned"))),
    })
}

/// Enqueues the same value for all bytes.
fn fill(machine: &Machine, device: usize, stream: u64, address: u64, value: u8, bytes: usize) -> Outcome<()> {
    let (stream, bytes) = (own(machine, device, stream)?, bytes as u64);
    match bytes % 8 {
        0 => machine.fill(stream, address, &[value; 8], bytes / 8, 1, bytes),
        _ => machine.fill(stream, address, &[value], bytes, 1, bytes),
    }
}

/// Fills memory.
#[unsafe(no_mangle)]
extern "C" fn hipMemsetAsync(address: u64, value: i32, bytes: usize, stream: u64) -> i32 {
    // Of the value only the low byte counts.
    call("hipMemsetAsync", |machine, device| fill(machine, device, stream, address, value as u8, bytes))
}

/// Fills memory.
#[unsafe(no_mangle)]
extern "C" fn hipMemsetD8Async(address: u64, value: u8, bytes: usize, stream: u64) -> i32 {
    call("hipMemsetD8Async", |machine, device| fill(machine, device, stream, address, value, bytes))
}

/// Fills memory on the default stream.
#[unsafe(no_mangle)]
extern "C" fn hipMemset(address: u64, value: i32, bytes: usize) -> i32 {
    call("hipMemset", |machine, device| fill(machine, device, 0, address, value as u8, bytes))
}
