//! hiprtc in its own process, with a library made for these tests, which compiles, refuses, crashes and hangs as the source
//! asks; and with the real one where it is installed.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::child::Child;
use super::*;
use polyhalo_codegen::offline::cache;
use polyhalo_codegen::offline::private::Folder;
use polyhalo_codegen::offline::programs::process_environment;
use polyhalo_codegen::offline::require;

/// A library with hiprtc's entry points. Its code objects are the options and the source.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
typedef struct { char *code, *log; const char *source; size_t size; } Program;
#ifdef LOADS_BADLY
__attribute__((constructor)) static void start(void) { fputs("no such processor\n", stderr); abort(); }
#endif
int hiprtcVersion(int *major, int *minor) { *major = 6; *minor = 2; return 0; }
const char *hiprtcGetErrorString(int code) { return code == 6 ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR_OTHER"; }
int hiprtcCreateProgram(Program **program, const char *source, const char *name, int headers, const char **h, const char **i) {
  *program = calloc(1, sizeof(Program));
  (*program)->source = strdup(source);
  (*program)->log = strdup("");
  return headers || h || i || strcmp(name, "heat.hip") ? 1 : 0;
}
int hiprtcDestroyProgram(Program **program) { *program = 0; return 0; }
int hiprtcCompileProgram(Program *program, int count, const char **options) {
  const char *source = program->source;
  if (strstr(source, "CRASH")) { fputs("unknown processor\n", stderr); abort(); }
  if (strstr(source, "HANG")) for (;;) pause();
  if (strstr(source, "LEAVE")) _exit(0);
  if (strstr(source, "MISTAKE")) { program->log = strdup("heat.hip:1:1: error: unknown type name 'doubl'\n"); return 6; }
  if (strstr(source, "OPTION")) { program->log = strdup("error: unknown argument: '-O3'\n"); return 6; }
  if (strstr(source, "SILENT")) return 6;
  if (strstr(source, "OTHER")) { program->log = strdup("not now"); return 9; }
  FILE *out = open_memstream(&program->code, &program->size);
  for (int n = 0; n < count; n++) fprintf(out, "%s\n", options[n]);
  if (strstr(source, "SURROUNDINGS")) {
    for (char **at = environ; *at; at++) fprintf(out, "%s\n", *at);
    fprintf(out, "input: %d\n", getchar());
  } else if (!strstr(source, "NOTHING")) fputs(source, out);
  fclose(out);
  if (strstr(source, "NOTHING")) program->size = 0;
  return 0;
}
int hiprtcGetCodeSize(Program *program, size_t *size) { *size = program->size; return 0; }
int hiprtcGetCode(Program *program, char *code) { memcpy(code, program->code, program->size); return 0; }
int hiprtcGetProgramLogSize(Program *program, size_t *size) { *size = strlen(program->log) + 1; return 0; }
int hiprtcGetProgramLog(Program *program, char *log) { strcpy(log, program->log); return 0; }
"#;

/// The made library as `name` in `folder`; nothing, said aloud, without a C compiler.
pub(in super::super) fn made(folder: &Folder, name: &str, flags: &[&str]) -> Option<PathBuf> {
    folder.write("hiprtc.c", LIBRARY.as_bytes()).unwrap();
    let mut command = Command::new("cc");
    let command = command.args(["-shared", "-fPIC", "-o", name, "hiprtc.c"]).args(flags).current_dir(folder.path());
    let done = require::available("cc", command.output().map_err(|cause| format!("cc: {cause}")))?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(folder.path().join(name))
}

/// What is found where only these variables are set.
fn find_with(variables: &[(&str, &Path)]) -> Result<Hiprtc, String> {
    find(&|wanted| Some(variables.iter().find(|(name, _)| *name == wanted)?.1.into()))
}

fn cache_in(folder: &Folder) -> Cache {
    Cache::open_in(None, &|name| (name == cache::VARIABLE).then(|| folder.path().into()))
}

fn heat(source: &str) -> Program<'_> {
    Program { source, name: "heat", arch: "gfx90a:sramecc+:xnack-", contract: false }
}

/// What a child of limited patience says of a source.
fn asked(child: &Child, library: &Path, source: &str) -> Outcome<Vec<u8>> {
    let work = Work::Compile { source: source.into(), name: "heat.hip".into(), options: options(&heat(source)) };
    child.ask(&Request { libraries: vec![library.into()], work })
}

fn absent<T: std::fmt::Debug>(outcome: Outcome<T>, told: &[&str]) {
    let Outcome::Absent(reason) = outcome else { panic!("{outcome:?}") };
    assert!(told.iter().all(|told| reason.contains(told)), "{reason}");
}

