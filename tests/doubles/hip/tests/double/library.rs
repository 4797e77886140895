//! A copy of the library with settings of its own, and its entry points.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, process, ptr};

use libloading::Library;

/// The library, loaded from a copy. It stays loaded, as drivers do.
pub(crate) struct Hip {
    library: &'static Library,
    log: PathBuf,
}

/// Makes methods of entry points.
macro_rules! entry_points {
    ($(fn $name:ident($($argument:ident: $ty:ty),*);)*) => {
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "they are the vendor's")]
        impl Hip {
            $(pub(crate) fn $name(&self, $($argument: $ty),*) -> i32 {
                // SAFETY: the library's entry point has this type. The tests give places and handles that are what they seem;
                // where they don't, the library must notice, which is what is tested.
                unsafe {
                    let entry = self.library.get::<unsafe extern "C" fn($($ty),*) -> i32>(stringify!($name));
                    entry.expect("the double has it")($($argument),*)
                }
            })*
        }
    };
}

entry_points! {
    fn hipInit(flags: u32);
    fn hipRuntimeGetVersion(version: &mut i32);
    fn hipGetDeviceCount(count: &mut i32);
    fn hipSetDevice(device: i32);
    fn hipDeviceGetAttribute(value: &mut i32, attribute: u32, device: i32);
    fn hipDeviceGetName(name: *mut c_char, room: i32, device: i32);
    fn hipDeviceGetPCIBusId(name: *mut c_char, room: i32, device: i32);
    fn hipDeviceTotalMem(bytes: &mut usize, device: i32);
    fn hipGetDevicePropertiesR0600(properties: *mut c_void, device: i32);
    fn hipDeviceSynchronize();
    fn hipMalloc(place: &mut u64, bytes: usize);
    fn hipFree(address: u64);
    fn hipHostMalloc(place: &mut u64, bytes: usize, flags: u32);
    fn hipHostFree(address: u64);
    fn hipMemsetAsync(address: u64, value: i32, bytes: usize, stream: u64);
    fn hipMemcpy(to: u64, from: u64, bytes: usize, kind: u32);
    fn hipMemcpyAsync(to: u64, from: u64, bytes: usize, kind: u32, stream: u64);
    fn hipMemcpy2DAsync(to: u64, to_pitch: usize, from: u64, from_pitch: usize, bytes: usize, rows: usize, kind: u32, stream: u64);
    fn hipMemcpyPeerAsync(to: u64, to_device: i32, from: u64, from_device: i32, bytes: usize, stream: u64);
    fn hipMemcpy3DPeerAsync(copy: &PeerCopy, stream: u64);
    fn hipDeviceCanAccessPeer(can: &mut i32, device: i32, peer: i32);
    fn hipDeviceEnablePeerAccess(peer: i32, flags: u32);
    fn hipStreamCreateWithFlags(stream: &mut u64, flags: u32);
    fn hipStreamDestroy(stream: u64);
    fn hipStreamSynchronize(stream: u64);
    fn hipStreamWaitEvent(stream: u64, event: u64, flags: u32);
    fn hipEventCreateWithFlags(event: &mut u64, flags: u32);
    fn hipEventRecord(event: u64, stream: u64);
    fn hipEventSynchronize(event: u64);
    fn hipEventQuery(event: u64);
    fn hipEventElapsedTime(milliseconds: &mut f32, from: u64, to: u64);
    fn hipModuleLoadData(module: &mut u64, image: *const c_void);
    fn hipModuleUnload(module: u64);
    fn hipModuleGetFunction(function: &mut u64, module: u64, name: *const c_char);
    fn hipFuncGetAttribute(value: &mut i32, attribute: u32, function: u64);
    fn hipModuleLaunchKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32, stream: u64,
        arguments: *mut *mut c_void, extra: *mut *mut c_void
    );
    fn hipStreamBeginCapture(stream: u64, mode: u32);
    fn hipStreamEndCapture(stream: u64, graph: &mut u64);
    fn hipGraphInstantiateWithFlags(ready: &mut u64, graph: u64, flags: u64);
    fn hipGraphLaunch(ready: u64, stream: u64);
    fn hipGraphDestroy(graph: u64);
    fn hipGraphExecDestroy(ready: u64);
    fn hipGetLastError();
    fn hiprtcCreateProgram(
        program: &mut u64, source: *const c_char, name: *const c_char, headers: i32, texts: *const c_void, names: *const c_void
    );
    fn hiprtcCompileProgram(program: u64, count: i32, options: *const *const c_char);
    fn hiprtcGetProgramLogSize(program: u64, size: &mut usize);
    fn hiprtcGetProgramLog(program: u64, log: *mut c_char);
    fn hiprtcGetCodeSize(program: u64, size: &mut usize);
    fn hiprtcGetCode(program: u64, code: *mut c_char);
    fn hiprtcDestroyProgram(program: &mut u64);
}

/// `hipMemcpy3DPeerParms`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct PeerCopy {
    pub(crate) from_array: usize,
    pub(crate) from_place: [usize; 3],
    pub(crate) from: [usize; 4],
    pub(crate) from_device: i32,
    pub(crate) to_array: usize,
    pub(crate) to_place: [usize; 3],
    pub(crate) to: [usize; 4],
    pub(crate) to_device: i32,
    pub(crate) extent: [usize; 3],
}

/// The library as it was built.
pub(crate) fn built() -> PathBuf {
    polyhalo_double_hip::library().expect("it is built with the tests")
}

/// A name that nothing else has.
pub(crate) fn own(extension: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("double-{}-{number}.{extension}", process::id()))
}

