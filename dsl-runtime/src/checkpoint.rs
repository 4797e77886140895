//! Checkpoints: the whole state of a simulation in one file, from which it goes on bit for bit.
//!
//! ```text
//!  0  the mark: 89 "PHALO" 0D 0A
//!  8  u32  version of the format (1)
//! 12  u64  bytes of the header
//! 20  u64  bytes of the file
//! 28  the header: program, grid, steps, then fields, scalars, counters and records, each list after its length
//!     the values of each field in the order of the header, X fastest, without ghosts
//!     u32  CRC-32 of everything before
//! ```
//!
//! All numbers are little-endian. A file is written beside the old one, which keeps its name until the new one is
//! complete and on the disk: a full disk or a killed program costs the new one only. Reading checks the whole file
//! before anything of it is believed, and asks for no more memory than the file has bytes.

mod header;

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) use header::{Counter, Header, StoredField, StoredRecord, StoredScalar};

use crate::error::{Error, Result};
use crate::kernel::ScalarType;
use crate::raw::{self, Sink, little_endian};

/// It isn't text, and whatever takes it for text and changes the ends of its lines destroys it.
const MARK: [u8; 8] = *b"\x89PHALO\r\n";

const VERSION: u32 = 1;

/// Bytes before the header.
const PREFIX: u64 = 28;

/// Bytes of the checksum.
const SUFFIX: u64 = 4;

/// Bytes that are read at once, if whole planes allow.
const CHUNK_BYTES: u64 = 64 << 20;

/// A fingerprint of texts that is the same on every machine and in every build (FNV-1a with 128 bits).
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> u128 {
    let mut print = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for text in texts {
        // With the lengths, "a", "bc" is something else than "ab", "c".
        for byte in (text.len() as u64).to_le_bytes().into_iter().chain(text.bytes()) {
            print = (print ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
    print
}

/// Writes a checkpoint. `source` is called for each field in order, and hands its values to the sink piece by piece, X
/// fastest; its errors are given back as they are. The file is complete or not there, and an older one of that name is
/// as it was until then.
pub(crate) fn write(
    path: &Path,
    header: &Header,
    mut source: impl FnMut(usize, &mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    let head = header.encode();
    raw::stream(path, |out| {
        let refused = |reason: String| Error::Write { path: path.into(), reason };
        let values = header.field_bytes().ok_or_else(|| refused("a field has no cells, or too many".into()))?;
        if let Some(name) = header.repeated() {
            return Err(refused(format!("two things of one kind have the name `{name}`")));
        }
        out.put(&MARK)?;
        out.put(&VERSION.to_le_bytes())?;
        out.put(&(head.len() as u64).to_le_bytes())?;
        out.put(&(PREFIX + head.len() as u64 + values + SUFFIX).to_le_bytes())?;
        out.put(&head)?;
        for (number, field) in header.fields.iter().enumerate() {
            let count = field.cells.iter().map(|&cells| cells as u64).product();
            out.values(field.ty, count, |sink| source(number, sink))?;
        }
        out.put(&out.checksum().to_le_bytes())
    })?;
    keep_name(path);
    Ok(())
}

/// Asks that the new name outlives a power failure. Not every file system can; then the old file is there after one.
fn keep_name(path: &Path) {
    let folder = path.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned()));
    let _ = folder.and_then(|folder| File::open(folder).ok()).map(|folder| folder.sync_all());
}

/// A checkpoint that was found whole.
#[derive(Debug)]
pub(crate) struct Checkpoint<F = File> {
    path: PathBuf,
    file: F,
    header: Header,
    /// Where the values of each field start.
    starts: Vec<u64>,
}

/// Opens a checkpoint and checks all of it.
pub(crate) fn open(path: &Path) -> Result<Checkpoint> {
    let refused = |error: io::Error| Error::Read { path: path.into(), reason: error.to_string() };
    // Asked first: opening a pipe could wait forever.
    let facts = fs::metadata(path).map_err(refused)?;
    if !facts.is_file() {
        return Err(Error::Read { path: path.into(), reason: "it is no regular file".into() });
    }
    let file = File::open(path).map_err(refused)?;
    examine(path, file, facts.len())
}

/// Checks all of a file of `length` bytes that is called `path`.
fn examine<F: Read + Seek>(path: &Path, mut file: F, length: u64) -> Result<Checkpoint<F>> {
    let refused = |error: io::Error| Error::Read { path: path.into(), reason: error.to_string() };
    let damaged = |reason: String| Error::DamagedCheckpoint { path: path.into(), reason };
    let mut prefix = Vec::new();
    file.by_ref().take(PREFIX).read_to_end(&mut prefix).map_err(refused)?;
    if prefix.get(..8) != Some(&MARK) {
        return Err(Error::NoCheckpoint { path: path.into() });
    }
    let too_short = || damaged(format!("it has {length} bytes, and a checkpoint has at least {}", PREFIX + SUFFIX));
    let Some(&[a, b, c, d]) = prefix.get(8..12) else { return Err(too_short()) };
    let found = u32::from_le_bytes([a, b, c, d]);
    if found != VERSION {
        return Err(Error::CheckpointVersion { path: path.into(), found, known: VERSION });
    }
    let number = |at: usize| Some(u64::from_le_bytes(prefix.get(at..at + 8)?.try_into().ok()?));
    let (Some(head), Some(expected)) = (number(12), number(20)) else { return Err(too_short()) };
    if length != expected {
        return Err(damaged(format!("it has {length} bytes, and was written with {expected}")));
    }
    let Some(body) = length.checked_sub(PREFIX + SUFFIX) else { return Err(too_short()) };
    if head > body {
        return Err(damaged("its header reaches past its end".into()));
    }
    let (computed, stored) = checksums(&mut file, length).map_err(refused)?;
    if computed != stored {
        return Err(damaged(format!("its checksum is {computed:08x}, and should be {stored:08x}")));
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(PREFIX)).map_err(refused)?;
    file.by_ref().take(head).read_to_end(&mut bytes).map_err(refused)?;
    let header = Header::decode(&bytes).map_err(|reason| damaged(reason.into()))?;
    if header.field_bytes() != Some(body - head) {
        return Err(damaged("it has more or fewer values than its header says".into()));
    }
    let (mut starts, mut start) = (Vec::new(), PREFIX + head);
    for field in &header.fields {
        starts.push(start);
        start += field.bytes().unwrap_or(0);
    }
    let mut checkpoint = Checkpoint { path: path.into(), file, header, starts };
    checkpoint.check_truth_values()?;
    Ok(checkpoint)
}

/// The CRC-32 of a file of `length` bytes, and the one that its end tells.
fn checksums(file: &mut (impl Read + Seek), length: u64) -> io::Result<(u32, u32)> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hasher, mut rest, mut buffer) = (crc32fast::Hasher::new(), length - SUFFIX, vec![0; 1 << 20]);
    while rest > 0 {
        let piece = &mut buffer[..rest.min(1 << 20) as usize];
        file.read_exact(piece)?;
        hasher.update(piece);
        rest -= piece.len() as u64;
    }
    let mut stored = [0; SUFFIX as usize];
    file.read_exact(&mut stored)?;
    Ok((hasher.finalize(), u32::from_le_bytes(stored)))
}

