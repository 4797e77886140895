//! Colours for numbers.

/// How values become colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColourMap {
    /// From dark violet (least) through green to yellow (greatest), ever lighter: for any quantity.
    #[default]
    Sequential,
    /// From dark blue through white to dark red, the darker the farther from the middle: for quantities with a sign,
    /// such as the pressure of a wave. Unless the range is given, the middle is zero.
    Diverging,
}

/// Of equal steps in lightness; those between are mixed.
type Colours = [[u8; 3]; 9];

const SEQUENTIAL: Colours = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// Each blue is as light as the red on the other side of the middle.
const DIVERGING: Colours = [
    [1, 48, 100],
    [3, 104, 203],
    [67, 150, 251],
    [156, 199, 254],
    [245, 245, 245],
    [254, 179, 168],
    [249, 112, 98],
    [218, 56, 48],
    [184, 3, 12],
];

/// The colour of values that are no numbers.
const NOT_A_NUMBER: [u8; 3] = [128, 128, 128];

impl ColourMap {
    /// The colour of a value between 0 and 1.
    pub(crate) fn colour(self, value: f64) -> [u8; 3] {
        if value.is_nan() {
            return NOT_A_NUMBER;
        }
        let colours = self.colours();
        let place = value.clamp(0.0, 1.0) * (colours.len() - 1) as f64;
        let below = (place as usize).min(colours.len() - 2);
        let part = place - below as f64;
        std::array::from_fn(|channel| {
            let (low, high) = (f64::from(colours[below][channel]), f64::from(colours[below + 1][channel]));
            (low + (high - low) * part).round() as u8
        })
    }

    /// The names of the first and the last colour.
    pub(crate) fn ends(self) -> [&'static str; 2] {
        match self {
            Self::Sequential => ["dark violet", "yellow"],
            Self::Diverging => ["dark blue", "dark red"],
        }
    }

    fn colours(self) -> &'static Colours {
        match self {
            Self::Sequential => &SEQUENTIAL,
            Self::Diverging => &DIVERGING,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lightness(map: ColourMap) -> Vec<f64> {
        let lightness = |[r, g, b]: [u8; 3]| 0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b);
        (0..=100).map(|n| lightness(map.colour(f64::from(n) / 100.0))).collect()
    }

    #[test]
    fn sequential_colours_get_lighter_all_the_way() {
        let shades = lightness(ColourMap::Sequential);
        assert!(shades.windows(2).all(|pair| pair[0] < pair[1]), "{shades:?}");
    }

    #[test]
    fn diverging_colours_are_lightest_in_the_middle_and_equally_dark_on_both_sides() {
        let shades = lightness(ColourMap::Diverging);
        assert!(shades[..=50].windows(2).all(|pair| pair[0] < pair[1]), "{shades:?}");
        assert!(shades.iter().zip(shades.iter().rev()).all(|(blue, red)| (blue - red).abs() < 1.5), "{shades:?}");
        let [red, _, blue] = ColourMap::Diverging.colour(0.2);
        assert!(blue > red);
        let [red, _, blue] = ColourMap::Diverging.colour(0.8);
        assert!(red > blue);
    }

    #[test]
    fn values_beyond_the_ends_have_the_colours_of_the_ends() {
        for map in [ColourMap::Sequential, ColourMap::Diverging] {
            assert_eq!((map.colour(-f64::INFINITY), map.colour(7.0)), (map.colour(0.0), map.colour(1.0)));
            assert_eq!(map.colour(f64::NAN), NOT_A_NUMBER);
            assert!((0..=8).all(|n| map.colour(f64::from(n) / 8.0) == map.colours()[n as usize]));
        }
    }
}