#[test]
fn a_source_is_compiled_once_for_its_card() {
    let folder = Folder::new().unwrap();
    let Some(library) = made(&folder, "libhiprtc.so.6", &[]) else { return };
    let hiprtc = find_with(&[(VARIABLE, &library)]).unwrap();
    assert_eq!(hiprtc.to_string(), "hiprtc 6.2");
    assert_eq!(hiprtc.place(), format!("{} (version 6.2)", library.display()));
    let (kept, program) = (Folder::new().unwrap(), heat("the source"));
    let cache = cache_in(&kept);
    let expected = "--offload-arch=gfx90a:sramecc+:xnack-\n-O3\n-std=c++17\n-fno-fast-math\n\
                    -fhip-fp32-correctly-rounded-divide-sqrt\n-ffp-contract=off\nthe source";
    let made = |cache: &Cache, program: &Program<'_>| {
        let (object, from) = require::built("object", hiprtc.kept_object(cache, "HIP 6.2", program));
        (String::from_utf8(object).unwrap(), from)
    };
    assert_eq!(made(&cache, &program), (expected.to_owned(), Provenance::Compiler));
    assert_eq!(made(&cache, &program), (expected.to_owned(), Provenance::Cache));
    let other = Program { arch: "gfx1100", contract: true, ..program };
    let (object, from) = made(&cache, &other);
    assert!(object.contains("arch=gfx1100\n") && object.contains("-ffp-contract=fast\n"), "{object}");
    assert_eq!((from, fs::read_dir(kept.path()).unwrap().count()), (Provenance::Compiler, 2));
    // Another driver, or another build of the library, has objects of its own.
    let again = |hiprtc: &Hiprtc, driver| match hiprtc.kept_object(&cache, driver, &program) {
        Outcome::Built((_, from)) => from,
        other => panic!("{other:?}"),
    };
    assert_eq!(again(&hiprtc, "HIP 6.3"), Provenance::Compiler);
    assert_eq!(again(&Hiprtc { build: "later".into(), ..hiprtc.clone() }, "HIP 6.2"), Provenance::Compiler);
    // What is kept needs the library no more.
    fs::remove_file(library).unwrap();
    assert_eq!(again(&hiprtc, "HIP 6.2"), Provenance::Cache);
}

#[test]
fn whatever_befalls_the_compiler_is_a_reason() {
    let folder = Folder::new().unwrap();
    let Some(library) = made(&folder, "libhiprtc.so.6", &[]) else { return };
    let child = Child::default();
    let Outcome::Rejected(log) = asked(&child, &library, "MISTAKE") else { panic!("compiled nonsense") };
    assert_eq!(log, "heat.hip:1:1: error: unknown type name 'doubl'");
    let Outcome::Rejected(log) = asked(&child, &library, "\0") else { panic!("compiled a NUL") };
    assert!(log.contains("NUL"), "{log}");
    absent(asked(&child, &library, "SILENT"), &["hiprtcCompileProgram answered 6 (HIPRTC_ERROR_COMPILATION)"]);
    absent(asked(&child, &library, "OPTION"), &["answered 6", "unknown argument: '-O3'"]);
    absent(asked(&child, &library, "OTHER"), &["answered 9 (HIPRTC_ERROR_OTHER): not now"]);
    absent(asked(&child, &library, "NOTHING"), &["an empty code object"]);
    absent(asked(&child, &library, "CRASH"), &["hiprtc crashed (signal: 6", "unknown processor"]);
    absent(asked(&child, &library, "LEAVE"), &["gave no answer (exit status: 0)"]);
    let hasty = Child { limit: Duration::from_millis(500), ..Child::default() };
    absent(asked(&hasty, &library, "HANG"), &["was ended after 0.5 seconds without an answer"]);
    // It still works, and nothing was kept.
    let cached = Folder::new().unwrap();
    let hiprtc = find_with(&[(VARIABLE, &library)]).unwrap();
    for source in ["CRASH", "MISTAKE"] {
        assert_eq!(hiprtc.kept_object(&cache_in(&cached), "HIP 6.2", &heat(source)).built(), None);
    }
    assert_eq!(fs::read_dir(cached.path()).unwrap().count(), 0);
    assert!(matches!(asked(&child, &library, "fine"), Outcome::Built(_)));
}

#[test]
fn a_program_that_does_not_answer_is_a_reason() {
    let stranger = |program: &str| Child { program: program.into(), ..Child::default() };
    let nowhere = Path::new("libhiprtc.so");
    absent(asked(&stranger("/bin/true"), nowhere, ""), &["gave no answer (exit status: 0)"]);
    absent(asked(&stranger("/no/such/program"), nowhere, ""), &["could not be started"]);
}

#[test]
fn the_compiler_has_no_part_of_the_programs_surroundings() {
    let folder = Folder::new().unwrap();
    let Some(library) = made(&folder, "libhiprtc.so.6", &[]) else { return };
    let object = require::built("surroundings", asked(&Child::default(), &library, "SURROUNDINGS"));
    let told = String::from_utf8(object).unwrap();
    // Cargo sets such variables for tests.
    assert!(!told.contains("CARGO_MANIFEST_DIR=") && told.contains("input: -1\n"), "{told}");
    for (name, kept) in
        [("LD_LIBRARY_PATH", true), ("ROCM_PATH", true), ("LD_PRELOAD", false), ("OMPI_COMM_WORLD_RANK", false)]
    {
        assert_eq!(super::child::is_kept(name.as_ref()), kept, "{name}");
    }
}

