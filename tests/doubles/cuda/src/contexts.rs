//! The devices' primary contexts, and which one is current in a thread.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyhalo_double_engine::{Failure, Kind, Outcome};

use crate::entry::Out;
use crate::{Double, codes, double, images};

/// Handles of contexts: this with the number of the device.
const HANDLE: u64 = 0x5EED_0C0D_0000_0000;

/// How often each device's context is retained.
static RETAINED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

thread_local! {
    /// The devices of the contexts that are current in this thread, the last one on top.
    static STACK: RefCell<Vec<Option<usize>>> = const { RefCell::new(Vec::new()) };
}

fn retained() -> MutexGuard<'static, Vec<u32>> {
    let mut counts = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(double) = double() {
        counts.resize(double.machine.devices(), 0);
    }
    counts
}

fn handle(device: usize) -> u64 {
    HANDLE | (device as u64) << 4
}

fn is_alive(device: usize) -> bool {
    retained()[device] > 0
}

/// The device of a context.
pub(crate) fn device_of(context: u64) -> Outcome<usize> {
    let invalid = |message: String| Failure::misuse(Kind::Code(codes::INVALID_CONTEXT), message);
    let count = retained().len();
    let device = (0..count).find(|device| handle(*device) == context);
    let device = device.ok_or_else(|| invalid(format!("{context:#x} is no context")))?;
    match is_alive(device) {
        true => Ok(device),
        false => Err(invalid(format!("the context of device {device} isn't retained"))),
    }
}

/// The device of the context that is current in this thread.
pub(crate) fn current() -> Outcome<usize> {
    match STACK.with_borrow(|stack| stack.last().copied().flatten()) {
        Some(device) if is_alive(device) => Ok(device),
        Some(device) => {
            let message = format!("the current context, of device {device}, was given back");
            Err(Failure::misuse(Kind::Code(codes::CONTEXT_IS_DESTROYED), message))
        }
        None => Err(Failure::misuse(Kind::Code(codes::INVALID_CONTEXT), "no context is current in this thread")),
    }
}

/// The device with a handle, which is its number.
pub(crate) fn device(double: &Double, device: c_int) -> Outcome<usize> {
    let found = usize::try_from(device).ok().filter(|device| *device < double.machine.devices());
    found.ok_or_else(|| Failure::misuse(Kind::InvalidDevice, format!("there is no device {device}")))
}

fn set(context: u64, is_pushed: bool) -> Outcome<()> {
    let device = if context == 0 { None } else { Some(device_of(context)?) };
    STACK.with_borrow_mut(|stack| {
        if !is_pushed {
            stack.pop();
        }
        if is_pushed || device.is_some() {
            stack.push(device);
        }
    });
    Ok(())
}

fn pop(context: Out<u64>) -> Outcome<()> {
    match STACK.with_borrow_mut(Vec::pop) {
        Some(device) => {
            context.set_if_wanted(device.map_or(0, handle));
            Ok(())
        }
        None => Err(Failure::misuse(Kind::Code(codes::INVALID_CONTEXT), "no context is current in this thread")),
    }
}

fn release(double: &Double, ordinal: c_int) -> Outcome<()> {
    let device = device(double, ordinal)?;
    let mut counts = retained();
    match counts[device] {
        0 => {
            let message = format!("the context of device {device} is given back more often than it was retained");
            Err(Failure::misuse(Kind::Code(codes::INVALID_CONTEXT), message))
        }
        count => {
            counts[device] = count - 1;
            if count == 1 {
                empty(double, device);
            }
            Ok(())
        }
    }
}

fn reset(double: &Double, ordinal: c_int) -> Outcome<()> {
    let device = device(double, ordinal)?;
    empty(double, device);
    Ok(())
}

/// Nothing is left of a context that ends.
fn empty(double: &Double, device: usize) {
    double.machine.reset(device);
    images::forget(device);
}

entries! {
    fn cuDevicePrimaryCtxRetain(context: Out<u64>, ordinal: c_int) any |double| {
        let device = device(double, ordinal)?;
        context.set(handle(device))?;
        retained()[device] += 1;
        Ok(())
    };
    fn cuDevicePrimaryCtxRelease(ordinal: c_int) any |double| release(double, ordinal);
    fn cuDevicePrimaryCtxRelease_v2(ordinal: c_int) any |double| release(double, ordinal);
    fn cuDevicePrimaryCtxReset(ordinal: c_int) any |double| reset(double, ordinal);
    fn cuDevicePrimaryCtxReset_v2(ordinal: c_int) any |double| reset(double, ordinal);
    fn cuDevicePrimaryCtxGetState(ordinal: c_int, flags: Out<c_uint>, is_active: Out<c_int>) any |double| {
        let device = device(double, ordinal)?;
        flags.set(0)?;
        is_active.set(c_int::from(is_alive(device)))
    };
    fn cuCtxSetCurrent(context: u64) any |_| set(context, false);
    fn cuCtxGetCurrent(context: Out<u64>) any |_| {
        context.set(STACK.with_borrow(|stack| stack.last().copied().flatten()).map_or(0, handle))
    };
    fn cuCtxPushCurrent(context: u64) any |_| set(context, true);
    fn cuCtxPushCurrent_v2(context: u64) any |_| set(context, true);
    fn cuCtxPopCurrent(context: Out<u64>) any |_| pop(context);
    fn cuCtxPopCurrent_v2(context: Out<u64>) any |_| pop(context);
    fn cuCtxGetDevice(ordinal: Out<c_int>) current |_, device| ordinal.set(device as c_int);
    fn cuCtxGetApiVersion(context: u64, version: Out<c_uint>) any |_| {
        device_of(context)?;
        version.set(3020)
    };
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) current |_, _| {
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    };
    fn cuCtxSynchronize() current |double, device| double.machine.finish_device(device);
    fn cuCtxEnablePeerAccess(peer: u64, flags: c_uint) current |double, device| {
        if flags != 0 {
            return Err(Failure::misuse(Kind::InvalidValue, format!("flags {flags} where none exist")));
        }
        double.machine.enable_peer(device, device_of(peer)?)
    };
    fn cuCtxDisablePeerAccess(peer: u64) current |double, device| double.machine.disable_peer(device, device_of(peer)?);
}
