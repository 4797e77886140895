//! Simulations on disk: checkpoints, from which they go on bit for bit, and images of several fields.

use std::path::Path;

use crate::checkpoint::{self, Counter, Header, StoredField, StoredRecord, StoredScalar};
use crate::element::Element;
use crate::error::{Error, LastCheckpoint, Result};
use crate::field::Field;
use crate::geometry::Box3;
use crate::kernel::KernelDesc;
use crate::plan::FieldId;
use crate::raw::Sink;
use crate::reduction::word;
use crate::schedule::{Stage, Update};
use crate::shape::Shape;
use crate::simulation::{Shared, Simulation};
use crate::state::{State, chunks};
use crate::vti::{self, Array, Image};

impl Simulation {
    /// Writes all fields, scalars, records and counts of steps to a file, which is complete or not there. A simulation of the
    /// same program on any devices can go on from it ([`restore`](Self::restore)).
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let (header, fields) = self.shared.header()?;
        checkpoint::write(path, &header, |number, sink| self.shared.hand_out(fields[number], sink))?;
        let mut state = self.shared.state()?;
        state.last_checkpoint = Some(LastCheckpoint { path: path.into(), steps: state.steps });
        Ok(())
    }

    /// Replaces all fields, scalars, records and counts of steps by those of a checkpoint, once it is found to be whole
    /// and to fit: the same grid, fields, scalars and steps. Make these first, then restore, then run.
    pub fn restore(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut file = checkpoint::open(path.as_ref())?;
        let (expected, fields) = self.shared.header()?;
        file.fits(&expected)?;
        for (field, known) in fields.into_iter().zip(&expected.fields) {
            let place = file.header().fields.iter().position(|stored| stored.name == known.name);
            let place = place.expect("a file that fits has every field");
            let [nx, ny, _] = known.cells.map(|cells| cells as i64);
            file.read_field(place, |planes, bytes| {
                let part = Box3 { lo: [0, 0, planes.start as i64], hi: [nx, ny, planes.end as i64] };
                self.shared.write(field, &part, bytes)
            })?;
        }
        self.shared.state()?.take_over(file.header());
        Ok(())
    }

    /// Writes fields of one extent, at least one, to a VTK image file (`.vti`), which ParaView opens. The file is complete or not there.
    /// Cells are as far apart as the [`spacing`](crate::Builder::spacing) says.
    pub fn save_vti(&self, path: impl AsRef<Path>, fields: &[&dyn AnyField]) -> Result<()> {
        if fields.is_empty() {
            let reason = "there are no fields to write: name at least one".into();
            return Err(Error::Write { path: path.as_ref().into(), reason });
        }
        let references: Vec<_> = fields.iter().map(|field| field.id_in(self.shared.id)).collect::<Result<_>>()?;
        let shapes: Vec<Shape> = {
            let state = self.shared.state()?;
            references.iter().map(|field| state.shapes[field.0 as usize].clone()).collect()
        };
        let cells = shapes.first().map_or(self.cells(), |shape| shape.cells);
        if let Some(other) = shapes.iter().find(|shape| shape.cells != cells) {
            let reason = format!(
                "field `{}` has another extent than `{}`: save it to a file of its own",
                other.name, shapes[0].name
            );
            return Err(Error::Write { path: path.as_ref().into(), reason });
        }
        let arrays = shapes.iter().map(|shape| Array { name: shape.name.clone(), ty: shape.ty }).collect();
        let image = Image { cells, spacing: self.shared.spacing, origin: self.shared.corner, arrays };
        vti::write(path.as_ref(), &image, |number, sink| self.shared.hand_out(references[number], sink))
    }
}

/// A field of any type.
pub trait AnyField {
    /// Its number in a simulation, if it belongs to it.
    #[doc(hidden)]
    fn id_in(&self, simulation: u64) -> Result<FieldId>;
}

impl<T: Element> AnyField for Field<T> {
    fn id_in(&self, simulation: u64) -> Result<FieldId> {
        let reference = self.reference();
        if reference.simulation == simulation {
            return Ok(reference.id);
        }
        Err(Error::Foreign { what: "field", name: (*reference.name).into() })
    }
}

