//! HIP's error codes: which one a failure becomes, their names and texts.

use std::ffi::{CStr, c_char};

use polyhalo_double_engine::Kind;

/// The success of a call.
pub(super) const SUCCESS: i32 = 0;
pub(super) const INVALID_VALUE: i32 = 1;
pub(super) const INVALID_CONFIGURATION: i32 = 9;
pub(super) const INVALID_PITCH: i32 = 12;
pub(super) const NO_DEVICE: i32 = 100;
pub(super) const INVALID_DEVICE: i32 = 101;
pub(super) const INVALID_IMAGE: i32 = 200;
pub(super) const NO_BINARY_FOR_GPU: i32 = 209;
pub(super) const INVALID_HANDLE: i32 = 400;
pub(super) const NOT_FOUND: i32 = 500;
pub(super) const NOT_READY: i32 = 600;

/// Codes after which a device doesn't work any more: an illegal address, a failed launch, a fault of the hardware.
pub(super) const STICKY: &[i32] = &[214, 700, 710, 719];

/// The code of a failure.
pub(super) fn code(kind: Kind) -> i32 {
    match kind {
        Kind::InvalidValue => INVALID_VALUE,
        Kind::InvalidDevice => INVALID_DEVICE,
        Kind::InvalidHandle => INVALID_HANDLE,
        Kind::OutOfMemory => 2,
        Kind::NotReady => NOT_READY,
        Kind::IllegalAddress => 700,
        Kind::LaunchFailed => 719,
        Kind::WrongSide => 21,
        Kind::PeerUnsupported => 217,
        Kind::PeerEnabled => 704,
        Kind::PeerNotEnabled => 705,
        Kind::HostRegistered => 712,
        Kind::HostNotRegistered => 713,
        Kind::CaptureUnsupported => 900,
        Kind::CaptureInvalidated => 901,
        Kind::CaptureMerge => 902,
        Kind::CaptureUnmatched => 903,
        Kind::CaptureUnjoined => 904,
        Kind::CaptureIsolation => 905,
        Kind::CaptureImplicit => 906,
        Kind::CapturedEvent => 907,
        Kind::CaptureWrongThread => 908,
        Kind::IllegalState => 401,
        Kind::Code(code) => code,
    }
}

/// Codes with their names and what they mean.
const NAMES: [(i32, &CStr, &CStr); 44] = [
    (0, c"hipSuccess", c"no error"),
    (1, c"hipErrorInvalidValue", c"invalid argument"),
    (2, c"hipErrorOutOfMemory", c"out of memory"),
    (3, c"hipErrorNotInitialized", c"initialization error"),
    (4, c"hipErrorDeinitialized", c"driver shutting down"),
    (9, c"hipErrorInvalidConfiguration", c"invalid configuration argument"),
    (12, c"hipErrorInvalidPitchValue", c"invalid pitch argument"),
    (17, c"hipErrorInvalidDevicePointer", c"invalid device pointer"),
    (21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    (35, c"hipErrorInsufficientDriver", c"driver version is insufficient for runtime version"),
    (98, c"hipErrorInvalidDeviceFunction", c"invalid device function"),
    (100, c"hipErrorNoDevice", c"no ROCm-capable device is detected"),
    (101, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    (200, c"hipErrorInvalidImage", c"device kernel image is invalid"),
    (201, c"hipErrorInvalidContext", c"invalid device context"),
    (209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
    (214, c"hipErrorECCNotCorrectable", c"uncorrectable ECC error encountered"),
    (217, c"hipErrorPeerAccessUnsupported", c"peer access is not supported between these two devices"),
    (301, c"hipErrorFileNotFound", c"file not found"),
    (400, c"hipErrorInvalidHandle", c"invalid resource handle"),
    (401, c"hipErrorIllegalState", c"the operation cannot be performed in the present state"),
    (500, c"hipErrorNotFound", c"named symbol not found"),
    (600, c"hipErrorNotReady", c"device not ready"),
    (700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
    (701, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch"),
    (702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated"),
    (704, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
    (705, c"hipErrorPeerAccessNotEnabled", c"peer access has not been enabled"),
    (709, c"hipErrorContextIsDestroyed", c"context is destroyed"),
    (710, c"hipErrorAssert", c"device-side assert triggered"),
    (712, c"hipErrorHostMemoryAlreadyRegistered", c"part or all of the requested memory range is already mapped"),
    (713, c"hipErrorHostMemoryNotRegistered", c"pointer does not correspond to a registered memory region"),
    (719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    (801, c"hipErrorNotSupported", c"operation not supported"),
    (900, c"hipErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing"),
    (901, c"hipErrorStreamCaptureInvalidated", c"operation failed due to a previous error during capture"),
    (902, c"hipErrorStreamCaptureMerge", c"operation would result in a merge of separate capture sequences"),
    (903, c"hipErrorStreamCaptureUnmatched", c"capture was not ended in the same stream as it began"),
    (904, c"hipErrorStreamCaptureUnjoined", c"capturing stream has unjoined work"),
    (905, c"hipErrorStreamCaptureIsolation", c"dependency created on uncaptured work in another stream"),
    (906, c"hipErrorStreamCaptureImplicit", c"operation would make the legacy stream depend on a capturing stream"),
    (907, c"hipErrorCapturedEvent", c"operation not permitted on an event last recorded in a capturing stream"),
    (908, c"hipErrorStreamCaptureWrongThread", c"capture was not ended by the thread that began it"),
    (999, c"hipErrorUnknown", c"unknown error"),
];

fn entry(code: i32) -> (&'static CStr, &'static CStr) {
    let known = NAMES.iter().find(|(known, ..)| *known == code);
    known.map_or((c"hipErrorUnknown", c"unknown error"), |(_, name, text)| (*name, *text))
}

/// The name of a code.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorName(code: i32) -> *const c_char {
    entry(code).0.as_ptr()
}

/// What a code means.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorString(code: i32) -> *const c_char {
    entry(code).1.as_ptr()
}
