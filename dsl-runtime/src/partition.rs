//! Which planes of the grid belong to which device.

use std::fmt;
use std::str::FromStr;

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

/// How the planes of a grid are shared out among devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Division {
    /// Near-equally, the remainder to the lowest (the default).
    #[default]
    Even,
    /// In proportion to these numbers, one for each device.
    Shares(Vec<f64>),
    /// In proportion to the measured copy bandwidth of each device.
    Measured,
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even => f.write_str("even"),
            Self::Measured => f.write_str("measured"),
            Self::Shares(shares) => f.write_str(&shares.iter().map(f64::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for Division {
    type Err = Error;

    /// `even`, `measured`, or numbers such as `3,1`.
    fn from_str(text: &str) -> Result<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "even" => Ok(Self::Even),
            "measured" => Ok(Self::Measured),
            numbers => {
                let shares: Result<Vec<f64>, _> = numbers.split(',').map(|share| share.trim().parse()).collect();
                let wrong = |_| Error::Division {
                    asked: text.into(),
                    reason: "it is `even`, `measured`, or one number for each device, as in `3,1`".into(),
                };
                shares.map(Self::Shares).map_err(wrong)
            }
        }
    }
}

/// A grid in subdomains of whole planes, the lowest first, in proportion to `shares`, one for each; equal ones give
/// the remainder to the lowest. Every subdomain has a plane at least.
pub fn partition(extent: Extent, shares: &[f64]) -> Result<Vec<Box3>> {
    let whole = extent.whole();
    let (planes, parts) = (extent.cells()[SPLIT], shares.len());
    if parts <= 1 {
        return Ok(vec![whole]);
    }
    let wrong = |reason: String| {
        let asked = shares.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        Err(Error::Division { asked, reason })
    };
    if let Some(share) = shares.iter().find(|share| !(share.is_finite() && **share > 0.0)) {
        return wrong(format!("{share} is no share: all are greater than 0"));
    }
    if planes < parts {
        return Err(Error::MoreDevicesThanPlanes { axis: AXES[SPLIT], cells: planes, devices: parts });
    }
    let mut start = whole.lo[SPLIT];
    let subdomains = counts(planes, shares).into_iter().map(|count| {
        let mut owned = whole;
        (owned.lo[SPLIT], owned.hi[SPLIT]) = (start, start + count as i64);
        start += count as i64;
        owned
    });
    Ok(subdomains.collect())
}

/// `planes` in proportion to `shares`, at least one each.
fn counts(planes: usize, shares: &[f64]) -> Vec<usize> {
    // One each first, so that nobody goes without.
    let (rest, total) = (planes - shares.len(), shares.iter().sum::<f64>());
    let wanted: Vec<f64> = shares.iter().map(|share| (planes as f64 * share / total - 1.0).max(0.0)).collect();
    let scale = rest as f64 / wanted.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let exact: Vec<f64> = wanted.iter().map(|wanted| wanted * scale).collect();
    // Equal shares must not differ by how they were rounded.
    let floor = |exact: f64| (exact + 1e-9).floor();
    let mut counts: Vec<usize> = exact.iter().map(|&exact| floor(exact) as usize).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let fraction = |part: usize| ((exact[part] - floor(exact[part])) * 1e9).round();
    order.sort_by(|&a, &b| fraction(b).total_cmp(&fraction(a)));
    let given: usize = counts.iter().sum();
    for turn in 0..rest.saturating_sub(given) {
        counts[order[turn % order.len()]] += 1;
    }
    counts.iter().map(|count| count + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(planes: usize, shares: &[f64]) -> Result<Vec<usize>> {
        let subdomains = partition(Extent::new([3, 2, planes]).unwrap(), shares)?;
        assert_eq!((subdomains[0].lo[2], subdomains[subdomains.len() - 1].hi[2]), (0, planes as i64));
        assert!(subdomains.windows(2).all(|pair| pair[0].hi[2] == pair[1].lo[2]));
        Ok(subdomains.iter().map(|owned| owned.size()[2]).collect())
    }

    #[test]
    fn one_device_owns_everything_however_thin() {
        assert_eq!(split(1, &[1.0]).unwrap(), [1]);
    }

    #[test]
    fn the_remainder_goes_to_the_lowest() {
        assert_eq!(split(13, &[1.0; 4]).unwrap(), [4, 3, 3, 3]);
        assert_eq!(split(34, &[0.1; 3]).unwrap(), [12, 11, 11]);
    }

    #[test]
    fn equal_shares_are_near_equal_and_others_in_proportion() {
        for planes in 1..60 {
            for parts in 1..=planes.min(20) {
                let counts = split(planes, &vec![1.0 / 3.0; parts]).unwrap();
                assert!(counts.is_sorted_by(|a, b| a >= b) && counts[0] - counts[parts - 1] <= 1, "{counts:?}");
            }
        }
        assert_eq!(split(100, &[3.0, 1.0]).unwrap(), [75, 25]);
        assert_eq!(split(10, &[1e6, 1.0, 1.0]).unwrap(), [8, 1, 1]);
        for planes in 5..40 {
            let counts = split(planes, &[1.0, 2.0, 0.5, 4.0]).unwrap();
            assert!(counts.iter().all(|&count| count >= 1) && counts.iter().sum::<usize>() == planes, "{counts:?}");
        }
    }

    #[test]
    fn more_devices_than_planes_and_odd_shares_are_refused() {
        let refused = split(5, &[1.0; 7]);
        assert!(matches!(refused, Err(Error::MoreDevicesThanPlanes { axis: "Z", cells: 5, devices: 7 })));
        for wrong in [[1.0, 0.0], [1.0, -2.0], [f64::NAN, 1.0], [f64::INFINITY, 1.0]] {
            assert!(matches!(split(9, &wrong), Err(Error::Division { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn divisions_are_read_from_text() {
        assert_eq!("even".parse::<Division>().unwrap(), Division::Even);
        assert_eq!("Measured".parse::<Division>().unwrap(), Division::Measured);
        assert_eq!("3, 1".parse::<Division>().unwrap(), Division::Shares(vec![3.0, 1.0]));
        assert!(matches!("3,x".parse::<Division>(), Err(Error::Division { .. })));
    }

    #[test]
    fn fields_with_more_or_fewer_planes_are_split_at_the_same_places() {
        let split = Split::of(&partition(Extent::new([1, 1, 10]).unwrap(), &[1.0; 3]).unwrap());
        let shape = |planes, along_z| Shape {
            name: String::new(),
            ty: crate::kernel::ScalarType::F64,
            axes: [true, true, along_z],
            cells: [1, 1, planes],
            faces: Default::default(),
        };
        let owned = |shape: &Shape| [0, 1, 2].map(|part| split.owned(part, shape));
        assert_eq!(owned(&shape(11, true)), [(0, 4), (4, 7), (7, 11)]);
        assert_eq!(owned(&shape(9, true)), [(0, 4), (4, 7), (7, 9)]);
        assert_eq!(owned(&shape(1, false)), [(0, 1); 3]);
        assert!([0, 3, 4, 6, 7, 12].map(|plane| split.owner(plane)) == [0, 0, 1, 1, 2, 2]);
        let beyond = owned(&shape(5, true))[2];
        assert!(crate::runs::is_empty(beyond), "{beyond:?}");
    }
}
