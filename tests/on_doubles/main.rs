//! The CUDA and HIP devices, proven as far as a machine without a GPU allows: whole programs run on stand-ins for the vendors'
//! driver libraries, which are loaded in place of them and nothing else is changed.
//!
//! `double` starts programs on them, `results` compares bits, `faults` lets every call fail, `absent` takes away what a
//! machine may lack, `waits` leaves waits out.

mod absent;
mod double;
mod faults;
#[path = "../process.rs"]
#[allow(dead_code, reason = "the other tests of programs use more of it")]
mod process;
mod results;
mod waits;
