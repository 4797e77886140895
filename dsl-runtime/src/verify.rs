//! Checked runs: every step is done by the reference device too, from the same values, and compared bit for bit; and no
//! value of a halo cell that was made worthless may come to be a value of a field.

use std::io::Write;
use std::sync::Arc;

use crate::distribute::poison;
use crate::error::{Error, Result};
use crate::execute::Program;
use crate::geometry::Box3;
use crate::kernel::ScalarType;
use crate::partition::Split;
use crate::plan::FieldId;
use crate::reduction::word;
use crate::shape::Shape;
use crate::simulation::Shared;
use crate::state::chunks;

/// A simulation on the reference device that follows another one.
pub(crate) struct Shadow {
    pub(crate) shared: Arc<Shared>,
}

impl Shadow {
    /// Gives the shadow what the other simulation has: fields with their boundaries, scalars, records.
    pub(crate) fn take_shape(&self, shared: &Shared) -> Result<()> {
        let known = self.shared.state()?.shapes.len();
        let all: Vec<(Shape, bool)> = {
            let state = shared.state()?;
            state.shapes.iter().cloned().zip(state.fields.iter().map(|facts| facts.keeps_rows)).collect()
        };
        for (shape, keeps_rows) in &all[known..] {
            self.shared.add_field(shape.clone(), *keeps_rows)?;
        }
        let state = shared.state()?;
        let mut shadow = self.shared.state()?;
        shadow.shapes = all.into_iter().map(|(shape, _)| shape).collect();
        shadow.follow_numbers(&state);
        Ok(())
    }

    /// Gives the shadow the values that the other simulation has now.
    fn take_values(&self, shared: &Shared) -> Result<()> {
        self.take_shape(shared)?;
        for (field, shape) in shared.kept()? {
            for part in chunks(&shape.whole(), shape.ty.bytes()) {
                self.shared.write(field, &part, &shared.read(field, &part)?)?;
            }
        }
        Ok(())
    }
}

impl Shared {
    /// The fields that users know.
    fn kept(&self) -> Result<Vec<(FieldId, Shape)>> {
        let state = self.state()?;
        let kept = state.shapes.iter().zip(&state.fields).enumerate().filter(|(_, (_, facts))| !facts.keeps_rows);
        Ok(kept.map(|(number, (shape, _))| (FieldId(number as u32), shape.clone())).collect())
    }

    /// Does steps as [`advance_all`](Self::advance_all) does, a run at a time, and checks each.
    pub(crate) fn advance_checked(
        &self,
        programs: &[Program],
        check: Option<&Program>,
        number: usize,
        steps: u64,
    ) -> Result<std::time::Duration> {
        let at_once = programs.first().map_or(1, |program| program.plan.steps.max(1));
        let (mut left, mut time) = (steps, std::time::Duration::ZERO);
        while left > 0 {
            let now = at_once.min(left);
            let clean = if self.paranoid { self.without_poison()? } else { Vec::new() };
            let shadow = self.shadow.as_ref().zip(check);
            if let Some((shadow, _)) = shadow {
                shadow.take_values(self)?;
            }
            time += self.advance_all(programs, number, now)?;
            clean.iter().try_for_each(|(field, shape)| self.find_poison(*field, shape))?;
            if let Some((shadow, check)) = shadow {
                shadow.shared.advance_all(std::slice::from_ref(check), number, now)?;
                self.compare(&shadow.shared)?;
            }
            left -= now;
        }
        note_checked(steps)?;
        Ok(time)
    }

    /// The fields in which no value looks as poison does.
    fn without_poison(&self) -> Result<Vec<(FieldId, Shape)>> {
        let mut clean = Vec::new();
        for (field, shape) in self.kept()? {
            if can_tell(shape.ty) && self.find_poison(field, &shape).is_ok() {
                clean.push((field, shape));
            }
        }
        Ok(clean)
    }

    fn find_poison(&self, field: FieldId, shape: &Shape) -> Result<()> {
        let is_poison = |bits: u64| match shape.ty {
            // Arithmetic may change the payload.
            ScalarType::F64 => f64::from_bits(bits).is_nan(),
            ScalarType::F32 => f32::from_bits(bits as u32).is_nan(),
            ty => bits == poison(ty),
        };
        for part in chunks(&shape.whole(), shape.ty.bytes()) {
            let bytes = self.read(field, &part)?;
            let mut values = bytes.chunks_exact(shape.ty.bytes());
            if let Some(place) = values.position(|bytes| is_poison(word(bytes))) {
                let at = cell(&part, place);
                let (device, plane) = self.owner(at);
                return Err(Error::Poisoned {
                    field: shape.name.clone(),
                    at,
                    device,
                    plane,
                    step: self.state()?.steps,
                });
            }
        }
        Ok(())
    }

