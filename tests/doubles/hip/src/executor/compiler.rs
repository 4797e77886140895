//! Makes a shared object of HIP source with g++, once for each text: what was made is kept on disk.
//!
//! `POLYHALO_DOUBLE_CXX` names another compiler and `POLYHALO_DOUBLE_CACHE` the folder.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

use super::signature::{Signature, signatures};

/// What clang has and g++ has not.
const PRELUDE: &str = include_str!("prelude.hpp");

/// How g++ is called.
///
/// - Nothing is fused, even in kernels that allow it: the bits are those of the reference.
/// - A double's memory has no types, which g++ is not to guess.
/// - Nothing is known of functions called like the C library's, which may be kernels; errors are not reported in `errno`.
/// - What C++ leaves undefined is reported by the checks of `-fsanitize`, so that it isn't given a meaning by `-fwrapv`: a
///   GPU's compiler would not give it one either. Their library isn't linked, as the prelude has what they call.
const FLAGS: [&str; 16] = [
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-shared",
    "-w",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-builtin",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fvisibility=hidden",
    "-fsanitize=signed-integer-overflow,shift,bounds,integer-divide-by-zero,float-cast-overflow",
    "-nodefaultlibs",
];

/// Why there is no object, in the compiler's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What the compiler said.
    pub log: String,
}

/// The folder of what was compiled.
pub fn cache() -> PathBuf {
    if let Some(folder) = env::var_os("POLYHALO_DOUBLE_CACHE").filter(|folder| !folder.is_empty()) {
        return folder.into();
    }
    // SAFETY: it has no conditions and can't fail.
    let user = unsafe { libc::geteuid() };
    env::temp_dir().join(format!("polyhalo-double-{user}"))
}

/// The object of a source for an architecture: a shared object of the machine that this runs on.
///
/// # Errors
/// When the source is refused or there is no compiler.
pub fn compile(source: &str, architecture: &str) -> Result<Vec<u8>, Refused> {
    let refused = |log: String| Refused { log };
    let functions = signatures(source).map_err(|reason| refused(format!("error: {reason}\n")))?;
    let text = program(source, architecture, &functions);
    let path = cache().join(format!("{}.so", key(&text)?));
    if let Ok(object) = fs::read(&path) {
        return Ok(object);
    }
    let made = build(&text, &path)?;
    fs::read(&made).map_err(|error| refused(format!("error: {}: {error}\n", made.display())))
}

/// The name of the compiler.
fn compiler() -> String {
    env::var("POLYHALO_DOUBLE_CXX").unwrap_or_else(|_| "g++".into())
}

/// What the object depends on, as a number in hexadecimal digits.
fn key(text: &str) -> Result<String, Refused> {
    static VERSION: OnceLock<Result<String, Refused>> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let output = Command::new(compiler()).args(["-dumpfullversion", "-dumpmachine"]).output();
        let output = output.map_err(|error| absent(&error))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    });
    let of = (version.as_ref().map_err(Clone::clone)?, compiler(), FLAGS, text);
    let half = |number: u8| {
        let mut hasher = DefaultHasher::new();
        (number, &of).hash(&mut hasher);
        hasher.finish()
    };
    Ok(format!("{:016x}{:016x}", half(0), half(1)))
}

fn absent(error: &io::Error) -> Refused {
    Refused { log: format!("error: the double compiles with `{}`, which can't be run: {error}\n", compiler()) }
}

/// A name of a file in the cache that nobody else has: neither another process nor another copy of this library in this one.
pub(super) fn own_file(end: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let (number, copy) = (NUMBER.fetch_add(1, Ordering::Relaxed), std::ptr::from_ref(&NUMBER).addr());
    cache().join(format!("own-{}-{copy:x}-{number}{end}", process::id()))
}

