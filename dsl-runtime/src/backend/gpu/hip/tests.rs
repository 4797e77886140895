//! The driver on made libraries.

use std::ffi::OsString;

use super::*;

/// What `find` says when only the variable is set.
fn named(value: &str) -> Result<&'static Hip, String> {
    find(&|variable| (variable == SEARCH.variable).then(|| OsString::from(value)))
}

#[test]
fn it_can_be_turned_off() {
    assert_eq!(named("off").unwrap_err(), "POLYHALO_HIP turns HIP off");
}

#[test]
fn what_is_no_library_of_hip_is_a_reason() {
    let reason = named("/nowhere/libamdhip64.so").unwrap_err();
    assert!(reason.starts_with("POLYHALO_HIP names /nowhere/libamdhip64.so, which can't be read: "), "{reason}");
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let reason = named("libc.so.6").unwrap_err();
        assert!(reason.contains("POLYHALO_HIP can't be used: libc.so.6: it lacks hipGetDeviceCount"), "{reason}");
    }
}

/// The driver with every entry point answered by a function that fails, but those of `absent`.
fn made_of_failures(absent: &'static [&'static str]) -> Result<Hip, String> {
    extern "C" fn fails() -> c_int {
        100
    }
    let texts = ["hipGetErrorName", "hipGetErrorString"];
    let given = |name: &str| !absent.contains(&name) && !texts.contains(&name);
    Hip::new(&|name| given(name).then_some(fails as *const c_void))
}

#[test]
fn a_core_entry_point_that_is_missing_refuses_the_driver_by_name() {
    for name in ["hipGetDeviceCount", "hipModuleLaunchKernel", "hipMemcpy2DAsync"] {
        let reason = made_of_failures(vec![name].leak()).unwrap_err();
        assert!(reason.contains(&format!("it lacks {name},")), "{reason}");
    }
}

#[test]
fn no_device_is_a_failure_of_the_call_that_says_so() {
    let driver = made_of_failures(&[]).unwrap();
    let failure = driver.cards().unwrap_err();
    let expected =
        Failure { call: "hipGetDeviceCount", code: 100, message: "HIP error (100)".into(), kind: Kind::Other };
    assert_eq!(failure, expected);
    assert_eq!(driver.open(0).unwrap_err(), expected);
    assert_eq!((driver.version().as_str(), driver.ptx()), ("HIP", None));
}

#[test]
fn cards_without_calls_for_peers_do_not_reach_each_other() {
    for absent in [&["hipDeviceCanAccessPeer"][..], &["hipDeviceEnablePeerAccess"]] {
        let driver = made_of_failures(vec![absent[0]].leak()).unwrap();
        assert_eq!(driver.reaches(0, 1), Ok(false));
    }
    assert!(made_of_failures(&[]).unwrap().reaches(0, 1).is_err());
}

#[test]
fn an_optional_entry_point_that_is_missing_fails_the_call() {
    let driver = made_of_failures(&["hipMemGetInfo"]).unwrap();
    let failure = call!(driver, hipMemGetInfo(ptr::null_mut(), ptr::null_mut())).unwrap_err();
    assert_eq!((failure.kind, failure.call, failure.code), (Kind::Unsupported, "hipMemGetInfo", 0));
}
