//! Line 11. Nothing is lost: after a failed device or an interrupt the last checkpoint is whole, and any number of devices goes on
//! from it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use polyhalo::backend::OpenOptions;
use polyhalo::prelude::*;
use polyhalo::{Error, LastCheckpoint};
use polyhalo_codegen::offline::private::Folder;
use polyhalo_tests::steps::device::{COUNTS, Device, STRATEGIES, hosts};

use crate::busy::{Busy, CELLS};
use crate::failing::{Calls, Failing};

/// Steps in all, and between checkpoints.
const STEPS: u64 = 7;
const EVERY: u64 = 2;

/// Nothing here takes longer, whatever else the machine does.
const LIMIT: Duration = Duration::from_secs(120);

/// Gives what `act` gives, which must not take forever.
fn in_time<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let worker = std::thread::spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = sender.send(act());
    });
    match receiver.recv_timeout(LIMIT) {
        Ok(given) => given,
        Err(RecvTimeoutError::Timeout) => panic!("{what} hangs"),
        Err(RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(worker.join().expect_err("it ends without an answer only by a panic"))
        }
    }
}

/// All steps with checkpoints on three host devices, the middle one of which may fail.
fn attempt(exchange: Exchange, path: &Path, calls: &Arc<Calls>) -> Result<()> {
    let found = polyhalo::devices::find("host:3", &[])?;
    let mut devices = found.open(&OpenOptions { threads: Some(1), ..OpenOptions::default() })?;
    let middle = devices.remove(1);
    devices.insert(1, Failing::wrap(middle, calls));
    let sim = Simulation::on(CELLS).exchange(exchange).measure_bandwidth(false).build_on(devices)?;
    let busy = Busy::new(sim)?;
    let outcome = busy.sim.start(&busy.step, STEPS).checkpoint(path, EVERY).finish();
    if outcome.is_err() {
        // What is half done isn't handed out, and nothing goes on.
        assert!(busy.bits().is_err() || outcome.as_ref().is_err_and(|error| !matches!(error, Error::InStep { .. })));
    }
    outcome.map(|_| ())
}

/// Goes on from a checkpoint on some devices and does all steps.
fn go_on(devices: &Device, path: &Path, steps: u64) -> Vec<u64> {
    let busy = Busy::new(devices.on(CELLS)).unwrap();
    busy.sim.restore(path).unwrap();
    assert_eq!(busy.sim.steps().unwrap(), steps, "{devices}");
    busy.sim.run(&busy.step, STEPS - steps).unwrap();
    busy.bits().unwrap()
}

#[test]
fn whatever_call_of_one_among_three_devices_fails_the_last_checkpoint_leads_to_the_same_end() {
    let expected = Busy::after(STEPS);
    let mut restarts = COUNTS.into_iter().cycle();
    for exchange in STRATEGIES {
        let folder = Folder::new().unwrap();
        let sound = Calls::sound();
        attempt(exchange, &folder.path().join("sound"), &sound).unwrap();
        for (call, count) in sound.counts() {
            // The first and the last ones, and some between.
            let numbers = [0, 1, count / 3, count / 2, 2 * count / 3, count - 1];
            let numbers: std::collections::BTreeSet<_> = numbers.into_iter().filter(|number| *number < count).collect();
            for number in numbers {
                let what = format!("{call} {number} of {count} with {exchange}");
                let path = folder.path().join(format!("{call}-{number}"));
                let calls = Calls::failing(call, number);
                let outcome = {
                    let (path, calls) = (path.clone(), Arc::clone(&calls));
                    in_time(&what, move || attempt(exchange, &path, &calls))
                };
                let Err(error) = outcome else {
                    // How often devices are waited for depends on how long they take.
                    assert!(calls.counts().get(call).is_none_or(|count| *count <= number), "{what} was passed over");
                    continue;
                };
                let named = matches!(error.cause(), Error::Driver { device, call: failed, .. }
                    if failed == call && device.starts_with("failing host"));
                assert!(named, "{what}: {error:?}");
                let Error::InStep { step, number: device, checkpoint, .. } = error else {
                    // It failed before the first step or between two.
                    assert!(!path.exists() || ["read", "finish"].contains(&call), "{what}: {error:?}");
                    continue;
                };
                assert_eq!(device, 1, "{what}");
                assert!((1..=STEPS).contains(&step), "{what}: step {step}");
                assert_eq!(checkpoint.is_some(), path.exists(), "{what}");
                if let Some(LastCheckpoint { path: named, steps }) = checkpoint {
                    assert!(named == path && steps.is_multiple_of(EVERY) && steps < step, "{what}: {steps} of {step}");
                    let devices = hosts(restarts.next().expect("they go round"));
                    assert!(go_on(&devices, &path, steps) == expected, "{what}, then {devices}");
                }
            }
        }
    }
}

