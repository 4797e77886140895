//! Sets of planes: runs of whole numbers along the axis that a grid is split along.

/// The first plane and one past the last; empty unless the first is less.
pub type Run = (i64, i64);

/// The planes common to two runs.
pub fn common(one: Run, other: Run) -> Run {
    (one.0.max(other.0), one.1.min(other.1))
}

/// Whether there is no plane.
pub fn is_empty(run: Run) -> bool {
    run.0 >= run.1
}

/// The smallest run that holds both.
pub fn hull(one: Run, other: Run) -> Run {
    match (is_empty(one), is_empty(other)) {
        (true, _) => other,
        (false, true) => one,
        (false, false) => (one.0.min(other.0), one.1.max(other.1)),
    }
}

/// Any set of planes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs(Vec<Run>);

impl Runs {
    /// The planes as runs that don't touch, the lowest first.
    pub fn runs(&self) -> &[Run] {
        &self.0
    }

    /// Whether there is no plane.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds planes.
    pub fn add(&mut self, run: Run) {
        if is_empty(run) {
            return;
        }
        let mut all = run;
        self.0.retain(|&known| {
            let apart = known.1 < run.0 || run.1 < known.0;
            if !apart {
                all = hull(all, known);
            }
            apart
        });
        let place = self.0.partition_point(|known| known.0 < all.0);
        self.0.insert(place, all);
    }

    /// Takes planes away.
    pub fn remove(&mut self, run: Run) {
        self.0 = self.0.iter().flat_map(|&known| pieces(known, run)).collect();
    }

    /// The planes of `run` that are not in the set.
    pub fn missing_of(&self, run: Run) -> Vec<Run> {
        let whole = if is_empty(run) { Vec::new() } else { vec![run] };
        self.0.iter().fold(whole, |rest, &known| rest.into_iter().flat_map(|run| pieces(run, known)).collect())
    }

    /// The planes of `run` that are in the set.
    pub fn common(&self, run: Run) -> impl Iterator<Item = Run> {
        self.0.iter().map(move |&known| common(known, run)).filter(|&run| !is_empty(run))
    }
}

impl From<Run> for Runs {
    fn from(run: Run) -> Self {
        Self::from_iter([run])
    }
}

impl FromIterator<Run> for Runs {
    fn from_iter<I: IntoIterator<Item = Run>>(runs: I) -> Self {
        let mut all = Self::default();
        runs.into_iter().for_each(|run| all.add(run));
        all
    }
}

/// The planes of `run` outside of `hole`.
fn pieces(run: Run, hole: Run) -> impl Iterator<Item = Run> {
    let hole = if is_empty(common(run, hole)) { (run.1, run.1) } else { hole };
    [(run.0, run.1.min(hole.0)), (run.0.max(hole.1), run.1)].into_iter().filter(|&run| !is_empty(run))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::noise;

    fn planes(runs: &[Run]) -> BTreeSet<i64> {
        runs.iter().flat_map(|&(lo, hi)| lo..hi).collect()
    }

    #[test]
    fn runs_are_sets() {
        let mut random = noise(3);
        let mut run = || {
            let lo = (random() * 20.0) as i64 - 10;
            (lo, lo + (random() * 8.0) as i64)
        };
        let (mut set, mut expected) = (Runs::default(), BTreeSet::new());
        for round in 0..2000 {
            let (added, removed, asked) = (run(), run(), run());
            set.add(added);
            expected.extend(added.0..added.1);
            if round % 2 == 0 {
                set.remove(removed);
                expected.retain(|plane| !(removed.0..removed.1).contains(plane));
            }
            assert_eq!(planes(set.runs()), expected);
            assert!(set.runs().windows(2).all(|pair| pair[0].1 < pair[1].0), "{set:?}");
            let asked_planes = planes(&[asked]);
            assert_eq!(planes(&set.missing_of(asked)), asked_planes.difference(&expected).copied().collect());
            assert_eq!(
                planes(&set.common(asked).collect::<Vec<_>>()),
                asked_planes.intersection(&expected).copied().collect()
            );
        }
    }
}
