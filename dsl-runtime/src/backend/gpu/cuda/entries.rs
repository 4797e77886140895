//! The entry points of NVIDIA's driver.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::ptr;

use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph,
    CUgraphExec, CUgraphNode, CUmodule, CUstream,
};

use super::super::driver::{Called, Failure};
use super::super::library::{entry_points, lacking};
use super::codes;

// The oldest forms that all drivers since CUDA 9 have: what later headers call by the same name may have another one, such as
// cuEventElapsedTime_v2.
entry_points! {
    core {
        fn cuInit(flags: c_uint);
        fn cuDriverGetVersion(version: *mut c_int);
        fn cuDeviceGetCount(count: *mut c_int);
        fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
        fn cuDeviceGetName(name: *mut c_char, room: c_int, device: CUdevice);
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice);
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
        fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
        fn cuDevicePrimaryCtxRelease(device: CUdevice);
        fn cuCtxSetCurrent(context: CUcontext);
        fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
        fn cuMemFree_v2(address: CUdeviceptr);
        fn cuMemHostAlloc(start: *mut *mut c_void, bytes: usize, flags: c_uint);
        fn cuMemFreeHost(start: *mut c_void);
        fn cuMemsetD8Async(address: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream);
        fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
        fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
        fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
        fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream);
        fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream);
        fn cuStreamCreate(stream: *mut CUstream, flags: c_uint);
        fn cuStreamDestroy_v2(stream: CUstream);
        fn cuStreamSynchronize(stream: CUstream);
        fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
        fn cuEventCreate(event: *mut CUevent, flags: c_uint);
        fn cuEventDestroy_v2(event: CUevent);
        fn cuEventRecord(event: CUevent, stream: CUstream);
        fn cuEventSynchronize(event: CUevent);
        fn cuEventQuery(event: CUevent);
        fn cuModuleLoadDataEx(
            module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void
        );
        fn cuModuleUnload(module: CUmodule);
        fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
        fn cuLaunchKernel(
            function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
            block_z: c_uint, shared: c_uint, stream: CUstream, arguments: *mut *mut c_void, extra: *mut *mut c_void
        );
    }
    optional {
        fn cuGetErrorName(code: c_int, text: *mut *const c_char);
        fn cuGetErrorString(code: c_int, text: *mut *const c_char);
        fn cuDeviceGetPCIBusId(text: *mut c_char, room: c_int, device: CUdevice);
        fn cuMemGetInfo_v2(free: *mut usize, all: *mut usize);
        fn cuEventElapsedTime(milliseconds: *mut f32, from: CUevent, to: CUevent);
        fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: CUfunction);
        fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
        fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
        fn cuMemcpyPeerAsync(
            to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize, stream: CUstream
        );
        fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream);
        fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
        fn cuGraphInstantiate(
            made: *mut CUgraphExec, graph: CUgraph, node: *mut CUgraphNode, log: *mut c_char, room: usize
        );
        fn cuGraphLaunch(graph: CUgraphExec, stream: CUstream);
        fn cuGraphExecDestroy(graph: CUgraphExec);
        fn cuGraphDestroy(graph: CUgraph);
    }
    newer {
        fn cuStreamBeginCapture_v2(stream: CUstream, mode: c_uint);
        fn cuGraphInstantiate_v2(
            made: *mut CUgraphExec, graph: CUgraph, node: *mut CUgraphNode, log: *mut c_char, room: usize
        );
        fn cuGraphInstantiateWithFlags(made: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    }
    texts {}
}

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
        let text = |entry: Option<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>| {
            let mut text = ptr::null();
            // SAFETY: the driver writes the address of a constant, or null for a code that it doesn't know.
            let answer = unsafe { entry?(code, &mut text) };
            // SAFETY: as above, and the constant ends with a zero.
            (answer == codes::SUCCESS && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
        };
        let name = text(self.cuGetErrorName).unwrap_or("CUDA error".into());
        let meaning = text(self.cuGetErrorString).or_else(|| codes::meaning(code).map(Into::into));
        let message = match meaning {
            Some(meaning) => format!("{name} ({code}): {meaning}"),
            None => format!("{name} ({code})"),
        };
        Failure { call, code, message, kind: codes::kind(code) }
    }
}
