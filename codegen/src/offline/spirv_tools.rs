//! SPIRV-Tools: the referee of every SPIR-V module, and its readable form.

use super::Outcome;
use super::processes::{self, LIMIT, text};
use super::programs::{self, Program, Search};

/// How the validator is found.
pub const SPIRV_VAL: Search = Search {
    tool: "spirv-val",
    variable: "POLYHALO_SPIRV_VAL",
    homes: &[("VULKAN_SDK", "bin")],
    folders: &[],
    inside: &["bin"],
    names: &["spirv-val"],
    probe: |path| programs::version_line(path, version),
};

/// How the disassembler is found.
pub const SPIRV_DIS: Search =
    Search { tool: "spirv-dis", variable: "POLYHALO_SPIRV_DIS", names: &["spirv-dis"], ..SPIRV_VAL };

/// Checks `module` against `environment`, such as `opencl1.2` or `spv1.0`.
pub fn validate(module: &[u8], environment: &str) -> Outcome<()> {
    let answer = SPIRV_VAL.find().and_then(|program| {
        let mut command = std::process::Command::new(&program.path);
        command.args(["--target-env", environment, "-"]);
        processes::run(command, module, LIMIT)
    });
    let done = match answer {
        Ok(done) => done,
        Err(reason) => return Outcome::Absent(reason),
    };
    let log = done.log();
    if done.status.success() {
        return Outcome::Built(());
    }
    match done.crashed() || log.contains("Unrecognized target env") {
        true => Outcome::Absent(format!("spirv-val --target-env {environment} failed ({}): {log}", done.status)),
        false => Outcome::Rejected(log),
    }
}

/// The module as text, with the names that it carries.
pub fn disassemble(module: &[u8]) -> Outcome<String> {
    let answer = SPIRV_DIS.find().and_then(|Program { path, .. }| {
        let mut command = std::process::Command::new(path);
        command.args(["--no-color", "-"]);
        processes::run(command, module, LIMIT)
    });
    match answer {
        Ok(done) if done.status.success() => Outcome::Built(text(&done.stdout)),
        Ok(done) if done.crashed() => Outcome::Absent(format!("spirv-dis failed ({}): {}", done.status, done.log())),
        Ok(done) => Outcome::Rejected(done.log()),
        Err(reason) => Outcome::Absent(reason),
    }
}

/// The bytes of a module given as words, in the order in which it is stored.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Whether `module` is whole: a header, instructions that end where it ends, an entry point, and every function closed.
///
/// This needs no tool. Consumers of SPIR-V crash on a module that was cut short, or take it for one with fewer kernels, so
/// it is asked before any of them sees the module.
pub fn whole(module: &[u8]) -> Result<(), String> {
    const MAGIC: u32 = 0x0723_0203;
    const HEADER_WORDS: usize = 5;
    const ENTRY_POINT: u32 = 15;
    const FUNCTION: u32 = 54;
    const FUNCTION_END: u32 = 56;

    let (words, rest) = module.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("{} bytes are no whole number of words", module.len()));
    }
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    if words.first() != Some(&MAGIC) || words.len() < HEADER_WORDS {
        return Err("it does not start with a SPIR-V header".into());
    }
    let (mut at, mut entries, mut functions, mut open) = (HEADER_WORDS, 0, 0, false);
    while at < words.len() {
        let (count, operation) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        if count == 0 || at + count > words.len() {
            return Err(format!("it ends inside the instruction at word {at}"));
        }
        match operation {
            ENTRY_POINT => entries += 1,
            FUNCTION if open => {
                return Err(format!("a function starts inside another at word {at}"));
            }
            FUNCTION => (functions, open) = (functions + 1, true),
            FUNCTION_END => open = false,
            _ => {}
        }
        at += count;
    }
    match (entries, functions, open) {
        (_, _, true) => Err("it ends inside a function".into()),
        (0, _, _) => Err("it has no entry point".into()),
        (_, 0, _) => Err("it has no function".into()),
        _ => Ok(()),
    }
}

/// `v2023.1` of `SPIRV-Tools v2023.1 unknown hash, ...`.
fn version(line: &str) -> Option<&str> {
    line.strip_prefix("SPIRV-Tools ")?.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::super::{require, samples};
    use super::*;

    #[test]
    fn a_module_cut_short_anywhere_is_not_whole() {
        let module = bytes(&samples::SPIRV);
        assert_eq!(whole(&module), Ok(()));
        for length in 0..module.len() {
            assert!(whole(&module[..length]).is_err(), "the first {length} bytes passed");
        }
        assert!(whole(b"kernel void k() {} //").is_err());
        let mut zero_length = samples::SPIRV;
        zero_length[5] &= 0xffff;
        assert!(whole(&bytes(&zero_length)).unwrap_err().contains("word 5"));
    }

    #[test]
    fn a_right_module_is_valid_and_a_wrong_one_is_not() {
        if require::available("spirv-val", SPIRV_VAL.find()).is_none() {
            return;
        }
        let module = bytes(&samples::SPIRV);
        for environment in ["opencl1.2", "opencl2.1", "spv1.0"] {
            require::built(environment, validate(&module, environment));
        }
        let mut wrong = samples::SPIRV;
        // The function's return type becomes the function type.
        let place = wrong.iter().position(|word| *word == (5 << 16 | 54)).unwrap();
        wrong[place + 1] = 3;
        let Outcome::Rejected(log) = validate(&bytes(&wrong), "opencl1.2") else { panic!("a wrong module passed") };
        assert!(log.contains("error"), "{log}");
        let Outcome::Rejected(_) = validate(&module[..module.len() - 6], "opencl1.2") else { panic!("half passed") };
        let Outcome::Rejected(_) = validate(b"text", "opencl1.2") else { panic!("text passed") };
    }

    #[test]
    fn an_unknown_environment_is_no_mistake_in_the_module() {
        if require::available("spirv-val", SPIRV_VAL.find()).is_none() {
            return;
        }
        let Outcome::Absent(reason) = validate(&bytes(&samples::SPIRV), "opencl99") else { panic!("opencl99 exists") };
        assert!(reason.contains("opencl99"), "{reason}");
    }

    #[test]
    fn a_module_is_shown_with_its_names() {
        if require::available("spirv-dis", SPIRV_DIS.find()).is_none() {
            return;
        }
        let listing = require::built("listing", disassemble(&bytes(&samples::SPIRV)));
        assert!(listing.contains("OpEntryPoint Kernel %1 \"nothing\""), "{listing}");
        assert!(matches!(disassemble(b"text"), Outcome::Rejected(_)));
    }
}
