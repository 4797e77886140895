//! A stand-in for AMD's driver library, for tests on machines without a GPU: it runs HIP source, compiled by g++, on the CPU.

mod driver;
pub mod executor;