impl<F: Read + Seek> Checkpoint<F> {
    /// Everything but the values of the fields.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Checks that the state belongs to a simulation that would write `expected`; of that, only the form counts, not
    /// the numbers.
    pub(crate) fn fits(&self, expected: &Header) -> Result<()> {
        let difference = self.header.difference(expected);
        difference.map_or(Ok(()), |difference| Err(Error::OtherCheckpoint { path: self.path.clone(), difference }))
    }

    /// Hands the values of a field to `take` as this machine stores them, X fastest: some whole planes normal to Z at
    /// once, with their range, until there are no more. Its errors are given back as they are.
    pub(crate) fn read_field(
        &mut self,
        number: usize,
        mut take: impl FnMut(Range<usize>, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let refused = |error: io::Error| Error::Read { path: self.path.clone(), reason: error.to_string() };
        let &StoredField { ty, cells: [nx, ny, nz], .. } = &self.header.fields[number];
        // The file has that many bytes: `open` has counted them.
        let plane = nx * ny * ty.bytes();
        let most = (CHUNK_BYTES as usize / plane.max(1)).max(1);
        self.file.seek(SeekFrom::Start(self.starts[number])).map_err(refused)?;
        let mut bytes = vec![0; plane * most.min(nz)];
        for first in (0..nz).step_by(most) {
            let planes = first..nz.min(first + most);
            let piece = &mut bytes[..plane * planes.len()];
            self.file.read_exact(piece).map_err(refused)?;
            take(planes, &little_endian(piece, ty))?;
        }
        Ok(())
    }

    /// Native kernels take the bytes of truth values as they are, and only 0 and 1 are values of a `bool`.
    fn check_truth_values(&mut self) -> Result<()> {
        for (field, &start) in self.header.fields.iter().zip(&self.starts) {
            if field.ty != ScalarType::Bool {
                continue;
            }
            let refused = |error: io::Error| Error::Read { path: self.path.clone(), reason: error.to_string() };
            self.file.seek(SeekFrom::Start(start)).map_err(refused)?;
            let values = BufReader::with_capacity(1 << 20, &mut self.file).take(field.bytes().unwrap_or(0));
            for byte in values.bytes() {
                if byte.map_err(refused)? > 1 {
                    let reason = format!("field `{}` holds bytes that are no truth values", field.name);
                    return Err(Error::DamagedCheckpoint { path: self.path.clone(), reason });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
