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
            writeln!(out, "{inventory}")?;
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
