//! What every emitter writes for every fixture, compared with `golden/KERNEL/FILE`.
//!
//! `BLESS=1 cargo test -p polyhalo-tests --test golden` rewrites the files; the difference is then the thing to review.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use polyhalo_codegen::emit::text::ir;
use polyhalo_codegen::emit::{Code, EMITTERS};
use polyhalo_codegen::offline::private::Folder;
use polyhalo_tests::fixtures::{fixtures, folder};

/// Files by their path below the folder of the goldens, `/` between its parts.
type Files = BTreeMap<String, String>;

const HOW_TO_BLESS: &str = "if this is meant: BLESS=1 cargo test -p polyhalo-tests --test golden, then review the diff";

/// How many lines of a difference are shown.
const SHOWN: usize = 12;

#[test]
fn emitters_write_what_the_goldens_say() {
    let golden = folder().join("golden");
    let emitted = emitted();
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        bless(&golden, &emitted);
    }
    let faults = faults(&golden, &emitted);
    assert!(faults.is_empty(), "in tests/golden:\n{}\n{HOW_TO_BLESS}", faults.join("\n"));
}

#[test]
fn emitting_again_gives_the_same_bytes() {
    // Compiled again as well, so that the front end is held to it too.
    for (first, second) in fixtures().iter().zip(fixtures()) {
        for emitter in EMITTERS {
            let [once, again] = [&first.kernel, &second.kernel].map(|kernel| emitter.emit(kernel).bytes());
            assert!(once == again, "{} of `{}` differs from one time to the next", emitter.target(), first.name);
        }
    }
}

#[test]
fn missing_stale_and_different_goldens_are_told() {
    let folder = Folder::new().expect("there is room for a temporary folder");
    let files = |files: &[(&str, &str)]| -> Files {
        files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
    };
    let old = files(&[("cold/host.rs", "a\n"), ("heat/host.rs", "a\nb\nc\nd\n"), ("heat/ir.txt", "a\n")]);
    let new = files(&[("heat/host.rs", "a\nB\nC\nd\n"), ("heat/ir.txt", "a\n"), ("heat/new-target.txt", "a\n")]);
    bless(folder.path(), &old);
    assert_eq!(faults(folder.path(), &old), [""; 0]);
    let told = [
        "cold/host.rs is stale: nothing writes it any more",
        "heat/host.rs differs (- golden, + emitted):\n@@ line 2\n- b\n- c\n+ B\n+ C",
        "heat/new-target.txt is missing",
    ];
    assert_eq!(faults(folder.path(), &new), told);
    bless(folder.path(), &new);
    assert_eq!(faults(folder.path(), &new), [""; 0]);
    assert!(!folder.path().join("cold").exists(), "an empty folder was left behind");
}

#[test]
fn differences_show_where_they_are() {
    let check = |old: &str, new: &str, expected: &str| assert_eq!(difference(old, new), expected);
    check("a\nb\n", "a\nb\n", "");
    check("a\nb\nc\n", "a\nc\n", "@@ line 2\n- b");
    check("a\nc\n", "a\nb\nc\nd\n", "@@ line 2\n+ b\n@@ line 3\n+ d");
    check("a\n", "a", "@@ line 1\n- a\n+ a (without a newline)");
    let long = difference(&"x\n".repeat(100), "");
    assert_eq!(long.lines().count(), SHOWN + 1, "{long}");
}

/// The intermediate form and the code for each target, of every fixture.
fn emitted() -> Files {
    let mut files = Files::new();
    for fixture in fixtures() {
        let mut add = |file: String, text: String| {
            let before = files.insert(format!("{}/{file}", fixture.name), text);
            assert!(before.is_none(), "two emitters would share the golden file {file}");
        };
        add("ir.txt".to_owned(), ir::show(&fixture.kernel));
        for emitter in EMITTERS {
            let (target, code) = (emitter.target(), emitter.emit(&fixture.kernel));
            // Words are kept disassembled.
            let form = match code {
                Code::Text(_) => "",
                Code::Words(_) => "asm",
            };
            add(format!("{target}.{}{form}", target.extension()), code.readable());
        }
    }
    files
}

/// What is wrong with the files of `golden`, one entry for each of them.
fn faults(golden: &Path, emitted: &Files) -> Vec<String> {
    let found = found(golden);
    let names: Vec<&String> = found.keys().chain(emitted.keys().filter(|name| !found.contains_key(*name))).collect();
    let mut faults: Vec<String> = names
        .into_iter()
        .filter_map(|name| match (found.get(name), emitted.get(name)) {
            (Some(_), None) => Some(format!("{name} is stale: nothing writes it any more")),
            (None, _) => Some(format!("{name} is missing")),
            (Some(old), Some(new)) if old == new => None,
            (Some(old), Some(new)) => Some(format!("{name} differs (- golden, + emitted):\n{}", difference(old, new))),
        })
        .collect();
    faults.sort();
    faults
}

/// Makes the files of `golden` those that were emitted.
fn bless(golden: &Path, emitted: &Files) {
    let found = found(golden);
    for stale in found.keys().filter(|name| !emitted.contains_key(*name)) {
        let file = golden.join(stale);
        fs::remove_file(&file).expect("the stale file can be removed");
        // Fails while other files are left, as it should.
        let _ = fs::remove_dir(file.parent().expect("files lie in folders"));
    }
    for (name, text) in emitted {
        let file = golden.join(name);
        fs::create_dir_all(file.parent().expect("files lie in folders")).expect("the folder can be made");
        fs::write(file, text).expect("the file can be written");
    }
}

/// All files below a folder, which need not be there.
fn found(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let Ok(entries) = fs::read_dir(folder.join(&below)) else { continue };
        for entry in entries {
            let path = below.join(entry.expect("the folder can be read").file_name());
            if folder.join(&path).is_dir() {
                open.push(path);
            } else {
                let text = fs::read(folder.join(&path)).expect("the file can be read");
                let name = path.to_string_lossy().replace('\\', "/");
                files.insert(name, String::from_utf8_lossy(&text).into_owned());
            }
        }
    }
    files
}

/// The first lines that differ, each group under the line of the golden where it begins.
fn difference(old: &str, new: &str) -> String {
    let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let (mut at, mut shown) = ((0, 0), Vec::new());
    while at.0 < old.len() || at.1 < new.len() {
        let (removed, added) = until_equal(&old[at.0..], &new[at.1..]);
        if removed + added > 0 {
            shown.push(format!("@@ line {}", at.0 + 1));
            shown.extend(old[at.0..at.0 + removed].iter().map(|line| format!("- {}", readable(line))));
            shown.extend(new[at.1..at.1 + added].iter().map(|line| format!("+ {}", readable(line))));
        }
        if shown.len() > SHOWN {
            shown.truncate(SHOWN);
            shown.push("...".to_owned());
            break;
        }
        at = (at.0 + removed + 1, at.1 + added + 1);
    }
    shown.join("\n")
}

/// How many lines to leave out on each side until the same line follows on both: the fewest, both counted.
fn until_equal(old: &[&str], new: &[&str]) -> (usize, usize) {
    let all = old.len() + new.len();
    let ways = (0..all).flat_map(|total| (0..=total).map(move |removed| (removed, total - removed)));
    let mut ways = ways.filter(|(removed, added)| *removed < old.len() && *added < new.len());
    ways.find(|(removed, added)| old[*removed] == new[*added]).unwrap_or((old.len(), new.len()))
}

fn readable(line: &str) -> String {
    line.strip_suffix('\n').map_or_else(|| format!("{line} (without a newline)"), str::to_owned)
}
