//! Fields: values on every point of a simulation's grid, on its devices.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use ndarray::Array3;
use ndarray_npy::WriteNpyExt;

use crate::element::Element;
use crate::error::{Error, Result};
use crate::files;
use crate::geometry::Box3;
use crate::kernel::ScalarType;
use crate::picture::{self, Plane};
use crate::plan::FieldId;
use crate::simulation::Shared;
use crate::source::Source;

/// A field of a [`Simulation`](crate::simulation::Simulation).
///
/// It is a handle: clones are the same field. Reading gives the values after the last finished step.
pub struct Field<T: Element> {
    shared: Arc<Shared>,
    id: FieldId,
    name: Arc<str>,
    cells: PhantomData<fn() -> T>,
}

impl<T: Element> Clone for Field<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), name: Arc::clone(&self.name), ..*self }
    }
}

impl<T: Element> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field<{}> {} {}", T::TYPE, self.name, self.shared.extent)
    }
}

/// A field without its Rust type: what a call of a kernel remembers of its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRef {
    pub(crate) simulation: u64,
    pub(crate) id: FieldId,
    pub(crate) name: Arc<str>,
    pub(crate) ty: ScalarType,
}

impl<T: Element> Field<T> {
    pub(crate) fn new(shared: Arc<Shared>, id: FieldId, name: &str) -> Self {
        Self { shared, id, name: name.into(), cells: PhantomData }
    }

    /// The field without its Rust type.
    pub fn reference(&self) -> FieldRef {
        FieldRef { simulation: self.shared.id, id: self.id, name: Arc::clone(&self.name), ty: T::TYPE }
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Cells along X, Y and Z.
    pub fn cells(&self) -> [usize; 3] {
        self.shared.extent.cells()
    }

    /// All values, in an array of shape (nz, ny, nx): the value at (i, j, k) is `array[[k, j, i]]`.
    pub fn read(&self) -> Result<Array3<T>> {
        let values = self.values(&self.shared.extent.whole())?;
        let shape = self.shared.extent.shape();
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
        let planes = source.open(self.name(), self.shared.extent)?;
        self.shared.fill(self.id, &planes)
    }

    /// Writes all values to a `.npy` file as an array of shape (nz, ny, nx). The file is complete or not there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let array = self.read()?;
        files::replace(path.as_ref(), |file| array.write_npy(file).map_err(std::io::Error::other))
    }

    /// Writes a picture of a plane to a PNG file. The colours run from dark violet (the least value) through green to
    /// yellow (the greatest); the file's description tells these two values.
    pub fn save_png(&self, path: impl AsRef<Path>, plane: Plane) -> Result<()> {
        let extent = self.cells();
        let [right, _] = picture::axes(self.name(), plane, extent)?;
        let (normal, index) = plane.normal();
        let mut part = self.shared.extent.whole();
        (part.lo[normal], part.hi[normal]) = (index as i64, index as i64 + 1);
        let values = self.values(&part)?;
        let title = format!("{} at {} = {index}", self.name, plane.axis());
        files::replace(path.as_ref(), |file| picture::write_png(file, &title, &values, extent[right]))
    }

    /// The values of a box of the grid, rows after rows.
    fn values(&self, part: &Box3) -> Result<Vec<T>> {
        let bytes = self.shared.read(self.id, part)?;
        Ok(bytes.chunks_exact(size_of::<T>()).map(T::from_slice).collect())
    }
}
