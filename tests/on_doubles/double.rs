//! Stand-ins for drivers, and programs that run on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use polyhalo_codegen::offline::{nvrtc, require};

use crate::process::{file, text};

/// A program that hasn't ended by then hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Whose driver is stood in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Cuda,
    Hip,
}

impl Vendor {
    /// Those that can be tried here: PTX takes NVRTC, and HIP g++.
    pub(crate) fn is_there(self) -> bool {
        match self {
            Vendor::Cuda => require::available("nvrtc", nvrtc::find()).is_some(),
            Vendor::Hip => {
                let compiler = Command::new("g++").arg("--version").output();
                require::available("g++", compiler.map_err(|error| format!("g++: {error}"))).is_some()
            }
        }
    }

    /// The name of the back end.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Vendor::Cuda => "cuda",
            Vendor::Hip => "hip",
        }
    }

    /// The stand-in's library, which Cargo has built beside this test.
    pub(crate) fn library(self) -> PathBuf {
        let folder = std::env::current_exe().expect("a test has a path");
        let library = folder.with_file_name(format!("libpolyhalo_double_{}.so", self.name()));
        assert!(library.exists(), "{} is missing", library.display());
        library
    }
}

/// A machine with virtual devices.
#[derive(Clone, Debug)]
pub(crate) struct Double {
    pub(crate) vendor: Vendor,
    pub(crate) devices: usize,
    /// When work runs: `eager`, `lazy` or `random:SEED`.
    pub(crate) order: String,
    /// Other variables of the stand-in and of the runtime.
    pub(crate) variables: Vec<(String, String)>,
}

/// What became of a program.
pub(crate) struct Ended {
    pub(crate) output: Output,
    /// What it did that a driver forbids, one line each.
    pub(crate) misuse: String,
    /// Calls of each entry point.
    pub(crate) calls: Vec<(String, u64)>,
}

impl Double {
    pub(crate) fn new(vendor: Vendor, devices: usize, order: &str) -> Self {
        Self { vendor, devices, order: order.into(), variables: Vec::new() }
    }

    /// The same with another variable.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.variables.push((name.into(), value.to_string()));
        self
    }

    /// Runs a program to its end.
    pub(crate) fn run(&self, command: Command) -> Ended {
        self.run_beside(command, |_| {})
    }

    /// The same; `look` is called again and again with the program's number as long as it runs.
    pub(crate) fn run_beside(&self, mut command: Command, mut look: impl FnMut(u32)) -> Ended {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let [log, count, out, err] =
            ["log", "count", "out", "err"].map(|what| file("on_doubles", &format!("{number}.{what}")));
        for path in [&log, &count] {
            // Nothing of an earlier run may pass for this one's.
            let _ = fs::remove_file(path);
        }
        for (name, _) in std::env::vars_os() {
            let kept = ["POLYHALO_NVRTC", "POLYHALO_CACHE"];
            if name.to_string_lossy().starts_with("POLYHALO_") && !kept.contains(&&*name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        for vendor in [Vendor::Cuda, Vendor::Hip] {
            let variable = format!("POLYHALO_{}", vendor.name().to_uppercase());
            if vendor == self.vendor {
                command.env(variable, vendor.library());
            } else {
                command.env(variable, "off");
            }
        }
        command.env("POLYHALO_DOUBLE_DEVICES", self.devices.to_string()).env("POLYHALO_DOUBLE_ORDER", &self.order);
        command.env("POLYHALO_DOUBLE_LOG", &log).env("POLYHALO_DOUBLE_COUNT", &count).env("POLYHALO_TUNE", "never");
        // Too little to measure a copy in, which examples do for their report, and enough for everything else.
        command.env("POLYHALO_DOUBLE_MEMORY", "4000000");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let files = [&out, &err].map(|path| fs::File::create(path).expect("the target folder can be written"));
        let [to_out, to_err] = files;
        let mut child = command.stdout(to_out).stderr(to_err).spawn().expect("the program starts");
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("it can be asked") {
                break status;
            }
            look(child.id());
            if start.elapsed() > LIMIT {
                // It is the test's end; what the program still does doesn't matter.
                let _ = child.kill();
                panic!("{command:?} on {self:?} hangs: {}", read(&err));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let [stdout, stderr] = [&out, &err].map(|path| fs::read(path).expect("it was written"));
        let misuse = read(&log);
        let line = |line: &str| line.split_once(' ').map(|(name, calls)| (name.to_owned(), calls.parse().unwrap_or(0)));
        let calls = read(&count).lines().filter_map(line).collect();
        for path in [&log, &count, &out, &err] {
            let _ = fs::remove_file(path);
        }
        Ended { output: Output { status, stdout, stderr }, misuse, calls }
    }

    /// Standard output of a program that ended well and did nothing that a driver forbids.
    pub(crate) fn out(&self, command: Command) -> String {
        let what = format!("{command:?}");
        let ended = self.run(command);
        let (out, err) = (text(&ended.output.stdout), text(&ended.output.stderr));
        assert!(ended.output.status.success(), "{what} on {self:?}: {}\n{out}{err}", ended.output.status);
        assert_eq!(ended.misuse, "", "{what} on {self:?}");
        out
    }
}

/// The text of a file; nothing if there is none.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
