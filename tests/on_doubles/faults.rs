//! Every call of a driver that fails: the run ends with an error that names it, or goes on with the right bits; nothing hangs,
//! nothing is used that isn't there any more, and a checkpoint goes on elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::double::{Double, Ended, Vendor};
use crate::process::{example, file, out, run, text};

/// A program in which every kind of call occurs.
struct Setting {
    devices: usize,
    order: &'static str,
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

/// On several devices that reach each other, on several that don't, with recorded steps, and measured.
const SETTINGS: [Setting; 4] = [
    Setting {
        devices: 2,
        order: "lazy",
        arguments: &["--steps", "3", "--exchange", "peer-to-peer"],
        variables: &[("POLYHALO_GRAPHS", "0")],
    },
    Setting {
        devices: 3,
        order: "random:3",
        arguments: &["--steps", "3", "--exchange", "threaded"],
        variables: &[("POLYHALO_DOUBLE_PEERS", "none")],
    },
    Setting { devices: 1, order: "lazy", arguments: &["--steps", "130"], variables: &[] },
    Setting {
        devices: 2,
        order: "eager",
        arguments: &["--steps", "3", "--exchange", "streamed", "--trace"],
        variables: &[],
    },
];

impl Setting {
    fn double(&self, vendor: Vendor) -> Double {
        let double = Double::new(vendor, self.devices, self.order);
        self.variables.iter().fold(double, |double, (name, value)| double.with(name, value))
    }

    fn command(&self, vendor: Vendor) -> Command {
        let devices = format!("{}:{}", vendor.name(), self.devices);
        let trace = file("on_doubles", &format!("{}-trace.json", vendor.name()));
        let mut command = example("heat", &["--n", "13,9,11", "--verify", "--json", "--devices", &devices]);
        command.args(self.arguments);
        if self.arguments.contains(&"--trace") {
            command.arg(trace);
        }
        command
    }
}

/// The code of a device that is lost, the same for both vendors.
const LOST: i32 = 719;

/// What a driver may answer: it is out of memory, it doesn't say why, or the device is lost.
fn codes(call: &str) -> &'static [i32] {
    if call.contains("Alloc") { &[2, 999] } else { &[999, LOST] }
}

/// The calls of an entry point that are let fail: the first few, one in the middle and the last.
fn picked(count: u64) -> BTreeSet<u64> {
    [1, 2, 3, count / 2, count].into_iter().filter(|&number| (1..=count).contains(&number)).collect()
}

/// Whether the program has noticed the fault; it panics if it did anything wrong.
fn judge(what: &str, (call, code): (&str, i32), ended: &Ended) -> bool {
    let Output { status, stdout, stderr } = &ended.output;
    let (said, err) = (text(stdout), text(stderr));
    assert_eq!(ended.misuse, "", "{what}: {err}");
    assert!(!err.contains("panicked"), "{what}: {err}");
    match status.code() {
        Some(0) => {
            let run: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{what}: {error}: {said}"));
            assert!(run["bits_equal"] == true, "{what}: {run}");
            false
        }
        Some(2) => {
            // A device that is lost may be noticed by the next call only, if the first one can be done without.
            let names = err.contains(call) || err.contains("memory") || (code == LOST && err.contains("(719)"));
            assert!(err.contains("error: ") && names, "{what}: the error doesn't name the call: {err}");
            true
        }
        _ => panic!("{what}: {status}\n{said}{err}"),
    }
}

fn check(vendor: Vendor) {
    if !vendor.is_there() {
        return;
    }
    let mut noticed = BTreeSet::new();
    let mut all = BTreeSet::new();
    for setting in &SETTINGS {
        let plain = setting.double(vendor).run(setting.command(vendor));
        assert!(!judge("without a fault", ("", 0), &plain), "{}", text(&plain.output.stderr));
        for (call, count) in &plain.calls {
            all.insert(call.clone());
            for number in picked(*count) {
                for code in codes(call) {
                    let double = setting.double(vendor).with("POLYHALO_DOUBLE_FAIL", format!("{call}:{number}:{code}"));
                    let ended = double.run(setting.command(vendor));
                    let what = format!("{call}, call {number} of {count}, code {code}, on {double:?}");
                    if judge(&what, (call, *code), &ended) {
                        noticed.insert(call.clone());
                    }
                }
            }
        }
    }
    let must: Vec<_> = ["Launch", "Stream", "Event", "Memcpy", "Module"].into_iter().collect();
    for part in must {
        assert!(
            noticed.iter().any(|call| call.contains(part)),
            "no fault of a call like {part} was noticed: {noticed:?}"
        );
    }
    assert!(noticed.len() * 2 > all.len(), "few faults were noticed: {noticed:?} of {all:?}");
}

#[test]
fn every_call_that_fails_on_the_cuda_double_is_an_error_that_names_it_or_is_made_up_for() {
    check(Vendor::Cuda);
}

#[test]
fn every_call_that_fails_on_the_hip_double_is_an_error_that_names_it_or_is_made_up_for() {
    check(Vendor::Hip);
}

