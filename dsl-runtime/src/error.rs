//! Everything that can go wrong while a program runs, with the facts as fields.

mod difference;

use std::fmt;
use std::path::PathBuf;

use crate::kernel::ScalarType;
pub use difference::CheckpointDifference;

/// What a fallible call of the runtime gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure at run time. Its `Debug` form is what it says too, because that is what a `main` which returns it shows.
#[derive(thiserror::Error)]
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
    /// A device description isn't one.
    #[error("`{spec}` describes no devices: {reason}")]
    DeviceDescription {
        /// What was asked for.
        spec: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A device description names a back end that there isn't.
    #[error("`{spec}` asks for `{name}`: a device is `auto` or starts with one of {}", known.join(", "))]
    NoSuchBackend {
        /// What was asked for.
        spec: String,
        /// The name in it.
        name: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
    /// A device description names a platform that there isn't.
    #[error(
        "`{spec}` asks for the platform `{platform}`, and those with a device are {}\n{inventory}",
        known.join(", ")
    )]
    NoSuchPlatform {
        /// What was asked for.
        spec: String,
        /// The part of a platform's name in it.
        platform: String,
        /// The platforms that have devices.
        known: Vec<String>,
        /// What is there, and why the rest is not.
        inventory: String,
    },
    /// A device description asks for no devices or for far too many.
    #[error(
        "`{spec}` asks for {asked} devices: ask for 1 to {most}; a device by its number has a comma, as in `cuda:0,`"
    )]
    DeviceCount {
        /// What was asked for.
        spec: String,
        /// How many devices that is.
        asked: String,
        /// The most that are served.
        most: usize,
    },
    /// There are fewer devices than were asked for, and they can't be split.
    #[error("`{spec}` asks for {asked} devices by `{term}`, {there} are there and free, {reason}")]
    TooFewDevices {
        /// What was asked for.
        spec: String,
        /// The part of it that can't be served.
        term: String,
        /// How many devices that part asks for.
        asked: usize,
        /// How many are there and free.
        there: usize,
        /// Why they can't be split, and what would work.
        reason: String,
    },
    /// There is no exchange strategy of that name.
    #[error("there is no exchange strategy `{name}`: it is one of {}", known.join(", "))]
    NoSuchExchange {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
    /// An option has no such choice.
    #[error("there is no {what} `{name}`: it is one of {}", known.join(", "))]
    NoSuchChoice {
        /// What the option chooses.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
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
    /// There are more devices than planes of the grid.
    #[error(
        "{cells} planes along {axis} can't be shared out among {devices} devices: each needs one at least; use at most \
         {cells} devices"
    )]
    MoreDevicesThanPlanes {
        /// The axis that is split.
        axis: &'static str,
        /// Cells there.
        cells: usize,
        /// The number of devices.
        devices: usize,
    },
    /// Planes can't be shared out like that.
    #[error("the planes can't be shared out as `{asked}`: {reason}")]
    Division {
        /// What was asked for.
        asked: String,
        /// Why not.
        reason: String,
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
    /// A field extends along other axes than the kernel's parameter.
    #[error("`{kernel}` wants a field along other axes for {what} than `{field}` has")]
    FieldAxes {
        /// The kernel.
        kernel: String,
        /// The parameter.
        what: String,
        /// The field.
        field: String,
    },
    /// A range names cells that there are not.
    #[error("the range {written} along {axis} leaves the field, which has {cells} cells there")]
    RangeOutside {
        /// The axis.
        axis: &'static str,
        /// The range as it was written.
        written: String,
        /// The first cell, counted from the low end.
        lo: i64,
        /// One past the last cell.
        hi: i64,
        /// Cells of the field.
        cells: i64,
    },
    /// Ranges of one call have points in common.
    #[error("the ranges of the call of `{kernel}` overlap: make a stage of each")]
    RangesOverlap {
        /// The kernel.
        kernel: String,
    },
    /// Ranges of one call take points of different colours.
    #[error("the ranges of the call of `{kernel}` differ in colour (red, black, or both): make a stage of each colour")]
    RangesDiffer {
        /// The kernel.
        kernel: String,
    },
    /// A range was narrowed more often than it can be.
    #[error(
        "a range of the call of `{kernel}` is narrowed more than {most} times along {axis}: name its cells at once"
    )]
    RangeNarrowed {
        /// The kernel.
        kernel: String,
        /// The axis.
        axis: &'static str,
        /// How often a range can be narrowed along an axis.
        most: usize,
    },
    /// A kernel reads beyond a face where its boundary has no value.
    #[error("{0}")]
    ReadsBeyond(Box<ReadsBeyond>),
    /// A direction names no face.
    #[error(
        "({}, {}, {}) names no face of field `{field}`: name a face by one step out of the grid, such as `X` or `-Z`",
        direction[0], direction[1], direction[2]
    )]
    NoFace {
        /// The field.
        field: String,
        /// The direction.
        direction: [i32; 3],
    },
    /// A field can't have a boundary.
    #[error("field `{field}` can't have this boundary along {axis}: {reason}")]
    Boundary {
        /// The field.
        field: String,
        /// The axis.
        axis: &'static str,
        /// Why.
        reason: String,
    },
    /// Fields of different extents can't exchange their values.
    #[error(
        "`{}` ({}) and `{}` ({}) can't be swapped: their extents differ",
        fields[0], Shape(&cells[0]), fields[1], Shape(&cells[1])
    )]
    SwapOfUnlike {
        /// The fields.
        fields: [String; 2],
        /// Cells of each along X, Y and Z.
        cells: [[usize; 3]; 2],
    },
    /// Amounts can't be added to a field, or not with these weights.
    #[error("amounts can't be injected into field `{field}` of {ty}: it needs numbers, and for integers whole weights")]
    NoAmounts {
        /// The field.
        field: String,
        /// Its type.
        ty: ScalarType,
    },
    /// A sum doesn't fit its type.
    #[error("the sum of `{kernel}` is {total}, which {ty} can't hold: {}", Wider(*ty, *total))]
    SumTooLarge {
        /// The kernel that gave what was added up.
        kernel: String,
        /// The type of the result.
        ty: ScalarType,
        /// The sum.
        total: i128,
    },
    /// Two scalars of one simulation have the same name.
    #[error("there is a scalar `{name}` already: give each scalar of a simulation its own name")]
    DuplicateScalar {
        /// The name.
        name: String,
    },
    /// A closure of a step asked for something that a step changes.
    #[error(
        "a closure of a step can't use fields, scalars or the simulation, which the step is changing: give it the scalars \
         that it needs as inputs"
    )]
    InsideStep,
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
    /// A device failed while a step was done.
    #[error(
        "the call `{call}` of device {number} ({device}) failed in step {step}: {source}; {}",
        Restart(checkpoint.as_ref())
    )]
    InStep {
        /// The step of the simulation, counted from 1, in which the failure was noticed: devices work behind the program that
        /// tells them what to do.
        step: u64,
        /// The device.
        device: String,
        /// Its number in the simulation.
        number: usize,
        /// What it was told.
        call: &'static str,
        /// The checkpoint that was written last.
        checkpoint: Option<LastCheckpoint>,
        /// The failure.
        #[source]
        source: Box<Error>,
    },
    /// A checked run came to another result than the reference device.
    #[error(
        "after step {step} {what} differs from the reference at {place}: {found}, and the reference has {expected}"
    )]
    Differs {
        /// The field, scalar or record.
        what: String,
        /// Where.
        place: String,
        /// The step of the simulation, counted from 1.
        step: u64,
        /// What the devices have.
        found: String,
        /// What the reference has.
        expected: String,
    },
    /// A halo cell was read before it was exchanged.
    #[error(
        "after step {step} field `{field}` holds at {at:?}, plane {plane} of the subdomain of {device}, what a halo cell holds \
         before it is exchanged; please report this plan"
    )]
    Poisoned {
        /// The field.
        field: String,
        /// The cell.
        at: [usize; 3],
        /// The device that owns it.
        device: String,
        /// Its plane in the subdomain.
        plane: usize,
        /// The step of the simulation, counted from 1.
        step: u64,
    },
    /// A plan copies from a device straight to another one that it doesn't reach.
    #[error("{from} can't copy to {to}: {reason}; use an exchange through the host")]
    Unreachable {
        /// The device that has the cells.
        from: String,
        /// The device that is to get them.
        to: String,
        /// Why it can't.
        reason: String,
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
        "the simulation stopped after {steps} steps because an operation failed, and its fields are undefined: build it again; {}",
        Restart(checkpoint.as_ref())
    )]
    Stopped {
        /// The number of steps that were finished before.
        steps: u64,
        /// The checkpoint that was written last.
        checkpoint: Option<LastCheckpoint>,
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
    /// A range of colours has no values.
    #[error("the colours of a picture can't run from {low} to {high}: give two numbers, the smaller one first")]
    ColourRange {
        /// The value of the first colour.
        low: f64,
        /// The value of the last colour.
        high: f64,
    },
    /// A file isn't a checkpoint.
    #[error("{} is no checkpoint: it doesn't start like one", path.display())]
    NoCheckpoint {
        /// The file.
        path: PathBuf,
    },
    /// A checkpoint has a format that this version doesn't read.
    #[error(
        "the checkpoint {} has version {found} of the format, and this program reads version {known}: use the version of \
         polyhalo that wrote it",
        path.display()
    )]
    CheckpointVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that is read.
        known: u32,
    },
    /// A checkpoint isn't what was written.
    #[error("the checkpoint {} is damaged: {reason}; restart from another one", path.display())]
    DamagedCheckpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A checkpoint is of another simulation.
    #[error("the checkpoint {} doesn't fit this simulation: {difference}", path.display())]
    OtherCheckpoint {
        /// The file.
        path: PathBuf,
        /// What differs.
        difference: CheckpointDifference,
    },
    /// The program was asked to end: by Ctrl-C or by a batch system.
    ///
    /// The request stays: every later run of the program ends early too, unless its first steps are all that it has.
    #[error("the run was interrupted after step {steps}{}; {}", Unsaved(unsaved.as_deref()), Restart(checkpoint.as_ref()))]
    Interrupted {
        /// The steps of the simulation that are finished; its fields are as these left them.
        steps: u64,
        /// The checkpoint that was written last.
        checkpoint: Option<LastCheckpoint>,
        /// Why the checkpoint that the run was to leave couldn't be written.
        #[source]
        unsaved: Option<Box<Error>>,
    },
}

