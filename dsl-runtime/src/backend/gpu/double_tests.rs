//! Both drivers on the doubles of their libraries.
//!
//! Each test has copies of a double of its own, with its own settings, in this process. The doubles are built with the
//! workspace and lie beside this program; a test of the runtime alone does without them and says so.

use std::ffi::{CString, OsString, c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, ptr, slice};

use polyhalo_codegen::offline::programs::Environment;
use polyhalo_codegen::offline::require;

use super::driver::{Address, Architecture, Driver, End, Event, Failure, Function, Image, Kind, Module, Side, Stream};
use super::library;
use super::{cuda, hip};

/// What the vendors' doubles differ in.
struct Vendor {
    /// The double's file.
    library: &'static str,
    /// The variable that names it.
    variable: &'static str,
    find: fn(Environment) -> Result<&'static dyn Driver, String>,
    /// Entry points: memory, what the second card is asked first, rows and planes.
    alloc: &'static str,
    name: &'static str,
    planes: &'static str,
    peers: &'static str,
    reach: &'static str,
}

const VENDORS: [Vendor; 2] = [
    Vendor {
        library: "libpolyhalo_double_cuda.so",
        variable: "POLYHALO_CUDA",
        find: cuda::driver_of,
        alloc: "cuMemAlloc_v2",
        name: "cuDeviceGetName",
        planes: "cuMemcpy3DPeerAsync",
        peers: "cuMemcpyPeerAsync",
        reach: "cuDeviceCanAccessPeer",
    },
    Vendor {
        library: "libpolyhalo_double_hip.so",
        variable: "POLYHALO_HIP",
        find: hip::driver_of,
        alloc: "hipMalloc",
        name: "hipDeviceGetName",
        planes: "hipMemcpy3DAsync",
        peers: "hipMemcpyPeerAsync",
        reach: "hipDeviceCanAccessPeer",
    },
];

/// The double's library, which Cargo builds beside the tests of the whole workspace.
fn double(vendor: &Vendor) -> Option<Vec<u8>> {
    let beside = env::current_exe().expect("a test has a file").with_file_name(vendor.library);
    require::available("doubles", fs::read(&beside).map_err(|error| format!("{}: {error}", beside.display())))
}

/// A driver on a copy of the double, with these settings and without these entry points; `None` where the double isn't built.
fn machine(vendor: &Vendor, settings: &[&str], lacking: &[&str]) -> Option<&'static dyn Driver> {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let mut bytes = double(vendor)?;
    for name in lacking {
        // The name in the table of names becomes another one, which nobody looks for.
        let name = format!("\0{name}\0").into_bytes();
        let places: Vec<_> = (0..bytes.len() - name.len()).filter(|&at| bytes[at..].starts_with(&name)).collect();
        assert!(!places.is_empty(), "the double has {}", String::from_utf8_lossy(&name));
        places.into_iter().for_each(|at| bytes[at + 1] = b'_');
    }
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let copy: PathBuf = env::temp_dir().join(format!("polyhalo-{}-{number}-{}", process::id(), vendor.library));
    fs::write(&copy, bytes).expect("there is room for a copy of the double");
    let library = library::load(&copy).expect("the double is a library");
    let settings = CString::new(settings.join("\n")).expect("settings have no zeros");
    // SAFETY: the double's function has this type, and nothing else of it was called yet.
    unsafe {
        let set = library.get::<unsafe extern "C" fn(*const c_char)>("polyhalo_double_settings");
        set.expect("doubles take settings")(settings.as_ptr());
    }
    let driver = (vendor.find)(&|variable| (variable == vendor.variable).then(|| OsString::from(&copy)));
    fs::remove_file(&copy).expect("the copy is there");
    Some(driver.expect("the double is a driver"))
}

