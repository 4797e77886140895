//! Copies of boxes of bytes, and memory filled with a pattern.
//!
//! A copy reads its source and writes its target when it runs. From ordinary memory of the host the bytes are taken at the call,
//! and to such memory the call waits, as drivers do, unless `POLYHALO_DOUBLE_PAGEABLE` says otherwise: they needn't.

use std::sync::Arc;

use crate::fault::{Failure, Kind, Outcome};
use crate::memory::Owner;
use crate::schedule::{Task, Touch, Work};
use crate::settings::Pageable;
use crate::{Machine, State};

/// Where one end of a copy is expected to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In memory of the host.
    Host,
    /// On this device.
    Device(usize),
    /// Wherever the address says.
    Any,
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first byte.
    pub address: u64,
    /// Bytes from one row to the next.
    pub row_pitch: u64,
    /// Bytes from one plane to the next.
    pub plane_pitch: u64,
    /// Where it is expected.
    pub side: Side,
}

impl Block {
    /// Bytes that lie together.
    pub fn line(address: u64, side: Side) -> Self {
        Self { address, row_pitch: 0, plane_pitch: 0, side }
    }

    fn offset(&self, row: u64, plane: u64) -> u64 {
        row * self.row_pitch + plane * self.plane_pitch
    }
}

/// A copy whose ends are known.
#[derive(Clone, Copy)]
struct Boxes {
    from: Block,
    to: Block,
    shape: [u64; 3],
}

impl Machine {
    /// Copies a box of (bytes, rows, planes) on a stream; with `waits`, until it is done.
    ///
    /// # Safety
    /// Ordinary memory of the host at either end is the caller's to read or write until the call returns, or with
    /// [`Pageable::Late`] until the copy is done.
    pub unsafe fn copy(&self, stream: u64, from: Block, to: Block, shape: [u64; 3], waits: bool) -> Outcome<()> {
        let pageable = if waits { Pageable::AtOnce } else { self.settings.pageable };
        self.with(|state| {
            // SAFETY: as the caller promises.
            unsafe { state.copy(stream, from, to, shape, pageable, waits) }
        })
    }

    /// Fills rows of a device's memory with `count` patterns each.
    pub fn fill(&self, stream: u64, address: u64, pattern: &[u8], count: u64, rows: u64, pitch: u64) -> Outcome<()> {
        self.with(|state| {
            let device = state.stream(stream)?.device;
            let width = count * pattern.len() as u64;
            if width == 0 || rows == 0 {
                return Ok(());
            }
            let bytes = (rows - 1) * pitch + width;
            state.side(address, bytes, Side::Device(device))?;
            let pattern = pattern.to_vec();
            let action = move |_: &crate::View<'_>| {
                for row in 0..rows {
                    let start = (address + row * pitch) as *mut u8;
                    // SAFETY: the row is part of a live allocation, as the touched range was checked to be.
                    let row = unsafe { std::slice::from_raw_parts_mut(start, width as usize) };
                    match pattern.as_slice() {
                        [byte] => row.fill(*byte),
                        pattern => row.chunks_exact_mut(pattern.len()).for_each(|place| place.copy_from_slice(pattern)),
                    }
                }
                Ok(())
            };
            let touches = vec![Touch { address, bytes, writes: true }];
            let work = Work { name: "a fill".into(), device, touches, action: Arc::new(action) };
            let is_exact = rows == 1 || pitch == width;
            state.enqueue(stream, Task { work, is_exact }).map(drop)
        })
    }
}

impl State {
    /// The owner of a range, if it is where it is expected.
    fn side(&self, address: u64, bytes: u64, expected: Side) -> Outcome<Option<Owner>> {
        let owner = self.memory.owner(address, bytes)?;
        let whose = owner.map_or("ordinary memory of the host".to_owned(), |owner| owner.to_string());
        let wrong = |kind: Kind, expected: String| {
            Err(Failure::misuse(kind, format!("{address:#x} is used as memory of {expected}, but is {whose}'s")))
        };
        match (expected, owner) {
            (Side::Host, Some(Owner::Device(_))) => wrong(Kind::WrongSide, "the host".into()),
            (Side::Device(device), None | Some(Owner::Pinned | Owner::Registered)) => {
                wrong(Kind::WrongSide, format!("device {device}"))
            }
            (Side::Device(device), Some(Owner::Device(other))) if other != device => {
                wrong(Kind::InvalidValue, format!("device {device}"))
            }
            (Side::Host | Side::Device(_) | Side::Any, owner) => Ok(owner),
        }
    }

