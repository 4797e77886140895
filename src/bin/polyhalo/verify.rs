//! `polyhalo verify`: runs a program with checked runs on every asked set of devices and with every asked strategy.

use std::fmt;
use std::process::{Command, Stdio};

use clap::Args;
use polyhalo::Exchange;

use crate::Failure;

/// Options of the command.
#[derive(Args)]
pub(crate) struct Verify {
    /// Devices to run on, such as host:3 or opencl:pocl:2; may be given several times.
    #[arg(long, value_name = "SPEC", default_values = ["host", "host:2", "host:3"])]
    devices: Vec<String>,
    /// Exchange strategies; may be given several times, all if not given.
    #[arg(long, value_name = "NAME")]
    exchange: Vec<Exchange>,
    /// Make halo cells worthless before they are exchanged, and look for such values after every step.
    #[arg(long)]
    paranoid: bool,
    /// The program that builds simulations, with its arguments: `polyhalo verify -- ./heat --n 32`.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// How one run ended.
enum Verdict {
    /// All of so many steps.
    Equal(u64),
    Failed(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(1) => f.write_str("the step is equal to the reference"),
            Self::Equal(steps) => write!(f, "all {steps} steps are equal to the reference"),
            Self::Failed(why) => write!(f, "FAILED: {why}"),
        }
    }
}

impl Verify {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let exchanges = match self.exchange.as_slice() {
            [] => Exchange::ALL.into_iter().filter(|exchange| *exchange != Exchange::Auto).collect(),
            asked => asked.to_vec(),
        };
        let mut failed = 0;
        for devices in &self.devices {
            for exchange in &exchanges {
                let verdict = self.verdict(devices, *exchange)?;
                failed += usize::from(matches!(verdict, Verdict::Failed(_)));
                println!("{devices}, {exchange}: {verdict}");
            }
        }
        match failed {
            0 => Ok(()),
            1 => Err("1 run failed".into()),
            failed => Err(format!("{failed} runs failed").into()),
        }
    }

    fn verdict(&self, devices: &str, exchange: Exchange) -> Result<Verdict, Failure> {
        let (program, arguments) = self.program.split_first().ok_or("name a program to run")?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null());
        command.env("POLYHALO_DEVICES", devices).env("POLYHALO_EXCHANGE", exchange.to_string());
        command.env("POLYHALO_VERIFY", "1").env("POLYHALO_PARANOID", if self.paranoid { "1" } else { "0" });
        // The program counts its checked steps here.
        let log = std::env::temp_dir().join(format!("polyhalo-verify-{}", std::process::id()));
        std::fs::write(&log, "").map_err(|error| format!("{}: {error}", log.display()))?;
        let output = command.env("POLYHALO_VERIFY_LOG", &log).output();
        let counted = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        let output = output.map_err(|error| format!("can't run `{program}`: {error}"))?;
        if output.status.success() {
            let steps: u64 = counted.lines().filter_map(|line| line.parse::<u64>().ok()).sum();
            return Ok(match steps {
                0 => Verdict::Failed("the program did no step, so nothing was checked".into()),
                steps => Verdict::Equal(steps),
            });
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        Ok(Verdict::Failed(last.map_or_else(|| output.status.to_string(), str::to_owned)))
    }
}
