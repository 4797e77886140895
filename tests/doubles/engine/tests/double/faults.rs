//! Faults that a test asks for, and those of work; files with counts and misuse; libraries that lack entry points.

use std::fs;
use std::path::PathBuf;

use polyhalo_double_engine::{Kind, Order, Pageable, Settings, without_symbols};

use crate::bench::{ORDERS, kind, machine, map, numbers, with, zeroes};

fn settings(variables: &[(&str, &str)]) -> Result<Settings, String> {
    let find = |name: &str| {
        let found = variables.iter().find(|(known, _)| name == format!("POLYHALO_DOUBLE_{known}"));
        found.map(|(_, value)| (*value).to_owned())
    };
    Settings::from_variables(find)
}

/// A file of this test's own that isn't there yet.
fn file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    fs::remove_file(&path).ok();
    path
}

#[test]
fn a_double_is_made_by_variables() {
    let found = settings(&[
        ("DEVICES", "4"),
        ("ORDER", "random:7"),
        ("FAIL", "cuLaunchKernel:3:719,*:9+:2"),
        ("ARCH", "9.0"),
        ("DRIVER", "12.4"),
        ("MEMORY", "1000"),
        ("PEERS", "none"),
        ("PAGEABLE", "late"),
        ("COUNT", "/c"),
    ]);
    let found = found.unwrap();
    assert_eq!((found.devices, found.order, found.driver), (4, Order::Random(7), Some((12, 4))));
    assert_eq!((found.fail.len(), found.fail[1].nth, found.fail[1].onwards), (2, 9, true));
    assert_eq!((found.memory_bytes, found.architecture), (1000, Some("9.0".into())));
    assert_eq!(found.pageable, Pageable::Late);
    assert_eq!(settings(&[]).unwrap().devices, 2);
    for (name, value) in [
        ("DEVICES", "x"),
        ("ORDER", "slow"),
        ("FAIL", "a:b:c"),
        ("DRIVER", "new"),
        ("PEERS", "some"),
        ("PAGEABLE", "soon"),
    ] {
        let error = settings(&[(name, value)]).unwrap_err();
        assert!(error.contains(&format!("POLYHALO_DOUBLE_{name}")) && error.contains(value), "{error}");
    }
}

#[test]
fn a_double_fails_the_call_that_it_was_asked_to() {
    let machine = with(settings(&[("FAIL", "first_v2:2:700,second:3+:46,*:9:1")]).unwrap());
    let answers = |call: &'static str, device: usize, times: usize| -> Vec<Option<Kind>> {
        (0..times).map(|_| machine.enter(call, Some(device)).err().map(|failure| failure.kind)).collect()
    };
    assert_eq!(answers("first", 0, 3), [None, Some(Kind::Code(700)), None]);
    assert_eq!(answers("second", 1, 4), [None, None, Some(Kind::Code(46)), Some(Kind::Code(46))]);
    assert_eq!(answers("third", 1, 1), [Some(Kind::Code(46))], "a device that is lost stays so");
    assert_eq!(answers("third", 0, 2), [Some(Kind::Code(1)), None]);
    machine.reset(1);
    assert_eq!(answers("third", 1, 1), [None]);
    assert_eq!(machine.calls()["third"], 4);
    assert_eq!(machine.misuses(), [""; 0]);
}

#[test]
fn a_double_leaves_waits_out_when_it_was_asked_to() {
    let read = |skip: &str| {
        let machine = with(Settings { order: Order::Lazy, ..settings(&[("SKIP", skip)]).unwrap() });
        let start = zeroes(&machine, 0, 1);
        let stream = machine.stream(0, false).unwrap();
        [0, 1].map(|_| {
            machine.enqueue(stream, map(0, start, 1, |value| value + 1)).unwrap();
            machine.enter("finish", Some(0)).unwrap();
            machine.finish_stream(stream).unwrap();
            // SAFETY: the number lies in real memory, and no other thread uses the machine.
            unsafe { (start as *const u64).read() }
        })
    };
    assert_eq!(read(""), [1, 2]);
    assert_eq!(read("other:*"), [1, 2]);
    assert_eq!(read("finish_v2:1"), [0, 2]);
    assert_eq!(read("finish:2"), [1, 1]);
    assert_eq!(read("finish:*"), [0, 0]);
    assert!(settings(&[("SKIP", "finish")]).unwrap_err().contains("POLYHALO_DOUBLE_SKIP"));
    assert!(settings(&[("SKIP", "finish:x")]).unwrap_err().contains("finish:x"));
}