    /// An error if a field, a scalar or a record differs from that of the reference.
    fn compare(&self, reference: &Self) -> Result<()> {
        let step = self.state()?.steps;
        let differs = |what: String, place: String, ty: ScalarType, found: u64, expected: u64| {
            Err(Error::Differs { what, place, step, found: shown(ty, found), expected: shown(ty, expected) })
        };
        for (field, shape) in self.kept()? {
            for part in chunks(&shape.whole(), shape.ty.bytes()) {
                let (found, expected) = (self.read(field, &part)?, reference.read(field, &part)?);
                let size = shape.ty.bytes();
                let words = |bytes| <[u8]>::chunks_exact(bytes, size).map(word);
                let mut pairs = words(&found).zip(words(&expected)).enumerate();
                if let Some((place, (found, expected))) = pairs.find(|(_, (a, b))| !alike(shape.ty, *a, *b)) {
                    let at = cell(&part, place);
                    let (device, plane) = self.owner(at);
                    let place = format!("{at:?}, plane {plane} of the subdomain of {device}");
                    return differs(format!("field `{}`", shape.name), place, shape.ty, found, expected);
                }
            }
        }
        let (state, reference) = (self.state()?, reference.state()?);
        for ((facts, &found), &expected) in state.scalars.iter().zip(&state.values).zip(&reference.values) {
            if !alike(facts.ty, found, expected) {
                return differs(format!("scalar `{}`", facts.name), "its value".into(), facts.ty, found, expected);
            }
        }
        for (number, (found, expected)) in state.written.iter().zip(&reference.written).enumerate() {
            let ty = state.records[number].ty;
            let mut pairs = found.iter().zip(expected).enumerate();
            if let Some((row, (&found, &expected))) = pairs.find(|(_, (a, b))| !alike(ty, **a, **b)) {
                return differs(format!("record {number}"), format!("value {row}"), ty, found, expected);
            }
        }
        Ok(())
    }

    /// The device that owns a cell, in words, and the plane in its subdomain.
    fn owner(&self, at: [usize; 3]) -> (String, usize) {
        let split: &Split = &self.split;
        let device = split.owner(at[2] as i64);
        let plane = at[2] - split.start(device) as usize;
        (format!("device {device} ({})", self.devices[device].summary()), plane)
    }
}

/// The variable that names the file in which checked steps are counted, for `polyhalo verify`.
const LOG_VARIABLE: &str = "POLYHALO_VERIFY_LOG";

/// Adds the steps that were checked to the file that the environment names, if it does.
fn note_checked(steps: u64) -> Result<()> {
    let Some(path) = std::env::var_os(LOG_VARIABLE) else { return Ok(()) };
    let file = std::fs::OpenOptions::new().append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{steps}"));
    written.map_err(|error| Error::Write { path: path.into(), reason: error.to_string() })
}

/// Whether poison of this type can be told from a value of a field.
fn can_tell(ty: ScalarType) -> bool {
    ty.bytes() >= 4
}

/// The cell of a box at a place in the order of its values.
fn cell(part: &Box3, place: usize) -> [usize; 3] {
    let [nx, ny, _] = part.size();
    let local = [place % nx, place / nx % ny, place / (nx * ny)];
    std::array::from_fn(|axis| part.lo[axis] as usize + local[axis])
}

/// The same bits, or two NaNs: which one arithmetic gives isn't said anywhere.
fn alike(ty: ScalarType, one: u64, other: u64) -> bool {
    let nans = match ty {
        ScalarType::F64 => f64::from_bits(one).is_nan() && f64::from_bits(other).is_nan(),
        ScalarType::F32 => f32::from_bits(one as u32).is_nan() && f32::from_bits(other as u32).is_nan(),
        _ => false,
    };
    one == other || nans
}

/// A value for people, with its bits where these tell more.
fn shown(ty: ScalarType, bits: u64) -> String {
    match ty {
        ScalarType::F64 => format!("{:e} (0x{bits:016x})", f64::from_bits(bits)),
        ScalarType::F32 => format!("{:e} (0x{:08x})", f32::from_bits(bits as u32), bits as u32),
        ScalarType::I64 => (bits as i64).to_string(),
        ScalarType::I32 => (bits as i32).to_string(),
        ScalarType::I8 => (bits as i8).to_string(),
        ScalarType::U64 | ScalarType::U32 | ScalarType::U8 => bits.to_string(),
        ScalarType::Bool => (bits != 0).to_string(),
    }
}
