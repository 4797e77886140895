//! Records: values that a step writes down each time it runs, at points of a field or of a scalar.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use ndarray::Array2;
use ndarray_npy::WriteNpyExt;

use crate::element::Element;
use crate::error::Result;
use crate::files;
use crate::simulation::Shared;

/// What a step wrote down, one row for each step that was run.
///
/// It is a handle: clones are the same record.
pub struct Record<T: Element> {
    shared: Arc<Shared>,
    id: usize,
    value: PhantomData<fn() -> T>,
}

impl<T: Element> Clone for Record<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), ..*self }
    }
}

impl<T: Element> fmt::Debug for Record<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record<{}> {}", T::TYPE, self.id)
    }
}

impl<T: Element> Record<T> {
    pub(crate) fn new(shared: Arc<Shared>, id: usize) -> Self {
        Self { shared, id, value: PhantomData }
    }

    /// All values, in an array of shape (steps, points); a scalar has one point.
    pub fn read(&self) -> Result<Array2<T>> {
        let (points, words) = self.shared.record(self.id)?;
        let values: Vec<_> = words.into_iter().map(T::from_word).collect();
        let steps = values.len().checked_div(points).unwrap_or(0);
        Ok(Array2::from_shape_vec((steps, points), values).expect("a record grows by whole rows"))
    }

    /// The values at the first point, one for each step: all there is of a scalar.
    pub fn values(&self) -> Result<Vec<T>> {
        Ok(self.read()?.columns().into_iter().next().map(|column| column.to_vec()).unwrap_or_default())
    }

    /// Forgets what was written down so far.
    pub fn clear(&self) -> Result<()> {
        self.shared.clear_record(self.id)
    }

    /// Writes all values to a `.npy` file as an array of shape (steps, points). The file is complete or not there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let array = self.read()?;
        files::replace(path.as_ref(), |file| array.write_npy(file).map_err(std::io::Error::other))
    }
}

/// Points of a grid with a weight each, where sources act or receivers listen.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    pub(crate) at: Vec<[usize; 3]>,
    pub(crate) weights: Vec<f64>,
}

impl Points {
    /// These points (i, j, k), all with weight 1.
    pub fn at(points: impl IntoIterator<Item = [usize; 3]>) -> Self {
        let at: Vec<_> = points.into_iter().collect();
        Self { weights: vec![1.0; at.len()], at }
    }

    /// These points with their weights: what is injected is multiplied by them, rounded to the field's type.
    pub fn weighted(points: impl IntoIterator<Item = ([usize; 3], f64)>) -> Self {
        let (at, weights) = points.into_iter().unzip();
        Self { at, weights }
    }
}

impl From<[usize; 3]> for Points {
    fn from(point: [usize; 3]) -> Self {
        Self::at([point])
    }
}

impl<const N: usize> From<[[usize; 3]; N]> for Points {
    fn from(points: [[usize; 3]; N]) -> Self {
        Self::at(points)
    }
}

impl From<Vec<[usize; 3]>> for Points {
    fn from(points: Vec<[usize; 3]>) -> Self {
        Self::at(points)
    }
}

impl From<&[[usize; 3]]> for Points {
    fn from(points: &[[usize; 3]]) -> Self {
        Self::at(points.iter().copied())
    }
}
