//! `polyhalo doctor`: which optional tools are there, what each gives, how to get the rest.

use std::io::Write;

use clap::Args;
use polyhalo_codegen::offline::{ToolStatus, tools};

use crate::Failure;

/// Arguments of `polyhalo doctor`.
#[derive(Args)]
pub(crate) struct Doctor {
    /// One JSON array instead of text.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut tools = tools();
        tools.push(opencl());
        let mut out = std::io::stdout().lock();
        if self.json {
            let rows: Vec<_> = tools
                .iter()
                .map(|tool| {
                    let (found, missing) = match &tool.found {
                        Ok(found) => (Some(found), None),
                        Err(reason) => (None, Some(reason)),
                    };
                    serde_json::json!({
                        "name": tool.name, "found": found, "missing": missing, "gives": tool.gives, "install": tool.install,
                    })
                })
                .collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&rows)?)?;
            return Ok(());
        }
        writeln!(out, "polyhalo needs none of these; each adds something.\n")?;
        for tool in &tools {
            write_tool(&mut out, tool)?;
        }
        let missing = tools.iter().filter(|tool| tool.found.is_err()).count();
        writeln!(out, "{} of {} found, {missing} missing", tools.len() - missing, tools.len())?;
        Ok(())
    }
}

fn write_tool(out: &mut impl Write, tool: &ToolStatus) -> std::io::Result<()> {
    match &tool.found {
        Ok(found) => {
            writeln!(out, "[found]   {}: {found}", tool.name)?;
            writeln!(out, "          gives {}\n", tool.gives)
        }
        Err(reason) => {
            writeln!(out, "[missing] {}: {reason}", tool.name)?;
            writeln!(out, "          would give {}", tool.gives)?;
            writeln!(out, "          install: {}\n", tool.install)
        }
    }
}

/// The OpenCL loader with its platforms; the runtime knows them.
fn opencl() -> ToolStatus {
    let inventory = polyhalo::devices::inventory();
    let listing = inventory.backends.into_iter().find(|(name, _)| *name == "opencl").map(|(_, listing)| listing);
    let listing = listing.unwrap_or_default();
    let names: Vec<String> =
        listing.devices.iter().map(|device| format!("{} ({})", device.name, device.platform)).collect();
    ToolStatus {
        name: "OpenCL loader and platforms",
        found: if names.is_empty() { Err(listing.absent.join("; ")) } else { Ok(names.join("; ")) },
        gives: "devices of any vendor that has an OpenCL driver (`--devices opencl`)",
        install: "apt-get install ocl-icd-libopencl1 and the vendor's driver, or pocl-opencl-icd for the CPU",
    }
}
