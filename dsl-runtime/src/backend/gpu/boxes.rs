//! Copies of boxes in as few dimensions as they really have.

use super::driver::End;

/// The same bytes as those of `shape` (bytes, rows, planes) between the ends, with rows and planes that lie one after the
/// other at both ends taken together: a shape of one row and one plane is a line, one of one plane is rows.
pub(super) fn reduced(mut from: End, mut to: End, shape: [usize; 3]) -> (End, End, [usize; 3]) {
    let [mut bytes, mut rows, mut planes] = shape;
    if planes > 1 && rows > 1 && both(&from, &to, |end| end.plane_pitch == end.row_pitch * rows) {
        (rows, planes) = (rows * planes, 1);
    }
    if rows > 1 && both(&from, &to, |end| end.row_pitch == bytes) {
        (bytes, rows) = (bytes * rows, 1);
    }
    if rows == 1 && planes > 1 {
        // Planes of one row each are the rows of one plane.
        (rows, planes) = (planes, 1);
        (from.row_pitch, to.row_pitch) = (from.plane_pitch, to.plane_pitch);
        if both(&from, &to, |end| end.row_pitch == bytes) {
            (bytes, rows) = (bytes * rows, 1);
        }
    }
    (from, to, [bytes, rows, planes])
}

/// Bytes from one row to the next at most, for copies of rows.
pub(super) const MAX_PITCH: usize = i32::MAX as usize;

/// Whether one call can describe planes: whole rows lie between them.
pub(super) fn describes_planes(end: &End) -> bool {
    end.row_pitch <= MAX_PITCH && end.row_pitch > 0 && end.plane_pitch.is_multiple_of(end.row_pitch)
}

fn both(from: &End, to: &End, holds: impl Fn(&End) -> bool) -> bool {
    holds(from) && holds(to)
}

/// The planes of a box, each as a pair of ends.
pub(super) fn planes(from: End, to: End, count: usize) -> impl Iterator<Item = (End, End)> {
    (0..count).map(move |z| (moved(from, z * from.plane_pitch), moved(to, z * to.plane_pitch)))
}

/// The rows of a plane, each as a pair of ends.
pub(super) fn rows(from: End, to: End, count: usize) -> impl Iterator<Item = (End, End)> {
    (0..count).map(move |y| (moved(from, y * from.row_pitch), moved(to, y * to.row_pitch)))
}

fn moved(end: End, bytes: usize) -> End {
    End { address: end.address + bytes as u64, ..end }
}

#[cfg(test)]
mod tests {
    use super::super::driver::Side;
    use super::*;

    fn end(address: u64, row_pitch: usize, plane_pitch: usize) -> End {
        End { side: Side::Host, address, row_pitch, plane_pitch }
    }

    /// Where each byte of a copy comes from and goes to.
    fn bytes(from: End, to: End, [bytes, rows_in, planes_in]: [usize; 3]) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        for (from, to) in planes(from, to, planes_in) {
            for (from, to) in rows(from, to, rows_in) {
                all.extend((0..bytes as u64).map(|byte| (from.address + byte, to.address + byte)));
            }
        }
        all
    }

    #[test]
    fn what_lies_together_is_copied_together() {
        let check = |from: (usize, usize), to: (usize, usize), shape, expected| {
            let (from, to) = (end(1000, from.0, from.1), end(5000, to.0, to.1));
            let (fewer_from, fewer_to, fewer) = reduced(from, to, shape);
            assert_eq!(fewer, expected, "{from:?} {to:?} {shape:?}");
            assert_eq!(bytes(fewer_from, fewer_to, fewer), bytes(from, to, shape), "{from:?} {to:?} {shape:?}");
        };
        // A row; what the pitches say then doesn't matter.
        check((8, 8), (64, 640), [8, 1, 1], [8, 1, 1]);
        // Rows and planes without gaps.
        check((16, 80), (16, 80), [16, 5, 1], [80, 1, 1]);
        check((16, 80), (16, 80), [16, 5, 3], [240, 1, 1]);
        // Rows with gaps, at one end or at both.
        check((32, 320), (16, 80), [16, 5, 1], [16, 5, 1]);
        check((32, 320), (48, 480), [16, 5, 1], [16, 5, 1]);
        // Planes whose rows follow one another at both ends.
        check((32, 160), (16, 80), [16, 5, 3], [16, 15, 1]);
        check((32, 160), (16, 96), [16, 5, 3], [16, 5, 3]);
        // Planes of whole rows, and of one row.
        check((16, 96), (16, 80), [16, 5, 3], [80, 3, 1]);
        check((16, 96), (32, 160), [16, 1, 3], [16, 3, 1]);
        check((16, 16), (16, 16), [16, 1, 3], [48, 1, 1]);
        check((32, 320), (16, 160), [16, 5, 3], [16, 5, 3]);
        check((32, 16), (8, 16), [16, 1, 4], [64, 1, 1]);
    }

    #[test]
    fn every_small_box_is_copied_whole() {
        for pitches in 0..16_usize {
            let row = |bit: usize, bytes: usize| bytes + 3 * (pitches >> bit & 1);
            for (x, y, z) in (1..4).flat_map(|x| (1..4).flat_map(move |y| (1..4).map(move |z| (x, y, z)))) {
                let plane = |bit: usize, row: usize| row * (y + 2 * (pitches >> bit & 1));
                let (from, to) = (end(0, row(0, x), plane(1, row(0, x))), end(900, row(2, x), plane(3, row(2, x))));
                let (fewer_from, fewer_to, fewer) = reduced(from, to, [x, y, z]);
                assert_eq!(bytes(fewer_from, fewer_to, fewer), bytes(from, to, [x, y, z]));
                assert!(fewer.iter().skip_while(|&&n| n > 1).all(|&n| n == 1) || x == 1, "{fewer:?}");
            }
        }
    }
}
