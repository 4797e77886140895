//! A stand-in for AMD's driver library, for tests on machines without a GPU: it runs HIP source, compiled by g++, on the CPU.
//!
//! As a shared library it has the driver's entry points, which `driver` lists. As a crate it is what runs the source, and says
//! where the shared library is.

mod driver;
pub mod executor;

use std::env;
use std::path::{Path, PathBuf};

/// The shared library, which Cargo builds with every test, example or program of a package that depends on this one.
///
/// # Errors
/// When it is not where Cargo puts it; the error says where that is.
pub fn library() -> Result<PathBuf, String> {
    const NAME: &str = "libpolyhalo_double_hip.so";
    let program = env::current_exe().map_err(|error| format!("a program that doesn't know where it is: {error}"))?;
    // A test lies in `deps` itself, a program beside it, an example in a folder beside it.
    let folders = program.ancestors().skip(1).take(2).flat_map(|folder| [folder.to_owned(), folder.join("deps")]);
    let files: Vec<PathBuf> = folders.map(|folder| folder.join(NAME)).collect();
    let found = files.iter().find(|file| Path::exists(file)).cloned();
    found.ok_or_else(|| format!("the double of HIP is in none of {files:?}"))
}
