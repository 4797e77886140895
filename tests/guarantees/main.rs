//! What polyhalo promises (`../shared/GUARANTEES.md`), each line a module and each claim a test, on every device of this
//! machine. Lines 1 and 3 are tested by random steps too (`random_steps`).
#![allow(clippy::unit_arg, reason = "kernels say what the test needs")]

mod arithmetic;
mod corners;
mod errors;
mod halos;
mod kernels;
mod launches;
mod points;
mod races;
mod reductions;

use polyhalo::Simulation;
use polyhalo_tests::steps::check::{Device, devices, opencl};

/// The devices that are always there and those of OpenCL.
fn all_devices() -> Vec<Device> {
    let platforms = [("pocl", "portable"), ("intel", "intel")];
    devices().into_iter().chain(platforms.into_iter().filter_map(|(tool, part)| opencl(tool, part))).collect()
}

/// A simulation on every device.
fn everywhere(cells: [usize; 3]) -> Vec<Simulation> {
    all_devices().iter().map(|device| device.on(cells)).collect()
}

/// A simulation where what is tested doesn't depend on the device.
fn anywhere(cells: [usize; 3]) -> Simulation {
    devices()[2].on(cells)
}

/// All cells of a grid, X fastest.
fn cells_of([nx, ny, nz]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..nz).flat_map(move |k| (0..ny).flat_map(move |j| (0..nx).map(move |i| [i, j, k])))
}
