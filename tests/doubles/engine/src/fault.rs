//! How calls fail, in words that no vendor owns.

use std::fmt;

/// The result of a call.
pub type Outcome<T> = Result<T, Failure>;

/// Why a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An argument is wrong.
    InvalidValue,
    /// There is no such device.
    InvalidDevice,
    /// A stream, an event or another handle is unknown, gone, or of another device.
    InvalidHandle,
    /// There is no room.
    OutOfMemory,
    /// The call doesn't fit the state of what it is for.
    IllegalState,
    /// What was asked for hasn't happened yet.
    NotReady,
    /// Work left the memory that it may touch; the device is lost.
    IllegalAddress,
    /// Work failed in another way; the device is lost.
    LaunchFailed,
    /// Memory of the host stands where the device's is expected, or the other way round.
    WrongSide,
    /// A device can't reach the other one.
    PeerUnsupported,
    /// Access to a peer is enabled already.
    PeerEnabled,
    /// Access to a peer isn't enabled.
    PeerNotEnabled,
    /// Memory of the host is pinned already.
    HostRegistered,
    /// Memory of the host isn't pinned.
    HostNotRegistered,
    /// The call isn't possible while this is recorded.
    CaptureUnsupported,
    /// An earlier mistake made the recording worthless.
    CaptureInvalidated,
    /// Two recordings would become one.
    CaptureMerge,
    /// The stream isn't the one on which a recording began.
    CaptureUnmatched,
    /// Work on another stream isn't waited for at the end of the recording.
    CaptureUnjoined,
    /// Recorded work would wait for work outside.
    CaptureIsolation,
    /// The default stream would wait for recorded work.
    CaptureImplicit,
    /// The event is part of a recording, and never happens.
    CapturedEvent,
    /// The recording was begun by another thread.
    CaptureWrongThread,
    /// A code of the vendor's.
    Code(i32),
}

impl Kind {
    /// Whether a device is lost by it.
    pub fn loses_device(self) -> bool {
        matches!(self, Self::IllegalAddress | Self::LaunchFailed)
    }
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which error it is.
    pub kind: Kind,
    /// What happened.
    pub message: String,
    /// Whether the caller did something wrong that must be reported.
    pub(crate) misuse: bool,
}

impl Failure {
    /// A failure that isn't the caller's fault.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), misuse: false }
    }

    /// A failure that is the caller's fault: to be given to [`Machine::report`](crate::Machine::report).
    pub fn misuse(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), misuse: true }
    }

    /// The same failure, answered to another call: it is reported once.
    pub(crate) fn again(self) -> Self {
        Self { misuse: false, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
