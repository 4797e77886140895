//! `polyhalo devices`.

use std::io::Write;

use clap::Args;
use polyhalo::backend::allowed_cpus;
use polyhalo::placement::{Near, Sys, list_cpus};

use crate::Failure;

/// Arguments of `polyhalo devices`.
#[derive(Args)]
pub(crate) struct Devices {
    /// One JSON array instead of text.
    #[arg(long)]
    json: bool,
}

impl Devices {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let inventory = polyhalo::devices::inventory();
        let (sys, allowed) = (Sys::default(), allowed_cpus());
        let mut out = std::io::stdout().lock();
        if !self.json {
            for (name, listing) in &inventory.backends {
                writeln!(out, "{name}")?;
                for device in &listing.devices {
                    let on =
                        if device.platform.is_empty() { String::new() } else { format!(" on {}", device.platform) };
                    let kind = format!("{:?}", device.kind).to_uppercase();
                    let memory = polyhalo::Bytes(device.memory_bytes);
                    writeln!(
                        out,
                        "  {}: {}{on} ({kind}, {} compute units, {memory})",
                        device.ordinal, device.name, device.units
                    )?;
                    let near = Near::of(device, &sys, &allowed);
                    writeln!(out, "     {}", place(device.pci.as_deref(), &near, &allowed))?;
                    near.notes.iter().try_for_each(|note| writeln!(out, "     {note}"))?;
                    device.notes.iter().try_for_each(|note| writeln!(out, "     {note}"))?;
                }
                listing.absent.iter().try_for_each(|reason| writeln!(out, "  absent: {reason}"))?;
            }
            return Ok(());
        }
        let backends: Vec<_> = inventory
            .backends
            .iter()
            .map(|(name, listing)| {
                let devices: Vec<_> = listing
                    .devices
                    .iter()
                    .map(|device| {
                        let near = Near::of(device, &sys, &allowed);
                        serde_json::json!({
                            "ordinal": device.ordinal,
                            "name": device.name,
                            "platform": device.platform,
                            "notes": device.notes,
                            "kind": format!("{:?}", device.kind).to_lowercase(),
                            "fp64": device.fp64,
                            "compute_units": device.units,
                            "memory_bytes": device.memory_bytes,
                            "pci": device.pci,
                            "nodes": near.nodes,
                            "cpus": near.cpus,
                            "placement_notes": near.notes,
                        })
                    })
                    .collect();
                serde_json::json!({ "backend": name, "devices": devices, "absent": listing.absent })
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&backends)?)?;
        Ok(())
    }
}

/// Where a device is: `PCI 0000:c1:00.0, node 1, near CPUs 24-47`.
fn place(pci: Option<&str>, near: &Near, allowed: &[usize]) -> String {
    let numbers = |what: &str, numbers: &[usize]| match numbers {
        [] => format!("{what} unknown"),
        [only] => format!("{what} {only}"),
        several => format!("{what}s {}", list_cpus(several)),
    };
    let mut parts: Vec<_> = pci.iter().map(|pci| format!("PCI {pci}")).collect();
    parts.push(numbers("node", &near.nodes));
    parts.push(numbers("near CPU", &near.cpus));
    if !near.cpus.is_empty() && !near.cpus.iter().any(|cpu| allowed.contains(cpu)) {
        parts.push(format!("which this process may not use: it has {}", list_cpus(allowed)));
    }
    parts.join(", ")
}