impl Shared {
    /// Hands all values of a field to a sink, X fastest.
    pub(crate) fn hand_out(&self, field: FieldId, sink: &mut Sink<'_>) -> Result<()> {
        let (whole, cell) = {
            let state = self.state()?;
            let shape = &state.shapes[field.0 as usize];
            (shape.whole(), shape.ty.bytes())
        };
        chunks(&whole, cell).try_for_each(|part| sink(&self.read(field, &part)?))
    }

    /// The state but for the values of fields, and the fields that are stored.
    fn header(&self) -> Result<(Header, Vec<FieldId>)> {
        let state = self.state()?;
        state.check()?;
        let kept = || state.fields.iter().enumerate().filter(|(_, facts)| !facts.keeps_rows).map(|(number, _)| number);
        let scalars = state.scalars.iter().zip(&state.values);
        let records = state.records.iter().zip(&state.written).enumerate();
        let header = Header {
            program: state.program,
            grid: self.extent.cells(),
            steps: state.steps,
            fields: kept()
                .map(|number| {
                    let Shape { name, ty, cells, .. } = &state.shapes[number];
                    StoredField { name: name.clone(), ty: *ty, cells: *cells }
                })
                .collect(),
            scalars: scalars
                .map(|(facts, &bits)| StoredScalar { name: facts.name.clone(), ty: facts.ty, bits })
                .collect(),
            counters: (state.counts.iter().enumerate())
                .map(|(number, &count)| Counter { name: format!("step {number}"), count })
                .collect(),
            records: records
                .map(|(number, (facts, words))| StoredRecord {
                    name: format!("record {number}"),
                    ty: facts.ty,
                    points: facts.points,
                    values: words.iter().flat_map(|word| word.to_le_bytes()[..facts.ty.bytes()].to_vec()).collect(),
                })
                .collect(),
        };
        let fields = kept().map(|number| FieldId(number as u32)).collect();
        Ok((header, fields))
    }
}

impl State {
    /// Takes over everything but the values of fields.
    fn take_over(&mut self, header: &Header) {
        self.steps = header.steps;
        for (facts, value) in self.scalars.iter().zip(&mut self.values) {
            if let Some(stored) = header.scalars.iter().find(|stored| stored.name == facts.name) {
                *value = stored.bits;
            }
        }
        for (number, count) in self.counts.iter_mut().enumerate() {
            if let Some(stored) = header.counters.iter().find(|stored| stored.name == format!("step {number}")) {
                *count = stored.count;
            }
        }
        for (number, (facts, words)) in self.records.iter().zip(&mut self.written).enumerate() {
            if let Some(stored) = header.records.iter().find(|stored| stored.name == format!("record {number}")) {
                *words = stored.values.chunks_exact(facts.ty.bytes()).map(word).collect();
            }
        }
    }
}

/// A fingerprint of a step, after those of earlier ones: what it computes, of what, where.
pub(crate) fn program(before: u128, stages: &[Stage], shapes: &[Shape]) -> u128 {
    let name = |field: &FieldId| shapes[field.0 as usize].name.as_str();
    let mut texts = vec![before.to_string()];
    for stage in stages {
        texts.push(match stage {
            Stage::Update(Update { kernel, fields, scalars, outputs, boxes, parity }) => {
                let fields: Vec<_> = fields.iter().map(name).collect();
                let code = code(kernel);
                format!(
                    "{}::{} {code} {fields:?} {scalars:?} {outputs:?} {boxes:?} {parity:?}",
                    kernel.module, kernel.name
                )
            }
            other => format!("{other:?}"),
        });
    }
    texts.extend(shapes.iter().map(|shape| format!("{} {:?}", shape.name, shape.faces)));
    checkpoint::fingerprint(texts.iter().map(String::as_str))
}

/// What a kernel computes: its code without names of files and numbers of lines.
fn code(kernel: &KernelDesc) -> String {
    kernel.code.spirv.iter().map(|byte| format!("{byte:02x}")).collect()
}
