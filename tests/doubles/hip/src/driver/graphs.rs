//! Recordings of streams, and graphs.

use std::ffi::{c_char, c_void};

use polyhalo_double_engine::CaptureMode;

use super::{call, codes, give, machine, streams::own, wrong};

/// Begins to record a stream.
#[unsafe(no_mangle)]
extern "C" fn hipStreamBeginCapture(stream: u64, mode: u32) -> i32 {
    call("hipStreamBeginCapture", |machine, device| {
        let mode = match mode {
            0 => CaptureMode::Global,
            1 => CaptureMode::ThreadLocal,
            2 => CaptureMode::Relaxed,
            _ => return Err(wrong(codes::INVALID_VALUE, format!("recordings have no mode {mode}"))),
        };
        machine.begin_capture(own(machine, device, stream)?, mode)
    })
}

/// Ends the recording of a stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamEndCapture(stream: u64, place: *mut u64) -> i32 {
    let mut is_asked = false;
    let code = call("hipStreamEndCapture", |machine, device| {
        is_asked = true;
        let graph = machine.end_capture(own(machine, device, stream)?)?;
        // SAFETY: the caller gives a place.
        unsafe { give(place, graph) }
    });
    if !is_asked {
        // It failed as the test wanted, or because the device is lost.
        machine().abandon_capture(stream);
    }
    code
}

/// Whether a stream is recorded: 0 no, 1 yes, 2 in vain.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipStreamIsCapturing(stream: u64, place: *mut u32) -> i32 {
    call("hipStreamIsCapturing", |machine, device| {
        let state = match machine.is_captured(own(machine, device, stream)?)? {
            None => 0,
            Some(true) => 1,
            Some(false) => 2,
        };
        // SAFETY: the caller gives a place.
        unsafe { give(place, state) }
    })
}

/// Makes a graph ready.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGraphInstantiate(
    place: *mut u64,
    graph: u64,
    _failed: *mut *mut c_void,
    _log: *mut c_char,
    _room: usize,
) -> i32 {
    // SAFETY: the caller gives a place.
    call("hipGraphInstantiate", |machine, _| unsafe { give(place, machine.instantiate(graph)?) })
}

/// Makes a graph ready.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGraphInstantiateWithFlags(place: *mut u64, graph: u64, _flags: u64) -> i32 {
    // SAFETY: the caller gives a place.
    call("hipGraphInstantiateWithFlags", |machine, _| unsafe { give(place, machine.instantiate(graph)?) })
}

/// Enqueues a graph.
#[unsafe(no_mangle)]
extern "C" fn hipGraphLaunch(ready: u64, stream: u64) -> i32 {
    call("hipGraphLaunch", |machine, device| machine.launch_graph(ready, own(machine, device, stream)?))
}

/// Gives a ready graph back.
#[unsafe(no_mangle)]
extern "C" fn hipGraphExecDestroy(ready: u64) -> i32 {
    call("hipGraphExecDestroy", |machine, _| machine.destroy_graph(ready, true))
}

/// Gives a graph back.
#[unsafe(no_mangle)]
extern "C" fn hipGraphDestroy(graph: u64) -> i32 {
    call("hipGraphDestroy", |machine, _| machine.destroy_graph(graph, false))
}

/// The number of nodes of a graph; which they are, the double doesn't say.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGraphGetNodes(graph: u64, nodes: *mut *mut c_void, place: *mut usize) -> i32 {
    call("hipGraphGetNodes", |machine, _| {
        if !nodes.is_null() {
            return Err(wrong(codes::INVALID_VALUE, "the double only counts the nodes of a graph"));
        }
        // SAFETY: the caller gives a place.
        unsafe { give(place, machine.graph_nodes(graph)?) }
    })
}
