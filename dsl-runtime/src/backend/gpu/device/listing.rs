//! Which cards there are, and how they are opened together.

use std::sync::Arc;

use super::GpuDevice;
use super::card::OpenCard;
use crate::backend::gpu::driver::{Called, Card, Driver, Failure};
use crate::backend::{Affinity, Device, DeviceInfo, DeviceKind, Listing, OpenOptions, allowed_cpus};
use crate::error::{Error, Result};
use crate::placement::{Home, Near, Sys};

/// The cards of a driver, or why there is none.
pub(in crate::backend::gpu) fn listing(backend: &'static str, driver: Result<&'static dyn Driver, String>) -> Listing {
    let mut listing = Listing::default();
    let cards = driver.and_then(|driver| Ok((driver, driver.cards().map_err(|failure| reason(&failure))?)));
    match cards {
        Ok((driver, cards)) => {
            for (number, card) in cards.into_iter().enumerate() {
                match card {
                    Ok(card) => listing.devices.push(info(driver, &card)),
                    Err(failure) => listing.absent.push(format!("{backend} {number}: {}", reason(&failure))),
                }
            }
            if listing.devices.is_empty() && listing.absent.is_empty() {
                listing.absent.push(format!("{backend}: the driver ({}) finds no device", driver.version()));
            }
        }
        Err(reason) => listing.absent.push(reason),
    }
    listing
}

fn reason(failure: &Failure) -> String {
    format!("{} gave {failure}", failure.call)
}

fn info(driver: &dyn Driver, card: &Card) -> DeviceInfo {
    DeviceInfo {
        backend: driver.backend(),
        ordinal: card.ordinal,
        name: card.name.clone(),
        platform: String::new(),
        notes: vec![format!("driver: {}", driver.version()), format!("architecture: {}", card.architecture)],
        kind: DeviceKind::Gpu,
        pci: card.pci.clone(),
        fp64: true,
        units: card.units,
        memory_bytes: card.memory_bytes,
    }
}

/// The vendor's word for what a card has several of.
pub(super) fn units(backend: &str) -> &'static str {
    if backend == "cuda" { "multiprocessors" } else { "compute units" }
}

/// Opens cards to be used together; one that occurs several times is shared.
pub(in crate::backend::gpu) fn open(
    driver: &'static dyn Driver,
    ordinals: &[u32],
    options: &OpenOptions,
) -> Result<Vec<Box<dyn Device>>> {
    let absent = |ordinal: u32, reason: String| Error::NoSuchDevice {
        spec: format!("{} {ordinal}", driver.backend()),
        reason,
        inventory: crate::devices::inventory().to_string(),
    };
    let first = ordinals.first().copied().unwrap_or(0);
    let cards = driver.cards().map_err(|failure| absent(first, reason(&failure)))?;
    let mut opened: Vec<Arc<OpenCard>> = Vec::new();
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    for (place, &ordinal) in ordinals.iter().enumerate() {
        let facts = card(&cards, ordinal).map_err(|reason| absent(ordinal, reason))?;
        let mut info = info(driver, facts);
        let count = ordinals.iter().filter(|&&other| other == ordinal).count();
        if count > 1 {
            let number = ordinals[..=place].iter().filter(|&&other| other == ordinal).count();
            info.name += &format!(", share {number} of {count}");
            info.notes.push(format!("{count} devices share all of it"));
        }
        let card = match opened.iter().find(|card| card.number() == ordinal) {
            Some(card) => card.clone(),
            None => {
                let card = OpenCard::new(driver, facts.clone()).map_err(|failure| Error::Driver {
                    backend: driver.backend(),
                    device: info.to_string(),
                    call: failure.call.to_owned(),
                    message: failure.to_string(),
                })?;
                opened.push(card.clone());
                card
            }
        };
        devices.push(Box::new(GpuDevice::new(info, card, options)));
    }
    Ok(devices)
}

/// The card of that number, or why there is none.
fn card(cards: &[Called<Card>], ordinal: u32) -> Result<&Card, String> {
    if let Some(card) = cards.iter().flatten().find(|card| card.ordinal == ordinal) {
        return Ok(card);
    }
    match cards.get(ordinal as usize) {
        Some(Err(failure)) => Err(reason(failure)),
        Some(Ok(_)) | None => Err(format!("the driver finds {} devices", cards.len())),
    }
}

/// Where threads that work for a device stay.
fn home(info: &DeviceInfo, affinity: Affinity) -> Home {
    let (sys, allowed) = (Sys::default(), allowed_cpus());
    Home::new(&Near::of(info, &sys, &allowed), affinity, &sys, &allowed)
}

impl GpuDevice {
    fn new(info: DeviceInfo, card: Arc<OpenCard>, options: &OpenOptions) -> Self {
        Self {
            home: home(&info, options.affinity),
            info,
            gpu: options.gpu,
            traces: options.trace,
            card,
            queues: Default::default(),
            moments: Default::default(),
            beat: Default::default(),
            recordings: Default::default(),
            kernels: Default::default(),
            buffers: Default::default(),
        }
    }
}
