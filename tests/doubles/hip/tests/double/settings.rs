//! What variables make the double do.

use std::ffi::CStr;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::{env, fs};

use polyhalo_double_engine::without_symbols;

use super::library::{Hip, built, own};

const KERNEL: &str = "extern \"C\" __global__ void zero(double *out) { out[0] = 0.0; }\n";

#[test]
fn devices_of_the_double_are_what_variables_say() {
    let mut number = -1;
    let none = Hip::new(&["DEVICES=0"]);
    assert_eq!((none.hipGetDeviceCount(&mut number), number), (100, 0));
    assert_eq!((none.hipInit(0), none.hipSetDevice(0), none.hipMalloc(&mut 0, 8)), (101, 101, 101));
    let hip = Hip::new(&["DEVICES=3", "ARCH=gfx90a:sramecc+:xnack-", "DRIVER=5.7", "MEMORY=1048576"]);
    assert_eq!((hip.hipInit(0), hip.hipGetDeviceCount(&mut number), number), (0, 0, 3));
    assert_eq!((hip.hipSetDevice(2), hip.hipSetDevice(3), hip.hipSetDevice(-1)), (0, 101, 101));
    assert_eq!(hip.hipRuntimeGetVersion(&mut number), 0);
    assert_eq!(number / 100_000, 507);
    let mut bytes = 0;
    assert_eq!((hip.hipDeviceTotalMem(&mut bytes, 1), bytes), (0, 1 << 20));
    assert_eq!((hip.hipMalloc(&mut 0, 1 << 20), hip.hipMalloc(&mut 0, 1)), (0, 2));
    let mut attribute = |which: u32| (hip.hipDeviceGetAttribute(&mut number, which, 0), number).1;
    assert_eq!([87, 56, 29, 30].map(&mut attribute), [64, 1024, i32::MAX, 65535]);
    let mut room = [0_u8; 64];
    let text = |room: &[u8]| CStr::from_bytes_until_nul(room).expect("a zero").to_string_lossy().into_owned();
    assert_eq!(hip.hipDeviceGetPCIBusId(room.as_mut_ptr().cast(), 64, 1), 0);
    assert_eq!(text(&room), "0000:c2:00.0");
    assert_eq!(hip.hipDeviceGetName(room.as_mut_ptr().cast(), 64, 1), 0);
    assert_eq!(text(&room), "HIP double 1");
    let mut properties = vec![0_u8; 1472];
    assert_eq!(hip.hipGetDevicePropertiesR0600(properties.as_mut_ptr().cast(), 0), 0);
    assert_eq!(text(&properties[1160..]), "gfx90a:sramecc+:xnack-");
}

#[test]
fn peers_of_the_double_are_what_a_variable_says() {
    let mut can = -1;
    let hip = Hip::new(&["PEERS=all"]);
    assert_eq!((hip.hipDeviceCanAccessPeer(&mut can, 0, 1), can), (0, 1));
    assert_eq!((hip.hipDeviceCanAccessPeer(&mut can, 0, 0), can), (0, 0));
    assert_eq!((hip.hipDeviceEnablePeerAccess(1, 0), hip.hipDeviceEnablePeerAccess(1, 0)), (0, 704));
    let hip = Hip::new(&["PEERS=none"]);
    assert_eq!((hip.hipDeviceCanAccessPeer(&mut can, 0, 1), can), (0, 0));
    assert_eq!(hip.hipDeviceEnablePeerAccess(1, 0), 217);
}

#[test]
fn calls_of_the_double_fail_as_a_variable_says() {
    let hip = Hip::new(&["FAIL=hipMalloc:2:2,hipStreamSynchronize:1:719"]);
    let mut address = 0;
    let found = [(); 3].map(|()| hip.hipMalloc(&mut address, 8));
    assert_eq!(found, [0, 2, 0]);
    assert_eq!((hip.hipGetLastError(), hip.hipGetLastError()), (2, 0));
    let stream = hip.stream();
    // After a failed launch nothing works on the device.
    assert_eq!((hip.hipStreamSynchronize(stream), hip.hipStreamSynchronize(stream)), (719, 719));
    assert_eq!(hip.misuses(), "");
}

#[test]
fn entry_points_of_the_double_can_be_missing() {
    let copy = own("so");
    without_symbols(&built(), &["hipMemcpyPeerAsync", "hipGetDevicePropertiesR0600"], &copy).expect("it has them");
    let hip = Hip::of(&copy, &[]);
    fs::remove_file(copy).expect("it was made a moment ago");
    assert!(!hip.has("hipMemcpyPeerAsync") && !hip.has("hipGetDevicePropertiesR0600"));
    assert!(hip.has("hipMemcpyAsync") && hip.has("hipGetDeviceProperties"));
    assert_eq!(hip.hipInit(0), 0);
}

#[test]
fn the_compiler_of_the_double_says_what_is_wrong() {
    let hip = Hip::new(&[]);
    let (code, _, log) =
        hip.compiled("extern \"C\" __global__ void f(double *out)\n{\n    out[0] = unknown;\n}\n", &[]);
    assert_eq!(code, 6);
    assert!(log.contains("kernel.hip:3") && log.contains("unknown"), "{log}");
    let (code, _, log) = hip.compiled(KERNEL, &["--unknown-option"]);
    assert_eq!(code, 5);
    assert!(log.contains("--unknown-option"), "{log}");
    let (code, image, log) = hip.compiled(KERNEL, &["--offload-arch=gfx90c"]);
    assert_eq!((code, log.as_str()), (0, ""));
    assert!(image.starts_with(b"\x7fELF"));
    let (code, _, log) = Hip::new(&["HIPRTC=fail"]).compiled(KERNEL, &[]);
    assert_eq!(code, 6);
    assert!(log.contains("test"), "{log}");
    // No device and no architecture.
    assert_eq!(Hip::new(&["DEVICES=0"]).compiled(KERNEL, &[]).0, 6);
}

#[test]
fn an_unknown_architecture_ends_the_process_of_the_double() {
    const CHILD: &str = "POLYHALO_DOUBLE_CHILD";
    let ways: [(&str, &[&str], &[&str]); 2] =
        [("arch", &[], &["--offload-arch=gfx942"]), ("mode", &["HIPRTC=abort"], &[])];
    if let Ok(way) = env::var(CHILD) {
        let (_, settings, options) = ways.iter().find(|(name, ..)| *name == way).expect("the parent knows them");
        Hip::new(settings).compiled(KERNEL, options);
        return;
    }
    for (way, ..) in ways {
        let mut child = Command::new(env::current_exe().expect("a program knows where it is"));
        child.args(["--exact", "settings::an_unknown_architecture_ends_the_process_of_the_double"]).env(CHILD, way);
        let output = child.output().expect("tests can be run");
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{way}: {output:?}");
    }
}
