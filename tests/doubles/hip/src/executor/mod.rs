//! Runs HIP source on the CPU: `signature` finds its kernels, `compiler` makes a shared object of it with g++, `object` loads
//! that and runs launches.

mod compiler;
mod object;
mod signature;

pub use compiler::{Refused, cache, compile};
pub use object::{Fault, FaultKind, Kernel, Launch, Loaded, Parameter, ParameterKind, Range, Reach, Unloadable, load};
