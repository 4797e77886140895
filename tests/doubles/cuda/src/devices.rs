//! The driver and its devices: how many there are, and how they are.

use std::ffi::{c_char, c_int, c_uint};

use polyhalo_double_engine::{Failure, Kind, Outcome};

use crate::contexts::device;
use crate::entry::{Out, Text, start};
use crate::{Double, codes};

/// What a block and a grid have at most, along X, Y and Z.
pub(crate) const BLOCK_THREADS: u32 = 1024;
pub(crate) const BLOCK: [u32; 3] = [1024, 1024, 64];
pub(crate) const GRID: [u32; 3] = [0x7FFF_FFFF, 65535, 65535];
/// Bytes of shared memory of a block.
pub(crate) const SHARED_BYTES: u32 = 49152;
/// The largest pitch of a copy.
pub(crate) const PITCH: u64 = 0x7FFF_FFFF;

fn attribute(double: &Double, device: usize, attribute: c_int) -> Option<c_int> {
    Some(match attribute {
        1 => BLOCK_THREADS as c_int,
        2..=4 => BLOCK[attribute as usize - 2] as c_int,
        5..=7 => GRID[attribute as usize - 5] as c_int,
        // Shared and constant memory, threads that run in step.
        8 => SHARED_BYTES as c_int,
        9 => 65536,
        10 => 32,
        11 => PITCH as c_int,
        // Registers of a block, and the clock in kHz.
        12 | 82 => 65536,
        13 => 1_410_000,
        14 => 512,
        // Copies beside kernels, pinned memory in the address space, concurrent kernels, one address space.
        15 | 19 | 31 | 41 => 1,
        16 => 8,
        // A limit on run time, a part of the chipset, the mode, managed memory, memory pools.
        17 | 18 | 20 | 83 | 115 => 0,
        33 => device as c_int + 1,
        34 | 50 => 0,
        // The clock of the memory in kHz, the width of its bus, the cache's bytes.
        36 => 1_215_000,
        37 => 5120,
        38 => 40 << 20,
        39 => 2048,
        40 => 3,
        75 => double.capability.0 as c_int,
        76 => double.capability.1 as c_int,
        // Shared memory of a multiprocessor.
        81 => 65536,
        _ => return None,
    })
}

fn pci(device: usize) -> String {
    format!("0000:{:02X}:00.0", device + 1)
}

fn uuid(double: &Double, uuid: Out<[u8; 16]>, ordinal: c_int) -> Outcome<()> {
    let mut bytes = *b"polyhalo double\0";
    bytes[15] = device(double, ordinal)? as u8;
    uuid.set(bytes)
}

entries! {
    fn cuInit(flags: c_uint) first |double| {
        if flags != 0 {
            return Err(Failure::misuse(Kind::InvalidValue, format!("flags {flags} where none exist")));
        }
        if double.machine.devices() == 0 {
            return Err(Failure::new(Kind::Code(codes::NO_DEVICE), "there is no device"));
        }
        start();
        Ok(())
    };
    fn cuDriverGetVersion(version: Out<c_int>) first |double| {
        version.set((double.driver.0 * 1000 + double.driver.1 * 10) as c_int)
    };
    fn cuDeviceGetCount(count: Out<c_int>) any |double| count.set(double.machine.devices() as c_int);
    fn cuDeviceGet(found: Out<c_int>, ordinal: c_int) any |double| found.set(device(double, ordinal)? as c_int);
    fn cuDeviceGetName(name: Out<c_char>, room: c_int, ordinal: c_int) any |double| {
        let device = device(double, ordinal)?;
        name.set_text(&format!("CUDA double {device}"), usize::try_from(room).unwrap_or(0))
    };
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, ordinal: c_int) any |double| {
        bytes.set(double.machine.memory(device(double, ordinal)?)[1] as usize)
    };
    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_int, ordinal: c_int) any |double| {
        let found = attribute(double, device(double, ordinal)?, number);
        value.set(found.ok_or_else(|| Failure::misuse(Kind::InvalidValue, format!("an unknown attribute, {number}")))?)
    };
    fn cuDeviceGetPCIBusId(text: Out<c_char>, room: c_int, ordinal: c_int) any |double| {
        let device = device(double, ordinal)?;
        text.set_text(&pci(device), usize::try_from(room).unwrap_or(0))
    };
    fn cuDeviceGetByPCIBusId(found: Out<c_int>, text: Text) any |double| {
        let text = text.get()?.to_string_lossy().to_uppercase();
        let device = (0..double.machine.devices()).find(|device| pci(*device) == text);
        let missing = || Failure::misuse(Kind::InvalidDevice, format!("there is no device at {text}"));
        found.set(device.ok_or_else(missing)? as c_int)
    };
    fn cuDeviceGetUuid(id: Out<[u8; 16]>, ordinal: c_int) any |double| uuid(double, id, ordinal);
    fn cuDeviceGetUuid_v2(id: Out<[u8; 16]>, ordinal: c_int) any |double| uuid(double, id, ordinal);
    fn cuDeviceCanAccessPeer(can: Out<c_int>, from: c_int, to: c_int) any |double| {
        can.set(c_int::from(double.machine.can_reach(device(double, from)?, device(double, to)?)))
    };
    fn cuDeviceGetP2PAttribute(value: Out<c_int>, number: c_int, from: c_int, to: c_int) any |double| {
        let can = double.machine.can_reach(device(double, from)?, device(double, to)?);
        match number {
            // How good the link is, in an order of all.
            1 => value.set(0),
            2 | 3 => value.set(c_int::from(can)),
            _ => Err(Failure::misuse(Kind::InvalidValue, format!("an unknown attribute, {number}"))),
        }
    };
}