#[test]
fn a_library_that_is_missing_or_will_not_do_is_a_reason() {
    let folder = Folder::new().unwrap();
    let missing = folder.path().join("libhiprtc.so.6");
    let check = |variables: &[(&str, &Path)], told: &[&str]| {
        let reason = find_with(variables).unwrap_err();
        assert!(told.iter().all(|told| reason.contains(told)), "{reason}");
    };
    check(&[(VARIABLE, Path::new("off"))], &["POLYHALO_HIPRTC turns hiprtc off"]);
    check(&[(VARIABLE, folder.path())], &["POLYHALO_HIPRTC names the folder", "which holds no libhiprtc.so"]);
    check(&[(VARIABLE, &missing)], &["libhiprtc.so.6", "No such file"]);
    check(&[(VARIABLE, Path::new("libnothing-of-the-kind.so"))], &["was found as libnothing-of-the-kind.so"]);
    check(&[(VARIABLE, Path::new("libc.so.6"))], &["libc.so.6: it has no hiprtc", "hiprtcVersion"]);
    let Some(library) = made(&folder, "libhiprtc.so.6", &["-DLOADS_BADLY"]) else { return };
    check(&[(VARIABLE, &library)], &["hiprtc crashed (signal: 6", "no such processor"]);
    // A failure isn't remembered.
    made(&folder, "libhiprtc.so.6", &[]);
    assert_eq!(find_with(&[(VARIABLE, &library)]).unwrap().version, "6.2");
}

#[test]
fn the_driver_that_is_named_brings_its_own_compiler() {
    let folder = Folder::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let there = |name: &str| folder.write(name, b"").unwrap();
    let places = |variables: &[(&str, PathBuf)]| {
        candidates(&|wanted| Some(variables.iter().find(|(name, _)| *name == wanted)?.1.clone().into()))
    };
    there("libamdhip64.so.6");
    let driver = (DRIVER, at("libamdhip64.so.6"));
    assert_eq!(places(std::slice::from_ref(&driver)), Ok(vec![at("libamdhip64.so.6")]));
    there("libhiprtc.so.6");
    let both = vec![at("libhiprtc.so.6"), at("libamdhip64.so.6")];
    assert_eq!(places(std::slice::from_ref(&driver)), Ok(both.clone()));
    assert_eq!(places(&[(DRIVER, folder.path().into())]), Ok(both));
    assert_eq!(places(&[driver, (VARIABLE, "mine.so".into())]), Ok(vec!["mine.so".into()]));
    // Otherwise an installation that is named comes before what the loader finds, and hiprtc before a driver.
    fs::create_dir(at("lib")).unwrap();
    there("lib/libhiprtc.so.5");
    there("lib/libamdhip64.so.5");
    let usual = places(&[("ROCM_PATH", folder.path().into())]).unwrap();
    let position = |path: PathBuf| usual.iter().position(|found| *found == path).unwrap();
    assert_eq!(position(at("lib/libhiprtc.so.5")), 0);
    assert!(position("libhiprtc.so".into()) < position(at("lib/libamdhip64.so.5")), "{usual:?}");
    assert!(position(at("lib/libamdhip64.so.5")) < position("libamdhip64.so.7".into()), "{usual:?}");
}

/// With ROCm's own library. Old ones end their process for a card that they don't know.
#[test]
fn the_real_compiler_makes_a_code_object_and_can_do_no_harm() {
    let Some(hiprtc) = require::available("hiprtc", find(&process_environment)) else { return };
    let kernel = super::super::tests::own_kernel();
    let compile = |arch: &str| {
        let program = Program { source: kernel.code.hip, name: kernel.name, arch, contract: false };
        hiprtc.kept_object(&Cache::off("a test".into()), "any", &program).map(|(object, _)| object)
    };
    let object = require::built("gfx90a", compile("gfx90a:sramecc+:xnack-"));
    // 224 is the AMD GPU among ELF's machines.
    assert!(object.starts_with(b"\x7fELF") && object[18..20] == 224_u16.to_le_bytes());
    assert!(matches!(compile("gfx9999"), Outcome::Absent(_)));
    let wrong = Program { source: "doubl x;", name: "heat", arch: "gfx90a", contract: false };
    let Outcome::Rejected(log) = hiprtc.kept_object(&Cache::off("a test".into()), "any", &wrong) else {
        panic!("compiled nonsense")
    };
    assert!(log.contains("doubl"), "{log}");
    assert!(matches!(compile("gfx1100"), Outcome::Built(_) | Outcome::Absent(_)));
}
