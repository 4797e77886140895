//! Devices that fail, and closures that panic: everybody leaves, and the first error is returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::cells::{Way, factor, load, origins, reference};
use crate::error::{Error, Result};
use crate::execute::{Issue, Program};
use crate::scalar::Function;
use crate::testing::{Calls, Faulty, KINDS};

const RUNS: u64 = 3;

/// Nothing here takes longer, whatever else the machine does.
const LIMIT: Duration = Duration::from_secs(120);

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for (staged, barriers, lanes, period) in [
        (false, false, 3, 1),
        (true, false, 3, 2),
        (true, false, 2, 1),
        (true, true, 3, 3),
        (false, true, 2, 2),
        (true, true, 1, 2),
    ] {
        for issue in [Issue::Lanes, Issue::InOrder] {
            ways.push(Way { devices: 3, lanes, staged, barriers, period, issue });
        }
    }
    ways
}

/// Runs a plan on three devices whose calls are counted.
fn attempt(way: Way, functions: Vec<Function>, calls: &Arc<Calls>) -> Result<()> {
    let devices = Faulty::wrap(reference(way.devices), calls);
    let mut data = load(&devices)?;
    let program = Program::new(way.plan(), functions, &devices, origins(way.devices), way.issue)?;
    data.run(&devices, &program, RUNS)
}

/// Gives what `act` gives, which must not take forever.
fn in_time<T: Send + 'static>(what: String, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let worker = thread::spawn(move || {
        // Nobody listens any more if it took too long.
        let _ = sender.send(act());
    });
    match receiver.recv_timeout(LIMIT) {
        Ok(given) => given,
        Err(RecvTimeoutError::Timeout) => panic!("{what} hangs"),
        Err(RecvTimeoutError::Disconnected) => {
            let panic = worker.join().expect_err("it ends without an answer only by a panic");
            std::panic::resume_unwind(panic)
        }
    }
}

#[test]
fn every_call_that_fails_ends_the_run_with_its_error_and_nothing_hangs() {
    let mut failed = std::collections::BTreeSet::new();
    for way in ways() {
        let sound = Calls::sound();
        attempt(way, factor(), &sound).unwrap();
        for (call, count) in sound.counts() {
            for number in 0..count {
                let what = format!("{call} {number} of {way:?}");
                let calls = Calls::failing(call, number);
                let error = {
                    let calls = Arc::clone(&calls);
                    in_time(what.clone(), move || attempt(way, factor(), &calls)).unwrap_err()
                };
                let expected = format!("{call} {number}");
                assert!(matches!(error.cause(), Error::Driver { call, .. } if *call == expected), "{what}: {error:?}");
                failed.insert(call);
                let before_the_run = ["free_memory", "alloc", "load", "staging"].contains(&call);
                // Other calls write halos too.
                let may_be_before = call == "write";
                match error {
                    Error::InStep { step, number, .. } => {
                        assert!((1..=RUNS).contains(&step) && number < way.devices && !before_the_run, "{what}");
                        // Both queues of each device are finished at the end, whatever failed.
                        assert!(calls.counts()["finish"] >= 2 * way.devices, "{what}: {:?}", calls.counts());
                    }
                    _ => assert!(before_the_run || may_be_before, "{what}"),
                }
            }
        }
    }
    let never = ["span", "wait_for_peer"];
    let expected: Vec<_> = KINDS.into_iter().filter(|call| !never.contains(call)).collect();
    assert!(expected.iter().all(|call| failed.contains(call)), "{failed:?}");
}

#[test]
fn a_failure_names_device_call_and_step() {
    let way = ways()[0];
    let calls = Calls::failing("launch", 4);
    let way = Way { issue: Issue::InOrder, ..way };
    let error = attempt(way, factor(), &calls).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the call `launch` of device 1 (reference (1 thread)) failed in step 2: launch 4 failed on reference (1 thread): \
         it was told to fail; no checkpoint was written"
    );
}

#[test]
fn a_closure_that_panics_ends_the_run_and_its_message_arrives() {
    for way in ways() {
        let what = format!("{way:?}");
        let calls = Calls::sound();
        let counted = Arc::clone(&calls);
        let message = in_time(what.clone(), move || {
            let functions: Vec<Function> = vec![Arc::new(|number, inputs| {
                assert!(number < 2, "the closure had enough");
                inputs[0]
            })];
            let panic = catch_unwind(AssertUnwindSafe(|| attempt(way, functions, &counted))).unwrap_err();
            crate::backend::panic_message(&*panic)
        });
        assert_eq!(message, "the closure had enough", "{what}");
        assert!(calls.counts()["finish"] >= 2 * way.devices, "{what}");
    }
}