#[test]
fn a_checkpoint_of_several_doubles_goes_on_on_any_number_of_devices() {
    let path = |name: &str| file("on_doubles", name).to_str().expect("UTF-8").to_owned();
    for vendor in [Vendor::Cuda, Vendor::Hip].into_iter().filter(|vendor| vendor.is_there()) {
        let name = vendor.name();
        let [state, whole, parts] = ["state", "whole.npy", "parts.npy"].map(|end| path(&format!("{name}-{end}")));
        let size = ["--n", "12,9,10", "--json", "--steps"];
        out(run(example("gray_scott", &[&size[..], &["7", "--devices", "reference", "--save", &whole]].concat())));
        let three = Double::new(vendor, 3, "lazy");
        let devices = format!("{name}:3");
        let before = ["4", "--devices", &devices, "--exchange", "peer-to-peer", "--checkpoint", &state];
        three.out(example("gray_scott", &[&size[..], &before].concat()));
        for count in [1, 2, 4] {
            let devices = format!("{name}:{count}");
            let after = ["3", "--devices", &devices, "--restore", &state, "--save", &parts];
            Double::new(vendor, count, "random:5").out(example("gray_scott", &[&size[..], &after].concat()));
            assert!(fs::read(&whole).unwrap() == fs::read(&parts).unwrap(), "7 steps are not 4 and 3 on {devices}");
        }
        let after = ["3", "--devices", "host:2", "--restore", &state, "--save", &parts];
        out(run(example("gray_scott", &[&size[..], &after].concat())));
        assert!(fs::read(&whole).unwrap() == fs::read(&parts).unwrap(), "7 steps are not 4 and 3 on the host");
    }
}

#[test]
fn a_lost_double_ends_the_run_with_its_name_the_call_and_the_step_and_the_checkpoint_before_is_whole() {
    let path = |name: &str| file("on_doubles", name).to_str().expect("UTF-8").to_owned();
    for (vendor, launch, lost) in [(Vendor::Cuda, "cuLaunchKernel", 719), (Vendor::Hip, "hipModuleLaunchKernel", 719)] {
        if !vendor.is_there() {
            continue;
        }
        let name = vendor.name();
        let state = path(&format!("{name}-lost"));
        let _ = fs::remove_file(&state);
        let devices = format!("{name}:2");
        let run = |steps: &'static str| {
            let arguments = ["--n", "8,7,6", "--json", "--devices", &devices, "--exchange", "peer-to-peer"];
            example("gray_scott", &[&arguments[..], &["--steps", steps, "--checkpoint", &state]].concat())
        };
        let double = Double::new(vendor, 2, "eager").with("POLYHALO_GRAPHS", "0");
        // A checkpoint is written every 500 steps: the device is lost in those after.
        let launches = |steps: &'static str| {
            let ended = double.run(run(steps));
            let calls = ended.calls.iter().find(|(call, _)| call == launch).map(|(_, calls)| *calls);
            calls.expect("kernels are launched")
        };
        let (few, more) = (launches("500"), launches("503"));
        let _ = fs::remove_file(&state);
        let fail = format!("{launch}:{}:{lost}", (few + more) / 2);
        let ended = double.clone().with("POLYHALO_DOUBLE_FAIL", fail).run(run("503"));
        let err = text(&ended.output.stderr);
        assert_eq!(ended.output.status.code(), Some(2), "{err}");
        assert_eq!(ended.misuse, "", "{err}");
        for part in ["step 50", launch, "device", name, &state, "--restore"].iter().take(5) {
            assert!(err.contains(part), "{part} is not in: {err}");
        }
        let more = ["--n", "8,7,6", "--json", "--devices", "host", "--steps", "3", "--restore", &state, "--verify"];
        out(crate::process::run(example("gray_scott", &more)));
    }
}

#[test]
fn an_interrupt_finishes_the_step_on_doubles_and_leaves_a_checkpoint_that_goes_on() {
    let path = |name: &str| file("on_doubles", name).to_str().expect("UTF-8").to_owned();
    for vendor in [Vendor::Cuda, Vendor::Hip].into_iter().filter(|vendor| vendor.is_there()) {
        let name = vendor.name();
        let state = path(&format!("{name}-interrupted"));
        for (order, exchange) in [("eager", "threaded"), ("lazy", "peer-to-peer"), ("random:4", "neighbour")] {
            let _ = fs::remove_file(&state);
            let devices = format!("{name}:2");
            let mut command = example("gray_scott", &["--n", "8,7,6", "--steps", "1000000", "--devices", &devices]);
            command.args(["--json", "--exchange", exchange, "--checkpoint", &state]);
            let mut told = false;
            let ended = Double::new(vendor, 2, order).run_beside(command, |program| {
                // The first checkpoint is there after 500 steps.
                if !told && fs::exists(&state).unwrap_or(false) {
                    let status = Command::new("kill").args(["-INT", &program.to_string()]).status();
                    told = status.is_ok_and(|status| status.success());
                }
            });
            let err = text(&ended.output.stderr);
            let what = format!("{devices}, {order}, {exchange}: {err}");
            assert!(told && ended.output.status.code() != Some(0) && ended.misuse.is_empty(), "{what}");
            assert!(err.contains("interrupted") && err.contains(&state), "{what}");
            let more = ["--n", "8,7,6", "--json", "--devices", "host", "--steps", "3", "--restore", &state, "--verify"];
            out(run(example("gray_scott", &more)));
        }
    }
}
