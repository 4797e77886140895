//! The spread of repeated measurements.

/// The least, the middle and the largest of some measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of measurements, of which there must be at least one; else all is not a number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let median = f64::midpoint(at(count.saturating_sub(1) / 2), at(count / 2));
        Self { min: at(0), median, max: at(count.saturating_sub(1)) }
    }

    /// `median (min..max)` with so many decimals.
    pub fn text(&self, decimals: usize) -> String {
        let Self { min, median, max } = self;
        format!("{median:.decimals$} ({min:.decimals$}..{max:.decimals$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_found_in_any_order() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 8.0]), Spread { min: 1.0, median: 3.0, max: 8.0 });
        assert_eq!(Spread::of([5.0]), Spread { min: 5.0, median: 5.0, max: 5.0 });
        assert!(Spread::of([]).median.is_nan());
        assert_eq!(Spread::of([1.0, 2.0, 4.0]).text(2), "2.00 (1.00..4.00)");
    }
}
