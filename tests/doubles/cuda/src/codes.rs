//! CUDA's codes: which one a failure has, and what they are called.

use std::ffi::{CStr, c_char, c_int};

use polyhalo_double_engine::{Failure, Kind};

use crate::entry::Out;

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const NOT_INITIALIZED: c_int = 3;
pub(crate) const NO_DEVICE: c_int = 100;
pub(crate) const INVALID_IMAGE: c_int = 200;
pub(crate) const INVALID_CONTEXT: c_int = 201;
pub(crate) const NO_BINARY_FOR_GPU: c_int = 209;
pub(crate) const INVALID_PTX: c_int = 218;
pub(crate) const UNSUPPORTED_PTX_VERSION: c_int = 222;
pub(crate) const NOT_FOUND: c_int = 500;
pub(crate) const CONTEXT_IS_DESTROYED: c_int = 709;
pub(crate) const NOT_SUPPORTED: c_int = 801;
pub(crate) const UNKNOWN: c_int = 999;

/// After these a context returns the same code for ever.
pub(crate) const STICKY: &[i32] = &[46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721];

/// The code of a failure.
pub(crate) fn code(failure: &Failure) -> c_int {
    match failure.kind {
        Kind::InvalidValue | Kind::WrongSide => 1,
        Kind::InvalidDevice => 101,
        Kind::InvalidHandle => 400,
        Kind::OutOfMemory => 2,
        Kind::IllegalState => 401,
        Kind::NotReady => 600,
        Kind::IllegalAddress => 700,
        Kind::LaunchFailed => 719,
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
        Kind::Code(code) => code,
    }
}

/// The names of codes, and what they mean.
const NAMES: &[(c_int, &CStr, &CStr)] = &[
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"device busy or unavailable"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"no device is there"),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (200, c"CUDA_ERROR_INVALID_IMAGE", c"invalid kernel image"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid context"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image for this device"),
    (214, c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable memory error"),
    (217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"peer access is not supported between these devices"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"the PTX can't be compiled"),
    (220, c"CUDA_ERROR_NVLINK_UNCORRECTABLE", c"uncorrectable link error"),
    (222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the PTX is too new for this driver"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid handle"),
    (401, c"CUDA_ERROR_ILLEGAL_STATE", c"not possible in the current state"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"name not found"),
    (600, c"CUDA_ERROR_NOT_READY", c"not ready"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was met"),
    (701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources asked for"),
    (702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"the launch timed out"),
    (704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is enabled already"),
    (705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access isn't enabled"),
    (709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"the context is destroyed"),
    (710, c"CUDA_ERROR_ASSERT", c"an assertion failed on the device"),
    (712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"the memory is pinned already"),
    (713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"the memory isn't pinned"),
    (714, c"CUDA_ERROR_HARDWARE_STACK_ERROR", c"hardware stack error"),
    (715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"an illegal instruction was met"),
    (716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"misaligned address"),
    (717, c"CUDA_ERROR_INVALID_ADDRESS_SPACE", c"invalid address space"),
    (718, c"CUDA_ERROR_INVALID_PC", c"invalid program counter"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"the launch failed"),
    (800, c"CUDA_ERROR_NOT_PERMITTED", c"not permitted"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"not supported"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"not possible while the stream is captured"),
    (901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"the capture became invalid by an earlier error"),
    (902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"two captures would be merged"),
    (903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"the capture wasn't begun on this stream"),
    (904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"the capture has work that wasn't joined to its first stream"),
    (905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"a dependency would go out of the capture"),
    (906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"the default stream would depend on the capture"),
    (907, c"CUDA_ERROR_CAPTURED_EVENT", c"not possible for an event that was recorded in a capture"),
    (908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"the capture was begun by another thread"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

fn known(code: c_int) -> Option<&'static (c_int, &'static CStr, &'static CStr)> {
    NAMES.iter().find(|(known, ..)| *known == code)
}

fn told(text: Option<&CStr>, to: Out<*const c_char>) -> c_int {
    let written = to.set(text.map_or(std::ptr::null(), CStr::as_ptr));
    if text.is_some() && written.is_ok() { SUCCESS } else { 1 }
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: c_int, text: Out<*const c_char>) -> c_int {
    told(known(code).map(|(_, name, _)| *name), text)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(code: c_int, text: Out<*const c_char>) -> c_int {
    told(known(code).map(|(.., meaning)| *meaning), text)
}
