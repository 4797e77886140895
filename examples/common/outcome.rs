//! What an example has computed: its final fields, and numbers of every step.

use std::path::Path;

use polyhalo::Element;
use polyhalo::prelude::*;
use serde_json::{Value, json};

use super::difference::{Difference, sum};

/// A field of any type whose values an `f64` holds exactly.
pub(crate) trait Values {
    fn values(&self) -> Result<Vec<f64>>;
    fn cells(&self) -> [usize; 3];
    fn save(&self, path: &Path) -> Result<()>;
    fn picture(&self, path: &Path, picture: Picture) -> Result<()>;
}

impl<T: Element + Into<f64>> Values for Field<T> {
    fn values(&self) -> Result<Vec<f64>> {
        Ok(self.read()?.into_iter().map(Into::into).collect())
    }

    fn cells(&self) -> [usize; 3] {
        self.cells()
    }

    fn save(&self, path: &Path) -> Result<()> {
        self.save(path)
    }

    fn picture(&self, path: &Path, picture: Picture) -> Result<()> {
        self.save_png(path, picture)
    }
}

/// The results of a run.
pub(crate) struct Outcome {
    pub(crate) report: Report,
    pub(crate) picture: Picture,
    /// The first is the one that is saved and shown.
    fields: Vec<Box<dyn Values>>,
    /// Numbers of every step.
    series: Vec<(&'static str, Vec<f64>)>,
    /// What is said beside the report.
    pub(crate) lines: Vec<String>,
    /// Whether the example's own checks hold.
    pub(crate) is_right: bool,
}

impl Outcome {
    /// A run whose result is this field, shown in this picture.
    pub(crate) fn new<T: Element + Into<f64>>(
        report: Report,
        field: &Field<T>,
        picture: impl Into<Picture>,
    ) -> Outcome {
        let (picture, fields) = (picture.into(), Vec::new());
        Outcome { report, picture, fields, series: Vec::new(), lines: Vec::new(), is_right: true }.with([field])
    }

    /// With more final fields.
    pub(crate) fn with<'a, T: Element + Into<f64>>(mut self, fields: impl IntoIterator<Item = &'a Field<T>>) -> Self {
        self.fields.extend(fields.into_iter().map(|field| Box::new(field.clone()) as Box<dyn Values>));
        self
    }

    /// With a number of every step.
    pub(crate) fn series(mut self, name: &'static str, values: Vec<f64>) -> Self {
        self.series.push((name, values));
        self
    }

    /// With something to say.
    pub(crate) fn line(mut self, line: String) -> Self {
        self.lines.push(line);
        self
    }

    /// With a check of the example's own.
    pub(crate) fn check(self, is_right: bool) -> Self {
        Outcome { is_right: self.is_right && is_right, ..self }
    }

    /// The field that is saved and shown.
    pub(crate) fn field(&self) -> &dyn Values {
        &*self.fields[0]
    }

    /// How all fields and series differ from those of the reference.
    pub(crate) fn difference(&self, reference: &Outcome) -> Result<Difference> {
        let mut difference = Difference::NONE;
        for (field, expected) in self.fields.iter().zip(&reference.fields) {
            difference = difference.and(&field.values()?, &expected.values()?);
        }
        let series = self.series.iter().zip(&reference.series);
        Ok(series.fold(difference, |difference, ((_, found), (_, expected))| difference.and(found, expected)))
    }

    /// Everything as one object.
    pub(crate) fn json(&self, difference: Option<Difference>) -> Result<Value> {
        let (report, values, [nx, ny, nz]) = (&self.report, self.field().values()?, self.field().cells());
        let n = if nx == ny && ny == nz { json!(nx) } else { json!([nx, ny, nz]) };
        let center = (nz / 2 * ny + ny / 2) * nx + nx / 2;
        let mut object = json!({
            "n": n,
            "grid": report.grid,
            "steps": report.steps,
            "devices": report.devices,
            "exchange": report.exchange.to_string(),
            "shapes": report.shapes.iter().map(|(kernel, shape)| json!([kernel, shape])).collect::<Vec<_>>(),
            "recorded_steps": report.recorded,
            "seconds": report.seconds,
            "points": report.points,
            "points_per_second": report.points_per_second(),
            "effective_bandwidth": report.effective_bandwidth(),
            "copy_bandwidth": report.copy_bandwidth,
            "sum": sum(&values),
            "center": values[center],
        });
        for (name, values) in &self.series {
            object[*name] = json!(values);
        }
        if let Some(difference) = difference {
            object["max_abs_diff"] = json!(difference.max_abs);
            object["bits_equal"] = json!(difference.bits_equal);
            object["within_tolerance"] = json!(difference.close);
        }
        Ok(object)
    }
}
