//! The driver on made libraries.

use std::ffi::OsString;

use super::*;

/// What `find` says when only the variable is set.
fn named(value: &str) -> Result<&'static Cuda, String> {
    find(&|variable| (variable == SEARCH.variable).then(|| OsString::from(value)))
}

#[test]
fn it_can_be_turned_off() {
    assert_eq!(named("off").unwrap_err(), "POLYHALO_CUDA turns CUDA off");
}

#[test]
fn what_is_no_library_of_cuda_is_a_reason() {
    let reason = named("/nowhere/libcuda.so.1").unwrap_err();
    assert!(reason.starts_with("POLYHALO_CUDA names /nowhere/libcuda.so.1, which can't be read: "), "{reason}");
    let reason = named("libpolyhalo-nowhere.so.1").unwrap_err();
    assert_eq!(reason, "POLYHALO_CUDA names libpolyhalo-nowhere.so.1, which is not there");
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let reason = named("libc.so.6").unwrap_err();
        assert!(reason.contains("POLYHALO_CUDA can't be used: libc.so.6: it lacks cuInit"), "{reason}");
    }
}

/// The driver with every entry point answered by a function that fails, but those of `absent`.
fn made_of_failures(absent: &'static [&'static str]) -> Result<Cuda, String> {
    extern "C" fn fails() -> c_int {
        100
    }
    let texts = ["cuGetErrorName", "cuGetErrorString"];
    let given = |name: &str| !absent.contains(&name) && !texts.contains(&name);
    Cuda::new(&|name| given(name).then_some(fails as *const c_void))
}

#[test]
fn a_core_entry_point_that_is_missing_refuses_the_driver_by_name() {
    for name in ["cuInit", "cuLaunchKernel", "cuMemcpy3DAsync_v2"] {
        let reason = made_of_failures(vec![name].leak()).unwrap_err();
        assert!(reason.contains(&format!("it lacks {name},")), "{reason}");
    }
}

#[test]
fn no_device_is_a_failure_of_the_call_that_says_so() {
    let driver = made_of_failures(&[]).unwrap();
    let failure = driver.cards().unwrap_err();
    let message = "CUDA error (100): there is no card, or none that CUDA_VISIBLE_DEVICES lets this program see".into();
    let expected = Failure { call: "cuInit", code: 100, message, kind: Kind::Other };
    assert_eq!(failure, expected);
    assert_eq!(driver.open(0).unwrap_err(), expected);
    assert_eq!((driver.version().as_str(), driver.ptx()), ("CUDA", None));
}

#[test]
fn an_optional_entry_point_that_is_missing_fails_the_call() {
    let optional = &["cuMemGetInfo_v2", "cuStreamBeginCapture_v2"];
    let driver = made_of_failures(optional).unwrap();
    let failure = call!(driver, cuMemGetInfo_v2(ptr::null_mut(), ptr::null_mut())).unwrap_err();
    assert_eq!((failure.kind, failure.call, failure.code), (Kind::Unsupported, "cuMemGetInfo_v2", 0));
    assert_eq!(failure.message, "the driver's library lacks cuMemGetInfo_v2");
    let failure = call!(driver, cuStreamBeginCapture_v2(ptr::null_mut(), 0)).unwrap_err();
    assert_eq!((failure.kind, failure.call), (Kind::Unsupported, "cuStreamBeginCapture_v2"));
}
