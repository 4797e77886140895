//! Rules about the code base that no compiler checks: who may depend on whom, and what must not be there.
//!
//! To add a rule: say in [`RULES`] which tokens are forbidden where, or write a test; and show in
//! [`rules_find_what_they_forbid`] that it can fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use polyhalo_tests::fixtures::folder;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Tokens that must not stand in Rust code.
struct Rule {
    name: &'static str,
    /// Sequences of tokens, separated by blanks.
    forbidden: &'static [&'static str],
    /// Whether the rule holds for the code in a file at this path.
    holds: fn(&str) -> bool,
    /// Whether it holds in tests too.
    in_tests: bool,
}

const RULES: [Rule; 4] = [
    Rule {
        name: "only the front end and the macro know the syntax tree",
        forbidden: &["use syn", "syn : :"],
        holds: |path| !starts_with_one(path, &["codegen/src/front/", "dsl-macros/", "tests/"]),
        in_tests: false,
    },
    Rule {
        name: "unsafe code lives in back ends, foreign calls and emitted kernels",
        forbidden: &["unsafe {", "unsafe impl", "unsafe fn", "unsafe trait", "unsafe extern"],
        holds: |path| !starts_with_one(path, UNSAFE),
        in_tests: true,
    },
    Rule {
        name: "planning is pure: it touches no device, file, thread or clock",
        forbidden: &["Device", "Backend", "Transport", "crate : : execute", "fs :", "thread :", "Instant"],
        holds: |path| PLANNING.iter().any(|module| is_of_module(path, "dsl-runtime/src/", module)),
        in_tests: false,
    },
    Rule {
        name: "nothing is left unfinished or unchecked",
        forbidden: &["todo !", "unimplemented !", "[ ignore"],
        holds: |_| true,
        in_tests: true,
    },
];

/// Where unsafe code may be.
const UNSAFE: &[&str] = &[
    "dsl-runtime/src/backend/",
    // Kernels as the macro would leave them in a program.
    "dsl-runtime/src/testing",
    "codegen/src/offline/nvrtc/",
    "codegen/src/offline/nvrtc.rs",
    "codegen/src/offline/processes.rs",
    // Runs kernels that were compiled a moment ago.
    "tests/agreement/",
    // Stand-ins for drivers, which get raw pointers.
    "tests/doubles/",
    "tests/double_ptx.rs",
    "bench/",
];

/// The modules that compute plans.
const PLANNING: [&str; 17] = [
    "geometry",
    "layout",
    "shape",
    "range",
    "boundary",
    "partition",
    "halo",
    "plan",
    "exchange",
    "schedule",
    "runs",
    "demand",
    "distribute",
    "depend",
    "price",
    "traffic",
    "reduction",
];

/// Longer files hold more than one idea.
const LINES: usize = 900;

/// Documents are found through their headings, and may be longer.
const DOCUMENT_LINES: usize = 1200;

