//! What polyhalo promises (`../shared/GUARANTEES.md`), each line a module and each claim a test, on every device of this
//! machine. Lines 1 and 3 are tested by random steps too (`random_steps`).
#![allow(clippy::unit_arg, reason = "kernels say what the test needs")]

mod arithmetic;
mod busy;
mod corners;
mod errors;
mod exchange;
mod failing;
mod figures;
mod files;
mod halos;
mod kernels;
mod launches;
mod lost;
mod orders;
mod points;
mod races;
mod reductions;

use std::sync::OnceLock;

use polyhalo::Simulation;
use polyhalo_tests::steps::device::{Device, PLATFORMS, devices, opencl, several, several_with_opencl};

/// All devices alone, and several together in every way.
fn all_devices() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let alone = devices().into_iter().chain(PLATFORMS.iter().filter_map(|(tool, part)| opencl(tool, part)));
        alone.chain(several()).chain(several_with_opencl()).collect()
    })
}

/// Those of them that find a plane each in a grid.
fn devices_for(cells: [usize; 3]) -> impl Iterator<Item = &'static Device> {
    all_devices().iter().filter(move |device| device.fits(cells))
}

/// A simulation on all of them.
fn everywhere(cells: [usize; 3]) -> Vec<Simulation> {
    devices_for(cells).map(|device| device.on(cells)).collect()
}

/// A simulation where what is tested doesn't depend on the device.
fn anywhere(cells: [usize; 3]) -> Simulation {
    devices()[2].on(cells)
}

/// All cells of a grid, X fastest.
fn cells_of([nx, ny, nz]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..nz).flat_map(move |k| (0..ny).flat_map(move |j| (0..nx).map(move |i| [i, j, k])))
}
