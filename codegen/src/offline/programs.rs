//! Finds a tool on this machine: the variable that names it, then known installations, then the `PATH`.
//!
//! A variable set to a file or folder is final: when that one can't be used, no other is taken in its place. Set to `off`
//! it says to do without the tool; empty is the same as unset; a bare name is looked up along the `PATH`.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::processes::{self, Finished};

/// Where variables are read from: the process's own, or a test's.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variables of this process.
pub fn process_environment(variable: &str) -> Option<OsString> {
    std::env::var_os(variable)
}

/// Why a library can't be loaded, in the loader's words: the error's own text only says that loading failed.
pub fn loader_reason(error: libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// What a `POLYHALO_<TOOL>` variable says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Nothing: look in the usual places.
    Unset,
    /// Do without.
    Off,
    /// This file or folder and no other.
    At(PathBuf),
}

impl Named {
    /// Reads `variable`.
    pub fn read(environment: Environment, variable: &str) -> Named {
        match environment(variable) {
            None => Named::Unset,
            Some(value) if value.is_empty() => Named::Unset,
            Some(value) if value == "off" => Named::Off,
            Some(value) => Named::At(PathBuf::from(value)),
        }
    }
}

/// A tool that was found and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// What it calls its version; says nothing about where it lies.
    pub version: String,
}

impl std::fmt::Display for Program {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.version.as_str() {
            "" => write!(out, "{}", self.path.display()),
            version => write!(out, "{} ({version})", self.path.display()),
        }
    }
}

/// How one tool is found.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// What the tool is called in messages.
    pub tool: &'static str,
    /// The variable that names its file or folder.
    pub variable: &'static str,
    /// Variables that name an installation, each with the folder in it.
    pub homes: &'static [(&'static str, &'static str)],
    /// Folders that hold it on many machines.
    pub folders: &'static [&'static str],
    /// Folders inside a named folder: how a wheel of the vendor lays its files out.
    pub inside: &'static [&'static str],
    /// File names, best first.
    pub names: &'static [&'static str],
    /// Asks a file for its version; an error says why it won't do.
    pub probe: fn(&Path) -> Result<String, String>,
}

impl Search {
    /// The first file that will do. A file found once is remembered while it stays the same; a failure is not, so that a
    /// long-lived process sees a tool that is installed later.
    pub fn find(&self) -> Result<Program, String> {
        self.find_in(&process_environment)
    }

    /// As [`Search::find`] with the variables of `environment`.
    pub fn find_in(&self, environment: Environment) -> Result<Program, String> {
        let (tool, variable) = (self.tool, self.variable);
        let candidates = match Named::read(environment, variable) {
            Named::Off => return Err(format!("{variable} turns {tool} off")),
            Named::At(path) if path.is_dir() => self.in_folder(&path),
            // A bare name is a command: MPICC=mpicc.openmpi.
            Named::At(path) if !path.exists() && path.components().count() == 1 => along_path(environment, &path),
            Named::At(path) => vec![path],
            Named::Unset => self.usual_places(environment),
        };
        let mut refused = Vec::new();
        for candidate in candidates.iter().filter(|path| is_program(path)) {
            match self.remembered(candidate) {
                Ok(program) => return Ok(program),
                Err(reason) => refused.push(format!("{}: {reason}", candidate.display())),
            }
        }
        if !refused.is_empty() {
            return Err(refused.join("; "));
        }
        Err(match Named::read(environment, variable) {
            Named::At(path) => format!("{variable} names {}, which holds no program {}", path.display(), self.names[0]),
            Named::Off | Named::Unset => format!("no {tool} was found in {}", self.places()),
        })
    }

    fn in_folder(&self, folder: &Path) -> Vec<PathBuf> {
        let folders = std::iter::once(folder.to_path_buf()).chain(self.inside.iter().map(|inside| folder.join(inside)));
        folders.flat_map(|folder| self.names.iter().map(move |name| folder.join(name))).collect()
    }

    fn usual_places(&self, environment: Environment) -> Vec<PathBuf> {
        let home = |(variable, inside): &(&str, &str)| Some(Path::new(&environment(variable)?).join(inside));
        let known = self.homes.iter().filter_map(home).chain(self.folders.iter().map(PathBuf::from));
        let mut places: Vec<PathBuf> =
            known.flat_map(|folder| self.names.iter().map(move |name| folder.join(name))).collect();
        // Along the PATH the better name counts more than the earlier folder.
        places.extend(self.names.iter().flat_map(|name| along_path(environment, Path::new(name))));
        places
    }

    fn places(&self) -> String {
        let mut places = vec![self.variable.to_string()];
        places.extend(self.homes.iter().map(|(variable, inside)| format!("${variable}/{inside}")));
        places.extend(self.folders.iter().map(|folder| (*folder).to_string()));
        format!("{} or the PATH (as {})", places.join(", "), self.names.join(", "))
    }

    fn remembered(&self, path: &Path) -> Result<Program, String> {
        type Identity = (&'static str, PathBuf, u64, Option<SystemTime>);
        static FOUND: Mutex<BTreeMap<Identity, Program>> = Mutex::new(BTreeMap::new());
        let found = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);

        let facts = fs::metadata(path).map_err(|cause| cause.to_string())?;
        let identity = (self.tool, path.to_path_buf(), facts.len(), facts.modified().ok());
        if let Some(program) = found().get(&identity) {
            return Ok(program.clone());
        }
        let program = Program { path: path.to_path_buf(), version: (self.probe)(path)? };
        found().insert(identity, program.clone());
        Ok(program)
    }
}

