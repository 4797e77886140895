//! Where the values of a field come from: a function of the point, an array, or a file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;

use ndarray::{Array3, ArrayBase, ArrayView3, Axis, Data, Ix1, Ix2, Ix3, IxDyn, OwnedRepr};
use ndarray_npy::{ReadNpyError, ReadNpyExt};

use crate::backend::{FreeMemory, host};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::geometry::Extent;

/// A point of the grid by its global indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Along X.
    pub i: i32,
    /// Along Y.
    pub j: i32,
    /// Along Z.
    pub k: i32,
}

/// Something that gives every point of a grid a value.
///
/// These do: functions and closures from a [`Point`] to the value (called from several threads), `ndarray` arrays and
/// views of shape (nz, ny, nx), and paths of `.npy` files with such an array.
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives no values of a field of `{T}`",
    label = "no source of values",
    note = "fields are filled from a closure, `|p: Point| f64::from(p.i)` or `|_: Point| 0.0`, an `ndarray` array of shape (nz, ny, nx) and \
            the type of the field, or the path of an `.npy` file"
)]
pub trait Source<T: Element> {
    /// Gets ready for a grid; `field` is the field's name, for messages.
    fn open(self, field: &str, extent: Extent) -> Result<impl Planes<T>>;
}

/// The values of whole planes.
pub trait Planes<T: Element> {
    /// The bytes of the planes `planes`, rows after rows without gaps.
    fn bytes(&self, planes: Range<usize>) -> Vec<u8>;
}

#[diagnostic::do_not_recommend]
impl<T: Element, F: Fn(Point) -> T + Sync> Source<T> for F {
    fn open(self, _: &str, extent: Extent) -> Result<impl Planes<T>> {
        Ok(Function { function: self, extent })
    }
}

struct Function<F> {
    function: F,
    extent: Extent,
}

