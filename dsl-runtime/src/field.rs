//! Fields: values on every point of a simulation's grid, on its devices.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use ndarray::Array3;
use ndarray_npy::WriteNpyExt;

use crate::boundary::{self, Boundary};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::files;
use crate::geometry::{Box3, Extent};
use crate::kernel::ScalarType;
use crate::offset::Offset;
use crate::picture::{self, Picture};
use crate::plan::FieldId;
use crate::raw;
use crate::simulation::Shared;
use crate::source::Source;

/// Along which axes a field extends.
pub trait Axes: sealed::Sealed + 'static {
    /// Along X, Y and Z.
    const AXES: [bool; 3];
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! axes {
    ($($name:ident $axes:expr, $what:literal;)+) => {$(
        #[doc = $what]
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Axes for $name {
            const AXES: [bool; 3] = $axes;
        }
    )+};
}

axes! {
    Whole [true, true, true], "All axes.";
    OnX [true, false, false], "X only.";
    OnY [false, true, false], "Y only.";
    OnZ [false, false, true], "Z only.";
    OnXY [true, true, false], "X and Y.";
    OnXZ [true, false, true], "X and Z.";
    OnYZ [false, true, true], "Y and Z.";
}

/// A field that extends along X only.
pub type FieldX<T> = Field<T, OnX>;
/// A field that extends along Y only.
pub type FieldY<T> = Field<T, OnY>;
/// A field that extends along Z only.
pub type FieldZ<T> = Field<T, OnZ>;
/// A field that extends along X and Y.
pub type FieldXY<T> = Field<T, OnXY>;
/// A field that extends along X and Z.
pub type FieldXZ<T> = Field<T, OnXZ>;
/// A field that extends along Y and Z.
pub type FieldYZ<T> = Field<T, OnYZ>;

/// A field of a [`Simulation`](crate::simulation::Simulation): along all axes, or constant along some of them.
///
/// It is a handle: clones are the same field. Reading gives the values after the last finished step.
pub struct Field<T: Element, A: Axes = Whole> {
    shared: Arc<Shared>,
    id: FieldId,
    name: Arc<str>,
    extent: Extent,
    cells: PhantomData<fn() -> (T, A)>,
}

impl<T: Element, A: Axes> Clone for Field<T, A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), name: Arc::clone(&self.name), ..*self }
    }
}

impl<T: Element, A: Axes> fmt::Debug for Field<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field<{}> {} {}", T::TYPE, self.name, self.extent)
    }
}

/// A field without its Rust type: what a call of a kernel remembers of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRef {
    pub(crate) simulation: u64,
    pub(crate) id: FieldId,
    pub(crate) name: Arc<str>,
    pub(crate) ty: ScalarType,
    pub(crate) axes: [bool; 3],
}

impl<T: Element> Field<T> {
    /// Sets what reads beyond some faces give. Faces are named by the directions out of the grid: `X` is the last plane
    /// along X, `-X` the first, `[X, -X]` are both and [`FACES`](crate::FACES) all six. Steps that are recorded
    /// afterwards obey.
    pub fn boundary(&self, faces: impl IntoFaces, boundary: Boundary<T>) -> Result<()> {
        let mut state = self.shared.state()?;
        let shape = &mut state.shapes[self.id.0 as usize];
        let mut new = shape.faces;
        for outward in faces.faces() {
            let (axis, side) = boundary::side(&self.name, outward)?;
            new[axis][side] = boundary.into();
        }
        let signed = match T::TYPE {
            ScalarType::F64 | ScalarType::F32 | ScalarType::I64 | ScalarType::I32 | ScalarType::I8 => true,
            ScalarType::U64 | ScalarType::U32 | ScalarType::U8 | ScalarType::Bool => false,
        };
        boundary::check(&self.name, &new, signed)?;
        shape.faces = new;
        Ok(())
    }
}

impl<T: Element, A: Axes> Field<T, A> {
    pub(crate) fn new(shared: Arc<Shared>, id: FieldId, name: &str, extent: Extent) -> Self {
        Self { shared, id, name: name.into(), extent, cells: PhantomData }
    }

