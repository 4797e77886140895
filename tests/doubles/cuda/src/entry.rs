//! What all entry points have in common: their beginning, their answer, and how arguments are read and results written.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use polyhalo_double_engine::{Failure, Kind, Outcome};

use crate::{Double, codes, contexts, double};

/// Whether the driver was started.
static STARTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn start() {
    STARTED.store(true, Ordering::Release);
}

/// Entry points: `any` ones need a driver that was started, `current` ones a context that is current in the thread too, and get
/// its device.
macro_rules! entries {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $which:ident $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
                $crate::entry::$which(stringify!($name), $body)
            }
        )*
    };
}

/// A pointer to a value that the caller wants to have.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the value; a null pointer is a mistake.
    pub(crate) fn set(self, value: T) -> Outcome<()> {
        if self.0.is_null() {
            return Err(Failure::misuse(Kind::InvalidValue, "a null pointer for a result"));
        }
        // SAFETY: callers of the C interface pass a place for the result, or null.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes the value if the caller wants it.
    pub(crate) fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as above.
            unsafe { self.0.write(value) };
        }
    }
}

impl Out<c_char> {
    /// Writes a text with its zero, cut to the room that there is.
    pub(crate) fn set_text(self, text: &str, room: usize) -> Outcome<()> {
        if self.0.is_null() || room == 0 {
            return Err(Failure::misuse(Kind::InvalidValue, "no room for a text"));
        }
        let count = text.len().min(room - 1);
        // SAFETY: callers of the C interface pass a place of the size that they give, and the text with its zero fits it.
        unsafe {
            self.0.copy_from_nonoverlapping(text.as_ptr().cast(), count);
            self.0.add(count).write(0);
        }
        Ok(())
    }

    pub(crate) fn at(address: *mut c_void) -> Self {
        Self(address.cast())
    }
}

/// A pointer to values of the caller.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// One of the values.
    pub(crate) fn get(self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Failure::misuse(Kind::InvalidValue, "a null pointer for arguments"));
        }
        // SAFETY: callers of the C interface pass as many values as the entry point takes, or null.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }
}

/// A text of the caller that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn at(address: *const c_void) -> Self {
        Self(address.cast())
    }

    pub(crate) fn get<'a>(self) -> Outcome<&'a CStr> {
        if self.0.is_null() {
            return Err(Failure::misuse(Kind::InvalidValue, "a null pointer for a text"));
        }
        // SAFETY: callers of the C interface pass a text that ends with a zero and lives during the call, or null.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }
}

/// An entry point that may come before the driver is started.
pub(crate) fn first(call: &'static str, body: impl FnOnce(&'static Double) -> Outcome<()>) -> c_int {
    let Ok(double) = double() else { return codes::UNKNOWN };
    let outcome = double.machine.enter(bare(call), None).and_then(|()| body(double));
    answer(double, outcome)
}

/// An entry point that needs no context.
pub(crate) fn any(call: &'static str, body: impl FnOnce(&'static Double) -> Outcome<()>) -> c_int {
    first(call, |double| {
        started(double)?;
        body(double)
    })
}

/// An entry point for the current context.
pub(crate) fn current(call: &'static str, body: impl FnOnce(&'static Double, usize) -> Outcome<()>) -> c_int {
    let Ok(double) = double() else { return codes::UNKNOWN };
    let device = contexts::current();
    let entered = double.machine.enter(bare(call), device.as_ref().ok().copied());
    let outcome = entered.and_then(|()| {
        started(double)?;
        body(double, device?)
    });
    answer(double, outcome)
}

fn started(double: &Double) -> Outcome<()> {
    match STARTED.load(Ordering::Acquire) {
        true => Ok(()),
        false => Err(double.machine.misuse(Kind::Code(codes::NOT_INITIALIZED), "cuInit wasn't called")),
    }
}

fn answer(double: &Double, outcome: Outcome<()>) -> c_int {
    match outcome {
        Ok(()) => codes::SUCCESS,
        Err(failure) => {
            double.machine.report(&failure);
            codes::code(&failure)
        }
    }
}

/// The name under which calls are counted: without the number of the interface's version.
fn bare(name: &'static str) -> &'static str {
    name.strip_suffix("_v2").unwrap_or(name)
}
