//! What a plan moves between devices: counted from its operations, which are what is run.

use std::fmt;
use std::ops::AddAssign;

use crate::error::Bytes;
use crate::plan::{Action, Plan};
use crate::shape::Shape;

/// Halo cells that went from one device to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Copies straight from device to device.
    pub direct: u64,
    /// Their bytes.
    pub direct_bytes: u64,
    /// Copies through the host's memory.
    pub staged: u64,
    /// Their bytes, each counted once.
    pub staged_bytes: u64,
}

impl Traffic {
    /// That of one run of a plan.
    pub fn of(plan: &Plan, shapes: &[Shape]) -> Self {
        let mut all = Self::default();
        for op in &plan.ops {
            match &op.action {
                Action::Send { slot, part, .. } => {
                    all.direct += 1;
                    all.direct_bytes += part.points() * shapes[slot.field.0 as usize].ty.bytes() as u64;
                }
                Action::Upload { to, part, .. } => {
                    all.staged += 1;
                    all.staged_bytes += part.points() * shapes[to.field.0 as usize].ty.bytes() as u64;
                }
                Action::Launch { .. }
                | Action::Download { .. }
                | Action::Barrier
                | Action::Copy { .. }
                | Action::Fold { .. }
                | Action::Compute { .. }
                | Action::Probe { .. }
                | Action::Record { .. } => {}
            }
        }
        all
    }

    /// That of several runs.
    pub fn times(self, runs: u64) -> Self {
        Self {
            direct: self.direct * runs,
            direct_bytes: self.direct_bytes * runs,
            staged: self.staged * runs,
            staged_bytes: self.staged_bytes * runs,
        }
    }

    /// Whether nothing moves.
    pub fn is_empty(&self) -> bool {
        self.direct + self.staged == 0
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.direct += other.direct;
        self.direct_bytes += other.direct_bytes;
        self.staged += other.staged;
        self.staged_bytes += other.staged_bytes;
    }
}

impl fmt::Display for Traffic {
    /// `4 copies from device to device (2.0 MiB)`, `... through the host`, or both.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = |count: u64| if count == 1 { "copy" } else { "copies" };
        let mut ways = Vec::new();
        if self.direct > 0 {
            let (count, bytes) = (self.direct, Bytes(self.direct_bytes));
            ways.push(format!("{count} {} from device to device ({bytes})", copies(count)));
        }
        if self.staged > 0 {
            let (count, bytes) = (self.staged, Bytes(self.staged_bytes));
            ways.push(format!("{count} {} through the host ({bytes})", copies(count)));
        }
        f.write_str(&if ways.is_empty() { "nothing".to_owned() } else { ways.join(" and ") })
    }
}
