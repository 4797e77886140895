//! Which planes of the grid belong to which device.

use crate::error::{Error, Result};
use crate::geometry::{AXES, Box3, Extent};
use crate::runs::{Run, common};
use crate::shape::Shape;

/// A grid in subdomains of whole planes: where each of them starts along Z. Fields with more or fewer planes than the
/// grid are split at the same places; the last subdomain takes what comes after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    starts: Vec<i64>,
}

impl Split {
    /// The split of a grid into these subdomains, the lowest first.
    pub fn of(owned: &[Box3]) -> Self {
        Self { starts: owned.iter().map(|part| part.lo[SPLIT]).collect() }
    }

    /// The number of subdomains.
    pub fn parts(&self) -> usize {
        self.starts.len()
    }

    /// The first plane of a subdomain.
    pub fn start(&self, part: usize) -> i64 {
        self.starts[part]
    }

    /// The planes of a field that a subdomain owns: all of one that doesn't extend along Z.
    pub fn owned(&self, part: usize, shape: &Shape) -> Run {
        let cells = shape.cells[SPLIT] as i64;
        if shape.axes[SPLIT] { common(self.planes(part), (0, cells)) } else { (0, cells) }
    }

    /// The cells of a box that a subdomain owns.
    pub fn part(&self, part: usize, whole: &Box3) -> Box3 {
        let mut own = *whole;
        (own.lo[SPLIT], own.hi[SPLIT]) = common(self.planes(part), (whole.lo[SPLIT], whole.hi[SPLIT]));
        if own.is_empty() { Box3::EMPTY } else { own }
    }

    /// The subdomain that owns a plane.
    pub fn owner(&self, plane: i64) -> usize {
        self.starts.partition_point(|&start| start <= plane).saturating_sub(1)
    }

    fn planes(&self, part: usize) -> Run {
        let lo = if part == 0 { i64::MIN } else { self.starts[part] };
        (lo, self.starts.get(part + 1).copied().unwrap_or(i64::MAX))
    }
}

/// The axis along which a grid is split.
const SPLIT: usize = 2;

/// A grid in `parts` subdomains of whole planes, the lowest first.
///
/// The planes of `updated` are shared out evenly, the remainder to the lowest subdomains; planes that no stage
/// updates stay with the first and the last one. `supply` is the number of planes that a subdomain gives to the halo
/// of its upper and of its lower neighbour: with several parts, each must own that many.
pub fn partition(extent: Extent, updated: &Box3, parts: usize, supply: [u32; 2]) -> Result<Vec<Box3>> {
    let whole = extent.whole();
    if parts <= 1 {
        return Ok(vec![whole]);
    }
    let updated = whole.intersection(updated);
    let needed = supply[0].max(supply[1]).max(1) as usize;
    split(&whole, &updated, parts, needed).ok_or_else(|| {
        // More parts than planes never work.
        let fewer = (2..parts.min(updated.size()[SPLIT] + 1)).rev();
        let most = fewer.into_iter().find(|&parts| split(&whole, &updated, parts, needed).is_some()).unwrap_or(1);
        Error::SubdomainTooThin { axis: AXES[SPLIT], cells: extent.cells()[SPLIT], parts, needed, most }
    })
}

/// `whole` in at least two subdomains, unless one of them would have fewer than `needed` planes or none that is
/// updated.
fn split(whole: &Box3, updated: &Box3, parts: usize, needed: usize) -> Option<Vec<Box3>> {
    let planes = updated.size()[SPLIT];
    if planes < parts {
        return None;
    }
    let subdomains = shares(updated.lo[SPLIT], planes, parts).map(|(lo, hi)| {
        let mut owned = *whole;
        (owned.lo[SPLIT], owned.hi[SPLIT]) = (lo, hi);
        owned
    });
    let mut subdomains: Vec<_> = subdomains.collect();
    if let [first, .., last] = subdomains.as_mut_slice() {
        first.lo[SPLIT] = whole.lo[SPLIT];
        last.hi[SPLIT] = whole.hi[SPLIT];
    }
    subdomains.iter().all(|owned| owned.size()[SPLIT] >= needed).then_some(subdomains)
}

/// `count` planes from `lo` in `parts` runs.
fn shares(lo: i64, count: usize, parts: usize) -> impl Iterator<Item = (i64, i64)> {
    let start = move |part: usize| lo + (count / parts * part + part.min(count % parts)) as i64;
    (0..parts).map(move |part| (start(part), start(part + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(planes: usize, margin: i64, parts: usize, supply: [u32; 2]) -> Result<Vec<(i64, i64)>> {
        let extent = Extent::new([3, 2, planes]).unwrap();
        let mut updated = extent.whole();
        updated.lo[2] += margin;
        updated.hi[2] -= margin;
        let subdomains = partition(extent, &updated, parts, supply)?;
        Ok(subdomains.iter().map(|owned| (owned.lo[2], owned.hi[2])).collect())
    }

    #[test]
    fn one_device_owns_everything_however_thin() {
        assert_eq!(split(1, 0, 1, [4, 4]).unwrap(), [(0, 1)]);
        assert_eq!(split(2, 1, 1, [1, 1]).unwrap(), [(0, 2)]);
    }

    #[test]
    fn the_remainder_goes_to_the_lowest_and_fixed_planes_to_the_ends() {
        assert_eq!(split(13, 1, 4, [1, 1]).unwrap(), [(0, 4), (4, 7), (7, 10), (10, 13)]);
        assert_eq!(split(34, 1, 3, [1, 1]).unwrap(), [(0, 12), (12, 23), (23, 34)]);
    }

    #[test]
    fn every_split_covers_each_plane_once_near_equally_or_is_refused() {
        for planes in 1..40 {
            for margin in 0..3 {
                for parts in 1..20 {
                    let updated = planes as i64 - 2 * margin;
                    let Ok(runs) = split(planes, margin, parts, [1, 0]) else {
                        assert!(updated < parts as i64, "{planes} {margin} {parts}");
                        continue;
                    };
                    assert_eq!((runs[0].0, runs[parts - 1].1), (0, planes as i64));
                    assert!(runs.windows(2).all(|pair| pair[0].1 == pair[1].0));
                    let inner = runs.iter().map(|run| run.1.min(planes as i64 - margin) - run.0.max(margin));
                    let sizes: Vec<_> = inner.collect();
                    if parts > 1 {
                        assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[parts - 1] <= 1, "{sizes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_subdomain_thinner_than_the_halo_it_supplies_is_refused_with_the_count_that_works() {
        match split(12, 0, 5, [3, 1]).unwrap_err() {
            Error::SubdomainTooThin { axis, cells, parts, needed, most } => {
                assert_eq!((axis, cells, parts, needed, most), ("Z", 12, 5, 3, 4));
            }
            other => panic!("{other}"),
        }
        assert!(split(12, 0, 4, [3, 1]).is_ok());
        assert!(matches!(split(5, 0, 1000, [0, 0]), Err(Error::SubdomainTooThin { needed: 1, most: 5, .. })));
        assert_eq!(split(5, 0, 5, [0, 0]).unwrap().len(), 5);
    }

    #[test]
    fn a_grid_without_updated_planes_is_not_split() {
        assert!(matches!(split(4, 2, 2, [1, 1]), Err(Error::SubdomainTooThin { most: 1, .. })));
    }
}
