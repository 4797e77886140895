//! VTK image data (`.vti`): named arrays on a regular grid, in a file that ParaView and VisIt open.
//!
//! The values follow the XML head as they are ("appended", "raw"), little-endian, each array after its number of bytes
//! as a 64-bit number; that is version 1.0 of the format, which VTK reads since version 6. Every cell of ours is a
//! point of the image, X fastest as in VTK. Truth values become bytes.
//!
//! It is written here and not by the crate `vtkio`: that one holds whole files in memory, its last release (0.6.3)
//! builds on parsers of 2017 and 2021, and it would bring some twenty crates for the hundred lines below.

use std::fmt::Write;
use std::path::Path;

use crate::error::Result;
use crate::geometry::AXES;
use crate::kernel::ScalarType;
use crate::raw::{self, Output, Sink};

/// What a file shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Image {
    /// Cells along X, Y and Z; at least one each.
    pub(crate) cells: [usize; 3],
    /// The distance between neighbours along X, Y and Z.
    pub(crate) spacing: [f64; 3],
    /// Where cell (0, 0, 0) is.
    pub(crate) origin: [f64; 3],
    /// The arrays, all on this grid.
    pub(crate) arrays: Vec<Array>,
}

/// A named array of an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    /// Its name in menus.
    pub(crate) name: String,
    /// The type of a value.
    pub(crate) ty: ScalarType,
}

/// Writes an image. `source` is called for each array in order, and hands its values to the sink piece by piece, X
/// fastest; its errors are given back as they are. The file is complete or not there.
pub(crate) fn write(
    path: &Path,
    image: &Image,
    mut source: impl FnMut(usize, &mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    let points = image.cells.iter().map(|&cells| cells as u64).product();
    raw::stream(path, |out| {
        check(image, out)?;
        out.put(head(image, points).as_bytes())?;
        for (number, array) in image.arrays.iter().enumerate() {
            out.put(&(points * array.ty.bytes() as u64).to_le_bytes())?;
            out.values(array.ty, points, |sink| source(number, sink))?;
        }
        out.put(b"\n  </AppendedData>\n</VTKFile>\n")
    })
}

/// Refuses what VTK would misread.
fn check(image: &Image, out: &Output<'_>) -> Result<()> {
    for (axis, (spacing, origin)) in AXES.iter().zip(image.spacing.iter().zip(image.origin)) {
        if !(*spacing > 0.0 && spacing.is_finite()) {
            return Err(out.refused(format!("the spacing along {axis} is {spacing}: give a positive number")));
        }
        if !origin.is_finite() {
            return Err(out.refused(format!("the origin along {axis} is {origin}: give a finite number")));
        }
    }
    for (number, array) in image.arrays.iter().enumerate() {
        let name = &array.name;
        if name.is_empty() || name.contains(is_no_xml) {
            return Err(out.refused(format!("{name:?} can't name an array: XML has no way to write it")));
        }
        if image.arrays[..number].iter().any(|other| other.name == *name) {
            return Err(out.refused(format!("there are two arrays `{name}`: VTK would keep only one of them")));
        }
    }
    Ok(())
}

/// Whether XML 1.0 can't hold a character, escaped or not.
fn is_no_xml(character: char) -> bool {
    matches!(character, '\0'..'\t' | '\u{b}' | '\u{c}' | '\u{e}'..' ' | '\u{fffe}' | '\u{ffff}')
}

/// Everything before the first value.
fn head(image: &Image, points: u64) -> String {
    let numbers = |values: [f64; 3]| values.map(|value| format!("{value:e}")).join(" ");
    let extent = image.cells.map(|cells| format!("0 {}", cells - 1)).join(" ");
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n  \
         <ImageData WholeExtent=\"{extent}\" Origin=\"{}\" Spacing=\"{}\">\n    <Piece Extent=\"{extent}\">\n      ",
        numbers(image.origin),
        numbers(image.spacing)
    );
    // The array that a viewer shows at first.
    let shown = image.arrays.first().map_or_else(String::new, |array| format!(" Scalars=\"{}\"", escaped(&array.name)));
    let _ = writeln!(text, "<PointData{shown}>");
    let mut offset = 0;
    for array in &image.arrays {
        let (ty, name) = (vtk_name(array.ty), escaped(&array.name));
        let _ = writeln!(
            text,
            "        <DataArray type=\"{ty}\" Name=\"{name}\" format=\"appended\" offset=\"{offset}\"/>"
        );
        offset += size_of::<u64>() as u64 + points * array.ty.bytes() as u64;
    }
    text += "      </PointData>\n    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n    _";
    text
}

/// A type in the words of VTK.
fn vtk_name(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::F64 => "Float64",
        ScalarType::F32 => "Float32",
        ScalarType::I64 => "Int64",
        ScalarType::I32 => "Int32",
        ScalarType::I8 => "Int8",
        ScalarType::U64 => "UInt64",
        ScalarType::U32 => "UInt32",
        ScalarType::U8 | ScalarType::Bool => "UInt8",
    }
}

