//! Starting what Cargo has built beside a test, and reading what it says.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use polyhalo::Exchange;
use polyhalo_codegen::offline::require;

/// All examples, and whether they call functions whose last bits are the vendor's.
pub(crate) const EXAMPLES: [(&str, bool); 9] = [
    ("heat", false),
    ("wave", false),
    ("elastic", false),
    ("gray_scott", false),
    ("burgers", false),
    ("himeno", false),
    ("perona_malik", true),
    ("automaton", false),
    ("poisson", false),
];

/// An example, to be run.
pub(crate) fn example(name: &str, arguments: &[&str]) -> Command {
    let mut command = program(&format!("examples/{name}"));
    command.args(arguments);
    command
}

/// A program or an example that Cargo has built, by its path in the folder of the profile.
pub(crate) fn program(path: &str) -> Command {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let program = profile.join(format!("{path}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is missing: build it with `cargo build --bins --examples`", program.display());
    Command::new(program)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// What a command does and says.
pub(crate) fn run(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

/// Standard output of a run that went well.
pub(crate) fn out(output: Output) -> String {
    assert!(output.status.success(), "{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Standard error of a run that ended with `code`.
pub(crate) fn fails(output: Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stderr)
}

/// A path in a folder of one test program's own.
pub(crate) fn file(program: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder.join(name)
}

/// Every strategy, as an option.
pub(crate) fn strategies() -> Vec<String> {
    Exchange::ALL.into_iter().chain([Exchange::Deep(3)]).map(|exchange| exchange.to_string()).collect()
}

/// Several devices with OpenCL ones among them, as far as they are there.
pub(crate) fn several_with_opencl() -> Vec<String> {
    let there = |(tool, term): &(&str, &str)| {
        let found = polyhalo::devices::find(term, &[]).map_err(|error| error.to_string());
        require::available(tool, found).is_some()
    };
    let terms: Vec<_> = [("pocl", "opencl:portable"), ("intel", "opencl:intel")].into_iter().filter(there).collect();
    let alike = terms.iter().map(|(_, term)| format!("{term}:2"));
    let beside = terms.iter().map(|(_, term)| format!("host:2+{term}:1"));
    let mixed = (terms.len() > 1).then(|| terms.iter().map(|(_, term)| *term).collect::<Vec<_>>().join("+"));
    alike.chain(beside).chain(mixed).collect()
}
