//! Streams and events.

use polyhalo_double_engine::{Kind, Machine, Outcome};

use super::{call, codes, give, wrong};

/// HIP's flags of streams and events.
const NON_BLOCKING: u32 = 1;
const DISABLE_TIMING: u32 = 2;

/// The engine's handle of a stream of the current device; null is its default one. AMD's driver would take a stream of another
/// device here and there; a caller who relies on that is mistaken on the other vendor's.
pub(super) fn own(machine: &Machine, device: usize, stream: u64) -> Outcome<u64> {
    if stream == 0 {
        return Ok(machine.default_stream(device));
    }
    let of = machine.stream_device(stream)?;
    if of != device {
        let message = format!("a stream of device {of} is used while device {device} is the thread's");
        return Err(machine.misuse(Kind::InvalidHandle, message));
    }
    Ok(stream)
}

/// A new stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamCreate(place: *mut u64) -> i32 {
    // SAFETY: the caller gives a place.
    call("hipStreamCreate", |machine, device| unsafe { give(place, machine.stream(device, true)?) })
}

fn create(machine: &Machine, device: usize, place: *mut u64, flags: u32) -> Outcome<()> {
    if flags & !NON_BLOCKING != 0 {
        return Err(wrong(codes::INVALID_VALUE, format!("streams have no flags {flags}")));
    }
    // SAFETY: the caller of the entry point gives a place.
    unsafe { give(place, machine.stream(device, flags & NON_BLOCKING == 0)?) }
}

/// A new stream, which need not wait for the default one.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamCreateWithFlags(place: *mut u64, flags: u32) -> i32 {
    call("hipStreamCreateWithFlags", |machine, device| create(machine, device, place, flags))
}

/// A new stream. The double knows no priorities.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamCreateWithPriority(place: *mut u64, flags: u32, _priority: i32) -> i32 {
    call("hipStreamCreateWithPriority", |machine, device| create(machine, device, place, flags))
}

/// The priorities that streams may have.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) -> i32 {
    // SAFETY: the caller gives places.
    call("hipDeviceGetStreamPriorityRange", |_, _| unsafe {
        give(least, 1)?;
        give(greatest, -1)
    })
}

/// Gives a stream back.
#[unsafe(no_mangle)]
extern "C" fn hipStreamDestroy(stream: u64) -> i32 {
    call("hipStreamDestroy", |machine, device| machine.destroy_stream(own(machine, device, stream)?))
}

/// Waits until a stream is empty.
#[unsafe(no_mangle)]
extern "C" fn hipStreamSynchronize(stream: u64) -> i32 {
    call("hipStreamSynchronize", |machine, device| machine.finish_stream(own(machine, device, stream)?))
}

/// Whether a stream is empty.
#[unsafe(no_mangle)]
extern "C" fn hipStreamQuery(stream: u64) -> i32 {
    call("hipStreamQuery", |machine, device| machine.query_stream(own(machine, device, stream)?))
}

/// What comes next on a stream waits for an event, which may be another device's.
#[unsafe(no_mangle)]
extern "C" fn hipStreamWaitEvent(stream: u64, event: u64, flags: u32) -> i32 {
    call("hipStreamWaitEvent", |machine, device| match flags {
        0 => machine.wait(own(machine, device, stream)?, event),
        _ => Err(wrong(codes::INVALID_VALUE, format!("waiting for an event has no flags {flags}"))),
    })
}

/// A new event with times.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventCreate(place: *mut u64) -> i32 {
    // SAFETY: the caller gives a place.
    call("hipEventCreate", |machine, device| unsafe { give(place, machine.event(device, true)?) })
}

/// A new event.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventCreateWithFlags(place: *mut u64, flags: u32) -> i32 {
    // SAFETY: the caller gives a place.
    call("hipEventCreateWithFlags", |machine, device| unsafe {
        give(place, machine.event(device, flags & DISABLE_TIMING == 0)?)
    })
}

/// Gives an event back.
#[unsafe(no_mangle)]
extern "C" fn hipEventDestroy(event: u64) -> i32 {
    call("hipEventDestroy", |machine, _| machine.destroy_event(event))
}

/// The event becomes the moment after what is on the stream.
#[unsafe(no_mangle)]
extern "C" fn hipEventRecord(event: u64, stream: u64) -> i32 {
    call("hipEventRecord", |machine, device| machine.record(event, own(machine, device, stream)?))
}

/// Waits for an event.
#[unsafe(no_mangle)]
extern "C" fn hipEventSynchronize(event: u64) -> i32 {
    call("hipEventSynchronize", |machine, _| machine.finish_event(event))
}

/// Whether an event has happened.
#[unsafe(no_mangle)]
extern "C" fn hipEventQuery(event: u64) -> i32 {
    call("hipEventQuery", |machine, _| machine.query_event(event))
}

/// Milliseconds between two events.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipEventElapsedTime(place: *mut f32, from: u64, to: u64) -> i32 {
    // SAFETY: the caller gives a place.
    call("hipEventElapsedTime", |machine, _| unsafe { give(place, machine.elapsed(from, to)?) })
}
