//! A module to read: ids by their names, source lines as comments.

use std::collections::{BTreeMap, BTreeSet};

use rspirv::binary::Disassemble;
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::{Op, Word};

/// The text of a module in the notation of SPIRV-Tools; a comment with the reason when `words` are none.
///
/// `OpName` becomes the id itself and `OpLine` the comment `; FILE:LINE`.
pub fn disassemble(words: &[u32]) -> String {
    if !is_whole(words) {
        return "; not a SPIR-V module: it ends within an instruction\n".to_string();
    }
    match rspirv::dr::load_words(words) {
        Ok(module) => text(&module),
        Err(reason) => format!("; not a SPIR-V module: {reason}\n"),
    }
}

/// Whether `words` are a header and whole instructions; the parser trusts their lengths.
fn is_whole(words: &[u32]) -> bool {
    const HEADER: usize = 5;
    let mut at = HEADER;
    while let Some(first) = words.get(at) {
        match first >> 16 {
            0 => return false,
            length => at += length as usize,
        }
    }
    at == words.len()
}

fn text(module: &Module) -> String {
    let names = names(module);
    let files = files(module);
    let mut text = String::new();
    let mut in_block = false;
    for line in module.disassemble().lines() {
        let line = rename(line, &names);
        let mut words = line.split_whitespace();
        let (first, second, third) = (words.next(), words.next(), words.next());
        let op = if second == Some("=") { third } else { first };
        match op {
            Some("OpName") => continue,
            Some("OpNoLine") => {
                text.push_str("    ; no source line\n");
                continue;
            }
            Some("OpLine") => {
                let file = second.and_then(|id| files.get(id)).map_or("", String::as_str);
                text.push_str(&format!("    ; {file}:{}\n", third.unwrap_or("0")));
                continue;
            }
            Some("OpFunction") => text.push('\n'),
            Some("OpFunctionEnd") => in_block = false,
            _ => {}
        }
        if in_block && op != Some("OpLabel") {
            text.push_str("    ");
        }
        in_block |= op == Some("OpLabel");
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// For every named id, and for every set of functions, a name of its own.
fn names(module: &Module) -> BTreeMap<Word, String> {
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let named = module.debug_names.iter().filter_map(|instruction| match &instruction.operands[..] {
        [Operand::IdRef(id), Operand::LiteralString(name)] => Some((*id, name)),
        _ => None,
    });
    let imported = module.ext_inst_imports.iter().filter_map(|import| match &import.operands[..] {
        [Operand::LiteralString(set)] => Some((import.result_id?, set)),
        _ => None,
    });
    for (id, name) in imported.chain(named) {
        let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        // A name of digits only would be taken for the id with that number.
        let name = if name.chars().all(|c| c.is_ascii_digit()) { format!("_{name}") } else { name };
        let mut candidates = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}_{n}")));
        let own = candidates.find(|own| !taken.contains(own)).expect("the candidates never end");
        taken.insert(own.clone());
        names.insert(id, own);
    }
    names
}

/// The text of each `OpString`, by the id as it is written.
fn files(module: &Module) -> BTreeMap<String, String> {
    let string = |instruction: &Instruction| match (
        instruction.class.opcode,
        instruction.result_id,
        &instruction.operands[..],
    ) {
        (Op::String, Some(id), [Operand::LiteralString(text)]) => Some((format!("%{id}"), text.clone())),
        _ => None,
    };
    module.debug_string_source.iter().filter_map(string).collect()
}

/// The line with `%1` replaced by names and single spaces, except inside quotes.
fn rename(line: &str, names: &BTreeMap<Word, String>) -> String {
    match (line.find('"'), line.rfind('"')) {
        (Some(open), Some(close)) if open < close => {
            let (before, after) = (rename_words(&line[..open], names), rename_words(&line[close + 1..], names));
            format!("{before} {} {after}", &line[open..=close]).trim_end().to_string()
        }
        _ => rename_words(line, names),
    }
}

fn rename_words(text: &str, names: &BTreeMap<Word, String>) -> String {
    let word = |word: &str| match word.strip_prefix('%').and_then(|id| names.get(&id.parse().ok()?)) {
        Some(name) => format!("%{name}"),
        None => word.to_string(),
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
