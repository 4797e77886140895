//! What is loaded, with a driver that keeps what it is given and refuses by rule, and the real NVRTC.

use std::ffi::c_void;
use std::sync::Mutex;

use super::*;
use crate::backend::gpu::driver::*;
use crate::kernel::{DeviceCode, Registered};
use polyhalo_codegen::offline::private::Folder;
use polyhalo_codegen::offline::{cache, nvrtc, require};

/// A driver that only loads code.
#[derive(Debug)]
struct Recorder {
    backend: &'static str,
    ptx: Option<(u32, u32)>,
    /// What is refused, and how.
    refuses: fn(&str) -> Option<Kind>,
    /// What was given to it: PTX, or the bytes of an object as text.
    given: Mutex<Vec<String>>,
}

impl Recorder {
    fn new(backend: &'static str, ptx: Option<(u32, u32)>, refuses: fn(&str) -> Option<Kind>) -> Self {
        Self { backend, ptx, refuses, given: Mutex::default() }
    }

    /// The first two lines of each text.
    fn heads(&self) -> Vec<String> {
        let given = self.given.lock().unwrap();
        given.iter().map(|text| text.lines().take(2).collect::<Vec<_>>().join(" ")).collect()
    }
}

/// Loading asks a driver for nothing else.
fn never<T>() -> Called<T> {
    Err(Failure { call: "another", code: 0, message: "not for loading".into(), kind: Kind::Other })
}

impl Driver for Recorder {
    fn backend(&self) -> &'static str {
        self.backend
    }
    fn version(&self) -> String {
        "recorder 1".into()
    }
    fn ptx(&self) -> Option<(u32, u32)> {
        self.ptx
    }
    fn load(&self, card: u32, image: Image<'_>) -> Called<Module> {
        let text = match image {
            Image::Ptx(text) => text.to_owned(),
            Image::Object(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        };
        let refused = (self.refuses)(&text);
        let mut given = self.given.lock().unwrap();
        given.push(text);
        match refused {
            None => Ok(Module(given.len() * 10 + card as usize)),
            Some(kind) => Err(Failure { call: "load", code: 209, message: "no image for the card (209)".into(), kind }),
        }
    }
    fn cards(&self) -> Called<Vec<Called<Card>>> {
        never()
    }
    fn open(&self, _: u32) -> Called<()> {
        never()
    }
    fn close(&self, _: u32) -> Called<()> {
        never()
    }
    fn memory(&self, _: u32) -> Called<[u64; 2]> {
        never()
    }
    fn alloc(&self, _: u32, _: usize) -> Called<Address> {
        never()
    }
    fn free(&self, _: u32, _: Address) -> Called<()> {
        never()
    }
    fn zero(&self, _: u32, _: Stream, _: Address, _: usize) -> Called<()> {
        never()
    }
    fn alloc_host(&self, _: u32, _: usize) -> Called<*mut u8> {
        never()
    }
    fn free_host(&self, _: u32, _: *mut u8) -> Called<()> {
        never()
    }
    fn stream(&self, _: u32) -> Called<Stream> {
        never()
    }
    fn destroy_stream(&self, _: u32, _: Stream) -> Called<()> {
        never()
    }
    fn finish_stream(&self, _: u32, _: Stream) -> Called<()> {
        never()
    }
    fn event(&self, _: u32, _: bool) -> Called<Event> {
        never()
    }
    fn destroy_event(&self, _: u32, _: Event) -> Called<()> {
        never()
    }
    fn record(&self, _: u32, _: Event, _: Stream) -> Called<()> {
        never()
    }
    fn finish_event(&self, _: u32, _: Event) -> Called<()> {
        never()
    }
    fn has_happened(&self, _: u32, _: Event) -> Called<bool> {
        never()
    }
    fn elapsed(&self, _: u32, _: Event, _: Event) -> Called<f32> {
        never()
    }
    fn wait(&self, _: u32, _: Stream, _: Event) -> Called<()> {
        never()
    }
    unsafe fn copy(&self, _: u32, _: Stream, _: End, _: End, _: [usize; 3]) -> Called<()> {
        never()
    }
    fn reaches(&self, _: u32, _: u32) -> Called<bool> {
        never()
    }
    fn enable_peer(&self, _: u32, _: u32) -> Called<()> {
        never()
    }
    fn unload(&self, _: u32, _: Module) -> Called<()> {
        never()
    }
    fn function(&self, _: u32, _: Module, _: &str) -> Called<Function> {
        never()
    }
    fn uses(&self, _: u32, _: Function) -> Called<Uses> {
        never()
    }
    unsafe fn launch(
        &self,
        _: u32,
        _: Stream,
        _: Function,
        _: [u32; 3],
        _: [u32; 3],
        _: &mut [*mut c_void],
    ) -> Called<()> {
        never()
    }
    fn begin_capture(&self, _: u32, _: Stream) -> Called<()> {
        never()
    }
    fn end_capture(&self, _: u32, _: Stream) -> Called<Graph> {
        never()
    }
    fn launch_graph(&self, _: u32, _: Stream, _: Graph) -> Called<()> {
        never()
    }
    fn destroy_graph(&self, _: u32, _: Graph) -> Called<()> {
        never()
    }
}

