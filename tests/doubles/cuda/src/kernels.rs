//! Kernels: what a launch must look like, and how it runs.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use polyhalo_double_engine::{Failure, Kind, Outcome, View, Work};
use polyhalo_double_ptx::{Extent, Fault, Memory};

use crate::devices::{BLOCK, GRID, SHARED_BYTES};
use crate::entry::In;
use crate::images::{Function, function};
use crate::streams::named;
use crate::{Double, codes};

/// The memory that the engine lets a kernel reach.
struct Reached<'a>(&'a View<'a>);

// SAFETY: what the engine lets work reach lives until the work has run, and the engine runs one piece of work at a time.
unsafe impl Memory for Reached<'_> {
    fn reach(&self, address: u64, bytes: usize, write: bool) -> Result<Extent, String> {
        let extent = self.0.reach(address, bytes, write)?;
        Ok(Extent { start: extent.start, end: extent.end })
    }
}

/// A launch as it was asked for.
struct Launch {
    function: Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
}

impl Launch {
    fn check(&self) -> Outcome<()> {
        let wrong =
            |message: String| Err(Failure::misuse(Kind::InvalidValue, format!("`{}`: {message}", self.function.name)));
        let fits = |counts: [u32; 3], most: [u32; 3]| (0..3).all(|axis| (1..=most[axis]).contains(&counts[axis]));
        if !fits(self.grid, GRID) {
            return wrong(format!("a grid of {:?} blocks, of {GRID:?} at most", self.grid));
        }
        let threads: u64 = self.block.iter().map(|count| u64::from(*count)).product();
        if !fits(self.block, BLOCK) || threads > self.function.block_threads() {
            return wrong(format!(
                "a block of {:?} threads, of {BLOCK:?} and {} in all at most",
                self.block,
                self.function.block_threads()
            ));
        }
        if self.shared_bytes > SHARED_BYTES {
            return wrong(format!("{} bytes of shared memory, of {SHARED_BYTES} at most", self.shared_bytes));
        }
        if self.shared_bytes > 0 {
            let message = "shared memory whose size the launch says isn't there";
            return Err(Failure::misuse(Kind::Code(codes::NOT_SUPPORTED), message));
        }
        Ok(())
    }

    /// The values of the arguments, as they lie for the kernel, and those that may be pointers.
    fn arguments(&self, pointers: In<In<u8>>) -> Outcome<(Vec<u8>, Vec<u64>)> {
        let kernel = self.function.kernel();
        let (mut values, mut addresses) = (vec![0; kernel.param_bytes()], Vec::new());
        for (index, param) in kernel.params.iter().enumerate() {
            let value = pointers.get(index)?;
            for byte in 0..param.bytes {
                values[param.offset + byte] = value.get(byte)?;
            }
            if let Ok(address) = values[param.offset..param.offset + param.bytes].try_into() {
                addresses.push(u64::from_ne_bytes(address));
            }
        }
        Ok((values, addresses))
    }

    fn work(self, double: &Double, pointers: In<In<u8>>) -> Outcome<Work> {
        self.check()?;
        let (values, addresses) = self.arguments(pointers)?;
        let Self { function, grid, block, .. } = self;
        let (name, device) = (function.name.clone(), function.device);
        let action = move |view: &View<'_>| {
            let kernel = function.kernel();
            match kernel.run(grid, block, &values, &Reached(view)) {
                Ok(_) => Ok(()),
                Err(fault @ Fault::Launch { .. }) => Err(Failure::new(Kind::LaunchFailed, fault.to_string())),
                Err(fault @ Fault::Access { .. }) => Err(Failure::new(Kind::IllegalAddress, fault.to_string())),
            }
        };
        Ok(Work { name, device, touches: double.machine.touches(addresses), action: Arc::new(action) })
    }
}

entries! {
    fn cuLaunchKernel(
        kernel: u64, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint, stream: u64, arguments: In<In<u8>>, extra: In<*mut c_void>,
    ) current |double, device| {
        let function = function(kernel)?;
        if function.device != device {
            let message = format!("a kernel of device {} is launched while device {device} is current", function.device);
            return Err(Failure::misuse(Kind::InvalidHandle, message));
        }
        if !extra.is_null() {
            return Err(Failure::misuse(Kind::Code(codes::NOT_SUPPORTED), "arguments in a buffer"));
        }
        let launch = Launch {
            function,
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
        };
        double.machine.enqueue(named(double, device, stream)?, launch.work(double, arguments)?)
    };
}
