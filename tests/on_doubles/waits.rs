//! A wait or a synchronisation that is left out shows when work runs as late as it may.

use std::process::Command;

use serde_json::Value;

use crate::double::{Double, Vendor};
use crate::process::{example, text};

/// The entry points that wait: on the device, and on the host.
fn waits(vendor: Vendor) -> [&'static str; 3] {
    match vendor {
        Vendor::Cuda => ["cuStreamWaitEvent", "cuStreamSynchronize", "cuEventSynchronize"],
        Vendor::Hip => ["hipStreamWaitEvent", "hipStreamSynchronize", "hipEventSynchronize"],
    }
}

fn command(vendor: Vendor, exchange: &str) -> Command {
    let devices = format!("{}:3", vendor.name());
    let arguments = ["--n", "11,8,10", "--steps", "4", "--devices", &devices, "--exchange", exchange];
    example("heat", &[&arguments[..], &["--verify", "--json"]].concat())
}

/// Whether a program that leaves something out goes wrong: other bits, an error, or something that a driver forbids.
fn shows(double: &Double, command: Command) -> bool {
    let ended = double.run(command);
    if ended.output.status.code() != Some(0) || !ended.misuse.is_empty() {
        return true;
    }
    let said = text(&ended.output.stdout);
    let run: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    run["bits_equal"] != true
}

fn check(vendor: Vendor) {
    if !vendor.is_there() {
        return;
    }
    // Strategies in which one thread issues everything: calls have the same numbers in every run.
    let settings = [("peer-to-peer", "all"), ("streamed", "all"), ("synchronous", "none"), ("peer-to-peer", "none")];
    for call in waits(vendor) {
        let (mut shown, mut all) = (0, 0);
        for (exchange, peers) in settings {
            let double = Double::new(vendor, 3, "lazy").with("POLYHALO_DOUBLE_PEERS", peers);
            let ended = double.run(command(vendor, exchange));
            let count = ended.calls.iter().find(|(name, _)| name == call).map_or(0, |(_, count)| *count);
            for number in 1..=count {
                all += 1;
                let without = double.clone().with("POLYHALO_DOUBLE_SKIP", format!("{call}:{number}"));
                shown += u64::from(shows(&without, command(vendor, exchange)));
            }
            // All of them at once: that is what a line less in the program would do.
            if count > 0 {
                let without = double.with("POLYHALO_DOUBLE_SKIP", format!("{call}:*"));
                assert!(shows(&without, command(vendor, exchange)), "without any {call} {exchange} goes right");
            }
        }
        println!("{call}: {shown} of {all} that are left out show");
        assert!(all == 0 || shown * 2 > all, "only {shown} of {all} calls of {call} that are left out show");
    }
}

#[test]
fn a_wait_that_is_left_out_shows_on_the_lazy_cuda_double() {
    check(Vendor::Cuda);
}

#[test]
fn a_wait_that_is_left_out_shows_on_the_lazy_hip_double() {
    check(Vendor::Hip);
}
