//! The program once more, as a compiler: how it is started, and what it does before `main`.
//!
//! A function that the loader runs before `main` sees the variable, answers the request in the file that it names, and ends
//! the process. So no part of the user's program runs, and no other program need be installed.

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use polyhalo_codegen::offline::private::Folder;
use polyhalo_codegen::offline::{Outcome, processes};

use super::library::Library;
use super::message::{self, Request, Work};

/// The variable that makes a compiler of the program: it names the file of the request.
const VARIABLE: &CStr = c"POLYHALO_COMPILE_HIP";

/// Beside the request: what the child answers, which appears whole.
const REQUEST: &str = "request";
const ANSWER: &str = "answer";

/// What of the environment reaches the child: where libraries and their parts are, and what tests set. Whatever else the
/// program was started with, a launcher's variables for example, is for the program.
const KEPT: [&str; 3] = ["PATH", "HOME", "LD_LIBRARY_PATH"];
const KEPT_STARTS: [&str; 4] = ["ROCM_", "HIP_", "AMD_COMGR_", "POLYHALO_"];

/// How long a child may take: well under a second on an idle machine, but ROCm's libraries are large, and disks may be slow.
const LIMIT: Duration = Duration::from_secs(300);

/// How a child is started.
pub(super) struct Child {
    /// The program, which has the function that answers.
    pub(super) program: PathBuf,
    /// How long it may take.
    pub(super) limit: Duration,
}

impl Default for Child {
    fn default() -> Self {
        // This is the file that runs even where another one has taken its place, as after a new build.
        Self { program: "/proc/self/exe".into(), limit: LIMIT }
    }
}

impl Child {
    /// Has a child answer.
    pub(super) fn ask(&self, request: &Request) -> Outcome<Vec<u8>> {
        if !is_in_the_program() {
            return Outcome::Absent(
                "hiprtc needs a process of its own, which only a program can start that polyhalo is linked into, and here \
                 it is in a library that another program has loaded"
                    .into(),
            );
        }
        self.answer(request).unwrap_or_else(Outcome::Absent)
    }

    fn answer(&self, request: &Request) -> Result<Outcome<Vec<u8>>, String> {
        let folder = Folder::new()?;
        folder.write(REQUEST, &request.bytes())?;
        let mut command = Command::new(&self.program);
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
        command.env(OsStr::from_bytes(VARIABLE.to_bytes()), folder.path().join(REQUEST));
        command.current_dir(folder.path()).env("TMPDIR", folder.path());
        let done = processes::run(command, b"", self.limit)
            .map_err(|reason| format!("hiprtc gave no answer in a process of its own: {reason}"))?;
        if let Ok(bytes) = folder.read(ANSWER) {
            return message::outcome(&bytes).ok_or_else(|| "the answer of hiprtc is damaged".into());
        }
        let log = done.log();
        let log = if log.is_empty() { String::new() } else { format!(": {log}") };
        Err(match done.crashed() {
            true => format!("hiprtc crashed ({}){log}", done.status),
            false => format!("the process of hiprtc gave no answer ({}){log}", done.status),
        })
    }
}

pub(super) fn is_kept(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    KEPT.contains(&&*name) || KEPT_STARTS.iter().any(|start| name.starts_with(start))
}

/// Whether the function that answers is in the program itself, so that the program started again runs it. In a library that
/// a program has loaded (a module of Python, say) it isn't, and that program must not be started for no reason.
fn is_in_the_program() -> bool {
    // SAFETY: it only asks; an unknown entry is answered by 0.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) } as *const c_void;
    let here = start_of_object(answer_if_asked as extern "C" fn() as *const c_void);
    here.is_some() && here == start_of_object(program)
}

/// Where the program or library that holds `address` begins.
fn start_of_object(address: *const c_void) -> Option<*mut c_void> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is room for what the call writes, and any address may be asked for.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: all zeroes is a valid value of it, should the call have written nothing.
    (found != 0).then(|| unsafe { info.assume_init() }.dli_fbase)
}

// The loader calls what stands in this section before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = answer_if_asked;

/// Answers the request that the environment names, and ends the process; returns at once without one.
extern "C" fn answer_if_asked() {
    // SAFETY: before `main` there are no other threads that could change the environment. In a library that is loaded later
    // the program may have some; loading libraries while changing the environment is its own mistake.
    let named = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if named.is_null() {
        return;
    }
    // SAFETY: `getenv` gives a string that ends in NUL, valid while nobody changes the environment.
    let request = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(named) }.to_bytes())).to_owned();
    let leave_no_dump = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives here; a refusal does no harm.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &leave_no_dump) };
    // A panic has printed its message, which the program that waits will tell.
    let answered = catch_unwind(|| serve(&request)).is_ok_and(|served| served.is_ok());
    // SAFETY: ends the process without running what a library has registered for its end, as that may crash too.
    unsafe { libc::_exit(if answered { 0 } else { 1 }) }
}

fn serve(file: &Path) -> std::io::Result<()> {
    let request = Request::read(&std::fs::read(file)?);
    let outcome = match request {
        Some(request) => work(&request),
        None => Outcome::Absent("the request to hiprtc is damaged".into()),
    };
    let (written, answer) = (file.with_file_name("unfinished"), file.with_file_name(ANSWER));
    std::fs::write(&written, message::answer(&outcome))?;
    std::fs::rename(&written, &answer)
}

fn work(request: &Request) -> Outcome<Vec<u8>> {
    let library = match Library::first(&request.libraries) {
        Ok(library) => library,
        Err(reason) => return Outcome::Absent(reason),
    };
    match &request.work {
        Work::Identify => match library.identity() {
            Ok(hiprtc) => Outcome::Built(message::introduction(&hiprtc)),
            Err(reason) => Outcome::Absent(reason),
        },
        Work::Compile { source, name, options } => library.compile(source, name, options),
    }
}
