//! What a program gets that does something wrong: NVIDIA's code, and a line that says what.

use std::fs;
use std::path::PathBuf;
use std::ptr::null_mut;

use cudarc::driver::sys::*;

use crate::child::*;

/// Runs the body in a process, and checks that each of these texts was said, and nothing else.
fn check(test: &str, body: fn(), said: &[&str]) {
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.log", test.replace("::", "-")));
    if is_child() {
        alone(test, &[], body);
        return;
    }
    fs::remove_file(&log).ok();
    alone(test, &[("ORDER", "lazy"), ("LOG", log.to_str().expect("a path of this project"))], body);
    let text = fs::read_to_string(&log).expect("something was wrong");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), said.len(), "{text}");
    for (line, words) in lines.iter().zip(said) {
        assert!(line.starts_with("CUDA double: cu") && line.contains(words), "expected `{words}` in `{line}`");
    }
}

#[test]
fn a_double_needs_to_be_started_and_a_context() {
    let body = || {
        let (mut count, mut address, mut context) = (0, 0, null_mut());
        assert_eq!(answer!(cuDeviceGetCount(&mut count)), 3);
        ok!(cuInit(0));
        assert_eq!(answer!(cuMemAlloc_v2(&mut address, 8)), 201);
        assert_eq!(answer!(cuDevicePrimaryCtxRetain(&mut context, 2)), 101);
        assert_eq!(answer!(cuCtxSetCurrent(8 as CUcontext)), 201);
        assert_eq!(answer!(cuDevicePrimaryCtxRelease_v2(0)), 201);
    };
    let said = ["cuInit wasn't called", "no context is current", "no device 2", "0x8 is no context", "more often"];
    check("mistakes::a_double_needs_to_be_started_and_a_context", body, &said);
}

#[test]
fn a_double_refuses_what_belongs_to_another_device() {
    let body = || {
        let contexts = contexts();
        let (start, first, begin) = (memory(32), stream(), event());
        ok!(cuCtxSetCurrent(contexts[1]));
        let (other, second) = (memory(32), stream());
        let host = [0_u64; 4];
        assert_eq!(answer!(cuMemcpyHtoDAsync_v2(start, host.as_ptr().cast(), 32, second)), 1);
        assert_eq!(answer!(cuMemsetD8Async(start, 0, 32, second)), 1);
        assert_eq!(answer!(cuEventRecord(begin, second)), 400);
        assert_eq!(answer!(cuMemFree_v2(start)), 1);
        assert_eq!(answer!(cuMemcpyDtoDAsync_v2(other, start, 32, second)), 1);
        assert_eq!(answer!(cuMemcpyPeerAsync(other, contexts[0], start, contexts[0], 32, first)), 1);
        ok!(cuCtxEnablePeerAccess(contexts[0], 0));
        assert_eq!(answer!(cuCtxEnablePeerAccess(contexts[0], 0)), 704);
        ok!(cuMemcpyDtoDAsync_v2(other, start, 32, second));
    };
    let said = [
        "used as memory of device 1, but is device 0's",
        "used as memory of device 1, but is device 0's",
        "an event of device 0 is recorded on a stream of device 1",
        "freed as memory of device 1, but belongs to device 0",
        "used as memory of device 1, but is device 0's",
        "used as memory of device 0, but is device 1's",
    ];
    check("mistakes::a_double_refuses_what_belongs_to_another_device", body, &said);
}

#[test]
fn a_double_refuses_what_is_gone_or_too_short() {
    let body = || {
        contexts();
        let (start, queue, moment) = (memory(32), stream(), event());
        let mut host = [0_u64; 8];
        assert_eq!(answer!(cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), start, 64, queue)), 1);
        assert_eq!(answer!(cuMemcpyDtoDAsync_v2(start, host.as_ptr() as u64, 32, queue)), 1);
        ok!(cuMemsetD8Async(start, 0, 32, queue));
        assert_eq!(answer!(cuMemFree_v2(start)), 1);
        ok!(cuStreamSynchronize(queue));
        ok!(cuMemFree_v2(start));
        assert_eq!(answer!(cuMemsetD8Async(start, 0, 32, queue)), 1);
        assert_eq!(answer!(cuMemFree_v2(start)), 1);
        ok!(cuStreamDestroy_v2(queue));
        assert_eq!(answer!(cuStreamSynchronize(queue)), 400);
        ok!(cuEventDestroy_v2(moment));
        assert_eq!(answer!(cuEventSynchronize(moment)), 400);
    };
    let said = [
        "beyond their allocation",
        "ordinary memory of the host",
        "freed while enqueued work (a fill) uses it",
        "was freed",
        "freed twice",
        "a stream that was destroyed",
        "an event that was destroyed",
    ];
    check("mistakes::a_double_refuses_what_is_gone_or_too_short", body, &said);
}

