//! Which thread works on which points.

use crate::geometry::Box3;

/// `range` in `threads` boxes, one for each thread and empty for those that would only be in the way: slabs of
/// planes, and where these wouldn't come out even, slabs cut into bands of rows. X isn't cut.
pub(super) fn thread_boxes(range: &Box3, threads: usize) -> Vec<Box3> {
    let [_, rows, planes] = range.size();
    let largest = |(slabs, bands): (usize, usize)| planes.div_ceil(slabs) as u128 * rows.div_ceil(bands) as u128;
    let choices = (1..=threads.min(rows.max(1))).map(|bands| ((threads / bands).clamp(1, planes.max(1)), bands));
    // Of equally good choices the first one has the fewest bands.
    let (slabs, bands) = choices.min_by_key(|&choice| largest(choice)).unwrap_or((1, 1));
    let part = |number: usize| {
        let mut part = *range;
        (part.lo[2], part.hi[2]) = share(range.lo[2], planes, slabs, number / bands);
        (part.lo[1], part.hi[1]) = share(range.lo[1], rows, bands, number % bands);
        part
    };
    (0..threads).map(|number| if number < slabs * bands { part(number) } else { Box3::EMPTY }).collect()
}

/// Share `number` of `count` cells from `lo`, the larger shares first.
pub(super) fn share(lo: i64, count: usize, shares: usize, number: usize) -> (i64, i64) {
    let start = |number: usize| lo + (number * (count / shares) + number.min(count % shares)) as i64;
    (start(number), start(number + 1))
}

/// The boxes that a thread hands to the kernel one after the other: all planes of at most `most_rows` rows, about
/// equally many in each.
pub(super) fn tiles(part: Box3, most_rows: usize) -> impl Iterator<Item = Box3> {
    let rows = if part.is_empty() { 0 } else { part.size()[1] };
    let count = rows.div_ceil(most_rows.max(1));
    (0..count).map(move |number| {
        let mut tile = part;
        (tile.lo[1], tile.hi[1]) = share(part.lo[1], rows, count, number);
        tile
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [[i64; 3]; 9] =
        [[1, 1, 1], [5, 1, 1], [1, 7, 1], [2, 1, 9], [3, 17, 2], [4, 16, 5], [1, 15, 3], [2, 33, 31], [1, 3, 64]];

    #[test]
    fn every_point_belongs_to_one_tile_of_one_thread() {
        for size in SIZES {
            let range = Box3 { lo: [1, 2, 3], hi: [1 + size[0], 2 + size[1], 3 + size[2]] };
            for (threads, most_rows) in [(1, 16), (2, 1), (3, 5), (7, 16), (64, 2), (2, usize::MAX), (1, 0)] {
                let parts = thread_boxes(&range, threads);
                assert_eq!(parts.len(), threads);
                let tiles: Vec<_> = parts.iter().flat_map(|&part| tiles(part, most_rows)).collect();
                assert_eq!(tiles.iter().map(Box3::points).sum::<u64>(), range.points());
                for (number, tile) in tiles.iter().enumerate() {
                    assert!(range.contains(tile) && !tile.is_empty() && tile.size()[1] <= most_rows.max(1));
                    assert!(tiles[..number].iter().all(|other| other.intersection(tile).is_empty()));
                }
            }
        }
    }

    #[test]
    fn the_work_is_shared_out_evenly() {
        for (size, threads, largest) in
            [([8, 8, 8], 2, 256), ([1, 254, 1], 2, 127), ([1, 8, 3], 6, 4), ([4, 1, 5], 64, 4)]
        {
            let range = Box3 { lo: [0; 3], hi: size };
            let found = thread_boxes(&range, threads).iter().map(Box3::points).max();
            assert_eq!(found, Some(largest), "{size:?} {threads}");
        }
    }

    #[test]
    fn tiles_have_about_equally_many_rows() {
        let part = Box3 { lo: [0; 3], hi: [9, 33, 2] };
        assert_eq!(tiles(part, 16).map(|tile| tile.size()).collect::<Vec<_>>(), [[9, 11, 2]; 3]);
    }

    #[test]
    fn nothing_is_nothing_for_every_thread() {
        assert!(thread_boxes(&Box3::EMPTY, 3).iter().all(Box3::is_empty));
        assert_eq!(tiles(Box3::EMPTY, 4).count(), 0);
    }
}