impl Hip {
    /// The library with settings such as `DEVICES=4`.
    pub(crate) fn new(settings: &[&str]) -> Self {
        let copy = own("so");
        fs::copy(built(), &copy).expect("the library is built with the tests");
        let hip = Self::of(&copy, settings);
        fs::remove_file(copy).expect("it was made a moment ago");
        hip
    }

    /// A certain file.
    pub(crate) fn of(file: &Path, settings: &[&str]) -> Self {
        let log = own("log");
        // SAFETY: loading it runs nothing.
        let library = unsafe { Library::new(file) }.expect("it is a library");
        let settings: Vec<String> = settings.iter().map(|setting| format!("POLYHALO_DOUBLE_{setting}")).collect();
        let text = format!("{}\nPOLYHALO_DOUBLE_LOG={}", settings.join("\n"), log.display());
        let text = CString::new(text).expect("settings have no zeroes");
        // SAFETY: the library has this function, and the text ends in a zero.
        unsafe {
            let set = library.get::<unsafe extern "C" fn(*const c_char)>("polyhalo_double_settings");
            set.expect("the double has it")(text.as_ptr());
        }
        Self { library: Box::leak(Box::new(library)), log }
    }

    /// Whether a look-up finds an entry point.
    pub(crate) fn has(&self, name: &str) -> bool {
        // SAFETY: it isn't called.
        unsafe { self.library.get::<unsafe extern "C" fn()>(name) }.is_ok()
    }

    /// What was done wrong since the last question.
    pub(crate) fn misuses(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let _ = fs::remove_file(&self.log);
        text
    }

    /// The name of a code.
    pub(crate) fn name(&self, code: i32) -> String {
        // SAFETY: the entry point has this type and gives constants that end in a zero.
        unsafe {
            let entry = self.library.get::<unsafe extern "C" fn(i32) -> *const c_char>("hipGetErrorName");
            CStr::from_ptr(entry.expect("the double has it")(code)).to_string_lossy().into_owned()
        }
    }

    /// Compiles: the code and the log.
    pub(crate) fn compiled(&self, source: &str, options: &[&str]) -> (i32, Vec<u8>, String) {
        let text = |text: &str| CString::new(text).expect("no zeroes");
        let (source, options) = (text(source), options.iter().map(|option| text(option)).collect::<Vec<_>>());
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let (mut program, mut size, mut code_size) = (0, 0, 0);
        let made = self.hiprtcCreateProgram(&mut program, source.as_ptr(), ptr::null(), 0, ptr::null(), ptr::null());
        assert_eq!(made, 0);
        let code = self.hiprtcCompileProgram(program, i32::try_from(options.len()).expect("few"), options.as_ptr());
        assert_eq!(self.hiprtcGetProgramLogSize(program, &mut size), 0);
        let mut log = vec![0_u8; size];
        assert_eq!(self.hiprtcGetProgramLog(program, log.as_mut_ptr().cast()), 0);
        assert_eq!(self.hiprtcGetCodeSize(program, &mut code_size), 0);
        let mut image = vec![0_u8; code_size];
        if code == 0 {
            assert_eq!(self.hiprtcGetCode(program, image.as_mut_ptr().cast()), 0);
        }
        assert_eq!(self.hiprtcDestroyProgram(&mut program), 0);
        assert_eq!(program, 0);
        (code, image, String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned())
    }

    /// A kernel of a source, on the device of this thread.
    pub(crate) fn kernel(&self, source: &str, name: &str) -> u64 {
        let (code, image, log) = self.compiled(source, &[]);
        assert_eq!(code, 0, "{log}");
        let (mut module, mut function) = (0, 0);
        assert_eq!(self.hipModuleLoadData(&mut module, image.as_ptr().cast()), 0);
        let name = CString::new(name).expect("no zeroes");
        assert_eq!(self.hipModuleGetFunction(&mut function, module, name.as_ptr()), 0);
        function
    }

    /// Enqueues a kernel whose arguments are these words.
    pub(crate) fn launch(&self, function: u64, grid: [u32; 3], block: [u32; 3], stream: u64, arguments: &[u64]) -> i32 {
        let mut words = arguments.to_vec();
        let mut places: Vec<*mut c_void> = words.iter_mut().map(|word| ptr::from_mut(word).cast()).collect();
        let ([x, y, z], [bx, by, bz], extra) = (grid, block, ptr::null_mut());
        self.hipModuleLaunchKernel(function, x, y, z, bx, by, bz, 0, stream, places.as_mut_ptr(), extra)
    }

    pub(crate) fn alloc(&self, bytes: usize) -> u64 {
        let mut address = 0;
        assert_eq!(self.hipMalloc(&mut address, bytes), 0);
        address
    }

    pub(crate) fn stream(&self) -> u64 {
        let mut stream = 0;
        assert_eq!(self.hipStreamCreateWithFlags(&mut stream, 1), 0);
        stream
    }

    pub(crate) fn event(&self) -> u64 {
        let mut event = 0;
        assert_eq!(self.hipEventCreateWithFlags(&mut event, 0), 0);
        event
    }

    /// Memory of the current device with these values.
    pub(crate) fn upload(&self, values: &[f64]) -> u64 {
        let address = self.alloc(size_of_val(values));
        assert_eq!(self.hipMemcpy(address, values.as_ptr() as u64, size_of_val(values), 1), 0);
        address
    }

    /// The values that are there.
    pub(crate) fn download(&self, address: u64, count: usize) -> Vec<f64> {
        let mut values = vec![0.0; count];
        assert_eq!(self.hipMemcpy(values.as_mut_ptr() as u64, address, size_of_val(&values[..]), 2), 0);
        values
    }
}
