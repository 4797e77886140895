//! What a program gets that does everything right.

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use cudarc::driver::sys::*;

use crate::child::*;

const ORDERS: [&str; 4] = ["eager", "lazy", "random:1", "random:2"];

fn in_all_orders(test: &str, body: fn()) {
    for order in ORDERS {
        let said = alone(test, &[("ORDER", order)], body);
        assert!(is_child() || !said.contains("CUDA double"), "{order}: {said}");
        if is_child() {
            return;
        }
    }
}

#[test]
fn a_double_tells_about_its_devices() {
    let variables = [("DEVICES", "3"), ("ARCH", "7.5"), ("DRIVER", "12.4"), ("MEMORY", "1000000"), ("PEERS", "none")];
    alone("answers::a_double_tells_about_its_devices", &variables, || {
        let (mut version, mut count, mut all, mut name, mut bus) = (0, 0, 0, [0; 64], [0; 32]);
        ok!(cuDriverGetVersion(&mut version));
        assert_eq!(contexts().len(), 3);
        ok!(cuDeviceGetCount(&mut count));
        ok!(cuDeviceTotalMem_v2(&mut all, 2));
        assert_eq!((version, count, all), (12040, 3, 1_000_000));
        ok!(cuDeviceGetName(name.as_mut_ptr(), 64, 1));
        ok!(cuDeviceGetPCIBusId(bus.as_mut_ptr(), 32, 1));
        // SAFETY: the driver wrote texts with their zeroes.
        let [name, bus] = [name.as_ptr(), bus.as_ptr()].map(|text| unsafe { CStr::from_ptr(text) }.to_str().unwrap());
        assert_eq!((name, bus), ("CUDA double 1", "0000:02:00.0"));
        let attribute = |attribute| {
            let mut value = 0;
            ok!(cuDeviceGetAttribute(&mut value, attribute, 0));
            value
        };
        assert_eq!(attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 7);
        assert_eq!(attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 5);
        assert_eq!(attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), 65535);
        assert_eq!(attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
        let (mut can, mut free) = (1, 0);
        ok!(cuDeviceCanAccessPeer(&mut can, 0, 1));
        memory(400_000);
        ok!(cuMemGetInfo_v2(&mut free, &mut all));
        assert_eq!((can, free, all), (0, 600_000, 1_000_000));
        let mut address = 0;
        assert_eq!(answer!(cuMemAlloc_v2(&mut address, 600_001)), 2);
        assert_eq!(answer!(cuDeviceGetCount(null_mut())), 1);
    });
}

#[test]
fn a_double_names_codes() {
    alone("answers::a_double_names_codes", &[], || {
        let name = |code: CUresult| {
            let mut text = std::ptr::null();
            ok!(cuGetErrorName(code, &mut text));
            // SAFETY: the driver wrote the address of a constant.
            unsafe { CStr::from_ptr(text) }.to_str().unwrap()
        };
        assert_eq!(name(CUresult::CUDA_ERROR_OUT_OF_MEMORY), "CUDA_ERROR_OUT_OF_MEMORY");
        assert_eq!(name(CUresult::CUDA_ERROR_CAPTURED_EVENT), "CUDA_ERROR_CAPTURED_EVENT");
    });
}

#[test]
fn a_double_copies_and_waits() {
    in_all_orders("answers::a_double_copies_and_waits", || {
        let contexts = contexts();
        let (start, first) = (upload(&[1, 2, 3, 4]), stream());
        let done = event();
        ok!(cuMemsetD32Async(start, 7, 2, first));
        ok!(cuEventRecord(done, first));
        ok!(cuCtxSetCurrent(contexts[1]));
        let (other, second, back) = (memory(32), stream(), pinned(4));
        ok!(cuStreamWaitEvent(second, done, 0));
        ok!(cuMemcpyPeerAsync(other, contexts[1], start, contexts[0], 32, second));
        ok!(cuMemcpyDtoHAsync_v2(back.cast(), other, 32, second));
        ok!(cuStreamSynchronize(second));
        // SAFETY: the copy to the memory is done.
        assert_eq!(unsafe { std::slice::from_raw_parts(back, 4) }, [7 << 32 | 7, 2, 3, 4]);
        ok!(cuStreamDestroy_v2(second));
        ok!(cuEventDestroy_v2(done));
        ok!(cuMemFreeHost(back.cast()));
        ok!(cuMemFree_v2(other));
    });
}

