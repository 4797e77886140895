//! Shared by the benchmarks: the stencils and plain C loops to compare them with, the state of the machine, and figures of repetitions.
//!
//! They run on Linux, where a thread can be pinned and the system tells what other processes do.

#![cfg(target_os = "linux")]

pub mod c;
pub mod cases;
pub mod cpus;
pub mod kernels;
pub mod quiet;
pub mod spread;
pub mod table;
