//! Memory of the devices and pinned memory of the host.

use std::ffi::{c_int, c_uchar, c_uint, c_ushort};

use polyhalo_double_engine::{Failure, Kind, Outcome, Owner, Place};

use crate::Double;
use crate::entry::Out;
use crate::streams::named;

/// Fills rows of memory on a stream, or at once on the default one.
fn fill(
    double: &Double,
    device: usize,
    address: u64,
    pattern: &[u8],
    [count, rows, pitch]: [usize; 3],
    stream: Option<u64>,
) -> Outcome<()> {
    if !address.is_multiple_of(pattern.len() as u64) {
        let message = format!("{address:#x} isn't a multiple of {} bytes", pattern.len());
        return Err(Failure::misuse(Kind::InvalidValue, message));
    }
    let machine = &double.machine;
    let (count, rows, pitch) = (count as u64, rows as u64, pitch as u64);
    machine.fill(named(double, device, stream.unwrap_or(0))?, address, pattern, count, rows, pitch)?;
    match stream {
        Some(_) => Ok(()),
        None => machine.finish_stream(machine.default_stream(device)),
    }
}

fn pinned(double: &Double, start: Out<u64>, bytes: usize, flags: c_uint) -> Outcome<()> {
    // For all contexts, in the devices' address space, written only.
    if flags & !7 != 0 {
        return Err(Failure::misuse(Kind::InvalidValue, format!("unknown flags {flags:#x}")));
    }
    start.set(double.machine.alloc_host(bytes as u64)?)
}

fn known(double: &Double, address: u64) -> Outcome<(Owner, u64, u64)> {
    match double.machine.place(address) {
        Place::Known { owner, start, bytes, .. } => Ok((owner, start, bytes)),
        Place::Freed(_) | Place::Gap(_) | Place::Unknown => {
            Err(Failure::misuse(Kind::InvalidValue, format!("{address:#x} is no memory that the driver knows")))
        }
    }
}

entries! {
    fn cuMemGetInfo_v2(free: Out<usize>, all: Out<usize>) current |double, device| {
        let [free_bytes, all_bytes] = double.machine.memory(device);
        free.set(free_bytes as usize)?;
        all.set(all_bytes as usize)
    };
    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) current |double, device| {
        address.set(double.machine.alloc(device, bytes as u64)?)
    };
    fn cuMemFree_v2(address: u64) current |double, device| {
        if address == 0 { Ok(()) } else { double.machine.free(device, address) }
    };
    fn cuMemGetAddressRange_v2(start: Out<u64>, size: Out<usize>, address: u64) current |double, _| {
        let (_, found, bytes) = known(double, address)?;
        start.set_if_wanted(found);
        size.set_if_wanted(bytes as usize);
        Ok(())
    };
    fn cuMemHostAlloc(start: Out<u64>, bytes: usize, flags: c_uint) current |double, _| {
        pinned(double, start, bytes, flags)
    };
    fn cuMemAllocHost_v2(start: Out<u64>, bytes: usize) current |double, _| pinned(double, start, bytes, 0);
    fn cuMemFreeHost(start: u64) current |double, _| double.machine.free_host(start);
    fn cuMemHostRegister_v2(start: u64, bytes: usize, _flags: c_uint) current |double, _| {
        double.machine.register_host(start, bytes as u64)
    };
    fn cuMemHostUnregister(start: u64) current |double, _| double.machine.unregister_host(start);
    fn cuMemHostGetDevicePointer_v2(address: Out<u64>, start: u64, _flags: c_uint) current |double, _| {
        match known(double, start)?.0 {
            Owner::Pinned | Owner::Registered => address.set(start),
            Owner::Device(_) => Err(Failure::misuse(Kind::InvalidValue, format!("{start:#x} is no memory of the host"))),
        }
    };
    fn cuPointerGetAttribute(value: Out<c_uint>, number: c_int, address: u64) any |double| {
        let owner = known(double, address)?.0;
        match (number, owner) {
            // The kind of memory, and the number of its device.
            (2, Owner::Device(_)) => value.set(2),
            (2, Owner::Pinned | Owner::Registered) => value.set(1),
            (9, Owner::Device(device)) => value.set(device as c_uint),
            _ => Err(Failure::misuse(Kind::InvalidValue, format!("attribute {number} of {owner}"))),
        }
    };
    fn cuMemsetD8_v2(address: u64, value: c_uchar, count: usize) current |double, device| {
        fill(double, device, address, &[value], [count, 1, 0], None)
    };
    fn cuMemsetD16_v2(address: u64, value: c_ushort, count: usize) current |double, device| {
        fill(double, device, address, &value.to_ne_bytes(), [count, 1, 0], None)
    };
    fn cuMemsetD32_v2(address: u64, value: c_uint, count: usize) current |double, device| {
        fill(double, device, address, &value.to_ne_bytes(), [count, 1, 0], None)
    };
    fn cuMemsetD8Async(address: u64, value: c_uchar, count: usize, stream: u64) current |double, device| {
        fill(double, device, address, &[value], [count, 1, 0], Some(stream))
    };
    fn cuMemsetD16Async(address: u64, value: c_ushort, count: usize, stream: u64) current |double, device| {
        fill(double, device, address, &value.to_ne_bytes(), [count, 1, 0], Some(stream))
    };
    fn cuMemsetD32Async(address: u64, value: c_uint, count: usize, stream: u64) current |double, device| {
        fill(double, device, address, &value.to_ne_bytes(), [count, 1, 0], Some(stream))
    };
    fn cuMemsetD2D8Async(address: u64, pitch: usize, value: c_uchar, width: usize, height: usize, stream: u64)
        current |double, device| fill(double, device, address, &[value], [width, height, pitch], Some(stream));
    fn cuMemsetD2D32Async(address: u64, pitch: usize, value: c_uint, width: usize, height: usize, stream: u64)
        current |double, device| {
            fill(double, device, address, &value.to_ne_bytes(), [width, height, pitch], Some(stream))
        };
}