/// Does something with a driver of each vendor.
fn with_each(settings: &[&str], action: impl Fn(&Vendor, &'static dyn Driver)) {
    for vendor in &VENDORS {
        if let Some(driver) = machine(vendor, settings, &[]) {
            action(vendor, driver);
        }
    }
}

#[test]
fn cards_are_described_on_doubles() {
    with_each(&["POLYHALO_DOUBLE_DEVICES=3"], |_, driver| {
        let cards = driver.cards().unwrap();
        assert_eq!(cards.len(), 3);
        for (number, card) in cards.into_iter().enumerate() {
            let card = card.unwrap();
            assert_eq!(card.ordinal as usize, number);
            assert!(!card.name.is_empty() && card.units > 0 && card.memory_bytes > 0, "{card:?}");
            assert!(card.block_threads >= 256 && card.grid.iter().all(|&blocks| blocks >= 65535), "{card:?}");
            assert!([32, 64].contains(&card.warp), "{card:?}");
            match (&card.architecture, driver.backend()) {
                (Architecture::Sm(major, _), "cuda") => assert!(*major >= 7, "{card:?}"),
                (Architecture::Gfx(name), "hip") => assert!(name.starts_with("gfx"), "{card:?}"),
                (other, backend) => panic!("{backend}: {other}"),
            }
            assert!(card.pci.is_some(), "{card:?}");
        }
        assert!(driver.version().to_lowercase().starts_with(driver.backend()), "{}", driver.version());
        assert!(driver.open(3).is_err());
    });
}

#[test]
fn a_broken_card_hides_no_other_on_doubles() {
    for vendor in &VENDORS {
        let fail = format!("POLYHALO_DOUBLE_FAIL={}:2:999", vendor.name);
        let Some(driver) = machine(vendor, &["POLYHALO_DOUBLE_DEVICES=3", &fail], &[]) else { continue };
        let cards = driver.cards().unwrap();
        let broken: Vec<_> = cards.iter().map(Result::is_err).collect();
        assert_eq!(broken, [false, true, false], "{cards:?}");
        let failure = cards[1].as_ref().unwrap_err();
        assert_eq!((failure.call, failure.code, failure.kind), (vendor.name, 999, Kind::Other));
        assert!(failure.message.contains("UNKNOWN (999)") || failure.message.contains("Unknown (999)"), "{failure}");
    }
}

#[test]
fn no_device_is_a_failure_on_doubles() {
    with_each(&["POLYHALO_DOUBLE_DEVICES=0"], |_, driver| {
        let failure = driver.cards().unwrap_err();
        assert_eq!((failure.code, failure.kind), (100, Kind::Other), "{failure}");
    });
}

#[test]
fn failures_say_what_a_caller_can_act_on_on_doubles() {
    for vendor in &VENDORS {
        for (code, kind) in [(2, Kind::OutOfMemory), (719, Kind::Lost), (209, Kind::InvalidImage), (1, Kind::Other)] {
            let fail = format!("POLYHALO_DOUBLE_FAIL={}:1:{code}", vendor.alloc);
            let Some(driver) = machine(vendor, &[&fail], &[]) else { continue };
            driver.open(0).unwrap();
            let failure = driver.alloc(0, 64).unwrap_err();
            assert_eq!((failure.call, failure.code, failure.kind), (vendor.alloc, code, kind));
            assert!(failure.message.contains(&format!("({code})")), "{failure}");
        }
    }
    with_each(&["POLYHALO_DOUBLE_MEMORY=65536"], |_, driver| {
        driver.open(0).unwrap();
        assert_eq!(driver.alloc(0, 65537).unwrap_err().kind, Kind::OutOfMemory);
        let [_, all] = driver.memory(0).unwrap();
        assert_eq!(all, 65536);
    });
}

#[test]
fn a_card_that_is_not_open_is_refused_and_can_be_opened_again_on_doubles() {
    with_each(&[], |_, driver| {
        for _ in 0..3 {
            driver.open(0).unwrap();
            driver.open(0).unwrap();
            driver.close(0).unwrap();
            let address = driver.alloc(0, 4096).unwrap();
            driver.free(0, address).unwrap();
            // Another thread finds the card too.
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let address = driver.alloc(0, 4096).unwrap();
                    driver.free(0, address).unwrap();
                });
            });
            driver.close(0).unwrap();
        }
        if driver.backend() == "cuda" {
            assert!(driver.alloc(0, 4096).unwrap_err().message.contains("isn't open"));
            assert!(driver.close(0).is_err());
        }
    });
}

/// Memory of a machine for tests of copies: `BYTES` on the host, twice on a card and once on another one.
struct Boxes {
    driver: &'static dyn Driver,
    host: *mut u8,
    near: [Address; 2],
    far: Address,
    streams: [Stream; 2],
    event: Event,
}

