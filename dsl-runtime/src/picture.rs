//! Pictures of planes: a colour for each cell.

use std::io::{self, Write};

use crate::colour::ColourMap;
use crate::element::{Element, Primitive};
use crate::error::{Error, Result};
use crate::geometry::AXES;
use crate::kernel::ScalarType;

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

/// A picture of a plane: which colours, and for which values.
///
/// A [`Plane`] alone is a picture too, with the first colour map and a range from its least value to its greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Picture {
    plane: Plane,
    map: ColourMap,
    range: Option<[f64; 2]>,
}

impl From<Plane> for Picture {
    fn from(plane: Plane) -> Self {
        Self::of(plane)
    }
}

impl Picture {
    /// A picture of this plane.
    pub fn of(plane: Plane) -> Self {
        Self { plane, map: ColourMap::default(), range: None }
    }

    /// With these colours.
    pub fn map(self, map: ColourMap) -> Self {
        Self { map, ..self }
    }

    /// With the first colour for `low` and less, and the last one for `high` and more: pictures of one series, or of two
    /// fields, compare when they have the same range. Without it, the range is that of the values; for
    /// [`ColourMap::Diverging`] it reaches as far below zero as above.
    pub fn range(self, low: f64, high: f64) -> Self {
        Self { range: Some([low, high]), ..self }
    }

    /// The plane that it shows.
    pub fn plane(self) -> Plane {
        self.plane
    }

