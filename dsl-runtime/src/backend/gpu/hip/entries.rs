//! The entry points of AMD's driver, with all handles as addresses.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use super::super::driver::{Called, Failure};
use super::super::library::{entry_points, lacking};
use super::codes;
use super::copy::{PeerPlanes, Planes};

/// Passes all entry points to a macro. Those under `newer` came after HIP 5.4, so that the crate hip-runtime-sys, which may fill
/// the table too, doesn't know them.
macro_rules! hip_entry_points {
    ($($make:tt)*) => {
        $($make)*! {
            core {
                fn hipGetDeviceCount(count: *mut c_int);
                fn hipSetDevice(device: c_int);
                fn hipDeviceGetName(name: *mut c_char, room: c_int, device: c_int);
                fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
                fn hipDeviceTotalMem(bytes: *mut usize, device: c_int);
                fn hipMalloc(start: *mut *mut c_void, bytes: usize);
                fn hipFree(start: *mut c_void);
                fn hipHostMalloc(start: *mut *mut c_void, bytes: usize, flags: c_uint);
                fn hipHostFree(start: *mut c_void);
                fn hipMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: *mut c_void);
                fn hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int, stream: *mut c_void);
                fn hipMemcpy2DAsync(
                    to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, bytes: usize, rows: usize,
                    kind: c_int, stream: *mut c_void
                );
                fn hipStreamCreateWithFlags(stream: *mut *mut c_void, flags: c_uint);
                fn hipStreamDestroy(stream: *mut c_void);
                fn hipStreamSynchronize(stream: *mut c_void);
                fn hipStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: c_uint);
                fn hipEventCreateWithFlags(event: *mut *mut c_void, flags: c_uint);
                fn hipEventDestroy(event: *mut c_void);
                fn hipEventRecord(event: *mut c_void, stream: *mut c_void);
                fn hipEventSynchronize(event: *mut c_void);
                fn hipEventQuery(event: *mut c_void);
                fn hipModuleLoadData(module: *mut *mut c_void, image: *const c_void);
                fn hipModuleUnload(module: *mut c_void);
                fn hipModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
                fn hipModuleLaunchKernel(
                    function: *mut c_void, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
                    block_z: c_uint, shared: c_uint, stream: *mut c_void, arguments: *mut *mut c_void,
                    extra: *mut *mut c_void
                );
            }
            optional {
                fn hipRuntimeGetVersion(version: *mut c_int);
                fn hipDeviceGetPCIBusId(text: *mut c_char, room: c_int, device: c_int);
                fn hipGetDeviceProperties(properties: *mut c_void, device: c_int);
                fn hipMemGetInfo(free: *mut usize, all: *mut usize);
                fn hipEventElapsedTime(milliseconds: *mut f32, from: *mut c_void, to: *mut c_void);
                fn hipFuncGetAttribute(value: *mut c_int, attribute: c_int, function: *mut c_void);
                fn hipMemcpy3DAsync(copy: *const Planes, stream: *mut c_void);
                fn hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
                fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint);
                fn hipMemcpyPeerAsync(
                    to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize,
                    stream: *mut c_void
                );
                fn hipStreamBeginCapture(stream: *mut c_void, mode: c_uint);
                fn hipStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void);
                fn hipGraphInstantiate(
                    made: *mut *mut c_void, graph: *mut c_void, node: *mut *mut c_void, log: *mut c_char, room: usize
                );
                fn hipGraphInstantiateWithFlags(made: *mut *mut c_void, graph: *mut c_void, flags: c_ulonglong);
                fn hipGraphLaunch(graph: *mut c_void, stream: *mut c_void);
                fn hipGraphExecDestroy(graph: *mut c_void);
                fn hipGraphDestroy(graph: *mut c_void);
            }
            newer {
                fn hipGetDevicePropertiesR0600(properties: *mut c_void, device: c_int);
                fn hipMemcpy3DPeerAsync(copy: *const PeerPlanes, stream: *mut c_void);
            }
            texts {
                fn hipGetErrorName;
                fn hipGetErrorString;
            }
        }
    };
}
#[cfg(feature = "hip-link")]
pub(super) use hip_entry_points;

hip_entry_points!(entry_points);

impl Entries {
    /// The code of a call as a result.
    pub(super) fn judged(&self, call: &'static str, code: c_int) -> Called<()> {
        match code {
            codes::SUCCESS => Ok(()),
            code => Err(self.failure(call, code)),
        }
    }

    #[cold]
    fn failure(&self, call: &'static str, code: c_int) -> Failure {
        let text = |entry: Option<unsafe extern "C" fn(c_int) -> *const c_char>| {
            // SAFETY: the driver gives the address of a constant for any code.
            let text = unsafe { entry?(code) };
            // SAFETY: as above, and the constant ends with a zero.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
        };
        let name = text(self.hipGetErrorName).unwrap_or("HIP error".into());
        let message = match text(self.hipGetErrorString) {
            // Older releases repeat the name.
            Some(meaning) if meaning != name => format!("{name} ({code}): {meaning}"),
            Some(_) | None => format!("{name} ({code})"),
        };
        Failure { call, code, message, kind: codes::kind(code) }
    }
}