    /// The field without its Rust type.
    pub fn reference(&self) -> FieldRef {
        let (simulation, name) = (self.shared.id, Arc::clone(&self.name));
        FieldRef { simulation, id: self.id, name, ty: T::TYPE, axes: A::AXES }
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Cells along X, Y and Z; 1 along an axis along which the field doesn't extend.
    pub fn cells(&self) -> [usize; 3] {
        self.extent.cells()
    }

    /// All values, in an array of shape (nz, ny, nx): the value at (i, j, k) is `array[[k, j, i]]`.
    pub fn read(&self) -> Result<Array3<T>> {
        let values = self.values(&self.extent.whole())?;
        let shape = self.extent.shape();
        Ok(Array3::from_shape_vec(shape, values).expect("a box has as many values as its size says"))
    }

    /// The value at the point (i, j, k).
    pub fn get(&self, at: [usize; 3]) -> Result<T> {
        let extent = self.cells();
        if (0..3).any(|axis| at[axis] >= extent[axis]) {
            return Err(Error::OutsideGrid { field: self.name().into(), at, extent });
        }
        let lo = at.map(|index| index as i64);
        let value = self.values(&Box3 { lo, hi: lo.map(|index| index + 1) })?;
        Ok(value[0])
    }

    /// Replaces all values.
    pub fn set(&self, source: impl Source<T>) -> Result<()> {
        let planes = source.open(self.name(), self.extent)?;
        self.shared.fill(self.id, &planes)
    }

    /// Writes all values to a `.npy` file as an array of shape (nz, ny, nx). The file is complete or not there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let array = self.read()?;
        files::replace(path.as_ref(), |file| array.write_npy(file).map_err(std::io::Error::other))
    }

    /// Writes all values to a file as raw little-endian numbers, X fastest. The file is complete or not there.
    pub fn save_raw(&self, path: impl AsRef<Path>) -> Result<()> {
        raw::write(path.as_ref(), T::TYPE, self.extent.points(), |sink| self.shared.hand_out(self.id, sink))
    }

    /// Writes a picture of a plane to a PNG file: a [`Plane`](crate::Plane), or a [`Picture`] with a colour map and a range of values. By
    /// default the colours run from dark violet (the least value) through green to yellow (the greatest); the file's
    /// description tells these two values.
    pub fn save_png(&self, path: impl AsRef<Path>, picture: impl Into<Picture>) -> Result<()> {
        let picture = picture.into();
        picture.check()?;
        let (extent, plane) = (self.cells(), picture.plane());
        let [right, _] = picture::axes(self.name(), plane, extent)?;
        let (normal, index) = plane.normal();
        let mut part = self.extent.whole();
        (part.lo[normal], part.hi[normal]) = (index as i64, index as i64 + 1);
        let values = self.values(&part)?;
        let title = format!("{} at {} = {index}", self.name, plane.axis());
        files::replace(path.as_ref(), |file| picture::write_png(file, picture, &title, &values, extent[right]))
    }

    /// The values of a box of the grid, rows after rows.
    fn values(&self, part: &Box3) -> Result<Vec<T>> {
        let bytes = self.shared.read(self.id, part)?;
        Ok(bytes.chunks_exact(size_of::<T>()).map(T::from_slice).collect())
    }
}

/// Some faces of a grid, named by the directions out of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no face of the grid",
    label = "no direction",
    note = "faces are named by the directions out of the grid: `X` is the last plane along X, `-X` the first, `[X, -X]` are both and \
            `FACES` all six"
)]
pub trait IntoFaces {
    /// The directions.
    fn faces(self) -> Vec<Offset>;
}

#[diagnostic::do_not_recommend]
impl IntoFaces for Offset {
    fn faces(self) -> Vec<Offset> {
        vec![self]
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> IntoFaces for [Offset; N] {
    fn faces(self) -> Vec<Offset> {
        self.to_vec()
    }
}

#[diagnostic::do_not_recommend]
impl IntoFaces for &[Offset] {
    fn faces(self) -> Vec<Offset> {
        self.to_vec()
    }
}
