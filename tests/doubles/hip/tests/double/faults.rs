//! Mistakes: each gets HIP's code, and those of the caller a line in the log.

use std::ptr;

use super::library::Hip;

const KERNEL: &str = "extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size(1, 256)))\n\
    void shifted(double *out, const double *in, const long long by)\n{\n\
    const int i = (int)(__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +\n\
    __builtin_amdgcn_workitem_id_x());\n    out[i] = in[i + by];\n}\n";

/// Expects a code and a line with a word in it.
#[track_caller]
fn expect(hip: &Hip, found: i32, code: i32, word: &str) {
    assert_eq!((found, hip.name(found)), (code, hip.name(code)));
    let log = hip.misuses();
    assert!(log.contains(word), "`{word}` is not in `{log}`");
}

#[test]
fn memory_of_the_wrong_kind_or_device_is_refused_by_the_double() {
    let hip = Hip::new(&[]);
    let here = hip.upload(&[1.0; 8]);
    let mut host = [0.0_f64; 8];
    let host = host.as_mut_ptr() as u64;
    let stream = hip.stream();
    expect(&hip, hip.hipMemcpyAsync(here, host, 64, 2, stream), 21, "memory of");
    expect(&hip, hip.hipMemcpyAsync(host, here, 64, 1, stream), 21, "memory of");
    expect(&hip, hip.hipMemcpyAsync(here, host, 64, 3, stream), 21, "memory of");
    expect(&hip, hip.hipMemcpyAsync(here, host, 72, 1, stream), 1, "beyond");
    expect(&hip, hip.hipMemcpyAsync(here, host, 64, 7, stream), 21, "direction");
    expect(&hip, hip.hipMemcpy2DAsync(here, 16, host, 16, 24, 2, 1, stream), 12, "pitch");
    expect(&hip, hip.hipMemsetAsync(here + 8, 0, 64, stream), 1, "beyond");
    hip.hipSetDevice(1);
    let (there, its) = (hip.upload(&[2.0; 8]), hip.stream());
    expect(&hip, hip.hipMemcpyAsync(there, here, 64, 3, its), 1, "without access");
    assert_eq!(hip.hipDeviceEnablePeerAccess(0, 0), 0);
    assert_eq!(hip.hipMemcpyAsync(there, here, 64, 3, its), 0);
    assert_eq!(hip.hipStreamSynchronize(its), 0);
    assert_eq!(hip.download(there, 8), [1.0; 8]);
    expect(&hip, hip.hipMemcpyPeerAsync(there, 0, here, 0, 64, its), 1, "device");
    expect(&hip, hip.hipMemcpyAsync(there, host, 64, 1, stream), 400, "a stream of device 0");
    expect(&hip, hip.hipEventRecord(hip.event(), stream), 400, "a stream of device 0");
    assert_eq!(hip.misuses(), "");
}

#[test]
fn memory_and_handles_that_are_gone_are_refused_by_the_double() {
    let hip = Hip::new(&["ORDER=lazy"]);
    let (here, stream) = (hip.alloc(64), hip.stream());
    expect(&hip, hip.hipFree(here + 8), 1, "begins");
    assert_eq!(hip.hipMemsetAsync(here, 0, 64, stream), 0);
    expect(&hip, hip.hipFree(here), 1, "uses it");
    assert_eq!(hip.hipStreamSynchronize(stream), 0);
    assert_eq!(hip.hipFree(here), 0);
    expect(&hip, hip.hipFree(here), 1, "twice");
    expect(&hip, hip.hipMemsetAsync(here, 0, 64, stream), 1, "freed");
    assert_eq!(hip.hipFree(0), 0);
    assert_eq!(hip.hipStreamDestroy(stream), 0);
    expect(&hip, hip.hipStreamSynchronize(stream), 400, "destroyed");
    let kernel = hip.kernel(KERNEL, "shifted");
    expect(&hip, hip.launch(kernel, [1, 1, 1], [8, 1, 1], stream, &[0, 0, 0]), 400, "destroyed");
    expect(&hip, hip.hipModuleUnload(kernel), 400, "module");
    assert_eq!(hip.misuses(), "");
}

