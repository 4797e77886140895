//! `polyhalo devices`.

use std::io::Write;

use clap::Args;

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
                        serde_json::json!({
                            "ordinal": device.ordinal,
                            "name": device.name,
                            "platform": device.platform,
                            "notes": device.notes,
                            "kind": format!("{:?}", device.kind).to_lowercase(),
                            "fp64": device.fp64,
                            "compute_units": device.units,
                            "memory_bytes": device.memory_bytes,
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
