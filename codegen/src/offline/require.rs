//! For tests that need a tool: skip loudly without it, or fail where `POLYHALO_REQUIRE` says that it must be there.
//!
//! `POLYHALO_REQUIRE` is a comma list of tools (`nvrtc`, `ptxas`, `nvdisasm`, `clang`, `ocloc`, `spirv-val`, `spirv-dis`,
//! ...) or `all`.

use std::io::Write;

use super::Outcome;

/// The tool, or `None` after saying on standard error that the test is skipped and why.
///
/// # Panics
/// When the tool is missing and `POLYHALO_REQUIRE` names it.
pub fn available<T>(tool: &str, found: Result<T, String>) -> Option<T> {
    let list = std::env::var("POLYHALO_REQUIRE").unwrap_or_default();
    match found {
        Ok(tool) => Some(tool),
        Err(reason) if requires(&list, tool) => {
            panic!("POLYHALO_REQUIRE asks for {tool}, but {reason}")
        }
        Err(reason) => {
            say_skipped(&format!("{tool} is missing: {reason}"));
            None
        }
    }
}

/// What a tool that is there built.
///
/// # Panics
/// When it built nothing: with the reason or the tool's log.
pub fn built<T>(what: &str, outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Built(product) => product,
        Outcome::Absent(reason) => panic!("{what} could not be built: {reason}"),
        Outcome::Rejected(log) => panic!("{what} was rejected:\n{log}"),
    }
}

/// Says on standard error that a test is skipped and why; the test harness, which hides what tests print, does not see it.
pub fn say_skipped(why: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

fn requires(list: &str, tool: &str) -> bool {
    list.split(',').map(str::trim).any(|item| item == tool || item == "all")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_tools_or_all() {
        assert!(requires("nvrtc, clang", "clang"));
        assert!(requires("all", "clang"));
        assert!(!requires("nvrtc,clang-22", "clang"));
        assert!(!requires("", "clang"));
    }
}
