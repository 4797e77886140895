//! A wait or a synchronisation that is left out shows when work runs as late as it may.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::double::{Double, Vendor};
use crate::process::{example, file, out, run};

/// The entry points that wait: on the device, and on the host.
fn waits(vendor: Vendor) -> [&'static str; 3] {
    match vendor {
        Vendor::Cuda => ["cuStreamWaitEvent", "cuStreamSynchronize", "cuEventSynchronize"],
        Vendor::Hip => ["hipStreamWaitEvent", "hipStreamSynchronize", "hipEventSynchronize"],
    }
}

/// A program whose every point changes in every step, and the file for the result. Its steps aren't checked as they are
/// done, which would make them wait for each other.
fn command(vendor: Vendor, is_mixed: bool, exchange: &str) -> (Command, PathBuf) {
    let name = vendor.name();
    let result = file("on_doubles", &format!("{name}-waits.npy"));
    let _ = fs::remove_file(&result);
    let devices = if is_mixed { format!("{name}:2+host:2") } else { format!("{name}:3") };
    let mut command = example("heat", &["--n", "11,8,13", "--steps", "40", "--devices", &devices, "--json"]);
    command.args(["--exchange", exchange, "--save"]).arg(&result);
    (command, result)
}

/// The result that is right.
fn expected() -> &'static [u8] {
    static RESULT: OnceLock<Vec<u8>> = OnceLock::new();
    RESULT.get_or_init(|| {
        let result = file("on_doubles", "waits.npy");
        let mut command =
            example("heat", &["--n", "11,8,13", "--steps", "40", "--devices", "host", "--json", "--save"]);
        command.arg(&result);
        out(run(command));
        fs::read(&result).expect("it was written")
    })
}

/// Whether a program that leaves something out goes wrong: another result, an error, or something that a driver forbids.
fn shows(double: &Double, (command, result): (Command, PathBuf)) -> bool {
    let ended = double.run(command);
    ended.output.status.code() != Some(0)
        || !ended.misuse.is_empty()
        || fs::read(result).ok().as_deref() != Some(expected())
}

/// Strategies in which one thread issues everything, so that calls have the same numbers in every run, or in which each
/// thread waits for others on its device only.
/// In the last one the host's devices wait for events of the cards.
const SETTINGS: [(bool, &str, &str); 5] = [
    (false, "neighbour", "all"),
    (false, "deep:2", "all"),
    (false, "streamed", "none"),
    (false, "synchronous", "none"),
    (true, "neighbour", "all"),
];

/// So many calls of an entry point are left out at most, one in each run.
const MOST: usize = 60;

fn check(vendor: Vendor) {
    if !vendor.is_there() {
        return;
    }
    for call in waits(vendor) {
        let (mut shown, mut all, mut used) = (0, 0, 0);
        for (is_mixed, exchange, peers) in SETTINGS {
            let double = Double::new(vendor, 3, "lazy").with("POLYHALO_DOUBLE_PEERS", peers);
            let double = double.with("POLYHALO_GRAPHS", "0");
            let (plain, _) = command(vendor, is_mixed, exchange);
            let ended = double.run(plain);
            let count = ended.calls.iter().find(|(name, _)| name == call).map_or(0, |(_, count)| *count);
            if count == 0 {
                continue;
            }
            assert!(!shows(&double, command(vendor, is_mixed, exchange)), "{exchange} on {double:?}");
            used += 1;
            // All of them: that is what a line less in the program would do.
            let without = double.clone().with("POLYHALO_DOUBLE_SKIP", format!("{call}:*"));
            assert!(shows(&without, command(vendor, is_mixed, exchange)), "without any {call} {exchange} goes right");
            if call.contains("Wait") {
                for number in (1..=count).step_by(1 + count as usize / MOST) {
                    all += 1;
                    let without = double.clone().with("POLYHALO_DOUBLE_SKIP", format!("{call}:{number}"));
                    shown += u64::from(shows(&without, command(vendor, is_mixed, exchange)));
                }
            }
        }
        println!("{call}: used by {used} strategies, {shown} of {all} that are left out show");
        assert!(used > 0, "no strategy calls {call}");
        // A single one more or less often changes nothing: what it waits for was forced by somebody else's wait. Whether a plan
        // lacks one is tested without devices, in all orders.
        assert!(shown * 4 >= all, "only {shown} of {all} calls of {call} that are left out show");
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
