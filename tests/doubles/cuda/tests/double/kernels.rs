//! Kernels: which code is taken, what a launch must look like, and what happens to one that leaves its memory.

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::*;

use crate::child::*;

/// Adds `more` to numbers, the number of each thread first.
const PTX: &str = "
.version 6.3
.target sm_70
.address_size 64

.visible .entry add(
    .param .u64 add_param_0,
    .param .u32 add_param_1,
    .param .u64 add_param_2
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [add_param_0];
    ld.param.u32 %r2, [add_param_1];
    ld.param.u64 %rd2, [add_param_2];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra $L__end;
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.s32 %rd4, %r1, 8;
    add.s64 %rd5, %rd3, %rd4;
    ld.global.u64 %rd6, [%rd5];
    add.s64 %rd7, %rd6, %rd2;
    st.global.u64 [%rd5], %rd7;

$L__end:
    ret;
}
";

/// Loads code; the answer, the module, and what the compiler says against it.
fn load(image: &[u8]) -> (i32, CUmodule, String) {
    let mut log = [0_u8; 256];
    let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let image = CString::new(image).expect("no zero");
    let mut module = null_mut();
    let code =
        answer!(cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr()));
    let said = CStr::from_bytes_until_nul(&log).expect("it ends with a zero");
    (code, module, said.to_string_lossy().into_owned())
}

fn kernel() -> CUfunction {
    let (code, module, log) = load(PTX.as_bytes());
    assert_eq!((code, log.as_str()), (OK, ""));
    let mut function = null_mut();
    ok!(cuModuleGetFunction(&mut function, module, c"add".as_ptr()));
    function
}

/// Adds to numbers on a stream; `shape` are the blocks and the threads of each.
fn add(kernel: CUfunction, stream: CUstream, shape: [u32; 2], start: CUdeviceptr, count: u32, more: u64) -> i32 {
    let (mut start, mut count, mut more) = (start, count, more);
    let mut arguments: [*mut c_void; 3] = [(&raw mut start).cast(), (&raw mut count).cast(), (&raw mut more).cast()];
    let ([blocks, threads], arguments) = (shape, arguments.as_mut_ptr());
    answer!(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, null_mut()))
}

#[test]
fn a_double_runs_kernels_behind_what_they_wait_for() {
    for order in ["eager", "lazy", "random:3", "random:4"] {
        let said = alone("kernels::a_double_runs_kernels_behind_what_they_wait_for", &[("ORDER", order)], || {
            contexts();
            let (kernel, start, first, second, moment) = (kernel(), upload(&[1; 100]), stream(), stream(), event());
            assert_eq!(add(kernel, first, [4, 32], start, 100, 5), OK);
            ok!(cuEventRecord(moment, first));
            ok!(cuStreamWaitEvent(second, moment, 0));
            ok!(cuMemsetD8Async(start, 0, 8, second));
            assert_eq!(add(kernel, second, [1, 64], start, 3, 7), OK);
            ok!(cuStreamSynchronize(second));
            let expected: Vec<u64> = (0..100).map(|index| [7, 13, 13].get(index).copied().unwrap_or(6)).collect();
            assert_eq!(download(start, 100), expected);
        });
        assert!(is_child() || !said.contains("CUDA double"), "{said}");
        if is_child() {
            return;
        }
    }
}