fn along_path(environment: Environment, name: &Path) -> Vec<PathBuf> {
    let path = environment("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).collect()
}

/// What `program` answers to `arguments`, for probes: an error if it can't be run or says no.
pub fn answer(program: &Path, arguments: &[&str]) -> Result<Finished, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    let done = processes::run(command, b"", processes::LIMIT)?;
    match done.status.success() {
        true => Ok(done),
        false => Err(format!("{} {} failed ({}): {}", program.display(), arguments.join(" "), done.status, done.log())),
    }
}

/// The version a program tells after `--version`: the first line for which `pick` finds one.
pub fn version_line(program: &Path, pick: fn(&str) -> Option<&str>) -> Result<String, String> {
    let log = answer(program, &["--version"])?.log();
    let version = log.lines().find_map(pick).map(|version| version.trim().to_string());
    version.ok_or_else(|| format!("its --version does not look right: {}", log.lines().next().unwrap_or("no output")))
}

fn is_program(path: &Path) -> bool {
    let Ok(facts) = fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    facts.is_file() && may_run
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::private::Folder;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SEARCH: Search = Search {
        tool: "saw",
        variable: "POLYHALO_SAW",
        homes: &[("SAW_HOME", "bin")],
        folders: &[],
        inside: &["deep/down"],
        names: &["saw-2", "saw"],
        probe: |path| version_line(path, |line| line.strip_prefix("saw ")),
    };

    /// A program that prints `says`; in `folder`, under `name`.
    fn program(folder: &Path, name: &str, says: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn find(variables: &[(&str, &Path)]) -> Result<Program, String> {
        SEARCH.find_in(&|wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.as_os_str().to_os_string())
        })
    }

    #[test]
    fn the_variable_comes_first_then_homes_then_the_better_name_on_the_path() {
        let root = Folder::new().unwrap();
        let [named, home, early, late] = ["named", "home", "early", "late"].map(|name| root.path().join(name));
        program(&named.join("deep/down"), "saw", "saw 1");
        program(&home.join("bin"), "saw", "saw 2");
        program(&early, "saw", "saw 3");
        program(&late, "saw-2", "saw 4");
        let path = PathBuf::from(std::env::join_paths([&early, &late]).unwrap());

        let all = [("POLYHALO_SAW", named.as_path()), ("SAW_HOME", &home), ("PATH", &path)];
        let version = |variables: &[(&str, &Path)]| find(variables).unwrap().version;
        assert_eq!(version(&all), "1");
        assert_eq!(version(&all[1..]), "2");
        assert_eq!(version(&all[2..]), "4");
        assert_eq!(version(&[("POLYHALO_SAW", Path::new("")), ("PATH", &path)]), "4");
        assert_eq!(version(&[("POLYHALO_SAW", &early.join("saw")), ("PATH", &path)]), "3");
    }

    #[test]
    fn a_bare_name_is_a_command() {
        let root = Folder::new().unwrap();
        program(root.path(), "saw", "saw 1");
        program(root.path(), "my-own-saw", "saw 7");
        let variables = [("POLYHALO_SAW", Path::new("my-own-saw")), ("PATH", root.path())];
        assert_eq!(find(&variables).unwrap().version, "7");
        let variables = [("POLYHALO_SAW", Path::new("no-such-saw")), ("PATH", root.path())];
        assert!(find(&variables).unwrap_err().contains("names no-such-saw"));
    }

    #[test]
    fn a_named_tool_that_will_not_do_is_not_replaced() {
        let root = Folder::new().unwrap();
        program(root.path(), "saw", "saw 1");
        program(root.path(), "hammer", "hammer 1");
        fs::write(root.path().join("text"), "no program").unwrap();
        let refusal = |named: &Path| find(&[("POLYHALO_SAW", named), ("PATH", root.path())]).unwrap_err();

        let reason = refusal(&root.path().join("nothing"));
        assert!(reason.contains("POLYHALO_SAW names ") && reason.contains("nothing"), "{reason}");
        let reason = refusal(&root.path().join("hammer"));
        assert!(reason.contains("does not look right: hammer 1"), "{reason}");
        assert!(refusal(&root.path().join("text")).contains("holds no program"));
        assert_eq!(refusal(Path::new("off")), "POLYHALO_SAW turns saw off");
    }

    #[test]
    fn an_unusable_candidate_is_passed_by() {
        let root = Folder::new().unwrap();
        program(root.path(), "saw-2", "hammer 1");
        program(root.path(), "saw", "saw 5");
        assert_eq!(find(&[("PATH", root.path())]).unwrap().version, "5");
    }

    #[test]
    fn nothing_found_says_where_it_was_looked_for() {
        let root = Folder::new().unwrap();
        let reason = find(&[("PATH", root.path())]).unwrap_err();
        assert_eq!(reason, "no saw was found in POLYHALO_SAW, $SAW_HOME/bin or the PATH (as saw-2, saw)");
    }

    #[test]
    fn a_tool_installed_or_replaced_later_is_seen() {
        let root = Folder::new().unwrap();
        assert!(find(&[("PATH", root.path())]).is_err());
        program(root.path(), "saw", "saw 1");
        assert_eq!(find(&[("PATH", root.path())]).unwrap().version, "1");
        program(root.path(), "saw", "saw 1.5");
        assert_eq!(find(&[("PATH", root.path())]).unwrap().version, "1.5");
    }
}
