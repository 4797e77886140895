//! In what a checkpoint differs from a simulation.

use std::fmt;

use super::Shape;
use crate::kernel::ScalarType;

/// A fact in which a checkpoint differs from a simulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointDifference {
    /// The grid.
    #[error("its grid is {}, and the simulation's is {}", Shape(found), Shape(expected))]
    Grid {
        /// Cells along X, Y and Z in the file.
        found: [usize; 3],
        /// Cells along X, Y and Z in the simulation.
        expected: [usize; 3],
    },
    /// The names of fields, scalars, records or counters of steps.
    #[error("{}", Names { what, missing, surplus })]
    Names {
        /// Fields, scalars, records or step counters.
        what: &'static str,
        /// What the simulation has and the file hasn't.
        missing: Vec<String>,
        /// What the file has and the simulation hasn't.
        surplus: Vec<String>,
    },
    /// The type of a field, a scalar or a record.
    #[error("{what} `{name}` holds {found}, and the simulation's holds {expected}")]
    Type {
        /// Field, scalar or record.
        what: &'static str,
        /// Its name.
        name: String,
        /// The type in the file.
        found: ScalarType,
        /// The type in the simulation.
        expected: ScalarType,
    },
    /// The extent of a field.
    #[error("field `{name}` has {} cells, and the simulation's has {}", Shape(found), Shape(expected))]
    Extent {
        /// The field.
        name: String,
        /// Cells along X, Y and Z in the file.
        found: [usize; 3],
        /// Cells along X, Y and Z in the simulation.
        expected: [usize; 3],
    },
    /// The number of points of a record.
    #[error("record `{name}` has {found} values per step, and the simulation's has {expected}")]
    Points {
        /// The record.
        name: String,
        /// Values per step in the file.
        found: usize,
        /// Values per step in the simulation.
        expected: usize,
    },
    /// The kernels, or the steps made of them.
    #[error(
        "it was written by a program with other kernels or steps, and would not go on as it began; use the program that wrote it"
    )]
    Program {
        /// The fingerprint in the file.
        found: u128,
        /// The fingerprint of the simulation.
        expected: u128,
    },
}

/// Names on one side only.
struct Names<'a> {
    what: &'static str,
    missing: &'a [String],
    surplus: &'a [String],
}

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, missing, surplus } = self;
        let list = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let lacks = format!("it has no {what} {}, which the simulation has", list(missing));
        let holds = format!("it has {what} {}, which the simulation hasn't", list(surplus));
        match (missing.is_empty(), surplus.is_empty()) {
            (false, true) => f.write_str(&lacks),
            (true, _) => f.write_str(&holds),
            (false, false) => write!(f, "{lacks}, and {holds}"),
        }
    }
}
