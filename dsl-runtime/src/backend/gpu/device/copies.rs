//! From boxes of bytes in buffers to what a driver copies.

use super::card::Buffer;
use crate::backend::gpu::driver::{End, Side};
use crate::layout::Region;

/// A box in a run of bytes, with pitches that make sense even along axes with a single row or plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    offset: usize,
    row_pitch: usize,
    plane_pitch: usize,
    /// Bytes, rows and planes; all 0 if one is.
    pub(super) shape: [usize; 3],
}

impl Rect {
    /// The box of a region; `None` if it doesn't fit so many bytes.
    pub(super) fn new(region: &Region, bytes: usize) -> Option<Self> {
        let Region { offset, row_bytes, rows, planes, row_pitch, plane_pitch } = region.within(bytes)?;
        Some(Self { offset, row_pitch, plane_pitch, shape: [row_bytes, rows, planes] })
    }

    /// Rows that follow one another without gaps.
    pub(super) fn packed(shape: [usize; 3]) -> Self {
        let [bytes, rows, _] = shape;
        Self { offset: 0, row_pitch: bytes, plane_pitch: bytes * rows, shape }
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The bytes in it.
    pub(super) fn bytes(&self) -> usize {
        self.shape.iter().product()
    }

    /// This box in a buffer, for a driver.
    pub(super) fn on_card(&self, buffer: &Buffer) -> End {
        self.at(Side::Card(buffer.card.number()), buffer.address.0)
    }

    /// This box in memory of the host.
    pub(super) fn on_host(&self, start: *const u8) -> End {
        self.at(Side::Host, start as u64)
    }

    fn at(&self, side: Side, start: u64) -> End {
        let Self { offset, row_pitch, plane_pitch, .. } = *self;
        End { side, address: start + offset as u64, row_pitch, plane_pitch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(offset: usize, shape: [usize; 3], row_pitch: usize, plane_pitch: usize) -> Region {
        let [row_bytes, rows, planes] = shape;
        Region { offset, row_bytes, rows, planes, row_pitch, plane_pitch }
    }

    #[test]
    fn boxes_that_fit_get_sensible_pitches() {
        let check = |region: Region, expected: [usize; 3]| {
            let Rect { offset, row_pitch, plane_pitch, .. } = Rect::new(&region, 1000).unwrap();
            assert_eq!([offset, row_pitch, plane_pitch], expected, "{region:?}");
        };
        check(region(8, [10, 3, 2], 20, 100), [8, 20, 100]);
        check(region(8, [10, 1, 2], 7, 100), [8, 100, 100]);
        check(region(8, [10, 3, 1], 20, 7), [8, 20, 60]);
        check(region(8, [10, 1, 1], 0, 0), [8, 10, 10]);
        check(region(5000, [0, 1, 1], 0, 0), [0; 3]);
        for broken in [
            region(991, [10, 1, 1], 10, 10),
            region(0, [10, 2, 1], 9, 100),
            region(0, [10, 2, 2], 20, 30),
            region(0, [10, 2, 2], 20, 50),
            region(usize::MAX, [10, 2, 2], 20, 40),
            region(0, [10, 2, 2], usize::MAX, usize::MAX),
        ] {
            assert_eq!(Rect::new(&broken, 1000), None, "{broken:?}");
        }
    }
}