fn card(architecture: Architecture) -> Card {
    Card {
        ordinal: 3,
        name: "the card".into(),
        architecture,
        memory_bytes: 1 << 30,
        units: 80,
        warp: 32,
        block_threads: 1024,
        grid: [i32::MAX as u32, 65535, 65535],
        pci: None,
    }
}

/// A kernel with code for every target: one of the runtime's own.
pub(super) fn own_kernel() -> &'static KernelDesc {
    let all = inventory::iter::<Registered>.into_iter().map(|registered| registered.0);
    let own = all.filter(|kernel| kernel.is_own() && !kernel.code.cuda.is_empty());
    own.min_by_key(|kernel| kernel.name).expect("the runtime fills boundaries by kernels of its own")
}

/// That kernel with other code.
fn kernel(code: impl FnOnce(DeviceCode) -> DeviceCode) -> &'static KernelDesc {
    let own = own_kernel();
    Box::leak(Box::new(KernelDesc { name: "heat", code: code(own.code), ..*own }))
}

const EMBEDDED: &str = ".version 6.3\n.target sm_70\n// embedded\n";

/// Loads where these variables are set, with a cache in `kept` if there is one.
fn load_in(
    driver: &Recorder,
    architecture: Architecture,
    kernel: &'static KernelDesc,
    kept: Option<&Folder>,
    variables: &[(&str, &str)],
) -> Result<Loaded> {
    let cache = match kept {
        Some(folder) => Cache::open_in(None, &|name| (name == cache::VARIABLE).then(|| folder.path().into())),
        None => Cache::off("a test".into()),
    };
    let environment = |wanted: &str| {
        let named = variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.into());
        named.or_else(|| process_environment(wanted))
    };
    load_with(driver, &card(architecture), kernel, &Means { cache: &cache, environment: &environment })
}

const NO_NVRTC: [(&str, &str); 1] = [(nvrtc::VARIABLE, "off")];

fn unsupported(loaded: Result<Loaded>, told: &[&str]) {
    let Err(Error::Unsupported { device, kernel, reason }) = loaded else { panic!("{loaded:?}") };
    assert!(device.ends_with(" 3: the card") && kernel == "heat", "{device}, {kernel}");
    assert!(told.iter().all(|told| reason.contains(told)), "{reason}");
}

#[test]
fn embedded_ptx_is_loaded_in_a_version_that_the_driver_takes() {
    let with_ptx = kernel(|code| DeviceCode { ptx: Some(EMBEDDED), ..code });
    for (newest, version) in [(Some((8, 8)), "6.3"), (Some((6, 3)), "6.3"), (Some((6, 0)), "6.0"), (None, "6.3")] {
        let driver = Recorder::new("cuda", newest, |_| None);
        let loaded = load_in(&driver, Architecture::Sm(9, 0), with_ptx, None, &NO_NVRTC).unwrap();
        assert_eq!((loaded.origin.as_str(), loaded.module), ("embedded PTX", Module(13)));
        assert_eq!(driver.heads(), [format!(".version {version} .target sm_70")]);
    }
}

#[test]
fn without_embedded_ptx_it_is_made_for_the_card_once() {
    let Some(nvrtc) = require::available("nvrtc", nvrtc::find()) else { return };
    let (bare, kept) = (kernel(|code| DeviceCode { ptx: None, ..code }), Folder::new().unwrap());
    for (sm, newest, head) in [
        ((7, 5), (6, 3), ".version 6.3 .target sm_75"),
        ((8, 0), (7, 0), ".version 7.0 .target sm_80"),
        ((9, 0), (8, 0), ".version 7.8 .target sm_90"),
    ] {
        let driver = Recorder::new("cuda", Some(newest), |_| None);
        let origins =
            [0, 1].map(|_| load_in(&driver, Architecture::Sm(sm.0, sm.1), bare, Some(&kept), &[]).unwrap().origin);
        let origin = format!("PTX by NVRTC {} for sm_{}{}", nvrtc.version(), sm.0, sm.1);
        assert_eq!(origins, [origin.clone(), format!("{origin} (from the cache)")]);
        assert_eq!(driver.heads(), [head, head]);
        let given = driver.given.lock().unwrap();
        assert!(given[0] == given[1] && given[0].contains(".entry "), "{}", given[0]);
    }
    assert_eq!(std::fs::read_dir(kept.path()).unwrap().count(), 3);
}