const BYTES: usize = 4096;

impl Boxes {
    fn new(driver: &'static dyn Driver) -> Self {
        driver.open(0).unwrap();
        driver.open(1).unwrap();
        let near = [(); 2].map(|()| driver.alloc(0, BYTES).unwrap());
        let far = driver.alloc(1, BYTES).unwrap();
        let streams = [0, 1].map(|card| driver.stream(card).unwrap());
        let host = driver.alloc_host(0, BYTES).unwrap();
        let event = driver.event(0, false).unwrap();
        let all = Self { driver, host, near, far, streams, event };
        // SAFETY: nothing is enqueued.
        let bytes = unsafe { slice::from_raw_parts_mut(all.host, BYTES) };
        bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
        for address in all.near {
            driver.zero(0, streams[0], address, BYTES).unwrap();
        }
        driver.zero(1, streams[1], far, BYTES).unwrap();
        driver.finish_stream(0, streams[0]).unwrap();
        driver.finish_stream(1, streams[1]).unwrap();
        all
    }

    /// Sends a box around: to the card, on the card, to the other card, and back over what is on the host.
    fn round(&self, shape: [usize; 3], pitches: Pitches) -> Result<Vec<u8>, Failure> {
        let side = [Side::Card(0), Side::Card(0), Side::Card(1), Side::Host];
        let start = [self.near[0].0, self.near[1].0, self.far.0, self.host.addr() as u64];
        let end = |at: usize, first: u64| {
            let (row_pitch, plane_pitch) = pitches[at];
            End { side: side[at], address: start[at] + first, row_pitch, plane_pitch }
        };
        let copy = |card: u32, from, to| {
            // SAFETY: all boxes lie in their memory, and the host's is pinned and waited for.
            unsafe { self.driver.copy(card, self.streams[card as usize], from, to, shape) }
        };
        copy(0, end(3, 100), end(0, 8))?;
        copy(0, end(0, 8), end(1, 16))?;
        copy(0, end(1, 16), end(2, 24))?;
        self.driver.record(0, self.event, self.streams[0])?;
        self.driver.wait(1, self.streams[1], self.event)?;
        copy(1, end(2, 24), end(3, 1500))?;
        self.driver.finish_stream(1, self.streams[1])?;
        // SAFETY: all that was enqueued is done.
        Ok(unsafe { slice::from_raw_parts(self.host, BYTES) }.to_vec())
    }

    fn close(self) {
        let driver = self.driver;
        driver.destroy_event(0, self.event).unwrap();
        driver.free_host(0, self.host).unwrap();
        for (card, address) in [(0, self.near[0]), (0, self.near[1]), (1, self.far)] {
            driver.free(card, address).unwrap();
        }
        for card in [0, 1] {
            driver.destroy_stream(card, self.streams[card as usize]).unwrap();
            driver.close(card).unwrap();
        }
    }
}

/// From row to row and from plane to plane: on the card, there again, on the other card and on the host.
type Pitches = [(usize, usize); 4];

/// Boxes and their pitches.
const ROUNDS: [([usize; 3], Pitches); 6] = [
    ([200, 1, 1], [(0, 0), (8, 8), (16, 16), (1, 2)]),
    ([24, 5, 1], [(24, 120), (32, 160), (40, 200), (48, 240)]),
    ([24, 5, 3], [(24, 120), (24, 120), (24, 120), (24, 120)]),
    ([24, 5, 3], [(32, 192), (48, 384), (40, 200), (24, 120)]),
    ([8, 1, 7], [(8, 48), (8, 64), (16, 64), (24, 72)]),
    // Planes that aren't whole rows apart.
    ([24, 5, 3], [(32, 200), (24, 130), (40, 210), (25, 150)]),
];

#[track_caller]
fn check_rounds(driver: &'static dyn Driver) {
    for (shape, pitches) in ROUNDS {
        let boxes = Boxes::new(driver);
        let mut expected: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
        let (row, plane) = pitches[3];
        for (z, y, x) in
            (0..shape[2]).flat_map(|z| (0..shape[1]).flat_map(move |y| (0..shape[0]).map(move |x| (z, y, x))))
        {
            let at = x + y * row + z * plane;
            expected[1500 + at] = ((100 + at) % 251) as u8;
        }
        let found = boxes.round(shape, pitches).unwrap_or_else(|failure| panic!("{}: {failure}", failure.call));
        assert!(found == expected, "{} {shape:?} {pitches:?}", driver.backend());
        boxes.close();
    }
}

