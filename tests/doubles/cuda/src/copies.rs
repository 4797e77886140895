//! Copies: of bytes that lie together, of boxes, and between devices.

use std::ffi::c_uint;

use polyhalo_double_engine::{Block, Failure, Kind, Outcome, Owner, Place, Side};

use crate::contexts::device_of;
use crate::devices::PITCH;
use crate::entry::In;
use crate::streams::named;
use crate::{Double, codes};

/// An end of a copy of a plane, as in `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PlaneEnd {
    x_bytes: usize,
    y: usize,
    memory: c_uint,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PlaneCopy {
    from: PlaneEnd,
    to: PlaneEnd,
    width_bytes: usize,
    height: usize,
}

/// An end of a copy of a box, as in `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy)]
struct BoxEnd {
    x_bytes: usize,
    y: usize,
    z: usize,
    level: usize,
    memory: c_uint,
    host: u64,
    device: u64,
    array: u64,
    /// Only between devices; otherwise reserved.
    context: u64,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy)]
struct BoxCopy {
    from: BoxEnd,
    to: BoxEnd,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

impl BoxCopy {
    fn of(plane: PlaneCopy) -> Self {
        let end = |end: PlaneEnd| {
            let PlaneEnd { x_bytes, y, memory, host, device, array, pitch } = end;
            BoxEnd { x_bytes, y, z: 0, level: 0, memory, host, device, array, context: 0, pitch, height: 0 }
        };
        let PlaneCopy { from, to, width_bytes, height } = plane;
        Self { from: end(from), to: end(to), width_bytes, height, depth: 1 }
    }
}

/// Where work is enqueued: on a stream, or on the default one with the caller waiting for it.
#[derive(Clone, Copy)]
struct When {
    device: usize,
    stream: Option<u64>,
}

fn wrong<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Failure::misuse(Kind::InvalidValue, message))
}

impl Double {
    fn enqueue(&self, when: When, from: Block, to: Block, shape: [usize; 3]) -> Outcome<()> {
        let stream = named(self, when.device, when.stream.unwrap_or(0))?;
        // SAFETY: callers of the C interface pass memory of the host that is theirs during the call.
        unsafe { self.machine.copy(stream, from, to, shape.map(|count| count as u64), when.stream.is_none()) }
    }

    /// The device whose memory an end must be: that of the stream.
    fn side(&self, when: When) -> Outcome<Side> {
        Ok(Side::Device(self.machine.stream_device(named(self, when.device, when.stream.unwrap_or(0))?)?))
    }

    fn upload(&self, when: When, to: u64, from: u64, bytes: usize) -> Outcome<()> {
        let side = self.side(when)?;
        self.enqueue(when, Block::line(from, Side::Host), Block::line(to, side), [bytes, 1, 1])
    }

    fn download(&self, when: When, to: u64, from: u64, bytes: usize) -> Outcome<()> {
        let side = self.side(when)?;
        self.enqueue(when, Block::line(from, side), Block::line(to, Side::Host), [bytes, 1, 1])
    }

    /// The side of an address that must be of a device: the stream's, or one that it may reach.
    fn reached(&self, when: When, address: u64) -> Outcome<Side> {
        let own = self.side(when)?;
        match (self.machine.place(address), own) {
            (Place::Known { owner: Owner::Device(other), .. }, Side::Device(device))
                if self.machine.reaches(device, other) =>
            {
                Ok(Side::Device(other))
            }
            _ => Ok(own),
        }
    }

    fn within(&self, when: When, to: u64, from: u64, bytes: usize) -> Outcome<()> {
        let (from, to) = (Block::line(from, self.reached(when, from)?), Block::line(to, self.reached(when, to)?));
        self.enqueue(when, from, to, [bytes, 1, 1])
    }

    fn anywhere(&self, when: When, to: u64, from: u64, bytes: usize) -> Outcome<()> {
        self.enqueue(when, Block::line(from, Side::Any), Block::line(to, Side::Any), [bytes, 1, 1])
    }

    fn between(
        &self,
        when: When,
        [to, to_context]: [u64; 2],
        [from, from_context]: [u64; 2],
        bytes: usize,
    ) -> Outcome<()> {
        let (from_side, to_side) = (Side::Device(device_of(from_context)?), Side::Device(device_of(to_context)?));
        self.enqueue(when, Block::line(from, from_side), Block::line(to, to_side), [bytes, 1, 1])
    }