#[test]
fn a_kernel_that_leaves_its_memory_costs_the_double_its_device() {
    // By the index of the first value that is read, and whether that is right.
    for (by, is_right) in [(0, true), (8, true), (9, false), (-1, false)] {
        let hip = Hip::new(&["ORDER=lazy"]);
        let (kernel, stream) = (hip.kernel(KERNEL, "shifted"), hip.stream());
        let (out, from) = (hip.alloc(8 * 8), hip.upload(&[1.5; 16]));
        assert_eq!(hip.launch(kernel, [2, 1, 1], [4, 1, 1], stream, &[out, from, by as u64]), 0);
        if is_right {
            assert_eq!(hip.hipStreamSynchronize(stream), 0);
            assert_eq!(hip.download(out, 8), [1.5; 8]);
            assert_eq!(hip.misuses(), "");
            continue;
        }
        expect(&hip, hip.hipStreamSynchronize(stream), 700, "`shifted` failed: read");
        // Nothing works any more on this device; the other one is well.
        assert_eq!(hip.hipMalloc(&mut 0, 8), 700);
        assert_eq!(hip.hipStreamCreateWithFlags(&mut 0, 0), 700);
        hip.hipSetDevice(1);
        assert_eq!(hip.hipMalloc(&mut 0, 8), 0);
    }
}

#[test]
fn a_kernel_that_does_what_has_no_meaning_costs_the_double_its_device() {
    const SOURCE: &str = "static inline __device__ void store(int *to, const int value) { *to = value; }\n\
        extern \"C\" __global__ void next(int *out, const int n, const int shift)\n{\n\
        int own[2] = {0, 0};\n    store(&own[1], (n + 1) << shift);\n    store(out, own[1]);\n}\n";
    for (n, shift, is_right) in [(i32::MAX - 1, 0, true), (i32::MAX, 0, false), (0, 31, true), (0, 32, false)] {
        let hip = Hip::new(&[]);
        let (kernel, out) = (hip.kernel(SOURCE, "next"), hip.alloc(4));
        let _ = hip.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &[out, n as u32 as u64, shift]);
        match is_right {
            true => assert_eq!((hip.hipDeviceSynchronize(), hip.misuses()), (0, String::new()), "{n} {shift}"),
            false => expect(&hip, hip.hipDeviceSynchronize(), 719, "no meaning"),
        }
    }
}

#[test]
fn a_kernel_of_the_double_reaches_a_peer_only_with_access() {
    for access in [false, true] {
        let hip = Hip::new(&[]);
        let from = hip.upload(&[1.5; 8]);
        hip.hipSetDevice(1);
        if access {
            assert_eq!(hip.hipDeviceEnablePeerAccess(0, 0), 0);
        }
        let (kernel, out) = (hip.kernel(KERNEL, "shifted"), hip.alloc(8 * 8));
        let launched = hip.launch(kernel, [2, 1, 1], [4, 1, 1], 0, &[out, from, 0]);
        match (access, hip.hipDeviceSynchronize()) {
            (true, waited) => assert_eq!((launched, waited, hip.misuses()), (0, 0, String::new())),
            (false, waited) => expect(&hip, waited, 700, "without access"),
        }
    }
}

#[test]
fn launches_beyond_the_limits_are_refused_by_the_double() {
    let hip = Hip::new(&[]);
    let (kernel, out, from) = (hip.kernel(KERNEL, "shifted"), hip.alloc(64), hip.alloc(64));
    let launch = |grid, block| hip.launch(kernel, grid, block, 0, &[out, from, 0]);
    expect(&hip, launch([0, 1, 1], [1, 1, 1]), 9, "no threads");
    expect(&hip, launch([1, 1, 1], [1, 0, 1]), 9, "no threads");
    expect(&hip, launch([1, 70_000, 1], [1, 1, 1]), 9, "too large");
    expect(&hip, launch([1, 1, 1], [257, 1, 1]), 9, "too large");
    expect(&hip, launch([1, 1, 1], [16, 17, 1]), 9, "too large");
    expect(&hip, launch([1 << 25, 1, 1], [256, 1, 1]), 9, "too many threads");
    let nothing = ptr::null_mut();
    let missing = hip.hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, nothing, nothing);
    expect(&hip, missing, 1, "arguments");
    hip.hipSetDevice(1);
    expect(&hip, hip.launch(kernel, [1, 1, 1], [1, 1, 1], hip.stream(), &[out, from, 0]), 400, "device 0");
}