#[test]
fn tokens_stand_only_where_they_may() {
    let mut faults = Vec::new();
    for source in rust_sources() {
        for rule in RULES.iter().filter(|rule| (rule.holds)(&source.path)) {
            let lines = lines_against(rule, &source.text);
            faults
                .extend(lines.iter().map(|(line, found)| format!("{}:{line}: `{found}`: {}", source.path, rule.name)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn rules_find_what_they_forbid() {
    let check = |rule: usize, code: &str, lines: &[usize]| {
        let found: Vec<usize> = lines_against(&RULES[rule], code).into_iter().map(|(line, _)| line).collect();
        assert_eq!(found, lines, "{}: {code}", RULES[rule].name);
    };
    check(0, "use std::fmt;\nuse syn::Expr;", &[2]);
    check(0, "fn f() { g(\nsyn::parse_str(\"\")) }", &[2]);
    check(0, "//! Knows no syn.\n#[cfg(test)]\nmod tests {\n use syn::Expr;\n}", &[]);
    check(0, "#[cfg(all(test, unix))]\nmod tests { use syn::Expr; }", &[]);
    check(0, "#[cfg(test)]\nmod samples;\nuse syn::Expr;", &[3]);
    check(1, "fn f() {\n    unsafe { g() }\n}\nunsafe impl Send for T {}", &[2, 4]);
    check(1, "#[cfg(test)]\nmod tests {\n fn f() { unsafe { g() } }\n}", &[3]);
    check(1, "/// No unsafe { }.\npub type Kernel = unsafe fn(&Args);\nconst S: &str = \"unsafe { }\";", &[]);
    check(2, "use crate::backend::{Device, QueueId};\nuse std::time::Instant;", &[1, 2]);
    check(2, "use crate::backend::{DeviceInfo, QueueId};", &[]);
    check(2, "pub(crate) fn f() { crate::execute::run() }", &[1]);
    check(3, "fn f() {\n    todo!()\n}\n#[test]\n#[ignore = \"slow\"]\nfn g() {}", &[2, 5]);
    check(3, "const NAMES: [&str; 2] = [\"todo!\", \"#[ignore]\"];", &[]);

    assert!(is_of_module("a/halo.rs", "a/", "halo") && is_of_module("a/halo/x.rs", "a/", "halo"));
    assert!(!is_of_module("a/halos.rs", "a/", "halo") && !is_of_module("b/halo.rs", "a/", "halo"));
}

#[test]
fn rules_speak_of_files_that_exist() {
    let sources = rust_sources();
    let check = |found: &dyn Fn(&str) -> bool, what: &str| {
        assert!(sources.iter().any(|source| found(&source.path)), "there is no {what} any more");
    };
    PLANNING.iter().for_each(|module| check(&|path| is_of_module(path, "dsl-runtime/src/", module), module));
    UNSAFE.iter().for_each(|place| check(&|path| path.starts_with(place), place));
    check(&|path| path.starts_with("codegen/src/front/"), "front end");
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let check = |krate: &str, own: &[&str], without: &[&str]| {
        let manifest = read(&root().join(krate).join("Cargo.toml"));
        let dependencies = dependencies(&manifest);
        let ours = dependencies.iter().filter(|name| name.starts_with("polyhalo")).map(String::as_str);
        assert!(dependencies.len() > 1, "the manifest of {krate} was not understood");
        assert!(ours.clone().all(|name| own.contains(&name)), "{krate} depends on {:?}", ours.collect::<Vec<_>>());
        let wrong = without.iter().find(|name| dependencies.contains(**name));
        assert!(wrong.is_none(), "{krate} depends on {wrong:?}");
    };
    let devices = ["opencl3", "cudarc", "hip-runtime-sys", "inventory", "mpi", "ndarray"];
    let compiler = ["syn", "quote", "proc-macro2", "rspirv"];
    check("codegen", &[], &devices);
    check("dsl-macros", &["polyhalo-codegen"], &devices);
    // The runtime fills ghost cells by stencils of its own.
    check("dsl-runtime", &["polyhalo-macros", "polyhalo-codegen"], &compiler);
    check("", &["polyhalo-macros", "polyhalo-runtime", "polyhalo-codegen"], &compiler);
}

#[test]
fn the_runtime_asks_vendors_compilers_without_the_language() {
    let line = |manifest: &str, start: &str| {
        let manifest = read(&root().join(manifest));
        manifest.lines().find(|line| line.starts_with(start)).map(str::to_owned).unwrap_or_default()
    };
    assert!(line("Cargo.toml", "polyhalo-codegen = ").contains("default-features = false"));
    assert_eq!(line("dsl-runtime/Cargo.toml", "polyhalo-codegen"), "polyhalo-codegen.workspace = true");
    // Whatever the compiler needs for the language is left out with it.
    for needed in ["syn", "quote", "proc-macro2", "rspirv"] {
        assert!(line("codegen/Cargo.toml", &format!("{needed} = ")).contains("optional = true"), "{needed}");
    }
}

#[test]
fn manifests_are_read_in_every_form() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true # why\nc = \"1\"\n\n[dependencies.d]\n\
                    path = \"d\"\n[target.'cfg(unix)'.build-dependencies]\n\"e\" = { version = \"1\" }\n\
                    [workspace.dependencies]\nf = \"1\"\n[features]\ng = []\n[dev-dependencies]\nh = \"1\"\n";
    assert_eq!(dependencies(manifest).into_iter().collect::<String>(), "bcdeh");
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<String> = rust_sources()
        .into_iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.path)
        .collect();
    assert!(silent.is_empty(), "these begin with no `//!`: {silent:?}");
}

#[test]
fn files_are_not_too_long() {
    let written = sources().into_iter().filter(|source| source.path != "Cargo.lock" && !is_generated(&source.path));
    let long: Vec<String> = written
        .map(|source| (source.text.lines().count(), source.path))
        .filter(|(lines, path)| *lines > if path.ends_with(".md") { DOCUMENT_LINES } else { LINES })
        .map(|(lines, path)| format!("{path} has {lines} lines"))
        .collect();
    assert!(long.is_empty(), "more than {LINES}: {long:?}");
}

#[test]
fn no_text_names_a_home_or_unfinished_work() {
    // In pieces, so that this file is not found itself.
    let words = [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"], ["\\Us", "ers\\"], ["TO", "DO"], ["FIX", "ME"]];
    let mut faults = Vec::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            let found = words.iter().map(|word| word.concat()).find(|word| line.contains(word));
            faults.extend(found.map(|word| format!("{}:{}: {word}", source.path, number + 1)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A text file of the repository.
struct Source {
    /// From the root, with `/`.
    path: String,
    text: String,
}

fn root() -> &'static Path {
    folder().parent().expect("the package lies in the repository")
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Every text file that belongs to the repository.
fn sources() -> Vec<Source> {
    let (mut sources, mut open) = (Vec::new(), vec![root().to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("the repository can be read") {
            let path = entry.expect("the repository can be read").path();
            let below = path.strip_prefix(root()).expect("it lies in the root").to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                let ignored = ["target", "wip", ".git"].contains(&below.as_str());
                open.extend((!ignored).then_some(path));
            } else if let Ok(text) = fs::read_to_string(&path) {
                sources.push(Source { path: below, text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// The Rust that people write: neither what emitters wrote nor the mistakes that the macro must refuse.
fn rust_sources() -> Vec<Source> {
    let mut sources = sources();
    sources
        .retain(|Source { path, .. }| path.ends_with(".rs") && !is_generated(path) && !path.starts_with("tests/ui/"));
    sources
}

fn is_generated(path: &str) -> bool {
    path.starts_with("tests/golden/")
}

fn starts_with_one(path: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| path.starts_with(start))
}

/// Whether `path` is `FOLDER/MODULE.rs` or a file in `FOLDER/MODULE/`.
fn is_of_module(path: &str, folder: &str, module: &str) -> bool {
    let rest = path.strip_prefix(folder).and_then(|path| path.strip_prefix(module));
    rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The lines of `code` that break `rule`, with what stands there.
fn lines_against(rule: &Rule, code: &str) -> Vec<(usize, &'static str)> {
    let stream: TokenStream = code.parse().unwrap_or_else(|error| panic!("{error} in:\n{code}"));
    let mut tokens = Vec::new();
    flatten(stream, rule.in_tests, &mut tokens);
    let mut lines = Vec::new();
    for forbidden in rule.forbidden {
        let wanted: Vec<&str> = forbidden.split(' ').collect();
        for at in tokens.windows(wanted.len()) {
            if at.iter().map(|(_, text)| text.as_str()).eq(wanted.iter().copied()) {
                lines.push((at[0].0, *forbidden));
            }
        }
    }
    lines.sort();
    lines.dedup_by_key(|(line, _)| *line);
    lines
}

/// All tokens with their lines; of a bracket, the opening one stands for both. A type `unsafe fn(..)` is left out.
fn flatten(stream: TokenStream, with_tests: bool, tokens: &mut Vec<(usize, String)>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        let (line, rest) = (trees[at].span().start().line, &trees[at..]);
        at += match rest {
            [first, TokenTree::Group(attribute), ..]
                if !with_tests && first.to_string() == "#" && is_for_tests(&attribute.to_string()) =>
            {
                let end = |tree: &TokenTree| match tree {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    other => other.to_string() == ";",
                };
                rest.iter().position(end).map_or(rest.len(), |end| end + 1)
            }
            [first, second, TokenTree::Group(_), ..] if is_word(first, "unsafe") && is_word(second, "fn") => 2,
            [TokenTree::Group(group), ..] => {
                let opening = match group.delimiter() {
                    Delimiter::Brace => "{",
                    Delimiter::Bracket => "[",
                    Delimiter::Parenthesis => "(",
                    Delimiter::None => "",
                };
                tokens.push((line, opening.to_owned()));
                flatten(group.stream(), with_tests, tokens);
                1
            }
            [other, ..] => {
                tokens.push((line, other.to_string()));
                1
            }
            [] => unreachable!("there is one more tree"),
        };
    }
}

/// Whether an attribute leaves code to the tests: `[cfg(test)]`, `[cfg(all(test, unix))]`.
fn is_for_tests(attribute: &str) -> bool {
    let plain = attribute.replace(' ', "");
    plain.starts_with("[cfg(test)") || plain.starts_with("[cfg(all(test,")
}

fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

/// The names of all dependencies in a manifest, of whatever kind; those of the workspace's own table are none.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table.ends_with("dependencies") && table != "workspace.dependencies";
            if let Some((kind, name)) = table.rsplit_once('.')
                && kind.ends_with("dependencies")
            {
                names.insert(name.to_owned());
            }
        } else if inside && let Some((key, _)) = line.split_once('=') {
            let name = key.split('.').next().unwrap_or(key);
            names.insert(name.trim().trim_matches('"').to_owned());
        }
    }
    names
}
