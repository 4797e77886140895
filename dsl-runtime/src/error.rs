//! Everything that can go wrong while a program runs, with the facts as fields.

use std::fmt;
use std::path::PathBuf;

use crate::kernel::ScalarType;

/// What a fallible call of the runtime gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure at run time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No device answers to the description.
    #[error("no device answers to `{spec}`: {reason}\n{inventory}")]
    NoSuchDevice {
        /// What was asked for.
        spec: String,
        /// Why nothing answers.
        reason: String,
        /// What is there, and why the rest is not.
        inventory: String,
    },
    /// The description asks for more devices than this version drives.
    #[error("`{spec}` asks for {count} devices, and this version runs on one device at a time: ask for `{instead}`")]
    SeveralDevices {
        /// What was asked for.
        spec: String,
        /// How many devices that is.
        count: usize,
        /// A description that works.
        instead: String,
    },
    /// There is no exchange strategy of that name.
    #[error("there is no exchange strategy `{name}`: it is one of {}", known.join(", "))]
    NoSuchExchange {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
    /// The number of threads can't be served.
    #[error(
        "{asked} threads were asked for: ask for 1 to {most}, at best for the {allowed} CPUs that this process may use"
    )]
    Threads {
        /// How many were asked for.
        asked: usize,
        /// How many CPUs the process may use.
        allowed: usize,
        /// The largest number that is served.
        most: usize,
    },
    /// An instruction set was asked for that this CPU lacks or this program has no code for.
    #[error("the instruction set `{asked}` can't be used: {reason}")]
    InstructionSet {
        /// What was asked for.
        asked: String,
        /// Why it can't be used.
        reason: String,
    },
    /// An axis has no cells.
    #[error("a grid of {} has no cells along {axis}: every axis needs at least one", Shape(extent))]
    EmptyGrid {
        /// Cells along X, Y and Z.
        extent: [usize; 3],
        /// The axis without cells.
        axis: &'static str,
    },
    /// The cells can't be counted or addressed.
    #[error(
        "a grid of {} is too large: an axis has at most 2147483647 cells, and a field must fit into the address space",
        Shape(extent)
    )]
    GridTooLarge {
        /// Cells along X, Y and Z.
        extent: [usize; 3],
    },
    /// The footprint of a kernel is wider than the grid.
    #[error(
        "`{kernel}` reads `{field}` over {needed} cells along {axis} ({file}:{line}), and the grid has {cells}: \
         no point of it can be updated; use at least {needed} cells along {axis}"
    )]
    GridTooSmall {
        /// The kernel.
        kernel: String,
        /// The parameter that is read.
        field: String,
        /// The axis.
        axis: &'static str,
        /// Cells there.
        cells: usize,
        /// Cells needed.
        needed: usize,
        /// The file of the kernel.
        file: String,
        /// The line of the read that reaches farthest.
        line: u32,
    },
    /// A subdomain would be thinner than the halo that it must supply.
    #[error(
        "{cells} cells along {axis} can't be split over {parts} devices: each must own at least {needed} to supply its \
         neighbours' halos; use at most {most} devices"
    )]
    SubdomainTooThin {
        /// The axis that is split.
        axis: &'static str,
        /// Cells there.
        cells: usize,
        /// The number of devices.
        parts: usize,
        /// The least number of cells of a subdomain.
        needed: usize,
        /// The largest number of devices that works.
        most: usize,
    },
    /// An array has another shape than the grid.
    #[error(
        "{what} has shape {}, and the grid of field `{field}` needs {} (Z, Y, X: the last index runs along X)",
        List(found),
        List(expected)
    )]
    Shape {
        /// The array.
        what: String,
        /// The field that it is for.
        field: String,
        /// The shape of the field.
        expected: Vec<usize>,
        /// The shape of the array.
        found: Vec<usize>,
    },
    /// A field has another type than the kernel's parameter or result.
    #[error("`{kernel}` wants {expected} for {what}, and field `{field}` holds {found}")]
    ElementType {
        /// The kernel.
        kernel: String,
        /// The parameter or result.
        what: String,
        /// The field.
        field: String,
        /// The type that the kernel has.
        expected: ScalarType,
        /// The type that the field has.
        found: ScalarType,
    },
    /// The call doesn't fit the kernel (calls made by `#[stencil]` always do).
    #[error("the call doesn't fit `{kernel}`: it takes {expected} {what}, and {found} were given")]
    Arguments {
        /// The kernel.
        kernel: String,
        /// Fields, scalars or results.
        what: &'static str,
        /// How many the kernel has.
        expected: usize,
        /// How many the call has.
        found: usize,
    },
    /// Two fields of one simulation have the same name.
    #[error("there is a field `{name}` already: give each field of a simulation its own name")]
    DuplicateField {
        /// The name.
        name: String,
    },
    /// A field or a step belongs to another simulation.
    #[error("{what} `{name}` belongs to another simulation: use it with the simulation that made it")]
    Foreign {
        /// A field or a step.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An update writes one field twice.
    #[error("the update by `{kernel}` writes field `{field}` twice: give each result a field of its own")]
    WrittenTwice {
        /// The kernel.
        kernel: String,
        /// The field.
        field: String,
    },
    /// A point outside the grid was asked for.
    #[error("field `{field}` has no point ({}, {}, {}): its grid is {}", at[0], at[1], at[2], Shape(extent))]
    OutsideGrid {
        /// The field.
        field: String,
        /// The point.
        at: [usize; 3],
        /// Cells along X, Y and Z.
        extent: [usize; 3],
    },
    /// A device hasn't enough free memory.
    #[error("{what} needs {}, and {device} has {} free ({limit}): use a smaller grid or another device", Bytes(*needed), Bytes(*free))]
    OutOfMemory {
        /// The device.
        device: String,
        /// What the memory is for.
        what: String,
        /// The bytes needed.
        needed: u64,
        /// The bytes free.
        free: u64,
        /// What sets the limit.
        limit: String,
    },
    /// A device can't run a kernel.
    #[error("{device} can't run `{kernel}`: {reason}")]
    Unsupported {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
        /// What is missing, and what would have worked.
        reason: String,
    },
    /// The vendor's compiler refused a kernel.
    #[error("{device} couldn't build `{kernel}` ({form}); its log says:\n{log}")]
    Build {
        /// The device.
        device: String,
        /// The kernel.
        kernel: String,
        /// The form of the code that was given to it.
        form: String,
        /// The vendor's log.
        log: String,
    },
    /// A call of a driver failed.
    #[error("{call} failed on {device}: {message}")]
    Driver {
        /// The back end.
        backend: &'static str,
        /// The device.
        device: String,
        /// The call.
        call: String,
        /// What the driver said.
        message: String,
    },
    /// The operating system refused something.
    #[error("{call} failed: {source}")]
    System {
        /// What was tried.
        call: String,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// A kernel or a thread of a device panicked.
    #[error("{device} stopped in {place}: {message}")]
    Panicked {
        /// The device.
        device: String,
        /// Where.
        place: String,
        /// The message of the panic.
        message: String,
    },
    /// An earlier failure left the fields of the simulation undefined.
    #[error(
        "the simulation stopped after {steps} steps because an operation failed, and its fields are undefined: build it again"
    )]
    Stopped {
        /// The number of steps that were finished before.
        steps: u64,
    },
    /// A file couldn't be read.
    #[error("couldn't read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file couldn't be written.
    #[error("couldn't write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// `256x256x256`.
struct Shape<'a>(&'a [usize; 3]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.0[0], self.0[1], self.0[2])
    }
}

/// `(4, 5, 6)`.
struct List<'a>(&'a [usize]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(usize::to_string).collect();
        write!(f, "({})", numbers.join(", "))
    }
}

/// A number of bytes with a unit, for people.
pub struct Bytes(
    /// The number.
    pub u64,
);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_printed_with_a_fitting_unit() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB"), (u64::MAX, "16.0 EiB")]
        {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn a_small_grid_is_explained_in_one_sentence() {
        let error = Error::GridTooSmall {
            kernel: "heat".into(),
            field: "u".into(),
            axis: "Y",
            cells: 2,
            needed: 3,
            file: "src/main.rs".into(),
            line: 7,
        };
        assert_eq!(
            error.to_string(),
            "`heat` reads `u` over 3 cells along Y (src/main.rs:7), and the grid has 2: \
             no point of it can be updated; use at least 3 cells along Y"
        );
    }
}
