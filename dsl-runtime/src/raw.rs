//! Values as plain little-endian bytes, streamed into files.
//!
//! A raw file holds the values and nothing else, X fastest, then Y, then Z: the order of an array `a[k][j][i]` in C and
//! NumPy. Truth values are bytes that are 0 or 1. The other formats ([`vti`](crate::vti),
//! [`checkpoint`](crate::checkpoint)) store the values of a field the same way, between a head and a tail.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::files;
use crate::kernel::ScalarType;

/// Takes the next bytes of a field, whole values as this machine stores them.
pub(crate) type Sink<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// Writes `values` values. `source` hands them to its sink piece by piece, X fastest, and all of them; its errors are
/// given back as they are. The file is complete or not there.
pub(crate) fn write(
    path: &Path,
    ty: ScalarType,
    values: u64,
    source: impl FnOnce(&mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    stream(path, |out| out.values(ty, values, source))
}

/// Writes a file piece by piece; it is complete or not there.
pub(crate) fn stream(path: &Path, write: impl FnOnce(&mut Output<'_>) -> Result<()>) -> Result<()> {
    let mut failure = None;
    let written = files::replace(path, |file| {
        write(&mut Output { file, path, checksum: crc32fast::Hasher::new() }).map_err(|error| {
            failure = Some(error);
            io::Error::other("the values couldn't be had")
        })
    });
    failure.map_or(written, Err)
}

/// A file that is being written.
pub(crate) struct Output<'a> {
    file: &'a mut BufWriter<File>,
    path: &'a Path,
    checksum: crc32fast::Hasher,
}

impl Output<'_> {
    /// Bytes as they are.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.checksum.update(bytes);
        self.file.write_all(bytes).map_err(|error| self.refused(error.to_string()))
    }

    /// The `values` values that `source` hands out.
    pub(crate) fn values(
        &mut self,
        ty: ScalarType,
        values: u64,
        source: impl FnOnce(&mut Sink<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = 0;
        source(&mut |piece| {
            bytes += piece.len() as u64;
            self.put(&little_endian(piece, ty))
        })?;
        assert_eq!(bytes, values * ty.bytes() as u64, "a source hands out the values that it has");
        Ok(())
    }

    /// The CRC-32 of all bytes so far.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum.clone().finalize()
    }

    /// The error that this file can't be written.
    pub(crate) fn refused(&self, reason: String) -> Error {
        Error::Write { path: self.path.into(), reason }
    }
}

/// Values of this machine as little-endian ones, or the other way round: it is the same exchange.
pub(crate) fn little_endian(bytes: &[u8], ty: ScalarType) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") { bytes.into() } else { reversed(bytes, ty.bytes()).into() }
}

/// Each run of `width` bytes the other way round.
fn reversed(bytes: &[u8], width: usize) -> Vec<u8> {
    bytes.chunks(width).flat_map(|value| value.iter().rev()).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::element::Element;
    use crate::testing::Folder;

    /// Writes values in pieces of two and gives the bytes of the file.
    fn written<T: Element>(values: &[T]) -> Vec<u8> {
        let folder = Folder::new(&format!("raw-{}", T::TYPE));
        let path = folder.path("u.raw");
        write(&path, T::TYPE, values.len() as u64, |sink| {
            values.chunks(2).try_for_each(|piece| {
                let mut bytes = Vec::new();
                piece.iter().for_each(|value| value.append(&mut bytes));
                sink(&bytes)
            })
        })
        .unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn every_type_is_written_as_little_endian_values_and_nothing_else() {
        let floats = [1.5, -0.0, f64::from_bits(0x7ff8_0000_0000_1234)];
        assert_eq!(written(&floats), floats.map(f64::to_le_bytes).concat());
        assert_eq!(written(&[1.5_f32, f32::INFINITY]), [1.5, f32::INFINITY].map(f32::to_le_bytes).concat());
        assert_eq!(written(&[i64::MIN, -2, 7]), [i64::MIN, -2, 7].map(i64::to_le_bytes).concat());
        assert_eq!(written(&[u64::MAX - 1]), (u64::MAX - 1).to_le_bytes());
        assert_eq!(written(&[0x0102_0304]), [4, 3, 2, 1]);
        assert_eq!(written(&[0x0102_0304_u32]), [4, 3, 2, 1]);
        assert_eq!(written(&[-1_i8, 5]), [255, 5]);
        assert_eq!(written(&[255_u8, 5]), [255, 5]);
        assert_eq!(written(&[true, false, true]), [1, 0, 1]);
    }

    #[test]
    fn machines_of_the_other_byte_order_turn_each_value_round() {
        let values = [1.5, -7.25];
        let (big, little) = (values.map(f64::to_be_bytes).concat(), values.map(f64::to_le_bytes).concat());
        assert_eq!((reversed(&big, 8), reversed(&little, 8)), (little, big));
        assert_eq!(reversed(&[1, 0, 1], 1), [1, 0, 1]);
    }

    #[test]
    fn a_source_that_fails_gives_its_own_error_and_the_old_file_stays() {
        let folder = Folder::new("raw-failure");
        let path = folder.path("u.raw");
        fs::write(&path, "old").unwrap();
        let result = write(&path, ScalarType::U8, 4, |sink| {
            sink(&[1, 2])?;
            Err(Error::Stopped { steps: 7, checkpoint: None })
        });
        assert!(matches!(result, Err(Error::Stopped { steps: 7, checkpoint: None })), "{result:?}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_a_write_error() {
        let piece = vec![0; 1 << 16];
        let result =
            write(Path::new("/dev/full"), ScalarType::U8, 1 << 20, |sink| (0..16).try_for_each(|_| sink(&piece)));
        let Err(Error::Write { path, reason }) = result else { panic!("{result:?}") };
        assert!(path == Path::new("/dev/full") && reason.contains("space"), "{reason}");
    }
}
