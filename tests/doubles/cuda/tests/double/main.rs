//! The stand-in for CUDA's driver, asked as programs ask it: by cudarc, which finds it by the name of NVIDIA's library.
//!
//! What the stand-in is like is said by variables, so each test runs in a process of its own.

mod answers;
mod child;
mod kernels;
mod mistakes;
