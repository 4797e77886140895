//! Copies of boxes: in as few calls as the library has for them.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::super::boxes::{self, MAX_PITCH, describes_planes};
use super::super::driver::{Called, End, Kind, Side};
use super::super::library::unasked;
use super::{Hip, call};

/// `hipPos`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    x: usize,
    y: usize,
    z: usize,
}

/// `hipPitchedPtr`: `pitch` from row to row, `height` rows from plane to plane.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Pitched {
    start: *mut c_void,
    pitch: usize,
    width: usize,
    height: usize,
}

/// `hipExtent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Extent {
    bytes: usize,
    rows: usize,
    planes: usize,
}

/// `hipMemcpy3DParms`.
#[repr(C)]
pub(super) struct Planes {
    from_array: *mut c_void,
    from_position: Position,
    from: Pitched,
    to_array: *mut c_void,
    to_position: Position,
    to: Pitched,
    extent: Extent,
    kind: c_int,
}

/// `hipMemcpy3DPeerParms`.
#[repr(C)]
pub(super) struct PeerPlanes {
    from_array: *mut c_void,
    from_position: Position,
    from: Pitched,
    from_device: c_int,
    to_array: *mut c_void,
    to_position: Position,
    to: Pitched,
    to_device: c_int,
    extent: Extent,
}

fn start(end: End) -> *mut c_void {
    end.address as usize as *mut c_void
}

/// An end in the driver's words, for a box of `planes`.
fn pitched(end: End, [_, rows, planes]: [usize; 3]) -> Pitched {
    let height = if planes == 1 { rows } else { end.plane_pitch / end.row_pitch.max(1) };
    Pitched { start: start(end), pitch: end.row_pitch, width: end.row_pitch, height }
}

/// `hipMemcpyHostToDevice`, `hipMemcpyDeviceToHost` or `hipMemcpyDeviceToDevice`.
fn kind(from: Side, to: Side) -> c_int {
    match (from, to) {
        (Side::Host, _) => 1,
        (_, Side::Host) => 2,
        (Side::Card(_), Side::Card(_)) => 3,
    }
}

impl Hip {
    /// Enqueues a copy; the stream's card is current.
    ///
    /// # Safety
    /// As [`Driver::copy`](super::Driver::copy) asks.
    pub(super) unsafe fn copy_box(&self, stream: *mut c_void, from: End, to: End, shape: [usize; 3]) -> Called<()> {
        let (from, to, shape) = boxes::reduced(from, to, shape);
        match (from.side, to.side) {
            (Side::Host, Side::Host) => Err(unasked(
                "hipMemcpyAsync",
                Kind::Unsupported,
                "copies within the host's memory aren't the driver's".to_owned(),
            )),
            (Side::Card(source), Side::Card(target)) if source != target => {
                self.copy_between(stream, from, to, shape, [source as c_int, target as c_int])
            }
            (Side::Host | Side::Card(_), Side::Host | Side::Card(_)) => self.copy_near(stream, from, to, shape),
        }
    }

    /// Between a card and the host, or within a card.
    fn copy_near(&self, stream: *mut c_void, from: End, to: End, shape: [usize; 3]) -> Called<()> {
        let [bytes, rows, planes] = shape;
        let kind = kind(from.side, to.side);
        if planes > 1 {
            if self.entries.hipMemcpy3DAsync.is_some() && describes_planes(&from) && describes_planes(&to) {
                let copy = Planes {
                    from_array: ptr::null_mut(),
                    from_position: Position::default(),
                    from: pitched(from, shape),
                    to_array: ptr::null_mut(),
                    to_position: Position::default(),
                    to: pitched(to, shape),
                    extent: Extent { bytes, rows, planes },
                    kind,
                };
                return call!(self, hipMemcpy3DAsync(&copy, stream));
            }
            return boxes::planes(from, to, planes)
                .try_for_each(|(from, to)| self.copy_near(stream, from, to, [bytes, rows, 1]));
        }
        if rows > 1 {
            if from.row_pitch <= MAX_PITCH && to.row_pitch <= MAX_PITCH {
                let (pitch, to_pitch) = (from.row_pitch, to.row_pitch);
                return call!(
                    self,
                    hipMemcpy2DAsync(start(to), to_pitch, start(from), pitch, bytes, rows, kind, stream)
                );
            }
            return boxes::rows(from, to, rows)
                .try_for_each(|(from, to)| self.copy_near(stream, from, to, [bytes, 1, 1]));
        }
        call!(self, hipMemcpyAsync(start(to), start(from), bytes, kind, stream))
    }

    /// Between two cards, the source and the target.
    fn copy_between(
        &self,
        stream: *mut c_void,
        from: End,
        to: End,
        shape: [usize; 3],
        cards: [c_int; 2],
    ) -> Called<()> {
        let ([bytes, rows, planes], [source, target]) = (shape, cards);
        if planes > 1 && !(describes_planes(&from) && describes_planes(&to)) {
            return boxes::planes(from, to, planes)
                .try_for_each(|(from, to)| self.copy_between(stream, from, to, [bytes, rows, 1], cards));
        }
        if planes == 1 && rows == 1 {
            return call!(self, hipMemcpyPeerAsync(start(to), target, start(from), source, bytes, stream));
        }
        let fits = from.row_pitch <= MAX_PITCH && to.row_pitch <= MAX_PITCH;
        if fits && self.entries.hipMemcpy3DPeerAsync.is_some() {
            let copy = PeerPlanes {
                from_array: ptr::null_mut(),
                from_position: Position::default(),
                from: pitched(from, shape),
                from_device: source,
                to_array: ptr::null_mut(),
                to_position: Position::default(),
                to: pitched(to, shape),
                to_device: target,
                extent: Extent { bytes, rows, planes },
            };
            return call!(self, hipMemcpy3DPeerAsync(&copy, stream));
        }
        // Older releases have only lines between cards.
        boxes::planes(from, to, planes).try_for_each(|(from, to)| {
            boxes::rows(from, to, rows)
                .try_for_each(|(from, to)| self.copy_between(stream, from, to, [bytes, 1, 1], cards))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn structures_are_laid_out_as_in_the_vendors_header() {
        assert_eq!(size_of::<Planes>(), 160);
        assert_eq!((offset_of!(Planes, from), offset_of!(Planes, to_array)), (32, 64));
        assert_eq!((offset_of!(Planes, to), offset_of!(Planes, extent), offset_of!(Planes, kind)), (96, 128, 152));
        assert_eq!(size_of::<PeerPlanes>(), 168);
        assert_eq!((offset_of!(PeerPlanes, from_device), offset_of!(PeerPlanes, to_array)), (64, 72));
        assert_eq!((offset_of!(PeerPlanes, to_device), offset_of!(PeerPlanes, extent)), (136, 144));
    }
}
