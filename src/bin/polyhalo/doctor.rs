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
        tools.extend(drivers());
        tools.push(hiprtc());
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

/// The vendors' libraries that devices are reached through; the runtime knows them.
fn drivers() -> Vec<ToolStatus> {
    let inventory = polyhalo::devices::inventory();
    let status = |backend: &str, [name, gives, install]: [&'static str; 3]| {
        let listing = inventory.backends.iter().find(|(name, _)| *name == backend).map(|(_, listing)| listing.clone());
        let listing = listing.unwrap_or_default();
        let found = listing.devices.iter().map(|device| match device.platform.as_str() {
            "" => device.name.clone(),
            platform => format!("{} ({platform})", device.name),
        });
        let found: Vec<_> = found.collect();
        let found = if found.is_empty() { Err(listing.absent.join("; ")) } else { Ok(found.join("; ")) };
        ToolStatus { name, found, gives, install }
    };
    vec![
        status(
            "opencl",
            [
                "OpenCL loader and platforms",
                "devices of any vendor that has an OpenCL driver (`--devices opencl`)",
                "apt-get install ocl-icd-libopencl1 and the vendor's driver, or pocl-opencl-icd for the CPU",
            ],
        ),
        status(
            "cuda",
            [
                "NVIDIA's driver and GPUs",
                "CUDA devices (`--devices cuda`)",
                "NVIDIA's driver, which has libcuda.so.1; POLYHALO_CUDA=FILE names another one",
            ],
        ),
        status(
            "hip",
            [
                "AMD's driver and GPUs",
                "HIP devices (`--devices hip`)",
                "AMD's ROCm, which has libamdhip64.so; POLYHALO_HIP=FILE names another one",
            ],
        ),
    ]
}

/// The compiler that HIP devices may need while a program runs.
fn hiprtc() -> ToolStatus {
    ToolStatus {
        name: "AMD's run-time compiler (hiprtc)",
        found: polyhalo::backend::gpu::hiprtc(),
        gives: "HIP kernels for cards without an embedded code object, and kernels that call functions such as `exp`",
        install: "AMD's ROCm, which has libhiprtc.so, or apt-get install libamdhip64-5, which has it inside; POLYHALO_HIPRTC=FILE names another one",
    }
}