#[test]
fn a_double_copies_planes_and_boxes() {
    in_all_orders("answers::a_double_copies_planes_and_boxes", || {
        let contexts = contexts();
        let numbers: Vec<u64> = (0..60).collect();
        let (start, queue) = (upload(&numbers), stream());
        let plane = memory(32);
        let mut copy = plane_copy();
        (copy.srcDevice, copy.srcPitch, copy.srcXInBytes, copy.srcY) = (start, 40, 8, 1);
        (copy.dstDevice, copy.dstPitch, copy.WidthInBytes, copy.Height) = (plane, 16, 16, 2);
        ok!(cuMemcpy2DAsync_v2(&copy, queue));
        ok!(cuStreamSynchronize(queue));
        assert_eq!(download(plane, 4), [6, 7, 11, 12]);

        let mut host = [0_u64; 8];
        let mut copy = box_copy();
        copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
        // Rows of 5 numbers, planes of 4 rows.
        (copy.srcDevice, copy.srcPitch, copy.srcHeight) = (start, 40, 4);
        (copy.srcXInBytes, copy.srcY, copy.srcZ) = (16, 1, 1);
        (copy.dstHost, copy.dstPitch, copy.dstHeight) = (host.as_mut_ptr().cast(), 16, 2);
        (copy.WidthInBytes, copy.Height, copy.Depth) = (16, 2, 2);
        ok!(cuMemcpy3DAsync_v2(&copy, queue));
        assert_eq!(std::hint::black_box(host), [27, 28, 32, 33, 47, 48, 52, 53]);

        ok!(cuCtxSetCurrent(contexts[1]));
        let (other, queue) = (upload(&[0; 8]), stream());
        let mut copy = peer_copy();
        (copy.srcDevice, copy.srcPitch, copy.srcHeight, copy.srcContext) = (start, 40, 4, contexts[0]);
        (copy.dstDevice, copy.dstPitch, copy.dstHeight, copy.dstContext) = (other, 8, 2, contexts[1]);
        (copy.WidthInBytes, copy.Height, copy.Depth) = (8, 2, 3);
        ok!(cuMemcpy3DPeerAsync(&copy, queue));
        ok!(cuStreamSynchronize(queue));
        assert_eq!(download(other, 8), [0, 5, 20, 25, 40, 45, 0, 0]);
    });
}

#[test]
fn a_double_replays_graphs_that_cross_devices() {
    in_all_orders("answers::a_double_replays_graphs_that_cross_devices", || {
        let contexts = contexts();
        let (start, first, out) = (upload(&[5, 6]), stream(), event());
        ok!(cuCtxSetCurrent(contexts[1]));
        let (other, second, back) = (upload(&[0, 0]), stream(), event());
        ok!(cuCtxSetCurrent(contexts[0]));
        ok!(cuStreamBeginCapture_v2(first, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        ok!(cuMemsetD8Async(start, 1, 8, first));
        ok!(cuEventRecord(out, first));
        ok!(cuCtxSetCurrent(contexts[1]));
        ok!(cuStreamWaitEvent(second, out, 0));
        ok!(cuMemcpyPeerAsync(other, contexts[1], start, contexts[0], 16, second));
        ok!(cuEventRecord(back, second));
        ok!(cuCtxSetCurrent(contexts[0]));
        ok!(cuStreamWaitEvent(first, back, 0));
        ok!(cuMemsetD8Async(start, 2, 8, first));
        let (mut graph, mut ready) = (null_mut(), null_mut());
        ok!(cuStreamEndCapture(first, &mut graph));
        ok!(cuGraphInstantiateWithFlags(&mut ready, graph, 0));
        ok!(cuGraphDestroy(graph));
        assert_eq!(download(start, 2), [5, 6]);
        for _ in 0..3 {
            ok!(cuGraphLaunch(ready, first));
        }
        ok!(cuStreamSynchronize(first));
        assert_eq!(download(start, 2), [0x0202_0202_0202_0202, 6]);
        ok!(cuCtxSetCurrent(contexts[1]));
        assert_eq!(download(other, 2), [0x0101_0101_0101_0101, 6]);
        ok!(cuGraphExecDestroy(ready));
    });
}

#[test]
fn a_double_times_what_runs() {
    in_all_orders("answers::a_double_times_what_runs", || {
        contexts();
        let (start, queue, from, to) = (memory(8000), stream(), event(), event());
        ok!(cuEventRecord(from, queue));
        ok!(cuMemsetD8Async(start, 1, 8000, queue));
        ok!(cuEventRecord(to, queue));
        ok!(cuEventSynchronize(to));
        assert_eq!(answer!(cuEventQuery(to)), OK);
        let mut milliseconds = -1.0;
        ok!(cuEventElapsedTime(&mut milliseconds, from, to));
        assert!(milliseconds >= 0.0);
    });
}

#[test]
fn a_double_starts_afresh_when_its_context_ends() {
    alone("answers::a_double_starts_afresh_when_its_context_ends", &[("FAIL", "cuMemAlloc:2:719")], || {
        let mut context = contexts()[0];
        let (mut address, mut count) = (0, 0);
        memory(8);
        assert_eq!(answer!(cuMemAlloc_v2(&mut address, 8)), 719);
        assert_eq!(answer!(cuMemAlloc_v2(&mut address, 8)), 719, "the context is lost");
        ok!(cuDeviceGetCount(&mut count));
        ok!(cuDevicePrimaryCtxRelease_v2(0));
        assert_eq!(answer!(cuMemAlloc_v2(&mut address, 8)), 709);
        ok!(cuDevicePrimaryCtxRetain(&mut context, 0));
        ok!(cuCtxSetCurrent(context));
        memory(8);
    });
}

/// A copy between devices, of nothing yet.
fn plane_copy() -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: null(),
        srcDevice: 0,
        srcArray: null_mut(),
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: 0,
        dstArray: null_mut(),
        dstPitch: 0,
        WidthInBytes: 0,
        Height: 0,
    }
}

fn box_copy() -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: null(),
        srcDevice: 0,
        srcArray: null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        reserved0: null_mut(),
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: 0,
        dstArray: null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        reserved1: null_mut(),
        WidthInBytes: 0,
        Height: 0,
        Depth: 0,
    }
}

fn peer_copy() -> CUDA_MEMCPY3D_PEER {
    CUDA_MEMCPY3D_PEER {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: null(),
        srcDevice: 0,
        srcArray: null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        srcContext: null_mut(),
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: 0,
        dstArray: null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        dstContext: null_mut(),
        WidthInBytes: 0,
        Height: 0,
        Depth: 0,
    }
}