/// A text inside an attribute. White space is escaped too, because parsers make blanks of it.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' | '<' | '>' | '"' | '\'' | '\t' | '\n' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::error::Error;
    use crate::testing::Folder;

    fn image(cells: [usize; 3], arrays: &[(&str, ScalarType)]) -> Image {
        let arrays = arrays.iter().map(|&(name, ty)| Array { name: name.into(), ty }).collect();
        Image { cells, spacing: [0.5, 1.0, 1e-300], origin: [0.0, -1.0, 2.5e10], arrays }
    }

    /// Bytes that tell arrays and places apart.
    fn bytes(array: usize, count: usize) -> Vec<u8> {
        (0..count).map(|n| (n * 7 + array * 31) as u8).collect()
    }

    fn written(folder: &Folder, image: &Image) -> Result<Vec<u8>> {
        let points: usize = image.cells.iter().product();
        let path = folder.path("image.vti");
        write(&path, image, |number, sink| {
            let ty = image.arrays[number].ty;
            bytes(number, points * ty.bytes()).chunks(2 * ty.bytes()).try_for_each(sink)
        })?;
        Ok(fs::read(path).unwrap())
    }

    /// What an attribute of the first element that starts with `element` says.
    fn attribute<'a>(head: &'a str, element: &str, name: &str) -> &'a str {
        let rest = &head[head.find(element).unwrap()..];
        let rest = &rest[..rest.find('>').unwrap()];
        let rest = &rest[rest.find(&format!(" {name}=\"")).unwrap() + name.len() + 3..];
        &rest[..rest.find('"').unwrap()]
    }

    #[test]
    fn every_array_lies_where_the_head_says() {
        let names: Vec<_> = ScalarType::ALL.iter().map(|ty| ty.name()).collect();
        let arrays: Vec<_> = names.iter().copied().zip(ScalarType::ALL).collect();
        let image = image([3, 1, 5], &arrays);
        let file = written(&Folder::new("vti"), &image).unwrap();
        let mark = b"<AppendedData encoding=\"raw\">\n    _";
        let start = file.windows(mark.len()).position(|window| window == mark).unwrap() + mark.len();
        let head = str::from_utf8(&file[..start]).unwrap();
        for (element, name, value) in [
            ("<VTKFile", "type", "ImageData"),
            ("<VTKFile", "byte_order", "LittleEndian"),
            ("<VTKFile", "header_type", "UInt64"),
            ("<ImageData", "WholeExtent", "0 2 0 0 0 4"),
            ("<ImageData", "Spacing", "5e-1 1e0 1e-300"),
            ("<ImageData", "Origin", "0e0 -1e0 2.5e10"),
            ("<Piece", "Extent", "0 2 0 0 0 4"),
            ("<PointData", "Scalars", "f64"),
        ] {
            assert_eq!(attribute(head, element, name), value, "{element} {name}");
        }
        let mut end = start;
        let types =
            ["Float64", "Float32", "Int64", "Int32", "Int8", "UInt64", "UInt32", "UInt8", "UInt8"].map(str::to_owned);
        for (number, ((name, ty), vtk)) in arrays.into_iter().zip(types).enumerate() {
            let element = format!("<DataArray type=\"{vtk}\" Name=\"{name}\"");
            assert_eq!(attribute(head, &element, "format"), "appended");
            let at = start + attribute(head, &element, "offset").parse::<usize>().unwrap();
            assert_eq!(at, end, "arrays follow one another");
            let count = 15 * ty.bytes();
            end = at + 8 + count;
            assert_eq!(file[at..at + 8], (count as u64).to_le_bytes());
            assert_eq!(file[at + 8..end], bytes(number, count));
        }
        assert_eq!(&file[end..], b"\n  </AppendedData>\n</VTKFile>\n");
    }

    #[test]
    fn names_are_escaped() {
        let image = image([1; 3], &[("a<b> & \"c\"\n'd' é", ScalarType::U8)]);
        let file = written(&Folder::new("vti-names"), &image).unwrap();
        let name = "Name=\"a&#60;b&#62; &#38; &#34;c&#34;&#10;&#39;d&#39; é\"".as_bytes();
        assert!(file.windows(name.len()).any(|window| window == name));
    }

    #[test]
    fn what_vtk_would_misread_is_refused() {
        let folder = Folder::new("vti-refused");
        let check = |image: &Image, expected: &str| match written(&folder, image) {
            Err(Error::Write { reason, .. }) => assert!(reason.starts_with(expected), "{reason}"),
            other => panic!("{expected}: {other:?}"),
        };
        let good = image([2; 3], &[("u", ScalarType::F32)]);
        check(&Image { spacing: [1.0, 0.0, 1.0], ..good.clone() }, "the spacing along Y is 0:");
        check(&Image { spacing: [f64::INFINITY, 1.0, 1.0], ..good.clone() }, "the spacing along X is inf:");
        check(&Image { origin: [1.0, 1.0, f64::NAN], ..good.clone() }, "the origin along Z is NaN:");
        check(&image([2; 3], &[("u", ScalarType::F32), ("u", ScalarType::U8)]), "there are two arrays `u`:");
        check(&image([2; 3], &[("", ScalarType::F32)]), "\"\" can't name");
        check(&image([2; 3], &[("a\u{1}", ScalarType::F32)]), "\"a\\u{1}\" can't name");
        assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0);
        written(&folder, &good).unwrap();
    }
}