    /// # Safety
    /// Ordinary memory of the host at either end is the caller's to read or write until the call returns, or with
    /// [`Pageable::Late`] until the copy is done.
    unsafe fn copy(
        &mut self,
        stream: u64,
        from: Block,
        to: Block,
        shape: [u64; 3],
        pageable: Pageable,
        waits: bool,
    ) -> Outcome<()> {
        let found = self.stream(stream)?;
        let (device, recording) = (found.device, found.capture);
        if waits {
            self.refuse_while_recording("a copy that waits")?;
        }
        if shape.contains(&0) {
            return Ok(());
        }
        let [bytes, rows, planes] = shape;
        let hull = |block: &Block| {
            let overlaps = (rows > 1 && block.row_pitch < bytes)
                || (planes > 1 && block.plane_pitch < (rows - 1) * block.row_pitch + bytes);
            match overlaps {
                true => Err(Failure::misuse(
                    Kind::InvalidValue,
                    format!("rows or planes of {block:?} overlap, for {shape:?}"),
                )),
                false => Ok(block.offset(rows - 1, planes - 1) + bytes),
            }
        };
        let (from_bytes, to_bytes) = (hull(&from)?, hull(&to)?);
        let (source, target) =
            (self.side(from.address, from_bytes, from.side)?, self.side(to.address, to_bytes, to.side)?);
        let on_device =
            |owner: &Option<Owner>| if let Some(Owner::Device(device)) = owner { Some(*device) } else { None };
        let ends: Vec<usize> = [source, target].iter().filter_map(on_device).collect();
        if !ends.is_empty() && !ends.contains(&device) {
            let message = format!("a copy between memory of devices {ends:?} on a stream of device {device}");
            return Err(Failure::misuse(Kind::InvalidValue, message));
        }
        if let Some(capture) = recording.filter(|_| source.is_none() || target.is_none()) {
            self.invalidate(capture);
            return Err(Failure::misuse(Kind::CaptureUnsupported, "a copy of memory that isn't pinned is recorded"));
        }
        for end in ends {
            self.working(end)?;
        }
        let mut touches = Vec::new();
        touches.extend(source.map(|_| Touch { address: from.address, bytes: from_bytes, writes: false }));
        touches.extend(target.map(|_| Touch { address: to.address, bytes: to_bytes, writes: true }));
        let name = format!("a copy from {} to {}", name(source), name(target));
        let boxes = Boxes { from, to, shape };
        let is_whole = |block: &Block| block.offset(rows - 1, planes - 1) + bytes == bytes * rows * planes;
        let is_exact = is_whole(&from) && is_whole(&to);
        let work = |action| Task { work: Work { name, device, touches, action }, is_exact };
        let is_early = pageable == Pageable::AtOnce;
        let enqueued = if source.is_none() && is_early {
            // SAFETY: the caller lets ordinary memory be read during the call.
            let taken = unsafe { taken(boxes) };
            self.enqueue(
                stream,
                work(Arc::new(move |_: &crate::View<'_>| {
                    let packed = Block {
                        address: taken.as_ptr() as u64,
                        row_pitch: bytes,
                        plane_pitch: bytes * rows,
                        ..boxes.from
                    };
                    // SAFETY: the target is part of a live allocation or the caller's, who waits.
                    unsafe { run(Boxes { from: packed, ..boxes }) };
                    Ok(())
                })),
            )?
        } else {
            self.enqueue(
                stream,
                work(Arc::new(move |_: &crate::View<'_>| {
                    // SAFETY: both ends are parts of live allocations, or the caller's, who waits.
                    unsafe { run(boxes) };
                    Ok(())
                })),
            )?
        };
        let Some(node) = enqueued.filter(|_| waits || (target.is_none() && is_early)) else { return Ok(()) };
        self.force(&[node])?;
        self.working(device)
    }
}

fn name(owner: Option<Owner>) -> String {
    owner.map_or("the host".into(), |owner| owner.to_string())
}

/// # Safety
/// The source can be read.
unsafe fn taken(boxes: Boxes) -> Vec<u8> {
    let [bytes, rows, planes] = boxes.shape;
    let mut packed = vec![0; (bytes * rows * planes) as usize];
    let to =
        Block { address: packed.as_mut_ptr() as u64, row_pitch: bytes, plane_pitch: bytes * rows, side: Side::Host };
    // SAFETY: the source can be read, and the target has just the size.
    unsafe { run(Boxes { to, ..boxes }) };
    packed
}

/// # Safety
/// The source can be read and the target written.
unsafe fn run(boxes: Boxes) {
    let [bytes, rows, planes] = boxes.shape;
    for plane in 0..planes {
        for row in 0..rows {
            let from = boxes.from.address + boxes.from.offset(row, plane);
            let to = boxes.to.address + boxes.to.offset(row, plane);
            // SAFETY: the row is part of both boxes.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) };
        }
    }
}