impl<T: Element, F: Fn(Point) -> T + Sync> Planes<T> for Function<F> {
    fn bytes(&self, planes: Range<usize>) -> Vec<u8> {
        let [nx, ny, _] = self.extent.cells();
        let rows = planes.start * ny..planes.end * ny;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(rows.len().div_ceil(16)).max(1);
        let part = |number: usize| {
            let share = |number: usize| rows.start + rows.len() * number / threads;
            let mut bytes = Vec::with_capacity((share(number + 1) - share(number)) * nx * size_of::<T>());
            for row in share(number)..share(number + 1) {
                for i in 0..nx {
                    // An extent numbers its cells with an `i32`.
                    let point = Point { i: i as i32, j: (row % ny) as i32, k: (row / ny) as i32 };
                    (self.function)(point).append(&mut bytes);
                }
            }
            bytes
        };
        if threads == 1 {
            return part(0);
        }
        thread::scope(|scope| {
            let part = &part;
            let workers: Vec<_> = (0..threads).map(|number| scope.spawn(move || part(number))).collect();
            let mut bytes = Vec::with_capacity(rows.len() * nx * size_of::<T>());
            for worker in workers {
                // A panic in the user's function goes on in the user's thread.
                bytes.append(&mut worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            bytes
        })
    }
}

macro_rules! arrays {
    ($($dimension:ident)+) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, S: Data<Elem = T>> Source<T> for ArrayBase<S, $dimension> {
            fn open(self, field: &str, extent: Extent) -> Result<impl Planes<T>> {
                array(self.into_dyn(), field, extent)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, S: Data<Elem = T>> Source<T> for &ArrayBase<S, $dimension> {
            fn open(self, field: &str, extent: Extent) -> Result<impl Planes<T>> {
                array(self.view().into_dyn(), field, extent)
            }
        }
    )+};
}

arrays!(Ix1 Ix2 Ix3);

/// An array that fits: of shape (nz, ny, nx), in which axes of one cell may be missing.
fn array<T: Element, S: Data<Elem = T>>(array: ArrayBase<S, IxDyn>, field: &str, extent: Extent) -> Result<Array<S>> {
    let (z, y, x) = extent.shape();
    let found = array.shape().to_vec();
    let mut array = array;
    for (axis, cells) in [z, y, x].into_iter().enumerate() {
        if cells == 1 && array.ndim() < 3 && axis <= array.ndim() {
            array = array.insert_axis(Axis(axis));
        }
    }
    match array.into_dimensionality::<Ix3>() {
        Ok(array) if array.shape() == [z, y, x] => Ok(Array(array)),
        _ => Err(Error::Shape { what: "the array".into(), field: field.into(), expected: vec![z, y, x], found }),
    }
}

struct Array<S: Data>(ArrayBase<S, Ix3>);

impl<T: Element, S: Data<Elem = T>> Planes<T> for Array<S> {
    fn bytes(&self, planes: Range<usize>) -> Vec<u8> {
        let part: ArrayView3<'_, T> = self.0.slice_axis(Axis(0), planes.into());
        let mut bytes = Vec::with_capacity(part.len() * size_of::<T>());
        part.iter().for_each(|value| value.append(&mut bytes));
        bytes
    }
}

fn check_shape(what: &str, field: &str, extent: Extent, found: &[usize]) -> Result<()> {
    let (z, y, x) = extent.shape();
    if found == [z, y, x] {
        return Ok(());
    }
    Err(Error::Shape { what: what.into(), field: field.into(), expected: vec![z, y, x], found: found.to_vec() })
}

#[diagnostic::do_not_recommend]
impl<T: Element> Source<T> for &Path {
    fn open(self, field: &str, extent: Extent) -> Result<impl Planes<T>> {
        read_npy::<T>(self, field, extent)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> Source<T> for PathBuf {
    fn open(self, field: &str, extent: Extent) -> Result<impl Planes<T>> {
        read_npy::<T>(&self, field, extent)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> Source<T> for &str {
    fn open(self, field: &str, extent: Extent) -> Result<impl Planes<T>> {
        read_npy::<T>(Path::new(self), field, extent)
    }
}

/// The array in a file, if it fits.
fn read_npy<T: Element>(path: &Path, field: &str, extent: Extent) -> Result<Array<OwnedRepr<T>>> {
    let failed = |reason: String| Error::Read { path: path.into(), reason };
    let unreadable = |error: io::Error| failed(error.to_string());
    let mut file = File::open(path).map_err(unreadable)?;
    // The whole array is read at once, so its header is believed only as far as it fits the field.
    let found = npy_shape(&mut file).map_err(failed)?;
    if found.len() != 3 {
        return Err(failed(format!("its array has {} dimensions, and a field has 3", found.len())));
    }
    let what = format!("the array in {}", path.display());
    check_shape(&what, field, extent, &found)?;
    check_room(
        &what,
        extent.cells().iter().map(|&cells| cells as u64).product::<u64>() * size_of::<T>() as u64,
        host::free_memory(),
    )?;
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let array = Array3::<T>::read_npy(BufReader::new(file)).map_err(|error| failed(explain(error, T::TYPE.name())))?;
    check_shape(&what, field, extent, array.shape())?;
    Ok(Array(array))
}

/// An error if there is less memory than an array needs.
fn check_room(what: &str, needed: u64, free: Option<FreeMemory>) -> Result<()> {
    match free {
        Some(FreeMemory { bytes, limit }) if bytes < needed => {
            let (device, what) = ("the host".into(), what.into());
            Err(Error::OutOfMemory { device, what, needed, free: bytes, limit })
        }
        Some(_) | None => Ok(()),
    }
}

/// The shape that the header of an `.npy` file tells; why it tells none.
fn npy_shape(file: &mut impl Read) -> Result<Vec<usize>, String> {
    const MAGIC: &[u8; 6] = b"\x93NUMPY";
    /// NumPy itself writes some hundred bytes and reads at most 10000.
    const MOST_BYTES: usize = 1 << 16;
    let mut bytes = |count: usize| {
        let mut bytes = vec![0; count];
        file.read_exact(&mut bytes).map(|()| bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends within its header".to_owned(),
            _ => error.to_string(),
        })
    };
    let start = bytes(MAGIC.len() + 2)?;
    let length = match (start.strip_prefix(MAGIC), &start[MAGIC.len()..]) {
        (None, _) => return Err("it is no .npy file: it doesn't start like one".into()),
        (_, [1, _]) => bytes(2)?.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte)),
        (_, [2 | 3, _]) => bytes(4)?.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte)),
        (_, version) => {
            return Err(format!("it has version {}.{} of the format, which is unknown", version[0], version[1]));
        }
    };
    if length > MOST_BYTES {
        return Err(format!("its header has {length} bytes, more than one of an array of numbers can have"));
    }
    let header = bytes(length)?;
    let header = String::from_utf8_lossy(&header);
    let shape = ["'shape'", "\"shape\""].iter().find_map(|key| header.split_once(key)).and_then(|(_, value)| {
        let (numbers, _) = value.trim_start().strip_prefix(':')?.trim_start().strip_prefix('(')?.split_once(')')?;
        // The comma of a tuple of one, and the suffix of Python 2.
        let numbers = numbers.split(',').map(|number| number.trim().trim_end_matches('L'));
        numbers.filter(|number| !number.is_empty()).map(|number| number.parse().ok()).collect()
    });
    shape.ok_or_else(|| "its header tells no shape that an array in memory can have".into())
}

fn explain(error: ReadNpyError, wanted: &str) -> String {
    match error {
        ReadNpyError::WrongNdim(_, found) => format!("its array has {found} dimensions, and a field has 3"),
        ReadNpyError::WrongDescriptor(found) => {
            format!("its array has cells of type {found}, and the field has {wanted}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::s;

    fn extent() -> Extent {
        Extent::new([5, 3, 40]).unwrap()
    }

    fn number(p: Point) -> f64 {
        f64::from(p.i + 100 * p.j + 10_000 * p.k)
    }

    fn values<T: Element>(source: impl Source<T>, planes: Range<usize>) -> Vec<T> {
        let bytes = source.open("u", extent()).unwrap().bytes(planes);
        bytes.chunks_exact(size_of::<T>()).map(T::from_slice).collect()
    }

    fn expected(planes: Range<usize>) -> Vec<f64> {
        let points = planes.flat_map(|k| (0..3).flat_map(move |j| (0..5).map(move |i| (i, j, k as i32))));
        points.map(|(i, j, k)| number(Point { i, j, k })).collect()
    }

    #[test]
    fn functions_closures_and_arrays_of_any_order_give_the_same_planes() {
        let array = Array3::from_shape_fn(extent().shape(), |(k, j, i)| {
            number(Point { i: i as i32, j: j as i32, k: k as i32 })
        });
        let mut turned = Array3::zeros((5, 3, 40));
        turned.assign(&array.view().reversed_axes());
        for planes in [0..40, 0..1, 39..40, 7..31, 4..4] {
            let expected = expected(planes.clone());
            assert_eq!(values(number, planes.clone()), expected);
            assert_eq!(
                values(|p: Point| number(p) as f32, planes.clone()),
                expected.iter().map(|&v| v as f32).collect::<Vec<_>>()
            );
            assert_eq!(values(&array, planes.clone()), expected);
            assert_eq!(values(array.clone(), planes.clone()), expected);
            assert_eq!(values(turned.view().reversed_axes(), planes.clone()), expected);
            assert_eq!(values(array.slice(s![.., .., ..]), planes.clone()), expected);
        }
    }

    #[test]
    fn a_panic_in_the_function_keeps_its_message() {
        let source = |p: Point| -> f64 { if p.k == 39 { panic!("no value at {}", p.k) } else { 0.0 } };
        let panic = std::panic::catch_unwind(|| values(source, 0..40)).unwrap_err();
        assert_eq!(crate::backend::panic_message(panic.as_ref()), "no value at 39");
    }

    #[test]
    fn another_shape_is_refused_with_both_shapes() {
        let error = Source::open(Array3::<f32>::zeros((5, 3, 40)), "u", extent()).map(|_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the array has shape (5, 3, 40), and the grid of field `u` needs (40, 3, 5) (Z, Y, X: the last index runs along X)"
        );
    }

    #[test]
    fn files_are_read_and_unfit_ones_are_refused_with_a_reason() {
        let folder = crate::testing::Folder::new("source");
        let array = Array3::from_shape_fn(extent().shape(), |(k, j, i)| (i + 100 * j + 10_000 * k) as f64);
        let good = folder.path("good.npy");
        ndarray_npy::write_npy(&good, &array).unwrap();
        assert_eq!(values::<f64>(good.as_path(), 3..5), expected(3..5));
        assert_eq!(values::<f64>(good.to_str().unwrap(), 3..5), expected(3..5));
        let flat = folder.path("flat.npy");
        ndarray_npy::write_npy(&flat, &ndarray::Array1::<f64>::zeros(7)).unwrap();
        std::fs::write(folder.path("text.npy"), "not an array").unwrap();
        let reason = |error: Result<()>| match error.unwrap_err() {
            Error::Read { reason, .. } => reason,
            other => panic!("{other}"),
        };
        let open = |name: &str| Source::<f64>::open(folder.path(name), "u", extent()).map(|_| ());
        assert!(reason(open("flat.npy")).contains("dimensions"));
        assert!(!reason(open("text.npy")).is_empty() && !reason(open("absent.npy")).is_empty());
        let single = Source::<f32>::open(good, "u", extent()).map(|_| ());
        assert_eq!(reason(single), "its array has cells of type '<f8', and the field has f32");
    }

    /// A file with this header, of a version, and some data.
    fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let length = header.len() as u32;
        let mut file = b"\x93NUMPY".to_vec();
        file.extend([version, 0]);
        file.extend(&length.to_le_bytes()[..if version == 1 { 2 } else { 4 }]);
        [&file, header.as_bytes(), data].concat()
    }

    #[test]
    fn headers_are_checked_before_anything_is_read() {
        let folder = crate::testing::Folder::new("source-headers");
        let open = |file: &[u8]| {
            let path = folder.path("a.npy");
            std::fs::write(&path, file).unwrap();
            Source::<f64>::open(path, "u", extent()).map(|_| ()).unwrap_err()
        };
        let header = |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        for version in [1, 2, 3] {
            match open(&npy(version, &header("(1099511627776, 1099511627776, 5)"), &[0; 64])) {
                Error::Shape { found, .. } => assert_eq!(found, [1 << 40, 1 << 40, 5]),
                other => panic!("{other}"),
            }
        }
        for shape in ["(99999999999999999999999999, 1, 1)", "(-1, 3, 5)", "(40, 3", "40", "(4.0, 3, 5)"] {
            let error = open(&npy(1, &header(shape), &[0; 64]));
            assert!(matches!(&error, Error::Read { reason, .. } if reason.contains("no shape")), "{shape}: {error}");
        }
        for shape in ["()", "(7,)", "(7L, 8L)", "(1099511627776, 1, 1, 1)"] {
            let error = open(&npy(1, &header(shape), &[0; 64]));
            assert!(matches!(&error, Error::Read { reason, .. } if reason.contains("dimensions")), "{shape}: {error}");
        }
        // The right shape, and too few values.
        assert!(matches!(open(&npy(1, &header("(40, 3, 5)"), &[0; 64])), Error::Read { .. }));
        let whole = npy(2, &header("(40, 3, 5)"), &[]);
        for length in 0..whole.len() {
            assert!(matches!(open(&whole[..length]), Error::Read { .. }), "{length}");
        }
        let mut endless = npy(2, &header("(40, 3, 5)"), &[]);
        endless[8..12].copy_from_slice(&[0xff; 4]);
        assert!(matches!(open(&endless), Error::Read { reason, .. } if reason.contains("4294967295 bytes")));
    }

    #[test]
    fn an_array_that_memory_cannot_hold_is_an_error() {
        let free = |bytes| Some(FreeMemory { bytes, limit: "made up".into() });
        assert!(check_room("the array", 100, None).is_ok() && check_room("the array", 100, free(100)).is_ok());
        let error = check_room("the array", 100, free(99)).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { needed: 100, free: 99, .. }), "{error}");
    }
}
