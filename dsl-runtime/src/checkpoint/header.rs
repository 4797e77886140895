//! What a checkpoint tells beside the values of fields, and its bytes.

use std::collections::BTreeSet;

use crate::error::CheckpointDifference as Difference;
use crate::kernel::ScalarType;

/// Everything but the values of fields. Names are unique within each list, and their order is of no meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// A fingerprint of the kernels and steps, see [`fingerprint`](super::fingerprint).
    pub(crate) program: u128,
    /// Cells of the grid along X, Y and Z.
    pub(crate) grid: [usize; 3],
    /// Steps of the simulation that were finished.
    pub(crate) steps: u64,
    /// The fields.
    pub(crate) fields: Vec<StoredField>,
    /// The scalars that live in the simulation.
    pub(crate) scalars: Vec<StoredScalar>,
    /// How often each recorded step was done.
    pub(crate) counters: Vec<Counter>,
    /// What probes have recorded.
    pub(crate) records: Vec<StoredRecord>,
}

/// A field of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredField {
    /// Its name.
    pub(crate) name: String,
    /// The type of a cell.
    pub(crate) ty: ScalarType,
    /// Cells along X, Y and Z; 1 along the axes that it hasn't.
    pub(crate) cells: [usize; 3],
}

/// A scalar of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredScalar {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) ty: ScalarType,
    /// The bits of its value, in the low bytes.
    pub(crate) bits: u64,
}

/// How often something was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    /// Its name.
    pub(crate) name: String,
    /// The number of times.
    pub(crate) count: u64,
}

/// Values that were recorded, some per step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    /// Its name.
    pub(crate) name: String,
    /// The type of a value.
    pub(crate) ty: ScalarType,
    /// Values per step.
    pub(crate) points: usize,
    /// The little-endian bytes of the values, step after step.
    pub(crate) values: Vec<u8>,
}

impl StoredField {
    /// The size of its values; `None` if there are none, or more than a machine could hold.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let cells = self.cells.iter().try_fold(1_usize, |cells, &more| cells.checked_mul(more))?;
        let bytes = cells.checked_mul(self.ty.bytes()).filter(|&bytes| bytes > 0 && isize::try_from(bytes).is_ok())?;
        u64::try_from(bytes).ok()
    }
}

impl Header {
    /// The size of the values of all fields; `None` if one has none, or no file could hold them.
    pub(crate) fn field_bytes(&self) -> Option<u64> {
        let sum = self.fields.iter().try_fold(0_u64, |sum, field| sum.checked_add(field.bytes()?));
        // Room for everything else in a file.
        sum.filter(|&sum| sum <= u64::MAX / 4)
    }

    /// A name that two fields, scalars, step counters or records have.
    pub(crate) fn repeated(&self) -> Option<&str> {
        self.names().into_iter().find_map(|(_, names)| {
            let mut seen = BTreeSet::new();
            names.into_iter().find(|&name| !seen.insert(name))
        })
    }

    fn names(&self) -> [(&'static str, Vec<&str>); 4] {
        [
            ("fields", self.fields.iter().map(|field| field.name.as_str()).collect()),
            ("scalars", self.scalars.iter().map(|scalar| scalar.name.as_str()).collect()),
            ("step counters", self.counters.iter().map(|counter| counter.name.as_str()).collect()),
            ("records", self.records.iter().map(|record| record.name.as_str()).collect()),
        ]
    }

    /// The first fact in which this state differs in form from that of a simulation: the numbers don't count.
    pub(crate) fn difference(&self, expected: &Self) -> Option<Difference> {
        if self.grid != expected.grid {
            return Some(Difference::Grid { found: self.grid, expected: expected.grid });
        }
        for ((what, found), (_, expected)) in self.names().into_iter().zip(expected.names()) {
            let only = |names: &[&str], others: &[&str]| -> Vec<String> {
                let others: BTreeSet<_> = others.iter().collect();
                names.iter().filter(|name| !others.contains(name)).map(|&name| name.into()).collect()
            };
            let (missing, surplus) = (only(&expected, &found), only(&found, &expected));
            if !(missing.is_empty() && surplus.is_empty()) {
                return Some(Difference::Names { what, missing, surplus });
            }
        }
        // From here on, each thing has its counterpart.
        let fields = self.fields.iter().find_map(|found| {
            let expected = expected.fields.iter().find(|expected| expected.name == found.name)?;
            other_type("field", &found.name, found.ty, expected.ty).or_else(|| {
                let [found_cells, expected] = [found.cells, expected.cells];
                (found_cells != expected).then(|| Difference::Extent {
                    name: found.name.clone(),
                    found: found_cells,
                    expected,
                })
            })
        });
        let scalars = || {
            self.scalars.iter().find_map(|found| {
                let expected = expected.scalars.iter().find(|expected| expected.name == found.name)?;
                other_type("scalar", &found.name, found.ty, expected.ty)
            })
        };
        let records = || {
            self.records.iter().find_map(|found| {
                let expected = expected.records.iter().find(|expected| expected.name == found.name)?;
                other_type("record", &found.name, found.ty, expected.ty).or_else(|| {
                    let [found_points, expected] = [found.points, expected.points];
                    (found_points != expected).then(|| Difference::Points {
                        name: found.name.clone(),
                        found: found_points,
                        expected,
                    })
                })
            })
        };
        let program = || {
            let [found, expected] = [self.program, expected.program];
            (found != expected).then_some(Difference::Program { found, expected })
        };
        fields.or_else(scalars).or_else(records).or_else(program)
    }

    /// The bytes of the header in a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Bytes(self.program.to_le_bytes().into());
        self.grid.iter().for_each(|&cells| bytes.number(cells as u64));
        bytes.number(self.steps);
        bytes.number(self.fields.len() as u64);
        for StoredField { name, ty, cells } in &self.fields {
            bytes.run(name.as_bytes());
            bytes.0.push(code(*ty));
            cells.iter().for_each(|&cells| bytes.number(cells as u64));
        }
        bytes.number(self.scalars.len() as u64);
        for StoredScalar { name, ty, bits } in &self.scalars {
            bytes.run(name.as_bytes());
            bytes.0.push(code(*ty));
            bytes.number(*bits);
        }
        bytes.number(self.counters.len() as u64);
        for Counter { name, count } in &self.counters {
            bytes.run(name.as_bytes());
            bytes.number(*count);
        }
        bytes.number(self.records.len() as u64);
        for StoredRecord { name, ty, points, values } in &self.records {
            bytes.run(name.as_bytes());
            bytes.0.push(code(*ty));
            bytes.number(*points as u64);
            bytes.run(values);
        }
        bytes.0
    }