    /// A box; `between` is whether each end names its context.
    fn boxes(&self, when: When, copy: BoxCopy, between: bool) -> Outcome<()> {
        let shape = [copy.width_bytes, copy.height, copy.depth];
        let block = |end: BoxEnd| -> Outcome<Block> {
            let (start, side) = match end.memory {
                1 => (end.host, Side::Host),
                2 if between => (end.device, Side::Device(device_of(end.context)?)),
                2 => (end.device, self.reached(when, end.device)?),
                4 => (end.device, Side::Any),
                other => {
                    return Err(Failure::misuse(Kind::Code(codes::NOT_SUPPORTED), format!("memory of kind {other}")));
                }
            };
            if end.level != 0 || (!between && end.context != 0) {
                return wrong("a level of detail or a reserved field isn't 0");
            }
            let (pitch, height) = (end.pitch as u64, end.height as u64);
            if pitch > PITCH {
                return wrong(format!("a pitch of {pitch} bytes, of {PITCH} at most"));
            }
            if copy.height > 1 && pitch < (end.x_bytes + copy.width_bytes) as u64 {
                return wrong(format!("a pitch of {pitch} bytes for rows of {} bytes", end.x_bytes + copy.width_bytes));
            }
            if copy.depth > 1 && height < (end.y + copy.height) as u64 {
                return wrong(format!("planes of {height} rows for {} rows", end.y + copy.height));
            }
            let address = start + end.z as u64 * pitch * height + end.y as u64 * pitch + end.x_bytes as u64;
            Ok(Block { address, row_pitch: pitch, plane_pitch: pitch * height, side })
        };
        self.enqueue(when, block(copy.from)?, block(copy.to)?, shape)
    }
}

fn now(device: usize) -> When {
    When { device, stream: None }
}

fn on(device: usize, stream: u64) -> When {
    When { device, stream: Some(stream) }
}

entries! {
    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) current |double, device| {
        double.upload(now(device), to, from, bytes)
    };
    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) current |double, device| {
        double.upload(on(device, stream), to, from, bytes)
    };
    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) current |double, device| {
        double.download(now(device), to, from, bytes)
    };
    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) current |double, device| {
        double.download(on(device, stream), to, from, bytes)
    };
    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) current |double, device| {
        double.within(now(device), to, from, bytes)
    };
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) current |double, device| {
        double.within(on(device, stream), to, from, bytes)
    };
    fn cuMemcpy(to: u64, from: u64, bytes: usize) current |double, device| {
        double.anywhere(now(device), to, from, bytes)
    };
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: u64) current |double, device| {
        double.anywhere(on(device, stream), to, from, bytes)
    };
    fn cuMemcpyPeer(to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize) current |double, device| {
        double.between(now(device), [to, to_context], [from, from_context], bytes)
    };
    fn cuMemcpyPeerAsync(to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize, stream: u64)
        current |double, device| {
            double.between(on(device, stream), [to, to_context], [from, from_context], bytes)
        };
    fn cuMemcpy2D_v2(copy: In<PlaneCopy>) current |double, device| {
        double.boxes(now(device), BoxCopy::of(copy.get(0)?), false)
    };
    fn cuMemcpy2DUnaligned_v2(copy: In<PlaneCopy>) current |double, device| {
        double.boxes(now(device), BoxCopy::of(copy.get(0)?), false)
    };
    fn cuMemcpy2DAsync_v2(copy: In<PlaneCopy>, stream: u64) current |double, device| {
        double.boxes(on(device, stream), BoxCopy::of(copy.get(0)?), false)
    };
    fn cuMemcpy3D_v2(copy: In<BoxCopy>) current |double, device| double.boxes(now(device), copy.get(0)?, false);
    fn cuMemcpy3DAsync_v2(copy: In<BoxCopy>, stream: u64) current |double, device| {
        double.boxes(on(device, stream), copy.get(0)?, false)
    };
    fn cuMemcpy3DPeer(copy: In<BoxCopy>) current |double, device| double.boxes(now(device), copy.get(0)?, true);
    fn cuMemcpy3DPeerAsync(copy: In<BoxCopy>, stream: u64) current |double, device| {
        double.boxes(on(device, stream), copy.get(0)?, true)
    };
}