#[test]
fn what_the_driver_does_not_take_is_made_anew() {
    let Some(nvrtc) = require::available("nvrtc", nvrtc::find()) else { return };
    // PTX for a later card than this one.
    let later = kernel(|code| DeviceCode { ptx: Some(".version 6.3\n.target sm_75\n"), ..code });
    let driver = Recorder::new("cuda", Some((8, 8)), |ptx| ptx.contains("sm_75").then_some(Kind::InvalidImage));
    let loaded = load_in(&driver, Architecture::Sm(8, 6), later, None, &[]).unwrap();
    assert_eq!(loaded.origin, format!("PTX by NVRTC {} for sm_86", nvrtc.version()));
    assert_eq!(driver.heads(), [".version 6.3 .target sm_75", ".version 7.1 .target sm_86"]);
    // A driver that is too old for what the card's own architecture needs gets PTX for an older one.
    let bare = kernel(|code| DeviceCode { ptx: None, ..code });
    let driver = Recorder::new("cuda", Some((7, 0)), |_| None);
    let loaded = load_in(&driver, Architecture::Sm(8, 6), bare, None, &[]).unwrap();
    assert!(loaded.origin.ends_with(" for sm_70") || loaded.origin.ends_with(" for sm_75"), "{}", loaded.origin);
    // As does a card that NVRTC doesn't know.
    let loaded = load_in(&driver, Architecture::Sm(99, 0), bare, None, &[]).unwrap();
    assert!(loaded.origin.ends_with(" for sm_70") || loaded.origin.ends_with(" for sm_75"), "{}", loaded.origin);
}

#[test]
fn a_card_without_code_is_told_what_was_tried_and_what_would_serve() {
    let bare = kernel(|code| DeviceCode { ptx: None, ..code });
    let driver = Recorder::new("cuda", Some((8, 8)), |_| None);
    let loaded = load_in(&driver, Architecture::Sm(9, 0), bare, None, &NO_NVRTC);
    unsupported(loaded, &["embedded PTX: there is none", "POLYHALO_NVRTC turns NVRTC off", "install a newer driver"]);
    let with_ptx = kernel(|code| DeviceCode { ptx: Some(EMBEDDED), cuda: "", ..code });
    let refusing = Recorder::new("cuda", Some((8, 8)), |_| Some(Kind::InvalidImage));
    let loaded = load_in(&refusing, Architecture::Sm(9, 0), with_ptx, None, &[]);
    unsupported(loaded, &["embedded PTX: no image for the card (209)", "the kernel carries no CUDA C"]);
    let old = Recorder::new("cuda", Some((5, 0)), |_| None);
    let loaded = load_in(&old, Architecture::Sm(7, 0), with_ptx, None, &NO_NVRTC);
    unsupported(loaded, &["the driver takes PTX up to version 5.0, and sm_70 needs 6.0"]);
    assert_eq!(old.heads(), [""; 0]);
    let Some(nvrtc) = require::available("nvrtc", nvrtc::find()) else { return };
    let loaded = load_in(&refusing, Architecture::Sm(9, 0), bare, None, &[]);
    unsupported(loaded, &[&format!("PTX by NVRTC {} for sm_90: no image for the card", nvrtc.version())]);
}

#[test]
fn a_failure_that_has_nothing_to_do_with_the_code_is_the_drivers() {
    let with_ptx = kernel(|code| DeviceCode { ptx: Some(EMBEDDED), ..code });
    let lost = Recorder::new("cuda", Some((8, 8)), |_| Some(Kind::Lost));
    let Err(Error::Driver { backend, device, call, message }) =
        load_in(&lost, Architecture::Sm(9, 0), with_ptx, None, &[])
    else {
        panic!("loaded on a lost card")
    };
    assert_eq!((backend, device.as_str(), call.as_str()), ("cuda", "cuda 3: the card", "load"));
    assert_eq!(message, "no image for the card (209) (`heat`, embedded PTX)");
    assert_eq!(lost.heads().len(), 1);
}

#[test]
fn a_mistake_in_the_source_is_an_error_of_its_own() {
    let Some(_) = require::available("nvrtc", nvrtc::find()) else { return };
    let wrong = kernel(|code| DeviceCode { ptx: None, cuda: "doubl x;", ..code });
    let driver = Recorder::new("cuda", Some((8, 8)), |_| None);
    let Err(Error::Build { device, kernel, form, log }) = load_in(&driver, Architecture::Sm(8, 0), wrong, None, &[])
    else {
        panic!("compiled nonsense")
    };
    assert_eq!((device.as_str(), kernel.as_str()), ("cuda 3: the card", "heat"));
    assert!(form.starts_with("CUDA C, by NVRTC ") && log.contains("doubl"), "{form}: {log}");
}