#[test]
fn a_double_loses_the_device_whose_work_fails() {
    for order in ORDERS {
        let machine = machine(order);
        let (start, other) = (zeroes(&machine, 0, 4), zeroes(&machine, 1, 4));
        let stream = machine.stream(0, false).unwrap();
        let mut work = map(0, start + 8, 4, |value| value + 1);
        work.touches.clear();
        machine.enqueue(stream, work).unwrap();
        assert_eq!(kind(machine.finish_stream(stream)), Kind::IllegalAddress, "{order:?}");
        assert_eq!(kind(machine.enter("any", Some(0))), Kind::IllegalAddress);
        assert_eq!(kind(machine.enqueue(stream, map(0, start, 4, |value| value))), Kind::IllegalAddress);
        assert_eq!(machine.misuses().len(), 1, "{:?}", machine.misuses());
        machine.enqueue(machine.default_stream(1), map(1, other, 4, |value| value + 1)).unwrap();
        assert_eq!(numbers(&machine, 1, other, 4), [1; 4], "other devices go on");
        machine.reset(0);
        assert_eq!(numbers(&machine, 0, zeroes(&machine, 0, 1), 1), [0]);
        assert_eq!(kind(machine.finish_stream(stream)), Kind::InvalidHandle);
    }
}

#[test]
fn a_double_survives_work_that_panics() {
    let machine = machine(Order::Lazy);
    let start = zeroes(&machine, 0, 1);
    machine.enqueue(machine.default_stream(0), map(0, start, 1, |_| panic!("on purpose"))).unwrap();
    assert_eq!(kind(machine.finish_device(0)), Kind::LaunchFailed);
}

#[test]
fn a_double_writes_what_was_called_and_done_wrong() {
    let (count, log) = (file("count"), file("log"));
    let machine = with(Settings { count: Some(count.clone()), log: Some(log.clone()), ..Settings::default() });
    for call in ["one", "two", "two"] {
        machine.enter(call, None).unwrap();
    }
    assert_eq!(kind(machine.free(0, 64)), Kind::InvalidValue);
    machine.write_counts();
    assert_eq!(fs::read_to_string(count).unwrap(), "one 1\ntwo 2\n");
    assert_eq!(fs::read_to_string(log).unwrap(), "test double: two: 0x40 is freed, but was never given out\n");
}

#[test]
fn a_double_can_lack_entry_points() {
    let (source, library, without) = (file("library.c"), file("library.so"), file("without.so"));
    fs::write(&source, "int first(void) { return 1; }\nint second(void) { return 2; }\nint irst(void) { return 3; }\n")
        .unwrap();
    let built = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(built.expect("there is a C compiler").success());
    without_symbols(&library, &["first"], &without).unwrap();
    let finds = |path: &PathBuf, name: &str| {
        let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let name = std::ffi::CString::new(name).unwrap();
        // SAFETY: the library has no code that runs when it is loaded.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!handle.is_null());
            !libc::dlsym(handle, name.as_ptr()).is_null()
        }
    };
    for name in ["first", "second", "irst"] {
        assert!(finds(&library, name));
        assert_eq!(finds(&without, name), name != "first", "{name}");
    }
    let error = without_symbols(&library, &["third"], &without).unwrap_err().to_string();
    assert!(error.contains("has no `third`"), "{error}");
    assert!(without_symbols(&source, &["first"], &without).is_err());
}
