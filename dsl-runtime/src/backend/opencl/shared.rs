//! What the devices of a platform have in common: a context, parts of split devices, and the count of memory.
//!
//! All devices that are opened together share the context of their platform, so that buffers can be copied between
//! them without the host. So do those opened later, unless they are split in another way.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};

use opencl3::device::{CL_DEVICE_PARTITION_BY_COUNTS, CL_DEVICE_PARTITION_EQUALLY};

use super::call::{Called, Context, DeviceId, Division, PlatformId};
use super::discover::{Found, alone};
use super::locked;

/// The context of a platform.
#[derive(Debug)]
pub(super) struct Platform {
    pub(super) context: Context,
    splits: Vec<Split>,
}

/// A device that was split, or why it couldn't be.
#[derive(Clone, Debug)]
struct Split {
    whole: DeviceId,
    count: usize,
    parts: Result<Vec<DeviceId>, String>,
}

/// A device that is to be split, or shared if it can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) device: DeviceId,
    pub(super) units: u32,
    pub(super) count: usize,
}

/// What an open device has of the device of the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// All of it.
    Whole,
    /// A part with compute units of its own: the `number`th of `count`.
    Part { number: usize, count: usize, device: DeviceId, units: u32 },
    /// Queues on it, beside those of others: the `number`th of `count`.
    Beside { number: usize, count: usize, reason: String },
}

/// The platforms in use, each with its contexts.
static PLATFORMS: Mutex<Vec<(PlatformId, Weak<Platform>)>> = Mutex::new(Vec::new());

/// All splits so far: as parts live as long as the process, none is made twice.
static SPLITS: Mutex<Vec<Split>> = Mutex::new(Vec::new());

/// Bytes that this program has allocated on each device and its parts, in whatever context.
static USED: Mutex<Vec<(DeviceId, Arc<AtomicU64>)>> = Mutex::new(Vec::new());

/// The count of bytes that this program has allocated on a device of the listing.
pub(super) fn used(device: DeviceId) -> Arc<AtomicU64> {
    let mut all = locked(&USED);
    if let Some((_, used)) = all.iter().find(|(known, _)| *known == device) {
        return used.clone();
    }
    let used = Arc::<AtomicU64>::default();
    all.push((device, used.clone()));
    used
}

impl Platform {
    /// The context of a platform with devices split as wished, shared with open devices of it where it can be.
    pub(super) fn shared(id: PlatformId, all: &[Found], wishes: &[Wish]) -> Called<Arc<Self>> {
        let mut platforms = locked(&PLATFORMS);
        platforms.retain(|(_, platform)| platform.strong_count() > 0);
        let known = platforms.iter().filter(|(known, _)| *known == id).filter_map(|(_, platform)| platform.upgrade());
        if let Some(platform) = known.into_iter().find(|platform| platform.fulfils(wishes)) {
            return Ok(platform);
        }
        let splits: Vec<_> = wishes.iter().map(Split::of).collect();
        let mut devices: Vec<_> = all.iter().filter(|found| found.platform == id).map(|found| found.device).collect();
        devices.extend(splits.iter().flat_map(|split| split.parts.iter().flatten()));
        let platform = Arc::new(Self { context: Context::new(&devices)?, splits });
        platforms.push((id, Arc::downgrade(&platform)));
        Ok(platform)
    }

    fn fulfils(&self, wishes: &[Wish]) -> bool {
        wishes.iter().all(|wish| self.split(wish).is_some())
    }

    fn split(&self, wish: &Wish) -> Option<&Split> {
        self.splits.iter().find(|split| (split.whole, split.count) == (wish.device, wish.count))
    }

    /// What the `number`th device (from 1) of those that a wish asks for gets.
    pub(super) fn seat(&self, wish: &Wish, number: usize) -> Seat {
        let count = wish.count;
        match self.split(wish).map(|split| &split.parts) {
            None => Seat::Whole,
            Some(Err(reason)) => Seat::Beside { number, count, reason: reason.clone() },
            Some(Ok(parts)) => {
                let device = parts[number - 1];
                // A driver that can't tell leaves what was asked for.
                let units = device.units().unwrap_or(sizes(wish.units, count)[number - 1]);
                Seat::Part { number, count, device, units }
            }
        }
    }
}

impl Split {
    fn of(wish: &Wish) -> Self {
        let mut splits = locked(&SPLITS);
        let known = splits.iter().find(|split| (split.whole, split.count) == (wish.device, wish.count));
        known.cloned().unwrap_or_else(|| {
            splits.push(Self::new(wish));
            splits[splits.len() - 1].clone()
        })
    }

    fn new(wish: &Wish) -> Self {
        let Wish { device, units, count } = *wish;
        let _alone = alone();
        let parts = device.divisions().map_err(|failure| format!("{} gave {failure}", failure.call));
        let parts = parts.and_then(|ways| division(units, count, &ways)).and_then(|division| {
            let mut parts = device.split(&division).map_err(|failure| format!("{} gave {failure}", failure.call))?;
            if parts.len() < count {
                return Err(format!("the driver made {} parts", parts.len()));
            }
            parts.truncate(count);
            Ok(parts)
        });
        Self { whole: device, count, parts }
    }
}

/// Compute units of the parts, near-equal; the first have one more.
fn sizes(units: u32, count: usize) -> Vec<u32> {
    let (each, rest) = (units / count as u32, units as usize % count);
    (0..count).map(|part| each + u32::from(part < rest)).collect()
}

/// How a device that can be split in these `ways` becomes `count` devices; if it can't, why.
fn division(units: u32, count: usize, ways: &[isize]) -> Result<Division, String> {
    if (units as usize) < count {
        return Err(format!("it has {units} compute units"));
    }
    let each = units / count as u32;
    let divides = each as usize * count == units as usize;
    let (equally, by_counts) =
        (ways.contains(&CL_DEVICE_PARTITION_EQUALLY), ways.contains(&CL_DEVICE_PARTITION_BY_COUNTS));
    match (equally, by_counts) {
        (true, _) if divides => Ok(Division::Equally(each)),
        (_, true) => Ok(Division::ByCounts(sizes(units, count))),
        // Some units are left over.
        (true, false) => Ok(Division::Equally(each)),
        (false, false) => Err("its driver splits no devices".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_split_into_near_equal_parts_where_its_driver_can() {
        const BOTH: [isize; 2] = [CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS];
        for (units, count, ways, expected) in [
            (8, 2, &BOTH[..], Ok(Division::Equally(4))),
            (8, 3, &BOTH, Ok(Division::ByCounts(vec![3, 3, 2]))),
            (8, 2, &BOTH[1..], Ok(Division::ByCounts(vec![4, 4]))),
            (7, 2, &BOTH[..1], Ok(Division::Equally(3))),
            (4, 4, &BOTH, Ok(Division::Equally(1))),
            (3, 4, &BOTH, Err("it has 3 compute units")),
            (8, 2, &[], Err("its driver splits no devices")),
            (8, 2, &[0], Err("its driver splits no devices")),
        ] {
            assert_eq!(division(units, count, ways), expected.map_err(str::to_owned), "{units} / {count}");
        }
    }

    #[test]
    fn all_compute_units_are_given_to_a_part() {
        for units in 1..40 {
            for count in 1..=units as usize {
                let sizes = sizes(units, count);
                assert_eq!((sizes.len(), sizes.iter().sum::<u32>()), (count, units));
                assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[count - 1] <= 1, "{sizes:?}");
            }
        }
    }
}