/// Compiles a text to `path`; another process may do the same at the same time.
fn build(text: &str, path: &Path) -> Result<PathBuf, Refused> {
    let failed = |error: io::Error| Refused { log: format!("error: {}: {error}\n", path.display()) };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let [source, object] = [".cpp", ".so"].map(own_file);
    fs::write(&source, text).map_err(failed)?;
    let mut command = Command::new(compiler());
    command.args(FLAGS).arg(&source).arg("-o").arg(&object).args(["-lm", "-lc", "-lgcc"]).stdin(Stdio::null());
    let output = command.output().map_err(|error| absent(&error));
    let _ = fs::remove_file(&source);
    let output = output?;
    if !output.status.success() {
        let _ = fs::remove_file(&object);
        let log = String::from_utf8_lossy(&output.stderr);
        return Err(Refused { log: log.replace(&*source.to_string_lossy(), "prelude.hpp") });
    }
    fs::rename(&object, path).map_err(failed)?;
    Ok(path.to_owned())
}

/// The text that g++ gets: the prelude, the source with checked pointers, and an entry for each kernel.
fn program(source: &str, architecture: &str, functions: &[Signature]) -> String {
    let mut text = format!("{PRELUDE}\n#line 1 \"kernel.hip\"\n");
    let mut at = 0;
    for argument in functions.iter().flat_map(|function| &function.arguments).filter(|argument| argument.is_pointer) {
        text.push_str(&source[at..argument.place.start]);
        // As many lines as before, so that messages name the right ones.
        let lines = source[argument.place.clone()].matches('\n').count();
        let _ = write!(text, "{}{} {}", "\n".repeat(lines), checked(&argument.ty, "&"), argument.name);
        at = argument.place.end;
    }
    text.push_str(&source[at..]);
    text.push_str("\n#line 1 \"entries\"\n");
    let mut table = String::new();
    for (number, kernel) in functions.iter().filter(|function| function.is_kernel).enumerate() {
        entry(&mut text, number, kernel);
        let _ = writeln!(
            table,
            "    {{\"{}\", polyhalo_double_run_{number}, polyhalo_double_arguments_{number}, {}, {}}},",
            kernel.name,
            kernel.arguments.len(),
            kernel.block_threads.unwrap_or(1024),
        );
    }
    let shown = "extern \"C\" __attribute__((visibility(\"default\")))";
    // Nothing but an architecture's characters gets into the program.
    let architecture: String =
        architecture.chars().filter(|c| c.is_ascii_alphanumeric() || ":+-".contains(*c)).collect();
    let _ = write!(
        text,
        "{shown} const char polyhalo_double_architecture[] = \"{architecture}\";\n\
         {shown} const polyhalo_double::Entry polyhalo_double_kernels[] = {{\n{table}    {{}}\n}};\n"
    );
    text
}

/// What runs all threads of a launch.
fn entry(text: &mut String, number: usize, kernel: &Signature) {
    let described = kernel.arguments.iter().map(|argument| match argument.is_pointer {
        false => format!("{{sizeof({}), 0}}, ", argument.ty),
        true => format!("{{8, polyhalo_double::is_const<{}>::value ? 1 : 2}}, ", argument.ty),
    });
    let declared = kernel.arguments.iter().enumerate().map(|(at, argument)| match argument.is_pointer {
        false => format!(
            "    const {} polyhalo_double_{at} = *({0} *)polyhalo_double_values[{at}];\n",
            unqualified(&argument.ty)
        ),
        true => {
            let ty = &argument.ty;
            format!("    {}polyhalo_double_{at}(*({ty} **)polyhalo_double_values[{at}], false);\n", checked(ty, ""))
        }
    });
    let passed: Vec<String> = (0..kernel.arguments.len()).map(|at| format!("polyhalo_double_{at}")).collect();
    let _ = write!(
        text,
        "static const polyhalo_double::Argument polyhalo_double_arguments_{number}[] = {{{}{{}}}};\n\
         static void polyhalo_double_run_{number}(polyhalo_double::Launch *polyhalo_double_launch, void **polyhalo_double_values)\n\
         {{\n{}    POLYHALO_DOUBLE_THREADS(polyhalo_double_launch) ::{}({});\n}}\n",
        described.collect::<String>(),
        declared.collect::<String>(),
        kernel.name,
        passed.join(", "),
    );
}

fn checked(ty: &str, reference: &str) -> String {
    format!("const polyhalo_double::Checked<{ty}> {reference}")
}

fn unqualified(ty: &str) -> &str {
    ty.strip_prefix("const ").unwrap_or(ty)
}
