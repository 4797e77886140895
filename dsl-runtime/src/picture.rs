//! Pictures of planes: a colour for each cell.

use std::io::{self, Write};

use crate::element::Element;
use crate::error::{Error, Result};
use crate::geometry::AXES;

/// A plane of a grid, named by the axis that is normal to it and the index along that axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plane {
    /// Y to the right, Z up.
    X(usize),
    /// X to the right, Z up.
    Y(usize),
    /// X to the right, Y up.
    Z(usize),
}

impl Plane {
    /// The axis normal to the plane and the index along it.
    pub fn normal(self) -> (usize, usize) {
        match self {
            Self::X(index) => (0, index),
            Self::Y(index) => (1, index),
            Self::Z(index) => (2, index),
        }
    }

    /// The name of the normal axis.
    pub fn axis(self) -> &'static str {
        AXES[self.normal().0]
    }
}

/// The longer side of a picture has at least this many pixels; cells of smaller planes become squares of several.
const LEAST_PIXELS: usize = 512;

/// Colours of equal steps in lightness, from dark violet through green to yellow; those between are mixed.
const COLOURS: [[u8; 3]; 9] = [
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

/// The colour of values that are no numbers.
const NOT_A_NUMBER: [u8; 3] = [128, 128, 128];

/// The colour of a value between 0 and 1.
fn colour(value: f64) -> [u8; 3] {
    if value.is_nan() {
        return NOT_A_NUMBER;
    }
    let place = value.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let below = (place as usize).min(COLOURS.len() - 2);
    let part = place - below as f64;
    std::array::from_fn(|channel| {
        let (low, high) = (f64::from(COLOURS[below][channel]), f64::from(COLOURS[below + 1][channel]));
        (low + (high - low) * part).round() as u8
    })
}

/// Writes `values`, rows of `width` from the bottom up, as a PNG; the texts in it say what the colours mean.
pub(crate) fn write_png<T: Element>(file: impl Write, title: &str, values: &[T], width: usize) -> io::Result<()> {
    let height = values.len() / width.max(1);
    let scale = LEAST_PIXELS.div_ceil(width.max(height).max(1));
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let range = finite.fold(None, |range: Option<(T, T)>, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((if value < low { value } else { low }, if value > high { value } else { high }))
    });
    let pixels = |cells: usize| {
        let pixels = cells.checked_mul(scale).and_then(|pixels| u32::try_from(pixels).ok());
        pixels.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the plane has too many cells for a picture"))
    };
    let mut encoder = png::Encoder::new(file, pixels(width)?, pixels(height)?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let colours = range.map_or_else(
        || "no finite value".into(),
        |(low, high)| format!("{} (dark violet) to {} (yellow)", low.show(), high.show()),
    );
    // Keywords and texts are Latin-1 in PNG; a title that isn't is left out.
    if title.is_ascii() {
        encoder.add_text_chunk("Title".into(), title.into())?;
    }
    encoder.add_text_chunk("Description".into(), format!("Values from {colours}; grey is not a number."))?;
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    // A constant plane has the middle colour.
    let shade = |value: T| match range {
        Some((low, high)) if low < high => value.between(low, high),
        Some(_) | None if value.partial_cmp(&value).is_none() => f64::NAN,
        Some(_) | None => 0.5,
    };
    for row in values.chunks_exact(width.max(1)).rev() {
        let line: Vec<u8> = row.iter().flat_map(|&value| [colour(shade(value))].repeat(scale).concat()).collect();
        for _ in 0..scale {
            stream.write_all(&line)?;
        }
    }
    stream.finish().map_err(io::Error::from)
}

/// The two axes of a plane, to the right and up, and its index checked against the grid.
pub(crate) fn axes(field: &str, plane: Plane, extent: [usize; 3]) -> Result<[usize; 2]> {
    let (normal, index) = plane.normal();
    if index < extent[normal] {
        return Ok([[1, 2], [0, 2], [0, 1]][normal]);
    }
    let mut at = [0; 3];
    at[normal] = index;
    Err(Error::OutsideGrid { field: field.into(), at, extent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture<T: Element>(values: &[T], width: usize) -> (png::OutputInfo, Vec<u8>, String) {
        let mut file = Vec::new();
        write_png(&mut file, "u at Z = 1", values, width).unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(file)).read_info().unwrap();
        let texts = &reader.info().uncompressed_latin1_text;
        let texts = texts.iter().map(|chunk| format!("{}: {}\n", chunk.keyword, chunk.text)).collect();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info, pixels, texts)
    }

    #[test]
    fn small_planes_become_large_squares_with_the_first_row_at_the_bottom() {
        let (info, pixels, texts) = picture(&[0.0, 0.0, 1.0, 4.0, 2.0, f64::NAN], 3);
        assert_eq!((info.width, info.height), (513, 342));
        let pixel = |x: usize, y: usize| &pixels[(y * 513 + x) * 3..][..3];
        assert_eq!(pixel(0, 341), COLOURS[0]);
        assert_eq!(pixel(170, 0), COLOURS[8]);
        assert_eq!(pixel(171, 0), COLOURS[4]);
        assert_eq!(pixel(512, 170), NOT_A_NUMBER);
        assert_eq!(pixel(512, 171), COLOURS[2]);
        assert!(
            texts.contains("Title: u at Z = 1\n") && texts.contains("from 0e0 (dark violet) to 4e0 (yellow)"),
            "{texts}"
        );
    }

    #[test]
    fn integers_and_truth_values_have_pictures_with_their_exact_range() {
        let check = |(_, pixels, texts): (_, Vec<u8>, String), range: &str| {
            assert!(texts.contains(&format!("from {range};")), "{texts}");
            assert_eq!((&pixels[..3], &pixels[511 * 3..512 * 3]), (&COLOURS[0][..], &COLOURS[8][..]));
        };
        let far = i64::MAX - 2;
        check(picture(&[far, far + 2], 2), "9223372036854775805 (dark violet) to 9223372036854775807 (yellow)");
        check(picture(&[i8::MIN, i8::MAX], 2), "-128 (dark violet) to 127 (yellow)");
        check(picture(&[0, 7, 9_u32, u32::MAX], 4), "0 (dark violet) to 4294967295 (yellow)");
        check(picture(&[false, true], 2), "false (dark violet) to true (yellow)");
        assert_eq!(picture(&[true; 6], 3).1[..3], COLOURS[4]);
        assert_eq!(picture(&[f64::MIN, 0.0, f64::MAX], 3).1[171 * 3..172 * 3], COLOURS[4]);
    }

    #[test]
    fn large_planes_have_a_pixel_for_each_cell() {
        let values: Vec<_> = (0..700).map(f64::from).collect();
        assert_eq!((picture(&values, 700).0.width, picture(&values, 1).0.height), (700, 700));
    }

    #[test]
    fn constant_and_undefined_planes_have_a_colour() {
        assert_eq!(picture(&[7.0], 1).1[..3], COLOURS[4]);
        assert_eq!(picture(&[f64::NAN], 1).1[..3], NOT_A_NUMBER);
        let (_, pixels, _) = picture(&[f64::INFINITY, f64::NEG_INFINITY, 0.0, 1.0], 4);
        assert_eq!((&pixels[..3], &pixels[128 * 3..][..3]), (&COLOURS[8][..], &COLOURS[0][..]));
    }

    #[test]
    fn lightness_rises_from_colour_to_colour() {
        let lightness = |[r, g, b]: [u8; 3]| 0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b);
        let shades: Vec<_> = (0..=100).map(|n| lightness(colour(f64::from(n) / 100.0))).collect();
        assert!(shades.windows(2).all(|pair| pair[0] < pair[1]), "{shades:?}");
    }

    #[test]
    fn a_plane_outside_the_grid_is_refused() {
        assert_eq!(axes("u", Plane::Y(2), [4, 3, 5]).unwrap(), [0, 2]);
        assert!(matches!(axes("u", Plane::X(4), [4, 3, 5]), Err(Error::OutsideGrid { at: [4, 0, 0], .. })));
    }
}