    /// The header that has these bytes, or what is wrong with them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = Rest(bytes);
        let header = Self {
            program: u128::from_le_bytes(rest.array()?),
            grid: [rest.size()?, rest.size()?, rest.size()?],
            steps: rest.number()?,
            fields: rest.list(|rest| {
                Ok(StoredField {
                    name: rest.name()?,
                    ty: rest.ty()?,
                    cells: [rest.size()?, rest.size()?, rest.size()?],
                })
            })?,
            scalars: rest.list(Rest::scalar)?,
            counters: rest.list(|rest| Ok(Counter { name: rest.name()?, count: rest.number()? }))?,
            records: rest.list(Rest::record)?,
        };
        if !rest.0.is_empty() {
            return Err("its header is too long");
        }
        if header.repeated().is_some() {
            return Err("two things of one kind have the same name");
        }
        Ok(header)
    }
}

fn other_type(what: &'static str, name: &str, found: ScalarType, expected: ScalarType) -> Option<Difference> {
    (found != expected).then(|| Difference::Type { what, name: name.into(), found, expected })
}

/// The number of a type in a file. These numbers never change.
fn code(ty: ScalarType) -> u8 {
    match ty {
        ScalarType::F64 => 1,
        ScalarType::F32 => 2,
        ScalarType::I64 => 3,
        ScalarType::I32 => 4,
        ScalarType::I8 => 5,
        ScalarType::U64 => 6,
        ScalarType::U32 => 7,
        ScalarType::U8 => 8,
        ScalarType::Bool => 9,
    }
}

/// A header in the making.
struct Bytes(Vec<u8>);

impl Bytes {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn run(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// The bytes of a header that are still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("its header is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        self.array().map(u64::from_le_bytes)
    }

    fn size(&mut self) -> Result<usize, &'static str> {
        self.number()?.try_into().map_err(|_| "a number in its header is too large for this machine")
    }

    fn run(&mut self) -> Result<&'a [u8], &'static str> {
        let count = self.size()?;
        self.take(count)
    }

    fn name(&mut self) -> Result<String, &'static str> {
        str::from_utf8(self.run()?).map(str::to_owned).map_err(|_| "a name in its header is no text")
    }

    fn ty(&mut self) -> Result<ScalarType, &'static str> {
        let [number] = self.array()?;
        ScalarType::ALL.into_iter().find(|&ty| code(ty) == number).ok_or("its header names an unknown type")
    }

    /// As many things as the next number says. Each takes some bytes, so a number that is too large ends soon.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T, &'static str>) -> Result<Vec<T>, &'static str> {
        (0..self.number()?).map(|_| one(self)).collect()
    }

    fn scalar(&mut self) -> Result<StoredScalar, &'static str> {
        let (name, ty, bits) = (self.name()?, self.ty()?, self.number()?);
        let used = 8 * ty.bytes() as u32;
        let fits = bits.checked_shr(used).unwrap_or(0) == 0 && (ty != ScalarType::Bool || bits <= 1);
        if fits { Ok(StoredScalar { name, ty, bits }) } else { Err("a scalar in its header is no value of its type") }
    }

    fn record(&mut self) -> Result<StoredRecord, &'static str> {
        let (name, ty, points, values) = (self.name()?, self.ty()?, self.size()?, self.run()?.to_vec());
        let step = points.checked_mul(ty.bytes()).ok_or("a record in its header has too many points")?;
        if values.len().checked_rem(step).unwrap_or(values.len()) != 0 {
            return Err("a record in its header ends inside a step");
        }
        Ok(StoredRecord { name, ty, points, values })
    }
}
