//! The targets whose code is text: one shared walk (`walk`), terms with the parentheses they need (`term`), what the C
//! dialects have in common (`c`, and the functions of a kernel in `entry`), the forms of kernels for GPUs (`forms`, `march`), and a
//! file per dialect.
//!
//! To add a C dialect: a file with a `c::Spelling` and an [`Emitter`](super::Emitter), beside `cuda.rs`. Another
//! language implements `walk::Dialect`.

pub(crate) mod address;
pub(crate) mod c;
pub mod cuda;
mod entry;
pub(crate) mod fold;
mod forms;
mod guard;
mod head;
pub(crate) mod helper;
pub mod hip;
pub mod ir;
mod march;
pub mod opencl;
mod stores;
pub(crate) mod term;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

pub use super::names::{entry_point, rows_entry_point};
pub use cuda::CudaC;
pub use forms::{GpuForm, Walk, gpu_forms};
pub use hip::HipC;
pub use opencl::OpenClC;