#[test]
fn boxes_are_copied_whole_in_every_schedule_on_doubles() {
    for order in ["eager", "lazy", "random:7"] {
        for peers in ["all", "none"] {
            let settings = [format!("POLYHALO_DOUBLE_ORDER={order}"), format!("POLYHALO_DOUBLE_PEERS={peers}")];
            with_each(&[&settings[0], &settings[1]], |_, driver| {
                assert_eq!(driver.reaches(0, 1), Ok(peers == "all"));
                if peers == "all" {
                    driver.open(0).unwrap();
                    driver.open(1).unwrap();
                    driver.enable_peer(0, 1).unwrap();
                    driver.enable_peer(0, 1).unwrap();
                }
                check_rounds(driver);
            });
        }
    }
}

#[test]
fn what_a_library_lacks_is_done_another_way_or_refused_by_name_on_doubles() {
    for vendor in &VENDORS {
        let Some(driver) = machine(vendor, &[], &[vendor.planes]) else { continue };
        check_rounds(driver);
        let driver = machine(vendor, &[], &[vendor.reach]).unwrap();
        assert_eq!(driver.reaches(0, 1), Ok(false));
        let driver = machine(vendor, &[], &[vendor.peers]).unwrap();
        let (shape, pitches) = ROUNDS[0];
        let failure = Boxes::new(driver).round(shape, pitches).unwrap_err();
        assert_eq!((failure.kind, failure.call, failure.code), (Kind::Unsupported, vendor.peers, 0));
        assert!(failure.message.ends_with(&format!("lacks {}", vendor.peers)), "{failure}");
    }
    let hip = &VENDORS[1];
    if let Some(older) = machine(hip, &[], &["hipGetDevicePropertiesR0600", "hipGraphInstantiateWithFlags"]) {
        assert!(older.cards().unwrap().iter().all(Result::is_ok));
        check_kernel(hip, older);
        let neither = machine(hip, &[], &["hipGetDevicePropertiesR0600", "hipGetDeviceProperties"]).unwrap();
        assert_eq!(neither.cards().unwrap()[0].as_ref().unwrap_err().call, "hipGetDeviceProperties");
    }
    let cuda = &VENDORS[0];
    if let Some(older) = machine(cuda, &[], &["cuGraphInstantiateWithFlags"]) {
        check_kernel(cuda, older);
        check_kernel(cuda, machine(cuda, &[], &["cuGraphInstantiateWithFlags", "cuGraphInstantiate_v2"]).unwrap());
    }
}

#[test]
fn a_library_that_lacks_what_all_have_is_refused_on_doubles() {
    for vendor in &VENDORS {
        if double(vendor).is_none() {
            continue;
        }
        let refused = std::panic::catch_unwind(|| machine(vendor, &[], &[vendor.alloc]).is_some()).unwrap_err();
        let reason = refused.downcast_ref::<String>().expect("a panic with a message");
        assert!(reason.contains(&format!("it lacks {}", vendor.alloc)), "{reason}");
    }
}

const PTX: &str = "
.version 6.3
.target sm_70
.address_size 64

.visible .entry twice(
    .param .u64 twice_param_0,
    .param .u64 twice_param_1,
    .param .u32 twice_param_2
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f64 %fd<3>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [twice_param_0];
    ld.param.u64 %rd2, [twice_param_1];
    ld.param.u32 %r2, [twice_param_2];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra $L__BB0_2;

    cvta.to.global.u64 %rd3, %rd2;
    mul.wide.s32 %rd4, %r1, 8;
    add.s64 %rd5, %rd3, %rd4;
    ld.global.f64 %fd1, [%rd5];
    add.f64 %fd2, %fd1, %fd1;
    cvta.to.global.u64 %rd6, %rd1;
    add.s64 %rd7, %rd6, %rd4;
    st.global.f64 [%rd7], %fd2;

$L__BB0_2:
    ret;
}
";