    /// Refuses a range without values between its ends.
    pub(crate) fn check(self) -> Result<()> {
        match self.range {
            Some([low, high]) if !(low < high && low.is_finite() && high.is_finite()) => {
                Err(Error::ColourRange { low, high })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The scale for these values.
    fn scale<T: Element>(self, values: &[T]) -> Scale<T> {
        if let Some([low, high]) = self.range {
            return Scale::Fixed(low, high);
        }
        let finite = values.iter().copied().filter(|value| value.is_finite());
        let range = finite.fold(None, |range: Option<(T, T)>, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((if value < low { value } else { low }, if value > high { value } else { high }))
        });
        match (range, self.map) {
            (None, _) => Scale::Unknown,
            (Some((low, high)), ColourMap::Sequential) => Scale::Values(low, high),
            (Some((low, high)), ColourMap::Diverging) => {
                let most = number(low).abs().max(number(high).abs());
                // Not the negative zero.
                Scale::Fixed(0.0 - most, most)
            }
        }
    }
}

/// Which values have the first colour and the last one.
#[derive(Clone, Copy)]
enum Scale<T> {
    /// There is no finite value.
    Unknown,
    /// The least and the greatest value.
    Values(T, T),
    /// Two numbers.
    Fixed(f64, f64),
}

impl<T: Element> Scale<T> {
    /// Where a value lies between the ends (0 and 1); not a number when there is no telling. If all values are one, it
    /// lies in the middle.
    fn place(self, value: T) -> f64 {
        match self {
            Self::Values(low, high) if low < high => value.between(low, high),
            Self::Fixed(low, high) if low < high => number(value).between(low, high),
            Self::Unknown | Self::Values(..) | Self::Fixed(..) => {
                if value.partial_cmp(&value).is_none() {
                    f64::NAN
                } else {
                    0.5
                }
            }
        }
    }

    /// What the colours mean.
    fn describe(self, map: ColourMap) -> String {
        let [first, last] = map.ends();
        let between = |low: String, high: String| format!("{low} ({first}) to {high} ({last})");
        match self {
            Self::Unknown => "no finite value".into(),
            Self::Values(low, high) => between(low.show(), high.show()),
            Self::Fixed(low, high) => between(low.show(), high.show()),
        }
    }
}

/// The number nearest to a value.
fn number<T: Element>(value: T) -> f64 {
    let word = value.to_word();
    match T::TYPE {
        ScalarType::F64 => f64::from_bits(word),
        ScalarType::F32 => f32::from_word(word).into(),
        ScalarType::I64 => i64::from_word(word) as f64,
        ScalarType::I32 => i32::from_word(word).into(),
        ScalarType::I8 => i8::from_word(word).into(),
        ScalarType::U64 | ScalarType::U32 | ScalarType::U8 | ScalarType::Bool => word as f64,
    }
}

/// The longer side of a picture has at least this many pixels; cells of smaller planes become squares of several.
const LEAST_PIXELS: usize = 512;

/// Writes `values`, rows of `width` from the bottom up, as a PNG; the texts in it say what the colours mean.
pub(crate) fn write_png<T: Element>(
    file: impl Write,
    picture: Picture,
    title: &str,
    values: &[T],
    width: usize,
) -> io::Result<()> {
    let height = values.len() / width.max(1);
    let size = LEAST_PIXELS.div_ceil(width.max(height).max(1));
    let scale = picture.scale(values);
    let pixels = |cells: usize| {
        let pixels = cells.checked_mul(size).and_then(|pixels| u32::try_from(pixels).ok());
        pixels.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the plane has too many cells for a picture"))
    };
    let mut encoder = png::Encoder::new(file, pixels(width)?, pixels(height)?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // Keywords and texts are Latin-1 in PNG; a title that isn't is left out.
    if title.is_ascii() {
        encoder.add_text_chunk("Title".into(), title.into())?;
    }
    let colours = scale.describe(picture.map);
    encoder.add_text_chunk("Description".into(), format!("Values from {colours}; grey is not a number."))?;
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    for row in values.chunks_exact(width.max(1)).rev() {
        let pixels = row.iter().flat_map(|&value| [picture.map.colour(scale.place(value))].repeat(size).concat());
        let line: Vec<u8> = pixels.collect();
        for _ in 0..size {
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

    const NOT_A_NUMBER: [u8; 3] = [128, 128, 128];

    /// The colour of a part of the range.
    fn colour(value: f64) -> [u8; 3] {
        ColourMap::Sequential.colour(value)
    }

    fn picture<T: Element>(values: &[T], width: usize) -> (png::OutputInfo, Vec<u8>, String) {
        draw(Plane::Z(1).into(), values, width)
    }

    fn draw<T: Element>(picture: Picture, values: &[T], width: usize) -> (png::OutputInfo, Vec<u8>, String) {
        let mut file = Vec::new();
        write_png(&mut file, picture, "u at Z = 1", values, width).unwrap();
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
        assert_eq!(pixel(0, 341), colour(0.0));
        assert_eq!(pixel(170, 0), colour(1.0));
        assert_eq!(pixel(171, 0), colour(0.5));
        assert_eq!(pixel(512, 170), NOT_A_NUMBER);
        assert_eq!(pixel(512, 171), colour(0.25));
        assert!(
            texts.contains("Title: u at Z = 1\n") && texts.contains("from 0e0 (dark violet) to 4e0 (yellow)"),
            "{texts}"
        );
    }

    #[test]
    fn integers_and_truth_values_have_pictures_with_their_exact_range() {
        let check = |(_, pixels, texts): (_, Vec<u8>, String), range: &str| {
            assert!(texts.contains(&format!("from {range};")), "{texts}");
            assert_eq!((&pixels[..3], &pixels[511 * 3..512 * 3]), (&colour(0.0)[..], &colour(1.0)[..]));
        };
        let far = i64::MAX - 2;
        check(picture(&[far, far + 2], 2), "9223372036854775805 (dark violet) to 9223372036854775807 (yellow)");
        check(picture(&[i8::MIN, i8::MAX], 2), "-128 (dark violet) to 127 (yellow)");
        check(picture(&[0, 7, 9_u32, u32::MAX], 4), "0 (dark violet) to 4294967295 (yellow)");
        check(picture(&[false, true], 2), "false (dark violet) to true (yellow)");
        assert_eq!(picture(&[true; 6], 3).1[..3], colour(0.5));
        assert_eq!(picture(&[f64::MIN, 0.0, f64::MAX], 3).1[171 * 3..172 * 3], colour(0.5));
    }

    #[test]
    fn large_planes_have_a_pixel_for_each_cell() {
        let values: Vec<_> = (0..700).map(f64::from).collect();
        assert_eq!((picture(&values, 700).0.width, picture(&values, 1).0.height), (700, 700));
    }

    #[test]
    fn constant_and_undefined_planes_have_a_colour() {
        assert_eq!(picture(&[7.0], 1).1[..3], colour(0.5));
        assert_eq!(picture(&[f64::NAN], 1).1[..3], NOT_A_NUMBER);
        let (_, pixels, _) = picture(&[f64::INFINITY, f64::NEG_INFINITY, 0.0, 1.0], 4);
        assert_eq!((&pixels[..3], &pixels[128 * 3..][..3]), (&colour(1.0)[..], &colour(0.0)[..]));
    }

    /// The colours of a row of values, one for each.
    fn row<T: Element>(picture: Picture, values: &[T]) -> (Vec<[u8; 3]>, String) {
        let (info, pixels, texts) = draw(picture, values, values.len());
        let cell = info.width as usize / values.len();
        let colours = (0..values.len()).map(|n| [0, 1, 2].map(|channel| pixels[n * cell * 3 + channel]));
        (colours.collect(), texts)
    }

    #[test]
    fn diverging_colours_are_symmetric_about_zero() {
        let map = ColourMap::Diverging;
        let signed = Picture::of(Plane::Z(1)).map(map);
        let check = |(colours, texts): (Vec<[u8; 3]>, String), places: &[f64], range: &str| {
            let expected: Vec<_> = places.iter().map(|&place| map.colour(place)).collect();
            assert_eq!(colours, expected);
            assert!(texts.contains(&format!("Values from {range};")), "{texts}");
        };
        check(
            row(signed, &[0.0, -1.0, 4.0, f64::NAN]),
            &[0.5, 0.375, 1.0, f64::NAN],
            "-4e0 (dark blue) to 4e0 (dark red)",
        );
        check(row(signed, &[-2.0_f32, 1.0, f32::INFINITY]), &[0.0, 0.75, 1.0], "-2e0 (dark blue) to 2e0 (dark red)");
        check(row(signed, &[i8::MIN, 0, 64]), &[0.0, 0.5, 0.75], "-1.28e2 (dark blue) to 1.28e2 (dark red)");
        check(row(signed, &[0_u64, 4]), &[0.5, 1.0], "-4e0 (dark blue) to 4e0 (dark red)");
        check(row(signed, &[false, true]), &[0.5, 1.0], "-1e0 (dark blue) to 1e0 (dark red)");
        check(row(signed, &[0, 0]), &[0.5, 0.5], "0e0 (dark blue) to 0e0 (dark red)");
        check(
            row(signed, &[f64::MIN, 0.0, f64::MAX]),
            &[0.0, 0.5, 1.0],
            &format!("{:e} (dark blue) to {:e} (dark red)", f64::MIN, f64::MAX),
        );
        let given = signed.range(0.0, 2.0);
        check(row(given, &[0, 1, 2]), &[0.0, 0.5, 1.0], "0e0 (dark blue) to 2e0 (dark red)");
    }

    #[test]
    fn a_given_range_makes_pictures_compare() {
        let fixed = Picture::of(Plane::Z(1)).range(-1.0, 3.0);
        let (colours, texts) = row(fixed, &[0.0, 1.0, -5.0, 7.0, f64::NEG_INFINITY, f64::NAN]);
        let expected = [colour(0.25), colour(0.5), colour(0.0), colour(1.0), colour(0.0), NOT_A_NUMBER];
        assert_eq!(colours, expected);
        assert!(texts.contains("Values from -1e0 (dark violet) to 3e0 (yellow);"), "{texts}");
        assert_eq!(row(fixed, &[1, 2]).0, [colour(0.5), colour(0.75)]);
        assert_eq!(row(fixed, &[f64::NAN]).0, [NOT_A_NUMBER]);
    }

    #[test]
    fn a_range_without_values_is_refused() {
        let fixed = |low, high| Picture::of(Plane::X(0)).range(low, high).check();
        for (low, high) in [(1.0, 1.0), (2.0, 1.0), (0.0, f64::NAN), (f64::NEG_INFINITY, 0.0), (0.0, f64::INFINITY)] {
            assert!(matches!(fixed(low, high), Err(Error::ColourRange { .. })), "{low} {high}");
        }
        fixed(-1e-300, 0.0).unwrap();
        Picture::from(Plane::X(0)).check().unwrap();
    }

    #[test]
    fn a_plane_outside_the_grid_is_refused() {
        assert_eq!(axes("u", Plane::Y(2), [4, 3, 5]).unwrap(), [0, 2]);
        assert!(matches!(axes("u", Plane::X(4), [4, 3, 5]), Err(Error::OutsideGrid { at: [4, 0, 0], .. })));
    }
}
