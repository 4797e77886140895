//! Tests in processes of their own, and short names for what they ask the driver.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;

use cudarc::driver::sys::*;

/// Set where the body of a test runs.
const CHILD: &str = "POLYHALO_DOUBLE_TEST";

pub(crate) const OK: i32 = 0;

/// The stand-in as Cargo has built it.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("it lies in a folder").join("libpolyhalo_double_cuda.so")
}

/// Runs the body of a test in a process with these variables, and returns what it wrote on standard error.
pub(crate) fn alone(test: &str, variables: &[(&str, &str)], body: fn()) -> String {
    if std::env::var(CHILD).is_ok_and(|name| name == test) {
        load(&library());
        body();
        return String::new();
    }
    let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, test);
    command.envs(variables.iter().map(|(name, value)| (format!("POLYHALO_DOUBLE_{name}"), value)));
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "{variables:?}: {}\n{}{said}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "`{test}` isn't the name of the test");
    said
}

/// Whether the body runs now.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Loads the library by its path; then it is found by its name.
pub(crate) fn load(path: &Path) {
    // SAFETY: nothing runs when it is loaded.
    let library = unsafe { libloading::Library::new(path) }.expect("the stand-in was built beside this test");
    std::mem::forget(library);
}

/// Calls an entry point that has to work.
macro_rules! ok {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: arguments are values of this test's own, or handles and addresses of the driver.
        let code = unsafe { cudarc::driver::sys::$name($($argument),*) } as i32;
        assert_eq!(code, 0, concat!(stringify!($name), ": {}"), code);
    }};
}

/// Calls an entry point and gives its code.
macro_rules! answer {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: as above; what is wrong is refused.
        unsafe { cudarc::driver::sys::$name($($argument),*) as i32 }
    }};
}

pub(crate) use {answer, ok};

/// The contexts of all devices; that of the first one is current.
pub(crate) fn contexts() -> Vec<CUcontext> {
    let mut count = 0;
    ok!(cuInit(0));
    ok!(cuDeviceGetCount(&mut count));
    let contexts: Vec<CUcontext> = (0..count)
        .map(|device| {
            let mut context = null_mut();
            ok!(cuDevicePrimaryCtxRetain(&mut context, device));
            context
        })
        .collect();
    ok!(cuCtxSetCurrent(contexts[0]));
    contexts
}

pub(crate) fn stream() -> CUstream {
    let mut stream = null_mut();
    ok!(cuStreamCreate(&mut stream, 1));
    stream
}

pub(crate) fn event() -> CUevent {
    let mut event = null_mut();
    ok!(cuEventCreate(&mut event, 0));
    event
}

pub(crate) fn memory(bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    ok!(cuMemAlloc_v2(&mut address, bytes));
    address
}

/// Pinned memory of the host.
pub(crate) fn pinned(count: usize) -> *mut u64 {
    let mut start: *mut c_void = null_mut();
    ok!(cuMemHostAlloc(&mut start, count * 8, 1));
    start.cast()
}

/// Numbers on the device of the current context.
pub(crate) fn upload(numbers: &[u64]) -> CUdeviceptr {
    let address = memory(size_of_val(numbers));
    ok!(cuMemcpyHtoD_v2(address, numbers.as_ptr().cast(), size_of_val(numbers)));
    address
}

/// Numbers from the device of the current context.
pub(crate) fn download(address: CUdeviceptr, count: usize) -> Vec<u64> {
    let mut numbers = vec![0; count];
    ok!(cuMemcpyDtoH_v2(numbers.as_mut_ptr().cast(), address, count * 8));
    numbers
}