#[test]
fn a_double_replays_kernels() {
    alone("kernels::a_double_replays_kernels", &[("ORDER", "lazy")], || {
        contexts();
        let (kernel, start, queue) = (kernel(), upload(&[1; 10]), stream());
        let (mut graph, mut ready) = (null_mut(), null_mut());
        ok!(cuStreamBeginCapture_v2(queue, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        assert_eq!(add(kernel, queue, [1, 10], start, 10, 2), OK);
        ok!(cuMemsetD8Async(start, 0, 8, queue));
        ok!(cuStreamEndCapture(queue, &mut graph));
        ok!(cuGraphInstantiateWithFlags(&mut ready, graph, 0));
        for _ in 0..4 {
            ok!(cuGraphLaunch(ready, queue));
        }
        ok!(cuStreamSynchronize(queue));
        assert_eq!(download(start, 2), [0, 9]);
    });
}

#[test]
fn a_double_takes_no_code_for_others() {
    alone("kernels::a_double_takes_no_code_for_others", &[("ARCH", "8.0"), ("DRIVER", "12.4")], || {
        contexts();
        let check = |from: &str, to: &str, expected: i32, words: &str| {
            let (code, _, log) = load(PTX.replace(from, to).as_bytes());
            assert!(code == expected && log.contains(words), "{to}: {code}, {log}");
        };
        check(".version 6.3", ".version 8.4", OK, "");
        check(".version 6.3", ".version 8.5", 222, "8.4 at most");
        check("sm_70", "sm_80", OK, "");
        check("sm_70", "sm_86", 209, "this device is sm_80");
        check("add.s64 %rd5", "frobnicate.s64 %rd5", 218, "frobnicate");
        check(".version 6.3", "", 218, ".version");
        assert_eq!(load(b"\x7fELF and more").0, 209);
        let (module, mut function) = (load(PTX.as_bytes()).1, null_mut());
        assert_eq!(answer!(cuModuleGetFunction(&mut function, module, c"subtract".as_ptr())), 500);
        ok!(cuModuleGetFunction(&mut function, module, c"add".as_ptr()));
        let mut threads = 0;
        ok!(cuFuncGetAttribute(&mut threads, CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
        assert_eq!(threads, 1024);
        ok!(cuModuleUnload(module));
        assert_eq!(add(function, null_mut(), [1, 1], 0, 0, 0), 400);
    });
}

#[test]
fn a_double_checks_the_shape_of_launches_and_whose_kernel_it_is() {
    alone("kernels::a_double_checks_the_shape_of_launches_and_whose_kernel_it_is", &[], || {
        let contexts = contexts();
        let (kernel, start, first) = (kernel(), upload(&[1; 10]), stream());
        assert_eq!(add(kernel, first, [1, 1025], start, 10, 1), 1);
        assert_eq!(add(kernel, first, [0, 10], start, 10, 1), 1);
        let null = null_mut();
        assert_eq!(answer!(cuLaunchKernel(kernel, 1, 65536, 1, 1, 1, 1, 0, first, null, null)), 1);
        assert_eq!(answer!(cuLaunchKernel(kernel, 1, 1, 1, 32, 32, 2, 0, first, null, null)), 1);
        assert_eq!(answer!(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, first, null, null)), 1);
        ok!(cuCtxSetCurrent(contexts[1]));
        let second = stream();
        assert_eq!(add(kernel, second, [1, 10], start, 10, 1), 400);
        ok!(cuCtxSetCurrent(contexts[0]));
        assert_eq!(add(kernel, second, [1, 10], start, 10, 1), 400);
        assert_eq!(add(kernel, first, [1, 10], start, 10, 1), OK);
        assert_eq!(download(start, 10), [2; 10]);
    });
}

#[test]
fn a_double_loses_the_context_whose_kernel_leaves_its_memory() {
    let test = "kernels::a_double_loses_the_context_whose_kernel_leaves_its_memory";
    for order in ["eager", "lazy"] {
        let said = alone(test, &[("ORDER", order)], || {
            let contexts = contexts();
            let (kernel, start, queue) = (kernel(), upload(&[1; 10]), stream());
            assert_eq!(add(kernel, queue, [1, 32], start, 11, 1), OK, "it is found out when it runs");
            assert_eq!(answer!(cuStreamSynchronize(queue)), 700);
            assert_eq!(answer!(cuMemFree_v2(start)), 700);
            ok!(cuCtxSetCurrent(contexts[1]));
            memory(8);
        });
        if is_child() {
            return;
        }
        assert!(said.contains("`add` failed") && said.contains("between allocations of device 0"), "{said}");
    }
}

#[test]
fn a_double_lets_kernels_touch_a_peer_only_if_that_is_enabled() {
    let test = "kernels::a_double_lets_kernels_touch_a_peer_only_if_that_is_enabled";
    let said = alone(test, &[("ORDER", "lazy")], || {
        let contexts = contexts();
        ok!(cuCtxSetCurrent(contexts[1]));
        let other = upload(&[1; 10]);
        ok!(cuCtxSetCurrent(contexts[0]));
        let (kernel, queue, host) = (kernel(), stream(), pinned(1));
        // SAFETY: nobody else has the memory yet.
        unsafe { host.write(4) };
        ok!(cuCtxEnablePeerAccess(contexts[1], 0));
        assert_eq!(add(kernel, queue, [1, 32], other, 10, 1), OK);
        assert_eq!(add(kernel, queue, [1, 32], host as u64, 1, 1), OK);
        ok!(cuStreamSynchronize(queue));
        // SAFETY: the kernel that writes there is done.
        assert_eq!(unsafe { host.read() }, 5);
        ok!(cuCtxDisablePeerAccess(contexts[1]));
        assert_eq!(add(kernel, queue, [1, 32], other, 10, 1), OK);
        assert_eq!(answer!(cuStreamSynchronize(queue)), 700);
        ok!(cuCtxSetCurrent(contexts[1]));
        assert_eq!(download(other, 10), [2; 10]);
    });
    assert!(is_child() || said.contains("without access to its peer"), "{said}");
}
