//! Modules: code that is loaded, and the kernels in it.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polyhalo_double_engine::{Failure, Kind, Outcome};
use polyhalo_double_ptx::{Kernel, Module};

use crate::devices::BLOCK_THREADS;
use crate::entry::{In, Out, Text};
use crate::{Double, codes};

/// A kernel that can be launched.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) device: usize,
    module: Arc<Module>,
    pub(crate) name: String,
    /// The module's handle.
    of: u64,
}

impl Function {
    /// Its code.
    pub(crate) fn kernel(&self) -> &Kernel {
        self.module.kernel(&self.name).expect("a function is a kernel of its module")
    }

    /// Threads of a block at most.
    pub(crate) fn block_threads(&self) -> u64 {
        self.kernel().most_threads.unwrap_or(u64::MAX).min(u64::from(BLOCK_THREADS))
    }
}

struct Loaded {
    device: usize,
    module: Arc<Module>,
}

/// What is loaded.
struct Images {
    last: u64,
    modules: BTreeMap<u64, Loaded>,
    functions: BTreeMap<u64, Function>,
}

static IMAGES: Mutex<Images> = Mutex::new(Images { last: 0, modules: BTreeMap::new(), functions: BTreeMap::new() });

fn images() -> MutexGuard<'static, Images> {
    IMAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Images {
    fn handle(&mut self, kind: u64) -> u64 {
        self.last += 1;
        0x5EED_1000_0000_0000 | kind << 40 | self.last << 4
    }

    fn module(&self, module: u64, device: usize) -> Outcome<&Loaded> {
        let found =
            self.modules.get(&module).ok_or_else(|| invalid(format!("{module:#x} is no module that is loaded")))?;
        match found.device == device {
            true => Ok(found),
            false => Err(invalid(format!("a module of device {} is used for device {device}", found.device))),
        }
    }
}

fn invalid(message: String) -> Failure {
    Failure::misuse(Kind::InvalidHandle, message)
}

/// The kernel with a handle.
pub(crate) fn function(function: u64) -> Outcome<Function> {
    let found = images().functions.get(&function).cloned();
    found.ok_or_else(|| invalid(format!("{function:#x} is no kernel of a module that is loaded")))
}

/// Forgets what was loaded on a device.
pub(crate) fn forget(device: usize) {
    let mut images = images();
    images.modules.retain(|_, loaded| loaded.device != device);
    images.functions.retain(|_, function| function.device != device);
}

/// Where the caller wants to read what the driver's compiler says.
#[derive(Default)]
struct Logs {
    errors: Option<(Out<std::ffi::c_char>, usize)>,
}

/// Options of a load: the buffers for what the compiler says, and their sizes.
fn logs(count: c_uint, options: In<c_int>, values: In<*mut c_void>) -> Outcome<Logs> {
    let (mut buffers, mut rooms) = ([None; 2], [0; 2]);
    for index in 0..count as usize {
        let value = values.get(index)?;
        match options.get(index)? {
            3 => buffers[0] = Some(value),
            4 => rooms[0] = value.addr() as u32 as usize,
            5 => buffers[1] = Some(value),
            6 => rooms[1] = value.addr() as u32 as usize,
            _ => {}
        }
    }
    let text = |which: usize| buffers[which].filter(|_| rooms[which] > 0).map(|at| (Out::at(at), rooms[which]));
    for (buffer, room) in [text(0), text(1)].into_iter().flatten() {
        buffer.set_text("", room)?;
    }
    Ok(Logs { errors: text(1) })
}

fn load(double: &Double, device: usize, image: *const c_void, logs: &Logs) -> Outcome<u64> {
    let refused = |code: c_int, message: String| {
        if let Some((buffer, room)) = logs.errors {
            buffer.set_text(&message, room)?;
        }
        Err(Failure::new(Kind::Code(code), message))
    };
    let bytes = Text::at(image).get()?.to_bytes();
    if bytes.starts_with(b"\x7fELF") || bytes.starts_with(&[0x50, 0xED, 0x55, 0xBA]) {
        return refused(codes::NO_BINARY_FOR_GPU, "a cubin is for real devices".into());
    }
    let Ok(text) = str::from_utf8(bytes) else {
        return refused(codes::INVALID_IMAGE, "neither PTX nor a cubin".into());
    };
    let (Some(version), Some(target)) = (directive(text, ".version"), directive(text, ".target")) else {
        return refused(codes::INVALID_PTX, "the PTX doesn't begin with its .version and .target".into());
    };
    let (Some(version), Some(target)) = (pair(version), target_of(target)) else {
        return refused(codes::INVALID_PTX, format!("unknown .version {version} or .target {target}"));
    };
    let newest = ptx_of(double.driver);
    if version > newest {
        let message =
            format!("PTX {}.{}, but this driver takes {}.{} at most", version.0, version.1, newest.0, newest.1);
        return refused(codes::UNSUPPORTED_PTX_VERSION, message);
    }
    let fits =
        if target.is_exact { target.capability == double.capability } else { target.capability <= double.capability };
    if !fits {
        let (wanted, own) = (target.capability, double.capability);
        let message = format!("PTX for sm_{}{}, but this device is sm_{}{}", wanted.0, wanted.1, own.0, own.1);
        return refused(codes::NO_BINARY_FOR_GPU, message);
    }
    let module = match Module::parse(text) {
        Ok(module) => Arc::new(module),
        Err(message) => {
            // That this PTX can't be run may also be for want of an opcode here: nobody must overlook it.
            eprintln!("CUDA double: cuModuleLoadDataEx: {message}");
            return refused(codes::INVALID_PTX, message);
        }
    };
    let mut images = images();
    let handle = images.handle(1);
    images.modules.insert(handle, Loaded { device, module });
    Ok(handle)
}