impl Error {
    /// The failure itself, without the step in which it was noticed.
    pub fn cause(&self) -> &Self {
        match self {
            Self::InStep { source, .. } => source.cause(),
            other => other,
        }
    }
}

/// A kernel reads beyond a face where its boundary has no value.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{kernel}` reads `{parameter}` {needed} cells beyond the {side} face of field `{field}` along {axis} \
     ({file}:{line}), whose boundary is {boundary} and which has {cells} cells there: give the field a boundary with \
     values there, or update fewer points (`.over(..)`)"
)]
pub struct ReadsBeyond {
    /// The kernel.
    pub kernel: String,
    /// The parameter that is read.
    pub parameter: String,
    /// The field.
    pub field: String,
    /// What its boundary is, in words.
    pub boundary: String,
    /// The axis.
    pub axis: &'static str,
    /// `low` or `high`.
    pub side: &'static str,
    /// Cells of the field there.
    pub cells: usize,
    /// Cells beyond the face that are needed.
    pub needed: usize,
    /// The file of the kernel.
    pub file: String,
    /// The line of the read that reaches farthest.
    pub line: u32,
}

/// What the error says, and what its causes say that it hasn't said.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.to_string();
        f.write_str(&said)?;
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let says = error.to_string();
            if !said.contains(&says) {
                write!(f, "\ncaused by: {says}")?;
                said.push_str(&says);
            }
            cause = error.source();
        }
        Ok(())
    }
}

