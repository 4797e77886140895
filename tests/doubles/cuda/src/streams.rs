//! Streams, events, and graphs made of what streams record.

use std::ffi::{c_int, c_uint, c_ulonglong};

use polyhalo_double_engine::{CaptureMode, Failure, Kind, Outcome};

use crate::entry::{self, Out};
use crate::{Double, double};

/// The names of the default stream.
const DEFAULT: [u64; 2] = [0, 1];

/// The stream that is meant: the default one of the current device where none is named.
pub(crate) fn named(double: &Double, device: usize, stream: u64) -> Outcome<u64> {
    match stream {
        stream if DEFAULT.contains(&stream) => Ok(double.machine.default_stream(device)),
        2 => Err(Failure::misuse(Kind::InvalidHandle, "the default streams of threads aren't there")),
        stream => Ok(stream),
    }
}

fn no_flags(flags: c_uint) -> Outcome<()> {
    known_flags(flags, 0)
}

fn known_flags(flags: c_uint, known: c_uint) -> Outcome<()> {
    match flags & !known {
        0 => Ok(()),
        _ => Err(Failure::misuse(Kind::InvalidValue, format!("unknown flags {flags:#x}"))),
    }
}

fn stream(double: &Double, device: usize, made: Out<u64>, flags: c_uint) -> Outcome<()> {
    known_flags(flags, 1)?;
    made.set(double.machine.stream(device, flags == 0)?)
}

fn begin(double: &Double, stream: u64, mode: c_uint) -> Outcome<()> {
    let mode = match mode {
        0 => CaptureMode::Global,
        1 => CaptureMode::ThreadLocal,
        2 => CaptureMode::Relaxed,
        _ => return Err(Failure::misuse(Kind::InvalidValue, format!("an unknown mode, {mode}"))),
    };
    double.machine.begin_capture(stream, mode)
}

fn elapsed(double: &Double, milliseconds: Out<f32>, from: u64, to: u64) -> Outcome<()> {
    milliseconds.set(double.machine.elapsed(from, to)?)
}

/// Makes a graph ready; what would be said against it has no room to be said.
fn instantiate(double: &Double, made: Out<u64>, graph: u64) -> Outcome<()> {
    made.set(double.machine.instantiate(graph)?)
}

/// Ends the recording of a stream, also where the call fails as a test wanted or because the device is lost.
#[unsafe(no_mangle)]
extern "C" fn cuStreamEndCapture(stream: u64, graph: Out<u64>) -> c_int {
    let mut is_asked = false;
    let code = entry::current("cuStreamEndCapture", |double, _| {
        is_asked = true;
        graph.set(0)?;
        graph.set(double.machine.end_capture(stream)?)
    });
    if let (false, Ok(double)) = (is_asked, double()) {
        double.machine.abandon_capture(stream);
    }
    code
}

entries! {
    fn cuStreamCreate(made: Out<u64>, flags: c_uint) current |double, device| stream(double, device, made, flags);
    fn cuStreamCreateWithPriority(made: Out<u64>, flags: c_uint, _priority: c_int) current |double, device| {
        stream(double, device, made, flags)
    };
    fn cuStreamDestroy(stream: u64) current |double, _| double.machine.destroy_stream(stream);
    fn cuStreamDestroy_v2(stream: u64) current |double, _| double.machine.destroy_stream(stream);
    fn cuStreamSynchronize(stream: u64) current |double, device| {
        double.machine.finish_stream(named(double, device, stream)?)
    };
    fn cuStreamQuery(stream: u64) current |double, device| double.machine.query_stream(named(double, device, stream)?);
    fn cuStreamWaitEvent(stream: u64, event: u64, flags: c_uint) current |double, device| {
        no_flags(flags)?;
        double.machine.wait(named(double, device, stream)?, event)
    };
    fn cuEventCreate(made: Out<u64>, flags: c_uint) current |double, device| {
        // Waiting without a busy loop, without times.
        known_flags(flags, 3)?;
        made.set(double.machine.event(device, flags & 2 == 0)?)
    };
    fn cuEventDestroy(event: u64) current |double, _| double.machine.destroy_event(event);
    fn cuEventDestroy_v2(event: u64) current |double, _| double.machine.destroy_event(event);
    fn cuEventRecord(event: u64, stream: u64) current |double, device| {
        double.machine.record(event, named(double, device, stream)?)
    };
    fn cuEventSynchronize(event: u64) current |double, _| double.machine.finish_event(event);
    fn cuEventQuery(event: u64) current |double, _| double.machine.query_event(event);
    fn cuEventElapsedTime(milliseconds: Out<f32>, from: u64, to: u64) current |double, _| {
        elapsed(double, milliseconds, from, to)
    };
    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, from: u64, to: u64) current |double, _| {
        elapsed(double, milliseconds, from, to)
    };
    fn cuStreamBeginCapture(stream: u64) current |double, _| begin(double, stream, 0);
    fn cuStreamBeginCapture_v2(stream: u64, mode: c_uint) current |double, _| begin(double, stream, mode);
    fn cuStreamIsCapturing(stream: u64, status: Out<c_int>) current |double, device| {
        let recorded = double.machine.is_captured(named(double, device, stream)?)?;
        status.set(recorded.map_or(0, |is_valid| if is_valid { 1 } else { 2 }))
    };
    fn cuGraphInstantiate(made: Out<u64>, graph: u64, _node: Out<u64>, _log: Out<u8>, _room: usize)
        current |double, _| instantiate(double, made, graph);
    fn cuGraphInstantiate_v2(made: Out<u64>, graph: u64, _node: Out<u64>, _log: Out<u8>, _room: usize)
        current |double, _| instantiate(double, made, graph);
    fn cuGraphInstantiateWithFlags(made: Out<u64>, graph: u64, _flags: c_ulonglong)
        current |double, _| instantiate(double, made, graph);
    fn cuGraphLaunch(graph: u64, stream: u64) current |double, device| {
        double.machine.launch_graph(graph, named(double, device, stream)?)
    };
    fn cuGraphExecDestroy(graph: u64) current |double, _| double.machine.destroy_graph(graph, true);
    fn cuGraphDestroy(graph: u64) current |double, _| double.machine.destroy_graph(graph, false);
}
