//! Copies of boxes: in as few calls as the driver needs for them.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUcontext, CUdeviceptr, CUmemorytype, CUstream,
};

use super::super::boxes::{self, MAX_PITCH, describes_planes};
use super::super::driver::{Called, End, Kind, Side};
use super::super::library::unasked;
use super::{Cuda, call};

/// An end in the driver's words.
struct Described {
    kind: CUmemorytype,
    host: *mut c_void,
    device: CUdeviceptr,
    pitch: usize,
    height: usize,
}

impl Described {
    fn of(end: End) -> Self {
        let (kind, host, device) = match end.side {
            Side::Host => (CUmemorytype::CU_MEMORYTYPE_HOST, end.address as usize as *mut c_void, 0),
            Side::Card(_) => (CUmemorytype::CU_MEMORYTYPE_DEVICE, ptr::null_mut(), end.address),
        };
        Self {
            kind,
            host,
            device,
            pitch: end.row_pitch,
            height: end.plane_pitch.checked_div(end.row_pitch).unwrap_or(0),
        }
    }
}

impl Cuda {
    /// Enqueues a copy; the stream's context is current.
    ///
    /// # Safety
    /// As [`Driver::copy`](super::Driver::copy) asks.
    pub(super) unsafe fn copy_box(&self, stream: CUstream, from: End, to: End, shape: [usize; 3]) -> Called<()> {
        let (from, to, shape) = boxes::reduced(from, to, shape);
        match (from.side, to.side) {
            (Side::Host, Side::Host) => Err(unasked(
                "cuMemcpyHtoDAsync_v2",
                Kind::Unsupported,
                "copies within the host's memory aren't the driver's".to_owned(),
            )),
            (Side::Card(source), Side::Card(target)) if source != target => {
                let contexts = [self.context(source)?, self.context(target)?];
                self.copy_between(stream, from, to, shape, contexts)
            }
            (Side::Host | Side::Card(_), Side::Host | Side::Card(_)) => self.copy_near(stream, from, to, shape),
        }
    }

    /// Between a card and the host, or within a card.
    fn copy_near(&self, stream: CUstream, from: End, to: End, [bytes, rows, planes]: [usize; 3]) -> Called<()> {
        if planes > 1 {
            if describes_planes(&from) && describes_planes(&to) {
                return call!(self, cuMemcpy3DAsync_v2(&planes_of(from, to, [bytes, rows, planes]), stream));
            }
            return boxes::planes(from, to, planes)
                .try_for_each(|(from, to)| self.copy_near(stream, from, to, [bytes, rows, 1]));
        }
        if rows > 1 {
            if from.row_pitch <= MAX_PITCH && to.row_pitch <= MAX_PITCH {
                return call!(self, cuMemcpy2DAsync_v2(&rows_of(from, to, [bytes, rows]), stream));
            }
            return boxes::rows(from, to, rows)
                .try_for_each(|(from, to)| self.copy_near(stream, from, to, [bytes, 1, 1]));
        }
        let host = |end: End| end.address as usize as *mut c_void;
        match (from.side, to.side) {
            (Side::Host, _) => call!(self, cuMemcpyHtoDAsync_v2(to.address, host(from), bytes, stream)),
            (_, Side::Host) => call!(self, cuMemcpyDtoHAsync_v2(host(to), from.address, bytes, stream)),
            _ => call!(self, cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, stream)),
        }
    }

    /// Between two cards, of the contexts of source and target.
    fn copy_between(
        &self,
        stream: CUstream,
        from: End,
        to: End,
        [bytes, rows, planes]: [usize; 3],
        contexts: [CUcontext; 2],
    ) -> Called<()> {
        let [source, target] = contexts;
        if planes > 1 && !(describes_planes(&from) && describes_planes(&to)) {
            return boxes::planes(from, to, planes)
                .try_for_each(|(from, to)| self.copy_between(stream, from, to, [bytes, rows, 1], contexts));
        }
        if planes == 1 && rows == 1 {
            return call!(self, cuMemcpyPeerAsync(to.address, target, from.address, source, bytes, stream));
        }
        let fits = from.row_pitch <= MAX_PITCH && to.row_pitch <= MAX_PITCH;
        if fits && self.entries.cuMemcpy3DPeerAsync.is_some() {
            return call!(self, cuMemcpy3DPeerAsync(&peers_of(from, to, [bytes, rows, planes], contexts), stream));
        }
        boxes::planes(from, to, planes).try_for_each(|(from, to)| {
            boxes::rows(from, to, rows)
                .try_for_each(|(from, to)| self.copy_between(stream, from, to, [bytes, 1, 1], contexts))
        })
    }
}

fn rows_of(from: End, to: End, [bytes, rows]: [usize; 2]) -> CUDA_MEMCPY2D {
    let (from, to) = (Described::of(from), Described::of(to));
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: from.kind,
        srcHost: from.host,
        srcDevice: from.device,
        srcArray: ptr::null_mut(),
        srcPitch: from.pitch,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstArray: ptr::null_mut(),
        dstPitch: to.pitch,
        WidthInBytes: bytes,
        Height: rows,
    }
}

fn planes_of(from: End, to: End, [bytes, rows, planes]: [usize; 3]) -> CUDA_MEMCPY3D {
    let (from, to) = (Described::of(from), Described::of(to));
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: from.host,
        srcDevice: from.device,
        srcArray: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        srcPitch: from.pitch,
        srcHeight: from.height,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstArray: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dstPitch: to.pitch,
        dstHeight: to.height,
        WidthInBytes: bytes,
        Height: rows,
        Depth: planes,
    }
}

/// With one plane, the height of planes doesn't matter, but the driver wants it to hold the rows.
fn peers_of(from: End, to: End, [bytes, rows, planes]: [usize; 3], contexts: [CUcontext; 2]) -> CUDA_MEMCPY3D_PEER {
    let (from, to) = (Described::of(from), Described::of(to));
    let height = |end: &Described| if planes == 1 { rows } else { end.height };
    CUDA_MEMCPY3D_PEER {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: from.host,
        srcDevice: from.device,
        srcArray: ptr::null_mut(),
        srcContext: contexts[0],
        srcPitch: from.pitch,
        srcHeight: height(&from),
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstArray: ptr::null_mut(),
        dstContext: contexts[1],
        dstPitch: to.pitch,
        dstHeight: height(&to),
        WidthInBytes: bytes,
        Height: rows,
        Depth: planes,
    }
}