/// What follows a directive at the head of PTX.
fn directive<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(name))?;
    line.split(|c: char| c.is_whitespace() || c == ',').find(|word| !word.is_empty())
}

fn pair(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

struct Target {
    capability: (u32, u32),
    /// Whether no other architecture will do.
    is_exact: bool,
}

fn target_of(target: &str) -> Option<Target> {
    let number = target.strip_prefix("sm_")?;
    let is_exact = number.ends_with('a');
    let number: u32 = number.trim_end_matches(['a', 'f']).parse().ok()?;
    Some(Target { capability: (number / 10, number % 10), is_exact })
}

/// The newest PTX that a driver takes.
fn ptx_of((major, minor): (u32, u32)) -> (u32, u32) {
    match (major, minor) {
        (..=9, _) => (6, minor),
        (10, _) => (6, minor + 3),
        (11, _) => (7, minor),
        (12, 0..=5) => (8, minor),
        (12, 6) => (8, 5),
        (12, _) => (8, minor - 1),
        _ => (major - 4, minor),
    }
}

fn attribute(function: &Function, number: c_int) -> Option<c_int> {
    let kernel = function.kernel();
    Some(match number {
        0 => function.block_threads() as c_int,
        // Shared, constant and local memory: an interpreter needs none but what the kernel's parameters take.
        1 | 3 => 0,
        2 => kernel.param_bytes() as c_int,
        // Registers, and the versions of the code.
        4 => 32,
        5 | 6 => 70,
        7 => 0,
        8 => 0,
        _ => return None,
    })
}

entries! {
    fn cuModuleLoadData(module: Out<u64>, image: *const c_void) current |double, device| {
        module.set(load(double, device, image, &Logs::default())?)
    };
    fn cuModuleLoadDataEx(
        module: Out<u64>, image: *const c_void, count: c_uint, options: In<c_int>, values: In<*mut c_void>,
    ) current |double, device| module.set(load(double, device, image, &logs(count, options, values)?)?);
    fn cuModuleUnload(module: u64) current |_, device| {
        let mut images = images();
        images.module(module, device)?;
        images.modules.remove(&module);
        images.functions.retain(|_, function| function.of != module);
        Ok(())
    };
    fn cuModuleGetFunction(found: Out<u64>, module: u64, name: Text) current |_, device| {
        let name = name.get()?.to_string_lossy().into_owned();
        let mut images = images();
        let loaded = Arc::clone(&images.module(module, device)?.module);
        if loaded.kernel(&name).is_none() {
            return Err(Failure::new(Kind::Code(codes::NOT_FOUND), format!("the module has no kernel `{name}`")));
        }
        let handle = images.handle(2);
        images.functions.insert(handle, Function { device, module: loaded, name, of: module });
        found.set(handle)
    };
    fn cuFuncGetAttribute(value: Out<c_int>, number: c_int, handle: u64) current |_, _| {
        let found = attribute(&function(handle)?, number);
        value.set(found.ok_or_else(|| Failure::misuse(Kind::InvalidValue, format!("an unknown attribute, {number}")))?)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_knows_which_ptx_each_driver_takes() {
        let check = |driver, ptx| assert_eq!(ptx_of(driver), ptx, "{driver:?}");
        check((9, 0), (6, 0));
        check((10, 1), (6, 4));
        check((11, 8), (7, 8));
        check((12, 4), (8, 4));
        check((12, 6), (8, 5));
        check((12, 8), (8, 7));
        check((12, 9), (8, 8));
        check((13, 5), (9, 5));
    }

    #[test]
    fn a_double_reads_the_head_of_ptx() {
        let text = "//\n// Made by hand\n.version 8.4\n.target sm_90a, debug\n.address_size 64\n";
        assert_eq!(directive(text, ".version").and_then(pair), Some((8, 4)));
        let target = directive(text, ".target").and_then(target_of).expect("there is one");
        assert_eq!((target.capability, target.is_exact), ((9, 0), true));
        assert_eq!(target_of("sm_103").map(|target| target.capability), Some((10, 3)));
        assert!(target_of("compute_70").is_none() && directive("", ".target").is_none());
    }
}