/// A checkpoint that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCheckpoint {
    /// The file.
    pub path: PathBuf,
    /// The steps of the simulation that were finished when it was written.
    pub steps: u64,
}

/// What to do after a run has ended before its time.
struct Restart<'a>(Option<&'a LastCheckpoint>);

impl fmt::Display for Restart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(LastCheckpoint { path, steps }) => write!(f, "restart from step {steps}, with {}", path.display()),
            None => write!(f, "no checkpoint was written"),
        }
    }
}

/// What became of the checkpoint of an interrupted run.
struct Unsaved<'a>(Option<&'a Error>);

impl fmt::Display for Unsaved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |error| write!(f, ", and its last checkpoint is missing: {error}"))
    }
}

/// What holds such a sum.
struct Wider(ScalarType, i128);

impl fmt::Display for Wider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ty, total) = *self;
        let wider = match ty {
            ScalarType::U64 | ScalarType::U32 | ScalarType::U8 if u64::try_from(total).is_ok() => "u64",
            _ if i64::try_from(total).is_ok() => "i64",
            _ => return f.write_str("no integer type does; add up floats, as in `Sum(value as f64)`"),
        };
        write!(f, "add up a wider type, as in `Sum(value as {wider})`")
    }
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

    // From 128 bytes on Clippy would warn of a large error at every function of a user that returns a `Result`.
    const _: () = assert!(size_of::<Error>() < 128);

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

    #[test]
    fn the_end_of_a_run_tells_where_to_restart() {
        let path = PathBuf::from("run.checkpoint");
        let checkpoint = Some(LastCheckpoint { path, steps: 400 });
        assert_eq!(
            Error::Interrupted { steps: 437, checkpoint, unsaved: None }.to_string(),
            "the run was interrupted after step 437; restart from step 400, with run.checkpoint"
        );
        let error = Error::Interrupted { steps: 3, checkpoint: None, unsaved: None };
        assert_eq!(error.to_string(), "the run was interrupted after step 3; no checkpoint was written");
        let full = Error::Write { path: "run.checkpoint".into(), reason: "the disk is full".into() };
        let error = Error::Interrupted { steps: 3, checkpoint: None, unsaved: Some(Box::new(full)) };
        assert_eq!(
            error.to_string(),
            "the run was interrupted after step 3, and its last checkpoint is missing: couldn't write run.checkpoint: \
             the disk is full; no checkpoint was written"
        );
    }

    #[test]
    fn a_result_has_room_for_every_error() {
        // From 128 bytes on, clippy warns of functions that return it.
        assert!(size_of::<Error>() < 128, "{}", size_of::<Error>());
    }

    #[test]
    fn what_main_shows_is_what_the_error_says() {
        let error = Error::NoCheckpoint { path: "u.npy".into() };
        assert_eq!(format!("{error:?}"), "u.npy is no checkpoint: it doesn't start like one");
        assert_eq!(format!("{error:#?}"), error.to_string());
        // A cause that it doesn't name follows.
        let source = std::io::Error::other(Error::DuplicateField { name: "u".into() });
        let error = Error::System { call: "opening".into(), source };
        assert_eq!(
            format!("{error:?}"),
            "opening failed: there is a field `u` already: give each field of a simulation its own name"
        );
    }

    #[test]
    fn sums_that_are_too_large_name_a_type_that_holds_them() {
        let text = |ty, total| Error::SumTooLarge { kernel: "count".into(), ty, total }.to_string();
        assert_eq!(
            text(ScalarType::I8, 128),
            "the sum of `count` is 128, which i8 can't hold: add up a wider type, as in `Sum(value as i64)`"
        );
        assert!(text(ScalarType::U32, 1 << 63).ends_with("`Sum(value as u64)`"));
        assert!(text(ScalarType::I64, 1 << 63).ends_with("`Sum(value as f64)`"));
        assert!(text(ScalarType::U8, 1 << 64).ends_with("`Sum(value as f64)`"));
    }

    #[test]
    fn names_on_one_side_are_told() {
        let names = |missing: &[&str], surplus: &[&str]| {
            let [missing, surplus] = [missing, surplus].map(|names| names.iter().map(|&name| name.into()).collect());
            CheckpointDifference::Names { what: "fields", missing, surplus }.to_string()
        };
        assert_eq!(names(&["u", "v"], &[]), "it has no fields `u`, `v`, which the simulation has");
        assert_eq!(names(&[], &["w"]), "it has fields `w`, which the simulation hasn't");
        assert_eq!(
            names(&["u"], &["w"]),
            "it has no fields `u`, which the simulation has, and it has fields `w`, which the simulation hasn't"
        );
    }
}
