//! The entry points of HIP, each a few lines on the engine.
//!
//! Beside the variables that every double knows, `POLYHALO_DOUBLE_HIPRTC` makes the run-time compiler abort the process, hang
//! or fail. In one process several copies of the library can have settings of their own: see [`polyhalo_double_settings`].
//!
//! The devices claim an architecture for which nobody embeds code, so that callers come to the run-time compiler; with the
//! variable for the architecture they can claim one for which there is code, which they refuse: they can't run it.

mod codes;
mod copies;
mod device;
mod graphs;
mod memory;
mod modules;
mod rtc;
mod streams;

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use polyhalo_double_engine::{Failure, Kind, Machine, Outcome, Settings, Variables, Vendor};

use codes::{NO_DEVICE, STICKY, SUCCESS, code};

/// What the devices claim to be.
const ARCHITECTURE: &str = "gfx90c:xnack-";

/// The version that the driver claims.
const VERSION: (u32, u32) = (6, 3);

/// What the double is steered by.
static VARIABLES: Variables = Variables::of_process();

/// Replaces the variables of the environment by lines such as `POLYHALO_DOUBLE_DEVICES=4`. Only before the first call of
/// another entry point.
///
/// # Safety
/// The text ends in a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn polyhalo_double_settings(text: *const c_char) {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    VARIABLES.replace(text);
}

/// The devices.
fn machine() -> &'static Machine {
    static MACHINE: OnceLock<&'static Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let settings = Settings::from_variables(|name| VARIABLES.get(name)).unwrap_or_else(|wrong| {
            // A test that asks for something else than it means must not pass.
            eprintln!("HIP double: {wrong}");
            std::process::abort();
        });
        let machine = Box::leak(Box::new(Machine::new(settings, Vendor { name: "HIP", sticky: STICKY })));
        machine.count_until_exit();
        machine
    })
}

/// What the devices claim to be.
fn architecture() -> &'static str {
    machine().settings().architecture.as_deref().unwrap_or(ARCHITECTURE)
}

thread_local! {
    /// The device of this thread.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    /// The last error of this thread that nobody has asked for.
    static LAST_ERROR: Cell<i32> = const { Cell::new(SUCCESS) };
}

/// The device of this thread, if there is any.
fn current() -> Outcome<usize> {
    if machine().devices() == 0 {
        return Err(Failure::new(Kind::InvalidDevice, "there is no device"));
    }
    Ok(CURRENT.get())
}

/// A device by its number.
fn numbered(number: i32) -> Outcome<usize> {
    let known = usize::try_from(number).ok().filter(|number| *number < machine().devices());
    known.ok_or_else(|| Failure::new(Kind::InvalidDevice, format!("there is no device {number}")))
}

/// A call that concerns the current device.
fn call(name: &'static str, action: impl FnOnce(&'static Machine, usize) -> Outcome<()>) -> i32 {
    answer(current().and_then(|device| {
        machine().enter(name, Some(device))?;
        action(machine(), device)
    }))
}

/// A call that needs no device.
fn call_without_device(name: &'static str, action: impl FnOnce(&'static Machine) -> Outcome<()>) -> i32 {
    answer(machine().enter(name, None).and_then(|()| action(machine())))
}

fn answer(outcome: Outcome<()>) -> i32 {
    let Err(failure) = outcome else { return SUCCESS };
    let code = code(failure.kind);
    // What is only not yet done is no error.
    if code != codes::NOT_READY {
        LAST_ERROR.set(code);
    }
    code
}

/// Writes a result.
///
/// # Safety
/// The place is null or can be written.
unsafe fn give<T>(place: *mut T, value: T) -> Outcome<()> {
    if place.is_null() {
        return Err(machine().misuse(Kind::InvalidValue, "the place for a result is a null pointer"));
    }
    // SAFETY: it isn't null; the rest is the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// A failure with a code of HIP's that is the caller's fault.
fn wrong(code: i32, message: impl Into<String>) -> Failure {
    machine().misuse(Kind::Code(code), message)
}

/// The last error of this thread, which is forgotten.
#[unsafe(no_mangle)]
extern "C" fn hipGetLastError() -> i32 {
    LAST_ERROR.replace(SUCCESS)
}

/// The last error of this thread.
#[unsafe(no_mangle)]
extern "C" fn hipPeekAtLastError() -> i32 {
    LAST_ERROR.get()
}