#[test]
fn images_that_the_double_can_not_run_are_told_apart() {
    let hip = Hip::new(&[]);
    let load = |hip: &Hip, image: &[u8]| hip.hipModuleLoadData(&mut 0, image.as_ptr().cast());
    // The head of a code object: 64 bits, the lowest byte first, for AMD's GPUs.
    let mut object = vec![0_u8; 64];
    object[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    object[18] = 224;
    assert_eq!(load(&hip, &object), 209);
    assert_eq!(load(&hip, b"__CLANG_OFFLOAD_BUNDLE__ and more"), 209);
    assert_eq!(load(&hip, b"not code at all"), 200);
    object[18] = 62;
    assert_eq!(load(&hip, &object), 200);
    let (code, image, _) = hip.compiled(KERNEL, &["--offload-arch=gfx90c:xnack-", "-O3", "-ffp-contract=off"]);
    assert_eq!((code, load(&hip, &image)), (0, 0));
    assert_eq!(load(&Hip::new(&["ARCH=gfx1103"]), &image), 209);
    let mut module = 0;
    assert_eq!(hip.hipModuleLoadData(&mut module, image.as_ptr().cast()), 0);
    assert_eq!(hip.hipModuleGetFunction(&mut 0, module, c"unknown".as_ptr()), 500);
    assert_eq!(hip.misuses(), "", "callers find this out by trying");
    let mut function = 0;
    assert_eq!(hip.hipModuleGetFunction(&mut function, module, c"shifted".as_ptr()), 0);
    let mut threads = 0;
    assert_eq!((hip.hipFuncGetAttribute(&mut threads, 0, function), threads), (0, 256));
    assert_eq!(hip.hipModuleUnload(module), 0);
    expect(&hip, hip.launch(function, [1, 1, 1], [1, 1, 1], 0, &[0, 0, 0]), 400, "no kernel");
}

#[test]
fn recordings_with_mistakes_end_in_errors_of_the_double() {
    let hip = Hip::new(&[]);
    let (stream, other, memory) = (hip.stream(), hip.stream(), hip.alloc(64));
    let mut graph = 0;
    expect(&hip, hip.hipStreamBeginCapture(0, 1), 900, "default stream");
    assert_eq!(hip.hipStreamBeginCapture(stream, 1), 0);
    expect(&hip, hip.hipStreamSynchronize(stream), 900, "recorded");
    assert_eq!(hip.hipMemsetAsync(memory, 0, 64, stream), 901);
    assert_eq!(hip.hipStreamEndCapture(stream, &mut graph), 901);
    // The stream works as before.
    assert_eq!(hip.hipMemsetAsync(memory, 0, 64, stream), 0);
    assert_eq!(hip.hipStreamSynchronize(stream), 0);
    let event = hip.event();
    assert_eq!(hip.hipStreamBeginCapture(stream, 1), 0);
    assert_eq!(hip.hipEventRecord(event, stream), 0);
    assert_eq!(hip.hipStreamWaitEvent(other, event, 0), 0);
    assert_eq!(hip.hipMemsetAsync(memory, 0, 64, other), 0);
    expect(&hip, hip.hipStreamEndCapture(stream, &mut graph), 904, "doesn't wait");
}

#[test]
fn a_recording_whose_end_fails_is_ended_by_the_double() {
    let hip = Hip::new(&["FAIL=hipStreamEndCapture:1:901"]);
    let (stream, memory, mut graph) = (hip.stream(), hip.alloc(64), 0);
    for code in [901, 0] {
        assert_eq!(hip.hipStreamBeginCapture(stream, 0), 0);
        assert_eq!(hip.hipMemsetAsync(memory, 0, 64, stream), 0);
        assert_eq!(hip.hipStreamEndCapture(stream, &mut graph), code);
        assert_eq!(graph == 0, code != 0);
        assert_eq!(hip.hipStreamSynchronize(stream), 0);
    }
    assert_eq!(hip.misuses(), "");
}
