//! Shared by the benchmarks: a plain C loop to compare with, the state of the machine, and figures of repetitions.
//!
//! They run on Linux, where a thread can be pinned and the system tells what other processes do.

#![cfg(target_os = "linux")]

pub mod c;
pub mod cpus;
pub mod quiet;
pub mod spread;
pub mod table;
