//! The one clock of traces: time since the program first asked for it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// When something ran, by [`now`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its start.
    pub start: Duration,
    /// Its end.
    pub end: Duration,
}

/// The time since the first call.
pub fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
