//! The host device: native kernels over tiles of the grid on a pool of pinned threads, and queues of operations that run
//! at once or on helper threads.
//!
//! A device is a `processor` (threads, caches) and its buffers (`device`). Operations are checked when they are issued and
//! become data (`work`), which the `engine` of all devices that were opened together takes from their `queues`.

mod args;
mod cache;
mod chooser;
mod device;
mod engine;
mod helper;
mod memory;
mod placement;
mod pool;
mod processor;
#[cfg(test)]
mod queue_tests;
mod queues;
mod split;
pub mod support;
mod sweep;
#[cfg(test)]
mod tests;
mod work;

use std::env;
use std::fs;

pub use args::{BoxArgs, InstructionSet};
pub use memory::{free_memory, total_memory};

use super::{Backend, Device, DeviceInfo, DeviceKind, Listing, OpenOptions, allowed_cpus, listed};
use crate::error::{Error, Result};
use cache::Caches;
use device::devices_of;
use placement::Placement;
use pool::Pool;
use processor::Processor;

/// The back end with the host device.
pub struct Host;

/// The variable of the environment that overrides the choice of the instruction set.
pub const INSTRUCTION_SET_VARIABLE: &str = "POLYHALO_INSTRUCTION_SET";

/// More threads than this are taken for a mistake.
const MOST_THREADS: usize = 4096;

impl Backend for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    fn devices(&self) -> Listing {
        let info = DeviceInfo {
            backend: self.name(),
            ordinal: 0,
            name: processor_name(),
            platform: String::new(),
            notes: vec![format!("kernels for {}", InstructionSet::best())],
            kind: DeviceKind::Cpu,
            pci: None,
            fp64: true,
            units: allowed_cpus().len() as u32,
            memory_bytes: total_memory(),
        };
        Listing { devices: vec![info], absent: Vec::new() }
    }

    fn open(&self, ordinals: &[u32], options: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
        let infos = ordinals.iter().map(|&ordinal| listed(self, ordinal)).collect::<Result<Vec<_>>>()?;
        let set = instruction_set(options)?;
        let places = placements(infos.len(), options)?;
        let (count, all) = (infos.len(), places.iter().map(|place| place.cpus.len()).sum());
        let open = |(number, (info, place)): (usize, (DeviceInfo, Placement))| {
            let threads = place.cpus.len();
            let name = match count {
                1 => format!("host ({}, {set})", place.threads()),
                _ => format!("host {number} of {count} ({place}, {set})"),
            };
            let units = if count == 1 { info.units } else { threads as u32 };
            let pool = Pool::new(place)
                .map_err(|source| Error::System { call: format!("starting {threads} threads"), source })?;
            let caches = Caches::of_threads(threads, all);
            Ok((DeviceInfo { units, ..info }, Processor { name, set, pool, caches }))
        };
        let processors = infos.into_iter().zip(places).enumerate().map(open).collect::<Result<_>>()?;
        devices_of(processors, options)
    }
}

/// The CPUs of the threads of each device.
fn placements(devices: usize, options: &OpenOptions) -> Result<Vec<Placement>> {
    let cpus = allowed_cpus();
    let (asked, most) = (options.threads.unwrap_or(1), MOST_THREADS / devices.max(1));
    if !(1..=most).contains(&asked) {
        return Err(Error::Threads { asked, allowed: cpus.len(), most });
    }
    Ok(Placement::of_devices(&cpus, devices, options.threads, options.affinity))
}

/// The model of the processor, as the system names it.
fn processor_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| format!("{} CPU", env::consts::ARCH), |(_, name)| name.trim().to_owned())
}

fn instruction_set(options: &OpenOptions) -> Result<InstructionSet> {
    let wish = match (options.instruction_set, env::var(INSTRUCTION_SET_VARIABLE)) {
        (Some(set), _) => set,
        (None, Err(_)) => return Ok(InstructionSet::best()),
        (None, Ok(name)) => InstructionSet::named(&name).ok_or_else(|| Error::InstructionSet {
            reason: format!("{INSTRUCTION_SET_VARIABLE} may be baseline, avx2 or avx512"),
            asked: name,
        })?,
    };
    if wish.is_available() {
        return Ok(wish);
    }
    let reason = format!("this CPU doesn't have it; the best that it has is {}", InstructionSet::best());
    Err(Error::InstructionSet { asked: wish.to_string(), reason })
}