const HIP: &str = "
extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size(1, 256)))
void twice(double *out, const double *in, const int n)
{
    const int i = (int)(__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
        __builtin_amdgcn_workitem_id_x());
    if (i >= n) return;
    out[i] = in[i] + in[i];
}
";

/// A code object of `HIP`, from the compiler that any copy of the double has.
fn code_object(architecture: &str) -> Vec<u8> {
    let beside = env::current_exe().unwrap().with_file_name(VENDORS[1].library);
    let library = library::load(&beside).unwrap();
    let entry = |name: &str| library::address(library, name).unwrap();
    let source = CString::new(HIP).unwrap();
    let option = CString::new(format!("--offload-arch={architecture}")).unwrap();
    type Text = *const c_char;
    // SAFETY: the functions have these types, all places are there, and texts end with a zero.
    unsafe {
        let create: unsafe extern "C" fn(*mut *mut c_void, Text, Text, i32, *const Text, *const Text) -> i32 =
            std::mem::transmute(entry("hiprtcCreateProgram"));
        let compile: unsafe extern "C" fn(*mut c_void, i32, *const Text) -> i32 =
            std::mem::transmute(entry("hiprtcCompileProgram"));
        let size: unsafe extern "C" fn(*mut c_void, *mut usize) -> i32 =
            std::mem::transmute(entry("hiprtcGetCodeSize"));
        let code: unsafe extern "C" fn(*mut c_void, *mut u8) -> i32 = std::mem::transmute(entry("hiprtcGetCode"));
        let (mut program, mut bytes) = (ptr::null_mut(), 0);
        assert_eq!(create(&mut program, source.as_ptr(), c"twice".as_ptr(), 0, ptr::null(), ptr::null()), 0);
        assert_eq!(compile(program, 1, &option.as_ptr()), 0);
        assert_eq!(size(program, &mut bytes), 0);
        let mut object = vec![0; bytes];
        assert_eq!(code(program, object.as_mut_ptr()), 0);
        object
    }
}

fn loaded(vendor: &Vendor, driver: &dyn Driver) -> Module {
    if vendor.variable == "POLYHALO_CUDA" {
        return driver.load(0, Image::Ptx(PTX)).unwrap();
    }
    let card = driver.cards().unwrap().remove(0).unwrap();
    driver.load(0, Image::Object(&code_object(&card.architecture.to_string()))).unwrap()
}

/// Runs the kernel, at once and recorded.
#[track_caller]
fn check_kernel(vendor: &Vendor, driver: &'static dyn Driver) {
    const COUNT: usize = 100;
    driver.open(0).unwrap();
    let module = loaded(vendor, driver);
    let function = driver.function(0, module, "twice").unwrap();
    assert!(driver.function(0, module, "thrice").is_err());
    assert!(driver.uses(0, function).unwrap().block_threads >= 64);
    let [input, output] = [(); 2].map(|()| driver.alloc(0, COUNT * 8).unwrap());
    let host = driver.alloc_host(0, COUNT * 8).unwrap().cast::<f64>();
    // SAFETY: nothing is enqueued.
    unsafe { slice::from_raw_parts_mut(host, COUNT) }.iter_mut().enumerate().for_each(|(i, value)| *value = i as f64);
    let stream = driver.stream(0).unwrap();
    let [before, after] = [(); 2].map(|()| driver.event(0, true).unwrap());
    let line = |side, address| End { side, address, row_pitch: COUNT * 8, plane_pitch: COUNT * 8 };
    let on_host = line(Side::Host, host.addr() as u64);
    let copy = |from, to| {
        // SAFETY: both ends hold as many bytes, and the host's are pinned and waited for.
        unsafe { driver.copy(0, stream, from, to, [COUNT * 8, 1, 1]) }.unwrap();
    };
    copy(on_host, line(Side::Card(0), input.0));
    driver.record(0, before, stream).unwrap();
    launch(driver, stream, function, [output, input], COUNT as i32);
    driver.record(0, after, stream).unwrap();
    copy(line(Side::Card(0), output.0), on_host);
    driver.finish_event(0, after).unwrap();
    assert_eq!(driver.has_happened(0, after), Ok(true));
    assert!(driver.elapsed(0, before, after).unwrap() >= 0.0);
    driver.finish_stream(0, stream).unwrap();
    let value = |i: usize| {
        // SAFETY: all that was enqueued is done.
        unsafe { host.add(i).read() }
    };
    assert!((0..COUNT).all(|i| value(i) == 2.0 * i as f64), "{}", driver.backend());
    // Recorded, nothing happens; replayed, it happens each time.
    driver.begin_capture(0, stream).unwrap();
    copy(on_host, line(Side::Card(0), input.0));
    launch(driver, stream, function, [output, input], COUNT as i32);
    copy(line(Side::Card(0), output.0), on_host);
    let graph = driver.end_capture(0, stream).unwrap();
    driver.finish_stream(0, stream).unwrap();
    assert!((0..COUNT).all(|i| value(i) == 2.0 * i as f64));
    for times in [4.0, 8.0] {
        driver.launch_graph(0, stream, graph).unwrap();
        driver.finish_stream(0, stream).unwrap();
        assert!((0..COUNT).all(|i| value(i) == times * i as f64), "{} {times}", driver.backend());
    }
    driver.destroy_graph(0, graph).unwrap();
    [before, after].into_iter().for_each(|event| driver.destroy_event(0, event).unwrap());
    driver.destroy_stream(0, stream).unwrap();
    driver.free_host(0, host.cast()).unwrap();
    [input, output].into_iter().for_each(|address| driver.free(0, address).unwrap());
    driver.unload(0, module).unwrap();
    driver.close(0).unwrap();
}