#[test]
fn what_several_devices_have_saved_any_number_of_devices_goes_on_from() {
    let expected = Busy::after(STEPS);
    let folder = Folder::new().unwrap();
    let mut last: Option<Vec<u8>> = None;
    for devices in crate::devices_for(CELLS) {
        let path = folder.path().join("state");
        let busy = Busy::new(devices.on(CELLS)).unwrap();
        busy.sim.run(&busy.step, 3).unwrap();
        busy.sim.checkpoint(&path).unwrap();
        // Nothing in the file tells who wrote it.
        let written = std::fs::read(&path).unwrap();
        assert!(last.as_ref().is_none_or(|last| *last == written), "{devices}");
        last = Some(written);
    }
    for count in COUNTS {
        for exchange in STRATEGIES {
            let devices = hosts(count).exchange(exchange);
            assert!(go_on(&devices, &folder.path().join("state"), 3) == expected, "{devices}");
        }
    }
}

/// The folder that the child of the next test writes to.
const CHILD: &str = "POLYHALO_TEST_INTERRUPTED";

/// Signals change the whole process, so each case runs this test in a process of its own.
#[test]
#[cfg(unix)]
fn an_interrupted_run_on_several_devices_ends_after_a_step_and_leaves_a_checkpoint() {
    if let Ok(folder) = std::env::var(CHILD) {
        return child(Path::new(&folder));
    }
    let expected = Busy::after(STEPS);
    for (exchange, restart) in [(Exchange::Threaded, 2), (Exchange::Neighbour, 7), (Exchange::Deep(2), 1)] {
        let folder = Folder::new().unwrap();
        let name = "lost::an_interrupted_run_on_several_devices_ends_after_a_step_and_leaves_a_checkpoint";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, folder.path())
            .env("POLYHALO_TEST_EXCHANGE", exchange.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{exchange}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let steps = text.split("interrupted after ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let steps: u64 = steps.and_then(|steps| steps.parse().ok()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(steps, 3, "{exchange}");
        let found = go_on(&hosts(restart), &folder.path().join("state"), steps);
        assert!(found == expected, "{exchange}");
    }
}

/// A run that gets a signal after three steps.
fn child(folder: &Path) {
    let exchange: Exchange = std::env::var("POLYHALO_TEST_EXCHANGE").unwrap().parse().unwrap();
    let interrupt = Interrupt::install().unwrap();
    let busy = Busy::new(hosts(3).exchange(exchange).on(CELLS)).unwrap();
    let signal = |_: Progress| {
        let status = Command::new("kill").args(["-INT", &std::process::id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "there is `kill` on Unix");
        // A second one would end the process.
        while !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let path = folder.join("state");
    let error = busy.sim.start(&busy.step, 1000).checkpoint(&path, 500).every(3, signal).finish().unwrap_err();
    match error {
        Error::Interrupted { steps, checkpoint: Some(LastCheckpoint { path: named, steps: saved }), unsaved: None } => {
            assert!(named == path && saved == steps);
            println!("interrupted after {steps} steps");
        }
        other => panic!("{other}"),
    }
}