const OBJECTS: &[(&str, &[u8])] = &[("gfx942", b"for gfx942"), ("gfx90a", b"for gfx90a"), ("gfx90a:xnack+", b"xnack")];
const INSTALL: &str = "; install ROCm's hiprtc where the program runs";
const OWN_RELEASE: &str = "; the hiprtc of the driver's own release of ROCm may serve";
const NO_HIPRTC: [(&str, &str); 1] = [("POLYHALO_HIPRTC", "off")];

fn gfx(name: &str) -> Architecture {
    Architecture::Gfx(name.into())
}

#[test]
fn the_embedded_code_object_of_the_cards_processor_is_loaded() {
    let with_objects = kernel(|code| DeviceCode { hip_objects: OBJECTS, ..code });
    let driver = Recorder::new("hip", None, |_| None);
    let loaded = load_in(&driver, gfx("gfx90a:sramecc+:xnack-"), with_objects, None, &NO_HIPRTC).unwrap();
    assert_eq!((loaded.origin.as_str(), driver.heads()), ("code object for gfx90a", vec!["for gfx90a".to_owned()]));
    // One that the driver refuses is passed by.
    let driver = Recorder::new("hip", None, |text| (text == "for gfx90a").then_some(Kind::InvalidImage));
    let loaded = load_in(&driver, gfx("gfx90a:sramecc-:xnack+"), with_objects, None, &NO_HIPRTC).unwrap();
    assert_eq!(loaded.origin, "code object for gfx90a:xnack+");
    let loaded = load_in(&driver, gfx("gfx1030"), with_objects, None, &NO_HIPRTC);
    let told = "embedded code objects: none is for gfx1030, only for gfx942, gfx90a, gfx90a:xnack+";
    unsupported(loaded, &[told, "POLYHALO_HIPRTC turns hiprtc off", INSTALL]);
    let bare = kernel(|code| DeviceCode { hip_objects: &[], hip: "", ..code });
    let loaded = load_in(&driver, gfx("gfx1030"), bare, None, &[]);
    unsupported(loaded, &["there are none, because clang was missing", "hiprtc: the kernel carries no HIP source"]);
    let code = DeviceCode { hip_objects: &[], ..own_kernel().code };
    let calling = KernelDesc { name: "heat", code, vendor_functions: &["exp", "sin"], ..*own_kernel() };
    let loaded = load_in(&driver, gfx("gfx90a"), Box::leak(Box::new(calling)), None, &NO_HIPRTC);
    unsupported(loaded, &["the kernel calls `exp`, `sin`, for which the code needs AMD's device library", INSTALL]);
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_code_object_hiprtc_makes_it_once_for_the_very_card() {
    let folder = Folder::new().unwrap();
    let Some(library) = hiprtc::tests::made(&folder, "libhiprtc.so.6", &[]) else { return };
    let variables = [("POLYHALO_HIPRTC", library.to_str().unwrap())];
    let (kept, driver) = (Folder::new().unwrap(), Recorder::new("hip", None, |_| None));
    let source = |hip| kernel(|code| DeviceCode { hip_objects: OBJECTS, hip, ..code });
    let name = "gfx1100:xnack-";
    let fine = source("fine");
    let origins = [0, 1].map(|_| load_in(&driver, gfx(name), fine, Some(&kept), &variables).unwrap().origin);
    assert_eq!(origins, ["hiprtc for gfx1100:xnack-", "hiprtc for gfx1100:xnack- (from the cache)"]);
    assert_eq!(driver.heads(), ["--offload-arch=gfx1100:xnack- -O3"; 2]);
    let crashed = load_in(&driver, gfx(name), source("CRASH"), Some(&kept), &variables);
    unsupported(crashed, &["hiprtc for gfx1100:xnack-: hiprtc crashed (signal: 6", "unknown processor", OWN_RELEASE]);
    // Who has a compiler whose code the driver refuses isn't told to install one.
    let refusing = Recorder::new("hip", None, |_| Some(Kind::InvalidImage));
    let refused = load_in(&refusing, gfx(name), fine, Some(&kept), &variables);
    let Err(Error::Unsupported { reason, .. }) = &refused else { panic!("{refused:?}") };
    assert!(!reason.contains(INSTALL), "{reason}");
    unsupported(refused, &["(from the cache): no image for the card (209)", OWN_RELEASE]);
    let wrong = load_in(&driver, gfx(name), source("MISTAKE"), Some(&kept), &variables);
    let Err(Error::Build { form, log, .. }) = wrong else { panic!("{wrong:?}") };
    assert_eq!(form, "HIP, by hiprtc 6.2 for gfx1100:xnack-");
    assert!(log.contains("unknown type name"), "{log}");
}