fn launch(driver: &dyn Driver, stream: Stream, function: Function, [output, input]: [Address; 2], mut count: i32) {
    let (mut output, mut input) = (output.0, input.0);
    let arguments = &mut [
        ptr::from_mut(&mut output).cast::<c_void>(),
        ptr::from_mut(&mut input).cast(),
        ptr::from_mut(&mut count).cast(),
    ];
    // SAFETY: the arguments are those of `twice`, and the memory holds as many values.
    unsafe { driver.launch(0, stream, function, [(count as u32).div_ceil(64), 1, 1], [64, 1, 1], arguments) }.unwrap();
}

#[test]
fn kernels_run_at_once_and_recorded_in_every_schedule_on_doubles() {
    for order in ["eager", "lazy", "random:3"] {
        with_each(&[&format!("POLYHALO_DOUBLE_ORDER={order}")], check_kernel);
    }
}

#[test]
fn an_event_that_has_not_happened_is_no_failure_on_doubles() {
    with_each(&["POLYHALO_DOUBLE_ORDER=lazy"], |_, driver| {
        driver.open(0).unwrap();
        let (stream, event) = (driver.stream(0).unwrap(), driver.event(0, false).unwrap());
        let address = driver.alloc(0, 64).unwrap();
        driver.zero(0, stream, address, 64).unwrap();
        driver.record(0, event, stream).unwrap();
        assert_eq!(driver.has_happened(0, event), Ok(false));
        driver.finish_stream(0, stream).unwrap();
        assert_eq!(driver.has_happened(0, event), Ok(true));
    });
}

#[test]
fn a_recording_that_fails_leaves_its_stream_as_it_was_on_doubles() {
    with_each(&[], |_, driver| {
        driver.open(0).unwrap();
        let stream = driver.stream(0).unwrap();
        driver.begin_capture(0, stream).unwrap();
        // A stream that is recorded can't be waited for.
        assert!(driver.finish_stream(0, stream).is_err());
        assert!(driver.end_capture(0, stream).is_err());
        driver.finish_stream(0, stream).unwrap();
    });
}

#[test]
fn code_that_is_no_code_is_refused_on_doubles() {
    with_each(&[], |_, driver| {
        driver.open(0).unwrap();
        for image in [Image::Object(b"no code"), Image::Object(b"\x7fELF\x02\x01 cut short"), Image::Object(b"")] {
            assert_eq!(driver.load(0, image).unwrap_err().kind, Kind::InvalidImage, "{image:?}");
        }
        let expected = if driver.backend() == "cuda" { Kind::InvalidImage } else { Kind::Unsupported };
        assert_eq!(driver.load(0, Image::Ptx("no PTX")).unwrap_err().kind, expected);
        assert!(driver.load(0, Image::Ptx("a zero \0 in it")).is_err());
    });
}