#[test]
fn a_double_refuses_what_cannot_be_captured() {
    let body = || {
        contexts();
        let (queue, other, moment) = (stream(), stream(), event());
        let mut graph = null_mut();
        let begin = || ok!(cuStreamBeginCapture_v2(queue, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED));
        begin();
        assert_eq!(answer!(cuStreamSynchronize(queue)), 900);
        assert_eq!(answer!(cuStreamEndCapture(queue, &mut graph)), 901);
        assert!(graph.is_null());
        begin();
        ok!(cuEventRecord(moment, queue));
        assert_eq!(answer!(cuEventQuery(moment)), 907);
        assert_eq!(answer!(cuStreamEndCapture(queue, &mut graph)), 901);
        ok!(cuEventRecord(moment, other));
        begin();
        assert_eq!(answer!(cuStreamWaitEvent(queue, moment, 0)), 905);
        assert_eq!(answer!(cuStreamEndCapture(queue, &mut graph)), 901);
        let start = memory(8);
        begin();
        ok!(cuEventRecord(moment, queue));
        ok!(cuStreamWaitEvent(other, moment, 0));
        ok!(cuMemsetD8Async(start, 0, 8, other));
        assert_eq!(answer!(cuStreamEndCapture(queue, &mut graph)), 904);
    };
    let said = ["waiting for a stream", "asking for an event", "outside of the recording", "doesn't wait for `a fill`"];
    check("mistakes::a_double_refuses_what_cannot_be_captured", body, &said);
}

#[test]
fn a_double_ends_a_recording_whose_end_fails() {
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ends");
    if !is_child() {
        fs::remove_file(&log).ok();
    }
    let variables = [("FAIL", "cuStreamEndCapture:1:901"), ("LOG", log.to_str().expect("a path of this project"))];
    alone("mistakes::a_double_ends_a_recording_whose_end_fails", &variables, || {
        contexts();
        let (queue, start, mut graph) = (stream(), memory(8), null_mut());
        for code in [901, OK] {
            ok!(cuStreamBeginCapture_v2(queue, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL));
            ok!(cuMemsetD8Async(start, 0, 8, queue));
            assert_eq!(answer!(cuStreamEndCapture(queue, &mut graph)), code);
            assert_eq!(graph.is_null(), code != OK);
            ok!(cuStreamSynchronize(queue));
        }
    });
    assert!(!log.exists(), "{:?}", fs::read_to_string(log));
}

#[test]
fn a_double_counts_and_fails_calls() {
    let test = "mistakes::a_double_counts_and_fails_calls";
    let count = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("counts");
    if !is_child() {
        fs::remove_file(&count).ok();
    }
    let path = count.to_str().expect("a path of this project");
    alone(test, &[("COUNT", path), ("FAIL", "cuEventCreate:2:1,cuStreamSynchronize:1:46")], || {
        let contexts = contexts();
        let (queue, mut made, mut address) = (stream(), event(), 0);
        assert_eq!(answer!(cuEventCreate(&mut made, 0)), 1);
        ok!(cuEventCreate(&mut made, 0));
        assert_eq!(answer!(cuStreamSynchronize(queue)), 46);
        assert_eq!(answer!(cuMemAlloc_v2(&mut address, 8)), 46);
        ok!(cuCtxSetCurrent(contexts[1]));
        memory(8);
    });
    if !is_child() {
        let text = fs::read_to_string(count).expect("the program has ended");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.contains(&"cuEventCreate 3") && lines.contains(&"cuMemAlloc 2"), "{text}");
    }
}

#[test]
fn a_double_has_no_device_if_told_so_and_refuses_variables_that_mean_nothing() {
    let test = "mistakes::a_double_has_no_device_if_told_so_and_refuses_variables_that_mean_nothing";
    let body = || {
        let expected = if std::env::var_os("POLYHALO_DOUBLE_ORDER").is_some() { 999 } else { 100 };
        assert_eq!(answer!(cuInit(0)), expected);
    };
    alone(test, &[("DEVICES", "0")], body);
    if !is_child() {
        assert!(alone(test, &[("ORDER", "slow")], body).contains("POLYHALO_DOUBLE_ORDER: `slow`"));
    }
}
