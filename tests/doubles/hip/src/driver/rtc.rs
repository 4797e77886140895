//! The run-time compiler. As AMD's does, it kills the process when it is asked for an architecture that it doesn't know.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{VARIABLES, architecture, machine};
use crate::executor;

const SUCCESS: i32 = 0;
const INVALID_INPUT: i32 = 3;
const INVALID_PROGRAM: i32 = 4;
const INVALID_OPTION: i32 = 5;
const COMPILATION: i32 = 6;
const INTERNAL: i32 = 11;

/// Codes with their names.
const NAMES: [(i32, &CStr); 12] = [
    (0, c"HIPRTC_SUCCESS"),
    (1, c"HIPRTC_ERROR_OUT_OF_MEMORY"),
    (2, c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE"),
    (3, c"HIPRTC_ERROR_INVALID_INPUT"),
    (4, c"HIPRTC_ERROR_INVALID_PROGRAM"),
    (5, c"HIPRTC_ERROR_INVALID_OPTION"),
    (6, c"HIPRTC_ERROR_COMPILATION"),
    (7, c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE"),
    (8, c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"),
    (9, c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"),
    (10, c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID"),
    (11, c"HIPRTC_ERROR_INTERNAL_ERROR"),
];

/// What a program is made of, and into.
#[derive(Default)]
struct Program {
    source: String,
    log: String,
    code: Option<Vec<u8>>,
}

/// All programs, by their handles.
#[derive(Default)]
struct Programs {
    last: usize,
    live: BTreeMap<usize, Program>,
}

static PROGRAMS: Mutex<Option<Programs>> = Mutex::new(None);

fn programs() -> MutexGuard<'static, Option<Programs>> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a call and does it unless a test wants it to fail.
fn call(name: &'static str, action: impl FnOnce() -> Result<(), i32>) -> i32 {
    match machine().enter(name, None) {
        Ok(()) => action().err().unwrap_or(SUCCESS),
        Err(failure) => match failure.kind {
            polyhalo_double_engine::Kind::Code(code) => code,
            _ => INTERNAL,
        },
    }
}

/// Does something with a program.
fn with<T>(handle: *mut c_void, action: impl FnOnce(&mut Program) -> Result<T, i32>) -> Result<T, i32> {
    let mut programs = programs();
    let program = programs.as_mut().and_then(|programs| programs.live.get_mut(&(handle as usize)));
    match program {
        Some(program) => action(program),
        None => Err(misuse(INVALID_PROGRAM, "there is no such program")),
    }
}

fn misuse(code: i32, message: &str) -> i32 {
    machine().misuse(polyhalo_double_engine::Kind::Code(code), format!("hiprtc: {message}"));
    code
}

/// A place for a result, unless it is a null pointer.
///
/// # Safety
/// The place is null or can be written.
unsafe fn give<T>(place: *mut T, value: T) -> Result<(), i32> {
    if place.is_null() {
        return Err(misuse(INVALID_INPUT, "the place for a result is a null pointer"));
    }
    // SAFETY: it isn't null; the rest is the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// The name of a code.
#[unsafe(no_mangle)]
extern "C" fn hiprtcGetErrorString(code: i32) -> *const c_char {
    let known = NAMES.iter().find(|(known, _)| *known == code);
    known.map_or(c"Invalid HIPRTC error code", |(_, name)| name).as_ptr()
}

/// The version of the compiler.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> i32 {
    // SAFETY: the caller gives places.
    call("hiprtcVersion", || unsafe {
        give(major, 9)?;
        give(minor, 0)
    })
}

/// A program with a source.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcCreateProgram(
    place: *mut *mut c_void,
    source: *const c_char,
    _name: *const c_char,
    headers: c_int,
    _header_texts: *const *const c_char,
    _header_names: *const *const c_char,
) -> i32 {
    call("hiprtcCreateProgram", || {
        if source.is_null() || headers != 0 {
            return Err(misuse(INVALID_INPUT, "a program has a source and, here, no headers"));
        }
        // SAFETY: it isn't null, and the caller's text ends in a zero.
        let source = unsafe { CStr::from_ptr(source) }.to_string_lossy().into_owned();
        let mut programs = programs();
        let programs = programs.get_or_insert_default();
        programs.last += 16;
        let handle = 0x5EED_7000_0000_0000 + programs.last;
        programs.live.insert(handle, Program { source, ..Program::default() });
        // SAFETY: the caller gives a place.
        unsafe { give(place, handle as *mut c_void) }
    })
}

/// Compiles a program.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcCompileProgram(handle: *mut c_void, count: c_int, options: *const *const c_char) -> i32 {
    call("hiprtcCompileProgram", || {
        let count = usize::try_from(count).map_err(|_| misuse(INVALID_INPUT, "a negative number of options"))?;
        // SAFETY: the caller gives so many texts, which end in zeroes.
        let options = (0..count).map(|at| unsafe { CStr::from_ptr(*options.add(at)) }.to_string_lossy().into_owned());
        compile(handle, &options.collect::<Vec<_>>())
    })
}

fn compile(handle: *mut c_void, options: &[String]) -> Result<(), i32> {
    match VARIABLES.get("POLYHALO_DOUBLE_HIPRTC").as_deref() {
        None | Some("") => {}
        Some("abort") => std::process::abort(),
        Some("hang") => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        Some("fail") => {
            return with(handle, |program| {
                program.log = "error: the test wants it to fail\n".into();
                Err(COMPILATION)
            });
        }
        Some(other) => {
            eprintln!("HIP double: POLYHALO_DOUBLE_HIPRTC: {other}: expected abort, hang or fail");
            std::process::abort();
        }
    }
    let own = machine().devices() > 0;
    let given = options
        .iter()
        .find_map(|option| option.strip_prefix("--offload-arch=").or(option.strip_prefix("--gpu-architecture=")));
    let Some(wanted) = given.or(own.then_some(architecture())) else {
        // As AMD's: no architecture and no device.
        return Err(COMPILATION);
    };
    if processor(wanted) != processor(architecture()) {
        eprintln!("HIP double: hiprtc doesn't know {wanted}, and ends the process as AMD's does");
        std::process::abort();
    }
    if let Some(unknown) = options.iter().find(|option| !is_known(option)) {
        let message = format!("error: unknown argument: '{unknown}'\n");
        return with(handle, |program| {
            program.log = message;
            Err(INVALID_OPTION)
        });
    }
    let source = with(handle, |program| Ok(program.source.clone()))?;
    // Others may compile meanwhile.
    let compiled = executor::compile(&source, wanted);
    with(handle, |program| match compiled {
        Ok(code) => {
            program.code = Some(code);
            Ok(())
        }
        Err(refused) => {
            program.log = refused.log;
            Err(COMPILATION)
        }
    })
}

/// `gfx90a` of `gfx90a:sramecc+:xnack-`.
fn processor(architecture: &str) -> &str {
    architecture.split(':').next().unwrap_or_default()
}

/// Whether clang knows an option. Those that choose how floats are computed make no difference: the double fuses nothing.
fn is_known(option: &str) -> bool {
    let beginnings =
        ["--offload-arch=", "--gpu-architecture=", "-O", "-f", "-m", "-D", "-W", "-std=", "--std=", "-g", "-w"];
    beginnings.iter().any(|known| option.starts_with(known))
}

/// Bytes of the code.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcGetCodeSize(handle: *mut c_void, place: *mut usize) -> i32 {
    call("hiprtcGetCodeSize", || {
        let size = with(handle, |program| Ok(program.code.as_ref().map_or(0, Vec::len)))?;
        // SAFETY: the caller gives a place.
        unsafe { give(place, size) }
    })
}

/// The code.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcGetCode(handle: *mut c_void, place: *mut c_char) -> i32 {
    call("hiprtcGetCode", || {
        let code = with(handle, |program| program.code.clone().ok_or(INVALID_PROGRAM))?;
        if place.is_null() {
            return Err(misuse(INVALID_INPUT, "no place for the code"));
        }
        // SAFETY: the caller gives a place of the size that it was told.
        unsafe { place.copy_from_nonoverlapping(code.as_ptr().cast(), code.len()) };
        Ok(())
    })
}

/// Bytes of the log, its end included.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcGetProgramLogSize(handle: *mut c_void, place: *mut usize) -> i32 {
    call("hiprtcGetProgramLogSize", || {
        let size = with(handle, |program| Ok(if program.log.is_empty() { 0 } else { program.log.len() + 1 }))?;
        // SAFETY: the caller gives a place.
        unsafe { give(place, size) }
    })
}

/// The log.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcGetProgramLog(handle: *mut c_void, place: *mut c_char) -> i32 {
    call("hiprtcGetProgramLog", || {
        let log = with(handle, |program| Ok(program.log.clone()))?;
        if place.is_null() {
            return Err(misuse(INVALID_INPUT, "no place for the log"));
        }
        if !log.is_empty() {
            // SAFETY: the caller gives a place of the size that it was told.
            unsafe {
                place.copy_from_nonoverlapping(log.as_ptr().cast(), log.len());
                place.add(log.len()).write(0);
            }
        }
        Ok(())
    })
}

/// Gives a program back.
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcDestroyProgram(place: *mut *mut c_void) -> i32 {
    call("hiprtcDestroyProgram", || {
        if place.is_null() {
            return Err(misuse(INVALID_INPUT, "no program"));
        }
        // SAFETY: it isn't null, and the caller's to read and write.
        let handle = unsafe { place.replace(std::ptr::null_mut()) };
        let mut programs = programs();
        let gone = programs.as_mut().and_then(|programs| programs.live.remove(&(handle as usize)));
        gone.map(drop).ok_or_else(|| misuse(INVALID_PROGRAM, "there is no such program"))
    })
}
