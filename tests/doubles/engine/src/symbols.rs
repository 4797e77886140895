//! Copies of libraries that lack entry points.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Sections of an ELF file that hold symbols of dynamic libraries.
const DYNSYM: u64 = 11;
const SYMBOL_BYTES: usize = 24;

/// Copies a shared library so that a look-up of these names in the copy finds nothing. A name that the library doesn't have is
/// an error.
pub fn without_symbols(library: &Path, names: &[&str], to: &Path) -> Result<()> {
    let mut image = fs::read(library)?;
    let symbols = symbols(&image).ok_or_else(|| wrong(format!("{} is no 64-bit ELF library", library.display())))?;
    for name in names {
        let found = symbols.iter().find(|(_, found)| found == name.as_bytes());
        let (at, _) = found.ok_or_else(|| wrong(format!("{} has no `{name}`", library.display())))?;
        // A symbol without a name is found by nobody, and what remains of the hash table leads to it only.
        image[*at..*at + 4].fill(0);
    }
    fs::write(to, image)
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}

/// Where the symbols lie in the file, and their names.
fn symbols(image: &[u8]) -> Option<Vec<(usize, Vec<u8>)>> {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = image.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    // 64 bits, the lowest byte first.
    image.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (table, entry, count) = (number(0x28, 8)? as usize, number(0x3A, 2)? as usize, number(0x3C, 2)? as usize);
    let section = |index: usize| table + index * entry;
    let dynamic = (0..count).map(section).find(|at| number(at + 4, 4) == Some(DYNSYM))?;
    let (start, bytes) = (number(dynamic + 24, 8)? as usize, number(dynamic + 32, 8)? as usize);
    let names = number(section(number(dynamic + 40, 4)? as usize) + 24, 8)? as usize;
    let name = |at: usize| {
        let text = image.get(names + number(at, 4)? as usize..)?;
        Some((at, text.split(|byte| *byte == 0).next()?.to_vec()))
    };
    (start..start + bytes).step_by(SYMBOL_BYTES).map(name).collect()
}
